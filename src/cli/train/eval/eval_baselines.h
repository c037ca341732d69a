/* `eval --baselines --train FILE`: classifiers that are trained on FILE and scored on the evaluation file, to
 * compare the model with: the majority class, and a continuous bag of words (CBoW). Main thread. */
#ifndef SES_CLI_EVAL_BASELINES_H
#define SES_CLI_EVAL_BASELINES_H

#include "cli/train/predictor_args.h"

typedef struct ses_baseline_args {
    bool baselines;
    const char *train, *vectors;
} ses_baseline_args;
extern const ses_opt_table ses_baseline_option_table;

enum { SES_BASELINES = 2 };
typedef struct ses_baselines {
    const char *name[SES_BASELINES];
    ses_finetune *run[SES_BASELINES]; /* with a report; NULL: --baselines was not given */
    ses_device *dev;
} ses_baselines;

/* direct: the task, if it needs no fine-tuning run; or NULL. */
bool ses_baseline_args_check(const ses_baseline_args *a, const char *direct, ses_err *e);
/* Trains and evaluates the baselines, if a asks for them. */
bool ses_baselines_run(ses_baselines *b, const ses_baseline_args *a, const ses_predictor_args *p,
                       const char *file, const ses_call *c, ses_err *e);
void ses_baselines_free(ses_baselines *b); /* a zeroed struct is fine */

/* Prints the scores of the model's report and of the baselines. */
bool ses_baselines_show(const ses_baselines *b, const ses_eval_report *model, const ses_term *t, ses_err *e);
/* Adds the member "baselines" to the JSON object being written. */
void ses_baselines_put(const ses_baselines *b, ses_json_writer *w);

#endif
