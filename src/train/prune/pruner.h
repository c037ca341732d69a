/* Pruning during training: blocks of the weights inside the layers are set to zero while the model learns.
 *
 * The model's store has the masked weights W' = W M, which every forward pass reads; the pruner has the dense
 * weights W. An update takes three steps:
 *   ses_pruner_gradients   the gradient of W' becomes the gradient of the scores S, dL/dS = sum over a block
 *                          of dL/dW' W (straight-through), and the gradient of W, dL/dW = dL/dW' M;
 *   ses_pruner_expand      the store gets W, which the optimizer then updates;
 *   ses_pruner_apply       new masks by the criterion; the store gets W M again.
 * Layers, ops and fused products do not change. Masks are a function of W, S and the number of updates: a
 * checkpoint that stores W and S gives the same bits.
 *
 * Model and store are borrowed; the rest is owned. One thread. */
#ifndef SES_TRAIN_PRUNER_H
#define SES_TRAIN_PRUNER_H

#include "sesame/json.h"
#include "sesame/unstable/trainer.h"
#include "tensor/device_impl.h"

typedef struct ses_pruner ses_pruner;

/* A weight matrix that is pruned. */
typedef struct ses_pruned_weight {
    const ses_param *param;
    ses_real *dense; /* W, on the device */
    int64_t n;
} ses_pruned_weight;

/* A matrix, or a part of one: its blocks. */
typedef struct ses_prune_part {
    size_t weight;  /* index among the pruned weights */
    int64_t offset; /* its first element in the weight */
    ses_block_grid grid;
} ses_prune_part;

enum { SES_PRUNE_PARTS = 4 };

/* Blocks that compete with each other. Block i consists of block i of each part: parts have the same number
 * of blocks. */
typedef struct ses_prune_group {
    const char *name; /* "layer.0.attn.query.weight", "layer.0.ffn.units" */
    ses_prune_part part[SES_PRUNE_PARTS];
    int n_parts;
    int64_t n_blocks, n_kept;
    int64_t n_elements;
    ses_tensor *score;    /* S [n_blocks] in the store of scores; NULL: the criterion has none */
    ses_real *factor;     /* [n_blocks] M, on the device: 1 or 0 */
    ses_real *importance; /* [n_blocks] host; after a choice the host's copy of M */
} ses_prune_group;

/* A criterion: which blocks are kept. */
typedef struct ses_prune_criterion {
    const char *name, *summary;
    bool has_scores;
    bool uses_keep; /* a kept fraction is given; else a threshold and a penalty */
    /* Adds the gradient of a penalty of the scores; weight: later divisor of the gradients. NULL: none. */
    void (*penalize)(const ses_pruner *p, const ses_prune_group *g, double weight);
    /* Fills g->importance. */
    void (*rank)(const ses_pruner *p, ses_prune_group *g);
    /* Importance that kept blocks exceed, instead of a number of blocks; NULL: the most important ones. */
    double (*threshold)(const ses_pruner *p);
} ses_prune_criterion;

#define SES_CRITERION(name) extern const ses_prune_criterion ses_criterion_##name;
#include "criteria.def"
#undef SES_CRITERION

struct ses_pruner {
    ses_pruning_options o;
    const ses_prune_criterion *criterion;
    ses_model *model;
    ses_device *dev;
    ses_store *store;  /* the model's */
    ses_store *scores; /* NULL: the criterion has none */
    ses_pruned_weight *weight;
    size_t n_weights;
    ses_prune_group *group;
    size_t n_groups;
    ses_arena names;
    ses_real *scratch;         /* [largest number of blocks], on the device */
    int64_t total, begin, end; /* updates of the run; the kept fraction falls between begin and end */
    int64_t updates;           /* number of updates before the current masks */
};

/* The i-th criterion; NULL past the last. summary may be NULL. */
const char *ses_prune_criterion_name(size_t i, const char **summary);
/* Options that do not depend on the model. A criterion of NULL is fine. */
bool ses_pruning_check(const ses_pruning_options *o, ses_err *e);
/* Settings that a resumed run must share, as members of a JSON object; none without a criterion. */
void ses_pruning_put_settings(const ses_pruning_options *o, ses_json_writer *w);

/* The rows and columns of a block of "32x32"; or the words row, column and unit. */
typedef struct ses_block_shape {
    enum { SES_BLOCK_SIZED, SES_BLOCK_ROW, SES_BLOCK_COLUMN, SES_BLOCK_UNIT } kind;
    int64_t out, in; /* SES_BLOCK_SIZED */
} ses_block_shape;
bool ses_block_shape_parse(const char *text, ses_block_shape *out, ses_err *e);

/* prune_layout.c: finds the weights and their groups; frozen ones are left out. */
bool ses_prune_layout(ses_pruner *p, const ses_optim_options *optim, ses_err *e);

/* model: open for training. optim: the optimizer of its weights, whose groups tell which ones are trained.
 * updates: the length of the run. The first masks keep everything. */
ses_pruner *ses_pruner_new(const ses_pruning_options *o, ses_model *m, const ses_optim_options *optim,
                           int64_t updates, ses_err *e);
void ses_pruner_free(ses_pruner *p);
/* The optimizer of the scores: AdamW without weight decay. */
bool ses_pruner_optim(const ses_pruner *p, ses_optim_options *out, ses_err *e);

/* See above. weight: later divisor of the gradients. updates: the number done, including this one. */
void ses_pruner_gradients(ses_pruner *p, double weight);
void ses_pruner_expand(ses_pruner *p);
void ses_pruner_apply(ses_pruner *p, int64_t updates);
/* W and S were read from a checkpoint: computes the masks of this number of updates. */
void ses_pruner_restore(ses_pruner *p, int64_t updates);

/* The kept fraction of blocks that the schedule sets. */
double ses_pruner_target(const ses_pruner *p, int64_t updates);
/* The kept fraction of the pruned weights. */
double ses_pruner_kept(const ses_pruner *p);
/* Has the kept fraction its final value? */
bool ses_pruner_is_final(const ses_pruner *p, int64_t updates);

/* Sets the n_kept largest of importance[n] to 1 and the others to 0; of equal ones the first are kept. */
void ses_keep_largest(ses_real *importance, int64_t n, int64_t n_kept);

#endif
