/* Student's t distribution by the regularized incomplete beta function, and intervals of means. */
#include "student_t.h"

#include <float.h>
#include <math.h>

/* The continued fraction of the incomplete beta function, by Lentz's method; converges fast for
 * x < (a + 1) / (a + b + 2). */
static double beta_fraction(double x, double a, double b)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1), f;
    if (fabs(d) < DBL_MIN) d = DBL_MIN;
    f = d = 1 / d;
    for (int m = 1; m < 1000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
               odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int k = 0; k < 2; k++) {
            double term = k ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            if (fabs(d) < DBL_MIN) d = DBL_MIN;
            if (fabs(c) < DBL_MIN) c = DBL_MIN;
            d = 1 / d;
            f *= d * c;
        }
        if (fabs(d * c - 1) < DBL_EPSILON) break;
    }
    return f;
}

/* I_x(a, b); y = 1 - x without cancellation. */
static double incomplete_beta(double x, double y, double a, double b)
{
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    double factor = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    return x < (a + 1) / (a + b + 2) ? factor * beta_fraction(x, a, b) / a
                                     : 1 - factor * beta_fraction(y, b, a) / b;
}

/* P(T > t), t >= 0. */
static double upper_tail(double t, double df)
{
    double squares = df + t * t;
    if (isinf(squares)) return 0;
    return 0.5 * incomplete_beta(df / squares, t * t / squares, 0.5 * df, 0.5);
}

double ses_student_t_cdf(double t, double df)
{
    if (!(df > 0) || isnan(t)) return NAN;
    double tail = upper_tail(fabs(t), df);
    return t > 0 ? 1 - tail : tail;
}

double ses_student_t_quantile(double p, double df)
{
    if (!(df > 0) || !(p >= 0 && p <= 1)) return NAN;
    if (p == 0 || p == 1) return p > 0 ? INFINITY : -INFINITY;
    double tail = fmin(p, 1 - p), low = 0, high = 1;
    while (upper_tail(high, df) > tail && high < DBL_MAX / 4) low = high, high *= 2;
    for (int i = 0; i < 200; i++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        if (upper_tail(middle, df) > tail)
            low = middle;
        else
            high = middle;
    }
    return p < 0.5 ? -high : p > 0.5 ? high : 0;
}

ses_mean_interval ses_mean_interval_of(const double *x, size_t n, double level)
{
    ses_mean_interval m = { n, NAN, NAN, NAN, NAN };
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    if (n) m.mean = sum / (double)n;
    if (n < 2) return m;
    for (size_t i = 0; i < n; i++) squares += (x[i] - m.mean) * (x[i] - m.mean);
    m.deviation = sqrt(squares / (double)(n - 1));
    double half = ses_student_t_quantile(0.5 + level / 2, (double)(n - 1)) * m.deviation / sqrt((double)n);
    m.low = m.mean - half;
    m.high = m.mean + half;
    return m;
}

ses_mean_difference ses_mean_difference_of(const ses_mean_interval *a, const ses_mean_interval *b,
                                           double level)
{
    ses_mean_difference d = { a->mean - b->mean, NAN, NAN, NAN, NAN };
    if (a->n < 2 || b->n < 2) return d;
    double na = (double)a->n, nb = (double)b->n, va = a->deviation * a->deviation / na,
           vb = b->deviation * b->deviation / nb, error = sqrt(va + vb);
    if (error == 0) { /* no noise at all */
        d.low = d.high = d.difference;
        d.p = d.difference == 0;
        return d;
    }
    d.df = (va + vb) * (va + vb) / (va * va / (na - 1) + vb * vb / (nb - 1));
    double half = ses_student_t_quantile(0.5 + level / 2, d.df) * error;
    d.low = d.difference - half;
    d.high = d.difference + half;
    d.p = 2 * ses_student_t_cdf(-fabs(d.difference) / error, d.df);
    return d;
}
