/* Options of what scores texts by a language model: prefer, perplexity, minimal pairs. */
#ifndef SES_TASK_SCORING_ARGS_H
#define SES_TASK_SCORING_ARGS_H

#include "base/opt_table.h"
#include "sesame/generate.h"

typedef enum { SES_PLL_TOKEN, SES_PLL_WORD } ses_pll;

typedef struct ses_scoring_args {
    int pll; /* ses_pll */
    double temperature;
    bool pll_set, temperature_set;
} ses_scoring_args;

extern const ses_opt_table ses_scoring_option_table; /* offsets relative to ses_scoring_args */

/* A scorer with these options and the other ones in o; see ses_scorer_new. Errors name the option. */
ses_scorer *ses_scoring_args_new_scorer(const ses_scoring_args *a, const ses_model *m, const ses_tokenizer *t,
                                        const char *dir, ses_scorer_options o, ses_err *e);

#endif
