/* Tokenizers from before tokenizer.json: what the files of a folder say, and writing it as one
 * tokenizer.json in the stages of the reference, as its converters do. One file old_NAME.c a family of
 * models, rows in legacy_families.c. */
#ifndef SES_TEXT_OLD_H
#define SES_TEXT_OLD_H

#include "base/arena.h"
#include "base/strmap.h"
#include "sesame/json.h"
#include "text/spm/spm_to_json.h"
#include "text/vocab/vocab.h"

/* A token that is found in the text before anything else. */
typedef struct ses_legacy_token {
    ses_string content;
    bool lstrip, rstrip, single_word, normalized, special;
    int64_t id; /* -1: the vocabulary's, or the next one free */
} ses_legacy_token;

enum { SES_LEGACY_DOCS = 4 };

typedef struct ses_legacy_converter {
    const char *dir;
    const char *file; /* of the vocabulary, when it is given; NULL: the family's own name for it */
    bool portable;    /* in the reference's stages, even where others are more exact */
    ses_arena mem;
    ses_json_doc *doc[SES_LEGACY_DOCS];
    const ses_json *config;   /* config.json; NULL when there is none, and so below */
    const ses_json *settings; /* tokenizer_config.json */
    const ses_json *special;  /* special_tokens_map.json */
    const ses_json *added;    /* added_tokens.json */
    ses_vocab vocab;          /* the model's, filled by the family */
    ses_legacy_token *token;
    size_t n_tokens, cap_tokens;
    ses_strmap by_name; /* place of each in token */
    ses_string lang;    /* language code that stands in the template; p NULL: none */
    ses_json_writer *w;
} ses_legacy_converter;

typedef struct ses_legacy_family ses_legacy_family;
struct ses_legacy_family {
    const char *classes; /* names of its tokenizer_class, "T5Tokenizer", without "Fast" */
    const char *types;   /* names of its model_type in config.json */
    bool (*write)(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
    const void *row; /* what tells members of a family apart */
};

/* Which family a folder's files belong to; NULL and the reason when that cannot be told. */
const ses_legacy_family *ses_legacy_find(const ses_legacy_converter *o, ses_err *e);
extern const ses_legacy_family ses_legacy_bert,
    ses_legacy_plain; /* a vocab.txt and a .model without anything else */

bool ses_legacy_open(ses_legacy_converter *o, const char *dir, ses_err *e);
void ses_legacy_free(ses_legacy_converter *o);

/* ---- files ---- */

bool ses_legacy_has_file(const ses_legacy_converter *o, const char *name);
char *ses_legacy_read_file(const ses_legacy_converter *o, const char *name, size_t *n,
                           ses_err *e); /* ses_free */

/* ---- settings, from tokenizer_config.json ---- */

bool ses_legacy_get_bool(const ses_legacy_converter *o, const char *key, bool def);
int64_t ses_legacy_get_int(const ses_legacy_converter *o, const char *key, int64_t def);
/* The token of a role ("mask_token"): as special_tokens_map.json or tokenizer_config.json name it, else
 * def; p NULL when it is null there, or def is. */
ses_string ses_legacy_role_token(const ses_legacy_converter *o, const char *role, const char *def);

/* ---- added tokens ---- */

/* Those of a role, with what the files say of them; of this default otherwise. */
bool ses_legacy_add_role(ses_legacy_converter *o, const char *role, const char *def, bool lstrip, ses_err *e);
bool ses_legacy_add(ses_legacy_converter *o, ses_string content, bool lstrip, bool special, ses_err *e);
bool ses_legacy_add_special(ses_legacy_converter *o, const char *words,
                            ses_err *e); /* special, parted by blanks; NULL: none */
/* Those other files list (additional_special_tokens, added_tokens.json, added_tokens_decoder). */
bool ses_legacy_add_listed(ses_legacy_converter *o, ses_err *e);
int64_t ses_legacy_token_id(const ses_legacy_converter *o,
                            ses_string token); /* of the vocabulary or an added one; -1: none */
/* Number the tokens the vocabulary lacks; write "added_tokens". */
bool ses_legacy_write_tokens(ses_legacy_converter *o, ses_err *e);

/* ---- writing ---- */

bool ses_legacy_begin_json(ses_legacy_converter *o, ses_err *e);
/* A member, from its text; key NULL: an element. */
bool ses_legacy_put_json(ses_legacy_converter *o, const char *key, const char *json, ses_err *e);
/* Template: "<s> $A:0 </s>", "... $B:1 ..."; a name stands for the token, types are 0 where not said. */
bool ses_legacy_put_template(ses_legacy_converter *o, const char *single, const char *pair, ses_err *e);
void ses_legacy_end_json(ses_legacy_converter *o);
/* Stages one after another, put in between; `stages` is what a Sequence of that kind calls its list. */
void ses_legacy_begin_sequence(ses_legacy_converter *o, const char *key, const char *stages);
void ses_legacy_end_sequence(ses_legacy_converter *o);

/* ---- parts that several families use ---- */

/* {"token": id} of vocab.json into o->vocab. */
bool ses_legacy_read_vocab(ses_legacy_converter *o, const char *name, ses_err *e);

/* merges.txt. A line must be two parts and a space between; or, words: what Python's split() makes of
 * it, when that is two parts, or the first two. */
typedef enum {
    SES_LEGACY_MERGES_STRICT,
    SES_LEGACY_MERGES_TWO_WORDS,
    SES_LEGACY_MERGES_FIRST_WORDS
} ses_legacy_merge_format;

typedef struct ses_legacy_merges {
    char *text;
    ses_string (*pair)[2];
    size_t n;
} ses_legacy_merges;
bool ses_legacy_read_merges(ses_legacy_converter *o, ses_legacy_merge_format lines, ses_legacy_merges *m,
                            ses_err *e);
void ses_legacy_merges_free(ses_legacy_merges *m);

bool ses_legacy_write_wordpiece(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_byte_bpe(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_word_bpe(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_spm(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_marian(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);

#endif
