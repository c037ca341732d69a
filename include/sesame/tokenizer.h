/* Tokenizers: text to token ids and back. Ids and offsets are identical to Hugging Face Tokenizers and
 * transformers.
 *
 * Threads: a ses_tokenizer is read-only after opening and may be shared between threads. A ses_encode_ctx is
 * the workspace of one thread (buffers and bounded caches); it holds the result of the last call and is meant
 * to be reused. A ses_tokenizer_trainer belongs to one thread, but uses several threads internally.
 *
 * Ownership: the caller frees whatever a _new, _open or _from function returns; NULL may be passed to _free.
 * Everything else is borrowed: strings from the tokenizer, results from the workspace.
 *
 * Failure: functions with a ses_err return false or NULL and set the error. A workspace stays usable. */
#ifndef SESAME_TOKENIZER_H
#define SESAME_TOKENIZER_H

#include "sesame/base.h"

SES_BEGIN_DECLS

typedef struct ses_tokenizer ses_tokenizer;
typedef struct ses_encode_ctx ses_encode_ctx;

/* ---- opening and saving ---- */

/* Open a tokenizer. path: a model folder, a tokenizer.json, a SentencePiece .model or a vocab.txt; the name
 * of a model ("sesame-small") must be resolved first, see ses_model_resolve in sesame/model.h. In a folder,
 * tokenizer.json takes precedence over older formats. An adapter folder without a tokenizer uses that of its
 * base model. Fails if no file is found, or if one is invalid or needs a feature that is not supported. */
ses_tokenizer *ses_tokenizer_open(const char *path, ses_err *e);

/* The same; lower: convert texts to lower case before anything else, except special tokens in them
 * (do_lower_case of Sentence Transformers). */
ses_tokenizer *ses_tokenizer_open_lower(const char *path, bool lower, ses_err *e);

/* Open the tokenizer of the target language of a translation model (Marian: target.spm, with the ids of
 * target_vocab.json if the vocabularies are separate). *out NULL: the folder has one tokenizer for both. */
bool ses_tokenizer_open_target(const char *path, ses_tokenizer **out, ses_err *e);

/* Open a tokenizer from the text of a tokenizer.json, n bytes, which may be freed afterwards. */
ses_tokenizer *ses_tokenizer_from_json(const char *text, size_t n, ses_err *e);

/* Free a tokenizer. All workspaces that use it must be freed first. */
void ses_tokenizer_free(ses_tokenizer *t);

/* Write a tokenizer.json that gives the same ids. An existing file is an error unless overwrite is set.
 * Tokenizers opened from a single .model file use stages that only Sesame reads; see
 * ses_tokenizer_convert. */
bool ses_tokenizer_save(const ses_tokenizer *t, const char *path, bool overwrite, ses_err *e);

/* Convert any path that ses_tokenizer_open accepts to a tokenizer.json that Hugging Face Tokenizers reads. */
bool ses_tokenizer_convert(const char *path, const char *out, bool overwrite, ses_err *e);

/* ---- vocabulary ---- */

/* Number of ids: all ids are below this. It may exceed the number of tokens, because ids can be unused. */
int64_t ses_tokenizer_vocab_size(const ses_tokenizer *t);

/* The string of an id, with its length in *n; not NUL-terminated. NULL: unused id. An added token that
 * matches normalized text has its normalized string. Borrowed from the tokenizer. */
const char *ses_tokenizer_id_to_token(const ses_tokenizer *t, int32_t id, size_t *n);

/* The id of a token string of n bytes. -1: not in the vocabulary. */
int32_t ses_tokenizer_token_to_id(const ses_tokenizer *t, const char *token, size_t n);

/* The id is a special token, which ses_decode leaves out. False: it is not, or it is outside the
 * vocabulary. */
bool ses_tokenizer_is_special(const ses_tokenizer *t, int32_t id);

/* Properties of a tokenizer, and the truncation stored in its file. */
typedef struct ses_tokenizer_traits {
    const char *model;       /* "WordPiece", "BPE", "Unigram", "WordLevel" or "SentencePiece" */
    bool has_subword_prefix; /* tokens inside a word start with a prefix, such as "##ing" */
    int64_t max_length;      /* stored truncation; 0: none */
    bool truncate_left;      /* stored truncation removes tokens from the left */
    bool decodes_bytes;      /* parts of a sequence, split between characters, can be decoded one by one */
} ses_tokenizer_traits;

/* The properties, by value; model is borrowed from the tokenizer. Cannot fail. */
ses_tokenizer_traits ses_tokenizer_traits_of(const ses_tokenizer *t);

/* ---- encoding ---- */

/* Input of ses_encode: a text, optionally a second text (pair). Words that are split already may be given
 * instead of a text; each is tokenized separately. Borrowed during the call and for
 * ses_encode_ctx_overflow. */
typedef struct ses_input {
    ses_string text, pair; /* pair.p and pair_words NULL: no second text */
    const ses_string *words, *pair_words;
    size_t n_words, n_pair_words;
} ses_input;

/* Which text is truncated to reach max_length. */
typedef enum {
    SES_TRUNCATE_NONE,
    SES_TRUNCATE_LONGEST_FIRST,
    SES_TRUNCATE_ONLY_FIRST,
    SES_TRUNCATE_ONLY_SECOND
} ses_truncation;

/* Zero-initialized: add special tokens, neither truncate nor pad. */
typedef struct ses_encode_options {
    bool no_special;           /* do not add special tokens */
    bool use_stored_limits;    /* apply truncation and padding stored in the file, unless set below */
    ses_truncation truncation; /* to max_length tokens, including special tokens */
    int64_t max_length;
    int64_t stride; /* overlapping tokens between two parts; less than the length of a part */
    bool truncate_left;
    bool full_overflow; /* with truncation: encode the text to its end. Default, as in Hugging Face Tokenizers
                           0.23: stop soon after max_length tokens, so later text is in no overflowing part */
    int64_t pad_to;     /* pad to this many tokens; 0: no padding */
    bool pad_left;
    bool has_pad_id; /* padding tokens have the id `pad_id`; false: the id stored in the file, or 0 */
    int32_t pad_id;
} ses_encode_options;

/* A half-open range [begin, end) of the text, pair or word that a token came from. */
typedef struct ses_offset {
    uint32_t begin, end;
} ses_offset;

/* Result of encoding: arrays of n elements, borrowed from the workspace. */
typedef struct ses_encoding {
    size_t n;
    const int32_t *id;
    const ses_offset *byte_offset; /* in bytes */
    const ses_offset *char_offset; /* in Unicode code points */
    const int32_t *word_id;      /* index of the pre-tokenizer's (or the caller's) word; -1: special token */
    const int8_t *sequence_id;   /* 0: text, 1: pair, -1: special token */
    const uint8_t *type_id;      /* token type (segment) */
    const uint8_t *special_mask; /* 1: special or padding token */
    const uint8_t *attention_mask; /* 0: padding token */
} ses_encoding;

/* Create a workspace for one thread. The tokenizer must outlive it. Fails only out of memory. */
ses_encode_ctx *ses_encode_ctx_new(const ses_tokenizer *t, ses_err *e);

/* Free a workspace and all results borrowed from it. */
void ses_encode_ctx_free(ses_encode_ctx *k);

/* Encode a text or a pair. options may be NULL. The result is available from ses_encode_ctx_result until the
 * next call on this workspace. Each maximal invalid UTF-8 sequence counts as one U+FFFD; byte offsets refer
 * to the original text. A text may have at most 2 GiB minus 64 bytes. Fails for invalid options, for a word
 * without any token if the model has no unknown token, and out of memory. */
bool ses_encode(ses_encode_ctx *k, const ses_input *in, const ses_encode_options *options, ses_err *e);

/* The result of the last successful ses_encode. */
const ses_encoding *ses_encode_ctx_result(const ses_encode_ctx *k);

/* The string of token i of an encoding of this workspace, with its length in *n. Usually the string of the
 * id; for added tokens and unknown tokens of Unigram, the text itself. Borrowed until the next ses_encode. */
const char *ses_encode_ctx_string(const ses_encode_ctx *k, const ses_encoding *of, size_t i, size_t *n);

/* Number of overflowing parts that truncation removed from the result. */
size_t ses_encode_ctx_overflow_count(const ses_encode_ctx *k);

/* Overflowing part i, built on demand and borrowed until the next call of this function or of ses_encode.
 * Fails if i is out of range or out of memory. */
const ses_encoding *ses_encode_ctx_overflow(ses_encode_ctx *k, size_t i, ses_err *e);

/* Encode a text to ids only, without truncation or padding. special: add special tokens. *id is borrowed
 * until the next call on this workspace. Fails like ses_encode. */
bool ses_encode_ids(ses_encode_ctx *k, const char *text, size_t n, bool special, const int32_t **id,
                    size_t *n_ids, ses_err *e);

/* ---- decoding ---- */

/* Decode n ids to text; special tokens are skipped unless keep_special is set. *text has *len bytes and is
 * borrowed until the next call on this workspace. An id outside the vocabulary is an error. */
bool ses_decode(ses_encode_ctx *k, const int32_t *id, size_t n, bool keep_special, const char **text,
                size_t *len, ses_err *e);

/* The same for n token strings, which need not be in the vocabulary. */
bool ses_decode_strings(ses_encode_ctx *k, const ses_string *token, size_t n, const char **text, size_t *len,
                        ses_err *e);

/* Clean up English spacing in a decoded text of n bytes, modifying it, like clean_up_tokenization of
 * transformers: " ." becomes ".", " 's" becomes "'s". Returns the new length. Cannot fail. */
size_t ses_clean_up_tokenization(char *text, size_t n);

/* ---- training ---- */

typedef enum {
    SES_TOKENIZER_WORDPIECE,
    SES_TOKENIZER_BPE,
    SES_TOKENIZER_UNIGRAM,
    SES_TOKENIZER_WORDLEVEL,
    SES_TOKENIZER_TYPES
} ses_tokenizer_type;

/* All pointers are borrowed until the trainer is freed. */
typedef struct ses_tokenizer_train_options {
    ses_tokenizer_type type;
    int64_t vocab_size;        /* total, including special tokens */
    int64_t min_frequency;     /* minimum count of a pair (or word); 0: no minimum */
    int64_t limit_alphabet;    /* maximum initial characters, the most frequent; 0: all */
    bool byte_level;           /* BPE: over bytes instead of characters */
    bool lowercase;            /* lower-case the text in the default normalizer */
    const ses_string *special; /* get the first ids, in this order; NULL: default of the type */
    size_t n_special;
    /* JSON members normalizer, pre_tokenizer, post_processor, decoder; NULL: defaults of the type. */
    const char *stages;
    size_t max_words; /* maximum distinct words while counting, rare ones are dropped; 0: 20 million */
    int threads;      /* 0: one per core; at most 1024, of which 64 count words */
    /* Progress callback, called on the calling thread; returning false cancels the training. NULL: none. */
    bool (*progress)(void *ctx, const char *what, int64_t done, int64_t of);
    void *ctx;
} ses_tokenizer_train_options;

typedef struct ses_tokenizer_trainer ses_tokenizer_trainer;

/* Create a trainer. Fails for options out of range. */
ses_tokenizer_trainer *ses_tokenizer_trainer_new(const ses_tokenizer_train_options *o, ses_err *e);

/* Free a trainer. The text returned by ses_tokenizer_trainer_finish stays valid. */
void ses_tokenizer_trainer_free(ses_tokenizer_trainer *t);

/* Add a text of n bytes, which is copied. Call it any number of times, then ses_tokenizer_trainer_finish. */
bool ses_tokenizer_trainer_feed(ses_tokenizer_trainer *t, const char *text, size_t n, ses_err *e);

/* Train on all texts. Returns the text of a tokenizer.json of *n bytes, to be freed with free(). The result
 * depends only on texts and options, not on the number of threads. Fails without any words, if vocab_size
 * is too small, or if the progress callback returns false. */
char *ses_tokenizer_trainer_finish(ses_tokenizer_trainer *t, size_t *n, ses_err *e);

SES_END_DECLS

#endif
