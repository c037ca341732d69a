/* Whether a tokenizer is that of a model: the same ids for the same tokens. */
#ifndef SES_TEXT_TOKENIZER_MATCH_H
#define SES_TEXT_TOKENIZER_MATCH_H

#include "sesame/tokenizer.h"

/* Fails if the folder of a model has a tokenizer most of whose tokens have other ids in t. path: of t. */
bool ses_tokenizer_check_model(const ses_tokenizer *t, const char *path, const char *model, ses_err *e);

#endif
