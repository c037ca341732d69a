/* Stages of a fine-tuning command before its run: more pretraining on unlabeled text (--adapt), and an
 * intermediate task (--first). Each writes a folder in OUT, from which the next one starts. Strings are
 * borrowed from argv. */
#ifndef SES_CLI_FINETUNE_STAGES_H
#define SES_CLI_FINETUNE_STAGES_H

#include "base/opt_table.h"

struct ses_call;
struct ses_finetune_args;

typedef struct ses_stage_args {
    const char *adapt; /* unlabeled text; NULL: no such stage */
    int64_t adapt_steps;
    const char *first, *first_task, *first_eval; /* first: training data; NULL: no such stage */
    ses_opt_list adapt_set, first_set;           /* NAME=VALUE: options of the stage */
} ses_stage_args;

extern const ses_opt_table ses_stage_option_table; /* for a ses_stage_args */

/* Whether one of the options is given. */
static inline bool ses_stage_args_given(const ses_stage_args *s)
{
    return s->adapt || s->adapt_steps || s->adapt_set.n || s->first || s->first_task || s->first_eval ||
           s->first_set.n;
}

/* Runs the stages that OUT does not have yet, then the run, which starts from the last stage's model. */
bool ses_finetune_stages(struct ses_call *c, const struct ses_finetune_args *a, ses_err *e);

#endif
