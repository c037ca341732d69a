/* Internals of the tokenizer: added tokens, fast paths, the tokenizer itself, the workspace of one thread.
 * The tokenizer is read-only after opening and shared between threads; a ses_encode_ctx belongs to one
 * thread.
 *
 * One call of ses_encode: encode.c validates the texts and encodes each of them into ses_encode_ctx.tokens,
 * with the tokenizer's fast path (fast/) or by stages (encode_by_stages.c). The stages split off added
 * tokens, normalize the rest, split it into pieces (pre-tokenizer) and run the model on each piece. Then
 * result.c truncates, and adds special tokens and padding. The workspace is called k, the tokenizer t. */
#ifndef SES_TEXT_TOKENIZER_IMPL_H
#define SES_TEXT_TOKENIZER_IMPL_H

#include "base/str.h"
#include "base/strmap.h"
#include "codepoint_offsets.h"
#include "stage.h"
#include "trim_offsets.h"

/* ---- added tokens (added_tokens.c) ---- */

typedef struct ses_added_token {
    ses_string content;
    /* Normalized content if `normalized` is set, else content. Decoding uses it too. */
    ses_string normalized_content;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} ses_added_token;

/* Trie over the bytes of the patterns. The children of a node are a linked list; the root has a table. */
typedef struct ses_trie_node {
    uint32_t child, sibling; /* 0: none */
    int32_t token;           /* index of the added token that ends at this node; -1: none */
    uint8_t byte;
} ses_trie_node;

typedef struct ses_matcher {
    uint32_t root[256]; /* node of a pattern's first byte; 0: none */
    ses_trie_node *node;
    uint32_t n;
} ses_matcher;

typedef struct ses_added {
    ses_added_token *token; /* in the order of the file */
    size_t n;
    int32_t *by_id; /* [n_ids] index of the added token with this id; -1: none */
    int64_t n_ids;
    ses_strmap by_name;
    ses_matcher raw, normal; /* patterns for the raw text and for the normalized text */
} ses_added;

/* A span of text: an added token, or the text between two of them. */
typedef struct ses_match {
    uint32_t begin, end;
    int32_t token; /* index in ses_added.token; -1: text between tokens */
} ses_match;

typedef struct ses_matches {
    ses_match *match;
    size_t n, cap;
} ses_matches;

struct ses_tokenizer;
bool ses_added_open(ses_added *a, const ses_json *list, const struct ses_tokenizer *t, ses_arena *mem,
                    ses_err *e);
void ses_added_close(ses_added *a);
void ses_added_save(const ses_added *a, ses_json_writer *w);
const ses_added_token *ses_added_by_id(const ses_added *a, int32_t id); /* NULL: not an added token */
const ses_added_token *ses_added_by_name(const ses_added *a, const char *token, size_t n); /* NULL: none */
/* Split text into added tokens and the spans between them. The leftmost match wins, then the longest. */
bool ses_added_split(const ses_added *a, const ses_matcher *m, const char *text, size_t n, ses_matches *out,
                     ses_err *e);
/* Length in bytes of the longest pattern that text starts with; 0: none. */
size_t ses_matcher_longest(const ses_matcher *m, const char *text, size_t n, int32_t *token);

/* ---- fast paths ---- */

/* A fast path encodes a whole text for one kind of pipeline, with the same result as the stages but
 * faster. Opening a tokenizer offers it to each fast path in turn. Parts of a text that a fast path does
 * not support go through ses_encode_by_stages; they are split off only at positions that do not change the
 * result. One file fast/fast_NAME.c, one line in fast_paths.def. */
typedef struct ses_fast_path {
    const char *name;
    /* Leaves *self NULL if the fast path does not support the tokenizer. isa: highest instruction set to
     * use. */
    bool (*open)(const struct ses_tokenizer *t, ses_isa isa, ses_arena *mem, void **self, ses_err *e);
    void (*close)(void *self);
    void *(*work_new)(const void *self, ses_err *e); /* bounded caches of one thread */
    void (*work_free)(void *work);
    /* encode() validates UTF-8 itself: for invalid input it sets k->invalid_utf8 and returns false */
    bool validates_utf8;
    bool no_empty_pieces; /* every piece yields at least one token */
    /* Append the tokens of text to k->tokens. text is valid UTF-8 unless validates_utf8 is set. */
    bool (*encode)(const void *self, void *work, ses_encode_ctx *k, const char *text, size_t n, ses_err *e);
} ses_fast_path;

#define SES_FAST_PATH(name) extern const ses_fast_path ses_fast_path_##name;
#include "text/fast/fast_paths.def"
#undef SES_FAST_PATH

/* ---- the tokenizer ---- */

typedef struct ses_stored_limits {
    bool truncate, pad;
    ses_truncation strategy;
    bool truncate_left, pad_left;
    int64_t max_length, stride;
    int64_t pad_fixed;    /* pad to this length; -1: to the longest of the batch */
    int64_t pad_multiple; /* 0: none */
    int64_t pad_id, pad_type;
    ses_string pad_token;
} ses_stored_limits;

typedef struct ses_stage_list { /* one stage, or the stages of a Sequence in order */
    const ses_stage_instance *step;
    size_t n;
} ses_stage_list;

struct ses_tokenizer {
    ses_arena mem;
    ses_stage_instance stage[SES_STAGE_KINDS]; /* as in the file; owned */
    ses_stage_list steps[SES_STAGE_KINDS];
    ses_stage_instance model;
    ses_post_template post_template[2]; /* for one text and for a pair; never empty */
    bool *trim_prefix; /* [n_trims] add_prefix_space of each post-processor that trims offsets */
    size_t n_trims;
    ses_space_margins *margins; /* [vocab_size] spaces around each token; NULL: no trimming */
    ses_added added;
    ses_stored_limits stored;
    int64_t vocab_size;
    ses_isa isa; /* highest instruction set of this machine and build */
    const ses_fast_path *fast_path;
    void *fast_path_self;
};

/* ---- workspace of one thread ---- */

/* Growing arrays with the tokens of a text: id, byte range, word of token i. */
typedef struct ses_token_buf {
    int32_t *id;
    ses_offset *byte_offset;
    int32_t *word_id;
    size_t n, cap;
    uint32_t n_words; /* number of words so far; the index of the next one */
} ses_token_buf;

/* A token that is an added token, or whose string differs from its id's string. */
typedef struct ses_token_override {
    size_t index;      /* index in ses_encode_ctx.tokens */
    uint32_t begin, n; /* its string in ses_encode_ctx.override_text; n SES_STRING_OF_ID: the id's string */
    bool is_added;
} ses_token_override;

#define SES_STRING_OF_ID UINT32_MAX

/* The tokens of one text and how they are truncated: into parts of at most `max` tokens. */
typedef struct ses_truncation_plan {
    size_t begin, end;   /* range in ses_encode_ctx.tokens */
    size_t max, step;    /* length of a part; distance between the starts of two parts */
    size_t parts;        /* at least 1 */
    bool left;           /* truncate from the left: parts are numbered from the end */
    bool first_is_empty; /* max_length leaves no token: the first part is empty, the second has all tokens */
} ses_truncation_plan;

/* One of the two texts: a string, or words. Invalid UTF-8 is already replaced. */
typedef struct ses_input_text {
    ses_string text;
    ses_string *words; /* NULL: use `text` */
    size_t n_words;
    /* [n_words or 1] input offset of each byte if bytes of the string were replaced; else NULL. */
    const uint32_t **original;
} ses_input_text;

/* The arrays an encoding points to. */
typedef struct ses_encoding_buf {
    ses_encoding encoding;
    int32_t *id, *word_id;
    ses_offset *byte_offset, *char_offset;
    size_t *token_index; /* index in ses_encode_ctx.tokens; SIZE_MAX: special or padding token */
    int8_t *sequence_id;
    uint8_t *type_id, *special_mask, *attention_mask;
    size_t cap, cap_flags; /* capacity of the first five arrays; of the others */
} ses_encoding_buf;

struct ses_encode_ctx {
    const ses_tokenizer *t;
    ses_token_buf tokens;
    ses_offset *char_offset; /* [cap_char_offset] tokens.byte_offset in code points */
    size_t cap_char_offset;
    ses_codepoint_table codepoint_table;
    ses_token_override *override; /* sorted by index */
    size_t n_overrides, cap_overrides;
    ses_buf override_text;

    /* ses_encode_by_stages */
    ses_text raw, normalized[2];
    ses_pieces pieces[2];
    ses_matches raw_matches, normal_matches;
    ses_token_list piece_tokens;
    ses_arena scratch;
    size_t *piece_start; /* first token of each piece, for truncation from the left */
    size_t cap_piece_start;

    /* last input and result */
    ses_input_text source[2];
    ses_arena inputs; /* inputs with invalid UTF-8 replaced */
    ses_truncation_plan truncation[2];
    ses_post_template post_template;
    bool has_pair, add_special;
    bool invalid_utf8;   /* set by a fast path that validates UTF-8 */
    bool past_piece_end; /* a token's reported offset exceeds its piece */
    bool is_ascii; /* all input is ASCII: byte and code point offsets are equal, char_offset is unused */
    int64_t pad_to;
    bool pad_left, pad_stored;
    int32_t pad_id; /* -1: the stored one */
    ses_encoding_buf result, overflow;

    /* decoding */
    ses_strings strings;
    ses_buf text;

    void *fast_path_work;
};

bool ses_token_buf_reserve(ses_token_buf *r, size_t n, ses_err *e);      /* capacity for n more tokens */
void ses_encode_ctx_rewind(ses_encode_ctx *k, size_t n, uint32_t words); /* truncate to n tokens */
/* Remove `count` tokens (whole words) from index `start` on; word indices after them decrease by `words`. */
void ses_encode_ctx_remove(ses_encode_ctx *k, size_t start, size_t count, uint32_t words);
/* The next token appended is an added token, or has its own string p[0, n) (p NULL: the id's string). */
bool ses_token_override_put(ses_encode_ctx *k, const char *p, size_t n, bool added, ses_err *e);
const ses_token_override *ses_token_override_find(const ses_encode_ctx *k, size_t index); /* NULL: none */

/* Early stop, as in HF Tokenizers when truncating: encode no further piece once there are max_tokens tokens.
 * from_left: keep the last tokens instead of the first. */
typedef struct ses_token_limit {
    size_t max_tokens;
    bool from_left;
} ses_token_limit;

/* Run text[begin, end) through the stages and append its tokens to k->tokens. Offsets are relative to
 * `text`, which is valid UTF-8. limit may be NULL. */
bool ses_encode_by_stages(ses_encode_ctx *k, const char *text, size_t begin, size_t end,
                          const ses_token_limit *limit, ses_err *e);

/* Last step of encoding (result.c): decide how the texts are truncated (k->truncation), then build k->result.
 * stored: the limits come from the file, not from the caller. */
bool ses_result_truncate(ses_encode_ctx *k, const ses_encode_options *o, bool stored, ses_err *e);
bool ses_result_build(ses_encode_ctx *k, ses_err *e);

/* Writes tokenizer.json as an object. */
void ses_tokenizer_put(const ses_tokenizer *t, ses_json_writer *w);

#endif
