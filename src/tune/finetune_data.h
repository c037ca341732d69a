/* Labeled files of fine-tuning: task, columns and labels by ses_data_options. Functions keep nothing;
 * strings of a spec are borrowed from the options. */
#ifndef SES_TUNE_FINETUNE_DATA_H
#define SES_TUNE_FINETUNE_DATA_H

#include "data/row_overlap.h"
#include "finetuner.h"
#include "io/table_columns.h"
#include "sesame/finetune.h"

/* The spec of o->task (NULL: classify) with o's settings over it. *b: the benchmark, NULL if the task is
 * none. */
bool ses_data_options_spec(const ses_data_options *o, ses_data_spec *spec, const ses_benchmark **b,
                           ses_err *e);
/* Fills unnamed columns: by common names, without a header by number, or by their values; then *f has them
 * and a notice, else it is empty. *f must outlive the spec. */
bool ses_data_find_columns(ses_data_spec *s, const char *path, ses_found_columns *f, ses_err *e);
/* ses_examples_open, with unnamed columns found as above. */
ses_examples *ses_data_open(const ses_data_spec *spec, const char *path, const ses_examples *like,
                            ses_err *e);

/* Task and training spec of the options; metrics are checked. */
bool ses_finetune_resolve_task(const ses_data_options *d, const ses_finetune_task_options *o,
                               const ses_finetune_task **task, ses_data_spec *spec, ses_err *e);
/* The spec of evaluation files: the training spec, except for embed (scores or triplets). */
ses_data_spec ses_finetune_eval_spec(const ses_finetune_task_options *o, const ses_finetune_task *k,
                                     const ses_data_spec *spec);
/* Settings with the task's and the spec's defaults filled in. */
ses_finetuner_options ses_finetuner_options_from(const ses_finetune_task_options *o,
                                                 const ses_finetune_task *k, const ses_data_spec *s);

/* The labels of a config.json, without examples, as a `like`; NULL: it has none. *has_names: not only
 * LABEL_0, LABEL_1, ... */
bool ses_config_labels(const ses_json *config, ses_data_kind kind, ses_examples **out, bool *has_names,
                       ses_err *e);

/* Reads the files of all data sets of a run as its training does: for commands that do other work first.
 * *overlap: of the first set. */
bool ses_finetune_check_data(const ses_finetune_options *o, ses_row_overlap *overlap, ses_err *e);

/* predictor.c: reads a file as an evaluation does, with labels, or as a prediction does. The model is not
 * opened, but a label that it does not have is an error. Free with ses_examples_free. */
ses_examples *ses_predictor_read(const ses_predictor *p, const char *path, bool labels, ses_err *e);

#endif
