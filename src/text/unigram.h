/* A Unigram model, for its own stage and for the fast paths that know it. */
#ifndef SES_TEXT_UNIGRAM_H
#define SES_TEXT_UNIGRAM_H

#include "stage.h"
#include "trie.h"

typedef struct ses_unigram_alone {
    double score;
    uint32_t id;
} ses_unigram_alone;

typedef struct ses_unigram {
    ses_trie trie;    /* pieces; values are ids */
    char *byte;       /* the pieces end to end */
    uint32_t *start;  /* [n + 1] */
    double *score;    /* [n] log probabilities; score[-1] is -INFINITY */
    int32_t n;        /* pieces */
    int32_t unk_id;   /* -1: none */
    double unk_score; /* of a character no piece covers */
    bool byte_fallback;
    int32_t byte_id[256];         /* of <0x00> to <0xFF>, -1: none */
    const uint64_t *pair;         /* ses_trie_pairs; NULL: not used */
    ses_unigram_alone alone[128]; /* characters of ASCII as pieces, or unknown */
} ses_unigram;

/* The best way to cut n bytes into pieces: tokens appended to out, unknown characters in a row as one. */
bool ses_unigram_encode(const ses_unigram *m, const char *word, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e);

#endif
