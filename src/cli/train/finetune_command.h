/* The finetune command's inside, shared by cmd_finetune.c (options), finetune_run.c (the run),
 * finetune_check.c (what it needs), finetune_files.c (what it leaves), finetune_search.c (many of them). */
#ifndef SES_CLI_FINETUNE_H
#define SES_CLI_FINETUNE_H

#include "eval_report.h"
#include "finetune_data.h"
#include "sesame/trainer.h"
#include "teacher_options.h"
#include "train/run_log.h"
#include "train/teacher.h"
#include "train/train_folder.h"
#include "train/training_events.h"
#include "train_monitor.h"
#include "train_options.h"
#include "transfer_options.h"

extern const ses_command ses_command_finetune;

typedef struct ses_finetune_args {
    ses_finetune_data_args tune;
    const char *model, *config, *tokenizer, *train, *eval, *output, *metric, *log, *board;
    int64_t steps, batch, tokens, bucket, accumulate, eval_every, patience, save_every, keep, seed;
    double epochs, eval_epochs, lr, warmup, decay, clip, smoothing;
    ses_transfer_args transfer;
    ses_teacher_options teacher;
    int optimizer, schedule;
    bool recompute, resume, overwrite;
    ses_opt_list grid;
    int64_t seeds;
    ses_energy_args energy;
    ses_bootstrap_args judge;
} ses_finetune_args;

typedef struct ses_finetune {
    const ses_finetune_args *a;
    const ses_finetune_task *kind;
    const ses_term *talk;
    bool quiet, lower;
    ses_device *dev;
    ses_json_doc *base; /* the config to begin with */
    ses_examples *train_rows, *eval_rows;
    ses_examples *had; /* labels of the model to begin with, or NULL */
    bool told, same;   /* they have names; they are those of the data, which keep their order */
    ses_data_spec spec;
    ses_finetuner *tuner;
    ses_finetune_set train, eval;
    ses_batches *batches;
    ses_layer_groups layers;
    ses_lora lora;
    ses_teacher teacher;
    ses_trainer *trainer;
    char *settings;
    ses_train_monitor monitor;
    ses_run_log run_log;
    char *log, *board;      /* where they are written */
    char *metrics;          /* the tuner's, where --metric asks for more than the usual */
    ses_eval_report judged; /* the last evaluation */
    double eval_seconds;
} ses_finetune;

void ses_finetune_free(ses_finetune *f);

/* finetune_check.c */
bool ses_finetune_labels(ses_finetune *f, ses_err *e); /* the model's order, where it has the same */
bool ses_finetune_metric(ses_finetune *f, ses_err *e); /* there is such a score */
void ses_finetune_tell_head(const ses_finetune *f);

bool ses_finetune_command(ses_call *c, ses_err *e);
bool ses_finetune_search(ses_call *c, ses_err *e); /* --grid, --seeds */
/* One run. part: of a search, which has no summary of its own. stopped: by a signal, and saved. */
bool ses_finetune_one(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e);
const char *ses_finetune_metric_name(const ses_finetune *f); /* that chooses the best */
bool ses_finetune_config(ses_finetune *f, ses_err *e); /* f->base: of --model, of --config, or a size's */
bool ses_finetune_write(ses_finetune *f, ses_err *e);
void ses_finetune_summary(const ses_finetune *f, const ses_call *c, ses_run_end end);
/* finetune_card.c: README.md; and how the model is used: "text-classification --model DIR ..." */
bool ses_finetune_card(const ses_finetune *f, const char *dir, ses_err *e);
const char *ses_finetune_usage(char *buf, size_t size, const ses_head *head, const char *dir);
bool ses_finetune_print(const ses_finetune *f, ses_err *e); /* all results as a line of JSON */

#endif
