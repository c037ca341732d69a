/* A Unigram model, for its own stage and for the fast paths that know it. */
#ifndef SES_TEXT_UNIGRAM_H
#define SES_TEXT_UNIGRAM_H

#include "text/stage.h"
#include "trie.h"

#define SES_VITERBI_REAL double
#define SES_VITERBI(name) ses_viterbi64_##name
#include "viterbi_body.h"
#undef SES_VITERBI_REAL
#undef SES_VITERBI

typedef struct ses_unigram {
    ses_trie trie;    /* pieces; values are ids */
    char *byte;       /* the pieces end to end */
    uint32_t *start;  /* [n + 1] */
    double *score;    /* [n] log probabilities; score[-1] is -INFINITY */
    int32_t n;        /* pieces */
    int32_t unk_id;   /* -1: none */
    double unk_score; /* of a character no piece covers */
    bool byte_fallback;
    int32_t byte_id[256]; /* of <0x00> to <0xFF>, -1: none */
    ses_viterbi64_pieces pieces;
} ses_unigram;

/* The best way to cut n bytes into pieces: tokens appended to out, unknown characters in a row as one. */
bool ses_unigram_encode(const ses_unigram *m, const char *word, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e);

#endif
