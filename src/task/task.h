/* A task: how items become sequences, what is kept of a model's outputs, how that becomes an answer. One file
 * task_NAME.c and one line in tasks.def.
 *
 * An item's way: encode makes sequences of it (windows of a long text, a pair for each label); the runner
 * packs sequences of many items into batches and runs the model; take keeps of a sequence's outputs what
 * matters; finish makes the answer when all of an item's sequences have been taken. */
#ifndef SES_TASK_TASK_H
#define SES_TASK_TASK_H

#include "base/arena.h"
#include "base/async.h"
#include "base/opt_table.h"
#include "base/str.h"
#include "generate/logit_scores.h"
#include "model/model_desc.h"
#include "sesame/pipeline.h"
#include "text/tokenizer_config.h"

typedef struct ses_task ses_task;

/* ---- what an answer looks like ---- */

typedef enum {
    SES_FIELD_LABEL,
    SES_FIELD_WORD,
    SES_FIELD_TEXT,
    SES_FIELD_SCORE,
    SES_FIELD_TOKEN,
    SES_FIELD_INDEX,
    SES_FIELD_START, /* in code points */
    SES_FIELD_END,
    SES_FIELD_ITEM /* the item's text; of columns, once */
} ses_result_field_kind;

typedef struct ses_result_field {
    const char *key;
    ses_result_field_kind kind;
} ses_result_field;

typedef enum {
    SES_FORM_ROWS,    /* [{...}, ...]; of several groups [[{...}, ...], ...] */
    SES_FORM_ONE,     /* {...}, the first row; null when there is none */
    SES_FORM_COLUMNS, /* {"key": [...], ...}: a list for each field */
    SES_FORM_LIST,    /* [...]: the only field of each row */
    SES_FORM_MATRIX,  /* [[...], ...]: the vectors */
    SES_FORM_VECTOR   /* [...]: the first of them */
} ses_result_form;

/* How a person is shown it. */
typedef enum {
    SES_VIEW_BARS,    /* names with their scores */
    SES_VIEW_SPANS,   /* stretches of the text, marked */
    SES_VIEW_ANSWER,  /* one stretch in its context */
    SES_VIEW_VECTORS, /* sizes and the first numbers */
    SES_VIEW_NUMBERS, /* all numbers of a vector, apart by tabs */
    SES_VIEW_ARRAY,   /* vectors of all answers as one NumPy file */
    SES_VIEW_JSON,    /* as JSON, a line each */
    SES_VIEW_TEXT     /* the rows' texts */
} ses_result_view;

typedef struct ses_result_schema {
    ses_result_form form;
    ses_result_view view;
    ses_result_field field[8]; /* in this order; ends with a NULL key */
} ses_result_schema;

/* ---- an item at work ---- */

typedef struct ses_seq { /* one sequence the model reads; arrays of n */
    size_t n;
    int32_t *id;
    int32_t *type;
    ses_offset *point, *byte;
    int32_t *word;
    int8_t *sequence; /* 0 text, 1 pair, -1 special */
    uint8_t *special;
    int64_t mark;        /* the task's: which label, which window */
    const int32_t *rows; /* places whose vocabulary scores are wanted; NULL: of tasks that want no such */
    size_t n_rows;
} ses_seq;

typedef struct ses_request {
    struct ses_request *next;
    ses_arena mem; /* everything below */
    ses_item item;
    ses_seq *seq;
    size_t n_seqs, cap_seqs, taken;
    ses_err *bad; /* why it cannot be answered; NULL: it can */
    void *state;  /* the task's */
    int64_t tokens, cut;
    ses_result_row *row; /* by ses_request_add_row */
    size_t n_rows, cap_rows;
} ses_request;

/* ---- the task ---- */

/* What an item's parts are called in JSON; other names after a |. NULL: it has no such part. */
typedef struct ses_item_schema {
    const char *text, *pair, *list;
    bool requires_pair, requires_list, list_replaces_text; /* list_is_text: words, which stand for the text */
    const char *pair_option; /* options that give all items one of the two, "context|question"; NULL: none */
} ses_item_schema;

struct ses_task {
    const char *description; /* paragraphs, for help */
    const ses_usage_example *examples;
    const ses_opt *opt;
    size_t n_opt, args_size;     /* the options' table and struct */
    size_t self_size, job_size;  /* what the task keeps: of a pipeline (zeroed), of an item (zeroed) */
    const ses_head *const *head; /* heads that serve it, the best first, then NULL; NULL: the base model */
    ses_item_schema item_schema;
    bool encoder_alone;   /* without a head: of an encoder and decoder the former */
    bool tokenizer_limit; /* model_max_length of the tokenizer holds; else only what the model can take */
    bool writes;          /* a text, a token after the other: see ses_class_lm_head */
    bool looks_ahead;     /* at what stands behind a token: not by a decoder alone, whatever its head */
    bool can_stream;      /* what it writes can be shown as it is written: run tells p->stream */
    /* Slots that may be NULL: the model opened in a way of its own (p->model, and p->borrowed where the task
     * frees it); options against the model; what it has made. */
    bool (*load)(ses_pipeline *p, ses_err *e);
    bool (*open)(ses_pipeline *p, ses_err *e);
    void (*close)(ses_pipeline *p);
    bool (*encode)(ses_pipeline *p, ses_request *j, ses_err *e);
    bool (*take)(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e);
    bool (*finish)(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e);
    /* NULL: ses_model_forward. */
    bool (*pass)(ses_pipeline *p, const ses_batch *b, const ses_output_request *want, ses_outputs *out,
                 ses_err *e);
    /* In place of passes and take: runs and takes these sequences. NULL: a pass, then take for each. */
    bool (*run)(ses_pipeline *p, ses_request *const *job, ses_seq *const *seq, size_t n, ses_err *e);
};

#define SES_TASK(id, name, summary) extern const ses_task ses_task_##id;
#define SES_TASK_ALIAS(alias, id, name)
#include "tasks.def"
#undef SES_TASK
#undef SES_TASK_ALIAS

typedef struct ses_task_entry {
    const char *name, *summary; /* summary NULL: an alias */
    const ses_task *task;
} ses_task_entry;
const ses_task_entry *ses_task_entries(void);                         /* ends with a NULL name */
const ses_task_entry *ses_task_find(const char *name);                /* NULL: none */
const ses_task_entry *ses_task_require(const char *name, ses_err *e); /* with "did you mean" */
bool ses_task_has_pair_option(const ses_task *t, const void *args);   /* by one of parts.pair_option */
/* The name a task was called by goes to its option --task, where it has one and it is not given. */
bool ses_task_set_called_name(const ses_task *t, void *args, const char *name, ses_err *e);
const char *ses_task_canonical_name(const ses_task *t);        /* its own name */
bool ses_task_has_head(const ses_task *t, const ses_class *c); /* a head of this class serves it */
bool ses_task_supports(const ses_task *t, const ses_model_desc *d,
                       const ses_class *c); /* and the model can */
/* "fill-mask, embed": those that fit. */
void ses_tasks_supported(const ses_model_desc *d, const ses_class *c, char *buf, size_t size);

typedef struct ses_seq_group { /* sequences that run together */
    ses_request **job;
    ses_seq **seq;
    size_t n;
    int64_t tokens;
} ses_seq_group;

struct ses_pipeline {
    const ses_task *task;
    ses_device *dev;
    ses_model *model;
    ses_tokenizer *tokenizer;
    ses_tokens *tokens;
    ses_tape *tape;
    ses_tokenizer_config facts;
    const ses_head_use *use; /* of the model's head that serves the task; NULL: the base model */
    char *dir, *base; /* base: the model's folder, where dir is an adapter's and it is named; else NULL */
    void *args, *self;
    bool own_args;
    ses_output_request want; /* a task's open may ask for more than logits */
    bool borrowed;           /* the model is not freed with the pipeline */
    bool lower;              /* texts are put in lower case; set by a task's load */
    bool uncut;              /* texts are read whole or not at all: `limit` has no effect */
    int64_t most;            /* tokens the model can take */
    int64_t limit;           /* tokens it is given at once; at most `most` */
    int64_t budget;
    ses_arena mem, args_mem; /* what lives as long as the pipeline */
    ses_buf remarks;
    ses_result_fn *fn;
    /* Told, in its place, of an item that could not be answered: true goes on with the others. NULL: such an
     * item ends the work. */
    bool (*refuse)(void *ctx, const ses_item *item, ses_err *bad, ses_err *e);
    void *fn_ctx;          /* of both */
    ses_stream_fn *stream; /* told pieces of a text as they are written; NULL: nobody */
    void *stream_ctx;
    bool wants_stream, streamed; /* an option asks for it; the answer in hand was told so */
    int64_t written;             /* tokens */
    int64_t stopped; /* texts that end because the model holds no more tokens, not where they were told to */
    /* runner.c */
    ses_request *first, *last; /* not yet answered, in order */
    ses_request *spare;        /* to be used again */
    ses_request *next_job;     /* whose sequence next_seq runs next; NULL: none waits */
    size_t next_seq;
    int64_t waiting;                /* tokens of sequences that have not run */
    int64_t items, sequences, read; /* answered; run; tokens run */
    ses_arena batch_mem;
    ses_seq_group batch; /* in hand */
    bool flies;          /* it is computed meanwhile: `out`, `tape` and batch_mem are not ours */
    ses_async *aside;    /* by this thread of a host's; NULL: not yet needed */
    ses_outputs out;     /* of it */
    const int32_t *cu;
    int64_t at_seq, at_row;   /* of the sequence being taken: its number in the batch, its first asked row */
    const ses_tensor *raw_of; /* the output of this batch that ses_request_output_rows read first, */
    ses_real *raw;            /* all of it; behind it rows of another, */
    float *rows;              /* and a sequence's rows */
    size_t raw_room, rows_room;
    ses_request *kept; /* of ses_pipeline_run: what its result stands on */
    ses_result result;
};

/* With the options' struct filled by the caller (ses_opt_defaults and on), which outlives the pipeline.
 * base: of a folder with an adapter, the model's, or NULL. */
ses_pipeline *ses_pipeline_new(const ses_task *task, const char *dir, const char *base, ses_device *dev,
                               void *args, ses_err *e);

void ses_runner_free(ses_pipeline *p);
bool ses_request_copy_item(ses_request *j, const ses_item *item, ses_err *e); /* the item, copied, as UTF-8 */

/* ---- for tasks ---- */

/* Something the user should know about the settings: see ses_pipeline_warnings. */
bool ses_pipeline_warn(ses_pipeline *p, ses_err *e, const char *fmt, ...) SES_PRINTF(3, 4);

/* Copies an encoding as the job's next sequence; NULL: no memory. */
ses_seq *ses_request_add_sequence(ses_pipeline *p, ses_request *j, const ses_encoding *from, ses_err *e);

/* Encode, cut to the model's limit where too long: what was cut is counted in j->cut. */
ses_seq *ses_request_encode(ses_pipeline *p, ses_request *j, const ses_input *in, ses_truncation how,
                            ses_err *e);

/* Encode in windows that share `stride` tokens, nothing is cut. */
bool ses_request_encode_windows(ses_pipeline *p, ses_request *j, const ses_input *in, ses_truncation how,
                                int64_t stride, ses_err *e);

ses_result_row *ses_request_add_row(ses_request *j, ses_err *e); /* the next row, zeroed; NULL: no memory */
ses_string ses_request_copy_string(ses_request *j, const char *s, size_t n,
                                   ses_err *e); /* p NULL: no memory */

/* Of the sequence being taken: its rows of an output, on the host until the next call. */
typedef struct ses_output_rows {
    const float *x; /* [n, cols]; NULL: the error is told */
    int64_t n, cols;
} ses_output_rows;
ses_output_rows ses_request_output_rows(ses_pipeline *p, const ses_seq *q, const char *output, ses_err *e);

/* Ids to text, as the reference's tokenizer decodes; on the job. */
ses_string ses_request_decode(ses_pipeline *p, ses_request *j, const int32_t *id, size_t n, bool keep_special,
                              ses_err *e);

ses_string ses_request_lowercase(ses_request *j, ses_string s,
                                 ses_err *e); /* in lower case; p NULL: no memory */

/* The label's name, or "LABEL_n". */
ses_string ses_request_label(ses_pipeline *p, ses_request *j, int64_t i, ses_err *e);

/* Lists given by commas and by repeating: all parts, on the pipeline; trimmed of blanks if asked. */
bool ses_pipeline_split_list(ses_pipeline *p, const ses_opt_list *l, bool trim, ses_string **out, size_t *n,
                             ses_err *e);

#endif
