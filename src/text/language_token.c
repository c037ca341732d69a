/* Finds and replaces language tokens. */
#include "language_token.h"

#include "base/str.h"

#include <string.h>

bool ses_language_token_id(const ses_tokenizer *t, const char *code, int32_t *id, ses_err *e)
{
    *id = ses_tokenizer_token_to_id(t, code, strlen(code));
    return *id >= 0 ||
           ses_fail(e, SES_EUSAGE, "the tokenizer has no token \"%s\"", ses_quoted_of(code, strlen(code)).s);
}

bool ses_language_token_replace(const ses_tokenizer_config *c, int32_t language, const uint8_t *special,
                                int32_t *id, size_t n, ses_err *e)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        bool other = special[i];
        for (int r = 0; r < SES_ROLE_COUNT; r++) other &= id[i] != c->role[r];
        if (other) id[i] = language, found = true;
    }
    return found || ses_fail(e, SES_EARG, "the tokenizer adds no language token");
}
