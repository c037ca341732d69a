/* Options of what scores texts by a language model: prefer, perplexity, minimal pairs. */
#ifndef SES_TASK_SCORING_ARGS_H
#define SES_TASK_SCORING_ARGS_H

#include "base/opt_table.h"
#include "sesame/scorer.h"

typedef struct ses_scoring_args {
    int mask; /* ses_scoring_mask */
    double temperature;
} ses_scoring_args;

typedef enum { SES_SCORING_TOKEN, SES_SCORING_WORD } ses_scoring_mask;

extern const ses_opt_table ses_scoring_option_table; /* offsets relative to ses_scoring_args */

/* Sets them in the options of a scorer. */
void ses_scoring_args_apply(const ses_scoring_args *a, ses_scorer_options *o);
/* The first option with another value than its default, without its dashes; NULL: none. */
const char *ses_scoring_args_used(const ses_scoring_args *a);

#endif
