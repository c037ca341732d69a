/* The inside of a pipeline, for src/task: requests (queued items), the runner's state, and helpers for tasks.
 * A pipeline owns everything here unless stated otherwise. One thread at a time.
 *
 * Names in this folder: p pipeline, r request, q sequence, e error. */
#ifndef SES_TASK_PIPELINE_IMPL_H
#define SES_TASK_PIPELINE_IMPL_H

#include "base/arena.h"
#include "base/async.h"
#include "base/str.h"
#include "generate/logit_scores.h"
#include "run/pass.h"
#include "task.h"
#include "text/tokenizer_config.h"
#include "vectors/classify/classifier.h"

/* ---- requests ---- */

struct ses_request {
    struct ses_request *next;
    ses_arena mem; /* owns everything below */
    ses_item item;
    /* the task's options for this item: the pipeline's, or a copy with item.settings applied */
    const void *args;
    ses_seq *seq;
    size_t n_seqs, cap_seqs;
    size_t collected; /* sequences whose outputs have been collected */
    ses_err *error;   /* why the item failed; NULL: it has not */
    void *state;      /* the task's */
    int64_t tokens, truncated;
    int64_t shortened_words; /* see ses_pipeline_stats */
    bool has_outputs;        /* run_batch has finished it */
    bool streamed;           /* the stream callback has received the text */
    ses_result_row *row;     /* by ses_request_add_row */
    size_t n_rows, cap_rows;
};

/* ---- the parts of a pipeline ---- */

typedef struct ses_pipeline_settings {
    void *args; /* the task's options */
    bool owns_args;
    ses_arena args_mem;         /* texts of owned args */
    ses_output_request outputs; /* a task's open may request more than logits */
    bool lowercase;             /* texts are lowercased first; set by load_model */
    bool never_truncates;       /* texts are read whole: max_seq_len has no effect; set by open */
    bool stream;                /* the task's setting "stream"; set by open */
    int64_t model_max_tokens;   /* longest sequence the model accepts */
    int64_t max_seq_len;        /* longest sequence it is given; at most model_max_tokens */
    int64_t batch_tokens;
    int64_t batch_size;         /* most sequences of a batch; 0: no limit */
    int64_t max_request_tokens; /* most tokens that the windows of an item may have; 0: no limit */

    ses_result_fn *on_result;
    void *on_result_ctx;
    ses_item_error_fn *on_item_error; /* NULL: a failed item stops the work */
    void *on_item_error_ctx;
    ses_stream_fn *on_stream;
    void *on_stream_ctx;
    ses_stop_fn *should_stop;
    void *should_stop_ctx;
} ses_pipeline_settings;

/* Sequences that run together; seq[i] belongs to request[i]. */
typedef struct ses_seq_group {
    ses_request **request;
    ses_seq **seq;
    size_t n;
    int64_t tokens;
} ses_seq_group;

typedef struct ses_pipeline_runner {
    /* The queue, in the order items were fed. */
    ses_request *first, *last;
    ses_request *free_list;
    ses_request *next_request; /* the first with a sequence that has not run, next_seq; NULL: none */
    size_t next_seq;
    int64_t waiting_tokens; /* tokens of the sequences that have not run */

    /* The current batch. */
    ses_seq_group batch;
    bool in_flight;   /* being computed: pass and mem must not be touched */
    ses_async *async; /* thread that computes it on a host; NULL: not started */
    ses_pass pass;
    ses_arena mem;
    struct ses_word_cache *words; /* models that read characters: vectors of words; NULL: none yet */
    int64_t seq_index, row_index; /* number and first requested row of the sequence being collected */

    /* Outputs of the batch on the host. */
    const ses_tensor *host_copy_of; /* the output whose whole copy is in host_copy */
    ses_real *host_copy;            /* rows of other outputs follow it */
    size_t host_copy_capacity;
    float *rows; /* rows of the sequence being collected */
    size_t rows_capacity;

    /* The result of ses_pipeline_run, and the request it borrows from. */
    ses_result result;
    ses_request *result_request;
} ses_pipeline_runner;

struct ses_pipeline {
    const ses_task *task;
    char *dir;                   /* the folder of the model, or of the tokenizer if they differ */
    const char *const *adapters; /* further adapter folders, while the model is opened; NULL: none */
    size_t n_adapters;
    /* if dir holds an adapter: its model's folder as given by the caller; NULL: not given */
    char *base_model;
    ses_device *dev;
    const ses_model *model;
    ses_classifier *classifier; /* instead of model and tokenizer; NULL: none. A clone borrows it */
    ses_json_doc *config; /* config.json of the classifier: its labels; NULL: none. A clone borrows it */
    const ses_sentence *encoder; /* embed, similarity: contains the model; else NULL */
    const ses_tokenizer *tokenizer;
    const ses_pipeline *original; /* the pipeline this one is a clone of; NULL: none */
    ses_model *own_model;         /* loaded by the pipeline, or a view of a shared model; NULL: shared */
    ses_sentence *own_encoder;
    ses_tokenizer *own_tokenizer;
    ses_encode_ctx *tokens;
    /* generated texts: the tokenizer of the target language, if the folder has one; else the same */
    const ses_tokenizer *target_tokenizer;
    ses_tokenizer *own_target_tokenizer;
    ses_encode_ctx *target_tokens, *own_target_tokens;
    ses_tokenizer_config tokenizer_config;
    const ses_head_use *head; /* the model's head that serves the task; NULL: none is used */
    void *state;              /* the task's */
    ses_arena mem;            /* freed with the pipeline */
    ses_buf warnings;
    ses_pipeline_settings settings;
    ses_pipeline_runner runner;
    ses_pipeline_stats stats;
};

/* A pipeline with the classifier of p, which must outlive it, and with its own settings. */
ses_pipeline *ses_pipeline_open_classifier_of(const ses_pipeline *p, const char *task,
                                              const ses_setting *settings, ses_err *e);

/* runner.c: drops the queue and frees the runner. */
void ses_pipeline_runner_free(ses_pipeline *p);
/* Records the error *e of one item, so that the others can continue, and clears it. False: nothing handles
 * failed items, or the error is not the item's; the work stops. */
bool ses_request_fail(ses_pipeline *p, ses_request *r, ses_err *e);

/* pipeline_settings.c */

/* Option struct of a task: defaults, then the settings; texts are copied into mem. called_name: the
 * task's name as the user gave it. */
void *ses_task_args_new(const ses_task *t, const char *called_name, const ses_setting *settings,
                        ses_arena *mem, ses_err *e);
void ses_task_args_free(const ses_task *t, void *args);
/* Sets r->args from r->item.settings. */
bool ses_request_apply_settings(ses_pipeline *p, ses_request *r, ses_err *e);

/* ---- helpers for tasks ---- */

/* False and SES_EIO: the callback of ses_pipeline_set_stop asks to stop. */
bool ses_pipeline_check_stop(ses_pipeline *p, ses_err *e);
/* Adds a line to ses_pipeline_warnings. */
bool ses_pipeline_warn(ses_pipeline *p, ses_err *e, const char *fmt, ...) SES_PRINTF(3, 4);

/* Splits the values of a list option at commas, into memory of the pipeline; empty parts are left out. trim:
 * without spaces at both ends. */
bool ses_pipeline_split_list(ses_pipeline *p, const ses_opt_list *l, bool trim, ses_string **out, size_t *n,
                             ses_err *e);

/* Copies an item into the request; invalid UTF-8 is replaced. */
bool ses_request_copy_item(ses_request *r, const ses_item *item, ses_err *e);

/* Adds a sequence to the request: a copy of an encoding. NULL after an error. */
ses_seq *ses_request_add_sequence(ses_request *r, const ses_encoding *from, ses_err *e);

/* Encodes a text or pair and adds it, truncated to max_seq_len; r->truncated counts the tokens left out. */
ses_seq *ses_request_encode(ses_pipeline *p, ses_request *r, const ses_input *in, ses_truncation how,
                            ses_err *e);

/* The same in windows of max_seq_len that share `stride` tokens; nothing is left out. */
bool ses_request_encode_windows(ses_pipeline *p, ses_request *r, const ses_input *in, ses_truncation how,
                                int64_t stride, ses_err *e);

/* Rows of an output that belong to the sequence being collected, on the host until the next call. */
typedef struct ses_output_rows {
    const float *x; /* [n, cols]; NULL after an error */
    int64_t n, cols;
} ses_output_rows;
ses_output_rows ses_request_output_rows(ses_pipeline *p, const ses_seq *q, const char *output, ses_err *e);

/* Adds a zeroed row to the result; NULL: no memory. */
ses_result_row *ses_request_add_row(ses_request *r, ses_err *e);

/* The functions below return strings in memory of the request; p NULL: no memory. */
ses_string ses_request_copy_string(ses_request *r, const char *s, size_t n, ses_err *e);
ses_string ses_request_join_strings(ses_request *r, ses_string a, ses_string b, ses_err *e);
ses_string ses_request_lowercase(ses_request *r, ses_string s, ses_err *e);
/* Decodes ids as the transformers tokenizer does. */
ses_string ses_request_decode(ses_pipeline *p, ses_request *r, const int32_t *id, size_t n, bool keep_special,
                              ses_err *e);
/* The same for a generated text, without special tokens. */
ses_string ses_request_decode_target(ses_pipeline *p, ses_request *r, const int32_t *id, size_t n,
                                     ses_err *e);
/* The name of label i, or "LABEL_i", in mem; p NULL: no memory. */
ses_string ses_pipeline_label(const ses_pipeline *p, ses_arena *mem, int64_t i, ses_err *e);

#endif
