/* Vocabularies: tokens by id and ids by token. Ids may have holes, which added tokens often fill. The
 * mapping is one-to-one. All memory is on an arena; read-only after filling. */
#ifndef SES_TEXT_VOCAB_H
#define SES_TEXT_VOCAB_H

#include "base/arena.h"
#include "base/hash.h"
#include "sesame/json.h"

typedef struct ses_vocab {
    char *byte;      /* all tokens concatenated */
    uint32_t *start; /* [size] offset of a token in byte */
    uint32_t *len;   /* [size] length in bytes; SES_VOCAB_HOLE: unused id */
    int32_t size;    /* exclusive upper bound of ids */
    int32_t count;   /* number of tokens */
    uint32_t filled; /* bytes in use */
    uint64_t *slot;  /* upper half of the hash << 32 | id + 1; 0: free */
    size_t mask;
    ses_hash_key key;
} ses_vocab;

#define SES_VOCAB_HOLE UINT32_MAX

/* Capacity for tokens of `bytes` bytes in total and ids below size. */
bool ses_vocab_reserve(ses_vocab *v, size_t size, size_t bytes, ses_arena *mem, ses_err *e);

/* Assign an id, which must be below the reserved size and unused. If the token already has an id, returns
 * false, sets *other and changes nothing. */
bool ses_vocab_add(ses_vocab *v, int32_t id, const char *token, size_t n, int32_t *other);

/* Read {"token": id, ...} of tokenizer.json or vocab.json. */
bool ses_vocab_open(ses_vocab *v, const ses_json *object, ses_arena *mem, ses_err *e);
void ses_vocab_save(const ses_vocab *v, ses_json_writer *w); /* writes that object, in order of ids */

int32_t ses_vocab_id(const ses_vocab *v, const char *token, size_t n);  /* -1: none */
const char *ses_vocab_token(const ses_vocab *v, int32_t id, size_t *n); /* NULL: none */

/* ses_stage functions for models whose settings start with their vocabulary: self is a ses_vocab *. */
int64_t ses_vocab_model_size(const void *self);
int64_t ses_vocab_model_count(const void *self);
const char *ses_vocab_model_token(const void *self, int32_t id, size_t *n);
int32_t ses_vocab_model_id(const void *self, const char *token, size_t n);

#endif
