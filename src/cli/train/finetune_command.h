/* The finetune command: options in cmd_finetune.c, one run in finetune_command.c, searches in
 * finetune_search.c and search_halving.c. */
#ifndef SES_CLI_FINETUNE_COMMAND_H
#define SES_CLI_FINETUNE_COMMAND_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "finetune_stages.h"
#include "rank_args.h"
#include "train_args.h"
#include "tune/finetune_settings.h"

extern const ses_command ses_command_finetune;

typedef struct ses_finetune_args {
    ses_finetune_settings s;
    ses_compute_args compute;
    ses_rank_args ranks;
    ses_opt_list grid;
    int64_t seeds, trials, eta;
    int search;                      /* ses_search_kind */
    struct ses_train_budget *budget; /* not an option: part of a run of a search; NULL: the whole */
    ses_stage_args stages;
    const char *start; /* folder of the last stage, from which the run starts; NULL: --model or --config */
} ses_finetune_args;

bool ses_finetune_command(ses_call *c, ses_err *e);
bool ses_finetune_search(ses_call *c, ses_err *e); /* --grid, --seeds */
/* One run. part: of a search, without a summary of its own. *stopped: by a signal; a checkpoint is saved. */
/* Deletes the checkpoints of a run that has ended well, unless --keep-checkpoints was given: optimizer states
 * need twice the memory of the model. */
void ses_finetune_drop_checkpoints(const ses_finetune_args *a);
bool ses_finetune_one(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e);
/* The same for --method of tune/few_shot: finetune_method.c. */
bool ses_finetune_by_method(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e);
/* The method exists and reads the options of methods that are given. */
bool ses_finetune_check_method(const ses_finetune_args *a, ses_err *e);
/* finetune_unused.c: options that have an effect with others only are given with them. */
bool ses_finetune_check_unused(const ses_finetune_args *a, ses_err *e);
/* The same for --method: finetune_classifier.c. */
bool ses_finetune_classifier(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e);
/* After a run of the task classify: one line on stderr with the score of --method logreg on the words of the
 * same examples, if it takes at most 2 % of the time of the run, or 0.2 s. */
void ses_finetune_show_logreg(const ses_finetune *f, const ses_finetune_args *a);
/* Whether --method reads the options that are given: checked by the run, too. */
bool ses_finetune_check_classifier(const ses_finetune_args *a, ses_err *e);
/* Prints the results of a run as a JSON object. */
bool ses_finetune_print_json(const ses_finetune *f, const char *output, ses_err *e);

#endif
