/* Character sets: evaluation, and parsing of [...], \d and similar classes, \p{...}. */
#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "regex_parse.h"

#include <string.h>

enum { MAX_ITEMS = 100000 };

bool ses_char_set_eval(const ses_char_set *s, uint32_t cp)
{
    bool any[SES_CHAR_SET_DEPTH + 1] = { false }, all[SES_CHAR_SET_DEPTH + 1]; /* per nesting level */
    size_t d = 0;
    all[0] = true;
    const ses_cp_info *info = ses_cp(cp);
    for (size_t i = 0; i < s->n; i++) {
        const ses_char_set_item *t = &s->item[i];
        switch (t->op) {
        case SES_CHAR_SET_RANGE: any[d] |= cp >= t->a && cp <= t->b; break;
        case SES_CHAR_SET_GC: any[d] |= (1u << info->gc & t->a) != 0; break;
        case SES_CHAR_SET_NOT_GC: any[d] |= (1u << info->gc & t->a) == 0; break;
        case SES_CHAR_SET_FLAG: any[d] |= (info->flags & t->a) != 0; break;
        case SES_CHAR_SET_NOT_FLAG: any[d] |= (info->flags & t->a) == 0; break;
        case SES_CHAR_SET_OPEN: d++, any[d] = false, all[d] = true; break;
        case SES_CHAR_SET_AND: all[d] = all[d] && any[d], any[d] = false; break;
        case SES_CHAR_SET_CLOSE:
        case SES_CHAR_SET_CLOSE_NOT:
            any[d - 1] |= (all[d] && any[d]) != (t->op == SES_CHAR_SET_CLOSE_NOT);
            d--;
            break;
        }
    }
    return any[0];
}

bool ses_char_set_add(ses_re_parser *r, ses_char_set_op op, uint32_t a, uint32_t b)
{
    if (r->items == r->cap_items) {
        if (r->items >= MAX_ITEMS) return ses_re_unsupported(r, "sets of this length");
        size_t more = r->cap_items ? 2 * r->cap_items : 64;
        ses_char_set_item *item = ses_realloc_array(r->item, more, sizeof *item, r->e);
        if (!item) return false;
        r->item = item;
        r->cap_items = more;
    }
    r->item[r->items++] = (ses_char_set_item){ op, a, b };
    return true;
}

bool ses_char_set_add_case(ses_re_parser *r, uint32_t c)
{
    uint32_t low = c | 0x20;
    if (low < 'a' || low > 'z') return true;
    if (!ses_char_set_add(r, SES_CHAR_SET_RANGE, c ^ 0x20, c ^ 0x20)) return false;
    if (low == 's') return ses_char_set_add(r, SES_CHAR_SET_RANGE, 0x17F, 0x17F);   /* U+017F, long s */
    if (low == 'k') return ses_char_set_add(r, SES_CHAR_SET_RANGE, 0x212A, 0x212A); /* U+212A, Kelvin sign */
    return true;
}

/* ---- named classes ---- */

#define GC1(a) (1u << SES_GC_##a)
static const struct {
    const char *name;
    uint32_t mask;
} category[] = {
    { "L", SES_GCS_L },
    { "Letter", SES_GCS_L },
    { "M", SES_GCS_M },
    { "Mark", SES_GCS_M },
    { "N", SES_GCS_N },
    { "Number", SES_GCS_N },
    { "P", SES_GCS_P },
    { "Punct", SES_GCS_P },
    { "Punctuation", SES_GCS_P },
    { "S", SES_GCS_S },
    { "Symbol", SES_GCS_S },
    { "Z", GC1(ZS) | GC1(ZL) | GC1(ZP) },
    { "Separator", GC1(ZS) | GC1(ZL) | GC1(ZP) },
    { "Lu", GC1(LU) },
    { "Ll", GC1(LL) },
    { "Lt", GC1(LT) },
    { "Lm", GC1(LM) },
    { "Lo", GC1(LO) },
    { "Mn", GC1(MN) },
    { "Mc", GC1(MC) },
    { "Me", GC1(ME) },
    { "Nd", GC1(ND) },
    { "Digit", GC1(ND) },
    { "Nl", GC1(NL) },
    { "No", GC1(NO) },
    { "Pc", GC1(PC) },
    { "Pd", GC1(PD) },
    { "Ps", GC1(PS) },
    { "Pe", GC1(PE) },
    { "Pi", GC1(PI) },
    { "Pf", GC1(PF) },
    { "Po", GC1(PO) },
    { "Sm", GC1(SM) },
    { "Sc", GC1(SC) },
    { "Sk", GC1(SK) },
    { "So", GC1(SO) },
    { "Zs", GC1(ZS) },
    { "Zl", GC1(ZL) },
    { "Zp", GC1(ZP) },
    { "Cc", GC1(CC) },
    { "Cf", GC1(CF) },
    { "Co", GC1(CO) },
};

/* Supported scripts, as of Unicode 16. */
static const struct {
    const char *name;
    uint32_t range[24][2];
} script[] = {
    { "Han", { { 0x2E80, 0x2E99 },   { 0x2E9B, 0x2EF3 },   { 0x2F00, 0x2FD5 },   { 0x3005, 0x3005 },
               { 0x3007, 0x3007 },   { 0x3021, 0x3029 },   { 0x3038, 0x303B },   { 0x3400, 0x4DBF },
               { 0x4E00, 0x9FFF },   { 0xF900, 0xFA6D },   { 0xFA70, 0xFAD9 },   { 0x16FE2, 0x16FE3 },
               { 0x16FF0, 0x16FF1 }, { 0x20000, 0x2A6DF }, { 0x2A700, 0x2B739 }, { 0x2B740, 0x2B81D },
               { 0x2B820, 0x2CEA1 }, { 0x2CEB0, 0x2EBE0 }, { 0x2EBF0, 0x2EE5D }, { 0x2F800, 0x2FA1D },
               { 0x30000, 0x3134A }, { 0x31350, 0x323AF } } },
    { "Hiragana",
      { { 0x3041, 0x3096 },
        { 0x309D, 0x309F },
        { 0x1B001, 0x1B11F },
        { 0x1B132, 0x1B132 },
        { 0x1B150, 0x1B152 },
        { 0x1F200, 0x1F200 } } },
    { "Katakana",
      { { 0x30A1, 0x30FA },
        { 0x30FD, 0x30FF },
        { 0x31F0, 0x31FF },
        { 0x32D0, 0x32FE },
        { 0x3300, 0x3357 },
        { 0xFF66, 0xFF6F },
        { 0xFF71, 0xFF9D },
        { 0x1AFF0, 0x1AFF3 },
        { 0x1AFF5, 0x1AFFB },
        { 0x1AFFD, 0x1AFFE },
        { 0x1B000, 0x1B000 },
        { 0x1B120, 0x1B122 },
        { 0x1B155, 0x1B155 },
        { 0x1B164, 0x1B167 } } },
    { "Hangul",
      { { 0x1100, 0x11FF },
        { 0x302E, 0x302F },
        { 0x3131, 0x318E },
        { 0x3200, 0x321E },
        { 0x3260, 0x327E },
        { 0xA960, 0xA97C },
        { 0xAC00, 0xD7A3 },
        { 0xD7B0, 0xD7C6 },
        { 0xD7CB, 0xD7FB },
        { 0xFFA0, 0xFFBE },
        { 0xFFC2, 0xFFC7 },
        { 0xFFCA, 0xFFCF },
        { 0xFFD2, 0xFFD7 },
        { 0xFFDA, 0xFFDC } } },
};

/* Compare names, ignoring case, spaces, hyphens and underscores. */
static bool same_name(const char *want, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == ' ' || p[i] == '-' || p[i] == '_') continue;
        if (!*want || (*want | 0x20) != (p[i] | 0x20)) return false;
        want++;
    }
    return !*want;
}

static bool add_script(ses_re_parser *r, size_t k, bool negate)
{
    bool ok = ses_char_set_add(r, SES_CHAR_SET_OPEN, 0, 0);
    for (size_t i = 0; ok && i < SES_LEN(script[k].range) && script[k].range[i][1]; i++)
        ok = ses_char_set_add(r, SES_CHAR_SET_RANGE, script[k].range[i][0], script[k].range[i][1]);
    return ok && ses_char_set_add(r, negate ? SES_CHAR_SET_CLOSE_NOT : SES_CHAR_SET_CLOSE, 0, 0);
}

/* After \p or \P: {Name} or {^Name}. */
static bool property(ses_re_parser *r, bool negate)
{
    const char *p = r->p + r->i, *close = memchr(p, '}', r->n - r->i);
    if (r->i >= r->n || *p != '{') return ses_re_unsupported(r, "\\p without {");
    if (!close) return ses_re_syntax_error(r, "\\p{ without }");
    p++;
    if (*p == '^') negate = !negate, p++;
    size_t n = (size_t)(close - p);
    r->i = (size_t)(close + 1 - r->p);
    for (size_t i = 0; i < SES_LEN(category); i++)
        if (same_name(category[i].name, p, n))
            return ses_char_set_add(r, negate ? SES_CHAR_SET_NOT_GC : SES_CHAR_SET_GC, category[i].mask, 0);
    for (size_t i = 0; i < SES_LEN(script); i++)
        if (same_name(script[i].name, p, n)) return add_script(r, i, negate);
    return ses_re_unsupported(r, "this \\p{...}");
}

/* \h: [0-9A-Fa-f]. */
static bool hex_digits(ses_re_parser *r, bool negate)
{
    return ses_char_set_add(r, SES_CHAR_SET_OPEN, 0, 0) &&
           ses_char_set_add(r, SES_CHAR_SET_RANGE, '0', '9') &&
           ses_char_set_add(r, SES_CHAR_SET_RANGE, 'A', 'F') &&
           ses_char_set_add(r, SES_CHAR_SET_RANGE, 'a', 'f') &&
           ses_char_set_add(r, negate ? SES_CHAR_SET_CLOSE_NOT : SES_CHAR_SET_CLOSE, 0, 0);
}

/* \w inside brackets excludes six numeric characters of Latin-1, as in Oniguruma. */
static bool bracket_word(ses_re_parser *r, bool negate)
{
    return ses_char_set_add(r, SES_CHAR_SET_OPEN, 0, 0) &&
           ses_char_set_add(r, SES_CHAR_SET_FLAG, SES_CP_OWORD, 0) &&
           ses_char_set_add(r, SES_CHAR_SET_AND, 0, 0) &&
           ses_char_set_add(r, SES_CHAR_SET_NOT_GC, 1u << SES_GC_NO, 0) &&
           ses_char_set_add(r, negate ? SES_CHAR_SET_CLOSE_NOT : SES_CHAR_SET_CLOSE, 0, 0);
}

bool ses_char_set_escape(ses_re_parser *r, bool bracket, bool *is_class)
{
    *is_class = true;
    char c = r->p[r->i++];
    switch (c) {
    case 'd': return ses_char_set_add(r, SES_CHAR_SET_GC, 1u << SES_GC_ND, 0);
    case 'D': return ses_char_set_add(r, SES_CHAR_SET_NOT_GC, 1u << SES_GC_ND, 0);
    case 's': return ses_char_set_add(r, SES_CHAR_SET_FLAG, SES_CP_SPACE, 0);
    case 'S': return ses_char_set_add(r, SES_CHAR_SET_NOT_FLAG, SES_CP_SPACE, 0);
    case 'w':
    case 'W':
        if (bracket) return bracket_word(r, c == 'W');
        return ses_char_set_add(r, c == 'W' ? SES_CHAR_SET_NOT_FLAG : SES_CHAR_SET_FLAG, SES_CP_OWORD, 0);
    case 'h':
    case 'H': return hex_digits(r, c == 'H');
    case 'p':
    case 'P': return property(r, c == 'P');
    default:
        *is_class = false;
        r->i--;
        return true;
    }
}

/* ---- brackets ---- */

/* [:name:] or [:^name:], r->i after "[:". */
static bool posix(ses_re_parser *r)
{
    const char *p = r->p + r->i;
    bool negate = r->i < r->n && *p == '^';
    p += negate;
    size_t n = 0;
    while (p + n < r->p + r->n && p[n] >= 'a' && p[n] <= 'z') n++;
    if (r->p + r->n - p < (ptrdiff_t)n + 2 || p[n] != ':' || p[n + 1] != ']')
        return ses_re_unsupported(r, "[:");
    r->i = (size_t)(p + n + 2 - r->p);
    if (n == 5 && !memcmp(p, "punct", 5))
        return ses_char_set_add(r, negate ? SES_CHAR_SET_NOT_GC : SES_CHAR_SET_GC, SES_GCS_P | SES_GCS_S, 0);
    if (n == 5 && !memcmp(p, "space", 5))
        return ses_char_set_add(r, negate ? SES_CHAR_SET_NOT_FLAG : SES_CHAR_SET_FLAG, SES_CP_SPACE, 0);
    if (n == 5 && !memcmp(p, "digit", 5))
        return ses_char_set_add(r, negate ? SES_CHAR_SET_NOT_GC : SES_CHAR_SET_GC, 1u << SES_GC_ND, 0);
    if (n == 6 && !memcmp(p, "xdigit", 6)) return hex_digits(r, negate);
    return ses_re_unsupported(r, "this [:...:]");
}

static bool add_range(ses_re_parser *r, uint32_t a, uint32_t b)
{
    if (a > b) return ses_re_syntax_error(r, "a range in descending order");
    if (!ses_char_set_add(r, SES_CHAR_SET_RANGE, a, b)) return false;
    if (!r->fold) return true;
    if (b >= 0x80) return ses_re_unsupported(r, "case-insensitive non-ASCII characters");
    for (uint32_t c = a; c <= b; c++)
        if (!ses_char_set_add_case(r, c)) return false;
    return true;
}

/* One character of a bracket, escaped or not. */
static bool bracket_char(ses_re_parser *r, uint32_t *cp)
{
    if (r->p[r->i] != '\\') return r->i += ses_utf8_next(r->p + r->i, cp), true;
    r->i++;
    if (r->i >= r->n) return ses_re_syntax_error(r, "\\ at the end");
    if (r->p[r->i] == 'b') return r->i++, *cp = '\b', true;
    return ses_re_char_escape(r, cp);
}

static bool at(const ses_re_parser *r, size_t k, char c) { return r->i + k < r->n && r->p[r->i + k] == c; }

/* A character, a range or a class; not ] [ or &&. */
static bool bracket_item(ses_re_parser *r)
{
    if (at(r, 0, '\\') && r->i + 1 < r->n) {
        bool is_class;
        r->i++;
        if (!ses_char_set_escape(r, true, &is_class)) return false;
        if (is_class) {
            if (r->fold) return ses_re_unsupported(r, "a case-insensitive class in brackets");
            if (at(r, 0, '-') && !at(r, 1, ']')) return ses_re_unsupported(r, "- after a class");
            return true;
        }
        r->i--;
    }
    uint32_t a, b;
    if (!bracket_char(r, &a)) return false;
    if (!at(r, 0, '-') || at(r, 1, ']') || r->i + 1 >= r->n) return add_range(r, a, a);
    r->i++;
    if (at(r, 0, '[') || (at(r, 0, '&') && at(r, 1, '&')))
        return ses_re_unsupported(r, "a range that ends in a class");
    if (at(r, 0, '\\') && r->i + 1 < r->n && strchr("dDsSwWhHpP", r->p[r->i + 1]))
        return ses_re_syntax_error(r, "a range that ends in a class");
    return bracket_char(r, &b) && add_range(r, a, b);
}

/* After [, including its ^. A ] in first position is a literal character. */
static bool bracket_open(ses_re_parser *r, bool *negate)
{
    *negate = at(r, 0, '^');
    r->i += *negate;
    if (*negate && r->fold) return ses_re_unsupported(r, "case-insensitive [^...]");
    if (!ses_char_set_add(r, SES_CHAR_SET_OPEN, 0, 0)) return false;
    if (!at(r, 0, ']')) return true;
    r->i++;
    return memchr(r->p + r->i, ']', r->n - r->i) ? add_range(r, ']', ']')
                                                 : ses_re_syntax_error(r, "an empty [...]");
}

bool ses_char_set_bracket(ses_re_parser *r)
{
    bool negate[SES_CHAR_SET_DEPTH];
    size_t depth = 1;
    if (!bracket_open(r, &negate[0])) return false;
    while (depth) {
        if (r->i >= r->n) return ses_re_syntax_error(r, "[ without ]");
        bool ok = true;
        if (at(r, 0, ']')) {
            r->i++;
            ok = ses_char_set_add(r, negate[--depth] ? SES_CHAR_SET_CLOSE_NOT : SES_CHAR_SET_CLOSE, 0, 0);
        } else if (at(r, 0, '[') && at(r, 1, ':')) {
            r->i += 2;
            ok = posix(r);
        } else if (at(r, 0, '[')) {
            r->i++;
            if (depth == SES_CHAR_SET_DEPTH - 1) return ses_re_unsupported(r, "brackets nested this deep");
            ok = bracket_open(r, &negate[depth++]);
        } else if (at(r, 0, '&') && at(r, 1, '&')) {
            r->i += 2;
            ok = ses_char_set_add(r, SES_CHAR_SET_AND, 0, 0);
        } else {
            ok = bracket_item(r);
        }
        if (!ok) return false;
    }
    return true;
}
