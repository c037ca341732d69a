/* Inside of ses_finetune and ses_predictor, shared by finetune_run.c (the run), finetune_check.c (labels,
 * metric), finetune_output.c (results), model_card.c (README.md) and predictor.c. One thread at a time. */
#ifndef SES_TUNE_FINETUNE_IMPL_H
#define SES_TUNE_FINETUNE_IMPL_H

#include "cross_view.h"
#include "data/row_overlap.h"
#include "finetune_data.h"
#include "finetuner.h"
#include "sesame/finetune.h"
#include "train/run_log.h"
#include "train/teacher.h"
#include "train/training_events.h"
#include "transfer.h"

typedef struct ses_mixture ses_mixture; /* multi/mixture.h */

struct ses_predictor {
    ses_predictor_options o;
    char *dir;
    char *pattern_file; /* path in the folder; the file need not exist */
    ses_device *dev;    /* borrowed */
    const ses_finetune_task *task;
    ses_finetuner_options settings;
    ses_data_spec spec; /* how files are read */
    ses_json_doc *config;
    ses_examples *own_labels;   /* the model's, without examples; NULL: it has none */
    const ses_examples *labels; /* own_labels, or the training examples of a run */
    bool has_label_names;       /* not only LABEL_0, LABEL_1, ... */
    ses_finetuner *tuner;       /* opened with the first examples */
    bool borrows_tuner;
    int64_t rows_before;    /* a stream: rows predicted before this group */
    bool is_partial;        /* a stream: rows may follow */
    ses_predictor **member; /* [n_members] the other models of an ensemble, owned */
    size_t n_members;
    ses_exit_policy exit;
    bool has_exit; /* texts leave early by it */
};

struct ses_finetune {
    ses_finetune_options o;
    const ses_finetune_task *task;
    ses_data_spec spec; /* how the training data are read, metrics included */
    bool lower_is_better;
    ses_device *dev;              /* borrowed */
    ses_json_doc *config;         /* config.json of the base model */
    struct ses_word_stack *words; /* o.embed, until the tuner takes it */
    ses_examples
        *divided_train;        /* the file that own_eval is a part of (eval 10%); NULL: none, or not owned */
    ses_examples *whole_train; /* the file own_train is a part of (train_size, shots); NULL: none */
    ses_examples *own_train;   /* read from files, or a part; NULL: the caller's examples */
    ses_examples *own_eval;
    ses_examples *train_rows, *eval_rows; /* eval_rows NULL: no evaluation */
    const char *train_name, *eval_name;   /* for messages: the file names */
    ses_row_overlap overlap;              /* evaluation examples that are trained on */
    ses_examples *base_labels;            /* labels of the base model; NULL: none */
    bool base_has_names;                  /* not only LABEL_0, LABEL_1, ... */
    bool keeps_labels;                    /* the data have the base model's labels: their order is kept */
    ses_finetuner *tuner;
    ses_finetune_set train, eval;
    ses_batches *batches;
    ses_batch_source source; /* batches, or in turns with unlabeled ones */
    ses_layer_groups layers;
    ses_transfer_adapter_of adapter;
    ses_teacher teacher;
    ses_cross_view *cross_view; /* o.unlabeled; NULL: none */
    ses_mixture *mixture;       /* o.also: all data sets, this one is the first; NULL: one data set */
    double *class_weights;      /* [labels of the model]; NULL: equal */
    ses_trainer *trainer;
    char *model_dir;   /* o.model resolved: a folder */
    char *student_dir; /* the teacher's folder, if the student is made of its config; NULL: it is not */
    char *settings;    /* JSON object: what a resumed run must have in common */
    ses_training_resumed resumed;
    ses_run_log log;
    char *log_path, *tensorboard_dir;
    char *metrics; /* metrics of the tuner, if `metric` needs one more; or NULL */
    ses_eval_report report;
    char *errors; /* eval_errors.json: the worst errors of the last evaluation; NULL: none */
    double eval_seconds, predict_seconds; /* last evaluation: in all, its predictions */
    ses_model *without_empty;             /* pruning: the model to write; NULL: the trained one */
    ses_pruning_report pruned;            /* parameters 0: none */
    bool was_started;                     /* ses_finetune_run was called */
    bool is_stopped;                      /* the callback has returned false */
    bool reads_last_token;                /* the head was replaced by ses_left_to_right_config */
    ses_predictor predictor;
};

/* finetune_run.c */
/* Calls the callback of the options and keeps its answer in is_stopped. A ses_training_fn. */
bool ses_finetune_on_event(void *finetune, const ses_training_event *ev);
/* config.json of the base model */
const ses_json *ses_finetune_base_config(const ses_finetune *f);

/* Evaluates the model. last: the run is finished, confidence intervals are computed if requested. */
bool ses_finetune_evaluate(ses_finetune *f, bool last, ses_err *e);
/* The same without the other data sets of a mixture. */
bool ses_finetune_evaluate_part(ses_finetune *f, bool last, ses_err *e);
/* A data set of a mixture: a run without a trainer. */
ses_finetune *ses_finetune_new_part(const ses_finetune_options *o, ses_device *d, ses_err *e);

/* finetune_data.c */
/* Sets the task of the data; default: by its columns. */
bool ses_finetune_find_task(ses_finetune *f, ses_err *e);
/* Reads the training and evaluation examples; labels of both agree. The former may be a random part. */
bool ses_finetune_prepare_data(ses_finetune *f, ses_err *e);
/* A notice about evaluation examples that are trained on. */
void ses_finetune_report_overlap(const ses_finetune *f, ses_training_fn *on_event, void *ctx);

/* finetune_agree.c */
/* Settings a resumed run must have in common with the run it continues, as a JSON object. Free with
 * ses_free. */
char *ses_finetune_settings_json(const ses_finetune *f, ses_err *e);
/* All ranks have read the same data and models. */
bool ses_finetune_agree(ses_finetune *f, ses_err *e);

/* tagger_setup.c */
void ses_tagger_defaults(ses_finetune_options *o);
/* Opens o.embed: sets f->words and f->config. */
bool ses_tagger_open(ses_finetune *f, ses_err *e);
/* Sets the size of the tuner's vocabulary in f->config, which may be the unknown word alone, and o.set. */
bool ses_tagger_fit(ses_finetune *f, ses_err *e);
/* The tuner of a new tagger, with a vocabulary of the training data. */
ses_finetuner *ses_tagger_tuner(ses_finetune *f, const ses_finetuner_options *t, ses_err *e);

/* finetune_check.c */
/* One model, config or student; qat is possible. */
bool ses_finetune_check_start(const ses_finetune_options *o, ses_err *e);
/* A student with sizes of its own: sets f->student_dir and, unless there is one, the teacher's tokenizer. */
bool ses_finetune_resolve_student(ses_finetune *f, ses_err *e);
/* Base model's order, if the labels are the same. */
bool ses_finetune_match_labels(ses_finetune *f, ses_err *e);
bool ses_finetune_check_metric(ses_finetune *f, ses_err *e); /* the task has such a score */
void ses_finetune_report_start(ses_finetune *f);             /* notice: sizes of model and data */
void ses_finetune_report_head(ses_finetune *f);              /* notices: new parameters, changed labels */

/* head/left_to_right.c: replaces a head of f->config that reads the first token of a causal model. */
bool ses_left_to_right_config(ses_finetune *f, ses_err *e);

/* finetune_pruning.c */
/* Pruning: makes the model without empty heads and rows, and the report. */
bool ses_finetune_finish_pruning(ses_finetune *f, ses_err *e);
/* Writes the model's files. */
bool ses_finetune_save_model(const ses_finetune *f, const char *dir, ses_err *e);

/* finetune_output.c */
bool ses_finetune_write(ses_finetune *f, ses_err *e); /* the output folder */
/* The model's folder. */
bool ses_finetune_write_folder(ses_finetune *f, const char *dir, ses_err *e);
/* Writes the results of the run into dir: all files but the model's. */
bool ses_finetune_write_run(ses_finetune *f, const char *dir, ses_err *e);
/* run.json of a checkpoint; dir NULL: a rank that writes nothing. */
bool ses_finetune_add_run_info(void *finetune, const char *dir, ses_err *e);
bool ses_finetune_write_errors(const ses_finetune *f, const char *dir, ses_err *e); /* eval_errors.json */
/* Members of the results of training and of evaluation. */
void ses_finetune_put_parts(const ses_finetune *f, bool train, bool eval, ses_json_writer *w);

/* predictor_exit.c: the open model of p can leave early by p->exit; passes then do. */
bool ses_predictor_use_exit(ses_predictor *p, ses_err *e);
/* Counts the layers of the texts of a report. */
bool ses_eval_report_add_layers(ses_eval_report *r, const ses_finetuner *t, const ses_finetune_outputs *o,
                                ses_err *e);
void ses_eval_report_put_layers(const ses_eval_report *r, ses_json_writer *w);

/* exit_training.c: early exit */
/* Checks o.exits and writes "sesame_exits" of f->config; the task is known. */
bool ses_exit_training_config(ses_finetune *f, ses_err *e);
/* The model is open: sets the loss of its exits. */
bool ses_exit_training_begin(ses_finetune *f, ses_err *e);
/* frozen: only exits are trained. */
void ses_exit_training_groups(const ses_finetune *f, ses_optim_options *optim);
/* Members of the settings that a resumed run shares. */
void ses_exit_training_put_settings(const ses_finetune *f, ses_json_writer *w);

/* predictor.c: reads examples without labels, to be freed, and opens the model, which the first prediction
 * does otherwise. NULL: an error. */
ses_examples *ses_predictor_prepare(ses_predictor *p, const char *path, ses_err *e);

/* tune_classifier.c: the texts of examples; both texts of a pair are joined by a blank, on mem. */
bool ses_classifier_texts(const ses_examples *rows, ses_string *text, ses_arena *mem, ses_err *e);

/* model_card.c: README.md of the folder */
bool ses_model_card_write(const ses_finetune *f, const char *dir, ses_err *e);

/* predictor.c: reads a labeled file, opens the model and encodes the examples. Free *rows and *set. */
bool ses_predictor_encode(ses_predictor *p, const char *path, ses_examples **rows, ses_finetune_set *set,
                          ses_err *e);

/* eval_report.c: r is overwritten. b->resamples 0: no intervals. */
bool ses_eval_report_make(ses_eval_report *r, ses_finetuner *t, const ses_finetune_set *s,
                          const ses_finetune_outputs *o, const ses_bootstrap *b, ses_err *e);

/* eval_errors.c: the worst errors, as a JSON object. score: orders generated texts. *json: free it; NULL if
 * the task has no errors to list. */
bool ses_eval_errors_json(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                          const char *score, char **json, ses_err *e);

/* Notices about truncated examples, split passages and dropped tokens. name: of the data, for the text. */
/* Notices about the labels of the training data of f, as events of `to`. */
void ses_finetune_report_labels(const ses_finetune *f, ses_finetune *to);
/* Notices about the rows of both sets, which ses_finetune_report_set includes. */
void ses_finetune_report_rows(ses_finetune *f);
void ses_finetune_report_set(const ses_finetuner *t, const ses_finetune_set *s, const char *name,
                             ses_training_fn *on_event, void *ctx);

#endif
