/* The output folder of a training run: nothing is replaced without permission, the final files appear all
 * at once. Nothing is kept between calls; one run per folder (the trainer holds its lock). */
#ifndef SES_TRAIN_TRAIN_FOLDER_H
#define SES_TRAIN_TRAIN_FOLDER_H

#include "run_log.h"
#include "sesame/model.h"
#include "sesame/tokenizer.h"
#include "sesame/training.h"

/* Files written during a run. */
#define SES_RUN_LOG "log.jsonl"
#define SES_RUN_TENSORBOARD "runs"
#define SES_RUN_PLAN "pretrain.json"
#define SES_RUN_TIMES "times.jsonl" /* time and energy up to each checkpoint */
/* Folder of finished members of an unfinished run (finetune --method), with its run.json. */
#define SES_RUN_MEMBERS ".sesame-members"
/* Files written at its end: its settings (also in each checkpoint); the runs of a search. */
#define SES_RUN_INFO "run.json"
#define SES_RUN_ERRORS "eval_errors.json" /* the worst errors of the last evaluation */
#define SES_GRID_FILE "grid.json"
#define SES_RUN_TASKS "tasks.json" /* several tasks: their folders */

/* Fails if o->output or o->log exists and o allows neither to resume nor to overwrite. Both may be
 * NULL. */
bool ses_train_folder_check(const ses_training_options *o, ses_err *e);
/* Creates and locks o->output, for commands without a trainer, then checks again: another run may have begun
 * and ended since. Free with ses_dir_lock_free. */
struct ses_dir_lock *ses_train_folder_lock(const ses_training_options *o, ses_err *e);

/* Removes the model, the checkpoints, the finished members and run.json of an earlier run in folder out, so
 * that a run that is stopped before its first checkpoint does not resume the earlier one. Fails if another
 * process has the lock. */
bool ses_train_folder_clear(const char *out, ses_err *e);

/* fill writes all files into a temporary folder; they then replace the files in out, config.json last (a
 * folder without a model: tasks.json). A
 * process killed at any point leaves the old folder, the new one, or one that does not load, never a
 * mixture. */
bool ses_train_folder_write(const char *out, bool (*fill)(void *ctx, const char *dir, ses_err *e), void *ctx,
                            ses_err *e);

/* Copies a file of folder `from` into folder `dir`, if it exists: *exists. */
bool ses_train_folder_copy(const char *from, const char *name, const char *dir, bool *exists, ses_err *e);
/* Copies the tokenizer files of `from`, if it is a folder with tokenizer.json; else writes t as
 * tokenizer.json. */
bool ses_train_folder_tokenizer(const char *from, const ses_tokenizer *t, const char *dir, ses_err *e);

/* run.json, for compare, report and resume. */
typedef struct ses_run_info {
    const char *command;    /* command line; NULL: null */
    const char *options;    /* its options, a JSON object; NULL: null */
    const ses_model *model; /* NULL: `method` */
    const char *method;     /* classifier that was trained instead of a model */
    int64_t parameters;     /* numbers the classifier has learned */
    const char *metric;     /* score that compares runs, without "eval_" */
    bool lower_is_better;
    const ses_run_totals *totals; /* totals up to a checkpoint: its losses are written; NULL: none */
} ses_run_info;
bool ses_run_info_write(const ses_run_info *r, const char *dir, ses_err *e);

/* Checkpoints have the same bytes on every machine. Time and energy differ, so they are lines of
 * OUT/times.jsonl, one per checkpoint. ranks: processes that trained. */
bool ses_run_times_add(const char *out, const ses_train_state *at, const ses_run_totals *t, int ranks,
                       ses_err *e);
bool ses_run_times_remove(const char *out, ses_err *e);
/* Reads the totals up to a checkpoint of folder out: its losses from run.json, time and energy from
 * times.jsonl (of earlier versions: run.json). Missing or invalid ones are 0. */
ses_run_totals ses_run_totals_read(const char *out, const char *checkpoint, const ses_train_state *at);

/* Opens run.json of the newest checkpoint in folder out that has one, else of its members, else of out
 * itself. NULL without an error: there is none. Free with ses_json_free. */
ses_json_doc *ses_run_info_open(const char *out, ses_err *e);

/* Whether a folder has the last file of a model or of several tasks. */
bool ses_train_folder_has_result(const char *dir);
/* The folder of the run has final files, and this checkpoint, its last one, has the same state. */
bool ses_train_folder_is_complete(const char *out, const char *checkpoint, int64_t total_updates);

#endif
