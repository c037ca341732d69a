/* Attention between words instead of tokens: a word reads the mean of what its tokens read, and is read
 * with the sum of the weights of its tokens. Plain functions on arrays of the caller; safe in all threads.
 * */
#ifndef SES_ANALYSIS_ATTENTION_UNITS_H
#define SES_ANALYSIS_ATTENTION_UNITS_H

#include "sesame/base.h"

/* The rows or columns of a map: each token belongs to a unit, a word or itself. */
typedef struct ses_attention_units {
    int64_t tokens, n;
    const int32_t *of; /* [tokens]: unit of the token, 0 .. n - 1; -1: left out */
} ses_attention_units;

/* out [rows->n, cols->n] from weights [rows->tokens, cols->tokens]: the sum over the key's tokens, the
 * mean over the query's tokens. A unit without tokens has zeros. renormalize: rows are divided by their
 * sum, for units that were left out; a row of zeros stays. */
void ses_attention_merge(const float *weights, const ses_attention_units *rows,
                         const ses_attention_units *cols, bool renormalize, float *out);

#endif
