/* Scores of word vectors on analogy questions, "Athens Greece Oslo Norway": the fourth word must be the
 * nearest to the sum b - a + c (3CosAdd), or the best by 3CosMul.
 *
 * The questions are in sections that begin with ": name". Two programs define which questions count and which
 * answers are correct; the counts of both are reproduced:
 *
 *     word2vec   compute-accuracy: words equal up to ASCII case; only the three words of the question
 *                themselves are left out of the results; the best cosine must be positive
 *     gensim     evaluate_word_analogies: words equal up to case; of the five best results the first that
 *                does not equal a, b or c up to case
 *
 * Ownership: the caller frees a result. Threads: each call works on its own result. */
#ifndef SES_VECTORS_ANALOGIES_H
#define SES_VECTORS_ANALOGIES_H

#include "base/arena.h"
#include "sesame/vectors.h"

typedef enum { SES_ANALOGY_WORD2VEC, SES_ANALOGY_GENSIM } ses_analogy_rules;

typedef struct ses_analogy_options {
    ses_analogy_rules rules;
    int64_t limit;         /* questions and answers among the first N words; 0: all that were read */
    bool multiply;         /* 3CosMul instead of 3CosAdd */
    bool keep_case;        /* words must be equal */
    bool unknown_is_wrong; /* questions with unknown words count as wrong (gensim's dummy4unknown) */
    int threads;           /* at least 1 */
} ses_analogy_options;

typedef struct ses_analogy_section {
    const char *name;
    int64_t questions, scored, correct; /* scored: all four words are known, or unknown_is_wrong */
} ses_analogy_section;

typedef struct ses_analogy_result {
    ses_arena arena;
    ses_analogy_section *section; /* in the order of the file */
    size_t n, cap;
    int64_t invalid; /* lines that are not four words */
} ses_analogy_result;

enum {
    SES_ANALOGY_SEMANTIC = 5
}; /* the first sections of questions-words.txt are semantic, as in word2vec */

/* Answers the questions of a file with the words that v has read. */
bool ses_analogies_score(ses_analogy_result *r, const ses_vectors *v, const char *path,
                         const ses_analogy_options *o, ses_err *e);
void ses_analogy_result_free(ses_analogy_result *r); /* back to zero */
/* Sums the sections first .. end - 1. */
ses_analogy_section ses_analogy_sum(const ses_analogy_result *r, size_t first, size_t end);

#endif
