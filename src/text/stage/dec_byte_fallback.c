/* ByteFallback: decodes runs of <0x00> to <0xFF> as UTF-8. If a run is not valid, each byte becomes
 * U+FFFD. */
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "text/stage.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings;
    return ses_arena_array(mem, 1, 1, e);
}

/* Value of a byte token; -1: not a byte token. HF Tokenizers accepts "+F" as a number too. */
static int byte_of(ses_string s)
{
    if (s.n != 6 || s.p[0] != '<' || s.p[1] != '0' || s.p[2] != 'x' || s.p[5] != '>') return -1;
    int high = s.p[3] == '+' ? 0 : ses_hex_digit(s.p[3]), low = ses_hex_digit(s.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Replace the byte tokens [begin, end) by their text, written from index `to` on. */
static size_t put_bytes(ses_strings *s, size_t to, size_t begin, size_t end, ses_err *e)
{
    size_t n = end - begin;
    char *p = ses_arena_array(&s->mem, n, 1, e);
    if (!p) return SIZE_MAX;
    for (size_t i = 0; i < n; i++) p[i] = (char)byte_of(s->string[begin + i]);
    if (ses_utf8_valid(p, n) == n) {
        s->string[to] = (ses_string){ p, n };
        return to + 1;
    }
    for (size_t i = 0; i < n; i++) s->string[to + i] = (ses_string){ "\xef\xbf\xbd", 3 };
    return to + n;
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    (void)self;
    size_t to = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i; end < s->n && byte_of(s->string[end]) >= 0;) end++;
        if (end > i) {
            to = put_bytes(s, to, i, end, e);
            if (to == SIZE_MAX) return false;
        } else {
            s->string[to++] = s->string[end++];
        }
    }
    s->n = to;
    return true;
}

const ses_stage ses_stage_dec_byte_fallback = {
    .type = "ByteFallback", .kind = SES_DECODER, .open = open, .decode = decode
};
