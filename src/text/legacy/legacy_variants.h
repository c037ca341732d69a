/* Rows that tell the members of the old families apart. */
#ifndef SES_TEXT_OLD_ROWS_H
#define SES_TEXT_OLD_ROWS_H

#include "legacy.h"

typedef enum {
    SES_OLD_PLAIN,    /* nothing is added */
    SES_OLD_TEMPLATE, /* single and pair */
    SES_OLD_ROBERTA,  /* RobertaProcessing */
    SES_OLD_BOS       /* the first token in front, when add_bos_token asks for it */
} ses_old_post;

/* Special tokens by role (NULL: none) and what is put around a text. In templates B, E, U, S, P, C, M
 * stand for the tokens of the roles. */
typedef struct ses_old_roles {
    const char *bos, *eos, *unk, *sep, *pad, *cls, *mask;
    bool mask_lstrip; /* the mask takes the space in front of it */
    ses_old_post post;
    const char *single, *pair;
} ses_old_roles;

/* Their tokens, `also` (parted by blanks) and those the folder lists, collected and written. */
bool ses_old_write_roles(ses_old *o, const ses_old_roles *r, const char *also, ses_err *e);
bool ses_old_write_post(ses_old *o, const ses_old_roles *r, ses_err *e);

typedef struct ses_old_replace {
    bool regex;
    const char *from, *to; /* NULL ends a list */
} ses_old_replace;

/* BPE of words with an end mark. */
typedef struct ses_old_word_row {
    ses_old_roles roles;
    ses_old_lines lines;                    /* of merges.txt */
    const ses_old_replace *replace;         /* done before the normalizer; NULL: nothing */
    const char *normalizer, *pre_tokenizer; /* their JSON */
    const char *words;                      /* in place of a pre-tokenizer: the pattern that finds words */
    bool at_signs;                          /* vocab.json says "ab@@" inside words and nothing at their end */
    const char *also;                       /* more special tokens */
} ses_old_word_row;

extern const ses_old_replace ses_old_moses_replace[];
extern const char ses_old_moses_words[];

typedef enum {
    SES_OLD_MAP,        /* the model's character map */
    SES_OLD_MAP_SPACES, /* and runs of spaces become one */
    SES_OLD_QUOTES,     /* quotes, accents and case first (ALBERT, XLNet) */
    SES_OLD_STRIPPED    /* case, blanks at the ends, the map, runs of spaces (DeBERTa) */
} ses_old_norm;

/* A SentencePiece model with the ids of its pieces shifted. */
typedef struct ses_old_spm_row {
    const char *file;
    ses_old_roles roles;
    const char *front; /* tokens put before the pieces, parted by blanks */
    int skip;          /* pieces left out at the begin */
    const char *back;  /* tokens put after them */
    int unk;           /* id of the unknown token; -1: the model's */
    ses_old_norm norm;
    bool lower;       /* do_lower_case where the settings do not say */
    bool whitespace;  /* WhitespaceSplit before Metaspace */
    bool no_commas;   /* pieces of a digit and a comma are kept from being used */
    int extra_ids;    /* sentinels <extra_id_N-1> to <extra_id_0> at the end */
    bool plain;       /* settings are the model's own */
    const char *also; /* more special tokens */
    const char *lang; /* language put into the template as L, where the settings name none */
} ses_old_spm_row;

#endif
