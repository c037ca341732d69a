/* Selects how a pattern is matched (literal, scanner, backtracking, PCRE2) and iterates over its matches. */
#include "regex.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "regex_pcre2.h"
#include "regex_program.h"
#include "scan_cl100k.h"
#include "scan_gpt2.h"

#include <string.h>

typedef enum { SCANNER, LITERAL, PROGRAM, PCRE2 } matcher;

/* Returns the length of the match at p. The matches of a scanner cover the whole text. */
typedef size_t scan_fn(const char *p, size_t n);

struct ses_regex {
    matcher how;
    scan_fn *scan;
    const char *literal; /* not empty */
    size_t n;
    /* [n] KMP failure function of the literal: length of the prefix that still matches after a mismatch. */
    const size_t *fallback;
    ses_re_program program;
    ses_pcre2 *pcre2;
};

struct ses_regex_work {
    ses_re_machine machine;
    ses_pcre2_work *pcre2;
};

/* ---- known patterns ---- */

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define SPACES "\\s+(?!\\S)|\\s+"
#define CL100K(digits)                                            \
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" SPACES

static size_t cl100k_3(const char *p, size_t n) { return ses_scan_cl100k(p, n, 3); }
static size_t cl100k_1(const char *p, size_t n) { return ses_scan_cl100k(p, n, 1); }
static size_t cl100k_any(const char *p, size_t n) { return ses_scan_cl100k(p, n, 0); }

static const struct {
    const char *pattern;
    scan_fn *scan;
} known[] = {
    { CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES, ses_scan_gpt2 },
    { "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" SPACES, ses_scan_gpt2 },
    { "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s",
      ses_scan_gpt2 },
    { CL100K("\\p{N}{1,3}"), cl100k_3 },
    { CL100K("\\p{N}"), cl100k_1 },
    { CL100K("\\p{N}+"), cl100k_any },
};

/* ---- opening ---- */

static ses_regex *allocate(matcher how, ses_arena *mem, ses_err *e)
{
    ses_regex *r = ses_arena_array(mem, 1, sizeof *r, e);
    if (r) r->how = how;
    return r;
}

static bool open_program(ses_regex *r, const char *pattern, size_t n, ses_arena *mem, ses_err *e)
{
    bool ok;
    const char *what;
    if (!ses_re_compile(&r->program, pattern, n, mem, &ok, &what, e)) return false;
    if (ok) return true;
    r->how = PCRE2;
    r->pcre2 = ses_pcre2_open(pattern, n, what, e);
    return r->pcre2 != NULL;
}

ses_regex *ses_regex_open(const char *pattern, size_t n, ses_arena *mem, ses_err *e)
{
    ses_regex *r = allocate(PROGRAM, mem, e);
    if (!r) return NULL;
    for (size_t i = 0; i < SES_LEN(known); i++) {
        if (strlen(known[i].pattern) != n || memcmp(known[i].pattern, pattern, n) != 0) continue;
        r->how = SCANNER;
        r->scan = known[i].scan;
        return r;
    }
    if (open_program(r, pattern, n, mem, e)) return r;
    ses_wrap(e, "\"%s\"", ses_quoted_of(pattern, n).s);
    return NULL;
}

ses_regex *ses_regex_open_literal(const char *text, size_t n, ses_arena *mem, ses_err *e)
{
    if (!n) return ses_regex_open("", 0, mem, e);
    ses_regex *r = allocate(LITERAL, mem, e);
    if (!r) return NULL;
    r->literal = ses_arena_strndup(mem, text, n, e);
    size_t *fallback = ses_arena_array(mem, n, sizeof *fallback, e);
    if (!r->literal || !fallback) return NULL;
    for (size_t i = 1, k = 0; i < n; i++) {
        fallback[i] = k;
        while (k && text[i] != text[k]) k = fallback[k];
        k += text[i] == text[k];
    }
    r->n = n;
    r->fallback = fallback;
    return r;
}

void ses_regex_close(ses_regex *r)
{
    if (r) ses_pcre2_close(r->pcre2);
}

/* ---- iteration ---- */

/* Knuth-Morris-Pratt search. */
static bool search_literal(const ses_regex *r, const char *text, size_t n, size_t from, size_t *begin,
                           size_t *end)
{
    for (size_t i = from, k = 0; i < n; i++) {
        if (!k) {
            const char *p = memchr(text + i, r->literal[0], n - i);
            if (!p) return false;
            i = (size_t)(p - text);
        }
        while (k && text[i] != r->literal[k]) k = r->fallback[k];
        k += text[i] == r->literal[k];
        if (k < r->n) continue;
        *end = i + 1;
        *begin = *end - k;
        return true;
    }
    return false;
}

bool ses_regex_start(ses_regex_scan *s, const ses_regex *r, const char *text, size_t n, ses_err *e)
{
    *s = (ses_regex_scan){ .regex = r, .text = text, .n = n };
    if (r->how == SCANNER || r->how == LITERAL) return true;
    struct ses_regex_work *w = s->work = ses_alloc(sizeof *w, e);
    if (!w) return false;
    if (r->how == PCRE2) return (w->pcre2 = ses_pcre2_work_new(r->pcre2, e)) != NULL;
    ses_re_machine *m = &w->machine;
    m->program = &r->program;
    m->text = text;
    m->n = n;
    m->budget = 10000000 + 200 * (uint64_t)n;
    m->slot = ses_alloc_array(r->program.n_slots + 1, sizeof *m->slot, e);
    return m->slot != NULL;
}

void ses_regex_stop(ses_regex_scan *s)
{
    if (!s->work) return;
    ses_free(s->work->machine.stack);
    ses_free(s->work->machine.slot);
    ses_pcre2_work_free(s->work->pcre2);
    ses_free(s->work);
    s->work = NULL;
}

static bool search(ses_regex_scan *s, size_t *begin, size_t *end, ses_err *e)
{
    const ses_regex *r = s->regex;
    switch (r->how) {
    case SCANNER:
        s->found = s->from < s->n;
        *begin = s->from;
        if (s->found) *end = s->from + r->scan(s->text + s->from, s->n - s->from);
        return true;
    case LITERAL: s->found = search_literal(r, s->text, s->n, s->from, begin, end); return true;
    case PROGRAM: return ses_re_search(&s->work->machine, s->from, &s->found, begin, end, e);
    case PCRE2:
        return ses_pcre2_search(r->pcre2, s->work->pcre2, s->text, s->n, s->from, &s->found, begin, end, e);
    }
    return false;
}

bool ses_regex_next(ses_regex_scan *s, ses_err *e)
{
    s->found = false;
    while (s->from <= s->n) {
        size_t begin = 0, end = 0;
        if (!search(s, &begin, &end, e)) return false;
        if (!s->found) return true;
        if (begin == end && s->any &&
            end == s->end) { /* an empty match right after another match does not count */
            uint32_t cp;
            s->from += s->from < s->n ? ses_utf8_next(s->text + s->from, &cp) : 1;
            s->found = false;
            continue;
        }
        s->begin = begin;
        s->from = s->end = end;
        s->any = true;
        return true;
    }
    return true;
}
