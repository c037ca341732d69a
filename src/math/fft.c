/* Factors and twiddle factors of Fourier transforms. */
#include "fft.h"

#include "base/alloc.h"

#include <math.h>

static int64_t without_small_factors(int64_t n)
{
    static const int factor[] = { 2, 3, 5 };
    for (size_t i = 0; i < SES_LEN(factor); i++)
        while (n % factor[i] == 0) n /= factor[i];
    return n;
}

int64_t ses_fft_good_size(int64_t n)
{
    n = (n + 3) / 4 * 4;
    while (without_small_factors(n) != 1) n += 4;
    return n;
}

bool ses_fft_plan_make(ses_fft_plan *plan, int64_t n, ses_err *e)
{
    static const int factor[] = { 4, 5, 3, 2 };
    *plan = (ses_fft_plan){ .n = n };
    if (n < 1 || without_small_factors(n) != 1)
        return ses_fail(e, SES_EARG, "transform of length %lld; expected factors 2, 3 and 5", (long long)n);
    int64_t m = n, turns = 0;
    for (size_t f = 0; f < SES_LEN(factor);)
        if (m % factor[f] == 0)
            m /= factor[f], plan->radix[plan->stages++] = factor[f], turns += m * (factor[f] - 1);
        else
            f++;
    float *turn = ses_alloc_array((size_t)turns + 1, 2 * sizeof *turn, e);
    if (!turn) return false;
    plan->turn = turn;
    m = n;
    for (int s = 0; s < plan->stages; s++) {
        int radix = plan->radix[s];
        m /= radix;
        for (int64_t p = 0; p < m; p++)
            for (int k = 1; k < radix; k++) {
                double angle = -2 * 3.14159265358979323846 * (double)(p * k) / (double)(m * radix);
                *turn++ = (float)cos(angle);
                *turn++ = (float)sin(angle);
            }
    }
    return true;
}
