/* Variants: the differences between members of a legacy family. Static constant data. */
#ifndef SES_TEXT_LEGACY_VARIANTS_H
#define SES_TEXT_LEGACY_VARIANTS_H

#include "legacy.h"

typedef enum {
    SES_LEGACY_POST_NONE,     /* no special tokens */
    SES_LEGACY_POST_TEMPLATE, /* templates `single` and `pair` */
    SES_LEGACY_POST_ROBERTA,  /* RobertaProcessing */
    SES_LEGACY_POST_BOS       /* bos_token in front, if add_bos_token is set */
} ses_legacy_post;

/* Special tokens by role (NULL: none) and the template around a text. The letters B, E, U, S, P, C, M in
 * templates mean bos, eos, unk, sep, pad, cls, mask. */
typedef struct ses_legacy_roles {
    const char *bos, *eos, *unk, *sep, *pad, *cls, *mask;
    bool mask_lstrip; /* lstrip of the mask token */
    ses_legacy_post post;
    const char *single, *pair;
} ses_legacy_roles;

/* Collect the role tokens, `also` (separated by spaces) and the tokens listed in the folder, and write
 * them. */
bool ses_legacy_write_roles(ses_legacy_converter *o, const ses_legacy_roles *r, const char *also, ses_err *e);
bool ses_legacy_write_post(ses_legacy_converter *o, const ses_legacy_roles *r, ses_err *e);

typedef struct ses_legacy_replace {
    bool regex;
    const char *from, *to; /* NULL ends a list */
} ses_legacy_replace;

/* BPE with an end-of-word suffix. */
typedef struct ses_legacy_word_variant {
    ses_legacy_roles roles;
    ses_legacy_merge_format lines;          /* format of merges.txt */
    const ses_legacy_replace *replace;      /* applied before the normalizer; NULL: none */
    const char *normalizer, *pre_tokenizer; /* as JSON */
    const char *words;                      /* instead of a pre-tokenizer: pattern that matches words */
    bool at_signs;    /* vocab.json has "ab@@" inside words and no suffix at their end */
    const char *also; /* additional special tokens */
} ses_legacy_word_variant;

extern const ses_legacy_replace ses_legacy_moses_replace[];
extern const char ses_legacy_moses_words[];

typedef enum {
    SES_LEGACY_NORM_CHARSMAP,        /* the model's character map */
    SES_LEGACY_NORM_CHARSMAP_SPACES, /* and collapse runs of spaces */
    SES_LEGACY_NORM_QUOTES,          /* first normalize quotes, accents and case (ALBERT, XLNet) */
    SES_LEGACY_NORM_LOWER_STRIP      /* lower case, trim, character map, collapse runs of spaces (DeBERTa) */
} ses_legacy_norm;

/* A SentencePiece model with shifted ids. */
typedef struct ses_legacy_spm_variant {
    const char *file;
    ses_legacy_roles roles;
    const char *front; /* tokens before the pieces, separated by spaces */
    int skip;          /* number of leading pieces to skip */
    const char *back;  /* tokens after the pieces */
    int unk;           /* id of the unknown token; -1: the model's */
    ses_legacy_norm norm;
    bool lower;       /* default of do_lower_case */
    bool whitespace;  /* WhitespaceSplit before Metaspace */
    bool no_commas;   /* never use pieces that end in a digit and a comma */
    int extra_ids;    /* sentinels <extra_id_N-1> to <extra_id_0> at the end */
    bool plain;       /* all settings come from the model */
    const char *also; /* additional special tokens */
    const char *lang; /* default language, L in the template */
} ses_legacy_spm_variant;

#endif
