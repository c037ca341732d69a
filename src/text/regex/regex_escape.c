/* Character escapes: \t, \x{..}, \u, \0. */
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "regex_parse.h"

#include <string.h>

/* Read up to `max_digits` digits of this base; returns their number. */
static size_t number(ses_re_parser *r, unsigned base, size_t max_digits, uint32_t *out)
{
    size_t k = 0;
    *out = 0;
    for (int d; k < max_digits && r->i < r->n && (d = ses_hex_digit(r->p[r->i])) >= 0 && d < (int)base;
         k++, r->i++)
        *out = *out * base + (uint32_t)d;
    return k;
}

/* After \x, \u or \0. */
static bool code_escape(ses_re_parser *r, char kind, uint32_t *cp)
{
    char bytes[4];
    if (kind == '0') return number(r, 8, 2, cp), true;
    if (kind == 'u') {
        if (number(r, 16, 4, cp) != 4) return ses_re_syntax_error(r, "\\u without four digits");
    } else if (r->i < r->n && r->p[r->i] == '{') {
        r->i++;
        if (!number(r, 16, 7, cp) || r->i >= r->n || r->p[r->i] != '}')
            return ses_re_syntax_error(r, "\\x{ without }");
        r->i++;
    } else if (!number(r, 16, 2, cp) || *cp >= 0x80) {
        return ses_re_unsupported(r, "\\x for a single byte");
    }
    return ses_utf8_encode(*cp, bytes) ? true : ses_re_syntax_error(r, "not a character");
}

bool ses_re_char_escape(ses_re_parser *r, uint32_t *cp)
{
    static const char name[] = "tnrfvae", value[] = "\t\n\r\f\v\a\x1B";
    if (r->i >= r->n) return ses_re_syntax_error(r, "\\ at the end");
    char c = r->p[r->i];
    const char *known = c ? strchr(name, c) : NULL;
    if (known) return r->i++, *cp = (unsigned char)value[known - name], true;
    if (c == 'x' || c == 'u' || c == '0') return r->i++, code_escape(r, c, cp);
    if (ses_hex_digit(c) >= 0 || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
        return ses_re_unsupported(r, "this escape");
    r->i += ses_utf8_next(r->p + r->i, cp);
    return true;
}
