/* A Unigram model, shared by its stage and the fast paths. On the tokenizer's arena, read-only. */
#ifndef SES_TEXT_UNIGRAM_MODEL_H
#define SES_TEXT_UNIGRAM_MODEL_H

#include "text/stage.h"
#include "trie.h"

#define SES_VITERBI_REAL double
#define SES_VITERBI(name) ses_viterbi64_##name
#include "viterbi_body.h"
#undef SES_VITERBI_REAL
#undef SES_VITERBI

typedef struct ses_unigram {
    ses_trie trie;    /* pieces; values are ids */
    char *byte;       /* all pieces concatenated */
    uint32_t *start;  /* [n + 1] */
    double *score;    /* [n] log probabilities; score[-1] is -INFINITY */
    int32_t n;        /* number of pieces */
    int32_t unk_id;   /* -1: none */
    double unk_score; /* score of a character that no piece covers */
    bool byte_fallback;
    int32_t byte_id[256]; /* ids of <0x00> to <0xFF>; -1: not in the vocabulary */
    ses_viterbi64_pieces pieces;
} ses_unigram;

/* Append the tokens of the best segmentation of n bytes to out. Consecutive unknown characters become one
 * token. */
bool ses_unigram_encode(const ses_unigram *m, const char *word, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e);

#endif
