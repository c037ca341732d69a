/* The pipeline step by step: added tokens, normalizer, pre-tokenizer, model. Slow and exact; shortcuts are
 * measured against it. */
#include "base/alloc.h"
#include "tokenizer_impl.h"

#include <string.h>

bool ses_run_reserve(ses_run *r, size_t n, ses_err *e)
{
    if (n <= r->cap - r->n) return true;
    size_t cap;
    if (!ses_add_size(r->n, n, &cap) || cap > INT32_MAX)
        return ses_fail(e, SES_EARG, "more than 2^31 tokens");
    if (cap < 2 * r->cap) cap = 2 * r->cap;
    if (cap < 256) cap = 256;
    int32_t *id = ses_realloc_array(r->id, cap, sizeof *id, e);
    if (!id) return false;
    r->id = id;
    int32_t *word = ses_realloc_array(r->word, cap, sizeof *word, e);
    if (!word) return false;
    r->word = word;
    ses_offset *byte = ses_realloc_array(r->byte, cap, sizeof *byte, e);
    if (!byte) return false;
    r->byte = byte;
    r->cap = cap;
    return true;
}

bool ses_mark_put(ses_tokens *k, const char *p, size_t n, bool added, ses_err *e)
{
    if (!ses_alloc_room(&k->mark, &k->cap_mark, k->n_mark + 1, sizeof *k->mark, e)) return false;
    uint32_t at = (uint32_t)k->surface.len;
    if (p && !ses_buf_append(&k->surface, p, n)) return ses_buf_ok(&k->surface, e);
    k->mark[k->n_mark++] = (ses_mark_token){ k->run.n, at, p ? (uint32_t)n : SES_BY_ID, added };
    return true;
}

/* Bytes [begin, end) of k->raw through every normalizer, appended to out. */
static bool normalize(ses_tokens *k, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    const ses_text_steps *steps = &k->t->steps[SES_NORMALIZER];
    if (!steps->n) return ses_text_copy(out, &k->raw, begin, end, e);
    ses_text *in = &k->raw;
    uint32_t base = begin < end ? k->raw.from[begin].begin : 0;
    /* normal forms are not much longer; a file may ask for anything */
    size_t most = 64 * (end - begin) + (1 << 20);
    for (size_t i = 0; i < steps->n; i++) {
        ses_text *to = i + 1 == steps->n ? out : &k->half[i & 1];
        if (to != out) to->n = 0;
        in->base = base;
        if (!steps->step[i].stage->normalize(steps->step[i].self, in, begin, end, to, e)) return false;
        if (to != out && to->n > most)
            return ses_fail(e, SES_EARG, "normalizer: the text grows to over 64 times its length");
        in = to;
        begin = 0;
        end = to->n;
    }
    return true;
}

/* Added tokens out of the text, the rest normalized, added tokens out of that: the first pieces. */
static bool extract(ses_tokens *k, const char *text, size_t begin, size_t end, ses_err *e)
{
    const ses_added *a = &k->t->added;
    ses_pieces *p = &k->pieces[0];
    p->n = p->text.n = k->raw.n = 0;
    if (!ses_added_split(a, &a->raw, text + begin, end - begin, &k->outer, e)) return false;
    if (!ses_text_put_self(&k->raw, text + begin, end - begin, begin, e)) return false;
    for (size_t i = 0; i < k->outer.n; i++) {
        const ses_match *m = &k->outer.match[i];
        size_t at = p->text.n;
        if (m->token >= 0) {
            if (!ses_text_copy(&p->text, &k->raw, m->begin, m->end, e) ||
                !ses_pieces_put(p, (uint32_t)at, (uint32_t)p->text.n, a->token[m->token].id, e))
                return false;
            continue;
        }
        if (!normalize(k, m->begin, m->end, &p->text, e)) return false;
        if (p->text.n == at) continue;
        if (!ses_added_split(a, &a->normal, p->text.byte + at, p->text.n - at, &k->inner, e)) return false;
        for (size_t j = 0; j < k->inner.n; j++) {
            const ses_match *x = &k->inner.match[j];
            if (!ses_pieces_put(p, (uint32_t)(at + x->begin), (uint32_t)(at + x->end),
                                x->token < 0 ? -1 : a->token[x->token].id, e))
                return false;
        }
    }
    return true;
}

/* Where a token came from. Offsets outside the piece stay as the model gave them, as in the reference. */
static ses_offset origin(const ses_text *t, const ses_piece *p, const ses_token *token)
{
    uint32_t n = p->end - p->begin, base = t->from[p->begin].begin;
    if (token->begin == token->end) return (ses_offset){ base + token->begin, base + token->end };
    if (token->begin > token->end || token->end > n) return (ses_offset){ token->begin, token->end };
    return (ses_offset){ t->from[p->begin + token->begin].begin, t->from[p->begin + token->end - 1].end };
}

static bool put_added(ses_tokens *k, const ses_text *t, const ses_piece *p, ses_err *e)
{
    const ses_added_token *a = ses_added_find(&k->t->added, p->id);
    size_t n = p->end - p->begin;
    bool same = a && a->content.n == n && !memcmp(a->content.p, t->byte + p->begin, n);
    if (!ses_mark_put(k, same ? NULL : t->byte + p->begin, n, true, e) || !ses_run_reserve(&k->run, 1, e))
        return false;
    size_t at = k->run.n++;
    k->run.id[at] = p->id;
    k->run.byte[at] = (ses_offset){ t->from[p->begin].begin, t->from[p->end - 1].end };
    k->run.word[at] = (int32_t)k->run.words;
    return true;
}

static bool put_piece(ses_tokens *k, const ses_text *t, const ses_piece *p, int32_t surface, ses_err *e)
{
    const ses_text_step *model = &k->t->model;
    k->list.n = 0;
    ses_mark mark = ses_arena_mark(&k->scratch);
    bool ok =
        model->stage->tokenize(model->self, t->byte + p->begin, p->end - p->begin, &k->list, &k->scratch, e);
    ses_arena_rewind(&k->scratch, mark);
    if (!ok || !ses_run_reserve(&k->run, k->list.n, e)) return false;
    for (size_t i = 0; i < k->list.n; i++) {
        const ses_token *token = &k->list.token[i];
        k->past |= token->end > p->end - p->begin;
        if (token->id == surface && token->end <= p->end - p->begin && token->begin <= token->end &&
            !ses_mark_put(k, t->byte + p->begin + token->begin, token->end - token->begin, false, e))
            return false;
        size_t at = k->run.n++;
        k->run.id[at] = token->id;
        k->run.byte[at] = origin(t, p, token);
        k->run.word[at] = (int32_t)k->run.words;
    }
    return true;
}

static bool keep_first(ses_tokens *k, size_t pieces, ses_err *e)
{
    if (pieces <= k->cap_first) return true;
    size_t *first = ses_realloc_array(k->first, pieces, sizeof *first, e);
    if (!first) return false;
    k->first = first;
    k->cap_first = pieces;
    return true;
}

void ses_run_drop(ses_tokens *k, size_t start, size_t gone, uint32_t words)
{
    ses_run *r = &k->run;
    for (size_t i = start; i + gone < r->n; i++) {
        r->id[i] = r->id[i + gone];
        r->byte[i] = r->byte[i + gone];
        r->word[i] = r->word[i + gone] - (int32_t)words;
    }
    r->n -= gone;
    r->words -= words;
    size_t n = 0;
    for (size_t i = 0; i < k->n_mark; i++) {
        ses_mark_token m = k->mark[i];
        if (m.token >= start && m.token < start + gone) continue;
        if (m.token >= start) m.token -= gone;
        k->mark[n++] = m;
    }
    k->n_mark = n;
}

/* Truncating from the left, the reference works from the last piece backwards and stops after the first that
 * is no added token and brings the count to max; pieces are then numbered from the one it stopped at. */
static void drop_left(ses_tokens *k, const ses_pieces *p, size_t start, size_t max)
{
    size_t keep = p->n, total = 0, end = k->run.n;
    while (keep) {
        keep--;
        total += end - k->first[keep];
        end = k->first[keep];
        if (p->piece[keep].id < 0 && total >= max) break;
    }
    if (keep) ses_run_drop(k, start, k->first[keep] - start, (uint32_t)keep);
}

bool ses_encode_exact(ses_tokens *k, const char *text, size_t begin, size_t end, const ses_limit *limit,
                      ses_err *e)
{
    if (!extract(k, text, begin, end, e)) return false;
    const ses_text_steps *steps = &k->t->steps[SES_PRE_TOKENIZER];
    ses_pieces *p = &k->pieces[0], *other = &k->pieces[1];
    for (size_t i = 0; i < steps->n; i++) {
        other->n = other->text.n = 0;
        if (!steps->step[i].stage->split(steps->step[i].self, p, other, e)) return false;
        ses_pieces *swap = p;
        p = other;
        other = swap;
    }
    const ses_text_step *model = &k->t->model;
    int32_t surface = model->stage->surface ? model->stage->surface(model->self) : -1;
    if (surface < 0) surface = INT32_MIN;
    size_t start = k->run.n;
    bool left = limit && limit->left;
    if (left && !keep_first(k, p->n, e)) return false;
    for (size_t i = 0; i < p->n; i++, k->run.words++) {
        const ses_piece *piece = &p->piece[i];
        if (left) k->first[i] = k->run.n;
        if (piece->id >= 0) {
            if (!put_added(k, &p->text, piece, e)) return false;
            continue;
        }
        if (!put_piece(k, &p->text, piece, surface, e)) return false;
        if (limit && !left && k->run.n - start >= limit->max) break;
    }
    if (left) drop_left(k, p, start, limit->max);
    return true;
}
