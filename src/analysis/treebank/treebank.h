/* Dependency trees in memory: the sentences of CoNLL-U files, their words as input of a model, and tree
 * distances. Strings are stored once. Reading is done by one thread; a treebank that was read is constant. */
#ifndef SES_ANALYSIS_TREEBANK_H
#define SES_ANALYSIS_TREEBANK_H

#include "base/arena.h"
#include "base/strmap.h"
#include "figure/report.h"
#include "io/conllu.h"
#include "sesame/tokenizer.h"

enum { SES_TREE_MAX_WORDS = 700 }; /* longer sentences are left out: tree distances are quadratic */

typedef struct ses_tree {
    size_t n;                    /* words */
    const ses_conllu_word *word; /* [n]; word i has the number i + 1 */
    size_t first;                /* words of the sentences before it */
} ses_tree;

typedef struct ses_treebank {
    ses_tree *tree;   /* [n] */
    ses_input *input; /* [n]: the words of each sentence */
    size_t n, words;
    size_t too_long;     /* sentences left out because of their length */
    uint64_t skipped;    /* invalid sentences left out */
    char *first_skipped; /* "FILE: line 3: ...", or NULL */
    size_t cap, input_cap;
    ses_arena arena;
    ses_strmap strings;
} ses_treebank;

/* Appends the sentences of a file; "-" is standard input. *t is zeroed before the first file. skip_invalid:
 * invalid sentences are counted and left out. Free it even on failure. */
bool ses_treebank_read(ses_treebank *t, const char *path, bool skip_invalid, ses_err *e);
/* Notes how many sentences of the file were left out, and why. */
void ses_treebank_note_left_out(const ses_treebank *t, const char *path, ses_report *r);
/* The sentences i of `whole` with from <= i % modulus < to, which it borrows. */
bool ses_treebank_part(ses_treebank *t, const ses_treebank *whole, size_t modulus, size_t from, size_t to,
                       ses_err *e);
void ses_treebank_free(ses_treebank *t); /* back to zero */

/* Whether the word is punctuation: UPOS is PUNCT, or is not annotated and DEPREL is punct. */
bool ses_tree_is_punctuation(const ses_conllu_word *w);
/* The words of a tree without punctuation, or all words if it has no others: indexes to node [n];
 * returns their number. */
size_t ses_tree_content_words(const ses_tree *t, int32_t *node);
/* depth [n]: edges between each word and the root. */
void ses_tree_depths(const ses_tree *t, int16_t *depth);
/* distance [n, n]: edges of the path between two words. */
void ses_tree_distances(const ses_tree *t, int16_t *distance);

#endif
