/* A SentencePiece model's pieces, for the files that encode with them. */
#ifndef SES_TEXT_SPM_MODEL_H
#define SES_TEXT_SPM_MODEL_H

#include "spm_proto.h"
#include "text/stage.h"
#include "text/vocab/merges.h"
#include "text/vocab/trie.h"

#define SES_VITERBI_REAL float
#define SES_VITERBI(name) ses_viterbi32_##name
#include "text/vocab/viterbi_body.h"
#undef SES_VITERBI_REAL
#undef SES_VITERBI

typedef struct ses_spm_model {
    ses_spm_model_type kind;
    bool byte_fallback;
    int32_t n; /* pieces */
    char *byte;
    uint32_t *start; /* [n + 1] */
    float *score;    /* [n] as in the file */
    uint8_t *type;   /* [n] ses_spm_piece_type */
    ses_trie trie;   /* all pieces; values are ids */
    ses_trie user;   /* user-defined ones */
    int32_t unk_id;
    int32_t byte_id[256];

    bool renamed;    /* ids are those of a vocabulary of its own (Marian) */
    ses_vocab vocab; /* that one */
    int32_t *outer;  /* [n] the vocabulary's ids of the pieces */
    ses_string unk;  /* its unknown token */
    int32_t outer_unk;

    float *weight; /* [n] unigram: -INFINITY unless normal or user-defined; weight[-1] too */
    float unk_score;
    ses_viterbi32_pieces pieces;

    ses_merges merges; /* BPE; a character that is no piece has an id from n on */
    ses_vocab chars;   /* those characters */
    uint8_t *unused;   /* [n] pieces to be taken apart again; NULL: there are none */
} ses_spm_model;

/* Cut normalized text into pieces: tokens appended to out; characters no piece covers have the
 * unknown's id. */
bool ses_spm_unigram_open(ses_spm_model *m, ses_arena *mem, ses_err *e);
bool ses_spm_unigram_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                            ses_arena *scratch, ses_err *e);
/* The same for a part of a text that no piece goes across the ends of: *sum is that of the best path to its
 * begin, then to its end. *gap: how far the next best path through the part lies behind, as summed; NULL: not
 * asked. */
bool ses_spm_unigram_encode_part(const ses_spm_model *m, const char *p, size_t n, float *sum, float *gap,
                                 ses_token_list *out, ses_arena *scratch, ses_err *e);
bool ses_spm_bpe_open(ses_spm_model *m, ses_arena *mem, ses_err *e);
bool ses_spm_bpe_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e);

/* Unknown stretches become bytes, or one token when they follow each other. */
bool ses_spm_resolve_unknown(const ses_spm_model *m, const char *p, const ses_token_list *raw,
                             ses_token_list *out, ses_err *e);

/* Bytes of the user-defined symbol (*user) or the character at p; n > 0. */
size_t ses_spm_next_symbol(const ses_spm_model *m, const char *p, size_t n, bool *user);

static inline size_t ses_spm_char_len(const char *p, size_t n) /* bytes of the character at p */
{
    unsigned char c = (unsigned char)*p;
    size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return len < n ? len : n;
}

#endif
