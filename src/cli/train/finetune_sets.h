/* The data sets of a fine-tuning command after the first: --train and its options, repeated. */
#ifndef SES_CLI_FINETUNE_SETS_H
#define SES_CLI_FINETUNE_SETS_H

#include "command_text.h"
#include "finetune_command.h"

typedef struct ses_finetune_sets {
    ses_further_sets sets;
    ses_command_text *text; /* [sets.n] run.json of each data set: options of a single run */
} ses_finetune_sets;

/* Sets o->also, which borrows from s until ses_finetune_sets_free. */
bool ses_finetune_sets_open(ses_finetune_sets *s, const ses_finetune_args *a, ses_finetune_options *o,
                            ses_err *e);
void ses_finetune_sets_free(ses_finetune_sets *s); /* also after a failed open; zeroes it */

#endif
