/* Pipelines: texts in, predictions out. A pipeline runs one task ("fill-mask", "text-classification",
 * ...) with a model and its tokenizer.
 *
 *     ses_setting settings[] = { { "top_k", "3" }, { 0 } };
 *     ses_pipeline *p = ses_pipeline_open("fill-mask", "sesame-small", dev, settings, &e);
 *     const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = ses_str("Paris is in [MASK].") }, &e);
 *     for (size_t i = 0; r && i < r->n; i++) printf("%.3f %s\n", r->row[i].score, r->row[i].word.p);
 *     ses_pipeline_free(p);
 *
 * For many items: set a callback, feed the items, flush. Items run in batches without padding; results
 * arrive in the order of the items. A result depends on its item alone, not on the batch or the number of
 * threads; on a GPU the last bits may depend on the batch.
 *
 * Ownership: the caller frees what it opens. The device, and a model or tokenizer passed to
 * ses_pipeline_open_with, must outlive the pipeline. Items are copied; results are borrowed.
 *
 * Threads: a pipeline is used by one thread at a time. Models and tokenizers are read-only, so several
 * pipelines may share them and run in several threads at once: load the weights once, open one pipeline
 * for each thread.
 *
 * Errors: a function that fails returns false or NULL and fills e, which may be NULL. */
#ifndef SESAME_PIPELINE_H
#define SESAME_PIPELINE_H

#include "sesame/base.h"
#include "sesame/json.h"
#include "sesame/sentence.h"
#include "sesame/tokenizer.h"

#include <string.h>

SES_BEGIN_DECLS

typedef struct ses_pipeline ses_pipeline;

/* A view of a NUL-terminated string; NULL gives { NULL, 0 }. */
static inline ses_string ses_str(const char *s)
{
    ses_string x = { s, s ? strlen(s) : 0 }; /* no compound literal: C++ includes this header */
    return x;
}

/* ---- input and output ---- */

/* One input. docs/PIPELINES.md lists the fields each task reads. */
typedef struct ses_item {
    ses_string text;        /* the text, question, query or premise */
    ses_string pair;        /* the second text or the context; p NULL: none */
    const ses_string *list; /* [n_list]: candidate labels, choices, documents or words */
    size_t n_list;
    int64_t number;              /* chosen by the caller, for example a line number */
    const ses_setting *settings; /* for this item alone, on top of the pipeline's; NULL: none. An option that
                                    belongs to the whole pipeline is an error of the item */
} ses_item;

/* A generated token, or a token of a prompt. */
typedef struct ses_token_logprob {
    int32_t id;
    float logprob;                       /* NAN: the first token of a prompt */
    ses_string token;                    /* the tokenizer's spelling; n 0: the id is not in its vocabulary */
    const struct ses_token_logprob *top; /* [n_top]: "top_logprobs", the most likely tokens, best first */
    size_t n_top;
} ses_token_logprob;

/* One row of a result. A task fills the fields it has. Strings end with NUL; p NULL: not used by the task. */
typedef struct ses_result_row {
    ses_string label; /* class or entity */
    ses_string word;  /* token or words */
    ses_string text;  /* the text with its mask filled, the answer or the generated text */
    double score;
    int32_t token; /* token id */
    int64_t index; /* position of the token in its sequence, number of the choice or document */
    ses_offset char_span, byte_span;   /* position in the text: in code points, in bytes */
    size_t group;                      /* fill-mask: number of the mask */
    const ses_token_logprob *logprobs; /* [n_logprobs]: generation with "logprobs"; NULL: not requested */
    size_t n_logprobs;
    const ses_token_logprob *prompt_logprobs; /* the same with "prompt_logprobs", in the first row */
    size_t n_prompt_logprobs;
    int64_t layers; /* text-classification with "exit": layers that the text has passed */
} ses_result_row;

typedef struct ses_result {
    const ses_item *item; /* the input, copied */
    size_t n;
    const ses_result_row *row; /* [n] */
    size_t groups;             /* groups of rows, at least 1 */
    const float *vectors;      /* [n_vectors, vector_size]: tasks that output vectors; token-classification
                                  without aggregation: the scores of the labels of each token */
    int64_t n_vectors, vector_size;
    int64_t tokens;    /* read by the model */
    int64_t truncated; /* tokens of the text that were left out because it is too long for the model */
    bool streamed;     /* the stream callback has received the text already */
    const struct ses_result_schema *schema;
} ses_result;

/* ---- opening ---- */

typedef struct ses_pipeline_options {
    const ses_setting *settings; /* the task's options; NULL: defaults */
    /* A loaded model to share instead of loading the folder's; NULL: load. Its class must have the head
     * the task needs; tasks without a head use it without its head. */
    const ses_model *model;
    const ses_sentence *encoder;    /* embed and similarity: a loaded encoder to share, with its pooling */
    const ses_tokenizer *tokenizer; /* a loaded tokenizer to share; NULL: load the folder's */
    const char *base_model;         /* if the folder holds an adapter: the model it belongs to; NULL: the one
                                       its adapter_config.json names */
    const char *const *adapters;    /* further adapter folders: see ses_model_options */
    size_t n_adapters;
} ses_pipeline_options;

/* Loads the model and tokenizer of a folder for a task. dir: the path of a folder, or the name of a bundled
 * model ("sesame-small", see ses_model_resolve). settings may be NULL: defaults. Fails if the folder is
 * incomplete or damaged, the model lacks the head for the task, or a setting is unknown or out of range. */
ses_pipeline *ses_pipeline_open(const char *task, const char *dir, ses_device *dev,
                                const ses_setting *settings, ses_err *e);

/* The same with options, which may be NULL. dir and dev may be NULL if options share a model or encoder:
 * its folder and device are used. Settings are copied. */
ses_pipeline *ses_pipeline_open_with(const char *task, const char *dir, ses_device *dev,
                                     const ses_pipeline_options *options, ses_err *e);

/* Another pipeline with the task, settings, model, tokenizer and limits of p, which must outlive it, for use
 * in another thread. Callbacks are not copied. */
ses_pipeline *ses_pipeline_clone(const ses_pipeline *p, ses_err *e);

/* Frees a pipeline; p may be NULL. Queued items are dropped without a result. Shared models and tokenizers
 * stay open. */
void ses_pipeline_free(ses_pipeline *p);

/* The model, sentence encoder (embed, similarity; else NULL) and tokenizer, borrowed from the pipeline. Other
 * pipelines may share them while this one is open. NULL: the folder has a classifier that reads texts, but no
 * model and no tokenizer. */
const ses_model *ses_pipeline_model(const ses_pipeline *p);
const ses_sentence *ses_pipeline_encoder(const ses_pipeline *p);
const ses_tokenizer *ses_pipeline_tokenizer(const ses_pipeline *p);

/* Remarks about settings without effect and the like: lines, "" if there are none. Borrowed. */
const char *ses_pipeline_warnings(const ses_pipeline *p);

/* ---- limits ---- */

/* Maximum length of a sequence in tokens, at most the model's own maximum. Longer texts are truncated,
 * and the result reports it, or read in overlapping windows, depending on the task. Call it before
 * feeding. Returns false, without an effect, for tasks that never truncate (text-generation, prefer). */
bool ses_pipeline_set_max_seq_len(ses_pipeline *p, int64_t tokens);
/* The maximum length in use. */
int64_t ses_pipeline_max_seq_len(const ses_pipeline *p);

/* Tokens per batch; a sequence is never split. Default: 2048, on a GPU 16384. Results do not depend
 * on it; on a GPU the last bits may. */
void ses_pipeline_set_batch_tokens(ses_pipeline *p, int64_t tokens);
/* Sequences per batch; 0, the default: as many as the tokens allow. */
void ses_pipeline_set_batch_size(ses_pipeline *p, int64_t sequences);

/* ---- running ---- */

/* Runs one item at once. Items fed before are run and reported first. The result is borrowed until the next
 * call on the pipeline. NULL: the item failed; the error callback is not called. */
const ses_result *ses_pipeline_run(ses_pipeline *p, const ses_item *item, ses_err *e);

/* Receives each result, in the order of the items; returns false to stop, with the reason in e. */
typedef bool ses_result_fn(void *ctx, const ses_result *r, ses_err *e);
/* Sets the callback for results; ctx is passed to it. NULL: results are dropped. */
void ses_pipeline_set_callback(ses_pipeline *p, ses_result_fn *fn, void *ctx);

/* Receives each item that failed, in the order of the items, and why; returns true to continue with the other
 * items (keep going), or false to stop, with the reason in e. */
typedef bool ses_item_error_fn(void *ctx, const ses_item *item, const ses_err *why, ses_err *e);
/* Sets the callback for failed items. NULL, the default: the first failed item stops the work. Errors that
 * are not an item's (output that cannot be written, for example) always stop it. */
void ses_pipeline_set_error_callback(ses_pipeline *p, ses_item_error_fn *fn, void *ctx);

/* Tasks that generate text: receives the text of an item in pieces while it is generated, if the item runs
 * alone (ses_pipeline_set_batch_tokens(p, 1)), without beams; returns false to stop. The result follows. */
typedef bool ses_stream_fn(void *ctx, const char *piece, size_t n);
/* Sets the callback for generated text; NULL: none. */
void ses_pipeline_set_stream(ses_pipeline *p, ses_stream_fn *fn, void *ctx);
/* The task generates text. */
bool ses_pipeline_can_stream(const ses_pipeline *p);
/* The task's setting "stream" is true: the caller should set a stream callback. */
bool ses_pipeline_stream_setting(const ses_pipeline *p);

/* Asked before each batch and before each step of a generation; true stops the work: the call that runs the
 * items fails with SES_EIO and drops the queued ones. */
typedef bool ses_stop_fn(void *ctx);
/* Sets the callback that may stop the work; NULL: none. */
void ses_pipeline_set_stop(ses_pipeline *p, ses_stop_fn *fn, void *ctx);

/* Queues an item. A full batch is computed while the next items are fed; its results arrive during a
 * later feed or flush. An item that cannot be encoded is reported to the error callback; if there is
 * none, feed fails, the item is not queued, and the pipeline can be used further. If a batch or a
 * callback fails, all queued items are dropped. */
bool ses_pipeline_feed(ses_pipeline *p, const ses_item *item, ses_err *e);

/* Runs all queued items and reports their results. */
bool ses_pipeline_flush(ses_pipeline *p, ses_err *e);

/* Counts since the pipeline was opened. */
typedef struct ses_pipeline_stats {
    int64_t items;     /* with a result */
    int64_t failed;    /* reported to the error callback */
    int64_t truncated; /* items with tokens left out */
    int64_t batches, sequences;
    int64_t tokens_read; /* tokens of the sequences that ran; generation: of the prompts */
    int64_t tokens_generated;
    int64_t context_limited; /* generated texts that ended early because the model's context was full */
    /* Models that read characters of words: words of more than max_word_bytes, whose ends are left out. */
    int64_t shortened_words, max_word_bytes;
} ses_pipeline_stats;
/* The counts so far; items in a batch in flight are not counted yet. */
ses_pipeline_stats ses_pipeline_get_stats(const ses_pipeline *p);

/* ---- JSON ---- */

/* Fills an item from a JSON string or object, by the task's names for its fields. The item borrows from v and
 * from *list, which the caller frees with free(), also after a failure. */
bool ses_pipeline_item_from_json(const ses_pipeline *p, const ses_json *v, ses_item *item, ses_string **list,
                                 ses_err *e);

/* Writes the result as one JSON value, in the form of the transformers pipeline of the same name. */
void ses_result_write_json(const ses_result *r, ses_json_writer *w);

SES_END_DECLS

#endif
