/* Texts as words. */
#include "word_split.h"

#include "base/alloc.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/unicode.h"

#include <string.h>

const char *ses_words_rule_name(ses_words_rule rule) { return rule == SES_WORDS_BLANK ? "blank" : "text"; }

bool ses_words_rule_of(const char *name, ses_words_rule *rule)
{
    *rule = name && !strcmp(name, "blank") ? SES_WORDS_BLANK : SES_WORDS_TEXT;
    return name && !strcmp(name, ses_words_rule_name(*rule));
}

/* ---- characters ---- */

typedef enum { SPACE, LETTER, APOSTROPHE, OTHER } char_class;

static char_class classify_ascii(unsigned char c)
{
    if ((unsigned)(c | 32) - 'a' < 26 || (unsigned)c - '0' < 10 || c == '_') return LETTER;
    if (c == ' ' || (c >= '\t' && c <= '\r') || !c) return SPACE;
    return c == '\'' ? APOSTROPHE : OTHER;
}

/* Class of the character at s, whose bytes are *len. A byte that is not UTF-8 is a character. */
static char_class classify(const char *s, size_t n, ses_words_rule rule, size_t *len)
{
    unsigned char first = (unsigned char)*s;
    char_class class = OTHER;
    *len = 1;
    if (rule == SES_WORDS_BLANK) return first < 0x80 && classify_ascii(first) == SPACE ? SPACE : LETTER;
    if (first < 0x80) {
        class = classify_ascii(first);
    } else {
        uint32_t cp;
        *len = ses_char_at(s, n, &cp);
        if (cp < 0x110000) {
            bool alone = rule == SES_WORDS_TEXT && ses_cp_is(cp, SES_CP_CJK);
            class = ses_cp_is(cp, SES_CP_SPACE)            ? SPACE
                    : ses_cp_is(cp, SES_CP_WORD) && !alone ? LETTER
                    : cp == 0x2019                         ? APOSTROPHE
                                                           : OTHER;
        }
    }
    return rule == SES_WORDS_RUNS && class != LETTER ? SPACE : class;
}

/* ---- words ---- */

size_t ses_word_find(const char *s, size_t n, ses_words_rule rule, size_t *begin)
{
    size_t i = 0, len, after;
    char_class c = SPACE;
    for (; i < n && (c = classify(s + i, n - i, rule, &len)) == SPACE; i += len) {}
    *begin = i;
    if (i == n) return 0;
    for (i += len; c == LETTER && i < n; i += len) {
        char_class next = classify(s + i, n - i, rule, &len);
        bool joins =
            next == APOSTROPHE && i + len < n && classify(s + i + len, n - i - len, rule, &after) == LETTER;
        if (next != LETTER && !joins) break;
    }
    return i - *begin;
}

static bool add_word(ses_words *w, const char *s, size_t n, ses_err *e)
{
    if (w->n + 1 > w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        size_t *begin = ses_realloc_array(w->begin, cap, sizeof *begin, e);
        if (!begin) return false;
        w->begin = begin;
        size_t *end = ses_realloc_array(w->end, cap, sizeof *end, e);
        if (!end) return false;
        w->end = end;
        w->cap = cap;
    }
    if (w->n) ses_buf_put(&w->text, ' ');
    w->begin[w->n] = w->text.len;
    ses_buf_append(&w->text, s, n);
    w->end[w->n++] = w->text.len;
    return ses_buf_ok(&w->text, e);
}

bool ses_words_split(ses_words *w, ses_string text, ses_words_rule rule, ses_err *e)
{
    const char *s = text.p;
    size_t n = text.n, begin, len;
    w->n = w->text.len = w->lower.len = 0;
    if (rule != SES_WORDS_BLANK) {
        ses_lower_append(&w->lower, s, n);
        if (!ses_buf_ok(&w->lower, e)) return false;
        s = w->lower.data;
        n = w->lower.len;
    }
    for (; n && (len = ses_word_find(s, n, rule, &begin)); s += begin + len, n -= begin + len)
        if (!add_word(w, s + begin, len, e)) return false;
    return true;
}

void ses_words_free(ses_words *w)
{
    ses_buf_free(&w->lower);
    ses_buf_free(&w->text);
    ses_free(w->begin);
    ses_free(w->end);
    *w = (ses_words){ 0 };
}
