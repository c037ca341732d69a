/* Words of a vocabulary without regard to case, as the programs that score analogies and similarities compare
 * them: of several words that differ in case only, the first (most frequent) one represents them all.
 *
 * Ownership: a zeroed struct is empty; ses_folded_words_free frees it. Threads: find and the arrays only
 * read. */
#ifndef SES_VECTORS_FOLDED_WORDS_H
#define SES_VECTORS_FOLDED_WORDS_H

#include "base/arena.h"
#include "base/str.h"
#include "base/strmap.h"
#include "sesame/vectors.h"

typedef enum {
    SES_FOLD_NONE,
    SES_FOLD_ASCII,  /* toupper in the C locale: compute-accuracy */
    SES_FOLD_UNICODE /* letters of all scripts: str.upper, gensim */
} ses_fold;

typedef struct ses_folded_words {
    ses_fold fold;
    ses_arena arena;
    ses_strmap map; /* folded word to its first index */
    int64_t *first; /* [n]: index of the first word with the same folded form */
    int64_t n;
} ses_folded_words;

/* The first n words of v. */
bool ses_folded_words_build(ses_folded_words *f, const ses_vectors *v, int64_t n, ses_fold fold, ses_err *e);
void ses_folded_words_free(ses_folded_words *f); /* back to zero */
/* Index of the first word that equals `word` up to case, -1: none; scratch holds the folded word. */
int64_t ses_folded_words_find(const ses_folded_words *f, ses_string word, ses_buf *scratch);

/* Replaces out by the folded word. */
void ses_fold_word(ses_buf *out, ses_string word, ses_fold fold);

#endif
