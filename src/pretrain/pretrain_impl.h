/* The pretraining run's struct, shared by pretrain.c (options, construction, the run), pretrain_setup.c
 * (texts, models, curriculum, trainer), pretrain_generator.c (the generator of rtd) and pretrain_files.c
 * (output folder). The device and the options' strings are borrowed, everything else is owned. One thread. */
#ifndef SES_PRETRAIN_PRETRAIN_IMPL_H
#define SES_PRETRAIN_PRETRAIN_IMPL_H

#include "sesame/pretrain.h"
#include "train/curriculum.h"
#include "train/run_log.h"
#include "train/teacher.h"
#include "train/train_folder.h"
#include "train/training_events.h"

struct ses_pretrain {
    ses_pretrain_options o;
    ses_device *dev;
    char *model_dir, *teacher_dir; /* resolved names; NULL: none */
    ses_tokenizer *tokenizer;
    ses_special_tokens *special_tokens;
    ses_json_doc *config, *generator_config;
    ses_corpus **corpus; /* [n_corpora] training corpora, then the evaluation corpus */
    size_t n_corpora;
    ses_mixture_part *part; /* [n_parts] training corpora, then [n_eval] evaluation corpora */
    size_t n_parts, n_eval;
    bool eval_held_out;    /* evaluate on held-out documents of the training corpora */
    int32_t *control_code; /* [n_parts] */
    ses_objective_mix *objectives;
    ses_model *model, *generator;
    ses_teacher teacher;
    ses_curriculum *curriculum;
    ses_trainer *trainer;
    char *settings; /* JSON, compared on resume */
    ses_training_resumed resumed;
    ses_run_log run_log;
    char *log, *tensorboard; /* paths; NULL: none */
    ses_scores scores;       /* last evaluation */
    double eval_loss;
    double deadline; /* end of the time budget, in ses_seconds; 0: none */
    double unigram_loss[SES_MAX_OBJECTIVES];
    int64_t n_shortened_words; /* words of the vocabulary that a model of characters does not read whole */
    int64_t updates;  /* length of the run if known before: from the time budget or the resumed run; 0: not */
    bool was_started; /* ses_pretrain_run was called */
    bool out_of_time, cancelled;
    ses_pretrain_result result;
};

/* ---- pretrain_setup.c ---- */

bool ses_pretrain_open_texts(ses_pretrain *p, ses_err *e); /* tokenizer, config, corpora, objectives */
/* Opens model, generator and teacher, replacing earlier ones. */
bool ses_pretrain_open_models(ses_pretrain *p, ses_err *e);
/* Parses o.lengths into the stages of c. */
bool ses_pretrain_parse_lengths(const ses_pretrain *p, ses_curriculum_options *c, ses_err *e);
/* The curriculum of one stage, by its length; 0: of all stages. */
ses_curriculum *ses_pretrain_open_curriculum(const ses_pretrain *p, int64_t length, int64_t updates,
                                             ses_err *e);
/* Sets optimizer and schedule. */
bool ses_pretrain_set_optimizer(const ses_pretrain *p, ses_trainer_options *o, ses_err *e);
bool ses_pretrain_open_trainer(ses_pretrain *p, ses_err *e); /* and the curriculum */

/* ---- pretrain_generator.c ---- */

/* Opens the generator if an objective needs one. */
bool ses_pretrain_open_generator(ses_pretrain *p, ses_err *e);
ses_model *ses_pretrain_trained_generator(const ses_pretrain *p); /* NULL: none, or frozen */

/* ---- pretrain_files.c ---- */

/* The number of updates, stored in the output folder so that a run with a time budget can be resumed. */
bool ses_pretrain_save_plan(const ses_pretrain *p, ses_err *e);
bool ses_pretrain_load_plan(ses_pretrain *p, ses_err *e);
bool ses_pretrain_write(ses_pretrain *p, ses_err *e); /* the final model and its files */
/* run.json of a checkpoint; dir NULL: a rank that writes nothing. */
bool ses_pretrain_add_run_info(void *pretrain, const char *dir, ses_err *e);

/* Name of the token loss of a primary objective: the generator's, if it has one. */
const char *ses_pretrain_loss_name(const ses_pretrain *p, size_t primary);

#endif
