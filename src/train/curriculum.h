/* The course of a pretraining run: which passages make batch number i, how long they are, how many, and for
 * which objective. A source for the trainer; and evaluations.
 *
 * A run goes through stages of growing length, each over the texts again and again. What the trainer calls an
 * epoch is a leg: one pass over the texts, or what is left of its stage. */
#ifndef SES_TRAIN_COURSE_H
#define SES_TRAIN_COURSE_H

#include "objective.h"

enum { SES_STAGES = 8 };

typedef struct ses_stage_of_run {
    int64_t length; /* most tokens of a sequence, special ones included */
    double share;   /* of the run's updates */
} ses_stage_of_run;

typedef struct ses_course_options {
    ses_aim *aim;
    ses_passages_options passages; /* its length is the stages' */
    ses_stage_of_run stage[SES_STAGES];
    size_t stages;
    int64_t rows, tokens; /* a batch: so many passages, or what fits into so many tokens; one of them is 0 */
    double ramp;          /* share of the run in which a batch grows to its size, */
    double ramp_from;     /* from this share of it */
    int64_t accumulate;   /* batches an update */
    int64_t updates;      /* of the run; 0: `epochs` of the first stage's texts */
    double epochs;
    const ses_part_of_mixture *eval_part; /* to be measured with */
    size_t eval_parts;
    bool eval_held_out; /* their documents held out; else all others */
} ses_course_options;

typedef struct ses_course ses_course;
ses_course *ses_course_new(const ses_course_options *o, ses_err *e); /* what options point to is borrowed */
void ses_course_free(ses_course *c);
int64_t ses_course_updates(const ses_course *c);
int64_t ses_course_pass_tokens(const ses_course *c); /* of one pass over the texts in the first stage */
ses_source ses_course_source(ses_course *c);

/* Means over about so many tokens of what is to be measured with, for each objective in turn; at the usual
 * mask rate, whatever the run's is. go_on: false breaks it off. */
bool ses_course_evaluate(ses_course *c, int64_t tokens, bool (*go_on)(void *ctx), void *ctx, ses_tally *out,
                         ses_err *e);

/* What the frequencies of labels alone would lose there: where a run of objective number `way` begins to
 * learn. NaN: it has no labels of tokens, or there is nothing to measure with. */
bool ses_course_by_frequency(ses_course *c, size_t way, int64_t tokens, double *loss, ses_err *e);

#endif
