/* Attention of one text: tokens or words, weights of every layer and head, rollout, flow, queries and keys.
 * The parts of `sesame view`.
 *
 * Ownership: a view owns everything it points to; ses_attention_view_free frees it.
 * Threads: one thread per view. */
#ifndef SES_ANALYSIS_ATTENTION_VIEW_H
#define SES_ANALYSIS_ATTENTION_VIEW_H

#include "analysis/analysis.h"
#include "analysis/attention_units.h"
#include "base/arena.h"

/* Rows or columns: the tokens of a text, or its words. */
typedef struct ses_view_side {
    int64_t tokens;
    int32_t *id, *segment;   /* [tokens] */
    const char **token;      /* [tokens]: as shown */
    ses_offset *bytes;       /* [tokens]: in the text, or the pair */
    int32_t *word;           /* [tokens]: number of the word; -1: special token */
    uint8_t *special, *pair; /* [tokens]: 1: added by the tokenizer; of the second or the generated text */
    /* Units: tokens or words, without special tokens if they are hidden. */
    ses_attention_units units;
    const char **unit;
    uint8_t *unit_special, *unit_pair;
} ses_view_side;

typedef struct ses_view_layer {
    int64_t number, heads; /* number: from 1 */
    bool chosen;           /* one of call->layers; the others are needed for rollout and flow */
    float *weight;         /* [heads, rows, cols] of units */
    double *rollout;       /* [rows, cols]; NULL: not computed */
    /* Queries, keys and additive biases of the scores, by token; NULL: not captured. bias is known up to a
     * constant of each row, and NULL if there is none. */
    float *q, *k, *bias; /* [rows, heads * dim], [cols, heads * dim], [heads, rows, cols] */
    double scale;
} ses_view_layer;

typedef struct ses_view_family {
    const char *id, *title, *name;  /* "cross", "Cross-attention", "cross" */
    const ses_view_side *from, *to; /* queries, keys */
    bool causal;
    int64_t rows, cols, dim; /* units; numbers of a query */
    int64_t n_layers, n_chosen;
    ses_view_layer *layer; /* [n_layers]: all */
    double *flow;          /* [rows, cols] to the last layer; NULL: not computed */
} ses_view_family;

enum { SES_VIEW_FAMILIES = 3 };

typedef struct ses_attention_view {
    ses_arena mem;
    ses_view_side source, target; /* target.tokens 0: none */
    bool words, hide_special, generated;
    ses_view_family family[SES_VIEW_FAMILIES];
    int n_families;
    int64_t truncated; /* tokens left out */
} ses_attention_view;

typedef struct ses_view_request {
    const char *text, *pair, *target; /* pair, target may be NULL */
    bool generate, words, hide_special;
    bool neurons;           /* queries and keys too */
    int64_t max_tokens;     /* length of a sequence; 0: the model's limit */
    int64_t max_new_tokens; /* with generate; 0: the model's setting */
} ses_view_request;

/* Encodes the texts, runs the model of the call once and reads its weights. Fails if a text is empty, the
 * model has no decoder for a target, or the weights need more memory than SES_VIEW_MAX_BYTES. */
bool ses_attention_view_make(ses_attention_view *v, const ses_analysis_call *call, const ses_view_request *q,
                             ses_err *e);
void ses_attention_view_free(ses_attention_view *v);
#define SES_VIEW_MAX_BYTES ((int64_t)4 << 30)

/* view_tokens.c */
bool ses_view_encode(ses_attention_view *v, const ses_analysis_call *call, const ses_view_request *q,
                     ses_err *e);

/* view_rollout.c: fills `rollout` of every layer; `flow` of every family. The flow of n units takes the
 * time of n * n maximum flows. */
bool ses_view_rollout(ses_attention_view *v, ses_device *dev, ses_err *e);
bool ses_view_flow(ses_attention_view *v, const ses_analysis_call *call, ses_err *e);
/* Estimated seconds of ses_view_flow on one thread. */
double ses_view_flow_seconds(const ses_attention_view *v);

/* view_page.c: the page's script and its data. neurons: with queries and keys whatever their size. */
bool ses_view_put_page(const ses_attention_view *v, ses_report *r, const char *mode, bool neurons,
                       ses_err *e);

/* view_json.c: the envelope's tokens and result. heads: the chosen ones. */
void ses_view_put_json(const ses_attention_view *v, ses_report *r, const char *mode,
                       const ses_layer_set *heads);

#endif
