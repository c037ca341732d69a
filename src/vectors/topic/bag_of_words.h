/* Bags of words: the vocabulary of a set of texts, and how often each text contains each word.
 *
 * Ownership: the caller frees both; a vocabulary owns its words. Threads: several may read them. */
#ifndef SES_VECTORS_BAG_OF_WORDS_H
#define SES_VECTORS_BAG_OF_WORDS_H

#include "base/arena.h"
#include "base/str.h"
#include "base/strmap.h"

typedef enum {
    SES_BAG_TEXT, /* lower case; runs of at least two letters, digits, marks or '_' */
    SES_BAG_BLANK /* separated by white space, unchanged */
} ses_bag_split;

typedef struct ses_bag_options {
    ses_bag_split split;
    bool stop_words;   /* drop the words of stop_words.def */
    int64_t min_texts; /* drop words in fewer texts */
    double max_share;  /* drop words in more than this share of the texts */
    int64_t max_words; /* keep the most frequent ones; 0: all */
} ses_bag_options;

/* Words by falling count; equal counts by rising bytes. */
typedef struct ses_bag_vocab {
    ses_arena mem;
    ses_strmap ids;    /* word to id; entry[id] is its word */
    int64_t *texts;    /* [words]: texts that contain it */
    int64_t *count;    /* [words]: occurrences */
    int64_t words;     /* size of the vocabulary */
    int64_t all_texts; /* texts that were counted */
    ses_bag_split split;
} ses_bag_vocab;

/* Rows of a sparse matrix [rows, cols]: entries start[i] .. start[i + 1] - 1, by rising column. */
typedef struct ses_bags {
    int64_t rows, cols;
    int64_t *start; /* [rows + 1] */
    int32_t *col;
    double *value;
} ses_bags;

/* Counts the words of n texts. *v must be zeroed; free it after a failure, too. Fails if no word is left. */
bool ses_bag_vocab_build(ses_bag_vocab *v, const ses_string *text, size_t n, const ses_bag_options *o,
                         ses_err *e);
/* The vocabulary of a saved model: words in the order of their ids. */
bool ses_bag_vocab_add(ses_bag_vocab *v, const char *word, size_t n, ses_err *e);
void ses_bag_vocab_free(ses_bag_vocab *v); /* back to zero */

/* The counts of n texts, a row each; unknown words are skipped. *b must be zeroed; free it after a failure,
 * too. */
bool ses_bags_count(ses_bags *b, const ses_bag_vocab *v, const ses_string *text, size_t n, ses_err *e);
bool ses_bags_transpose(ses_bags *out, const ses_bags *b, ses_err *e);
void ses_bags_free(ses_bags *b); /* back to zero */

/* Counts become TF-IDF as in scikit-learn: count (ln((1 + n) / (1 + texts)) + 1), rows of length 1. */
void ses_bags_tf_idf(ses_bags *b, const int64_t *texts, int64_t n);

/* Calls fn with each word of a text until it returns false; false: so did fn, or memory ran out. low: a
 * buffer that is reused. */
typedef bool ses_word_fn(void *ctx, const char *word, size_t n, ses_err *e);
bool ses_words_each(ses_string text, ses_bag_split split, ses_buf *low, ses_word_fn *fn, void *ctx,
                    ses_err *e);

#endif
