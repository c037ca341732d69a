/* The course of a pretraining run: which passages make batch number i, how long they are, how many, and for
 * which objective. A source for the trainer; and evaluations.
 *
 * A run goes through stages of growing length, each over the texts again and again. What the trainer calls an
 * epoch is a leg: one pass over the texts, or what is left of its stage. */
#ifndef SES_TRAIN_COURSE_H
#define SES_TRAIN_COURSE_H

#include "objective.h"

enum { SES_MAX_STAGES = 8 };

typedef struct ses_curriculum_stage {
    int64_t length;  /* most tokens of a sequence, special ones included */
    double fraction; /* of the run's updates */
} ses_curriculum_stage;

typedef struct ses_curriculum_options {
    ses_objective_mix *objectives;
    ses_passages_options passages; /* its length is the stages' */
    ses_curriculum_stage stage[SES_MAX_STAGES];
    size_t n_stages;
    int64_t sequences,
        tokens;         /* a batch: so many passages, or what fits into so many tokens; one of them is 0 */
    double batch_ramp;  /* share of the run in which a batch grows to its size, */
    double ramp_from;   /* from this share of it */
    int64_t accumulate; /* batches an update */
    int64_t updates;    /* of the run; 0: `epochs` of the first stage's texts */
    double epochs;
    const ses_mixture_part *eval_part; /* to be measured with */
    size_t n_eval_parts;
    bool eval_held_out; /* their documents held out; else all others */
} ses_curriculum_options;

typedef struct ses_curriculum ses_curriculum;
ses_curriculum *ses_curriculum_new(const ses_curriculum_options *o,
                                   ses_err *e); /* what options point to is borrowed */
void ses_curriculum_free(ses_curriculum *c);
int64_t ses_curriculum_updates(const ses_curriculum *c);
int64_t ses_curriculum_pass_tokens(
    const ses_curriculum *c); /* of one pass over the texts in the first stage */
ses_batch_source ses_curriculum_source(ses_curriculum *c);

/* Means over about so many tokens of what is to be measured with, for each objective in turn; at the usual
 * mask rate, whatever the run's is. go_on: false breaks it off. */
bool ses_curriculum_evaluate(ses_curriculum *c, int64_t tokens, bool (*go_on)(void *ctx), void *ctx,
                             ses_metric_sums *out, ses_err *e);

/* What the frequencies of labels alone would lose there: where a run of objective number `way` begins to
 * learn. NaN: it has no labels of tokens, or there is nothing to measure with. */
bool ses_curriculum_unigram_loss(ses_curriculum *c, size_t way, int64_t tokens, double *loss, ses_err *e);

#endif
