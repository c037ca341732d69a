/* The order in which the gradients of lanes are added: a fixed binary tree over the lanes 0 .. n - 1 of an
 * update. A node of k > 1 lanes is the sum of its first p lanes and of the other k - p, with p the largest
 * power of two below k. The tree depends on n only, so the sum has the same bits whoever computes its nodes.
 *
 * No state. */
#ifndef SES_TRAIN_LANE_TREE_H
#define SES_TRAIN_LANE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SES_MAX_LANES = 65536, SES_MAX_LANE_NODES = 40 };

/* Lanes begin .. end - 1. */
typedef struct ses_lane_node {
    int64_t begin, end;
} ses_lane_node;

/* The first lane of a node's second child. */
int64_t ses_lane_split(ses_lane_node x);

/* Is x a node of the tree over n lanes? */
bool ses_lane_is_node(int64_t n, ses_lane_node x);

/* The largest nodes inside lanes begin .. end - 1, in order; returns their number. */
size_t ses_lane_cover(int64_t n, int64_t begin, int64_t end, ses_lane_node out[SES_MAX_LANE_NODES]);

/* The lanes of a rank, out of `lanes`: consecutive, and as many as other ranks have, or one less. */
ses_lane_node ses_lanes_of_rank(int64_t lanes, int rank, int size);

#endif
