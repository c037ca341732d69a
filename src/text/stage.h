/* Stages of a tokenizer, named as in tokenizer.json: normalizers, pre-tokenizers, models, post-processors,
 * decoders. Each stage is one file in stage/ and one line in stages.def. A stage is opened from its JSON
 * settings, which are validated, and can write them back. It is read-only after opening and may be shared
 * between threads. Its memory belongs to the tokenizer's arena. */
#ifndef SES_TEXT_STAGE_H
#define SES_TEXT_STAGE_H

#include "base/arena.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

/* ---- intermediate results ---- */

/* Text with source offsets, like NormalizedString of Hugging Face Tokenizers: for each byte, the range of
 * the input it came from. All bytes of a character share one range. A character inserted by a normalizer
 * has the range of its predecessor; at the start of the normalized part, the empty range at `base`. */
typedef struct ses_text {
    char *byte;       /* valid UTF-8 */
    ses_offset *from; /* [n] byte ranges of the input */
    size_t n, cap;
    uint32_t base; /* input offset of the part being normalized; set by the caller of the normalizer */
} ses_text;

/* A part of a text that is still to be encoded, or an added token (id >= 0). */
typedef struct ses_piece {
    uint32_t begin, end; /* byte range of the text */
    int32_t id;
} ses_piece;

/* Input and output of pre-tokenizers: a text split into pieces, in order, none empty. Bytes between pieces
 * were removed (white space, for example). Added tokens (id >= 0) may overlap their neighbors, as in HF
 * Tokenizers. A piece starts at from[begin].begin in the input. */
typedef struct ses_pieces {
    ses_text text;
    ses_piece *piece;
    size_t n, cap;
} ses_pieces;

/* A token found by the model: byte range [begin, end) of the piece. */
typedef struct ses_token {
    int32_t id;
    uint32_t begin, end;
} ses_token;

typedef struct ses_token_list {
    ses_token *token;
    size_t n, cap;
} ses_token_list;

/* Append functions (text_buffers.c). They fail only for lack of memory or sizes over 2 GiB. */
/* Append n bytes that all have the source range `from`. */
bool ses_text_put(ses_text *t, const char *bytes, size_t n, ses_offset from, ses_err *e);
/* Append n bytes with each character as its own source; the first is at input offset `at`. */
bool ses_text_put_self(ses_text *t, const char *bytes, size_t n, size_t at, ses_err *e);
/* Append src[begin, end) with its source ranges. */
bool ses_text_copy(ses_text *t, const ses_text *src, size_t begin, size_t end, ses_err *e);
void ses_text_free(ses_text *t);
bool ses_pieces_put(ses_pieces *p, uint32_t begin, uint32_t end, int32_t id, ses_err *e);
void ses_pieces_free(ses_pieces *p);
bool ses_token_list_put(ses_token_list *l, int32_t id, size_t begin, size_t end, ses_err *e);

/* Capacity for n more elements. The caller then writes the elements and updates n itself. */
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
    void *self; /* made by open() on the tokenizer's arena */
} ses_stage_instance;

/* Template of a post-processor: the order of the two texts (A, B) and the special tokens. */
typedef enum { SES_TEMPLATE_A, SES_TEMPLATE_B, SES_TEMPLATE_SPECIAL } ses_template_item_kind;

typedef struct ses_template_item {
    ses_template_item_kind kind;
    int32_t id; /* special tokens only */
    uint8_t type_id;
    ses_string name; /* special tokens only: its name in the template, which may differ from the vocabulary */
} ses_template_item;

typedef struct ses_post_template { /* owned by the stage */
    const ses_template_item *item;
    size_t n;
    /* Type ids apply to overflowing parts too if special tokens are added; else A has 0 and B has 1 there. */
    bool types_in_overflow;
} ses_post_template;

/* Input and output of decoders: token strings, which decoders rewrite, split or join. */
typedef struct ses_strings {
    ses_string *string;
    size_t n, cap;
    ses_arena mem; /* holds rewritten strings */
} ses_strings;

bool ses_strings_put(ses_strings *s, const char *p, size_t n, ses_err *e); /* p is borrowed */

struct ses_stage {
    const char *type; /* "BertNormalizer" */
    ses_stage_kind kind;

    /* Constructor: validates the settings and returns `self`, allocated on mem. Returns NULL on failure,
     * with an error that names the key. A stage without settings may return any non-NULL pointer. */
    void *(*open)(const ses_json *settings, ses_arena *mem, ses_err *e);
    void (*close)(void *self); /* NULL: all memory is on mem */
    /* writes the settings as members of the stage's object, except "type"; NULL: no settings */
    void (*save)(const void *self, ses_json_writer *w);

    /* Sequence only: its stages, which the caller runs in order. A Sequence has no function of its kind. */
    const ses_stage_instance *(*steps)(const void *self, size_t *n);

    /* Normalizer: append the normalized form of in[begin, end) to out. Must not read outside the range. */
    bool (*normalize)(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e);

    /* Normalizer: false if normalize would copy these n bytes with their source ranges; may stop at the first
     * change. NULL: unknown. */
    bool (*changes)(const void *self, const char *p, size_t n);

    /* Pre-tokenizer: split or edit every piece of `in` with id < 0; append all pieces and their text to
     * out. A stage that only splits leaves out->text empty: the pieces refer to the text of `in`. */
    bool (*split)(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e);

    /* Model: append the tokens of one piece. Stateless and thread-safe. scratch belongs to the caller and
     * is reused. */
    bool (*tokenize)(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e);
    int64_t (*size)(const void *self);  /* exclusive upper bound of ids */
    int64_t (*count)(const void *self); /* number of entries: added tokens get ids from here on; NULL: size */
    const char *(*token)(const void *self, int32_t id, size_t *n);
    int32_t (*id)(const void *self, const char *token, size_t n);
    /* id whose token string is the source text (the unknown token of Unigram); -1: none; may be NULL */
    int32_t (*text_named_id)(const void *self);
    /* tokens inside a word start with a prefix ("##"); NULL: they do not */
    bool (*has_subword_prefix)(const void *self);

    /* Post-processor: template for one text and for a pair (NULL: A, then B with type id 1); whether token
     * offsets exclude spaces (NULL: no) and, in *prefix_space, add_prefix_space. See trim_offsets.h. */
    ses_post_template (*post_template)(const void *self, bool pair);
    bool (*trims_offsets)(const void *self, bool *prefix_space);

    /* Decoder: modify the strings. */
    bool (*decode)(const void *self, ses_strings *s, ses_err *e);
};

#define SES_STAGE(name) extern const ses_stage ses_stage_##name;
#include "stages.def"
#undef SES_STAGE

/* Read one setting. A missing or null key yields the default; a wrong type or a value out of range is an
 * error that names the key. A string with default NULL is required. Strings are copied to mem. */
bool ses_setting_bool(const ses_json *settings, const char *key, bool def, bool *out, ses_err *e);
bool ses_setting_int(const ses_json *settings, const char *key, int64_t def, int64_t min, int64_t max,
                     int64_t *out, ses_err *e);
bool ses_setting_string(const ses_json *settings, const char *key, const char *def, ses_arena *mem,
                        ses_string *out, ses_err *e);
bool ses_setting_absent(const ses_json *settings, const char *key); /* missing or null */

/* Open the stage described by an object of tokenizer.json ({"type": ...}). null yields an instance with
 * stage NULL. */
bool ses_stage_instance_open(ses_stage_instance *step, ses_stage_kind kind, const ses_json *settings,
                             ses_arena *mem, ses_err *e);
void ses_stage_instance_close(ses_stage_instance *step);
/* writes the whole object, or null */
void ses_stage_instance_save(const ses_stage_instance *step, ses_json_writer *w);

#endif
