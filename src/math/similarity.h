/* Similarities of vectors, in double (Ethayarajh 2019). Rows are [.., width] floats; a row of zeros has
 * cosine 0 with every other. Functions only read their arguments; thread-safe. */
#ifndef SES_MATH_SIMILARITY_H
#define SES_MATH_SIMILARITY_H

#include "sesame/base.h"

double ses_cosine_of(const float *a, const float *b, size_t width);

/* Mean cosine of all pairs of the n >= 2 rows x[row[i]]; row NULL: rows 0 .. n - 1. sum: [width] scratch. */
double ses_mean_pair_cosine(const float *x, const size_t *row, size_t n, size_t width, double *sum);

/* Mean cosine of n rows with their mean. sum: [width] scratch. */
double ses_mean_cosine_to_mean(const float *x, size_t n, size_t width, double *sum);

/* Share of the first principal direction, not centered: sigma_1^2 / sum sigma_i^2 of the rows x[row[i]]; row
 * NULL: rows 0 .. n - 1. 0 if all rows are 0. scratch: [2 width]. */
double ses_first_direction_share(const float *x, const size_t *row, size_t n, size_t width, double *scratch);

#endif
