/* Vocabularies: tokens by id and ids by token. Ids may have holes (added tokens often fill them); a token
 * stands under one id and an id for one token. Everything lies on an arena; read-only once filled. */
#ifndef SES_TEXT_VOCAB_H
#define SES_TEXT_VOCAB_H

#include "base/arena.h"
#include "base/hash.h"
#include "sesame/json.h"

typedef struct ses_vocab {
    char *byte;      /* the tokens end to end */
    uint32_t *start; /* [size] where a token begins in byte */
    uint32_t *len;   /* [size] its bytes; SES_VOCAB_HOLE: no token has this id */
    int32_t size;    /* ids run below */
    int32_t count;   /* tokens there are */
    uint32_t filled; /* bytes in use */
    uint64_t *slot;  /* hash's upper half, id + 1 below; 0: free */
    size_t mask;
    ses_hash_key key;
} ses_vocab;

#define SES_VOCAB_HOLE UINT32_MAX

/* Room for tokens of `bytes` bytes in all and ids below size. */
bool ses_vocab_reserve(ses_vocab *v, size_t size, size_t bytes, ses_arena *mem, ses_err *e);

/* Give a token its id (below the size reserved, not taken yet). False, and nothing changed, when the token
 * has an id already: *other. */
bool ses_vocab_add(ses_vocab *v, int32_t id, const char *token, size_t n, int32_t *other);

/* {"token": id, ...} as in tokenizer.json and vocab.json. */
bool ses_vocab_open(ses_vocab *v, const ses_json *object, ses_arena *mem, ses_err *e);
void ses_vocab_save(const ses_vocab *v, ses_json_writer *w); /* that object, in the order of ids */

int32_t ses_vocab_id(const ses_vocab *v, const char *token, size_t n);  /* -1: none */
const char *ses_vocab_token(const ses_vocab *v, int32_t id, size_t *n); /* NULL: none */

/* What a model has to answer, where its settings begin with its vocabulary: self is a ses_vocab *. */
int64_t ses_vocab_model_size(const void *self);
int64_t ses_vocab_model_count(const void *self);
const char *ses_vocab_model_token(const void *self, int32_t id, size_t *n);
int32_t ses_vocab_model_id(const void *self, const char *token, size_t n);

#endif
