/* Writes encodings as JSON directly into a buffer: the general JSON writer takes longer than tokenizing.
 * Output goes to a buffer of the caller. No state is shared between threads. */
#ifndef SES_CLI_TOKEN_JSON_H
#define SES_CLI_TOKEN_JSON_H

#include "base/str.h"
#include "sesame/tokenizer.h"

/* A line: the result and its overflowing parts. mask: also attention_mask, 0 for padding. */
bool ses_token_json(ses_encode_ctx *k, bool mask, ses_buf *out, ses_err *e);
void ses_buf_put_json_string(ses_buf *out, const char *s, size_t n);

#endif
