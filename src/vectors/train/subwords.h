/* Rows of words and of their character n-grams, as in fastText: a word is the mean of its rows. */
#ifndef SES_VECTORS_SUBWORDS_H
#define SES_VECTORS_SUBWORDS_H

#include "vectors/word_vocab.h"

/* The rows of word i are row[start[i]] .. row[start[i + 1] - 1]: i, then n + bucket of each n-gram of
 * <word>. */
typedef struct ses_subwords {
    size_t *start;
    int32_t *row;
} ses_subwords;

/* Finds the n-grams of minn to maxn characters. *s must be zeroed; free it even if this fails. */
bool ses_subwords_build(ses_subwords *s, const ses_word_vocab *v, int minn, int maxn, int64_t buckets,
                        ses_err *e);
void ses_subwords_free(ses_subwords *s);

#endif
