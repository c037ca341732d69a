/* t-SNE (van der Maaten and Hinton 2008) in two dimensions, with the settings of Belkina et al. (2019). The
 * map has the same bits for any number of threads. */
#ifndef SES_MATH_TSNE_H
#define SES_MATH_TSNE_H

#include "neighbours.h"

/* Symmetric joint probabilities, which sum to 1; members as in ses_sparse, owned. */
typedef struct ses_affinities {
    int64_t n;
    int64_t *row;
    int32_t *col;
    float *value;
} ses_affinities;

/* p(j|i) = exp(-b_i d_ij^2) over the neighbours of i, with b_i such that the perplexity is the given one;
 * P = (p(j|i) + p(i|j)) / 2n. */
bool ses_affinities_make(ses_affinities *a, const ses_math *m, const ses_neighbours *nb, double perplexity,
                         ses_err *e);
void ses_affinities_free(ses_affinities *a);

typedef enum {
    SES_TSNE_AUTO,  /* by the number of points: exact to 2,000, tree below 10,000, else grid */
    SES_TSNE_EXACT, /* all pairs */
    SES_TSNE_TREE,  /* Barnes-Hut with an angle of 0.5 (van der Maaten 2014) */
    SES_TSNE_GRID   /* interpolation on a grid and convolution by FFT (Linderman et al. 2019) */
} ses_tsne_method;

typedef struct ses_tsne_options {
    ses_tsne_method method;
    int64_t early, late; /* iterations with and without exaggeration; 0: 250, 500, of few points 750 */
    double exaggeration; /* 0: 12 */
    double rate;         /* learning rate; 0: points / exaggeration, and of few points also others */
} ses_tsne_options;

/* The neighbours of a point that P needs: all other points if they are few, as t-SNE is defined, else
 * 3 * perplexity. */
int64_t ses_tsne_neighbours(int64_t n, double perplexity);

/* Moves the points x, y [n], which hold the start, and stores the divergence KL(P || Q). Few points move
 * several times, with other learning rates; the map with the lowest divergence remains. o may be NULL. */
bool ses_tsne_run(const ses_math *m, const ses_affinities *p, const ses_tsne_options *o, double *x, double *y,
                  double *kl, ses_err *e);

/* Scales the first two columns of rows [n, width] to a start: the first has deviation 1e-4. */
void ses_tsne_start(const ses_real *rows, int64_t n, int64_t width, double *x, double *y);

/* For tests: the gradient / 4 with exaggeration f: gx [n], gy [n]; returns the sum of 1 / (1 + d^2). */
bool ses_tsne_gradient(const ses_math *m, const ses_affinities *p, ses_tsne_method method, double f,
                       const double *x, const double *y, double *gx, double *gy, double *z, ses_err *e);
double ses_tsne_divergence(const ses_math *m, const ses_affinities *p, const double *x, const double *y,
                           double z);
const char *ses_tsne_method_name(ses_tsne_method method, int64_t n); /* "exact", "tree", "grid" */

#endif
