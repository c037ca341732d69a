/* Minimum spanning tree of a complete graph. A plain function; safe in all threads. */
#ifndef SES_MATH_MST_H
#define SES_MATH_MST_H

#include "sesame/base.h"

/* Weight of the edge between nodes i and j, i < j. */
typedef double ses_mst_weight_fn(const void *ctx, size_t i, size_t j);

/* Minimum spanning tree of the complete graph of n nodes. parent [n] receives the tree: parent[i] is the
 * neighbor of i on the path to node 0; parent[0] is -1. The tree is unique: of two edges with equal weights,
 * the one with the smaller (i, j) is used first. key [n]: work. */
void ses_mst(ses_mst_weight_fn *weight, const void *ctx, size_t n, int32_t *parent, double *key);

/* Re-roots a tree of parents [n] at `root`: reverses the edges on the path to the old root. */
void ses_mst_reroot(int32_t *parent, int32_t root);

#endif
