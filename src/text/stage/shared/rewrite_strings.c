/* String replacement and single-character settings for decoders. */
#include "rewrite_strings.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <string.h>

static const char *find(const char *p, size_t n, ses_string what)
{
    for (; n >= what.n; p++, n--) {
        const char *q = memchr(p, what.p[0], n - what.n + 1);
        if (!q) return NULL;
        n -= (size_t)(q - p), p = q;
        if (!memcmp(p, what.p, what.n)) return p;
    }
    return NULL;
}

static size_t put(char *out, size_t at, const char *p, size_t n)
{
    if (n) memcpy(out + at, p, n);
    return at + n;
}

/* Insert `to` before each character and at the end. */
static size_t spread(ses_string s, ses_string to, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!ses_utf8_continues(s.p[i])) at = put(out, at, to.p, to.n);
        out[at++] = s.p[i];
    }
    return put(out, at, to.p, to.n);
}

ses_string ses_replace_all(ses_string s, ses_string from, ses_string to, ses_arena *mem, ses_err *e)
{
    ses_string none = { NULL, 0 };
    size_t count = from.n ? 0 : s.n + 1, size;
    const char *end = s.p + s.n;
    if (from.n)
        for (const char *p = s.p; (p = find(p, (size_t)(end - p), from)); p += from.n) count++;
    if (!count) return s;
    if (!ses_mul_size(count, to.n, &size) || !ses_add_size(size, s.n, &size))
        return ses_fail(e, SES_ENOMEM, "a token of %zu bytes becomes too long", s.n), none;
    char *out = ses_arena_array(mem, size, 1, e);
    if (!out) return none;
    if (!from.n) return (ses_string){ out, spread(s, to, out) };
    size_t at = 0;
    const char *p = s.p;
    for (const char *q; (q = find(p, (size_t)(end - p), from)); p = q + from.n) {
        at = put(out, at, p, (size_t)(q - p));
        at = put(out, at, to.p, to.n);
    }
    return (ses_string){ out, put(out, at, p, (size_t)(end - p)) };
}

bool ses_setting_char(const ses_json *settings, const char *key, uint32_t *out, ses_err *e)
{
    size_t n;
    const char *s = ses_json_string(ses_json_get(settings, key), &n);
    if (s && n && ses_utf8_decode(s, n, out) == n) return true;
    return ses_fail(e, SES_EFORMAT, "key \"%s\" must be a string of one character", key);
}

void ses_setting_put_char(ses_json_writer *w, const char *key, uint32_t c)
{
    char s[4];
    ses_json_member_stringn(w, key, s, ses_utf8_encode(c, s));
}
