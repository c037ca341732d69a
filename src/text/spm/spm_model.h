/* The pieces of an opened SentencePiece model, shared by its encoders. On the tokenizer's arena,
 * read-only. */
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
    int32_t n; /* number of pieces */
    char *byte;
    uint32_t *start; /* [n + 1] */
    float *score;    /* [n] as in the file */
    uint8_t *type;   /* [n] ses_spm_piece_type */
    ses_trie trie;   /* all pieces; values are ids */
    ses_trie user;   /* user-defined pieces */
    int32_t unk_id;
    int32_t byte_id[256];

    bool renamed;    /* the output uses ids of a separate vocabulary (Marian) */
    ses_vocab vocab; /* the separate vocabulary */
    int32_t *outer;  /* [n] its ids of the pieces */
    ses_string unk;  /* its unknown token */
    int32_t outer_unk;

    /* [n] unigram: score, -INFINITY unless the piece is normal or user-defined; weight[-1] is
     * -INFINITY too */
    float *weight;
    float unk_score;
    ses_viterbi32_pieces pieces;

    ses_merges merges; /* BPE; characters that are not pieces have ids from n on */
    ses_vocab chars;   /* characters that are not pieces */
    uint8_t *unused;   /* [n] pieces of type unused, to be split again; NULL: none */
} ses_spm_model;

/* Append the tokens of normalized text to out. Characters that no piece covers get the unknown id. */
bool ses_spm_unigram_open(ses_spm_model *m, ses_arena *mem, ses_err *e);
bool ses_spm_unigram_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                            ses_arena *scratch, ses_err *e);
/* The same for a part of a text whose boundaries no piece crosses. *sum: sum of the best path up to its
 * start; updated to its end. *gap: difference to the second-best path through the part; NULL: not needed. */
bool ses_spm_unigram_encode_part(const ses_spm_model *m, const char *p, size_t n, float *sum, float *gap,
                                 ses_token_list *out, ses_arena *scratch, ses_err *e);
bool ses_spm_bpe_open(ses_spm_model *m, ses_arena *mem, ses_err *e);
bool ses_spm_bpe_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e);

/* Replace unknown spans by byte tokens, or consecutive ones by a single unknown token. */
bool ses_spm_resolve_unknown(const ses_spm_model *m, const char *p, const ses_token_list *raw,
                             ses_token_list *out, ses_err *e);

/* Length of the user-defined symbol (*user) or the character at p; n > 0. */
size_t ses_spm_next_symbol(const ses_spm_model *m, const char *p, size_t n, bool *user);

static inline size_t ses_spm_char_len(const char *p, size_t n) /* length of the character at p */
{
    unsigned char c = (unsigned char)*p;
    size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return len < n ? len : n;
}

#endif
