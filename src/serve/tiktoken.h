/* Token ids of a tiktoken vocabulary as text. Clients that tokenize for models of OpenAI send such ids.
 *
 * Ownership: the caller frees what parse and open return. Threads: read-only after opening. */
#ifndef SES_SERVE_TIKTOKEN_H
#define SES_SERVE_TIKTOKEN_H

#include "base/str.h"
#include "sesame/json.h"

typedef struct ses_tiktoken ses_tiktoken;

/* A .tiktoken file: on each line the base64 of a token's bytes, a space and its id. Ids are 0 to n - 1. */
ses_tiktoken *ses_tiktoken_open(const char *path, ses_err *e);
ses_tiktoken *ses_tiktoken_parse(const char *text, size_t n, ses_err *e);
void ses_tiktoken_free(ses_tiktoken *t); /* t may be NULL */
size_t ses_tiktoken_size(const ses_tiktoken *t);

/* Appends the bytes of a list of ids as UTF-8: other bytes, as of half a character, become U+FFFD. Fails at
 * an element that is not an id. */
bool ses_tiktoken_decode(const ses_tiktoken *t, const ses_json *ids, ses_buf *out, ses_err *e);

#endif
