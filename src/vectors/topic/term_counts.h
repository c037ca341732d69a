/* Term counts: the vocabulary of a set of texts, and how often each text contains each word.
 *
 * Ownership: the caller frees both; a vocabulary owns its words. Threads: several may read them. */
#ifndef SES_VECTORS_TERM_COUNTS_H
#define SES_VECTORS_TERM_COUNTS_H

#include "base/arena.h"
#include "base/str.h"
#include "base/strmap.h"
#include "vectors/word_split.h"

typedef struct ses_term_options {
    ses_words_rule split; /* SES_WORDS_RUNS of at least two characters, or SES_WORDS_BLANK */
    bool stop_words;      /* drop the words of stop_words.def */
    int64_t min_texts;    /* drop words in fewer texts */
    double max_share;     /* drop words in more than this share of the texts */
    int64_t max_words;    /* keep the most frequent ones; 0: all */
} ses_term_options;

/* Words by falling count; equal counts by rising bytes. */
typedef struct ses_term_vocab {
    ses_arena mem;
    ses_strmap ids;    /* word to id; entry[id] is its word */
    int64_t *texts;    /* [words]: texts that contain it */
    int64_t *count;    /* [words]: occurrences */
    int64_t words;     /* size of the vocabulary */
    int64_t all_texts; /* texts that were counted */
    ses_words_rule split;
} ses_term_vocab;

/* Rows of a sparse matrix [rows, cols]: entries start[i] .. start[i + 1] - 1, by rising column. */
typedef struct ses_term_counts {
    int64_t rows, cols;
    int64_t *start; /* [rows + 1] */
    int32_t *col;
    double *value;
} ses_term_counts;

/* Counts the words of n texts. *v must be zeroed; free it after a failure, too. Fails if no word is left. */
bool ses_term_vocab_build(ses_term_vocab *v, const ses_string *text, size_t n, const ses_term_options *o,
                          ses_err *e);
/* The vocabulary of a saved model: words in the order of their ids. */
bool ses_term_vocab_add(ses_term_vocab *v, const char *word, size_t n, ses_err *e);
void ses_term_vocab_free(ses_term_vocab *v); /* back to zero */

/* The counts of n texts, a row each; unknown words are skipped. *b must be zeroed; free it after a failure,
 * too. */
bool ses_term_counts_make(ses_term_counts *b, const ses_term_vocab *v, const ses_string *text, size_t n,
                          ses_err *e);
bool ses_term_counts_transpose(ses_term_counts *out, const ses_term_counts *b, ses_err *e);
void ses_term_counts_free(ses_term_counts *b); /* back to zero */

/* Counts become TF-IDF as in scikit-learn: count (ln((1 + n) / (1 + texts)) + 1), rows of length 1. */
void ses_term_counts_tf_idf(ses_term_counts *b, const int64_t *texts, int64_t n);

/* Calls fn with each word of a text until it returns false; false: so did fn, or memory ran out. w is
 * reused. */
typedef bool ses_term_fn(void *ctx, const char *word, size_t n, ses_err *e);
bool ses_term_each(ses_string text, ses_words_rule split, ses_words *w, ses_term_fn *fn, void *ctx,
                   ses_err *e);

#endif
