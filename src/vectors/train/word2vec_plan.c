/* Plan of a round of skip-gram or CBOW: which rows each step trains. */
#include "word2vec.h"

#include "base/alloc.h"

enum { SITE_KEEP = 1, SITE_STEP = 2, SEVERAL = 0xFF };

/* Random numbers of one position: 2^14 at most. */
typedef struct draws {
    ses_rng_key key;
    uint64_t block;
    uint32_t word[4];
    int used;
} draws;

static draws draws_of(const ses_w2v *w, uint32_t pass, int64_t position)
{
    return (draws){ .key = { w->seed, pass, SITE_STEP }, .block = (uint64_t)position << 12, .used = 4 };
}

static uint32_t draw(draws *d)
{
    if (d->used == 4) {
        ses_philox(d->word, d->key, d->block++);
        d->used = 0;
    }
    return d->word[d->used++];
}

/* Subsampling: four neighboring positions share a block. */
typedef struct keeper {
    ses_rng_key key;
    int64_t block;
    uint32_t word[4];
} keeper;

static bool keeps(const ses_w2v *w, keeper *k, int64_t position, int32_t id)
{
    uint32_t limit = w->keep[id];
    if (limit == UINT32_MAX) return true;
    if (k->block != position >> 2) {
        k->block = position >> 2;
        ses_philox(k->word, k->key, (uint64_t)k->block);
    }
    return k->word[position & 3] < limit;
}

/* ---- lists ---- */

static bool push(ses_w2v_rows *r, int32_t item, ses_err *e)
{
    if (r->n == r->capacity && !ses_array_reserve(&r->item, &r->capacity, r->n + 1, sizeof *r->item, e))
        return false;
    r->item[r->n++] = item;
    return true;
}

static bool push_step(ses_w2v_shard *s, ses_w2v_step step, ses_err *e)
{
    if (s->n_steps == s->step_capacity &&
        !ses_array_reserve(&s->step, &s->step_capacity, s->n_steps + 1, sizeof *s->step, e))
        return false;
    s->step[s->n_steps++] = step;
    return true;
}

static bool push_word(ses_w2v_shard *s, size_t n, int32_t id, int64_t position, ses_err *e)
{
    if (n == s->word_capacity && !ses_array_reserve(&s->word, &s->word_capacity, n + 1, sizeof *s->word, e))
        return false;
    if (n == s->position_capacity &&
        !ses_array_reserve(&s->position, &s->position_capacity, n + 1, sizeof *s->position, e))
        return false;
    s->word[n] = id;
    s->position[n] = position;
    return true;
}

/* ---- words ---- */

/* The kept words of [begin, end), preceded and followed by up to a window of the same sentence. *from, *to:
 * the words of [begin, end). Returns how many, or -1. */
static int64_t collect_words(const ses_w2v *w, ses_w2v_shard *s, int64_t begin, int64_t end, uint32_t pass,
                             int64_t *from, int64_t *to)
{
    const int32_t *id = w->corpus.id;
    keeper k = { { w->seed, pass, SITE_KEEP }, -1, { 0 } };
    int64_t first = begin, n = 0, extra = 0;
    for (int64_t p = begin - 1; p >= 0 && id[p] >= 0 && extra < w->window; p--)
        if (keeps(w, &k, p, id[p])) extra++, first = p;
    extra = 0;
    *from = *to = -1;
    for (int64_t p = first; p < w->corpus.n; p++) {
        if (p == begin) *from = n;
        if (p == end) *to = n;
        if (p >= end && (extra == w->window || id[p] < 0)) break;
        if (id[p] >= 0 && !keeps(w, &k, p, id[p])) continue;
        extra += p >= end;
        if (!push_word(s, (size_t)n, id[p], p, &s->err)) return -1;
        n++;
    }
    if (*to < 0) *to = n;
    return n;
}

/* ---- outputs ---- */

static bool has_output(const ses_w2v_rows *out, size_t from, int32_t row)
{
    for (size_t i = from; i < out->n; i++)
        if (out->item[i] >> 1 == row) return true;
    return false;
}

/* Appends a word's outputs: it and its negative samples, or its path in the tree. Negative samples that
 * already are outputs of the step are left out. */
static bool add_outputs(const ses_w2v *w, ses_w2v_shard *s, size_t from, int32_t word, draws *d)
{
    int32_t base = (int32_t)w->in_rows;
    if (w->hs) {
        for (int64_t i = w->tree.start[word]; i < w->tree.start[word + 1]; i++)
            if (!push(&s->out, 2 * base + w->tree.node[i], &s->err)) return false;
        return true;
    }
    if (!push(&s->out, 2 * (base + word) + 1, &s->err)) return false;
    for (int i = 0; i < w->negative; i++) {
        int32_t row = base + ses_sampling_draw(w->negatives, w->corpus.vocab.n, draw(d));
        if (!has_output(&s->out, from, row) && !push(&s->out, 2 * row, &s->err)) return false;
    }
    return true;
}

static bool add_input(const ses_w2v *w, ses_w2v_shard *s, int32_t word)
{
    if (!w->sub.start) return push(&s->in, word, &s->err);
    for (size_t i = w->sub.start[word]; i < w->sub.start[word + 1]; i++)
        if (!push(&s->in, w->sub.row[i], &s->err)) return false;
    return true;
}

static ses_w2v_step step_of(const ses_w2v_shard *s, size_t in, size_t out)
{
    return (ses_w2v_step){ (uint32_t)in, (uint32_t)(s->in.n - in), (uint32_t)out,
                           (uint32_t)(s->out.n - out) };
}

/* ---- steps of one word at index `at`, with contexts from .. to ---- */

/* Contexts predict the word: each by itself (skip-gram), or their mean (CBOW). */
static bool plan_window(const ses_w2v *w, ses_w2v_shard *s, int64_t at, int64_t from, int64_t to, draws *d)
{
    size_t in = s->in.n, out = s->out.n;
    if (!add_outputs(w, s, out, s->word[at], d)) return false;
    for (int64_t i = from; i < to; i++)
        if (i != at && !add_input(w, s, s->word[i])) return false;
    ses_w2v_step all = step_of(s, in, out);
    if (w->bags) return push_step(s, all, &s->err);
    for (uint32_t i = 0; i < all.n_in; i += SES_WORD_STEP_MAX) {
        uint32_t left = all.n_in - i, n = left < SES_WORD_STEP_MAX ? left : SES_WORD_STEP_MAX;
        if (!push_step(s, (ses_w2v_step){ all.first_in + i, n, all.first_out, all.n_out }, &s->err))
            return false;
    }
    return true;
}

/* The word, a bag of subwords, predicts its contexts: as many of them in a step as fit. */
static bool plan_subwords(const ses_w2v *w, ses_w2v_shard *s, int64_t at, int64_t from, int64_t to, draws *d)
{
    size_t in = s->in.n, out = s->out.n;
    if (!add_input(w, s, s->word[at])) return false;
    for (int64_t i = from; i < to; i++) {
        if (i == at) continue;
        bool full = w->hs || s->out.n - out + (size_t)w->negative + 1 > SES_WORD_STEP_MAX ||
                    has_output(&s->out, out, (int32_t)w->in_rows + s->word[i]);
        if (full && s->out.n > out) {
            if (!push_step(s, step_of(s, in, out), &s->err)) return false;
            out = s->out.n;
        }
        if (!add_outputs(w, s, out, s->word[i], d)) return false;
    }
    return push_step(s, step_of(s, in, out), &s->err);
}

/* Marks a row as used by shard s. The result depends on the set of its users only. */
static void mark(const ses_w2v *w, int64_t s, int32_t row)
{
    uint32_t mine = w->tag << 8 | (uint32_t)(s + 1), several = w->tag << 8 | SEVERAL;
    uint32_t old = atomic_load_explicit(&w->user[row], memory_order_relaxed);
    while (old != mine && old != several)
        if (atomic_compare_exchange_weak_explicit(&w->user[row], &old, old >> 8 == w->tag ? several : mine,
                                                  memory_order_relaxed, memory_order_relaxed))
            return;
}

bool ses_w2v_plan(ses_w2v *w, int64_t number)
{
    ses_w2v_shard *s = &w->shard[number];
    uint32_t pass = (uint32_t)(w->round / w->rounds);
    int64_t begin = s->begin + w->round % w->rounds * w->round_words, from, to;
    int64_t end = begin + w->round_words < s->end ? begin + w->round_words : s->end;
    s->n_steps = s->in.n = s->out.n = 0;
    if (begin >= end) return true;
    int64_t n = collect_words(w, s, begin, end, pass, &from, &to);
    if (n < 0) return false;
    for (int64_t at = from; at < to; at++) {
        if (s->word[at] < 0) continue;
        draws d = draws_of(w, pass, s->position[at]);
        int64_t half = 1 + (int64_t)((uint64_t)draw(&d) * (uint64_t)w->window >> 32), left = at,
                right = at + 1;
        while (left > 0 && at - left < half && s->word[left - 1] >= 0) left--;
        while (right < n && right - at <= half && s->word[right] >= 0) right++;
        if (right - left == 1) continue;
        bool ok = w->sub.start && !w->cbow ? plan_subwords(w, s, at, left, right, &d)
                                           : plan_window(w, s, at, left, right, &d);
        if (!ok) return false;
    }
    for (size_t i = 0; i < s->in.n; i++) mark(w, number, s->in.item[i]);
    for (size_t i = 0; i < s->out.n; i++) mark(w, number, s->out.item[i] >> 1);
    return true;
}
