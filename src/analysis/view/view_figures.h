/* The figures of an attention view, of its chosen layers. heads: the chosen heads, numbered from 1. A figure
 * is added to the report; a failure stays in it. */
#ifndef SES_ANALYSIS_VIEW_FIGURES_H
#define SES_ANALYSIS_VIEW_FIGURES_H

#include "analysis/view/attention_view.h"

/* Every head as a small map. */
void ses_view_draw_overview(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads);
/* The strongest weights of each token: a table for each family. */
void ses_view_draw_strongest(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads,
                             int64_t layer);
/* Weights of a layer as a matrix: mean over the chosen heads. */
void ses_view_draw_matrix(const ses_attention_view *v, ses_report *r, const ses_layer_set *heads,
                          int64_t layer);
void ses_view_draw_rollout(const ses_attention_view *v, ses_report *r, int64_t layer);
void ses_view_draw_flow(const ses_attention_view *v, ses_report *r);
/* How the query of a row and the keys make its weights in one head. */
void ses_view_draw_neurons(const ses_view_family *f, ses_report *r, int64_t layer, int64_t head, int64_t row);

/* Mean over the chosen heads of a layer: [rows, cols], freed by the caller. NULL: no memory. */
float *ses_view_mean(const ses_view_family *f, const ses_view_layer *l, const ses_layer_set *heads);

#endif
