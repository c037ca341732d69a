/* The folder a training command leaves: nothing replaced unasked, all new files at once, the tokenizer with
 * them. */
#ifndef SES_CLI_TRAIN_FOLDER_H
#define SES_CLI_TRAIN_FOLDER_H

#include "cli/command.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"

/* In it, while a run goes on. */
#define SES_RUN_LOG "log.jsonl"
#define SES_RUN_TENSORBOARD "runs"
#define SES_RUN_PLAN "pretrain.json"
/* And afterwards: what it was told; of a search: its runs. */
#define SES_RUN_INFO "run.json"
#define SES_GRID_FILE "grid.json"

/* What a command was told about it. */
typedef struct ses_train_output {
    const char *output, *log; /* log: where not in output; NULL */
    bool resume, overwrite;
} ses_train_output;

bool ses_train_folder_check(const ses_train_output *p, ses_err *e); /* nothing is replaced unasked */

/* fill writes all files into a folder; then they change places with what is in out, config.json last: a
 * process killed anywhere leaves what was there, what is new, or a folder that does not load, never a
 * mixture. */
bool ses_train_folder_write(const char *out, bool (*fill)(void *ctx, const char *dir, ses_err *e), void *ctx,
                            ses_err *e);

/* A file of folder `from` into folder `dir`; *there: it exists. */
bool ses_train_folder_copy(const char *from, const char *name, const char *dir, bool *there, ses_err *e);
/* The files of `from` as they are, where it is a folder; else t as one tokenizer.json. */
bool ses_train_folder_tokenizer(const char *from, const ses_tokenizer *t, const char *dir, ses_err *e);

/* run.json: what a run was told, for those who compare; as a command line and option by option. */
typedef struct ses_run_info {
    const ses_command *command;
    const void *args;
    const ses_model *model;
    const char *metric;   /* what it is judged by, without "eval_" */
    bool lower_is_better; /* of it is better */
} ses_run_info;
bool ses_run_info_write(const ses_run_info *r, const char *dir, ses_err *e);

#endif
