/* Where a head looks: mean weights by place, and entropy. Plain sums of the caller; safe in all threads. */
#ifndef SES_ANALYSIS_HEAD_STATS_H
#define SES_ANALYSIS_HEAD_STATS_H

#include "sesame/types.h"

/* Kinds of a token, as bits. */
enum { SES_TOKEN_SPECIAL = 1, SES_TOKEN_SEPARATOR = 2, SES_TOKEN_PUNCTUATION = 4 };

/* Places that a weight may go to. */
typedef enum {
    SES_PLACE_SELF,
    SES_PLACE_NEXT,
    SES_PLACE_PREVIOUS,
    SES_PLACE_FIRST,
    SES_PLACE_SEPARATOR,
    SES_PLACE_PUNCTUATION,
    SES_PLACE_SPECIAL, /* the first and separators included, if they are special tokens */
    SES_PLACES
} ses_place;

/* Sums over rows (queries). Rows of special tokens do not count, unless a text has no others. */
typedef struct ses_head_stats {
    int64_t rows;
    double place[SES_PLACES];
    double entropy, max_entropy; /* in nats; max_entropy: ln of the keys a row may read */
} ses_head_stats;

/* Adds a map [rows, cols]. from, to: kinds of rows and columns. square: they are the same tokens; without
 * it, self, next and previous stay. causal: row i reads columns 0 .. i. */
void ses_head_stats_add(ses_head_stats *s, const float *weight, int64_t rows, int64_t cols,
                        const uint8_t *from, const uint8_t *to, bool square, bool causal);

/* Mean weight to a place; mean entropy. 0 without rows. */
double ses_head_stats_mean(const ses_head_stats *s, ses_place p);
double ses_head_stats_entropy(const ses_head_stats *s);

const char *ses_place_name(ses_place p); /* "self", "next", ... */

/* What the head does: "next" or "previous" above 0.5; "special" (or "first", if that token is none) above 0.6;
 * "broad" if the entropy is above 0.9 of its maximum; else NULL. */
const char *ses_head_stats_label(const ses_head_stats *s);

#endif
