/* The words of a text for Brown clustering: in the order in which they are clustered, with their bigrams.
 *
 * Ownership: the caller frees them. Threads: several may read them. */
#ifndef SES_VECTORS_BROWN_WORDS_H
#define SES_VECTORS_BROWN_WORDS_H

#include "vectors/word_reader.h"
#include "vectors/word_vocab.h"

typedef struct ses_brown_bigram {
    int32_t word; /* the other word, a rank */
    int64_t count;
} ses_brown_bigram;

typedef struct ses_brown_words {
    ses_word_vocab vocab; /* all words, in the order of their first occurrence */
    int64_t n;            /* words to cluster */
    int32_t *id;          /* [n]: index in vocab of the word of a rank; by falling count */
    int32_t *number;      /* [n]: numbers of the words, which decide which branch is the left one */
    int64_t tokens;       /* words of the text, dropped ones included */
    /* Bigrams of two clustered words: rank r has items start[r] .. start[r + 1] - 1 */
    int64_t *right_start, *left_start; /* [n + 1] */
    ses_brown_bigram *right, *left;    /* the next, the previous word */
    ses_words_skipped skipped;
} ses_brown_words;

typedef struct ses_brown_options {
    int64_t min_count; /* drop rarer words */
    int64_t max_words; /* keep the most frequent ones; 0: all */
    ses_text_encoding encoding;
    /* Called now and then; false: stop. NULL: none. */
    bool (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
} ses_brown_options;

/* The text is one sequence of words between white space; lines do not matter. A dropped word separates its
 * neighbours. *w must be zeroed; free it after a failure, too. */
bool ses_brown_words_read(ses_brown_words *w, const char *path, const ses_brown_options *o, ses_err *e);
void ses_brown_words_free(ses_brown_words *w); /* back to zero */

#endif
