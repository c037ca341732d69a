/* Private parts of ses_passages, shared by passages.c (order) and passages_pack.c (packing). */
#ifndef SES_DATA_PASSAGES_IMPL_H
#define SES_DATA_PASSAGES_IMPL_H

#include "rng_stream.h"
#include "sesame/pretrain.h"

/* A row: n tokens, starting at token `first` of document `doc` of the block, possibly across documents. The
 * second segment of a random pair, n - split tokens, is in another document. */
typedef struct ses_packed_row {
    uint32_t doc, first, n, split;
    uint32_t other, other_first; /* document of the mixture, and its first token */
    uint32_t index;              /* in its block before the shuffle */
    bool random, swapped;
} ses_packed_row;

/* A document of a mixture. */
typedef struct ses_mixture_doc {
    int32_t part;
    uint32_t number; /* in the mixture: documents of all parts are numbered consecutively */
    ses_document d;
} ses_mixture_doc;

/* Consecutive documents that are packed and shuffled together. */
typedef struct ses_shuffle_block {
    size_t from;  /* its first document in `order` */
    int64_t rows; /* rows before it */
} ses_shuffle_block;

struct ses_passages {
    ses_passages_options o;
    ses_mixture_part *part;
    uint32_t *base; /* [n_parts + 1] number in the mixture of each part's first document */
    /* Usable documents, part after part; usable_at [n_parts + 1]: start of each part. */
    uint32_t *usable, *usable_at;
    double *copies; /* [n_parts] mean number of times a document occurs in an epoch */
    int64_t epoch;  /* epoch of `order`; -1: none */
    uint32_t *order;
    size_t n_order, order_cap;
    ses_shuffle_block *block; /* [n_blocks + 1] */
    size_t n_blocks, block_cap;
    int64_t tokens;        /* total of the epoch's rows */
    int64_t skipped;       /* rows of the epoch below min_tokens */
    int64_t current_block; /* block of `doc` and `row`; -1: none */
    ses_mixture_doc *doc;
    size_t n_docs, doc_cap;
    ses_packed_row *row;
    size_t n_rows, row_cap, n_short; /* n_short: rows of the block below min_tokens, removed */
    uint32_t *unit;                  /* scratch: first tokens of the units of a document */
    size_t n_units, unit_cap;
    int32_t *id;     /* [seq_len] tokens of the current row */
    uint8_t *starts; /* [seq_len] */
};

ses_mixture_doc ses_passages_doc(const ses_passages *r, uint32_t number);

/* Packs the documents of the current block into r->row. d: random stream of the block. */
bool ses_passages_pack(ses_passages *r, ses_rng_stream *d, ses_err *e);

#endif
