/* Nearest neighbours by cosine: of a word in its context among all words of a corpus, and of a word in a file
 * of static vectors. Plain data; the caller owns the arrays. Thread-safe. */
#ifndef SES_ANALYSIS_NEAREST_H
#define SES_ANALYSIS_NEAREST_H

#include "sesame/base.h"

typedef struct ses_near {
    double cosine;
    size_t index;
} ses_near;

/* Fills near [k] with the rows of x [n, width] that are most similar to row `of`, without itself, best first,
 * equal ones by index. Returns their number. */
size_t ses_nearest_rows(const float *x, size_t n, size_t width, size_t of, ses_near *near, size_t k);

typedef struct ses_near_word {
    double cosine;
    char *word; /* free with ses_free */
} ses_near_word;

/* The same in a file of word vectors (sesame/vectors.h). The word is looked up as it is
 * written, then in lower case. *n: 0: the file does not contain it. */
bool ses_nearest_static(const char *path, ses_string word, ses_near_word *near, size_t k, size_t *n,
                        ses_err *e);

#endif
