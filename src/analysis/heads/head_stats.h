/* Statistics of a head: mean weights to the next, the first and other tokens, and entropy. Plain sums of the
 * caller; safe in all threads. */
#ifndef SES_ANALYSIS_HEAD_STATS_H
#define SES_ANALYSIS_HEAD_STATS_H

#include "sesame/base.h"

/* Kinds of a token, as bits. */
enum { SES_TOKEN_SPECIAL = 1, SES_TOKEN_SEPARATOR = 2, SES_TOKEN_PUNCTUATION = 4 };

/* Targets of a weight. */
typedef enum {
    SES_ATTENDED_SELF,
    SES_ATTENDED_NEXT,
    SES_ATTENDED_PREVIOUS,
    SES_ATTENDED_FIRST,
    SES_ATTENDED_SEPARATOR,
    SES_ATTENDED_PUNCTUATION,
    SES_ATTENDED_SPECIAL, /* the first and separators included, if they are special tokens */
    SES_ATTENDED_COUNT
} ses_attended;

/* Sums over rows (queries). Rows of special tokens do not count, unless a text has no others. */
typedef struct ses_head_stats {
    int64_t rows;
    double to[SES_ATTENDED_COUNT];
    double entropy, max_entropy; /* in nats; max_entropy: ln of the keys a row may attend to */
} ses_head_stats;

/* Adds a map [rows, cols]. from, to: kinds of rows and columns. square: they are the same tokens; without
 * it, self, next and previous stay. causal: row i attends to columns 0 .. i. */
void ses_head_stats_add(ses_head_stats *s, const float *weight, int64_t rows, int64_t cols,
                        const uint8_t *from, const uint8_t *to, bool square, bool causal);

/* Mean weight to a target; mean entropy. 0 without rows. */
double ses_head_stats_mean(const ses_head_stats *s, ses_attended p);
double ses_head_stats_entropy(const ses_head_stats *s);

const char *ses_attended_name(ses_attended p); /* "self", "next", ... */

/* The label of the head: "next" or "previous" above 0.5; "special" (or "first", if that token is none) above
 * 0.6; "broad" if the entropy is above 0.9 of its maximum; else NULL. */
const char *ses_head_stats_label(const ses_head_stats *s);

#endif
