/* A task file: how documents become requests, and which scores are computed (docs/EVALUATION.md). Fields have
 * the names of the lm-evaluation-harness.
 *
 * Ownership: the caller frees a task. Threads: read-only after opening. */
#ifndef SES_TUNE_EVAL_TASK_H
#define SES_TUNE_EVAL_TASK_H

#include "eval_docs.h"
#include "eval_template.h"

/* Output types, as bits. */
typedef enum {
    SES_EVAL_CHOICE = 1,       /* multiple_choice */
    SES_EVAL_CONTINUATION = 2, /* loglikelihood */
    SES_EVAL_ROLLING = 4,      /* loglikelihood_rolling */
    SES_EVAL_GENERATION = 8    /* generate_until */
} ses_eval_output;

typedef enum {
#define SES_EVAL_METRIC(name, outputs, lower) SES_EVAL_METRIC_##name,
#include "eval_metrics.def"
#undef SES_EVAL_METRIC
    SES_EVAL_METRICS
} ses_eval_metric;
extern const char *const ses_eval_metric_name[SES_EVAL_METRICS];

typedef enum { SES_SAMPLER_DEFAULT, SES_SAMPLER_FIRST_N } ses_eval_sampler;

/* Replacement of a column's values. */
typedef struct ses_value_map {
    ses_string column;
    const ses_json *values; /* object of strings */
} ses_value_map;

typedef struct ses_eval_task {
    ses_json_doc *json;
    ses_arena mem;
    const char *name;
    ses_eval_output output;
    const char *test_split, *validation_split, *training_split, *fewshot_split; /* files; NULL: none */
    ses_docs_options data;
    ses_value_map *map;
    size_t n_maps;

    ses_eval_template description, text, target;
    ses_eval_template count; /* rolling: text whose words and bytes count */
    int64_t target_index;    /* the right choice of every document; -1: by the target template */
    ses_eval_template *choice;
    const char **label; /* [n_choices] values of the target; NULL: the choices are a list */
    size_t n_choices;
    ses_string choice_column; /* the choices are a list in this column of JSON lines; n 0: they are not */
    ses_string target_delimiter, fewshot_delimiter;

    int64_t num_fewshot;
    int sampler;             /* ses_eval_sampler */
    const ses_json *samples; /* examples in the task file: an array of objects; NULL: none */

    bool metric[SES_EVAL_METRICS];
    bool ignore_case, ignore_punctuation, ignore_numbers; /* options of exact_match */
    bool remove_whitespace, lowercase;                    /* filter_list, applied to generated texts */
    const char **until;                                   /* [n_until] */
    size_t n_until;
    int64_t max_gen_toks;
} ses_eval_task;

/* Errors begin with the path. */
ses_eval_task *ses_eval_task_open(const char *path, ses_err *e);
/* The same from a document, which the task owns, also on failure. */
ses_eval_task *ses_eval_task_new(ses_json_doc *json, ses_err *e);
void ses_eval_task_free(ses_eval_task *t); /* t may be NULL */
/* The name that the file uses for a field: "template" or "doc_to_text". key: the harness's name. */
const char *ses_eval_task_field(const ses_eval_task *t, const char *key);

/* The file of a bundled task, NAME.json in the folder `tasks` beside a folder of models (see
 * ses_model_resolve); free it with ses_free. NULL without an error: there is none. */
char *ses_eval_task_find(const char *name, ses_err *e);
/* Names of the bundled tasks, sorted, ", " between; free it with ses_free. */
char *ses_eval_task_list(ses_err *e);

#endif
