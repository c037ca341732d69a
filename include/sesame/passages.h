/* Passages, also called rows: what a model reads at once, cut from corpora in an order of their own.
 *
 * Rows of an epoch are a function of (options, epoch): the same on any number of threads, in a resumed run,
 * or asked for in another order. Documents are shuffled by (seed, epoch), laid end to end in stretches of
 * some million tokens, cut into rows, and the rows of a stretch shuffled. Memory: four bytes a document, and
 * the borders of one stretch. One thread. */
#ifndef SESAME_PASSAGES_H
#define SESAME_PASSAGES_H

#include "sesame/corpus.h"

SES_BEGIN_DECLS

/* RoBERTa's four inputs, and blocks. */
typedef enum {
    SES_PACK_FULL_SENTENCES, /* whole sentences, across documents, as many as fit */
    SES_PACK_DOC_SENTENCES,  /* the same, but a document's end is a row's */
    SES_PACK_SEGMENT_PAIR,   /* two segments of several sentences each (BERT) */
    SES_PACK_SENTENCE_PAIR,  /* two sentences */
    SES_PACK_BLOCKS          /* so many tokens, wherever they end (GPT) */
} ses_packing;

/* What the second segment of a strange pair is. */
typedef enum {
    SES_PAIRS_POSITIVE, /* no pair is strange */
    SES_PAIRS_RANDOM,   /* of another document (next sentence prediction) */
    SES_PAIRS_SWAPPED   /* what stood before the first (sentence order prediction) */
} ses_pairing;

/* A corpus of a mixture: share q of an epoch's tokens, proportional to weight * (its tokens) ^ exponent. */
typedef struct ses_mixture_part {
    const ses_corpus *corpus;
    double weight;
} ses_mixture_part;

typedef struct ses_passages_options {
    const ses_mixture_part *parts;
    size_t n_parts;
    double exponent; /* XLM's smoothing over languages; 1: as much of each as there is; 0: the same of each */
    ses_packing packing;
    ses_pairing pairing;      /* of pairs */
    double negative_rate;     /* share of strange pairs; usually 0.5 */
    double short_seq_prob;    /* share of segment pairs of a random shorter length; BERT's: 0.1 */
    int64_t seq_len;          /* most tokens of a row; special tokens are not counted */
    int64_t separator_tokens; /* tokens to leave free for each document's start within a row: separators */
    bool break_at_documents;  /* a document's end is a row's, so that documents do not see each other */
    bool held_out;            /* the documents kept for evaluation instead of the others */
    bool in_order;            /* not shuffled */
    uint64_t seed;
} ses_passages_options;

typedef struct ses_passages ses_passages;
ses_passages *ses_passages_new(const ses_passages_options *o, ses_err *e); /* corpora are borrowed */
void ses_passages_free(ses_passages *r);

/* Rows of an epoch, at least 1; -1 where memory ran out. And their tokens. */
int64_t ses_passages_count(ses_passages *r, int64_t epoch, ses_err *e);
int64_t ses_passages_tokens(ses_passages *r, int64_t epoch, ses_err *e);

/* Row i of an epoch; borrowed until the next call. Its length alone costs no reading of tokens. */
bool ses_passages_at(ses_passages *r, int64_t epoch, int64_t i, ses_passage *out, ses_err *e);
int64_t ses_passages_length(ses_passages *r, int64_t epoch, int64_t i, ses_err *e);

SES_END_DECLS

#endif
