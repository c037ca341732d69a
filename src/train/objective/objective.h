/* Interface of a pretraining objective: how a passage becomes sequences with labels, and the loss on them.
 * One file objective_NAME.c and one line in objectives.def each. objective_mix.h combines objectives.
 *
 * Objectives are static constants. A ses_batch_builder is freed by its owner; a ses_build_ctx belongs to the
 * ses_objective_mix. One thread. */
#ifndef SES_TRAIN_OBJECTIVE_H
#define SES_TRAIN_OBJECTIVE_H

#include "data/noise.h"
#include "run/batch_builder.h"
#include "sesame/model.h"
#include "sesame/pretrain.h"

/* Settings and scratch memory of building sequences. */
typedef struct ses_build_ctx {
    ses_objective_options o;
    const ses_special_tokens *special_tokens;
    const int32_t *control_code; /* [n_control_codes] per corpus of a mixture: its control token; -1: none */
    int64_t n_control_codes;
    int64_t length;       /* maximum sequence length, special tokens included */
    bool encoder_decoder; /* the model has both */
    bool backward;        /* the model reads reversed texts */
    double progress;      /* progress of the run, 0 to 1 */
    uint64_t seed;
    /* Weights of the mask units (o.mask_units), by ses_mask_unit; all 0: o.mask_unit alone. */
    double unit_weight[4];
    uint64_t batch_number; /* number of the batch's first passage, which draws the batch's mask unit */
    ses_word_spans words;  /* scratch */
    ses_ints chosen, text;
    ses_noised_text noised;
} ses_build_ctx;

/* ---- an objective ---- */

/* Requirements. */
enum {
    SES_NEEDS_MASK = 1,         /* a mask token */
    SES_NEEDS_SENTINELS = 2,    /* T5's sentinel tokens */
    SES_NEEDS_PAIRS = 4,        /* passages of two segments */
    SES_NEEDS_GENERATOR = 8,    /* a jointly trained generator (ELECTRA) */
    SES_NEEDS_PERMUTATION = 16, /* a permutation language model (XLNet) */
    SES_NEEDS_RECURRENCE = 32,  /* a model with segment recurrence (Transformer-XL) */
    SES_NEEDS_DECODER = 64,     /* an encoder and a decoder */
    SES_NEEDS_STATE = 128,      /* a recurrent model (AWD-LSTM) */
    /* a model whose hidden state at a token does not depend on the token (cloze, context2vec) */
    SES_NEEDS_CONTEXT_MODEL = 1024,
};

/* Targets of replaced token detection, as bits; 0: replaced or not, for all tokens. */
enum {
    SES_RTD_MASKED_ONLY = 1,   /* only the positions that were masked */
    SES_RTD_PREDICT_TOKENS = 2 /* the original tokens */
};

/* Sums over an evaluation: sum / count is a mean. */
typedef struct ses_metric_sum {
    char name[40]; /* OBJECTIVE_METRIC */
    double sum, count;
} ses_metric_sum;
enum { SES_MAX_METRIC_SUMS = 24 };
typedef struct ses_metric_sums {
    ses_metric_sum item[SES_MAX_METRIC_SUMS];
    size_t n;
} ses_metric_sums;
void ses_metric_sums_add(ses_metric_sums *sums, const char *objective, const char *metric, double sum,
                         double count);
void ses_metric_sums_merge(ses_metric_sums *to, const ses_metric_sums *from); /* adds each sum once */
/* 0: no such metric, or a count of 0. */
double ses_metric_sums_mean(const ses_metric_sums *sums, const char *objective, const char *metric);

typedef struct ses_objective_mix ses_objective_mix;

typedef struct ses_objective {
    const char *name, *description;
    bool is_auxiliary; /* adds labels to the sequences of a primary objective */
    bool is_causal;    /* trains a left-to-right model: each token attends to earlier ones, or to a prefix */
    unsigned needs;    /* SES_NEEDS_* */
    const char *head;  /* name of the head that computes the loss */
    const char *seq2seq_head; /* the same for encoder-decoder models; NULL: head */
    ses_pairing pairing;      /* negative pairs */
    unsigned rtd_targets;     /* SES_RTD_* */
    /* Defaults of ses_objective_options. */
    double mask_rate, keep_rate, random_rate;
    ses_mask_unit mask_unit;
    double span_length;
    int64_t max_span;
    /* Adds the sequences of a passage, with labels; an auxiliary objective adds labels only. */
    bool (*build)(ses_build_ctx *ctx, const struct ses_objective *o, const ses_passage *p,
                  ses_batch_builder *d, ses_err *e);
    /* Maximum tokens of a passage, so that its sequences have at most ctx->length; NULL: the length without
     * special tokens. */
    int64_t (*max_passage)(const ses_build_ctx *ctx, const struct ses_objective *o);
    /* Minimum tokens of a passage; NULL: 1. */
    int64_t (*min_passage)(const ses_build_ctx *ctx, const struct ses_objective *o);
    bool (*check)(const ses_build_ctx *ctx, ses_err *e); /* checks the options; NULL: no check */
    bool mean_over_labels;                               /* `loss` is the mean over the labels of `head` */
    /* NULL: the loss of the model's heads. */
    ses_tensor *(*loss)(ses_objective_mix *mix, const struct ses_objective *o, ses_tape *t,
                        const ses_batch *b, ses_err *e);
    /* Adds loss and accuracy of a batch to sums; NULL: as the model's heads compute them. */
    bool (*measure)(ses_objective_mix *mix, const struct ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *sums, ses_err *e);
    /* The training loss, from an evaluation's sums; NULL: the mean of NAME_loss. */
    double (*total_loss)(const ses_objective_mix *mix, const struct ses_objective *o,
                         const ses_metric_sums *sums);
} ses_objective;

#define SES_OBJECTIVE(id) extern const ses_objective ses_objective_##id;
#include "objectives.def"
#undef SES_OBJECTIVE

extern const ses_objective_options ses_objective_defaults;

/* ---- shared by objectives ---- */

double ses_mask_rate_at(const ses_build_ctx *ctx, const ses_objective *o); /* at ctx->progress */
/* p: the passage, which may draw its unit; NULL: any. */
ses_masking ses_masking_settings(const ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p);

/* Random numbers of a passage, one stream per purpose. */
enum { SES_RNG_MASK = 1, SES_RNG_SPLIT, SES_RNG_PERMUTE, SES_RNG_OBJECTIVE, SES_RNG_UNIT };
ses_rng_stream ses_passage_rng(const ses_build_ctx *ctx, const ses_passage *p, uint32_t purpose);

/* ctx->length without special tokens. */
int64_t ses_framed_max_passage(const ses_build_ctx *ctx);

/* Adds one sequence: the ids [p->n] and labels [p->n] (NULL: none) with special tokens around them. */
bool ses_build_framed(const ses_build_ctx *ctx, const ses_passage *p, const int32_t *id, const int32_t *label,
                      ses_batch_builder *d, ses_err *e);

/* Appends ids (or labels) [p->n] of a passage as text for a causal model: the control code first, an
 * end-of-text token before each document. special, unless 0, replaces both. */
bool ses_build_causal(const ses_build_ctx *ctx, const ses_passage *p, const int32_t *id, int32_t special,
                      ses_ints *to, ses_err *e);

/* Masks a passage: ctx->text holds the masked ids, ctx->chosen the labels. */
bool ses_build_masked(ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p, ses_err *e);

int32_t ses_control_code_of(const ses_build_ctx *ctx, const ses_passage *p); /* -1: none */

/* The rows of a head's logits that have a label, and their labels; both arrays live on the tape. Returns
 * their number. */
int64_t ses_label_rows(ses_tape *t, const ses_batch *b, const char *head, int32_t **rows, int32_t **labels);

/* Adds loss and accuracy of head i over n labels. */
bool ses_metric_sums_add_head(ses_metric_sums *sums, const char *objective, ses_tape *t,
                              const ses_outputs *out, size_t i, const int32_t *label, int64_t n, ses_err *e);

/* Number of the n rows of x [n, V] with the largest value at their label; -1: failed. */
int64_t ses_count_correct(ses_tape *t, const ses_tensor *x, const int32_t *label, int64_t n, ses_err *e);

#endif
