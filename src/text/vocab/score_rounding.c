/* Rounding of piece scores as in HF Tokenizers. */
#include "score_rounding.h"

#include "base/number.h"

#include <math.h>

/* 10^k for k from 0 to 308, correctly rounded. */
static double power_of_ten(int k)
{
    char text[8] = "1e";
    size_t n = 2;
    double x = 1;
    if (k >= 100) text[n++] = (char)('0' + k / 100);
    if (k >= 10) text[n++] = (char)('0' + k / 10 % 10);
    text[n++] = (char)('0' + k % 10);
    ses_parse_double(text, n, &x);
    return x;
}

double ses_score_from_json(double x)
{
    static const double small[23] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    int exp;
    double f = (double)ses_double_digits(x, &exp);
    if (exp < -308) f /= 1e308, exp += 308;
    int k = exp < 0 ? -exp : exp;
    double power = k < 23 ? small[k] : power_of_ten(k);
    f = exp < 0 ? f / power : f * power;
    return copysign(f, x);
}

double ses_score_to_json(double x)
{
    double near[3] = { x, nextafter(x, INFINITY), nextafter(x, -INFINITY) };
    for (int i = 0; i < 3; i++)
        if (ses_score_from_json(near[i]) == x) return near[i];
    return x;
}
