/* Reader of dependency trees in CoNLL-U. */
#include "conllu.h"

#include "base/alloc.h"
#include "text_reader.h"

#include <string.h>

enum { MAX_SENTENCE = 16 << 20, N_COLUMNS = 10, MAX_WORDS = 1 << 20 };
enum { ID, FORM, UPOS = 3, XPOS, FEATS, HEAD, DEPREL };

static const int kept[] = { FORM, UPOS, XPOS, FEATS, DEPREL };
enum { N_KEPT = 5 };

struct ses_conllu {
    ses_text_reader lines;
    char *path; /* NULL: memory */
    ses_conllu_options o;
    ses_buf bytes;
    size_t *begin; /* [n, N_KEPT] offsets in bytes; a field ends before its NUL */
    size_t begin_cap;
    ses_conllu_word *word;
    size_t n, cap;
    int *mark; /* [n + 1]; see check_cycles */
    size_t mark_cap;
    long range_end; /* last word of the ranges so far */
    uint64_t range_line;
    bool any; /* a sentence was returned */
    uint64_t skipped;
    ses_err first_skipped;
};

/* Splits a line at tabs; returns the number of fields, at most N_COLUMNS + 1. */
static int split_tabs(const char *s, size_t n, ses_string f[N_COLUMNS + 1])
{
    int count = 0;
    const char *end = s + n;
    while (count <= N_COLUMNS) {
        const char *tab = memchr(s, '\t', (size_t)(end - s));
        f[count++] = (ses_string){ s, (size_t)((tab ? tab : end) - s) };
        if (!tab) break;
        s = tab + 1;
    }
    return count;
}

/* Parses digits at *p, before end, and moves *p past them; -1: none, or above MAX_WORDS. */
static long parse_digits(const char **p, const char *end)
{
    long x = 0;
    const char *begin = *p;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        if ((x = 10 * x + (**p - '0')) > MAX_WORDS) return -1;
    return *p > begin ? x : -1;
}

static bool wrong_id(ses_string id, const char *expected, size_t number, ses_err *e)
{
    return ses_fail(e, SES_EFORMAT, "ID \"%s\", expected %s %zu", ses_quoted_of(id.p, id.n).s, expected,
                    number);
}

/* Reads an ID. *is_word is false for a range ("3-4") and an empty node ("8.1"). */
static bool read_id(ses_conllu *c, ses_string id, bool *is_word, ses_err *e)
{
    const char *p = id.p, *end = id.p + id.n;
    long first = parse_digits(&p, end), last = -1;
    char mark = p < end ? *p++ : 0;
    *is_word = !mark;
    if (mark == '-' || mark == '.') last = parse_digits(&p, end);
    if (first < 0 || p < end || (mark && last < 0)) return wrong_id(id, "word", c->n + 1, e);
    if (mark == '.') return (size_t)first == c->n || wrong_id(id, "an empty node after word", c->n, e);
    if ((size_t)first != c->n + 1) return wrong_id(id, mark ? "a range from word" : "word", c->n + 1, e);
    if (!mark) return true;
    if (last <= first) return ses_fail(e, SES_EFORMAT, "range %.*s ends before it begins", (int)id.n, id.p);
    if (first <= c->range_end)
        return ses_fail(e, SES_EFORMAT, "range %.*s overlaps the one of line %llu", (int)id.n, id.p,
                        (unsigned long long)c->range_line);
    c->range_end = last;
    c->range_line = c->lines.line;
    return true;
}

static bool reserve(ses_conllu *c, ses_err *e)
{
    return ses_array_reserve(&c->word, &c->cap, c->n + 1, sizeof *c->word, e) &&
           ses_array_reserve(&c->begin, &c->begin_cap, (c->n + 1) * N_KEPT, sizeof *c->begin, e);
}

static bool add_word(ses_conllu *c, const ses_string *f, ses_err *e)
{
    const char *p = f[HEAD].p, *end = p + f[HEAD].n;
    long head = parse_digits(&p, end);
    if (head < 0 || p < end)
        return ses_fail(e, SES_EFORMAT, "HEAD \"%s\", expected the number of a word, or 0 for the root",
                        ses_quoted_of(f[HEAD].p, f[HEAD].n).s);
    if (c->n == MAX_WORDS) return ses_fail(e, SES_EFORMAT, "more than %d words", (int)MAX_WORDS);
    if (!reserve(c, e)) return false;
    ses_conllu_word *w = &c->word[c->n];
    *w = (ses_conllu_word){ .head = (int)head, .line = c->lines.line };
    for (int k = 0; k < N_KEPT; k++) {
        c->begin[c->n * N_KEPT + (size_t)k] = c->bytes.len;
        ses_buf_append(&c->bytes, f[kept[k]].p, f[kept[k]].n);
        ses_buf_put(&c->bytes, 0);
    }
    c->n++;
    return ses_buf_ok(&c->bytes, e);
}

static bool read_line(ses_conllu *c, const char *s, size_t n, ses_err *e)
{
    static const char *const name[N_COLUMNS] = { "ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                                 "FEATS", "HEAD", "DEPREL", "DEPS", "MISC" };
    ses_string f[N_COLUMNS + 1];
    if (s[0] == '#') return true;
    int count = split_tabs(s, n, f);
    if (count != N_COLUMNS)
        return ses_fail(e, SES_EFORMAT, "%s%d column%s, expected %d, separated by tabs",
                        count > N_COLUMNS ? "more than " : "", count > N_COLUMNS ? N_COLUMNS : count,
                        count == 1 ? "" : "s", (int)N_COLUMNS);
    for (int k = 0; k < N_COLUMNS; k++)
        if (!f[k].n) return ses_fail(e, SES_EFORMAT, "empty %s, expected \"_\" or a value", name[k]);
    bool is_word;
    return read_id(c, f[ID], &is_word, e) && (!is_word || add_word(c, f, e));
}

/* mark[i]: 0, or the first word of the walk towards the root that visited word i. */
static bool check_cycles(ses_conllu *c, ses_err *e)
{
    if (!ses_array_reserve(&c->mark, &c->mark_cap, c->n + 1, sizeof *c->mark, e)) return false;
    memset(c->mark, 0, (c->n + 1) * sizeof *c->mark);
    for (int first = 1; first <= (int)c->n; first++) {
        int i = first;
        for (; i && !c->mark[i]; i = c->word[i - 1].head) c->mark[i] = first;
        if (i && c->mark[i] == first)
            return ses_fail(e, SES_EFORMAT,
                            "line %llu: word %d is its own ancestor: its heads form a cycle, expected a tree",
                            (unsigned long long)c->word[i - 1].line, i);
    }
    return true;
}

static bool check_tree(ses_conllu *c, ses_err *e)
{
    size_t root = 0;
    if (c->range_end > (long)c->n)
        return ses_fail(e, SES_EFORMAT, "line %llu: the range ends at word %ld, the sentence at %zu",
                        (unsigned long long)c->range_line, c->range_end, c->n);
    for (size_t i = 0; i < c->n; i++) {
        const ses_conllu_word *w = &c->word[i];
        unsigned long long line = w->line;
        if ((size_t)w->head > c->n)
            return ses_fail(e, SES_EFORMAT,
                            "line %llu: HEAD %d, expected 0 to %zu, the words of the sentence", line, w->head,
                            c->n);
        if (!w->head && root)
            return ses_fail(e, SES_EFORMAT, "line %llu: second root, after word %zu; expected one HEAD 0",
                            line, root);
        if (!w->head) root = i + 1;
    }
    unsigned long long first = c->word->line;
    if (!root)
        return ses_fail(e, SES_EFORMAT, "line %llu: sentence without a root; expected one HEAD 0", first);
    return check_cycles(c, e);
}

static void set_fields(ses_conllu *c)
{
    for (size_t i = 0; i < c->n; i++) {
        ses_conllu_word *w = &c->word[i];
        ses_string *field[N_KEPT] = { &w->form, &w->upos, &w->xpos, &w->feats, &w->deprel };
        for (int k = 0; k < N_KEPT; k++) {
            const char *p = c->bytes.data + c->begin[i * N_KEPT + (size_t)k];
            *field[k] = (ses_string){ p, strlen(p) };
        }
    }
}

static void skip_sentence(ses_conllu *c, const ses_err *why)
{
    if (!c->skipped++) c->first_skipped = *why;
}

/* Reads the lines of one sentence; *end: the file has ended. An error of its format goes to *bad, and the
 * rest of the sentence is read over. */
static bool read_sentence(ses_conllu *c, bool *end, ses_err *bad, ses_err *e)
{
    const char *p;
    size_t n, bytes = 0;
    c->n = c->bytes.len = 0;
    c->range_end = 0;
    for (;;) {
        if (!ses_text_reader_next(&c->lines, &p, &n, e)) return false;
        *end = !p;
        if (!p || ses_text_is_blank(p, n)) return true;
        if (bad->code) continue;
        if (!read_line(c, p, n, bad)) ses_wrap(bad, "line %llu", (unsigned long long)c->lines.line);
        if ((bytes += n) > c->o.max_sentence)
            ses_fail(bad, SES_EFORMAT, "line %llu: sentence longer than %zu bytes",
                     (unsigned long long)c->lines.line, c->o.max_sentence);
    }
}

static bool in_file(const ses_conllu *c, ses_err *e) { return c->path ? ses_wrap(e, "%s", c->path) : false; }

bool ses_conllu_next(ses_conllu *c, ses_conllu_sentence *s, ses_err *e)
{
    *s = (ses_conllu_sentence){ 0 };
    for (bool end = false; !end;) {
        ses_err bad = { 0 };
        if (!read_sentence(c, &end, &bad, e)) return in_file(c, e);
        bool empty = !bad.code && !c->n && !c->range_end;
        if (empty) continue;
        if (!bad.code && check_tree(c, &bad)) {
            set_fields(c);
            *s = (ses_conllu_sentence){ .n = c->n, .word = c->word, .line = c->word->line };
            return c->any = true;
        }
        if (bad.code != SES_EFORMAT || !c->o.skip_invalid) {
            if (e && !e->code) *e = bad;
            return in_file(c, e);
        }
        skip_sentence(c, &bad);
    }
    if (c->any) return true;
    ses_fail(e, SES_EFORMAT, c->skipped ? "no valid sentences, expected CoNLL-U: %s" : "no sentences%s",
             c->skipped ? c->first_skipped.msg : ", expected CoNLL-U");
    return in_file(c, e);
}

static ses_conllu *make(const ses_conllu_options *o, ses_err *e)
{
    ses_conllu *c = ses_alloc(sizeof *c, e);
    if (c && o) c->o = *o;
    if (c && !c->o.max_sentence) c->o.max_sentence = MAX_SENTENCE;
    return c;
}

ses_conllu *ses_conllu_open(const char *path, const ses_conllu_options *o, ses_err *e)
{
    ses_conllu *c = make(o, e);
    if (c && (c->path = ses_strdup(path, e)) && ses_text_reader_open(&c->lines, path, c->o.max_sentence, e))
        return c;
    ses_wrap(e, "%s", path);
    ses_conllu_free(c);
    return NULL;
}

ses_conllu *ses_conllu_from_text(const char *text, size_t n, const ses_conllu_options *o, ses_err *e)
{
    ses_conllu *c = make(o, e);
    if (c) ses_text_reader_from_text(&c->lines, text, n, c->o.max_sentence);
    return c;
}

void ses_conllu_free(ses_conllu *c)
{
    if (!c) return;
    ses_text_reader_free(&c->lines);
    ses_buf_free(&c->bytes);
    ses_free(c->path);
    ses_free(c->begin);
    ses_free(c->word);
    ses_free(c->mark);
    ses_free(c);
}

uint64_t ses_conllu_skipped(const ses_conllu *c) { return c->skipped; }
const char *ses_conllu_first_skipped(const ses_conllu *c) { return c->first_skipped.msg; }

ses_string ses_conllu_feature(ses_string feats, const char *name)
{
    size_t k = strlen(name);
    for (const char *p = feats.p, *end = p + feats.n; p < end;) {
        const char *bar = memchr(p, '|', (size_t)(end - p)), *stop = bar ? bar : end;
        if ((size_t)(stop - p) > k && p[k] == '=' && !memcmp(p, name, k))
            return (ses_string){ p + k + 1, (size_t)(stop - p) - k - 1 };
        p = stop + 1;
    }
    return (ses_string){ NULL, 0 };
}

ses_string ses_conllu_relation(ses_string deprel)
{
    const char *colon = memchr(deprel.p, ':', deprel.n);
    return (ses_string){ deprel.p, colon && colon > deprel.p ? (size_t)(colon - deprel.p) : deprel.n };
}
