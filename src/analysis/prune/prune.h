/* Pruning of attention heads: their importance for a classifier on labeled texts or for an encoder-decoder on
 * texts and targets, scores without some of them, and a model without their weights.
 *
 * Ownership: everything lives in the arena of the ses_prune. Threads: one thread. */
#ifndef SES_ANALYSIS_PRUNE_H
#define SES_ANALYSIS_PRUNE_H

#include "analysis/analysis.h"
#include "base/arena.h"
#include "model/model_desc.h"
#include "run/pass.h"

/* Options of the analysis. */
typedef struct ses_prune_args {
    const char *heads; /* "rank", or a fraction for the removal without an analysis; NULL: not given */
    const char *text, *pair, *label, *write;
    int64_t examples;
    double keep, step, fraction;
    bool has_fraction;
} ses_prune_args;

extern const ses_analysis ses_analysis_prune; /* the command `prune` runs it */

typedef struct ses_prune_head {
    ses_part part;
    int64_t layer, head;
    double importance; /* divided by the length of its layer's vector */
    double raw;        /* mean over the texts of |output . gradient| */
} ses_prune_head;

typedef struct ses_prune_text {
    int32_t *id, *segment;
    int64_t n;
    int32_t *label; /* [labels]: its class, or the tokens of its target */
    int64_t labels;
} ses_prune_text;

typedef struct ses_prune {
    const ses_analysis_call *call;
    const ses_model *m;
    ses_arena mem;
    ses_pass pass;
    bool sets_segments;
    bool writes; /* an encoder-decoder: labels are tokens of target texts */
    ses_prune_text *text;
    size_t n_texts;
    int64_t n_labels;     /* labels of all texts */
    size_t truncated;     /* texts and targets that are longer than the model reads */
    ses_prune_head *head; /* all heads: parts, layers, heads in order */
    size_t n_heads;
} ses_prune;

/* prune_data.c: reads texts and labels, and lists the heads. */
typedef struct ses_prune_columns {
    const char *text, *pair, *label; /* NULL: default names; pair NULL: none; label: or the targets */
    int64_t most;                    /* texts; 0: all */
} ses_prune_columns;
bool ses_prune_open(ses_prune *p, const char *path, const ses_prune_columns *c, ses_err *e);

/* head_importance.c: fills `importance` and `raw`. */
bool ses_prune_importance(ses_prune *p, ses_err *e);
/* Accuracy without the first n of these heads; of an encoder-decoder, the part of the target tokens that are
 * the likeliest after the tokens before them. */
bool ses_prune_score(ses_prune *p, const ses_prune_head *const *without, size_t n, double *accuracy,
                     ses_err *e);

/* prune_write.c: writes the model without these heads to a folder. */
bool ses_prune_write(ses_prune *p, const ses_prune_head *const *without, size_t n, const char *dir,
                     ses_err *e);

#endif
