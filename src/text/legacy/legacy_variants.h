/* Rows that tell the members of the old families apart. */
#ifndef SES_TEXT_OLD_ROWS_H
#define SES_TEXT_OLD_ROWS_H

#include "legacy.h"

typedef enum {
    SES_LEGACY_POST_NONE,     /* nothing is added */
    SES_LEGACY_POST_TEMPLATE, /* single and pair */
    SES_LEGACY_POST_ROBERTA,  /* RobertaProcessing */
    SES_LEGACY_POST_BOS       /* the first token in front, when add_bos_token asks for it */
} ses_legacy_post;

/* Special tokens by role (NULL: none) and what is put around a text. In templates B, E, U, S, P, C, M
 * stand for the tokens of the roles. */
typedef struct ses_legacy_roles {
    const char *bos, *eos, *unk, *sep, *pad, *cls, *mask;
    bool mask_lstrip; /* the mask takes the space in front of it */
    ses_legacy_post post;
    const char *single, *pair;
} ses_legacy_roles;

/* Their tokens, `also` (parted by blanks) and those the folder lists, collected and written. */
bool ses_legacy_write_roles(ses_legacy_converter *o, const ses_legacy_roles *r, const char *also, ses_err *e);
bool ses_legacy_write_post(ses_legacy_converter *o, const ses_legacy_roles *r, ses_err *e);

typedef struct ses_legacy_replace {
    bool regex;
    const char *from, *to; /* NULL ends a list */
} ses_legacy_replace;

/* BPE of words with an end mark. */
typedef struct ses_legacy_word_variant {
    ses_legacy_roles roles;
    ses_legacy_merge_format lines;          /* of merges.txt */
    const ses_legacy_replace *replace;      /* done before the normalizer; NULL: nothing */
    const char *normalizer, *pre_tokenizer; /* their JSON */
    const char *words;                      /* in place of a pre-tokenizer: the pattern that finds words */
    bool at_signs;                          /* vocab.json says "ab@@" inside words and nothing at their end */
    const char *also;                       /* more special tokens */
} ses_legacy_word_variant;

extern const ses_legacy_replace ses_legacy_moses_replace[];
extern const char ses_legacy_moses_words[];

typedef enum {
    SES_LEGACY_NORM_CHARSMAP,        /* the model's character map */
    SES_LEGACY_NORM_CHARSMAP_SPACES, /* and runs of spaces become one */
    SES_LEGACY_NORM_QUOTES,          /* quotes, accents and case first (ALBERT, XLNet) */
    SES_LEGACY_NORM_LOWER_STRIP      /* case, blanks at the ends, the map, runs of spaces (DeBERTa) */
} ses_legacy_norm;

/* A SentencePiece model with the ids of its pieces shifted. */
typedef struct ses_legacy_spm_variant {
    const char *file;
    ses_legacy_roles roles;
    const char *front; /* tokens put before the pieces, parted by blanks */
    int skip;          /* pieces left out at the begin */
    const char *back;  /* tokens put after them */
    int unk;           /* id of the unknown token; -1: the model's */
    ses_legacy_norm norm;
    bool lower;       /* do_lower_case where the settings do not say */
    bool whitespace;  /* WhitespaceSplit before Metaspace */
    bool no_commas;   /* pieces of a digit and a comma are kept from being used */
    int extra_ids;    /* sentinels <extra_id_N-1> to <extra_id_0> at the end */
    bool plain;       /* settings are the model's own */
    const char *also; /* more special tokens */
    const char *lang; /* language put into the template as L, where the settings name none */
} ses_legacy_spm_variant;

#endif
