/* Results of structural probes by layer, and their report. */
#ifndef SES_ANALYSIS_PROBE_TREE_REPORT_H
#define SES_ANALYSIS_PROBE_TREE_REPORT_H

#include "figure/report.h"
#include "structural_scores.h"

/* The probes of one layer. */
typedef struct ses_tree_layer {
    int64_t layer;
    ses_structural_scores scores;
    ses_structural_probe distance, depth; /* b is NULL: freed after the layer was scored */
} ses_tree_layer;

/* A sentence that is drawn: gold and predicted heads of its content words. */
typedef struct ses_drawn_tree {
    const ses_tree *tree;
    int32_t *predicted; /* as ses_structural_tree returns them */
} ses_drawn_tree;

typedef struct ses_tree_results {
    const ses_treebank *train, *dev, *test; /* test may be dev */
    ses_structural_scores order;            /* the baseline of linear order */
    ses_tree_layer *layer, *random;         /* [n], [n_random] */
    size_t n, n_random;                     /* n_random: n, 1 for the best layer, 0 */
    size_t too_long, windowed;              /* sentences left out; sentences longer than the model */
    size_t test_in_train;                   /* test sentences that are training sentences */
    bool added_0;                           /* layer 0 is a baseline that the user did not choose */
    size_t best;                            /* index of the layer with the best UUAS: the drawn one */
    ses_drawn_tree *drawn;
    size_t n_drawn;
} ses_tree_results;

bool ses_tree_report(ses_report *r, const ses_tree_results *x, ses_err *e);

#endif
