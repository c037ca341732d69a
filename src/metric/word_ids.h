/* Words of texts, as metrics over texts need them: lower case, splitting at white space, numbers for words,
 * n-grams. Text is UTF-8; bytes that are not count as characters of their own. */
#ifndef SES_TRAIN_WORDS_H
#define SES_TRAIN_WORDS_H

#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/lowercase.h"

bool ses_char_is_space(uint32_t cp); /* as Python's str.isspace */
bool ses_char_is_word(uint32_t cp);  /* \w of Python's regular expressions */

/* Numbers of words: equal words, equal numbers. Zeroed: empty and ready. The texts are borrowed until
 * ses_word_interner_free. */
typedef struct ses_word_interner {
    ses_strmap map;
} ses_word_interner;
void ses_word_interner_free(ses_word_interner *x);

/* A text as numbers of words. Zeroed: empty and ready, and used again text after text. */
typedef struct ses_word_ids {
    int32_t *id;
    size_t n, cap;
} ses_word_ids;
bool ses_word_ids_add(ses_word_ids *w, ses_word_interner *x, const char *s, size_t n, ses_err *e);
/* The words between white space. */
bool ses_word_ids_split(ses_word_ids *w, ses_word_interner *x, const char *s, size_t n, ses_err *e);
void ses_word_ids_free(ses_word_ids *w);

/* n-grams of a text, sorted, so that counting is a merge. */
enum { SES_MAX_NGRAM = 4 };
typedef struct ses_ngram {
    int32_t id[SES_MAX_NGRAM]; /* -1 after the n-th */
} ses_ngram;
typedef struct ses_ngrams {
    ses_ngram *item;
    size_t n, cap;
} ses_ngrams;
bool ses_ngrams_build(ses_ngrams *g, const ses_word_ids *w, size_t order, ses_err *e);
void ses_ngrams_free(ses_ngrams *g);

/* How many n-grams of g are also in one of the others: each at most as often as in the other that has the
 * most of it. */
size_t ses_ngrams_count_matches(const ses_ngrams *g, const ses_ngrams *other, size_t n_others);

/* The stem of an English word in lower case, by Porter's rules with NLTK's changes; rewritten in place, and
 * never longer than before. Returns its length. */
size_t ses_porter_stem(char *word, size_t n);

#endif
