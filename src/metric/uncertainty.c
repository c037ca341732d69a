/* Entropy, margin and least confidence of predictions. */
#include "uncertainty.h"

#include <math.h>

static double entropy(const float *p, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (p[i] > 0) sum -= (double)p[i] * log((double)p[i]);
    return sum;
}

double ses_uncertainty_of(ses_uncertainty by, const float *p, size_t n)
{
    double first = 0, second = 0;
    if (by == SES_BY_ENTROPY) return entropy(p, n);
    for (size_t i = 0; i < n; i++) {
        double x = (double)p[i];
        if (x > first)
            second = first, first = x;
        else if (x > second)
            second = x;
    }
    return by == SES_BY_MARGIN ? first - second : 1 - first;
}

double ses_uncertainty_of_labels(ses_uncertainty by, const float *p, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const float two[2] = { p[i], 1 - p[i] };
        sum += ses_uncertainty_of(by, two, 2);
    }
    return n ? sum / (double)n : 0;
}

bool ses_uncertainty_is_above(ses_uncertainty by, double a, double b)
{
    return by == SES_BY_MARGIN ? a < b : a > b;
}
