/* Corruptions of text that objectives are made of: pure functions of (passage, settings, draws), no tensors.
 * Each can be undone from what it left and what it tells to predict. */
#ifndef SES_DATA_NOISE_H
#define SES_DATA_NOISE_H

#include "ints.h"
#include "rng_stream.h"
#include "sesame/corpus.h"
#include "special_tokens.h"

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
    double rate;                   /* of the tokens that are not special */
    double mask_rate, random_rate; /* of the chosen: shares that become [MASK], any token; the rest stays */
    double geometric_p;            /* of geometric lengths */
    int64_t max_words;             /* words */
} ses_masking;

/* The words of a passage: word k is tokens begin[k] .. end[k] - 1; those with special tokens are left out.
 * joined[k]: it goes on where word k - 1 ended, in one segment and document. */
typedef struct ses_word_spans {
    ses_ints begin, end, joined, order;
    int64_t tokens; /* in all of them */
} ses_word_spans;

bool ses_word_spans_find(ses_word_spans *w, const ses_passage *p, const uint8_t *special, bool tokens,
                         ses_err *e);
void ses_word_spans_free(ses_word_spans *w);

/* chosen[i]: 0, or 1 + the number of what token i was chosen with. So many tokens on average as the rate
 * says: where the last unit has more than are wanted, it is taken as often as makes up for it. */
bool ses_mask_choose(const ses_masking *m, const ses_passage *p, const uint8_t *special, ses_rng_stream *d,
                     ses_word_spans *w, int32_t *chosen, ses_err *e);
/* What stands there then: each token decides alone, a span as one (SpanBERT). */
void ses_mask_apply(const ses_masking *m, const ses_passage *p, const ses_special_tokens *x,
                    const int32_t *chosen, ses_rng_stream *d, int32_t *out);

/* ---- noise_spans.c: stretches taken out whole ---- */

typedef struct ses_span_options {
    double rate, mean_length; /* share of tokens in spans, mean length of a span */
    int64_t max_spans;        /* spans */
} ses_span_options;

/* T5's: n tokens are a gap, a span, a gap, a span, ...; out: their lengths. Every way to cut so many tokens
 * into so many spans is as likely, and spans do not touch. A single token is a span behind an empty gap. */
bool ses_spans_draw(int64_t n, const ses_span_options *s, ses_rng_stream *d, ses_ints *out, ses_err *e);

/* MASS's: one stretch of a share of the tokens; its length. */
int64_t ses_span_draw(int64_t n, double rate, ses_rng_stream *d, int64_t *begin);

/* ---- noise_text.c: BART's noises, each alone or after another ---- */

typedef struct ses_noised_text {
    ses_ints id, starts;
    ses_ints source_pos; /* the place in the passage; -1: a mask */
    ses_ints old_id, old_starts, old_from, order;
} ses_noised_text;

bool ses_noised_text_init(ses_noised_text *t, const ses_passage *p, ses_err *e);
void ses_noised_text_free(ses_noised_text *t);
bool ses_noise_permute(ses_noised_text *t, ses_rng_stream *d, ses_err *e); /* sentences in any order */
bool ses_noise_rotate(ses_noised_text *t, ses_rng_stream *d, ses_err *e);  /* begins at any token */
bool ses_noise_mask(ses_noised_text *t, double rate, int32_t mask, ses_rng_stream *d,
                    ses_err *e); /* single tokens */
bool ses_noise_delete(ses_noised_text *t, double rate, ses_rng_stream *d, ses_err *e);
/* Spans of words (or tokens), lengths from a Poisson distribution, become one mask each; of 0: one more. */
bool ses_noise_infill(ses_noised_text *t, double rate, double mean, bool tokens, int32_t mask,
                      ses_rng_stream *d, ses_err *e);

/* ---- noise_permutation.c: XLNet's reading order ---- */

enum { SES_PERM_CONTEXT, SES_PERM_TARGET, SES_PERM_FUNCTIONAL };
/* hidden [n, n]: 1 where token i does not see token j. turn [n]: when each is read; -1: before all. */
void ses_permutation_mask(const uint8_t *role, int64_t n, ses_rng_stream *d, int32_t *turn, uint8_t *hidden);

#endif
