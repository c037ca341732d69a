/* Filters of templates: they change the value of a column. */
#include "eval_template.h"

#include "base/suggest.h"
#include "base/unicode/lowercase.h"
#include "base/unicode/utf8.h"

#include <string.h>

static bool run_strip(ses_string s, ses_buf *out)
{
    s = ses_trim(s);
    return ses_buf_append(out, s.p, s.n);
}

static bool run_lower(ses_string s, ses_buf *out) { return ses_lower_append(out, s.p, s.n); }

/* Bytes of the first character. */
static size_t first_len(ses_string s)
{
    size_t n = s.n ? 1 : 0;
    while (n < s.n && ses_utf8_continues(s.p[n])) n++;
    return n;
}

static bool run_lower_first(ses_string s, ses_buf *out)
{
    size_t n = first_len(s);
    return ses_lower_append(out, s.p, n) && ses_buf_append(out, s.p + n, s.n - n);
}

static bool run_upper_first(ses_string s, ses_buf *out)
{
    bool lower = s.n && s.p[0] >= 'a' && s.p[0] <= 'z';
    if (lower) ses_buf_put(out, (char)(s.p[0] - 'a' + 'A'));
    return ses_buf_append(out, s.p + lower, s.n - lower);
}

static bool run_without_end(ses_string s, ses_buf *out)
{
    s = ses_trim(s);
    if (s.n && strchr(".!?", s.p[s.n - 1])) s.n--;
    return ses_buf_append(out, s.p, s.n);
}

/* Start of the last word; words are separated by single blanks. */
static size_t last_word(ses_string s)
{
    size_t at = s.n;
    while (at && s.p[at - 1] != ' ') at--;
    return at;
}

static bool run_last_word(ses_string s, ses_buf *out)
{
    size_t at = last_word(s);
    return ses_buf_append(out, s.p + at, s.n - at);
}

static bool run_without_last_word(ses_string s, ses_buf *out)
{
    size_t at = last_word(s);
    return ses_buf_append(out, s.p, at ? at - 1 : 0);
}

/* "\newline", as MCTest writes it, as a line end. */
static bool run_newlines(ses_string s, ses_buf *out)
{
    static const char mark[] = "\\newline";
    for (size_t at = 0; at < s.n;) {
        bool found = s.n - at >= strlen(mark) && !memcmp(s.p + at, mark, strlen(mark));
        ses_buf_put(out, found ? '\n' : s.p[at]);
        at += found ? strlen(mark) : 1;
    }
    return ses_buf_append(out, "", 0);
}

/* ---- WikiText as plain text ---- */

static void replace_all(ses_buf *b, ses_buf *work, const char *from, const char *to)
{
    size_t n = strlen(from);
    work->len = 0;
    for (size_t at = 0; at < b->len;) {
        bool found = b->len - at >= n && !memcmp(b->data + at, from, n);
        if (found)
            ses_buf_puts(work, to);
        else
            ses_buf_put(work, b->data[at]);
        at += found ? n : 1;
    }
    ses_buf old = *b;
    *b = *work, *work = old;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Removes the white space inside of brackets: "( a )" becomes "(a)". */
static void tighten(ses_buf *b, ses_buf *work, char open, char close)
{
    work->len = 0;
    for (size_t at = 0; at < b->len;) {
        const char *end =
            b->data[at] == open && at + 1 < b->len ? memchr(b->data + at + 1, close, b->len - at - 1) : NULL;
        if (!end) {
            ses_buf_put(work, b->data[at++]);
            continue;
        }
        size_t from = at + 1, to = (size_t)(end - b->data);
        while (from < to && is_blank(b->data[from])) from++;
        while (to > from && is_blank(b->data[to - 1])) to--;
        ses_buf_put(work, open);
        ses_buf_append(work, b->data + from, to - from);
        ses_buf_put(work, close);
        at = (size_t)(end - b->data) + 1;
    }
    ses_buf old = *b;
    *b = *work, *work = old;
}

/* The harness's wikitext_detokenizer, in its order. */
static bool run_wikitext(ses_string s, ses_buf *out)
{
    static const char *const before[][2] = {
        { "s '", "s'" }, { " @-@ ", "-" }, { " @,@ ", "," }, { " @.@ ", "." }, { " : ", ": " },
        { " ; ", "; " }, { " . ", ". " },  { " ! ", "! " },  { " ? ", "? " },  { " , ", ", " },
    };
    static const char *const after[][2] = {
        { "= = = =", "====" }, { "= = =", "===" }, { "= =", "==" },  { " \xC2\xB0 ", "\xC2\xB0" },
        { " \n", "\n" },       { "\n ", "\n" },    { " N ", " 1 " }, { " 's", "'s" },
    };
    ses_buf b = { 0 }, work = { 0 };
    ses_buf_append(&b, s.p, s.n);
    for (size_t i = 0; i < SES_LEN(before); i++) replace_all(&b, &work, before[i][0], before[i][1]);
    tighten(&b, &work, '(', ')');
    tighten(&b, &work, '[', ']');
    tighten(&b, &work, '{', '}');
    tighten(&b, &work, '"', '"');
    tighten(&b, &work, '\'', '\'');
    for (size_t i = 0; i < SES_LEN(after); i++) replace_all(&b, &work, after[i][0], after[i][1]);
    bool ok = ses_buf_append(out, b.data, b.len) && ses_buf_ok(&b, NULL) && ses_buf_ok(&work, NULL);
    if (!ok && !out->wanted) out->wanted = s.n;
    ses_buf_free(&b);
    ses_buf_free(&work);
    return ok;
}

static const ses_eval_filter filters[] = {
    { "strip", run_strip },
    { "lower", run_lower },
    { "lower_first", run_lower_first },
    { "upper_first", run_upper_first },
    { "without_end", run_without_end },
    { "last_word", run_last_word },
    { "without_last_word", run_without_last_word },
    { "newlines", run_newlines },
    { "wikitext", run_wikitext },
};

const char *ses_eval_filter_name(const void *unused, size_t i)
{
    (void)unused;
    return i < SES_LEN(filters) ? filters[i].name : NULL;
}

const ses_eval_filter *ses_eval_filter_find(ses_string name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(filters); i++)
        if (ses_equal(name.p, name.n, filters[i].name)) return &filters[i];
    ses_fail_unknown(e, SES_EFORMAT, "filter", name, ses_eval_filter_name, NULL);
    return NULL;
}
