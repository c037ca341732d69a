/* Passages: the training sequences of an epoch, packed from documents of one or more corpora. Also called
 * rows.
 *
 * The rows of an epoch are a function of (options, epoch), independent of threads, resumption and the order
 * of calls. Documents are shuffled by (seed, epoch) and grouped into blocks of some million tokens; each
 * block is packed into rows, which are shuffled within the block.
 * Memory: four bytes per document, plus the row boundaries of one block.
 *
 * Ownership: corpora are borrowed until ses_passages_free.
 * Threads: a ses_passages belongs to one thread. */
#ifndef SESAME_PASSAGES_H
#define SESAME_PASSAGES_H

#include "sesame/corpus.h"

SES_BEGIN_DECLS

/* The four input formats of RoBERTa, and GPT's blocks. */
typedef enum {
    SES_PACK_FULL_SENTENCES, /* as many full sentences as fit, across documents */
    SES_PACK_DOC_SENTENCES,  /* the same, but a row ends with its document */
    SES_PACK_SEGMENT_PAIR,   /* two segments of several sentences each (BERT) */
    SES_PACK_SENTENCE_PAIR,  /* two sentences */
    SES_PACK_BLOCKS          /* seq_len tokens, regardless of sentences (GPT) */
} ses_packing;

/* The second segment of a negative pair. */
typedef enum {
    SES_PAIRS_POSITIVE, /* no negative pairs */
    SES_PAIRS_RANDOM,   /* from another document (next sentence prediction) */
    SES_PAIRS_SWAPPED   /* the segment before the first (sentence order prediction) */
} ses_pairing;

/* A corpus of a mixture. Its fraction of an epoch's tokens is proportional to weight * (its tokens) ^
 * exponent. */
typedef struct ses_mixture_part {
    const ses_corpus *corpus;
    double weight;
} ses_mixture_part;

typedef struct ses_passages_options {
    const ses_mixture_part *parts; /* copied */
    size_t n_parts;
    double exponent; /* XLM's smoothing over languages; 1: proportional to size; 0: uniform */
    ses_packing packing;
    ses_pairing pairing;
    double negative_rate;     /* rate of negative pairs; BERT: 0.5 */
    double short_seq_prob;    /* probability of a shorter random target length for segment pairs; BERT: 0.1 */
    int64_t seq_len;          /* maximum tokens of a row, without special tokens */
    int64_t min_tokens;       /* rows with fewer tokens are skipped; 0 or 1: none */
    int64_t separator_tokens; /* tokens reserved at each document start inside a row */
    bool break_at_documents;  /* a row never spans documents */
    bool held_out;            /* use the held-out documents instead of the training ones */
    bool in_order;            /* do not shuffle */
    uint64_t seed;
    /* Epochs with different rows; later ones have the rows of epoch % copies, with the same numbers, in
     * another order. 0: all epochs differ. */
    int64_t copies;
} ses_passages_options;

typedef struct ses_passages ses_passages;

/* Prepares epoch 0. Fails if no document can be used. NULL on failure. Free with ses_passages_free. */
ses_passages *ses_passages_new(const ses_passages_options *o, ses_err *e);
/* Frees the passages, not the corpora. r may be NULL. */
void ses_passages_free(ses_passages *r);

/* Number of rows of an epoch, at least 1; -1 on failure. */
int64_t ses_passages_count(ses_passages *r, int64_t epoch, ses_err *e);
/* Number of rows of an epoch that are skipped because of min_tokens; -1 on failure. */
int64_t ses_passages_skipped(ses_passages *r, int64_t epoch, ses_err *e);
/* Number of tokens of an epoch's rows; -1 on failure. */
int64_t ses_passages_tokens(ses_passages *r, int64_t epoch, ses_err *e);

/* Reads row i of an epoch; i must be in range. The passage is valid until the next call. */
bool ses_passages_at(ses_passages *r, int64_t epoch, int64_t i, ses_passage *out, ses_err *e);
/* Number of tokens of row i, without reading them; -1 on failure. */
int64_t ses_passages_length(ses_passages *r, int64_t epoch, int64_t i, ses_err *e);

SES_END_DECLS

#endif
