/* Single tokens as text. Ownership: names are in the caller's arena. Threads: as the workspace. */
#ifndef SES_ANALYSIS_TOKEN_TEXT_H
#define SES_ANALYSIS_TOKEN_TEXT_H

#include "base/arena.h"
#include "sesame/tokenizer.h"
#include "text/tokenizer_config.h"

static inline bool ses_is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* The text of one token without spaces; of a part of a character or a word, the vocabulary's string. */
const char *ses_token_name(const ses_tokenizer *t, ses_encode_ctx *k, int32_t id, ses_arena *mem, ses_err *e);

/* Does a token begin a word? By its string in the vocabulary. */
bool ses_token_begins_word(const ses_tokenizer *t, const ses_tokenizer_config *c, int32_t id);

#endif
