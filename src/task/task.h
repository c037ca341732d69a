/* A task: the description a pipeline is driven by. Each task is one file task_NAME.c and one line in
 * tasks.def.
 *
 * The path of an item: `encode` turns it into token sequences (windows of a long text, one pair for each
 * label). The runner packs sequences of many items into batches and runs the model. `collect` copies what
 * it needs of each sequence's outputs. `finish` makes the result when all sequences of the item have been
 * collected.
 *
 * Tasks are constant tables; any thread may read them. */
#ifndef SES_TASK_TASK_H
#define SES_TASK_TASK_H

#include "base/opt_table.h"
#include "model/model_desc.h"
#include "run/seq.h"
#include "sesame/pipeline.h"

typedef struct ses_task ses_task;
typedef struct ses_request ses_request; /* an item in the queue: see pipeline_impl.h */

/* How a folder does a task: by its model, or in another way. */
typedef enum {
    SES_WAY_MODEL,
    SES_WAY_CLASSIFIER, /* a classifier that reads texts: no model, no tokenizer */
    SES_WAY_PATTERNS,   /* a masked LM that completes patterns (SES_PATTERN_FILE) */
    SES_WAY_GPT, /* a decoder with the inputs of GPT-1: in training; pipelines read them from config.json */
    SES_WAYS
} ses_way;

/* ---- format of a result ---- */

typedef enum {
    SES_FIELD_LABEL,
    SES_FIELD_WORD,
    SES_FIELD_TEXT,
    SES_FIELD_SCORE,
    SES_FIELD_TOKEN,
    SES_FIELD_INDEX,
    SES_FIELD_START, /* in code points */
    SES_FIELD_END,
    SES_FIELD_LAYERS,
    SES_FIELD_ITEM /* the item's text; with SES_FORM_COLUMNS, once */
} ses_result_field_kind;

typedef struct ses_result_field {
    const char *key;
    ses_result_field_kind kind;
} ses_result_field;

/* As JSON. */
typedef enum {
    SES_FORM_ROWS,    /* [{...}, ...]; several groups: [[{...}, ...], ...] */
    SES_FORM_ONE,     /* {...}, the first row; null if there is none */
    SES_FORM_COLUMNS, /* {"key": [...], ...}: a list for each field */
    SES_FORM_LIST,    /* [...]: the only field of each row */
    SES_FORM_MATRIX,  /* [[...], ...]: the vectors */
    SES_FORM_VECTOR   /* [...]: the first vector */
} ses_result_form;

/* On a terminal. */
typedef enum {
    SES_VIEW_BARS,    /* names with their scores */
    SES_VIEW_SPANS,   /* the text with its spans marked */
    SES_VIEW_ANSWER,  /* a span in its context */
    SES_VIEW_VECTORS, /* shape and first numbers */
    SES_VIEW_NUMBERS, /* all numbers of each vector, separated by tabs */
    SES_VIEW_COMMAS,  /* the same, separated by commas, a word quoted as in CSV */
    SES_VIEW_ARRAY,   /* the vectors of all results as one NumPy file */
    SES_VIEW_RAW,     /* their numbers alone: f32, little-endian */
    SES_VIEW_JSON,    /* JSON, one line per result */
    SES_VIEW_TEXT     /* the rows' texts */
} ses_result_view;

typedef struct ses_result_schema {
    ses_result_form form;
    ses_result_view view;
    ses_result_field field[8]; /* in output order; ends with a NULL key */
    const char *none;          /* a result may have any number of rows; shown if it has none. NULL: no */
} ses_result_schema;

/* ---- format of an item ---- */

/* JSON keys of an item's fields; alternatives are separated by |. NULL: the task has no such field. */
typedef struct ses_item_schema {
    const char *text, *pair, *list;
    bool requires_pair, requires_list;
    bool list_replaces_text; /* the list holds the words of the text */
    const char *pair_option; /* options that set one of the two texts for all items, "context|question" */
} ses_item_schema;

/* --top-k of tasks that return ranked rows. The field is an int64_t; 0: all. */
#define SES_OPT_TOP_K(struct_, field, def_, help_)                                                 \
    SES_OPT_INT(struct_, field, "top-k", def_, 1, 1 << 24, help_, .letter = 'k', .value = "N|all", \
                .zero_word = "all")

/* ---- the task ---- */

struct ses_task {
    const char *description; /* paragraphs for --help */
    const char *operands;    /* arguments of its command, for --help; NULL: "[TEXT...]" */
    const ses_usage_example *examples;
    const ses_opt *opt;
    size_t n_opt, args_size; /* option table, size of its struct */
    /* values of options that are not given, if the results are shown as text, not as JSON; ends with { 0 } */
    const ses_setting *shown_settings;
    const char *item_settings; /* options that an item may override, "top-k|text-pair"; NULL: none */
    bool (*reads_number)(const void *args); /* results depend on the item's number; NULL: never */
    size_t state_size;                      /* the task's state of a pipeline, zeroed: p->state */
    size_t request_size;                    /* its state of an item, zeroed: r->state */
    const ses_head *const *head; /* heads that serve the task, best first, then NULL; NULL: no head needed */
    ses_item_schema item_schema;
    bool uses_encoder_only;         /* without a head, of an encoder-decoder model: the encoder's states */
    bool uses_tokenizer_max_length; /* the tokenizer's model_max_length limits the sequences, too */
    bool generates;                 /* needs a head that predicts the next token: see ses_class_lm_head */
    bool needs_bidirectional;       /* does not work with a decoder-only model, whatever its head */
    /* The model suits the task, not only its head; NULL: every model with the head. For lists of tasks: a
     * pipeline may be opened on others, too. */
    bool (*suits)(const ses_model *m);
    bool can_stream; /* run_batch passes generated text to the stream callback */

    /* The task in other ways, with the same options, states and item format. NULL: not in this way. */
    const ses_task *ways[SES_WAYS];

    /* Hooks of a pipeline; NULL: nothing to do. */
    bool (*load_model)(ses_pipeline *p, ses_err *e); /* sets p->model; NULL: the folder's model is opened */
    /* after model and tokenizer: checks settings, fills p->state */
    bool (*open)(ses_pipeline *p, ses_err *e);
    void (*close)(ses_pipeline *p); /* frees what load_model and open made */

    /* Hooks of an item, in this order. */
    bool (*encode)(ses_pipeline *p, ses_request *r, ses_err *e);
    bool (*collect)(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e);
    bool (*finish)(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e);

    /* Fields of the first row of a result, or of all (SES_FORM_COLUMNS), that are columns of a table, with
     * these options. NULL, also as an answer: the result is one column of JSON, "result". */
    const ses_result_schema *(*columns)(const void *args);

    /* Computes a batch; NULL: ses_model_forward. */
    bool (*forward)(ses_pipeline *p, const ses_batch *b, const ses_output_request *request, ses_outputs *out,
                    ses_err *e);
    /* Replaces forward and collect: seq[i] belongs to request[i]. Sets has_outputs of each request that is
     * finished: if another one fails, the runner repeats only the rest. NULL: forward, then collect. */
    bool (*run_batch)(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n,
                      ses_err *e);
};

#define SES_TASK(id, name, summary) extern const ses_task ses_task_##id;
#define SES_TASK_ALIAS(alias, name, id, task_name)
#include "tasks.def"
#undef SES_TASK
#undef SES_TASK_ALIAS

/* ---- the list of tasks ---- */

typedef struct ses_task_entry {
    const char *name, *summary; /* summary NULL: an alias */
    const ses_task *task;
} ses_task_entry;

const ses_task_entry *ses_task_entries(void);                         /* ends with a NULL name */
const ses_task_entry *ses_task_find(const char *name);                /* NULL: none */
const ses_task_entry *ses_task_require(const char *name, ses_err *e); /* NULL: an error with "did you mean" */
const char *ses_task_canonical_name(const ses_task *t);

/* Names of the columns of a result in a table, at most 8; returns how many. */
size_t ses_task_column_names(const ses_task *t, const void *args, const char *name[8]);
/* Writes an object with these members. */
bool ses_result_write_columns(const ses_result *r, const ses_task *t, const void *args, ses_json_writer *w,
                              ses_err *e);

/* How many of item_schema.pair_option are set. 2: they give both texts, and items have none. */
int ses_task_count_pair_options(const ses_task *t, const void *args);
/* The option is one of item_settings. */
bool ses_task_allows_item_setting(const ses_task *t, const char *option);
/* The value of the setting is the path of a file: not for requests from outside. */
bool ses_task_setting_is_file(const ses_task *t, const char *name);
/* Sets the task's option --task, if it has one and it is not set, to the name the user called the task by. */
bool ses_task_set_called_name(const ses_task *t, void *args, const char *name, ses_err *e);

bool ses_task_has_head(const ses_task *t, const ses_class *c); /* the class has a head for the task */
/* It has, and the model meets the task's other needs. */
bool ses_task_supports(const ses_task *t, const ses_model_desc *d, const ses_class *c);
/* The task on models of this folder: t, or the way of its patterns. dir NULL: t. */
const ses_task *ses_task_of_folder(const ses_task *t, const char *dir);
/* The same for a loaded model, with the task's `suits`. */
bool ses_task_suits(const ses_task *t, const ses_model *m);
/* Names of the tasks the class supports, "fill-mask, embed". */
void ses_tasks_supported(const ses_model_desc *d, const ses_class *c, char *buf, size_t size);

/* The tokenizer of the texts that a decoder writes, and a workspace for it; NULL: the folder has one
 * tokenizer for both. Fails if it is not of the model. */
bool ses_target_tokenizer_open(const char *dir, const ses_model *m, ses_tokenizer **t,
                               ses_encode_ctx **tokens, ses_err *e);

/* ---- pipelines from parsed options ---- */

/* ses_pipeline_open_with for callers that parse options themselves. args: the task's struct, filled
 * (ses_opt_defaults and more); it must outlive the pipeline. options->settings is ignored. */
ses_pipeline *ses_pipeline_new(const ses_task *task, const char *dir, ses_device *dev, void *args,
                               const ses_pipeline_options *options, ses_err *e);

#endif
