/* Added tokens in fast paths: detection, and splitting a text at them. */
#include "fast_added.h"

#include "base/alloc.h"

#include <string.h>

void ses_added_first_bytes_init(ses_added_first_bytes *r, const ses_added *a)
{
    r->n = 0;
    for (int c = 0; c < 256; c++) {
        if (!a->raw.root[c] && !a->normal.root[c]) continue;
        if (r->n < SES_LEN(r->byte)) r->byte[r->n] = (uint8_t)c;
        r->n++;
    }
}

static bool is_match(const ses_added *a, const char *text, size_t n)
{
    int32_t token;
    return ses_matcher_longest(&a->raw, text, n, &token) || ses_matcher_longest(&a->normal, text, n, &token);
}

bool ses_added_any(const ses_added_first_bytes *r, const ses_added *a, const char *text, size_t n)
{
    for (size_t i = 0; r->n <= SES_LEN(r->byte) && i < r->n; i++)
        for (const char *p = text, *end = text + n; (p = memchr(p, r->byte[i], (size_t)(end - p))); p++)
            if (is_match(a, p, (size_t)(end - p))) return true;
    for (size_t i = 0; r->n > SES_LEN(r->byte) && i < n; i++)
        if ((a->raw.root[(uint8_t)text[i]] || a->normal.root[(uint8_t)text[i]]) &&
            is_match(a, text + i, n - i))
            return true;
    return false;
}

static bool put_added(ses_encode_ctx *k, const ses_added_token *t, const char *text, size_t begin, size_t end,
                      ses_err *e)
{
    bool same = t->content.n == end - begin && !memcmp(t->content.p, text + begin, end - begin);
    if (!ses_token_override_put(k, same ? NULL : text + begin, end - begin, true, e) ||
        !ses_token_buf_reserve(&k->tokens, 1, e))
        return false;
    ses_token_buf *r = &k->tokens;
    r->id[r->n] = t->id;
    /* whole characters, because the text is valid UTF-8 */
    r->byte_offset[r->n] = (ses_offset){ (uint32_t)begin, (uint32_t)end };
    r->word_id[r->n++] = (int32_t)r->n_words++;
    return true;
}

typedef struct each {
    const ses_added *a;
    ses_span_fn *span;
    const void *self;
    void *work;
    ses_encode_ctx *k;
    /* separate from the workspace: ses_encode_by_stages may use them inside a span */
    ses_matches outer, inner;
} each;

static bool split_normalized(each *x, const char *text, const ses_match *m, ses_err *e)
{
    if (!ses_added_split(x->a, &x->a->normal, text + m->begin, m->end - m->begin, &x->inner, e)) return false;
    for (size_t i = 0; i < x->inner.n; i++) {
        ses_match in = x->inner.match[i];
        size_t begin = m->begin + in.begin, end = m->begin + in.end;
        bool ok = in.token >= 0 ? put_added(x->k, &x->a->token[in.token], text, begin, end, e)
                                : x->span(x->self, x->work, x->k, text, begin, end, e);
        if (!ok) return false;
    }
    return true;
}

bool ses_added_for_each_span(const ses_added *a, ses_span_fn *span, const void *self, void *work,
                             ses_encode_ctx *k, const char *text, size_t n, ses_err *e)
{
    each x = { a, span, self, work, k, { 0 }, { 0 } };
    bool ok = ses_added_split(a, &a->raw, text, n, &x.outer, e);
    for (size_t i = 0; ok && i < x.outer.n; i++) {
        ses_match m = x.outer.match[i];
        ok = m.token >= 0 ? put_added(k, &a->token[m.token], text, m.begin, m.end, e)
                          : split_normalized(&x, text, &m, e);
    }
    ses_free(x.outer.match);
    ses_free(x.inner.match);
    return ok;
}
