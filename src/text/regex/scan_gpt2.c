/* Hand-written scanner for GPT-2's split pattern. */
#include "scan_gpt2.h"

#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"

#include <string.h>

typedef enum { OTHER, LETTER, NUMBER, SPACE, END } class;

static class class_of(uint32_t c)
{
    const ses_cp_info *info = ses_cp(c);
    if (info->flags & SES_CP_SPACE) return SPACE;
    uint32_t gc = 1u << info->gc;
    return gc & SES_GCS_L ? LETTER : gc & SES_GCS_N ? NUMBER : OTHER;
}

/* Class and length of the character at p; END if n is 0. */
static class class_at(const char *p, size_t n, size_t *step)
{
    uint32_t c;
    *step = ses_utf8_decode(p, n, &c);
    return *step ? class_of(c) : END;
}

static size_t run_of(class want, const char *p, size_t n)
{
    size_t i = 0, step;
    while (i < n && class_at(p + i, n - i, &step) == want) i += step;
    return i;
}

/* 's 't 'm 'd 're 've 'll */
static size_t contraction(const char *p, size_t n)
{
    if (n < 2) return 0;
    if (strchr("stmd", p[1]) && p[1]) return 2;
    if (n < 3) return 0;
    return !memcmp(p + 1, "re", 2) || !memcmp(p + 1, "ve", 2) || !memcmp(p + 1, "ll", 2) ? 3 : 0;
}

/* White space at the end of the text is one match; otherwise its last character, if it has several,
 * belongs to the next match. */
static size_t spaces(const char *p, size_t n)
{
    size_t i = 0, last = 0, step;
    while (i < n && class_at(p + i, n - i, &step) == SPACE) last = i, i += step;
    return i == n || !last ? i : last;
}

size_t ses_scan_gpt2(const char *p, size_t n)
{
    size_t step;
    if (*p == '\'') {
        size_t k = contraction(p, n);
        if (k) return k;
    }
    size_t space = *p == ' ';
    class c = class_at(p + space, n - space, &step);
    if (c == SPACE || c == END) return spaces(p, n);
    return space + run_of(c, p + space, n - space);
}
