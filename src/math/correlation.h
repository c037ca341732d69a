/* Correlations of two columns of numbers. Plain functions on arrays of the caller; safe in all threads. */
#ifndef SES_MATH_CORRELATION_H
#define SES_MATH_CORRELATION_H

#include "sesame/base.h"

/* Pearson correlation of a [n] and b [n]; NaN if one is constant. */
double ses_pearson(const double *a, const double *b, size_t n);

/* Spearman correlation: Pearson of the ranks; ties have their mean rank. a and b are replaced by their
 * ranks, from 1. work: [2 n]. NaN if one is constant. */
double ses_spearman(double *a, double *b, size_t n, double *work);

#endif
