/* Corruptions of text that objectives are made of: pure functions of (passage, settings, draws), no tensors.
 * Each can be undone from what it left and what it tells to predict. */
#ifndef SES_DATA_NOISE_H
#define SES_DATA_NOISE_H

#include "draws.h"
#include "ints.h"
#include "lexicon.h"
#include "sesame/corpus.h"

/* ---- noise_mask.c: tokens chosen to be predicted where they stand ---- */

/* What is chosen at once, and never in part. */
typedef enum {
    SES_MASK_TOKENS,
    SES_MASK_WORDS,  /* whole words (BERT's second edition) */
    SES_MASK_NGRAMS, /* 1 .. longest words, P(k) ~ 1 / k (ALBERT, XLNet) */
    SES_MASK_SPANS   /* 1 .. longest words, geometric, none beside another (SpanBERT) */
} ses_mask_unit;

typedef struct ses_masking {
    ses_mask_unit unit;
    double rate;               /* of the tokens that are not special */
    double as_mask, as_random; /* of the chosen: shares that become [MASK], any token; the rest stays */
    double p;                  /* of geometric lengths */
    int64_t longest;           /* words */
} ses_masking;

/* The words of a passage: word k is tokens begin[k] .. end[k] - 1; those with special tokens are left out.
 * joined[k]: it goes on where word k - 1 ended, in one segment and document. */
typedef struct ses_bounds {
    ses_ints begin, end, joined, order;
    int64_t tokens; /* in all of them */
} ses_bounds;

bool ses_bounds_find(ses_bounds *w, const ses_passage *p, const uint8_t *special, bool tokens, ses_err *e);
void ses_bounds_free(ses_bounds *w);

/* chosen[i]: 0, or 1 + the number of what token i was chosen with. So many tokens on average as the rate
 * says: where the last unit has more than are wanted, it is taken as often as makes up for it. */
bool ses_mask_choose(const ses_masking *m, const ses_passage *p, const uint8_t *special, ses_draws *d,
                     ses_bounds *w, int32_t *chosen, ses_err *e);
/* What stands there then: each token decides alone, a span as one (SpanBERT). */
void ses_mask_apply(const ses_masking *m, const ses_passage *p, const ses_lexicon *x, const int32_t *chosen,
                    ses_draws *d, int32_t *out);

#endif
