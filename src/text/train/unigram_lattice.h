/* All ways to cut a word into pieces: sums over them, the best, the two best. */
#ifndef SES_TEXT_TRAIN_LATTICE_H
#define SES_TEXT_TRAIN_LATTICE_H

#include "text/vocab/trie.h"
#include "tokenizer_trainer.h"

/* Pieces with log probabilities; piece 0 stands for what no piece covers. */
typedef struct ses_piece_model {
    ses_string *piece;
    double *score;
    size_t n;
    ses_trie trie;
    double unknown; /* score of a character without a piece */
} ses_piece_model;

/* Trie and unknown from the rest. */
bool ses_piece_model_build(ses_piece_model *m, ses_arena *mem, ses_err *e);

typedef struct ses_lattice { /* buffers, used word after word */
    double *forward, *backward;
    struct ses_lattice_node {
        double score[2];
        int32_t piece[2];
        uint32_t from[2], rank[2];
    } * best;
    size_t cap;
    int32_t *path[2]; /* pieces of the two best ways, first to last */
    size_t n_path[2];
} ses_lattice;

void ses_lattice_free(ses_lattice *l);
/* Adds to expected[piece] how often it occurs on average in `count` such words. Returns their log
 * probability. */
bool ses_lattice_add_expected(ses_lattice *l, const ses_piece_model *m, const ses_counted_word *w,
                              double *expected, double *log_prob, ses_err *e);
/* The best ways, at most `ways` (1 or 2); *found tells how many there are. */
bool ses_lattice_best(ses_lattice *l, const ses_piece_model *m, const char *p, size_t n, int ways, int *found,
                      ses_err *e);

#endif
