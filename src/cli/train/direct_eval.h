/* Tasks of `eval` that need no fine-tuning run: minimal pairs, LAMA, CheckList. Each prints its result. */
#ifndef SES_CLI_DIRECT_EVAL_H
#define SES_CLI_DIRECT_EVAL_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "task/scoring_args.h"

/* Options of LAMA. */
typedef struct ses_lama_args {
    const char *candidates, *template_text, *relations;
} ses_lama_args;
extern const ses_opt_table ses_lama_option_table;

typedef struct ses_direct_eval_call {
    ses_call *call;
    const char *dir;   /* folder of the model */
    char *const *file; /* [n_files] */
    int n_files;
    const ses_compute_args *compute;
    const ses_lama_args *lama;
    const ses_scoring_args *scoring; /* minimal pairs */
} ses_direct_eval_call;

typedef struct ses_direct_eval {
    const char *name;
    bool several_files, scores_texts; /* scores_texts: by ses_scoring_args */
    bool (*run)(const ses_direct_eval_call *d, ses_err *e);
} ses_direct_eval;

bool ses_eval_minimal_pairs(const ses_direct_eval_call *d, ses_err *e);
bool ses_eval_lama(const ses_direct_eval_call *d, ses_err *e);
bool ses_eval_checklist(const ses_direct_eval_call *d, ses_err *e);

const ses_direct_eval *ses_direct_eval_find(const char *task); /* NULL: none; task may be NULL */

#endif
