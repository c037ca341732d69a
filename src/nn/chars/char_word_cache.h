/* Vectors of words that a model computed from their characters, kept for later batches. A cache belongs to
 * one model, whose weights do not change, and to one thread at a time. */
#ifndef SES_NN_CHAR_WORD_CACHE_H
#define SES_NN_CHAR_WORD_CACHE_H

#include "sesame/base.h"

typedef struct ses_word_cache ses_word_cache;

/* max_bytes: memory for the vectors; a full cache starts again empty. */
ses_word_cache *ses_word_cache_new(size_t max_bytes, ses_err *e);
void ses_word_cache_free(ses_word_cache *c);

/* The vector of a word of `chars` characters, valid until the next put; NULL: not there. */
const ses_real *ses_word_cache_find(const ses_word_cache *c, const int16_t *word, int64_t chars);
/* Keeps a copy of a vector. All calls have the same width. */
bool ses_word_cache_put(ses_word_cache *c, const int16_t *word, int64_t chars, const ses_real *x,
                        int64_t width, ses_err *e);
size_t ses_word_cache_count(const ses_word_cache *c);

#endif
