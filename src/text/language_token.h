/* Language tokens ("en_XX") of multilingual models such as mBART. Nothing is owned; functions only read the
 * tokenizer. */
#ifndef SES_TEXT_LANGUAGE_TOKEN_H
#define SES_TEXT_LANGUAGE_TOKEN_H

#include "tokenizer_config.h"

/* Fails if the tokenizer has no such token. */
bool ses_language_token_id(const ses_tokenizer *t, const char *code, int32_t *id, ses_err *e);

/* Replaces the language token among n ids: the special token without another role ("</s> en_XX").
 * special: [n], 1 for tokens the tokenizer has added. Fails if there is none. */
bool ses_language_token_replace(const ses_tokenizer_config *c, int32_t language, const uint8_t *special,
                                int32_t *id, size_t n, ses_err *e);

#endif
