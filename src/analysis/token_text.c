/* Single tokens as text. */
#include "token_text.h"

#include <string.h>

/* Contains U+FFFD: part of a character was decoded. */
static bool has_replacement(const char *s, size_t n)
{
    for (size_t i = 0; i + 3 <= n; i++)
        if (!memcmp(s + i, "\xEF\xBF\xBD", 3)) return true;
    return false;
}

const char *ses_token_name(const ses_tokenizer *t, ses_encode_ctx *k, int32_t id, ses_arena *mem, ses_err *e)
{
    const char *text = NULL;
    size_t n = 0, raw_n = 0;
    const char *raw = ses_tokenizer_id_to_token(t, id, &raw_n);
    if (!ses_decode(k, &id, 1, true, &text, &n, e)) return NULL;
    while (n && ses_is_blank(text[0])) text++, n--;
    while (n && ses_is_blank(text[n - 1])) n--;
    bool whole = n && !has_replacement(text, n), prefixed = raw && raw_n > 2 && !memcmp(raw, "##", 2);
    if (raw && (!whole || prefixed)) text = raw, n = raw_n;
    return ses_arena_strndup(mem, text ? text : "", n, e);
}

bool ses_token_begins_word(const ses_tokenizer *t, const ses_tokenizer_config *c, int32_t id)
{
    static const char *const space[] = { "\xC4\xA0" /* byte-level BPE */, "\xE2\x96\x81" /* SentencePiece */,
                                         " " };
    size_t n = 0;
    const char *raw = ses_tokenizer_id_to_token(t, id, &n);
    if (!raw || !n) return true;
    if (c->has_subword_prefix) return n < 2 || memcmp(raw, "##", 2) != 0;
    for (size_t i = 0; i < SES_LEN(space); i++)
        if (n >= strlen(space[i]) && !memcmp(raw, space[i], strlen(space[i]))) return true;
    return false;
}
