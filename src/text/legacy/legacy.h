/* Legacy tokenizers, stored in formats older than tokenizer.json: reads the files of a folder and writes
 * the tokenizer.json that the converters of transformers would write. One file legacy_NAME.c per family;
 * the variants are in legacy_families.c. A converter belongs to one thread; ses_legacy_free frees
 * everything. */
#ifndef SES_TEXT_LEGACY_H
#define SES_TEXT_LEGACY_H

#include "base/arena.h"
#include "base/strmap.h"
#include "sesame/json.h"
#include "text/spm/spm_to_json.h"
#include "text/vocab/vocab.h"

/* An added token. */
typedef struct ses_legacy_token {
    ses_string content;
    bool lstrip, rstrip, single_word, normalized, special;
    int64_t id; /* -1: its id in the vocabulary, or the next free id */
} ses_legacy_token;

enum { SES_LEGACY_DOCS = 4 };

typedef struct ses_legacy_converter {
    const char *dir;
    const char *file; /* vocabulary file if given explicitly; NULL: the family's default name */
    bool target;      /* the tokenizer of the target language, if the folder has two */
    bool portable;    /* write only stages of HF Tokenizers, even if Sesame's own stages are more exact */
    ses_arena mem;
    ses_json_doc *doc[SES_LEGACY_DOCS];
    const ses_json *config;   /* config.json; NULL: not present, as for the next three */
    const ses_json *settings; /* tokenizer_config.json */
    const ses_json *special;  /* special_tokens_map.json */
    const ses_json *added;    /* added_tokens.json */
    ses_vocab vocab;          /* filled by the family */
    ses_legacy_token *token;
    size_t n_tokens, cap_tokens;
    ses_strmap by_name; /* index in token */
    ses_string lang;    /* language code of the template; p NULL: none */
    ses_json_writer *w;
} ses_legacy_converter;

typedef struct ses_legacy_family ses_legacy_family;
struct ses_legacy_family {
    const char *classes; /* values of tokenizer_class without "Fast", separated by spaces: "T5Tokenizer" */
    const char *types;   /* values of model_type in config.json, separated by spaces */
    bool (*write)(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
    const void *variant; /* the variant of the family */
};

/* The family of a folder's files. NULL, with an error, if it cannot be determined. */
const ses_legacy_family *ses_legacy_find(const ses_legacy_converter *o, ses_err *e);
extern const ses_legacy_family ses_legacy_bert, ses_legacy_plain; /* for a single vocab.txt or .model file */

bool ses_legacy_open(ses_legacy_converter *o, const char *dir, ses_err *e);
void ses_legacy_free(ses_legacy_converter *o);

/* ---- files ---- */

bool ses_legacy_has_file(const ses_legacy_converter *o, const char *name);
/* free with ses_free */
char *ses_legacy_read_file(const ses_legacy_converter *o, const char *name, size_t *n, ses_err *e);

/* ---- settings, from tokenizer_config.json ---- */

bool ses_legacy_get_bool(const ses_legacy_converter *o, const char *key, bool def);
int64_t ses_legacy_get_int(const ses_legacy_converter *o, const char *key, int64_t def);
/* The token of a role ("mask_token") from special_tokens_map.json or tokenizer_config.json, else def. p
 * NULL: null in the file, or def is NULL. */
ses_string ses_legacy_role_token(const ses_legacy_converter *o, const char *role, const char *def);

/* ---- added tokens ---- */

/* Add the token of a role, with the flags given in the files; else with these defaults. */
bool ses_legacy_add_role(ses_legacy_converter *o, const char *role, const char *def, bool lstrip, ses_err *e);
bool ses_legacy_add(ses_legacy_converter *o, ses_string content, bool lstrip, bool special, ses_err *e);
/* special tokens separated by spaces; NULL: none */
bool ses_legacy_add_special(ses_legacy_converter *o, const char *words, ses_err *e);
/* Add the tokens listed in additional_special_tokens, added_tokens.json and added_tokens_decoder. */
bool ses_legacy_add_listed(ses_legacy_converter *o, ses_err *e);
/* in the vocabulary or among added tokens; -1: none */
int64_t ses_legacy_token_id(const ses_legacy_converter *o, ses_string token);
/* Assign ids to tokens that are not in the vocabulary; write "added_tokens". */
bool ses_legacy_write_tokens(ses_legacy_converter *o, ses_err *e);

/* ---- writing ---- */

bool ses_legacy_begin_json(ses_legacy_converter *o, ses_err *e);
/* Write a member from its JSON text; key NULL: an array element. */
bool ses_legacy_put_json(ses_legacy_converter *o, const char *key, const char *json, ses_err *e);
/* Templates such as "<s> $A:0 </s>" and "... $B:1 ...": token names and type ids; the default type id is
 * 0. */
bool ses_legacy_put_template(ses_legacy_converter *o, const char *single, const char *pair, ses_err *e);
void ses_legacy_end_json(ses_legacy_converter *o);
/* Write the stages of a Sequence between these two calls. stages: the key of its list. */
void ses_legacy_begin_sequence(ses_legacy_converter *o, const char *key, const char *stages);
void ses_legacy_end_sequence(ses_legacy_converter *o);

/* ---- shared by several families ---- */

/* Read {"token": id} from vocab.json into o->vocab. */
bool ses_legacy_read_vocab(ses_legacy_converter *o, const char *name, ses_err *e);

/* Format of merges.txt. STRICT: two parts separated by one space. TWO_WORDS: lines that Python's split()
 * splits into two parts. FIRST_WORDS: the first two parts. */
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

/* do_lower_case of a WordPiece tokenizer whose vocabulary is read. The default is true. For an original
 * TensorFlow checkpoint, the name of the folder decides (cased_L-12_H-768_A-12), then the vocabulary: capital
 * letters mean false. */
bool ses_legacy_lowercases(const ses_legacy_converter *o);

bool ses_legacy_write_wordpiece(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_byte_bpe(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_word_bpe(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_spm(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);
bool ses_legacy_write_marian(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e);

#endif
