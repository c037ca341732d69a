/* Encodings as JSON, written straight into a buffer: a general writer would take longer than tokenizing. */
#ifndef SES_CLI_TOKEN_JSON_H
#define SES_CLI_TOKEN_JSON_H

#include "base/str.h"
#include "sesame/tokenizer.h"

bool ses_token_json(ses_tokens *k, ses_buf *out, ses_err *e); /* the result and its parts, as a line */
void ses_buf_put_json_string(ses_buf *out, const char *s, size_t n);

#endif
