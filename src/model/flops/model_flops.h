/* FLOPs of a forward pass, counted from the structure of a model, with the rules of the counter of ELECTRA
 * (Clark et al. 2020, google-research/electra):
 *   - a product of a row with a matrix of m x n takes 2 m n, a bias n;
 *   - a lookup in a table is a product with a one-hot vector: 2 x rows x columns (kind SES_FLOP_LOOKUP);
 *   - all tokens of a text attend to all of its tokens, also in causal models;
 *   - elementwise: dropout 4, layer norm 5, activation 8, softmax 5 per number;
 *   - the vocabulary projection is computed for labeled tokens only;
 *   - the backward pass takes as many FLOPs as the forward pass: a training step takes 2 forward passes, or 3
 *     if it recomputes activations.
 * Rules beyond that counter: character filters read all positions of a word; the cell of a recurrent layer
 * takes 5 per gate; an adaptive softmax counts as a whole one.
 *
 * Counts are linear in a few numbers of a batch (ses_flops_units): a model computes its rates once, when it
 * is declared. Values only: nothing to free. Rates are read-only, so all threads may read them. */
#ifndef SES_MODEL_FLOPS_H
#define SES_MODEL_FLOPS_H

#include "nn/nn.h"

typedef enum {
    SES_FLOP_LOOKUP,    /* tables: tokens, positions, segments */
    SES_FLOP_EMBED,     /* the rest of the embeddings */
    SES_FLOP_WEIGHT,    /* products with the weights of layers */
    SES_FLOP_ATTENTION, /* products of queries, keys and values */
    SES_FLOP_OTHER,     /* elementwise, in layers */
    SES_FLOP_HEAD,      /* pooler and heads */
    SES_FLOP_KINDS
} ses_flop_kind;

typedef struct ses_flops {
    double kind[SES_FLOP_KINDS];
} ses_flops;

/* Numbers of a batch; the FLOPs of a pass are linear in them. */
typedef enum {
    SES_UNIT_TOKEN,          /* tokens of the first stack */
    SES_UNIT_PAIR,           /* their (query, key) pairs in layers with full attention */
    SES_UNIT_WINDOW_PAIR,    /* the same in layers with a window */
    SES_UNIT_TARGET,         /* tokens of the decoder */
    SES_UNIT_TARGET_PAIR,    /* their pairs */
    SES_UNIT_CROSS_PAIR,     /* pairs of a target and a source token */
    SES_UNIT_PREDICTED,      /* positions of the query stream (permutation LM) */
    SES_UNIT_PREDICTED_PAIR, /* and their pairs with tokens */
    SES_UNIT_DISTANCE,       /* distances of tokens that occur, in the whole pass (DeBERTa) */
    SES_UNIT_SEQUENCE,
    SES_UNIT_EXIT, /* sequences whose inner classifiers are computed */
    SES_UNIT_CHAR, /* bytes of words (taggers) */
    SES_UNIT_HEAD, /* rows that the first head scores, then the second */
    SES_UNITS = SES_UNIT_HEAD + SES_MAX_OUTPUT_HEADS
} ses_flops_unit;

typedef struct ses_flops_units {
    double n[SES_UNITS];
} ses_flops_units;

typedef struct ses_flops_rates {
    double rate[SES_UNITS][SES_FLOP_KINDS];
    int64_t distances; /* most distances that a table has; 0: none are counted */
    int64_t window;    /* window of local layers; 0: none */
    /* FLOPs of a row in training, with a sampled softmax; 0: the whole softmax */
    double sampled_head[SES_MAX_OUTPUT_HEADS];
} ses_flops_rates;

/* Sets m->flops; the parameters are declared. */
void ses_model_flops_init(ses_model *m);

/* The numbers of `seqs` texts of `length` tokens. target: tokens of each decoder input, or positions that a
 * permutation LM predicts; labeled: labeled tokens per text, for heads that score these only. */
ses_flops_units ses_model_flops_units(const ses_model *m, double seqs, double length, double target,
                                      double labeled);
/* The numbers of a forward pass. */
ses_flops_units ses_model_flops_pass(const ses_model *m, const ses_forward_ctx *p);

/* The FLOPs of a forward pass. train: a sampled softmax is used if the model has one. */
ses_flops ses_model_flops(const ses_model *m, const ses_flops_units *u, bool train);
double ses_flops_sum(const ses_flops *f); /* sum of all kinds */

/* Forward passes that a training step takes. */
double ses_train_passes(bool recompute);

#endif
