/* Heuristic sentence splitter, sufficient for training data. */
#include "corpus_text.h"

#include "base/unicode/utf8.h"

#include <string.h>

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_letter(char c) { return is_lower((char)(c | 0x20)); }

/* Whether the word before p[at] is an abbreviation. */
static bool is_abbreviation(const char *p, size_t at)
{
    static const char *const word[] = { "Mr",   "Mrs", "Ms",   "Dr",  "Prof", "St",  "Sr",  "Jr",  "Gen",
                                        "Col",  "Lt",  "Capt", "Sgt", "Rev",  "Hon", "Gov", "Sen", "Rep",
                                        "Pres", "No",  "vs",   "cf",  "etc",  "al",  "Fig", "fig", "approx",
                                        "Inc",  "Co",  "Corp", "Ltd", "Mt",   "Jan", "Feb", "Mar", "Apr",
                                        "Aug",  "Sep", "Sept", "Oct", "Nov",  "Dec", "e.g", "i.e", "U.S" };
    size_t from = at;
    while (from > 0 && (is_letter(p[from - 1]) || p[from - 1] == '.')) from--;
    size_t n = at - from;
    if (n == 1) return true; /* an initial */
    for (size_t i = 0; i < SES_LEN(word); i++)
        if (strlen(word[i]) == n && !memcmp(word[i], p + from, n)) return true;
    return n > 2 && p[at - 2] == '.'; /* U.N., a.m. */
}

/* Bytes of a closing quote or bracket at p; 0: none. */
static size_t closing_mark(const char *p, size_t n)
{
    static const char *const mark[] = { "\"", "'", ")", "]", "\xe2\x80\x9d", "\xe2\x80\x99", "\xc2\xbb" };
    for (size_t i = 0; i < SES_LEN(mark); i++) {
        size_t k = strlen(mark[i]);
        if (k <= n && !memcmp(p, mark[i], k)) return k;
    }
    return 0;
}

/* Bytes of a Chinese or Japanese sentence end at p, which needs no space after it; 0: none. */
static size_t cjk_stop(const char *p, size_t n)
{
    static const char *const mark[] = { "\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f" };
    for (size_t i = 0; i < SES_LEN(mark); i++)
        if (n >= 3 && !memcmp(p, mark[i], 3)) return 3;
    return 0;
}

size_t ses_sentence_end(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t wide = cjk_stop(p + i, n - i), end = i + (wide ? wide : 1);
        bool dot = p[i] == '.';
        if (!wide && !dot && p[i] != '!' && p[i] != '?') continue;
        while (!wide && end < n && (p[end] == '.' || p[end] == '!' || p[end] == '?')) end++;
        bool one = end == i + 1;
        for (size_t k; end < n && (k = closing_mark(p + end, n - end)) > 0;) end += k;
        if (end == n) return n;
        if (!wide && !is_space(p[end])) continue;
        if (dot && one && is_abbreviation(p, i)) continue;
        while (end < n && is_space(p[end])) end++;
        if (end < n && is_lower(p[end])) continue;
        return end;
    }
    return n;
}
