/* A tokenizer with more special tokens. Functions keep nothing. */
#ifndef SES_TEXT_TOKENIZER_EXTEND_H
#define SES_TEXT_TOKENIZER_EXTEND_H

#include "sesame/tokenizer.h"

/* A copy of t with the special tokens of the list that it lacks; they get the ids after its last one, in this
 * order. Free it with ses_tokenizer_free. NULL on failure: a token is empty, or out of memory. */
ses_tokenizer *ses_tokenizer_extend(const ses_tokenizer *t, const char *const *token, size_t n, ses_err *e);

#endif
