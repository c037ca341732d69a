/* Distances between heads: mean Jensen-Shannon divergence of their rows, and a map of the heads by classical
 * multidimensional scaling. Sums belong to the caller; one thread at a time. */
#ifndef SES_ANALYSIS_HEAD_DISTANCE_H
#define SES_ANALYSIS_HEAD_DISTANCE_H

#include "analysis/heads/attention_corpus.h"
#include "math/math_exec.h"

typedef struct ses_head_distance {
    int64_t heads; /* heads of all layers */
    double *sum;   /* [heads, heads]: divergence in nats, summed over rows */
    int64_t rows;
} ses_head_distance;

bool ses_head_distance_init(ses_head_distance *d, int64_t heads, ses_err *e);
void ses_head_distance_free(ses_head_distance *d);

/* Adds the rows of a text, without special tokens if it has others. A row a of n keys counts as 0.999 a +
 * 0.001/n. */
bool ses_head_distance_add(ses_head_distance *d, const ses_attention_text *t, const ses_math *m, ses_err *e);

/* Mean divergence of two heads; 0 without rows. */
double ses_head_distance_at(const ses_head_distance *d, int64_t a, int64_t b);

/* Classical multidimensional scaling of distance [n, n]: x and y [n]. The largest coordinate of each axis is
 * positive. */
bool ses_classical_mds(const ses_math *m, const double *distance, int64_t n, double *x, double *y,
                       ses_err *e);

#endif
