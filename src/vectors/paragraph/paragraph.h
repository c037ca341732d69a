/* Paragraph vectors (Le and Mikolov 2014): a vector per document, trained to predict its words with negative
 * sampling.
 *     PV-DBOW   the document's vector predicts each word; with words: each context word does, too (skip-gram)
 *     PV-DM     the mean, or the concatenation, of the document's vector and the vectors of the context words
 *               predicts each word
 *
 * Threads: a round gives each of SES_PV_SHARDS shards a few documents. A shard updates the vectors of its
 * documents directly, and copies of the rows of words; the changes of the copies are then merged in the order
 * of the shards. The bits depend on the settings only. */
#ifndef SES_VECTORS_PARAGRAPH_H
#define SES_VECTORS_PARAGRAPH_H

#include "documents.h"
#include "kernel/kernel.h"
#include "row_copies.h"
#include "vectors/train/sampling_table.h"

typedef enum { SES_PV_DBOW, SES_PV_DBOW_WORDS, SES_PV_DM_MEAN, SES_PV_DM_CONCAT } ses_pv_method;
enum { SES_PV_SHARDS = 8, SES_PV_MAX_WINDOW = 31, SES_PV_MAX_NEGATIVE = 63, SES_PV_MAX_DIM = 4096 };

typedef struct ses_pv_settings {
    ses_pv_method method;
    ses_words_rule rule; /* how texts are split, for inference */
    int64_t dim, window, negative, epochs, min_count;
    double rate, sample; /* sample 0: no subsampling */
    uint64_t seed;
} ses_pv_settings;

typedef struct ses_pv_model {
    ses_pv_settings o;
    ses_word_vocab vocab;
    int64_t docs, stride, out_cols; /* stride: dim rounded up to 16; the columns from dim on are 0 */
    float *doc, *word, *out;        /* [docs][stride], [words + 1][stride] or NULL, [words][out_cols] */
    ses_sampling_cell *noise;
    uint32_t *keep;                 /* [words]: a word is kept if 32 random bits are at most this */
    int64_t epoch, next_doc, steps; /* completed: epochs; documents and predicted words of the current one */
    double loss_sum;                /* over these words */
    double loss;                    /* mean loss of a word in the last complete epoch */
} ses_pv_model;

/* Weights at their start. Takes over `vocab`, which becomes empty. *m must be zeroed; free it even if this
 * fails. */
bool ses_pv_init(ses_pv_model *m, ses_word_vocab *vocab, int64_t docs, const ses_pv_settings *o, ses_err *e);
void ses_pv_free(ses_pv_model *m);

/* Trains one epoch, or the rest of an interrupted one. progress (may be NULL): called after a round with the
 * words done; false: stop between two rounds, *stopped is then true. */
typedef bool ses_pv_progress(void *ctx, int64_t words);
bool ses_pv_epoch(ses_pv_model *m, const ses_documents *d, const ses_kernels *k, ses_thread_pool *pool,
                  ses_pv_progress *progress, void *ctx, bool *stopped, ses_err *e);

/* Vectors of new documents, out [d->n][dim]: trained for `epochs` passes, everything else fixed. The vector
 * depends on the words of its document only. A document without known words gets zeros. */
bool ses_pv_infer(const ses_pv_model *m, const ses_documents *d, int64_t epochs, const ses_kernels *k,
                  ses_thread_pool *pool, float *out, ses_err *e);

/* Files: a safetensors file with the vectors of documents ("documents") and words ("words"), the output
 * weights, the words with their counts, and the settings. run: NULL, or for a checkpoint everything that the
 * result depends on. */
bool ses_pv_save(const ses_pv_model *m, const char *path, const char *run, bool overwrite, ses_err *e);
bool ses_pv_load(ses_pv_model *m, const char *path, ses_err *e); /* *m must be zeroed; free it in any case */
bool ses_pv_load_bytes(ses_pv_model *m, const void *bytes, size_t n, ses_err *e); /* the same from memory */
/* Continues from the checkpoint of the same run; m has been initialized. */
bool ses_pv_resume(ses_pv_model *m, const char *path, const char *run, ses_err *e);

/* ---- steps ---- */

/* State of a shard, or of inference on one thread. */
typedef struct ses_pv_worker {
    const ses_pv_model *m;
    const ses_kernels *k;
    ses_row_copies word, out;
    bool frozen; /* changes of words and outputs are discarded after each step */
    int32_t *kept;
    size_t kept_capacity;
    float *joined, *scratch; /* concatenation: input before and after a step; bag_step: 2 stride */
    double loss;
    int64_t steps;
    ses_err err;
} ses_pv_worker;

bool ses_pv_worker_init(ses_pv_worker *w, const ses_pv_model *m, const ses_kernels *k, bool frozen,
                        ses_err *e);
void ses_pv_worker_free(ses_pv_worker *w);
/* Trains a document once. random: start of its random numbers. */
bool ses_pv_train_document(ses_pv_worker *w, const int32_t *id, int64_t n, float *doc, float rate,
                           uint64_t random);
/* Start of the vector of a document. */
void ses_pv_start(const ses_pv_model *m, uint64_t number, float *doc);

#endif
