/* Lookup in SentencePiece's precompiled_charsmap. */
#include "charsmap.h"

#include "base/unicode/utf8.h"

#include <string.h>

static uint32_t le32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool ses_charsmap_open(ses_charsmap *m, const char *bytes, size_t n, ses_err *e)
{
    const unsigned char *p = (const unsigned char *)bytes;
    if (n < 4) return ses_fail(e, SES_EFORMAT, "charsmap of %zu bytes is too short", n);
    size_t units = le32(p) / 4;
    if (units > (n - 4) / 4)
        return ses_fail(e, SES_EFORMAT, "charsmap: trie of %zu units exceeds the %zu bytes", units, n);
    if (!units) return ses_fail(e, SES_EFORMAT, "charsmap: the trie has no root");
    m->unit = p + 4;
    m->units = units;
    m->text = bytes + 4 + 4 * units;
    m->n = n - 4 - 4 * units;
    size_t good = ses_utf8_valid(m->text, m->n);
    if (good != m->n)
        return ses_fail(e, SES_EFORMAT, "charsmap: invalid UTF-8 in the replacements at byte %zu", good);
    return true;
}

/* Position in the double array. Unit layout: bits 0-7 and 31 label; bit 8 has a leaf; bits 10-30 offset to
 * the children (times 256 if bit 9 is set). The unit of a leaf holds the value in bits 0-30. */
typedef struct walk {
    const ses_charsmap *m;
    size_t node;
    uint32_t value;
    bool leaf, broken;
} walk;

static size_t offset(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6); }

static walk start(const ses_charsmap *m) { return (walk){ .m = m, .node = offset(le32(m->unit)) }; }

/* Follow one byte; false: no key continues with it. */
static bool step(walk *w, unsigned char byte)
{
    if (!byte) return false;
    size_t at = w->node ^ byte;
    if (at >= w->m->units) return false;
    uint32_t unit = le32(w->m->unit + 4 * at);
    if ((unit & (1u << 31 | 0xFF)) != byte) return false;
    w->node = at ^ offset(unit);
    w->leaf = unit >> 8 & 1;
    if (w->leaf) {
        w->broken = w->node >= w->m->units;
        if (!w->broken) w->value = le32(w->m->unit + 4 * w->node) & 0x7FFFFFFF;
    }
    return true;
}

static ses_charsmap_result replacement(const walk *w, uint32_t value, ses_string *to, ses_err *e)
{
    const ses_charsmap *m = w->m;
    if (w->broken || value > m->n || (value < m->n && ses_utf8_continues(m->text[value]))) {
        ses_fail(e, SES_EFORMAT, "charsmap: replacement at %u exceeds the %zu bytes", value, m->n);
        return SES_CHARSMAP_BROKEN;
    }
    const char *p = m->text + value, *end = m->n > value ? memchr(p, 0, m->n - value) : p;
    *to = (ses_string){ p, end ? (size_t)(end - p) : m->n - value };
    return SES_CHARSMAP_FOUND;
}

ses_charsmap_result ses_charsmap_shortest(const ses_charsmap *m, const char *p, size_t n, ses_string *to,
                                          ses_err *e)
{
    walk w = start(m);
    for (size_t i = 0; i < n && step(&w, (unsigned char)p[i]); i++)
        if (w.leaf) return replacement(&w, w.value, to, e);
    return SES_CHARSMAP_NONE;
}

ses_charsmap_result ses_charsmap_longest(const ses_charsmap *m, const char *p, size_t n, size_t *len,
                                         ses_string *to, ses_err *e)
{
    walk w = start(m);
    uint32_t value = 0;
    *len = 0;
    for (size_t i = 0; i < n && step(&w, (unsigned char)p[i]); i++) {
        if (!w.leaf) continue;
        *len = i + 1;
        value = w.value;
        if (w.broken) break;
    }
    return *len ? replacement(&w, value, to, e) : SES_CHARSMAP_NONE;
}

bool ses_charsmap_has_prefix(const ses_charsmap *m, const char *p, size_t n)
{
    walk w = start(m);
    size_t i = 0;
    while (i < n && step(&w, (unsigned char)p[i])) i++;
    return i == n;
}

bool ses_charsmap_has_byte(const ses_charsmap *m, unsigned char byte)
{
    for (size_t i = 0; i < m->units; i++)
        if ((le32(m->unit + 4 * i) & (1u << 31 | 0xFF)) == byte) return true;
    return false;
}
