/* Physical removal of attention heads, feed-forward rows and layers: a smaller model from an open one.
 *
 * A ses_reduction marks the parts that stay. Heads and rows have the numbers of the open model: a pruned
 * model can be pruned again. Each layer keeps at least one head and one row, and a model at least one layer:
 * transformers has no layers without heads or rows.
 *
 * The small form has smaller weights: "pruned_heads" in config.json as transformers 4 wrote it, and the key
 * of the width (intermediate_size), or "sesame_ffn_widths" if layers differ. The filled form computes the
 * same function at full size, for libraries that know neither key: zeros replace removed heads and rows.
 * Removed layers are missing in both: config.json has fewer layers. No weights make a post-norm layer the
 * identity, and none are needed: every library reads a model with fewer layers.
 *
 * Ownership: the caller frees reductions and models. Threads: one thread. */
#ifndef SES_MODEL_REDUCE_H
#define SES_MODEL_REDUCE_H

#include "sesame/hooks.h"
#include "sesame/model.h"

enum { SES_REDUCE_PARTS = SES_PART_CROSS + 1 };

typedef struct ses_reduction {
    int64_t layers;                  /* in the main part */
    int64_t depth[SES_REDUCE_PARTS]; /* layers of each part */
    int64_t heads[SES_REDUCE_PARTS]; /* row length of head[part]: the most heads of a layer */
    int64_t rows;                    /* row length of row: the widest feed-forward block */
    uint8_t *layer;                  /* [layers], 1: stays */
    uint8_t *head[SES_REDUCE_PARTS]; /* [depth, heads], 1: stays */
    uint8_t *row;                    /* [layers, rows], 1: stays; of the main part */
} ses_reduction;

typedef enum { SES_REDUCED_SMALL, SES_REDUCED_FILLED } ses_reduced_form;

/* Everything stays. NULL and an error: no memory. */
ses_reduction *ses_reduction_new(const ses_model *m, ses_err *e);
void ses_reduction_free(ses_reduction *r);

/* Numbers of heads and rows of a layer that stay. */
int64_t ses_reduction_heads(const ses_reduction *r, const ses_model *m, ses_part part, int64_t layer);
int64_t ses_reduction_rows(const ses_reduction *r, const ses_model *m, int64_t layer);

/* Can the model be reduced like this? The error names the model type and the reason. */
bool ses_reduction_check(const ses_reduction *r, const ses_model *m, ses_err *e);

/* May layer `layer` be removed? The first layer of models without a norm before it must stay. */
bool ses_reduction_may_remove_layer(const ses_model *m, int64_t layer);

/* The reduced model, with values of its own on the device of m, not packed: ready for ses_model_save. m must
 * have its values in reals: opened with no_packing, or for training. */
ses_model *ses_model_reduce(const ses_model *m, const ses_reduction *r, ses_reduced_form form, ses_err *e);

#endif
