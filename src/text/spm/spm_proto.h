/* Parser for SentencePiece model files (sentencepiece_model.proto, proto2). The result borrows the file's
 * bytes. Its contents are not validated; see ses_spm_check. */
#ifndef SES_TEXT_SPM_PROTO_H
#define SES_TEXT_SPM_PROTO_H

#include "sesame/tokenizer.h"

typedef enum {
    SES_SPM_NORMAL = 1,
    SES_SPM_UNKNOWN,
    SES_SPM_CONTROL,
    SES_SPM_USER_DEFINED,
    SES_SPM_UNUSED,
    SES_SPM_BYTE
} ses_spm_piece_type;

typedef enum { SES_SPM_UNIGRAM = 1, SES_SPM_BPE, SES_SPM_WORD, SES_SPM_CHAR } ses_spm_model_type;

typedef struct ses_spm_piece {
    ses_string piece;
    float score;
    ses_spm_piece_type type;
} ses_spm_piece;

typedef struct ses_spm_normalizer {
    ses_string charsmap;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
} ses_spm_normalizer;

typedef struct ses_spm {
    ses_spm_piece *piece;
    size_t n;
    ses_spm_model_type kind;
    bool byte_fallback, whitespace_as_suffix;
    /* Strings of the special pieces; their ids are the indices of the pieces. */
    ses_string unk_surface, unk, bos, eos, pad;
    ses_spm_normalizer normalizer, denormalizer;
} ses_spm;

/* Rejects group fields, checks all lengths, descends at most two levels. */
bool ses_spm_parse(ses_spm *m, const char *bytes, size_t n, ses_err *e);

/* Whether a regular file holds a model, by its content. */
bool ses_spm_is_file(const char *path);
/* The only such file of a folder, whatever its name is. False: none, or several. */
bool ses_spm_find_file(const char *dir, char name[static 256]);
void ses_spm_free(ses_spm *m);

#endif
