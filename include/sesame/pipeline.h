/* Pipelines: texts in, answers out. A pipeline is a task ("fill-mask", "token-classification", ...) on a
 * model with its tokenizer.
 *
 *     ses_setting set[] = { { "top_k", "3" }, { 0 } };
 *     ses_pipeline *p = ses_pipeline_open("fill-mask", "bert-base-uncased", dev, set, &e);
 *     const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = ses_str("Paris is in [MASK].") }, &e);
 *     for (size_t i = 0; r && i < r->n; i++) printf("%.3f %s\n", r->row[i].score, r->row[i].word.p);
 *     ses_pipeline_free(p);
 *
 * Many texts are fed one by one; they run in batches without padding, and answers come to a function in the
 * order of the texts. What an answer says depends on its text alone, not on the batch or the threads.
 * A pipeline belongs to one thread. */
#ifndef SESAME_TASK_H
#define SESAME_TASK_H

#include "sesame/device.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

#include <string.h>

SES_BEGIN_DECLS

typedef struct ses_pipeline ses_pipeline;

static inline ses_string ses_str(const char *s)
{
    ses_string x = { s, s ? strlen(s) : 0 }; /* C++ has no literals of structs */
    return x;
}

/* An option of the task by its name, "top_k" or "top-k", and its value as text; lists by commas, or by naming
 * the option again. A list of settings ends with { 0 }. */
typedef struct ses_setting {
    const char *name, *value;
} ses_setting;

/* What goes in; which parts a task reads is in docs/PIPELINES.md. */
typedef struct ses_item {
    ses_string text;        /* or the question, the query, the premise */
    ses_string pair;        /* a second text, the context; p NULL: none */
    const ses_string *list; /* candidate labels, choices, documents, words */
    size_t n_list;
    int64_t number; /* the caller's: a line's number */
} ses_item;

typedef struct ses_token_logprob { /* of a token that was written */
    int32_t id;
    float logprob;
    ses_string token; /* as the tokenizer spells it; n 0: not one of its */
} ses_token_logprob;

/* One line of an answer; a task fills what it has (strings end in NUL, p NULL: not of this task). */
typedef struct ses_result_row {
    ses_string label; /* a class, an entity */
    ses_string word;  /* a token or words */
    ses_string text;  /* a whole text: with the mask filled in, an answer, what was generated */
    double score;
    int32_t token;                     /* an id */
    int64_t index;                     /* of a token in its sequence, a choice, a document */
    ses_offset char_span, byte_span;   /* where it stands in the text: in code points, in bytes */
    size_t group;                      /* which mask */
    const ses_token_logprob *logprobs; /* of tasks that write, with "logprobs"; NULL: not asked */
    size_t n_logprobs;
} ses_result_row;

typedef struct ses_result {
    const ses_item *item; /* what it answers */
    size_t n;
    const ses_result_row *row;
    size_t groups;                  /* of rows; at least 1 */
    const float *vectors;           /* of tasks that give vectors: [rows, cols] */
    int64_t n_vectors, vector_size; /* rows 0: none */
    int64_t tokens;                 /* read by the model */
    int64_t truncated; /* tokens of the text that were left out because the model takes no more */
    const struct ses_result_schema *schema;
} ses_result;

/* dev outlives the pipeline; set may be NULL. */
ses_pipeline *ses_pipeline_open(const char *task, const char *dir, ses_device *dev, const ses_setting *set,
                                ses_err *e);
void ses_pipeline_free(ses_pipeline *p);
const char *ses_pipeline_warnings(const ses_pipeline *p); /* about its settings: lines, or "" */

/* One item, answered at once; borrowed until the next call. */
const ses_result *ses_pipeline_run(ses_pipeline *p, const ses_item *item, ses_err *e);

/* Many: fn is told each answer, in the order they were fed; it returns false to end the work. The item is
 * copied. A full batch is computed while others are fed, and answered by a later feed; a flush answers all.
 * A feed that fails for its item has not taken it, and the pipeline goes on with others; where a batch or fn
 * fails, all that waits is dropped. */
typedef bool ses_result_fn(void *ctx, const ses_result *r, ses_err *e);
void ses_pipeline_set_callback(ses_pipeline *p, ses_result_fn *fn, void *ctx);
/* Of tasks that write: fn is told the text of each item run alone as it is written, piece by piece; false
 * ends it. */
typedef bool ses_stream_fn(void *ctx, const char *piece, size_t n);
void ses_pipeline_set_stream(ses_pipeline *p, ses_stream_fn *fn, void *ctx);
/* Of a batch, in which a sequence is never split; before: 2048, of a device with memory of its own 16384. */
void ses_pipeline_set_batch_tokens(ses_pipeline *p, int64_t tokens);
bool ses_pipeline_feed(ses_pipeline *p, const ses_item *item, ses_err *e);
bool ses_pipeline_flush(ses_pipeline *p, ses_err *e); /* runs and answers what is waiting */

/* An item from a JSON object, by the task's names for its parts. Borrows from v; *list is to be freed with
 * free(). */
bool ses_pipeline_item_from_json(const ses_pipeline *p, const ses_json *v, ses_item *item, ses_string **list,
                                 ses_err *e);

/* The answer as one JSON value, in the reference's shape. */
void ses_result_write_json(const ses_result *r, ses_json_writer *w);

SES_END_DECLS

#endif
