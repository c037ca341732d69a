/* Templates of task files: see eval_template.h. */
#include "eval_template.h"

#include <string.h>

/* The part at s[*at], which is not the end; *at moves behind it. */
static bool read_column(ses_eval_template_part *p, ses_string s, size_t *at, ses_err *e)
{
    bool twice = *at + 1 < s.n && s.p[*at + 1] == '{';
    size_t begin = *at + 1 + twice, end = begin;
    while (end < s.n && s.p[end] != '}' && s.p[end] != '{' && s.p[end] != '\n') end++;
    if (end >= s.n || s.p[end] != '}' || (twice && (end + 1 >= s.n || s.p[end + 1] != '}')))
        return ses_fail(e, SES_EFORMAT,
                        "\"{\" at byte %zu has no \"}\": expected {column}, or \\{ for a brace", *at);
    *p = (ses_eval_template_part){ .is_column = true };
    for (size_t from = begin, to; from <= end; from = to + 1) {
        for (to = from; to < end && s.p[to] != '|';) to++;
        ses_string word = ses_trim((ses_string){ s.p + from, to - from });
        if (from == begin) {
            p->text = word;
            if (!word.n)
                return ses_fail(e, SES_EFORMAT, "{} at byte %zu: expected the name of a column", *at);
            continue;
        }
        if (p->n_filters == SES_EVAL_MAX_FILTERS)
            return ses_fail(e, SES_EFORMAT, "{%.*s}: more than %d filters", (int)p->text.n, p->text.p,
                            SES_EVAL_MAX_FILTERS);
        p->filter[p->n_filters] = ses_eval_filter_find(word, e);
        if (!p->filter[p->n_filters++]) return ses_wrap(e, "{%.*s}", (int)p->text.n, p->text.p);
    }
    *at = end + 1 + twice;
    return true;
}

/* Up to the next brace; a backslash before a brace is left out, so that its text begins a part. */
static void read_literal(ses_eval_template_part *p, ses_string s, size_t *at)
{
    size_t begin = *at + (s.p[*at] == '\\' && *at + 1 < s.n && (s.p[*at + 1] == '{' || s.p[*at + 1] == '}'));
    size_t end = begin + 1;
    while (end < s.n && s.p[end] != '{' &&
           !(s.p[end] == '\\' && end + 1 < s.n && (s.p[end + 1] == '{' || s.p[end + 1] == '}')))
        end++;
    *p = (ses_eval_template_part){ .text = { s.p + begin, end - begin } };
    *at = end;
}

bool ses_eval_template_parse(ses_eval_template *t, ses_string text, ses_arena *mem, ses_err *e)
{
    size_t max = 1;
    for (size_t i = 0; i < text.n; i++) max += 2 * (text.p[i] == '{' || text.p[i] == '\\');
    *t = (ses_eval_template){ .part = ses_arena_array(mem, max, sizeof *t->part, e) };
    if (!t->part) return false;
    for (size_t at = 0; at < text.n; t->n++) {
        if (text.p[at] == '{' && !read_column(&t->part[t->n], text, &at, e))
            return false;
        else if (!t->part[t->n].is_column)
            read_literal(&t->part[t->n], text, &at);
    }
    return true;
}

static bool fill_column(const ses_eval_template_part *p, ses_eval_column_fn *column, void *ctx, ses_buf *out,
                        ses_err *e)
{
    ses_buf value = { 0 }, next = { 0 };
    bool ok = column(ctx, p->text, &value, e);
    for (size_t i = 0; ok && i < p->n_filters; i++) {
        ses_buf old = value;
        next.len = 0;
        p->filter[i]->run((ses_string){ value.len ? value.data : "", value.len }, &next);
        ok = ses_buf_ok(&value, e) && ses_buf_ok(&next, e);
        value = next, next = old;
    }
    if (ok) ses_buf_append(out, value.data, value.len);
    ok = ok && ses_buf_ok(&value, e);
    ses_buf_free(&value);
    ses_buf_free(&next);
    return ok;
}

bool ses_eval_template_fill(const ses_eval_template *t, ses_eval_column_fn *column, void *ctx, ses_buf *out,
                            ses_err *e)
{
    for (size_t i = 0; i < t->n; i++) {
        const ses_eval_template_part *p = &t->part[i];
        if (!p->is_column)
            ses_buf_append(out, p->text.p, p->text.n);
        else if (!fill_column(p, column, ctx, out, e))
            return false;
    }
    return ses_buf_ok(out, e);
}
