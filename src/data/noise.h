/* Text corruptions for pretraining objectives: pure functions of (passage, settings, random stream),
 * without tensors. Each can be inverted from the corrupted text and the targets. Output arrays are the
 * caller's and are reused. */
#ifndef SES_DATA_NOISE_H
#define SES_DATA_NOISE_H

#include "ints.h"
#include "rng_stream.h"
#include "sesame/pretrain.h"
#include "special_tokens.h"

/* ---- noise_mask.c: masked language modeling ---- */

/* Unit of masking: chosen as a whole. */
typedef enum {
    SES_MASK_TOKENS,
    SES_MASK_WORDS,  /* whole word masking */
    SES_MASK_NGRAMS, /* 1 .. max_words words, P(k) ~ 1 / k (ALBERT, XLNet) */
    SES_MASK_SPANS   /* 1 .. max_words words, geometric, not adjacent (SpanBERT) */
} ses_mask_unit;

typedef struct ses_masking {
    ses_mask_unit unit;
    double rate;                   /* fraction of the non-special tokens that are chosen */
    double mask_rate, random_rate; /* fractions of the chosen tokens replaced by [MASK], by a random token */
    double geometric_p;            /* parameter of span lengths */
    int64_t max_words;             /* maximum words of a span or n-gram */
} ses_masking;

/* The words of a passage: word k is tokens [begin[k], end[k]). Words with special tokens are left out.
 * joined[k]: word k directly follows word k - 1 in the same segment and document. order: scratch. */
typedef struct ses_word_spans {
    ses_ints begin, end, joined, order;
    int64_t tokens; /* total of all words */
} ses_word_spans;

/* tokens: each token is a word. */
bool ses_word_spans_find(ses_word_spans *w, const ses_passage *p, const uint8_t *special, bool tokens,
                         ses_err *e);
void ses_word_spans_free(ses_word_spans *w);

/* chosen[i]: 0, or 1 + the index of the unit that contains token i. The expected number of chosen tokens is
 * rate * tokens: a last unit that is too long is chosen with the probability that keeps the expectation. */
bool ses_mask_choose(const ses_masking *m, const ses_passage *p, const uint8_t *special, ses_rng_stream *d,
                     ses_word_spans *w, int32_t *chosen, ses_err *e);
/* Writes the corrupted ids to out[p->n]. Each token draws its replacement separately; a span draws once
 * (SpanBERT). */
void ses_mask_apply(const ses_masking *m, const ses_passage *p, const ses_special_tokens *x,
                    const int32_t *chosen, ses_rng_stream *d, int32_t *out);

/* ---- noise_spans.c: spans that are removed ---- */

typedef struct ses_span_options {
    double rate, mean_length; /* fraction of tokens in spans, mean length of a span */
    int64_t max_spans;
} ses_span_options;

/* T5's span corruption: n tokens are a gap, a span, a gap, a span, ...; out: their lengths in this order. All
 * divisions into that many spans are equally likely, and spans do not touch. A single token is a span after
 * an empty gap. */
bool ses_spans_draw(int64_t n, const ses_span_options *s, ses_rng_stream *d, ses_ints *out, ses_err *e);

/* MASS's fragment: one span of rate * n tokens. Returns its length. */
int64_t ses_span_draw(int64_t n, double rate, ses_rng_stream *d, int64_t *begin);

/* ---- noise_text.c: BART's noise functions, which can be combined ---- */

typedef struct ses_noised_text {
    ses_ints id, starts;
    ses_ints source_pos;                                /* position in the passage; -1: a mask */
    ses_ints old_id, old_starts, old_source_pos, order; /* scratch */
} ses_noised_text;

bool ses_noised_text_init(ses_noised_text *t, const ses_passage *p, ses_err *e); /* a copy of the passage */
void ses_noised_text_free(ses_noised_text *t);
bool ses_noise_permute(ses_noised_text *t, ses_rng_stream *d, ses_err *e); /* sentence permutation */
bool ses_noise_rotate(ses_noised_text *t, ses_rng_stream *d, ses_err *e);  /* document rotation */
/* Token masking. */
bool ses_noise_mask(ses_noised_text *t, double rate, int32_t mask, ses_rng_stream *d, ses_err *e);
bool ses_noise_delete(ses_noised_text *t, double rate, ses_rng_stream *d, ses_err *e); /* token deletion */
/* Text infilling: spans of words (or tokens) with Poisson lengths become one mask each; length 0 inserts a
 * mask. */
bool ses_noise_infill(ses_noised_text *t, double rate, double mean, bool tokens, int32_t mask,
                      ses_rng_stream *d, ses_err *e);

/* ---- noise_permutation.c: XLNet's factorization order ---- */

enum { SES_PERM_CONTEXT, SES_PERM_TARGET, SES_PERM_FUNCTIONAL /* [SEP], [CLS] */ };
/* hidden [n, n]: 1 if token i must not attend to token j. rank [n]: position of each token in the order; -1:
 * context, before all others. */
void ses_permutation_mask(const uint8_t *role, int64_t n, ses_rng_stream *d, int32_t *rank, uint8_t *hidden);

#endif
