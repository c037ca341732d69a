/* Approximations of t-SNE's repulsion: f[i] = sum_j q_ij^2 (p_i - p_j), *z = sum of q_ij over i != j, with q
 * = 1 / (1 + |p_i - p_j|^2). */
#ifndef SES_MATH_TSNE_REPULSION_H
#define SES_MATH_TSNE_REPULSION_H

#include "math/math_exec.h"

typedef struct ses_tsne_tree ses_tsne_tree;
ses_tsne_tree *ses_tsne_tree_new(int64_t n, ses_err *e);
void ses_tsne_tree_free(ses_tsne_tree *t); /* t may be NULL */
void ses_tsne_tree_repel(ses_tsne_tree *t, const ses_math *m, const ses_points *a, double *fx, double *fy,
                         double *z);

typedef struct ses_tsne_grid ses_tsne_grid;
ses_tsne_grid *ses_tsne_grid_new(int64_t n, ses_err *e);
void ses_tsne_grid_free(ses_tsne_grid *g); /* g may be NULL */
bool ses_tsne_grid_repel(ses_tsne_grid *g, const ses_math *m, const ses_points *a, double *fx, double *fy,
                         double *z, ses_err *e);

#endif
