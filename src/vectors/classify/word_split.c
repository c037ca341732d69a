/* Texts as words: lower case, punctuation apart; or split at white space. */
#include "word_split.h"

#include "base/alloc.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/unicode.h"

typedef enum { SPACE, LETTER, APOSTROPHE, OTHER } char_class;

/* Class of the character at s, whose bytes are *len. A byte that is not UTF-8 is a character. */
static char_class classify(const char *s, size_t n, ses_word_rule rule, size_t *len)
{
    uint32_t cp;
    *len = ses_char_at(s, n, &cp);
    if (cp >= 0x110000) return OTHER;
    if (ses_cp_is(cp, SES_CP_SPACE) || cp == 0) return SPACE;
    if (rule == SES_WORDS_BLANK || ses_cp_is(cp, SES_CP_WORD)) return LETTER;
    return cp == '\'' || cp == 0x2019 ? APOSTROPHE : OTHER;
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

/* Bytes of the word that begins at s with a character of class c and `len` bytes. */
static size_t word_length(const char *s, size_t n, ses_word_rule rule, char_class c, size_t len)
{
    size_t i = len, more, after;
    while (c == LETTER && i < n) {
        char_class next = classify(s + i, n - i, rule, &more);
        bool joins = next == APOSTROPHE && i + more < n &&
                     classify(s + i + more, n - i - more, rule, &after) == LETTER;
        if (next != LETTER && !joins) break;
        i += more;
    }
    return i;
}

bool ses_words_split(ses_words *w, ses_string text, ses_word_rule rule, ses_err *e)
{
    const char *s = text.p;
    size_t n = text.n, len;
    w->n = w->text.len = w->lower.len = 0;
    if (rule != SES_WORDS_BLANK) {
        ses_lower_append(&w->lower, s, n);
        if (!ses_buf_ok(&w->lower, e)) return false;
        s = w->lower.data;
        n = w->lower.len;
    }
    for (size_t i = 0; i < n; i += len) {
        char_class c = classify(s + i, n - i, rule, &len);
        if (c == SPACE) continue;
        len = word_length(s + i, n - i, rule, c, len);
        if (!add_word(w, s + i, len, e)) return false;
    }
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
