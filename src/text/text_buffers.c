/* Growing arrays of the pipeline: text with source offsets, pieces, tokens, strings. */
#include "base/alloc.h"
#include "stage.h"

#include <string.h>

enum { MAX_BYTES = INT32_MAX };

/* New capacity for `have` + n elements, at least doubled so that growth is amortized. 0: too many, error
 * set. */
static size_t grown_capacity(size_t cap, size_t have, size_t n, ses_err *e)
{
    if (n > MAX_BYTES || have + n > MAX_BYTES) {
        ses_fail(e, SES_EARG, "the text exceeds 2 GiB");
        return 0;
    }
    size_t c = cap < 64 ? 64 : cap;
    while (c < have + n) c *= 2;
    return c;
}

bool ses_text_reserve(ses_text *t, size_t n, ses_err *e)
{
    if (n <= t->cap - t->n) return true;
    size_t cap = grown_capacity(t->cap, t->n, n, e);
    if (!cap) return false;
    char *byte = ses_grow_array(t->byte, t->n, cap, 1, e);
    if (!byte) return false;
    t->byte = byte;
    ses_offset *from = ses_grow_array(t->from, t->n, cap, sizeof *from, e);
    if (!from) return false;
    t->from = from;
    t->cap = cap;
    return true;
}

bool ses_text_put(ses_text *t, const char *bytes, size_t n, ses_offset from, ses_err *e)
{
    if (!ses_text_reserve(t, n, e)) return false;
    for (size_t i = 0; i < n; i++) {
        t->byte[t->n + i] = bytes[i];
        t->from[t->n + i] = from;
    }
    t->n += n;
    return true;
}

bool ses_text_put_self(ses_text *t, const char *bytes, size_t n, size_t at, ses_err *e)
{
    if (!n) return true;
    if (!ses_text_reserve(t, n, e)) return false;
    memcpy(t->byte + t->n, bytes, n);
    ses_offset *from = t->from + t->n;
    uint32_t position = (uint32_t)at;
    for (size_t i = 0; i < n; i++)
        from[i] = (ses_offset){ position + (uint32_t)i, position + (uint32_t)i + 1 };
    for (size_t i = 0; i < n;) {
        uint8_t c = (uint8_t)bytes[i];
        uint64_t eight = 0;
        if (c < 0x80 && i + 8 <= n) memcpy(&eight, bytes + i, 8);
        if (c < 0x80) {
            i += i + 8 <= n && !(eight & 0x8080808080808080) ? 8 : 1;
            continue;
        }
        size_t len = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        ses_offset self = { position + (uint32_t)i, position + (uint32_t)(i + len) };
        for (size_t j = 0; j < len && i + j < n; j++) from[i + j] = self;
        i += len;
    }
    t->n += n;
    return true;
}

bool ses_text_copy(ses_text *t, const ses_text *src, size_t begin, size_t end, ses_err *e)
{
    if (begin == end) return true;
    if (!ses_text_reserve(t, end - begin, e)) return false;
    memcpy(t->byte + t->n, src->byte + begin, end - begin);
    memcpy(t->from + t->n, src->from + begin, (end - begin) * sizeof *t->from);
    t->n += end - begin;
    return true;
}

void ses_text_free(ses_text *t)
{
    ses_free(t->byte);
    ses_free(t->from);
    *t = (ses_text){ 0 };
}

bool ses_pieces_reserve(ses_pieces *p, size_t n, ses_err *e)
{
    if (n <= p->cap - p->n) return true;
    size_t cap = grown_capacity(p->cap, p->n, n, e);
    if (!cap) return false;
    ses_piece *piece = ses_grow_array(p->piece, p->n, cap, sizeof *piece, e);
    if (!piece) return false;
    p->piece = piece;
    p->cap = cap;
    return true;
}

bool ses_pieces_put(ses_pieces *p, uint32_t begin, uint32_t end, int32_t id, ses_err *e)
{
    if (p->n == p->cap && !ses_pieces_reserve(p, 1, e)) return false;
    p->piece[p->n++] = (ses_piece){ begin, end, id };
    return true;
}

void ses_pieces_free(ses_pieces *p)
{
    ses_text_free(&p->text);
    ses_free(p->piece);
    *p = (ses_pieces){ 0 };
}

bool ses_token_list_reserve(ses_token_list *l, size_t n, ses_err *e)
{
    if (n <= l->cap - l->n) return true;
    size_t cap = grown_capacity(l->cap, l->n, n, e);
    if (!cap) return false;
    ses_token *token = ses_grow_array(l->token, l->n, cap, sizeof *token, e);
    if (!token) return false;
    l->token = token;
    l->cap = cap;
    return true;
}

bool ses_token_list_put(ses_token_list *l, int32_t id, size_t begin, size_t end, ses_err *e)
{
    if (l->n == l->cap && !ses_token_list_reserve(l, 1, e)) return false;
    l->token[l->n++] = (ses_token){ id, (uint32_t)begin, (uint32_t)end };
    return true;
}

void ses_token_list_free(ses_token_list *l)
{
    ses_free(l->token);
    *l = (ses_token_list){ 0 };
}

bool ses_strings_put(ses_strings *s, const char *p, size_t n, ses_err *e)
{
    if (s->n == s->cap) {
        size_t cap = grown_capacity(s->cap, s->n, 1, e);
        if (!cap) return false;
        ses_string *string = ses_realloc_array(s->string, cap, sizeof *string, e);
        if (!string) return false;
        s->string = string;
        s->cap = cap;
    }
    s->string[s->n++] = (ses_string){ p, n };
    return true;
}
