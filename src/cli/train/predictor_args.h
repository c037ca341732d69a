/* Options and opening of fine-tuned models, for eval, predict and quantize. Strings are borrowed from
 * argv. */
#ifndef SES_CLI_PREDICTOR_ARGS_H
#define SES_CLI_PREDICTOR_ARGS_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/pipeline/row_writer.h"
#include "tune/finetune_options.h"

typedef struct ses_predictor_args {
    ses_compute_args compute;
    ses_data_options data;
    ses_finetune_task_options task;
    ses_bootstrap_args bootstrap;
    ses_row_args rows;   /* predict */
    bool renames_labels; /* predict: --labels 0=negative are names of predictions, not of labels in a file */
    ses_opt_list adapters; /* folders of adapters */
    const char *model;     /* --model; main moves it to the first operand */
    int submission;        /* predict: a ses_submission_suite; negative: none */
    const char *ensemble;  /* models whose predictions are averaged, ',' between; NULL: one model */
    const char *exit;      /* rule by which texts leave early; NULL: none do */
} ses_predictor_args;

extern const ses_opt_table ses_predictor_option_table; /* data and task, without --task */
extern const ses_opt_table ses_ensemble_option_table;  /* for a ses_predictor_args */
extern const ses_opt_table ses_exit_rule_table;        /* for a ses_predictor_args */

/* Whether --ensemble names all models, so that the only operand is a file (a ses_command.names_models). args:
 * begins with a ses_predictor_args. */
bool ses_predictor_args_name_models(const void *args, int n_operands);
/* The folder of the model that the first operand names; NULL: --ensemble names all. */
const char *ses_predictor_args_dir(const ses_predictor_args *a, const ses_call *c);

/* The task and data options of the run that trained the model, if this call has no --task: an object as
 * ses_command.open_stored returns it, without option `except` (or NULL). Free with ses_json_free. */
ses_json_doc *ses_predictor_args_open_stored(const ses_predictor_args *a, const ses_call *c,
                                             const char *except, ses_err *e);

/* An open model with its device and progress line. */
typedef struct ses_open_predictor {
    ses_device *dev;
    ses_predictor *predictor;
    const ses_call *call;
    ses_progress line;
    char **dir; /* [n_dirs] of the ensemble */
    size_t n_dirs;
} ses_open_predictor;

/* Opens the model in folder dir and the models of --ensemble; dir NULL: only the latter. r is used by
 * callbacks: do not move it. */
bool ses_open_predictor_open(ses_open_predictor *r, const ses_predictor_args *a, const char *dir,
                             const ses_call *c, ses_err *e);
void ses_open_predictor_free(ses_open_predictor *r); /* fine after a failed open */

#endif
