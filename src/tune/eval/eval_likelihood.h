/* Evaluation of a language model by a task file: likelihoods of choices, continuations and texts, and exact
 * match of greedy output (docs/EVALUATION.md).
 *
 * Ownership: all is borrowed during the call; the result is a value. Threads: one at a time per model. */
#ifndef SES_TUNE_EVAL_LIKELIHOOD_H
#define SES_TUNE_EVAL_LIKELIHOOD_H

#include "eval_prompt.h"
#include "generate/likelihood.h"
#include "sesame/metric.h"

typedef struct ses_eval_likelihood_options {
    ses_prompt_options prompts;
    ses_bootstrap bootstrap;
    ses_likelihood_options likelihood;
    /* Receives a line of JSON for each request, with its line end; NULL: none. */
    bool (*log)(void *ctx, const char *line, size_t n, ses_err *e);
    void *log_ctx;
} ses_eval_likelihood_options;

typedef struct ses_eval_score {
    ses_eval_metric metric;
    double value;
    double error;     /* standard error of a mean over documents; NaN: not a mean */
    double low, high; /* confidence interval; NaN: no bootstrap */
} ses_eval_score;

typedef struct ses_eval_likelihood_result {
    ses_eval_score score[SES_EVAL_METRICS];
    size_t n_scores;
    size_t documents;
    int64_t shots;
    double chance, majority; /* accuracy of guesses, of the most frequent right choice; NaN: no choices */
    int64_t scored_tokens;   /* tokens of the continuations, or generated ones */
    ses_likelihood_stats stats;
} ses_eval_likelihood_result;

bool ses_eval_likelihood_run(const ses_model *m, const ses_tokenizer *t, const char *dir,
                             const ses_eval_task *task, const ses_eval_likelihood_options *o,
                             ses_eval_likelihood_result *r, ses_err *e);

#endif
