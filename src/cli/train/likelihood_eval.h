/* Evaluation of language models by task files: options, and the choice between them and other evaluations.
 * Strings are borrowed from argv. */
#ifndef SES_CLI_LIKELIHOOD_EVAL_H
#define SES_CLI_LIKELIHOOD_EVAL_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "tune/finetune_options.h"

typedef struct ses_likelihood_args {
    int64_t shots, limit, batch_tokens; /* shots -1, others 0: not given */
    const char *fewshot, *log;
} ses_likelihood_args;
extern const ses_opt_table ses_likelihood_option_table;

typedef struct ses_likelihood_call {
    ses_call *call;
    const char *dir, *file; /* file may be NULL */
    const char *task;
    const ses_opt_list *adapters; /* folders */
    const ses_compute_args *compute;
    const ses_likelihood_args *args;
    const ses_bootstrap_args *bootstrap;
} ses_likelihood_call;

/* The task file that --task means: a .json file, or a bundled one; free it with ses_free. A name that also is
 * a task of fine-tuned models means a task file only with --shots. *path NULL: it means something else. */
bool ses_likelihood_task_path(const char *task, const ses_likelihood_args *a, char **path, ses_err *e);

/* Fails if an option of task files is given. Call it for evaluations without one. */
bool ses_likelihood_args_check_unused(const ses_likelihood_args *a, ses_err *e);

/* Evaluates and prints the result. task: the path of the task file. */
bool ses_eval_likelihood(const ses_likelihood_call *d, ses_err *e);

#endif
