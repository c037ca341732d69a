/* Where a sentence ends, by a short rule: good enough to learn from, not a grammar. */
#include "corpus_text.h"

#include "base/unicode/utf8.h"

#include <string.h>

static bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool lower(char c) { return c >= 'a' && c <= 'z'; }
static bool letter(char c) { return lower((char)(c | 0x20)); }

/* The word that ends before p[at], without what opens it. */
static bool abbreviation(const char *p, size_t at)
{
    static const char *const word[] = { "Mr",   "Mrs", "Ms",   "Dr",  "Prof", "St",  "Sr",  "Jr",  "Gen",
                                        "Col",  "Lt",  "Capt", "Sgt", "Rev",  "Hon", "Gov", "Sen", "Rep",
                                        "Pres", "No",  "vs",   "cf",  "etc",  "al",  "Fig", "fig", "approx",
                                        "Inc",  "Co",  "Corp", "Ltd", "Mt",   "Jan", "Feb", "Mar", "Apr",
                                        "Aug",  "Sep", "Sept", "Oct", "Nov",  "Dec", "e.g", "i.e", "U.S" };
    size_t from = at;
    while (from > 0 && (letter(p[from - 1]) || p[from - 1] == '.')) from--;
    size_t n = at - from;
    if (n == 1) return true; /* an initial */
    for (size_t i = 0; i < SES_LEN(word); i++)
        if (strlen(word[i]) == n && !memcmp(word[i], p + from, n)) return true;
    return n > 2 && p[at - 2] == '.'; /* U.N., a.m. */
}

/* Bytes of a closing mark at p: quotes and brackets. */
static size_t closing(const char *p, size_t n)
{
    static const char *const mark[] = { "\"", "'", ")", "]", "\xe2\x80\x9d", "\xe2\x80\x99", "\xc2\xbb" };
    for (size_t i = 0; i < SES_LEN(mark); i++) {
        size_t k = strlen(mark[i]);
        if (k <= n && !memcmp(p, mark[i], k)) return k;
    }
    return 0;
}

/* Bytes of a full stop of Chinese or Japanese, which needs no blank behind it. */
static size_t wide_stop(const char *p, size_t n)
{
    static const char *const mark[] = { "\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f" };
    for (size_t i = 0; i < SES_LEN(mark); i++)
        if (n >= 3 && !memcmp(p, mark[i], 3)) return 3;
    return 0;
}

size_t ses_sentence_end(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t wide = wide_stop(p + i, n - i), end = i + (wide ? wide : 1);
        bool dot = p[i] == '.';
        if (!wide && !dot && p[i] != '!' && p[i] != '?') continue;
        while (!wide && end < n && (p[end] == '.' || p[end] == '!' || p[end] == '?')) end++;
        bool one = end == i + 1;
        for (size_t k; end < n && (k = closing(p + end, n - end)) > 0;) end += k;
        if (end == n) return n;
        if (!wide && !space(p[end])) continue;
        if (dot && one && abbreviation(p, i)) continue;
        while (end < n && space(p[end])) end++;
        if (end < n && lower(p[end])) continue;
        return end;
    }
    return n;
}
