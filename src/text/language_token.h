/* Tokens that name a language, as "en_XX". */
#ifndef SES_TASK_LANGUAGE_H
#define SES_TASK_LANGUAGE_H

#include "task/task.h"

bool ses_language_token_id(const ses_tokenizer *t, const char *code, int32_t *id, ses_err *e);

/* In n ids, the language in place of the one the tokenizer marks: of the tokens it adds to a text, the one
 * that has no other role ("</s> en_XX"). */
bool ses_language_token_replace(const ses_tokenizer_config *f, int32_t language, const uint8_t *special,
                                int32_t *id, size_t n, ses_err *e);

#endif
