/* Words of texts for the text metrics: splitting at white space, integer ids of words, n-gram counts, stems.
 * Text is UTF-8; an invalid byte counts as one character. The caller owns the structs and frees them. One
 * thread per struct. */
#ifndef SES_METRIC_WORD_IDS_H
#define SES_METRIC_WORD_IDS_H

#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/lowercase.h"

bool ses_char_is_space(uint32_t cp); /* as Python's str.isspace */
bool ses_char_is_word(uint32_t cp);  /* \w of Python's regular expressions */
/* Number of words of s, split at white space. */
size_t ses_words_count(const char *s, size_t n);

/* Assigns ids to words: equal words get equal ids. Zero-initialize. The texts are borrowed until
 * ses_word_interner_free. */
typedef struct ses_word_interner {
    ses_strmap map;
} ses_word_interner;
void ses_word_interner_free(ses_word_interner *x);

/* A text as word ids. Zero-initialize; set n to 0 to reuse the buffer. */
typedef struct ses_word_ids {
    int32_t *id;
    size_t n, cap;
} ses_word_ids;
bool ses_word_ids_add(ses_word_ids *w, ses_word_interner *x, const char *s, size_t n, ses_err *e);
/* Appends the words of s, split at white space. */
bool ses_word_ids_split(ses_word_ids *w, ses_word_interner *x, const char *s, size_t n, ses_err *e);
void ses_word_ids_free(ses_word_ids *w);

/* Sorted n-grams of a text. */
enum { SES_MAX_NGRAM = 4 };
typedef struct ses_ngram {
    int32_t id[SES_MAX_NGRAM]; /* unused ones: -1 */
} ses_ngram;
typedef struct ses_ngrams {
    ses_ngram *item;
    size_t n, cap;
} ses_ngrams;
bool ses_ngrams_build(ses_ngrams *g, const ses_word_ids *w, size_t order, ses_err *e);
void ses_ngrams_free(ses_ngrams *g);

/* Clipped matches: the sum over the distinct n-grams of g of min(count in g, largest count in any of the
 * others). */
size_t ses_ngrams_count_matches(const ses_ngrams *g, const ses_ngrams *other, size_t n_others);

/* Stems an English word in lower case, overwriting it (Porter with NLTK's extensions). Returns the stem's
 * length, never more than n. */
size_t ses_porter_stem(char *word, size_t n);

#endif
