/* Functions of the gamma distribution for topic models, for positive arguments.
 *
 * digamma for y = x + 6 and Q(x) = x (x + 1) ... (x + 5):
 *     digamma(x) = ln y - rest(x),   rest(x) = 1 / (2 y) + sum of B_2n / (2 n y^2n) + Q'(x) / Q(x)
 * so exp(digamma(x)) = y exp(-rest(x)) needs no logarithm. Relative error below 1e-13. */
#ifndef SES_MATH_GAMMA_H
#define SES_MATH_GAMMA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The sum of 1 / (x + i) for i < 6 as one fraction, then the asymptotic series at y = x + 6. */
static inline double ses_digamma_rest(double x)
{
    double u = x * (x + 5), v = u + 4, w = u + 6; /* x (x + 5), (x + 1) (x + 4), (x + 2) (x + 3) */
    double sums = (2 * x + 5) * (v * w + u * w + u * v) / (u * v * w);
    double y = x + 6, r = 1 / y, r2 = r * r;
    double series =
        r2 *
        (1. / 12 -
         r2 * (1. / 120 -
               r2 * (1. / 252 - r2 * (1. / 240 - r2 * (1. / 132 - r2 * (691. / 32760 - r2 * (1. / 12)))))));
    return 0.5 * r + series + sums;
}

/* e^x for x <= 0; 0 below -708. It has no branches, so that compilers vectorize loops over it. */
static inline double ses_exp_negative(double x)
{
    double t = x < -708 ? -708 : x;
    double shifted = t * 0x1.71547652b82fep+0 + 0x1.8p52, n = shifted - 0x1.8p52;
    double r = t - n * 0x1.62e42fefa0000p-1 - n * 0x1.cf79abc9e3b3ap-40;
    double p = 1. / 6227020800;
    p = p * r + 1. / 479001600;
    p = p * r + 1. / 39916800;
    p = p * r + 1. / 3628800;
    p = p * r + 1. / 362880;
    p = p * r + 1. / 40320;
    p = p * r + 1. / 5040;
    p = p * r + 1. / 720;
    p = p * r + 1. / 120;
    p = p * r + 1. / 24;
    p = p * r + 1. / 6;
    p = p * r + 0.5;
    p = p * r + 1;
    p = p * r + 1;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52; /* 2^n */
    double power;
    memcpy(&power, &bits, sizeof power);
    return x < -708 ? 0 : p * power;
}

static inline double ses_exp_digamma(double x) { return (x + 6) * ses_exp_negative(-ses_digamma_rest(x)); }
static inline double ses_digamma(double x) { return log(x + 6) - ses_digamma_rest(x); }

/* ln Gamma(x): Stirling's series at x + 8. Unlike lgamma it writes no global. */
static inline double ses_log_gamma(double x)
{
    double product = 1, y = x;
    while (y < 9) product *= y++;
    double r = 1 / y, r2 = r * r;
    double series =
        r * (1. / 12 -
             r2 * (1. / 360 - r2 * (1. / 1260 - r2 * (1. / 1680 - r2 * (1. / 1188 - r2 * 691. / 360360)))));
    return (y - 0.5) * log(y) - y + 0.91893853320467274178 + series - log(product);
}

#endif
