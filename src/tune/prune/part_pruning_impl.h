/* Parts of structured pruning: scores of heads, rows and layers, and the choice of parts by these scores. */
#ifndef SES_TUNE_PART_PRUNING_IMPL_H
#define SES_TUNE_PART_PRUNING_IMPL_H

#include "part_pruning.h"
#include "tune/finetuner.h"

/* Importance of the parts of a model. A gate xi multiplies the output of a head, the activation of a row, or
 * the output of a sublayer; the score is the mean over examples of |dL/dxi| at xi = 1. */
typedef struct ses_part_scores {
    int64_t layers, heads, rows; /* heads, rows: row lengths, the most of a layer */
    double *head, *row; /* [layers, heads], [layers, rows]: divided by the length of the layer's vector */
    double *raw_head, *raw_row; /* the same before the division */
    double *layer;              /* [layers]: sum of both sublayers */
    int64_t examples;
} ses_part_scores;

/* part_scores.c: begin, add for each batch, finish. The model has its values in reals. */
bool ses_part_scores_begin(ses_part_scores *s, const ses_model *m, ses_err *e);
bool ses_part_scores_add(ses_part_scores *s, const ses_model *m, ses_tape *t, const ses_batch *b, ses_err *e);
void ses_part_scores_finish(ses_part_scores *s);
/* All three: computes them from at most max_examples sequences of the set (0: all), drawn with the seed. */
bool ses_part_scores_compute(ses_part_scores *s, ses_finetuner *t, const ses_finetune_set *set,
                             int64_t max_examples, uint64_t seed,
                             bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx, ses_err *e);
void ses_part_scores_free(ses_part_scores *s);

/* part_choice.c: marks the parts that stay. s may be NULL if o needs no scores. */
bool ses_part_choice(const ses_part_pruning_options *o, const ses_model *m, const ses_part_scores *s,
                     ses_reduction *r, ses_err *e);

#endif
