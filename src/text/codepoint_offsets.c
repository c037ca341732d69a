/* Conversion of byte offsets to code point offsets. */
#include "codepoint_offsets.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <string.h>

/* Position in the text for queries in mostly increasing order. Bytes in [byte, wide) are all ASCII. */
typedef struct cursor {
    const char *text;
    size_t n, byte, non_ascii; /* wide: first non-ASCII byte at or after `byte`; n: none */
    uint32_t lead;             /* characters that start before `byte` */
} cursor;

static bool is_continuation(const cursor *c, size_t at) { return ses_utf8_continues(c->text[at]); }

static size_t find_non_ascii(const char *text, size_t at, size_t n)
{
    uint64_t word;
    for (; at + 8 <= n; at += 8) {
        memcpy(&word, text + at, 8);
        if (word & 0x8080808080808080u) break;
    }
    while (at < n && (uint8_t)text[at] < 0x80) at++;
    return at;
}

static void advance_to(cursor *c, size_t at)
{
    while (c->byte < at) c->lead += !is_continuation(c, c->byte++);
    while (c->byte > at) c->lead -= !is_continuation(c, --c->byte);
    c->non_ascii = find_non_ascii(c->text, at, c->n);
}

/* Index of the character that contains byte `at`; at < n. */
static uint32_t codepoint_at(cursor *c, size_t at)
{
    if (at < c->byte || at > c->non_ascii) advance_to(c, at);
    return c->lead + (uint32_t)(at - c->byte) - is_continuation(c, at);
}

static ses_offset convert(cursor *c, ses_offset byte)
{
    if (byte.begin >= c->n) return byte;
    ses_offset p = { .begin = codepoint_at(c, byte.begin) };
    if (byte.end < c->n)
        p.end = codepoint_at(c, byte.end);
    else
        p.end = byte.end - 1 < c->n ? codepoint_at(c, byte.end - 1) + 1 : p.begin + 2;
    return p;
}

bool ses_codepoint_offsets(ses_isa isa, ses_codepoint_table *table, const char *text, size_t n,
                           const ses_offset *byte, ses_offset *point, size_t count, ses_err *e)
{
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (isa >= SES_ISA_AVX2 && n <= SES_CODEPOINT_SHORT) {
        if (!table->point) table->point = ses_alloc_array(SES_CODEPOINT_SHORT + 16, sizeof *table->point, e);
        if (!table->point) return false;
        ses_codepoint_offsets_short_avx2(table->point, text, n, byte, point, count);
        return true;
    }
    if (isa >= SES_ISA_AVX2) {
        size_t blocks = n / 64 + 1;
        if (!ses_array_reserve(&table->block, &table->cap, blocks, sizeof *table->block, e)) return false;
        ses_codepoint_offsets_avx2(table->block, text, n, byte, point, count);
        return true;
    }
#endif
    (void)isa, (void)table, (void)e;
    cursor c = { text, n, 0, find_non_ascii(text, 0, n), 0 };
    for (size_t i = 0; i < count; i++) point[i] = convert(&c, byte[i]);
    return true;
}

void ses_codepoint_table_free(ses_codepoint_table *t)
{
    ses_free(t->block);
    ses_free(t->point);
    *t = (ses_codepoint_table){ 0 };
}
