/* Scores of word vectors on lists of word pairs with similarities by people, such as WordSim-353: correlation
 * of the cosines with them. Pairs, cases and unknown words are treated as by gensim's evaluate_word_pairs.
 *
 * A list has a line per pair: two words and a number, separated by tabs or blanks; lines that begin with '#'
 * are comments, other lines are counted as invalid. Plain data. Threads: each call works on its own. */
#ifndef SES_VECTORS_WORD_PAIRS_H
#define SES_VECTORS_WORD_PAIRS_H

#include "folded_words.h"

typedef struct ses_word_pairs_options {
    bool unknown_is_zero; /* pairs with an unknown word count with cosine 0 (gensim's dummy4unknown) */
    bool subwords;        /* unknown words have the vectors of their subwords */
} ses_word_pairs_options;

typedef struct ses_word_pairs_score {
    int64_t pairs, known;     /* known: both words have a vector */
    int64_t invalid;          /* lines that are not a pair */
    double spearman, pearson; /* NaN: fewer than two pairs, or constant */
} ses_word_pairs_score;

/* words: the folded words of v. */
bool ses_word_pairs_evaluate(ses_word_pairs_score *s, const ses_vectors *v, const ses_folded_words *words,
                             const char *path, const ses_word_pairs_options *o, ses_err *e);

#endif
