/* Vocabulary of a text: its words and how often each occurs. A zeroed ses_word_vocab is empty and ready; it
 * owns the words. Several threads may read it. */
#ifndef SES_VECTORS_WORD_VOCAB_H
#define SES_VECTORS_WORD_VOCAB_H

#include "base/arena.h"
#include "base/strmap.h"

typedef struct ses_vocab_word {
    const char *text; /* NUL-terminated */
    uint32_t len;
    int64_t count;
} ses_vocab_word;

typedef struct ses_word_vocab {
    ses_vocab_word *word;
    size_t n, capacity;
    int64_t tokens;      /* words of the text, dropped ones included */
    int64_t kept_tokens; /* words of the text that are in the vocabulary, after ses_word_vocab_select */
    ses_arena text;
    ses_strmap index;
} ses_word_vocab;

/* Counts an occurrence of a word; its id, or -1: out of memory, or more than INT32_MAX different words. */
int32_t ses_word_vocab_count(ses_word_vocab *v, const char *s, size_t n, ses_err *e);
/* Keeps the words that occur at least min_count times, the max_words most frequent of them (0: all), sorted by
 * falling count; ties keep the order in which they were first seen. new_id [n before the call] receives the id
 * of each word, -1: dropped; may be NULL. Fails if no word is left. */
bool ses_word_vocab_select(ses_word_vocab *v, int64_t min_count, size_t max_words, int32_t *new_id,
                           ses_err *e);
int32_t ses_word_vocab_find(const ses_word_vocab *v, const char *s, size_t n); /* id; -1: unknown */
void ses_word_vocab_free(ses_word_vocab *v);                                   /* back to zero */

#endif
