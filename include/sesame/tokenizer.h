/* Tokenizers: text to ids and back, exact to the reference library in ids and offsets.
 *
 * A ses_tokenizer is opened once, never changes, and is shared between threads. A ses_tokens is one thread's
 * workspace (buffers, bounded caches) and holds the result of the last call; it is used again and again. */
#ifndef SESAME_TOKENIZER_H
#define SESAME_TOKENIZER_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_tokenizer ses_tokenizer;
typedef struct ses_tokens ses_tokens;

/* A model folder, a tokenizer.json, a SentencePiece .model or a vocab.txt. In a folder tokenizer.json
 * wins. */
ses_tokenizer *ses_tokenizer_open(const char *path, ses_err *e);
/* With `lower` a text is put in lower case before all else, special tokens in it apart: do_lower_case of
 * sentence encoders. */
ses_tokenizer *ses_tokenizer_open_lower(const char *path, bool lower, ses_err *e);
/* From the text of a tokenizer.json. */
ses_tokenizer *ses_tokenizer_from_json(const char *text, size_t n, ses_err *e);
void ses_tokenizer_free(ses_tokenizer *t);

/* The string of an id is what it is decoded from: of an added token that is sought in normalized text, its
 * normal form. */
int64_t ses_tokenizer_vocab_size(const ses_tokenizer *t);                             /* ids run below this */
const char *ses_tokenizer_id_to_token(const ses_tokenizer *t, int32_t id, size_t *n); /* NULL: no such id */
int32_t ses_tokenizer_token_to_id(const ses_tokenizer *t, const char *token,
                                  size_t n); /* -1: no such token */

/* What kind it is, and the truncation its file stores. */
typedef struct ses_tokenizer_traits {
    const char *model;       /* "WordPiece", "BPE", "Unigram", "WordLevel" */
    bool has_subword_prefix; /* tokens inside a word begin with a mark, as "##ing" */
    int64_t max_length;      /* 0: none */
    bool truncate_left;      /* where that cuts */
} ses_tokenizer_traits;
ses_tokenizer_traits ses_tokenizer_traits_of(const ses_tokenizer *t);

/* One tokenizer.json that the reference loads and that gives the same ids. */
bool ses_tokenizer_save(const ses_tokenizer *t, const char *path, bool overwrite, ses_err *e);
/* Whatever a path stands for (see ses_tokenizer_open), as one tokenizer.json in stages the reference has. */
bool ses_tokenizer_convert(const char *path, const char *out, bool overwrite, ses_err *e);

/* What goes in: a text, perhaps a second one; or words split before, which then stand for the text (and for
 * the pair) and are each tokenized alone. */
typedef struct ses_string {
    const char *p;
    size_t n;
} ses_string;

typedef struct ses_input {
    ses_string text, pair; /* pair.p and pair_words NULL: no second text */
    const ses_string *words, *pair_words;
    size_t n_words, n_pair_words;
} ses_input;

typedef enum {
    SES_TRUNCATE_NONE,
    SES_TRUNCATE_LONGEST_FIRST,
    SES_TRUNCATE_ONLY_FIRST,
    SES_TRUNCATE_ONLY_SECOND
} ses_truncation;

typedef struct ses_encode_options {
    bool no_special;           /* leave the template's special tokens out */
    bool use_stored_limits;    /* apply the truncation and padding the file stores; what follows overrides */
    ses_truncation truncation; /* to max_length tokens, special ones included */
    int64_t max_length;
    int64_t stride; /* tokens a part repeats of the one before; less than the room it has */
    bool truncate_left;
    bool full_overflow; /* with truncation: tokenize to the end. The reference (since 0.23) stops soon after
                       max_length tokens of a text, and what follows is in no overflowing part */
    int64_t pad_to;     /* pad to this many tokens; 0: none */
    bool pad_left;
} ses_encode_options;

/* The result; arrays of n. Offsets are half-open ranges of the text (or pair, or word) a token came from. */
typedef struct ses_offset {
    uint32_t begin, end;
} ses_offset;

typedef struct ses_encoding {
    size_t n;
    const int32_t *id;
    const ses_offset *byte_offset; /* in bytes */
    const ses_offset *char_offset; /* in Unicode code points */
    const int32_t *word_id;        /* the pre-tokenizer's word (or the caller's); -1: a special token */
    const int8_t *sequence_id;     /* 0 text, 1 pair; -1: a special token */
    const uint8_t *type_id, *special_mask, *attention_mask;
} ses_encoding;

ses_tokens *ses_tokens_new(const ses_tokenizer *t, ses_err *e);
void ses_tokens_free(ses_tokens *k);

/* Encode. options may be NULL. The result is borrowed until the next call. Invalid UTF-8 counts as U+FFFD,
 * one for each longest run of bytes that could have begun a character; offsets in bytes are those of the text
 * as it was. A text has at most 2 GiB less 64 bytes. After an error the workspace can be used again. */
bool ses_encode(ses_tokens *k, const ses_input *in, const ses_encode_options *options, ses_err *e);
const ses_encoding *ses_tokens_result(const ses_tokens *k);

/* The string of token i as the reference names it: mostly the id's; for an added token, and an unknown one of
 * Unigram, the text it stands for. Borrowed until the next ses_encode. */
const char *ses_tokens_string(const ses_tokens *k, const ses_encoding *of, size_t i, size_t *n);

/* Parts cut off by truncation, each an encoding, made on demand: valid until the next is asked for. */
size_t ses_tokens_overflow_count(const ses_tokens *k);
const ses_encoding *ses_tokens_overflow(ses_tokens *k, size_t i, ses_err *e);

/* Ids of a text and nothing else: the fastest way. Valid until the next call. */
bool ses_encode_ids(ses_tokens *k, const char *text, size_t n, bool special, const int32_t **id,
                    size_t *n_ids, ses_err *e);

/* Ids to text, borrowed until the next call. An id beyond the vocabulary is an error. */
bool ses_decode(ses_tokens *k, const int32_t *id, size_t n, bool keep_special, const char **text, size_t *len,
                ses_err *e);

/* Tokens given by their strings to text: what the decoder makes of them. */
bool ses_decode_strings(ses_tokens *k, const ses_string *token, size_t n, const char **text, size_t *len,
                        ses_err *e);

/* ---- training ---- */

typedef enum {
    SES_TOKENIZER_WORDPIECE,
    SES_TOKENIZER_BPE,
    SES_TOKENIZER_UNIGRAM,
    SES_TOKENIZER_WORDLEVEL,
    SES_TOKENIZER_TYPES
} ses_tokenizer_type;

typedef struct ses_tokenizer_train_options {
    ses_tokenizer_type type;
    int64_t vocab_size;        /* of everything, special tokens included */
    int64_t min_frequency;     /* pairs (or words) seen less often are left alone; 0: none are */
    int64_t limit_alphabet;    /* most characters to begin with, the commonest; 0: all */
    bool byte_level;           /* of BPE: over bytes instead of characters */
    bool lowercase;            /* of WordPiece, and where a normalizer is asked for */
    const ses_string *special; /* first ids, in this order; NULL: what is usual for the type */
    size_t n_special;
    /* JSON members normalizer, pre_tokenizer, post_processor, decoder in place of the usual ones; or NULL. */
    const char *stages;
    size_t max_words; /* most distinct words kept while counting, rare ones go first; 0: 20 million */
    int threads;      /* 0: one for each core; at most 1024, of which 64 count words */
    /* Told every so often what is done; false ends the training. NULL: nobody. */
    bool (*progress)(void *ctx, const char *what, int64_t done, int64_t of);
    void *ctx;
} ses_tokenizer_train_options;

/* One thread feeds texts one by one (any number, any size), then finishes: the text of a tokenizer.json, to
 * be freed with free(). The result depends on the texts and options only, not on the threads. */
typedef struct ses_tokenizer_trainer ses_tokenizer_trainer;
ses_tokenizer_trainer *ses_tokenizer_trainer_new(const ses_tokenizer_train_options *o, ses_err *e);
void ses_tokenizer_trainer_free(ses_tokenizer_trainer *t);
bool ses_tokenizer_trainer_feed(ses_tokenizer_trainer *t, const char *text, size_t n, ses_err *e);
char *ses_tokenizer_trainer_finish(ses_tokenizer_trainer *t, size_t *n, ses_err *e);

/* English spacing put right in a decoded text, in place, as the reference does: " ." to ".", " 's" to
 * "'s". Returns the bytes left. */
size_t ses_clean_up_tokenization(char *text, size_t n);

SES_END_DECLS

#endif
