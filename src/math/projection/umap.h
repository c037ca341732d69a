/* UMAP (McInnes et al. 2018) in two dimensions. One thread moves the points in a fixed order, so a seed gives
 * the same map on any number of threads. */
#ifndef SES_MATH_UMAP_H
#define SES_MATH_UMAP_H

#include "neighbours.h"

typedef struct ses_umap_options {
    double min_dist; /* 0: 0.1 */
    int64_t epochs;  /* 0: 500 up to 10,000 points, else 200 */
    uint64_t seed;
} ses_umap_options;

/* Moves the points x, y [n] from their start, whose largest coordinate should be about 10. nb: the neighbours
 * of all points, without the point itself. */
bool ses_umap_run(const ses_math *m, const ses_neighbours *nb, const ses_umap_options *o, double *x,
                  double *y, ses_err *e);

/* Parameters of 1 / (1 + a d^2b), the curve nearest to exp(-(d - min_dist)) beyond min_dist. */
void ses_umap_curve(double min_dist, double *a, double *b);

#endif
