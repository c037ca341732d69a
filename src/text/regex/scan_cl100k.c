/* Hand-written scanner for the split patterns of cl100k. */
#include "scan_cl100k.h"

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

typedef enum { LETTER, NUMBER, SPACE, OTHER } kind;

static kind wide_kind(uint32_t cp)
{
    const ses_cp_info *c = ses_cp(cp);
    if (1u << c->gc & SES_GCS_L) return LETTER;
    if (1u << c->gc & SES_GCS_N) return NUMBER;
    return c->flags & SES_CP_SPACE ? SPACE : OTHER;
}

/* Class and length of the character at p. */
static kind kind_at(const char *p, size_t *len)
{
    unsigned char c = (unsigned char)*p;
    *len = 1;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return LETTER;
    if (c >= '0' && c <= '9') return NUMBER;
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') ? SPACE : OTHER;
    uint32_t cp;
    *len = ses_utf8_next(p, &cp);
    return wide_kind(cp);
}

static bool is_line(char c) { return c == '\r' || c == '\n'; }

/* End of the run of characters of this class from i on, at most `max` of them. */
static size_t run_end(kind k, const char *p, size_t n, size_t i, size_t max)
{
    size_t len;
    for (; i < n && max && kind_at(p + i, &len) == k; max--) i += len;
    return i;
}

/* Length of a contraction (?i:'s|'t|'re|'ve|'m|'ll|'d), or 0. */
static size_t contraction(const char *p, size_t n)
{
    if (n < 2 || p[0] != '\'') return 0;
    int a = p[1] | 0x20;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (n < 3) return 0;
    if (p[1] == (char)0xC5 && p[2] == (char)0xBF) return 3; /* U+017F, long s, folds to s */
    int b = p[2] | 0x20;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* Run of white space: up to its last line break, if there is one; all of it at the end of the text; else
 * all but the last character, which belongs to the next match, unless it is the only one. */
static size_t spaces(const char *p, size_t n)
{
    size_t end = run_end(SPACE, p, n, 0, SIZE_MAX), line_end = end;
    while (line_end && !is_line(p[line_end - 1])) line_end--;
    if (line_end || end == n) return line_end ? line_end : end;
    size_t last = end - 1;
    while (ses_utf8_continues(p[last])) last--;
    return last ? last : end;
}

size_t ses_scan_cl100k(const char *p, size_t n, unsigned digits)
{
    size_t len = contraction(p, n), next = 0;
    if (len) return len;
    kind k = kind_at(p, &len);
    if (k == LETTER) return run_end(LETTER, p, n, len, SIZE_MAX);
    if (k == NUMBER) return run_end(NUMBER, p, n, 0, digits ? digits : SIZE_MAX);
    kind after = len < n ? kind_at(p + len, &next) : SPACE;
    if (after == LETTER && !is_line(*p)) return run_end(LETTER, p, n, len + next, SIZE_MAX);
    if (k == SPACE && !(*p == ' ' && after == OTHER)) return spaces(p, n);
    size_t end = run_end(OTHER, p, n, len, SIZE_MAX);
    while (end < n && is_line(p[end])) end++;
    return end;
}
