/* Where training batches come from. A source is asked by one thread; its maker frees what ctx points to. */
#ifndef SESAME_SOURCE_H
#define SESAME_SOURCE_H

#include "sesame/batch.h"
#include "sesame/err.h"

SES_BEGIN_DECLS

/* A batch is a function of its epoch and number, both from 0, and of the source's own
 * seed: asked again, it is the same. What a call returns is borrowed until the next. */
typedef struct ses_batch_source {
    void *ctx;
    int64_t (*count)(void *ctx, int64_t epoch); /* batches of an epoch, at least 1 */
    bool (*batch)(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e);
    /* That batch will be asked for next: it may be made now, while a GPU still works on the one before, which
     * stays as it is. NULL: batches are made when they are asked for. */
    void (*prefetch)(void *ctx, int64_t epoch, int64_t index);
    /* For messages: "lines 3, 9, 12 of train.tsv". NULL: nothing is said. */
    void (*describe)(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n);
    /* Of what the batches are made of: a run is resumed with the same only. NULL: not compared. */
    uint64_t (*hash)(void *ctx);
} ses_batch_source;

SES_END_DECLS

#endif
