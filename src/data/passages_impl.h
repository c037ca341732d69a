/* The inside of passages, shared by passages.c (order) and passages_pack.c (packings). */
#ifndef SES_DATA_PASSAGES_H
#define SES_DATA_PASSAGES_H

#include "rng_stream.h"
#include "sesame/passages.h"

/* A row: n tokens from token `first` of the document at this place of the stretch on, across documents where
 * it is longer. Of a strange pair with random second segment, n - split of them lie elsewhere. */
typedef struct ses_passage_cut {
    uint32_t place, first, n, split;
    uint32_t other, other_first; /* a document, by its number in the mixture */
    bool random, swapped;
} ses_passage_cut;

/* A document of a mixture. */
typedef struct ses_member {
    int32_t part;
    uint32_t number; /* in the mixture: documents of all parts are counted through */
    ses_document d;
} ses_member;

typedef struct ses_stretch {
    size_t from;  /* in the order */
    int64_t rows; /* before it */
} ses_stretch;

struct ses_passages {
    ses_passages_options o;
    ses_mixture_part *part;
    uint32_t *base; /* [parts + 1]: numbers of a part's documents in the mixture begin there */
    /* Documents to be used, part after part; [parts + 1] where a part's begin. */
    uint32_t *usable, *usable_at;
    double *copies; /* [parts]: how often a document is seen in an epoch, on average */
    int64_t epoch;  /* of order; -1: none */
    uint32_t *order;
    size_t n_order, order_cap;
    ses_stretch *stretch; /* [stretches + 1] */
    size_t stretches, stretch_cap;
    int64_t tokens; /* of the epoch's rows */
    int64_t here;   /* the stretch that member and cut are of; -1: none */
    ses_member *member;
    size_t members, member_cap;
    ses_passage_cut *cut;
    size_t cuts, cut_cap;
    uint32_t *unit; /* scratch: where the units of a document begin */
    size_t units, unit_cap;
    int32_t *id; /* [length] */
    uint8_t *starts;
};

ses_member ses_passages_member(const ses_passages *r, uint32_t number);

/* Cuts the members of a stretch into r->cut; draws are its own. */
bool ses_passages_cut(ses_passages *r, ses_rng_stream *d, ses_err *e);

#endif
