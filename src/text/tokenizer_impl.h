/* What the files of the tokenizer's core share: the tokenizer, one thread's workspace, added tokens, and
 * shortcuts through whole pipelines. */
#ifndef SES_TEXT_RUN_H
#define SES_TEXT_RUN_H

#include "base/str.h"
#include "base/strmap.h"
#include "codepoint_offsets.h"
#include "stage.h"
#include "trim_offsets.h"

/* ---- added tokens (added_tokens.c) ---- */

typedef struct ses_added_token {
    ses_string content;
    /* Its normal form where it is sought in normalized text, and is decoded to; else content. */
    ses_string normalized_content;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} ses_added_token;

/* Patterns in a trie of bytes: children of a node are a linked list, the root's a table. */
typedef struct ses_trie_node {
    uint32_t child, sibling; /* 0: none */
    int32_t token;           /* index of the added token that ends here; -1: none */
    uint8_t byte;
} ses_trie_node;

typedef struct ses_matcher {
    uint32_t root[256]; /* node a pattern's first byte leads to; 0: none */
    ses_trie_node *node;
    uint32_t n;
} ses_matcher;

typedef struct ses_added {
    ses_added_token *token; /* in the file's order */
    size_t n;
    int32_t *by_id; /* [n_ids] index of the added token with this id; -1: none */
    int64_t n_ids;
    ses_strmap by_name;
    ses_matcher raw, normal; /* sought in the text as it is, and in its normal form */
} ses_added;

/* A stretch of text between or at added tokens: id < 0 or the token's. */
typedef struct ses_match {
    uint32_t begin, end;
    int32_t token; /* index in ses_added.token; -1: text between */
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
const ses_added_token *ses_added_by_id(const ses_added *a, int32_t id); /* NULL: not an added one */
const ses_added_token *ses_added_by_name(const ses_added *a, const char *token, size_t n); /* NULL: none */
/* Cut text into matches and what lies between them, leftmost first, longest of those. */
bool ses_added_split(const ses_added *a, const ses_matcher *m, const char *text, size_t n, ses_matches *out,
                     ses_err *e);
/* Bytes of the longest pattern that begins at text; 0: none. */
size_t ses_matcher_longest(const ses_matcher *m, const char *text, size_t n, int32_t *token);

/* ---- shortcuts ---- */

/* A shortcut encodes whole texts faster than the stages would and exactly as they do. It is offered every
 * tokenizer when it is opened; what it does not understand of a text, it hands to ses_encode_by_stages between
 * places where cutting changes nothing. One file fast_NAME.c, one line in fast_paths.def. */
typedef struct ses_fast_path {
    const char *name;
    /* *self stays NULL where the shortcut does not apply. isa: the best this machine and the caller allow. */
    bool (*open)(const struct ses_tokenizer *t, ses_isa isa, ses_arena *mem, void **self, ses_err *e);
    void (*close)(void *self);
    void *(*work_new)(const void *self, ses_err *e); /* one thread's caches, bounded */
    void (*work_free)(void *work);
    /* encode looks for bytes that are not UTF-8 itself: k->bad set, and false, where there are. */
    bool validates_utf8;
    bool no_empty_pieces; /* no piece is without tokens */
    /* Append the tokens of text (valid UTF-8 unless it validates) to k->run. */
    bool (*encode)(const void *self, void *work, ses_tokens *k, const char *text, size_t n, ses_err *e);
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
    int64_t pad_fixed;    /* pad to this; -1: to the longest of the batch */
    int64_t pad_multiple; /* 0: none */
    int64_t pad_id, pad_type;
    ses_string pad_token;
} ses_stored_limits;

typedef struct ses_stage_list { /* a stage, or the steps of a sequence, one after the other */
    const ses_stage_instance *step;
    size_t n;
} ses_stage_list;

struct ses_tokenizer {
    ses_arena mem;
    ses_stage_instance stage[SES_STAGE_KINDS]; /* as in the file; these own */
    ses_stage_list steps[SES_STAGE_KINDS];
    ses_stage_instance model;
    ses_post_template post_template[2]; /* for one text and for two; never empty */
    bool *trim_prefix;                  /* [n_trims] of each post-processor that trims */
    size_t n_trims;
    ses_space_margins *margins; /* [size] of each id's string; NULL where nothing trims */
    ses_added added;
    ses_stored_limits stored;
    int64_t vocab_size;
    ses_isa isa; /* the best this machine and build have */
    const ses_fast_path *fast_path;
    void *fast_path_self;
};

/* ---- one thread's workspace ---- */

/* Tokens of a text, as arrays. */
typedef struct ses_token_buf {
    int32_t *id;
    ses_offset *byte_offset;
    int32_t *word_id;
    size_t n, cap;
    uint32_t n_words; /* pieces seen so far: the next one's number */
} ses_token_buf;

/* A token that is an added one, or is not called by its id's string. */
typedef struct ses_token_override {
    size_t index;      /* index in the run */
    uint32_t begin, n; /* its string in ses_tokens.surface; n SES_STRING_OF_ID: the id's */
    bool is_added;
} ses_token_override;

#define SES_STRING_OF_ID UINT32_MAX

/* The tokens of one text and how truncation cuts them: parts of at most max tokens. */
typedef struct ses_truncation_plan {
    size_t begin, end;   /* in the run */
    size_t max, step;    /* a part's length, and how far the next part lies */
    size_t parts;        /* at least 1 */
    bool left;           /* parts are counted from the end */
    bool first_is_empty; /* the first part is empty, the second is all */
} ses_truncation_plan;

/* One of the two texts: a string, or words. Bad UTF-8 is replaced already. */
typedef struct ses_input_text {
    ses_string text;
    ses_string *words; /* NULL: text */
    size_t n_words;
    /* [n_words or 1] for a string in which bytes were replaced: where each byte was. */
    const uint32_t **original;
} ses_input_text;

/* Arrays an encoding points to. */
typedef struct ses_encoding_buf {
    ses_encoding encoding;
    int32_t *id, *word_id;
    ses_offset *byte_offset, *char_offset;
    size_t *token_index; /* index in the run; SIZE_MAX: not from there */
    int8_t *sequence_id;
    uint8_t *type_id, *special_mask, *attention_mask;
    size_t cap, cap_flags; /* of the first five, of the others */
} ses_encoding_buf;

struct ses_tokens {
    const ses_tokenizer *t;
    ses_token_buf tokens;
    ses_offset *char_offset; /* [point_cap] of run.byte in code points */
    size_t cap_char_offset;
    ses_codepoint_table codepoint_table;
    ses_token_override *override; /* in the run's order */
    size_t n_overrides, cap_overrides;
    ses_buf override_text;

    /* the exact way */
    ses_text raw, normalized[2];
    ses_pieces pieces[2];
    ses_matches raw_matches, normal_matches;
    ses_token_list piece_tokens;
    ses_arena scratch;
    size_t *piece_start; /* token where each piece begins, kept when truncating from the left */
    size_t cap_piece_start;

    /* the last input and result */
    ses_input_text source[2];
    ses_arena inputs; /* inputs with bad UTF-8 replaced */
    ses_truncation_plan truncation[2];
    ses_post_template post_template;
    bool has_pair, add_special;
    bool invalid_utf8;   /* the text is not UTF-8 */
    bool past_piece_end; /* a token was said to reach past its piece */
    bool is_ascii; /* all input is: offsets in bytes and in code points are the same, and point is not used */
    int64_t pad_to;
    bool pad_left, pad_stored;
    ses_encoding_buf result, overflow;

    /* decoding */
    ses_strings strings;
    ses_buf text;

    void *fast_path_work;
};

bool ses_token_buf_reserve(ses_token_buf *r, size_t n, ses_err *e); /* room for n more tokens */
void ses_tokens_rewind(ses_tokens *k, size_t n, uint32_t words);    /* drop tokens from n on */
/* Drop `gone` tokens, which are whole words, from start on; the words behind count that many less. */
void ses_tokens_remove(ses_tokens *k, size_t start, size_t gone, uint32_t words);
/* The next token put in the run is an added one, or has a string of its own (p NULL: the id's). */
bool ses_token_override_put(ses_tokens *k, const char *p, size_t n, bool added, ses_err *e);

/* Append the tokens of text[begin, end) to k->run, through the stages, offsets counted from text. Text is
 * valid UTF-8. limit: stop as the reference does when truncating; NULL: never. */
typedef struct ses_token_limit {
    size_t max_tokens;
    bool from_left;
} ses_token_limit;
bool ses_encode_by_stages(ses_tokens *k, const char *text, size_t begin, size_t end,
                          const ses_token_limit *limit, ses_err *e);

/* Results (result.c). */
bool ses_result_truncate(ses_tokens *k, const ses_encode_options *o, bool stored,
                         ses_err *e);             /* truncation */
bool ses_result_build(ses_tokens *k, ses_err *e); /* k->main */

#endif
