/* Examples as token ids, and batches of them: sequences laid end to end, never padded.
 *
 * A dataset is filled once, then read; several threads may read. Batches are a function of (seed, epoch,
 * number): asked again, in a resumed run or in another order, a batch is the same. */
#ifndef SESAME_DATASET_H
#define SESAME_DATASET_H

#include "sesame/batch_source.h"

SES_BEGIN_DECLS

typedef struct ses_dataset ses_dataset;

/* What an example says about its sequences. */
typedef enum {
    SES_TARGET_NONE,
    SES_TARGET_CLASS,  /* one of several */
    SES_TARGET_VALUES, /* numbers: regression, several labels at once */
    SES_TARGET_TAGS,   /* one of several for every token; SES_IGNORE_INDEX: none */
    SES_TARGET_SPAN,   /* first and last token of an answer */
    SES_TARGET_TEXT    /* what an encoder-decoder should say */
} ses_target;

/* One sequence; arrays are copied. */
typedef struct ses_sequence {
    int64_t n;
    const int32_t *ids, *segments; /* segments NULL: all 0 */
    int32_t label, start, end;     /* as the dataset's kind of target says */
    const ses_real *values;
    const int32_t *tags;
    const int32_t *target_ids;
    int64_t n_target;
    int64_t origin; /* where it came from, for messages: a line */
} ses_sequence;

/* width: numbers of SES_TARGET_VALUES. group: so many neighboring sequences are one example (the choices of a
 * question, the texts of a pair), with the first one's label and values; 0: 1. They come in one batch, whose
 * `choices` says how many. */
ses_dataset *ses_dataset_new(ses_target target, int64_t width, int64_t group, ses_err *e);
void ses_dataset_free(ses_dataset *d);
bool ses_dataset_add(ses_dataset *d, const ses_sequence *s, ses_err *e);
int64_t ses_dataset_size(const ses_dataset *d); /* examples */
int64_t ses_dataset_tokens(const ses_dataset *d);
ses_sequence ses_dataset_at(const ses_dataset *d, int64_t sequence); /* borrowed */

/* How examples come together. */
typedef struct ses_batching {
    int64_t max_examples;   /* a batch; its last may have fewer */
    int64_t max_tokens;     /* or: what fits into so many tokens, at least one example; 0: by examples */
    bool in_order;          /* else shuffled anew each epoch */
    int64_t bucket_batches; /* sorted by length within what is so many batches, then cut; 0: not sorted */
    uint64_t seed;
} ses_batching;

typedef struct ses_batches ses_batches;
ses_batches *ses_batches_new(const ses_dataset *d, const ses_batching *how, ses_err *e);
void ses_batches_free(ses_batches *b);
ses_batch_source ses_batches_source(ses_batches *b);

/* The examples of a batch by number, as they lie in it. Valid until another epoch is asked for. */
const int64_t *ses_batches_examples(ses_batches *b, int64_t epoch, int64_t index, int64_t *n, ses_err *e);

SES_END_DECLS

#endif
