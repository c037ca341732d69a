/* All segmentations of a word into pieces: expected counts and the best paths. A lattice holds buffers of
 * one thread, reused for each word. */
#ifndef SES_TEXT_UNIGRAM_LATTICE_H
#define SES_TEXT_UNIGRAM_LATTICE_H

#include "text/vocab/trie.h"
#include "tokenizer_trainer.h"

/* Pieces with log probabilities; piece 0 represents characters that no piece covers. */
typedef struct ses_piece_model {
    ses_string *piece;
    double *score;
    size_t n;
    ses_trie trie;
    double unknown; /* score of a character that is not a piece */
} ses_piece_model;

/* Compute trie and unknown from the other fields. */
bool ses_piece_model_build(ses_piece_model *m, ses_arena *mem, ses_err *e);

typedef struct ses_lattice { /* buffers, reused for each word */
    double *forward, *backward;
    struct ses_lattice_node {
        double score[2];
        int32_t piece[2];
        uint32_t from[2], rank[2];
    } * best;
    size_t cap;
    int32_t *path[2]; /* pieces of the two best paths, first to last */
    size_t n_path[2];
} ses_lattice;

void ses_lattice_free(ses_lattice *l);
/* Add the expected count of each piece in `count` occurrences of the word to expected[]. *log_prob: their
 * log probability. */
bool ses_lattice_add_expected(ses_lattice *l, const ses_piece_model *m, const ses_counted_word *w,
                              double *expected, double *log_prob, ses_err *e);
/* Find the best paths, at most `max_paths` (1 or 2); *found: number of paths. */
bool ses_lattice_best(ses_lattice *l, const ses_piece_model *m, const char *p, size_t n, int max_paths,
                      int *found, ses_err *e);

#endif
