/* Provider of training batches: callbacks that the trainer calls.
 *
 * Ownership: the creator of the source owns and frees `ctx`. A batch is valid until the next call of
 * `batch`.
 * Threads: all callbacks of one source are called from one thread at a time. */
#ifndef SESAME_BATCH_SOURCE_H
#define SESAME_BATCH_SOURCE_H

#include "sesame/base.h"
#include "sesame/model.h"

SES_BEGIN_DECLS

/* A batch is a function of its epoch and index (both from 0) and of the source's own seed: repeated calls
 * return the same batch. */
typedef struct ses_batch_source {
    void *ctx;
    int64_t (*count)(void *ctx, int64_t epoch); /* batches of an epoch, at least 1 */
    bool (*batch)(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e);
    /* Optional: announces the next batch, which may be prepared now, while a GPU still computes on the
     * current one. The current batch must stay valid. NULL: none. */
    void (*prefetch)(void *ctx, int64_t epoch, int64_t index);
    /* Optional: describes a batch for messages, "lines 3, 9, 12 of train.tsv". NULL: none. */
    void (*describe)(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n);
    /* Optional: hash of the data; a run resumes only with the same hash. NULL: not compared. */
    uint64_t (*hash)(void *ctx);
} ses_batch_source;

SES_END_DECLS

#endif
