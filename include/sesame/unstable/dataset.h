/* Datasets of tokenized examples, and batches of them: sequences laid end to end, never padded.
 *
 * Batches are a function of (seed, epoch, index): a resumed run, or another order of calls, gives the same
 * batches.
 * Ownership: a dataset copies its sequences; ses_batches borrows the dataset.
 * Threads: several threads may read a dataset after it is filled. A ses_batches belongs to one thread. */
#ifndef SESAME_DATASET_H
#define SESAME_DATASET_H

#include "sesame/unstable/batch_source.h"

SES_BEGIN_DECLS

typedef struct ses_dataset ses_dataset;

/* Kind of target of each example. */
typedef enum {
    SES_TARGET_NONE,
    SES_TARGET_CLASS,  /* one class */
    SES_TARGET_VALUES, /* real numbers: regression, multi-label classification */
    SES_TARGET_TAGS,   /* one class per token; SES_IGNORE_INDEX: ignored */
    SES_TARGET_SPAN,   /* first and last token of an answer */
    SES_TARGET_TEXT    /* target ids of an encoder-decoder model */
} ses_target;

/* One sequence; only the fields of the dataset's target kind are used. */
typedef struct ses_sequence {
    int64_t n;
    const int32_t *ids, *segments; /* segments NULL: all 0 */
    int32_t label, start, end;
    int32_t cls; /* with tags of a span: position of the CLS token, the answer "none" */
    const ses_real *values;
    /* words as input (taggers): vectors [n, vector_width] beside the tokens, bytes of the words with
     * cumulative numbers [n + 1]; NULL: none. All sequences of a dataset have the same kinds. */
    const float *vectors;
    int64_t vector_width;
    const int32_t *chars, *char_cu;
    const int32_t *tags; /* SES_TARGET_SPAN: the answer_mask of the batch; NULL: none */
    const int32_t *target_ids;
    int64_t n_target;
    int64_t origin; /* line number in the source file, for messages */
} ses_sequence;

/* An empty dataset. width: values per example of SES_TARGET_VALUES. group: number of consecutive sequences
 * that form one example (choices of a question, texts of a pair); it has the label and values of its first
 * sequence; 0 means 1. A group is never divided between batches, whose `choices` is the group size. NULL on
 * failure. Free with ses_dataset_free. */
ses_dataset *ses_dataset_new(ses_target target, int64_t width, int64_t group, ses_err *e);
/* Frees a dataset. d may be NULL. */
void ses_dataset_free(ses_dataset *d);
/* Appends a copy of a sequence of at least one token. */
bool ses_dataset_add(ses_dataset *d, const ses_sequence *s, ses_err *e);
/* Number of examples. */
int64_t ses_dataset_size(const ses_dataset *d);
/* Number of tokens of all sequences. */
int64_t ses_dataset_tokens(const ses_dataset *d);
/* A sequence by its index, which must be in range; borrowed until the next ses_dataset_add. */
ses_sequence ses_dataset_at(const ses_dataset *d, int64_t sequence);

/* How examples are grouped into batches. */
typedef struct ses_batching {
    int64_t max_examples;   /* examples per batch; the last batch may have fewer */
    int64_t max_tokens;     /* if above 0: tokens per batch instead, but at least one example */
    bool in_order;          /* do not shuffle; default: shuffle each epoch */
    int64_t bucket_batches; /* sort by length within windows of this many batches; 0: do not sort */
    uint64_t seed;
} ses_batching;

typedef struct ses_batches ses_batches;

/* Batches over a dataset, which is borrowed until ses_batches_free and must not change. NULL on failure. */
ses_batches *ses_batches_new(const ses_dataset *d, const ses_batching *how, ses_err *e);
/* Frees the batches, not the dataset. b may be NULL. */
void ses_batches_free(ses_batches *b);
/* The batch source that reads from b; valid until ses_batches_free. */
ses_batch_source ses_batches_source(ses_batches *b);

/* Indices of the examples of a batch, in batch order; *n: how many. NULL on failure. Valid until a call for
 * another epoch. */
const int64_t *ses_batches_examples(ses_batches *b, int64_t epoch, int64_t index, int64_t *n, ses_err *e);

SES_END_DECLS

#endif
