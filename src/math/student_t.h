/* Confidence intervals of means by Student's t distribution. Pure functions. */
#ifndef SES_MATH_STUDENT_T_H
#define SES_MATH_STUDENT_T_H

#include <stddef.h>

/* P(T <= t) with df degrees of freedom, df > 0. */
double ses_student_t_cdf(double t, double df);
/* The t with P(T <= t) = p; infinite at p = 0 and 1, NaN outside or for df <= 0. */
double ses_student_t_quantile(double p, double df);

/* Mean of n independent values with its interval; fewer than two values: deviation, low and high are NaN. */
typedef struct ses_mean_interval {
    size_t n;
    double mean, deviation; /* deviation: the squares are divided by n - 1 */
    double low, high;
} ses_mean_interval;
/* level: 0.95. */
ses_mean_interval ses_mean_interval_of(const double *x, size_t n, double level);

/* Difference of two means a - b whose variances may differ (Welch): interval of this level and the
 * probability p of so large a difference, either way, if the means are equal. NaN: fewer than two values on a
 * side. */
typedef struct ses_mean_difference {
    double difference, df, low, high, p;
} ses_mean_difference;
ses_mean_difference ses_mean_difference_of(const ses_mean_interval *a, const ses_mean_interval *b,
                                           double level);

#endif
