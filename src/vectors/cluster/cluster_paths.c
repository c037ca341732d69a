/* Files of word clusters: see cluster_paths.h. */
#include "cluster_paths.h"

#include "base/alloc.h"
#include "base/str.h"
#include "io/text_reader.h"

#include <string.h>

enum { MAX_LINE = 1 << 24 };

void ses_cluster_paths_free(ses_cluster_paths *p)
{
    ses_strmap_free(&p->words);
    ses_arena_free(&p->mem);
    ses_free((void *)p->path), ses_free(p->count);
    *p = (ses_cluster_paths){ 0 };
}

/* The digits of a count, at most 18. */
static bool parse_count(const char *s, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || n > 18) return false;
        *out = 10 * *out + (s[i] - '0');
    }
    return n > 0;
}

static bool add_line(ses_cluster_paths *p, const char *s, size_t n, ses_err *e)
{
    const char *tab = memchr(s, '\t', n),
               *second = tab ? memchr(tab + 1, '\t', n - (size_t)(tab + 1 - s)) : NULL;
    int64_t count;
    bool fresh;
    if (!second || second == tab + 1)
        return ses_fail(e, SES_EFORMAT, "expected a path, a word and a count, separated by tabs");
    for (const char *c = s; c < tab; c++)
        if (*c != '0' && *c != '1')
            return ses_fail(e, SES_EFORMAT, "path \"%s\": expected the digits 0 and 1",
                            ses_quoted_of(s, (size_t)(tab - s)).s);
    size_t word_len = (size_t)(second - tab - 1), count_len = n - (size_t)(second + 1 - s),
           at = p->words.count;
    if (!parse_count(second + 1, count_len, &count))
        return ses_fail(e, SES_EFORMAT, "count \"%s\": expected a number",
                        ses_quoted_of(second + 1, count_len).s);
    const char *path = ses_arena_strndup(&p->mem, s, (size_t)(tab - s), e);
    const char *word = path ? ses_arena_strndup(&p->mem, tab + 1, word_len, e) : NULL;
    if (!word || !ses_array_reserve((void *)&p->path, &p->cap_path, at + 1, sizeof *p->path, e) ||
        !ses_array_reserve(&p->count, &p->cap_count, at + 1, sizeof *p->count, e) ||
        !ses_strmap_insert(&p->words, word, word_len, (int64_t)at, &fresh, e))
        return false;
    if (!fresh) return ses_fail(e, SES_EFORMAT, "word \"%s\" is repeated", ses_quoted_of(word, word_len).s);
    p->path[at] = path, p->count[at] = count;
    return true;
}

static bool read_all(ses_cluster_paths *p, ses_text_reader *r, ses_err *e)
{
    for (;;) {
        const char *s;
        size_t n;
        if (!ses_text_reader_next(r, &s, &n, e)) return false;
        if (!s) break;
        if (n && !add_line(p, s, n, e)) return ses_wrap(e, "line %llu", (unsigned long long)r->line);
    }
    return p->words.count || ses_fail(e, SES_EFORMAT, "no clusters: the file is empty");
}

bool ses_cluster_paths_read(ses_cluster_paths *p, const char *path, ses_err *e)
{
    ses_text_reader r = { 0 };
    bool ok = (ses_text_reader_open(&r, path, MAX_LINE, e) && read_all(p, &r, e)) || ses_wrap(e, "%s", path);
    ses_text_reader_free(&r);
    return ok;
}

bool ses_cluster_paths_from_text(ses_cluster_paths *p, const char *text, size_t n, ses_err *e)
{
    ses_text_reader r = { 0 };
    ses_text_reader_from_text(&r, text, n, MAX_LINE);
    bool ok = read_all(p, &r, e);
    ses_text_reader_free(&r);
    return ok;
}

const char *ses_cluster_path(const ses_cluster_paths *p, const char *word, size_t n)
{
    int64_t at;
    return ses_strmap_find(&p->words, word, n, &at) ? p->path[at] : NULL;
}
