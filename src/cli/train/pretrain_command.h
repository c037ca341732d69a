/* The pretrain command's inside, shared by cmd_pretrain.c (options), pretrain_setup.c (what a run is made
 * of), pretrain_run.c (the run) and pretrain_files.c (what it leaves). */
#ifndef SES_CLI_PRETRAIN_H
#define SES_CLI_PRETRAIN_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "objective_options.h"
#include "teacher_options.h"
#include "train/curriculum.h"
#include "train/run_log.h"
#include "train/teacher.h"
#include "train/train_folder.h"
#include "train/training_events.h"
#include "train_monitor.h"
#include "train_options.h"

extern const ses_command ses_command_pretrain;

typedef struct ses_pretrain_args {
    ses_compute_args shared;
    ses_opt_list corpus, set;
    const char *objective, *config, *preset, *generator, *model, *tokenizer, *output, *eval;
    const char *length, *max_time, *log, *board;
    ses_objective_options o;
    ses_teacher_options teacher;
    int packing, optimizer, schedule;
    int64_t steps, batch, tokens, accumulate, eval_every, eval_tokens, save_every, keep, seed;
    double epochs, exponent, ramp, ramp_from, lr, beta2, warmup, decay, clip, ema;
    bool apart, recompute, resume, overwrite;
    ses_energy_args energy;
} ses_pretrain_args;

typedef struct ses_pretrain {
    const ses_pretrain_args *a;
    const ses_term *talk;
    bool quiet;
    ses_device *dev;
    ses_tokenizer *tokenizer;
    ses_special_tokens *lexicon;
    ses_json_doc *config, *generator_config;
    ses_corpus **corpus; /* those to train on, then one to measure with */
    size_t n_corpora;
    ses_mixture_part *part;
    size_t n_parts, n_eval;
    bool eval_held; /* measured with documents held out of the corpora themselves */
    int32_t *code;
    ses_objective_mix *aim;
    ses_model *model, *generator;
    ses_teacher teacher;
    ses_curriculum *course;
    ses_trainer *trainer;
    char *settings;
    ses_train_monitor monitor;
    ses_run_log run_log;
    char *log, *board;
    ses_scores scores; /* of the last evaluation */
    double eval_loss, budget, deadline;
    double by_frequency
        [SES_MAX_OBJECTIVES]; /* what each objective that lays would lose by frequencies of labels */
    int64_t updates;          /* of the run, where it is known before: fitted to a time, or a resumed one's */
    bool out_of_time;
} ses_pretrain;

/* pretrain_setup.c */
bool ses_pretrain_texts(ses_pretrain *p, ses_err *e);  /* tokenizer, config, corpora, objectives */
bool ses_pretrain_models(ses_pretrain *p, ses_err *e); /* new ones, also where there were some */
/* Of one stage, by its length; 0: of all. */
ses_curriculum *ses_pretrain_course(const ses_pretrain *p, int64_t length, int64_t updates, ses_err *e);
bool ses_pretrain_stages(const ses_pretrain *p, ses_curriculum_options *o, ses_err *e); /* of --length */
bool ses_pretrain_trainer(ses_pretrain *p, ses_err *e);
bool ses_pretrain_optimizer(const ses_pretrain *p, ses_trainer_options *o, ses_err *e);
void ses_pretrain_free(ses_pretrain *p);

/* pretrain_run.c */
bool ses_pretrain_command(ses_call *c, ses_err *e);
const char *ses_pretrain_way(const ses_pretrain *p, size_t way); /* of by_frequency: whose loss */

/* pretrain_files.c */
bool ses_pretrain_write(ses_pretrain *p, ses_err *e);
/* Writes to the run's folder how many updates it has, for ses_pretrain_recall. */
bool ses_pretrain_remember(const ses_pretrain *p, ses_err *e);
bool ses_pretrain_recall(ses_pretrain *p, ses_err *e);
void ses_pretrain_summary(const ses_pretrain *p, const ses_call *c, ses_run_end end);
bool ses_pretrain_print(const ses_pretrain *p, ses_err *e);

#endif
