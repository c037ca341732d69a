/* Texts as bags of n-grams: the features are numbered, a text is a sorted list of the numbers of its
 * features. Ownership: structs own their arrays. Threads: a finished ses_bag_vocab may be read by several. */
#ifndef SES_VECTORS_BAG_H
#define SES_VECTORS_BAG_H

#include "base/arena.h"
#include "base/strmap.h"
#include "vectors/word_split.h"

typedef struct ses_bag_vocab {
    ses_words_rule rule;
    int64_t ngrams;   /* features are n-grams of 1 to `ngrams` words, joined by blanks */
    ses_strmap index; /* n-gram to its number, in the order of first occurrence */
    ses_arena names;
} ses_bag_vocab;

enum { SES_BAG_MAX_NGRAMS = 16 };

/* Bags of n texts: text i has features feature[begin[i]] .. feature[begin[i + 1] - 1], ascending, with their
 * counts. */
typedef struct ses_bags {
    size_t n;
    size_t *begin; /* [n + 1] */
    uint32_t *feature;
    float *count;
    size_t cap; /* capacity of feature and count */
} ses_bags;

/* Reads the texts, numbers their n-grams that occur at least min_count times, and fills the bags. v has its
 * rule and ngrams, and is empty otherwise. */
bool ses_bags_build(ses_bag_vocab *v, const ses_string *text, size_t n, int64_t min_count, ses_bags *out,
                    ses_err *e);
/* The features of one text that the vocabulary has: *n of them in b, which is overwritten. w: scratch. */
bool ses_bags_add(const ses_bag_vocab *v, ses_string text, ses_words *w, ses_bags *b, ses_err *e);
void ses_bags_free(ses_bags *b); /* back to zero */

static inline size_t ses_bag_vocab_size(const ses_bag_vocab *v) { return v->index.count; }
/* Whether a line of the file can hold the word: not empty, valid UTF-8, no line feed, no NUL. */
bool ses_bag_vocab_can_store(const char *s, size_t n);
/* Writes one n-gram per line, in the order of their numbers. */
bool ses_bag_vocab_save(const ses_bag_vocab *v, const char *dir, const char *name, ses_err *e);
/* Reads a file of `size` n-grams. v has its rule and ngrams, and is empty otherwise. */
bool ses_bag_vocab_open(ses_bag_vocab *v, const char *dir, const char *name, size_t size, ses_err *e);
void ses_bag_vocab_free(ses_bag_vocab *v); /* back to zero */

#endif
