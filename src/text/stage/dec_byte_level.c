/* ByteLevel as a decoder: maps characters back to bytes, over all tokens together. A token with any other
 * character stays unchanged. */
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "base/unicode/utf8_replace.h"
#include "text/stage/shared/byte_level.h"
#include "text/vocab/byte_chars.h"

static void put_token(ses_buf *b, const ses_string *s)
{
    size_t start = b->len;
    for (size_t i = 0, step; i < s->n; i += step) {
        uint32_t c = 0;
        step = ses_utf8_decode(s->p + i, s->n - i, &c);
        int byte = step ? ses_char_byte(c) : -1;
        if (byte < 0) {
            b->len = start;
            ses_buf_append(b, s->p, s->n);
            return;
        }
        ses_buf_put(b, (char)byte);
    }
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    (void)self;
    ses_buf bytes = { 0 }, text = { 0 };
    for (size_t i = 0; i < s->n; i++) put_token(&bytes, &s->string[i]);
    ses_utf8_replace_invalid(&text, bytes.data, bytes.len);
    char *p = ses_buf_ok(&bytes, e) && ses_buf_ok(&text, e)
                  ? ses_arena_strndup(&s->mem, text.data ? text.data : "", text.len, e)
                  : NULL;
    s->n = 0;
    bool ok = p && ses_strings_put(s, p, text.len, e);
    ses_buf_free(&bytes);
    ses_buf_free(&text);
    return ok;
}

const ses_stage ses_stage_dec_byte_level = {
    .type = "ByteLevel",
    .kind = SES_DECODER,
    .open = ses_byte_level_open,
    .save = ses_byte_level_save,
    .decode = decode,
};
