/* Stages: the steps of a tokenizer, named as in tokenizer.json. One stage is one file and one line in
 * stages.def. A stage is opened from its JSON settings by one validating constructor (there is no second way
 * to build one), is read-only afterwards, and can write its settings back. */
#ifndef SES_TEXT_STAGE_H
#define SES_TEXT_STAGE_H

#include "base/arena.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

/* ---- text on its way to tokens ---- */

/* Bytes, and for each byte the range of the input it came from: the reference's NormalizedString. All bytes
 * of one character share one range; a character a normalizer inserts shares its predecessor's (before the
 * very first character of the part it works on: the empty range at `base`). */
typedef struct ses_text {
    char *byte;       /* valid UTF-8 */
    ses_offset *from; /* [n] ranges of the input, in bytes */
    size_t n, cap;
    uint32_t base; /* where in the input the part given to a normalizer began; the runner sets it */
} ses_text;

/* A part of a text: to be worked on, or (id >= 0) an added token already. */
typedef struct ses_piece {
    uint32_t begin, end; /* bytes of the text */
    int32_t id;
} ses_piece;

/* What pre-tokenizers work on: a text cut into consecutive pieces, in order, none empty. Bytes between pieces
 * were dropped (white space, say). Added tokens (id >= 0) may overlap their neighbors, as the reference's do.
 * A piece began, in the input, at from[begin].begin. */
typedef struct ses_pieces {
    ses_text text;
    ses_piece *piece;
    size_t n, cap;
} ses_pieces;

/* A token the model found in a piece: bytes [begin, end) of the piece. */
typedef struct ses_token {
    int32_t id;
    uint32_t begin, end;
} ses_token;

typedef struct ses_token_list {
    ses_token *token;
    size_t n, cap;
} ses_token_list;

/* Growing, in text_buffers.c. All fail only for memory or sizes past 2 GiB. */
/* n bytes, all from one range of the original. */
bool ses_text_put(ses_text *t, const char *bytes, size_t n, ses_offset from, ses_err *e);
/* Each character from itself, the first from `at` on. */
bool ses_text_put_self(ses_text *t, const char *bytes, size_t n, size_t at, ses_err *e);
/* src[begin, end), each byte with the range it has there. */
bool ses_text_copy(ses_text *t, const ses_text *src, size_t begin, size_t end, ses_err *e);
void ses_text_free(ses_text *t);
bool ses_pieces_put(ses_pieces *p, uint32_t begin, uint32_t end, int32_t id, ses_err *e);
void ses_pieces_free(ses_pieces *p);
bool ses_token_list_put(ses_token_list *l, int32_t id, size_t begin, size_t end, ses_err *e);

/* Room for n more, ahead of writing in place: the caller sets byte, from and n (or piece, token and n). */
bool ses_text_reserve(ses_text *t, size_t n, ses_err *e);
bool ses_pieces_reserve(ses_pieces *p, size_t n, ses_err *e);
bool ses_token_list_reserve(ses_token_list *l, size_t n, ses_err *e);
void ses_token_list_free(ses_token_list *l);

/* ---- stages ---- */

typedef enum {
    SES_NORMALIZER,
    SES_PRE_TOKENIZER,
    SES_MODEL_STAGE,
    SES_POST_PROCESSOR,
    SES_DECODER,
    SES_STAGE_KINDS
} ses_stage_kind;

typedef struct ses_stage ses_stage;

/* A stage with its settings. */
typedef struct ses_stage_instance {
    const ses_stage *stage;
    void *self; /* made by open, on the tokenizer's arena */
} ses_stage_instance;

/* What a post-processor assembles: who stands where. */
typedef enum { SES_TEMPLATE_A, SES_TEMPLATE_B, SES_TEMPLATE_SPECIAL } ses_template_item_kind;

typedef struct ses_template_item {
    ses_template_item_kind kind;
    int32_t id; /* of a special token */
    uint8_t type_id;
    ses_string name; /* of a special token: the template's word for it, which need not be the vocabulary's */
} ses_template_item;

typedef struct ses_post_template { /* owned by the stage */
    const ses_template_item *item;
    size_t n;
    /* With special tokens, types hold for overflowing parts too; else those keep 0 for A and 1 for B. */
    bool types_in_overflow;
} ses_post_template;

/* Tokens on their way back to text: strings that decoders rewrite, split or join. */
typedef struct ses_strings {
    ses_string *string;
    size_t n, cap;
    ses_arena mem; /* rewritten strings */
} ses_strings;

bool ses_strings_put(ses_strings *s, const char *p, size_t n, ses_err *e); /* p is borrowed */

struct ses_stage {
    const char *type; /* "BertNormalizer" */
    ses_stage_kind kind;

    /* Settings in, self out, on mem (freed as a whole); NULL and a reason that names the key. `self` may be
     * any non-NULL pointer for a stage without settings. */
    void *(*open)(const ses_json *settings, ses_arena *mem, ses_err *e);
    void (*close)(void *self);                          /* NULL when nothing but mem is held */
    void (*save)(const void *self, ses_json_writer *w); /* the members of its object but "type"; NULL: none */

    /* A Sequence: its steps, run one after the other by the runner; it needs no function of its kind. */
    const ses_stage_instance *(*steps)(const void *self, size_t *n);

    /* Normalizer: append the normal form of in[begin, end) to out. Never looks outside the range. */
    bool (*normalize)(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e);

    /* Pre-tokenizer: cut or edit every piece with id < 0 of in, append all pieces to out (out->text too). */
    bool (*split)(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e);

    /* Model: the tokens of one piece. No state, safe for several threads. scratch is the caller's, reused. */
    bool (*tokenize)(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e);
    int64_t (*size)(const void *self);  /* ids run below this */
    int64_t (*count)(const void *self); /* entries: added tokens are numbered from here; NULL: size */
    const char *(*token)(const void *self, int32_t id, size_t *n);
    int32_t (*id)(const void *self, const char *token, size_t n);
    int32_t (*text_named_id)(
        const void *self); /* the id whose tokens are called by their text (Unigram's unknown);
                                             -1: none. May be NULL */
    bool (*has_subword_prefix)(
        const void *self); /* tokens inside a word begin with a mark ("##"); NULL: they do not */

    /* Post-processor: the template for one text and for two (NULL: A, then B with type 1), and whether it
     * leaves blanks at tokens' ends out of their ranges (NULL: it does not); *prefix_space: see trim_offsets.h. */
    ses_post_template (*post_template)(const void *self, bool pair);
    bool (*trims_offsets)(const void *self, bool *prefix_space);

    /* Decoder: rewrite the strings in place. */
    bool (*decode)(const void *self, ses_strings *s, ses_err *e);
};

#define SES_STAGE(name) extern const ses_stage ses_stage_##name;
#include "stages.def"
#undef SES_STAGE

/* Settings by key, for open: an absent key (or null) gives the default; one of another type, or out of range,
 * is an error that names it. A string without default (NULL) is required; it is copied to mem. */
bool ses_setting_bool(const ses_json *settings, const char *key, bool def, bool *out, ses_err *e);
bool ses_setting_int(const ses_json *settings, const char *key, int64_t def, int64_t min, int64_t max,
                     int64_t *out, ses_err *e);
bool ses_setting_string(const ses_json *settings, const char *key, const char *def, ses_arena *mem,
                        ses_string *out, ses_err *e);
bool ses_setting_absent(const ses_json *settings, const char *key); /* no such key, or null */

/* Open the stage an object of tokenizer.json describes ({"type": ...}); null gives a step with stage NULL. */
bool ses_stage_instance_open(ses_stage_instance *step, ses_stage_kind kind, const ses_json *settings,
                             ses_arena *mem, ses_err *e);
void ses_stage_instance_close(ses_stage_instance *step);
void ses_stage_instance_save(const ses_stage_instance *step,
                             ses_json_writer *w); /* the whole object, or null */

#endif
