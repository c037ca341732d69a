/* Plan of a round of skip-gram or CBOW: which rows each step trains. */
#include "word2vec.h"

#include "base/alloc.h"

#include <string.h>

enum { SITE_KEEP = 1, SITE_STEP = 2, SEVERAL = 0xFF, MIN_SLOTS = 1024 };

/* ---- random numbers: word_draws.h, from a start that Philox draws ---- */

static uint64_t start_of(const ses_w2v *w, uint32_t pass, uint32_t site)
{
    uint32_t random[4];
    ses_philox(random, (ses_rng_key){ w->seed, pass, site }, 0);
    return (uint64_t)random[0] << 32 | random[1];
}

uint64_t ses_w2v_keep_start(const ses_w2v *w, uint32_t pass) { return start_of(w, pass, SITE_KEEP); }
uint64_t ses_w2v_step_start(const ses_w2v *w, uint32_t pass) { return start_of(w, pass, SITE_STEP); }

static bool keeps(const ses_w2v *w, uint64_t start, int64_t position, int32_t id)
{
    return ses_word_keeps(w->keep[id], start, position);
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
    if (n == s->number_capacity &&
        !ses_array_reserve(&s->number, &s->number_capacity, n + 1, sizeof *s->number, e))
        return false;
    if (n == s->position_capacity &&
        !ses_array_reserve(&s->position, &s->position_capacity, n + 1, sizeof *s->position, e))
        return false;
    s->word[n] = id;
    s->position[n] = position;
    return true;
}

/* ---- rows of the round ---- */

static size_t slot_of(const ses_w2v_shard *s, int32_t row)
{
    size_t at = (uint32_t)row * 2654435761u >> 7 & (s->slots - 1);
    while (s->slot[at].number && s->slot[at].row != row) at = (at + 1) & (s->slots - 1);
    return at;
}

static bool grow_slots(ses_w2v_shard *s)
{
    size_t slots = s->slots ? 2 * s->slots : MIN_SLOTS;
    ses_w2v_slot *slot = ses_alloc_array(slots, sizeof *slot, &s->err);
    if (!slot) return false;
    ses_free(s->slot);
    s->slot = slot;
    s->slots = slots;
    for (size_t i = 0; i < s->n_used; i++)
        slot[slot_of(s, s->used[i].row)] = (ses_w2v_slot){ s->used[i].row, (int32_t)i + 1 };
    return true;
}

/* The number of a row in `used`; a new one if it has none. -1: out of memory. */
static int32_t number_of(ses_w2v_shard *s, int32_t row)
{
    size_t at = slot_of(s, row);
    if (s->slot[at].number) return s->slot[at].number - 1;
    if (s->n_used == s->used_capacity &&
        !ses_array_reserve(&s->used, &s->used_capacity, s->n_used + 1, sizeof *s->used, &s->err))
        return -1;
    s->used[s->n_used++] = (ses_w2v_used){ .row = row };
    s->slot[at] = (ses_w2v_slot){ row, (int32_t)s->n_used };
    if (2 * s->n_used > s->slots && !grow_slots(s)) return -1;
    return (int32_t)s->n_used - 1;
}

static bool push_input(ses_w2v_shard *s, int32_t number)
{
    if (number < 0 || !push(&s->in, number, &s->err)) return false;
    s->used[number].uses++;
    return true;
}

static bool push_output(ses_w2v_shard *s, int32_t number, int32_t label)
{
    if (number < 0 || !push(&s->out, 2 * number + label, &s->err)) return false;
    s->used[number].uses++;
    return true;
}

/* ---- words ---- */

/* The kept words of [begin, end), preceded and followed by up to a window of the same sentence. *from, *to:
 * the words of [begin, end). Returns how many, or -1. */
static int64_t collect_words(const ses_w2v *w, ses_w2v_shard *s, int64_t begin, int64_t end, uint32_t pass,
                             int64_t *from, int64_t *to)
{
    const int32_t *id = w->corpus.id;
    uint64_t start = ses_w2v_keep_start(w, pass);
    int64_t first = begin, n = 0, extra = 0;
    for (int64_t p = begin - 1; p >= 0 && id[p] >= 0 && extra < w->window; p--)
        if (keeps(w, start, p, id[p])) extra++, first = p;
    extra = 0;
    *from = *to = -1;
    for (int64_t p = first; p < w->corpus.n; p++) {
        if (p == begin) *from = n;
        if (p == end) *to = n;
        if (p >= end && (extra == w->window || id[p] < 0)) break;
        if (id[p] >= 0 && !keeps(w, start, p, id[p])) continue;
        extra += p >= end;
        if (!push_word(s, (size_t)n, id[p], p, &s->err)) return -1;
        n++;
    }
    if (*to < 0) *to = n;
    return n;
}

/* ---- outputs ---- */

static bool has_output(const ses_w2v_rows *out, size_t from, int32_t number)
{
    for (size_t i = from; i < out->n; i++)
        if (out->item[i] >> 1 == number) return true;
    return false;
}

/* Appends a word's outputs: it and its negative samples, or its path in the tree. Negative samples that
 * already are outputs of the step are left out. */
static bool add_outputs(const ses_w2v *w, ses_w2v_shard *s, size_t from, int32_t word, ses_word_draws *d)
{
    int32_t base = (int32_t)w->in_rows;
    if (w->hs) {
        for (int64_t i = w->tree.start[word]; i < w->tree.start[word + 1]; i++)
            if (!push_output(s, number_of(s, base + (w->tree.node[i] >> 1)), w->tree.node[i] & 1))
                return false;
        return true;
    }
    if (!push_output(s, number_of(s, base + word), 1)) return false;
    for (int i = 0; i < w->negative; i++) {
        int32_t number =
            number_of(s, base + ses_sampling_draw(w->negatives, w->corpus.vocab.n, ses_word_draw(d)));
        if (number < 0 || (!has_output(&s->out, from, number) && !push_output(s, number, 0))) return false;
    }
    return true;
}

/* Appends the row of the word at an index, or the rows of its subwords. */
static bool add_input(const ses_w2v *w, ses_w2v_shard *s, int64_t at)
{
    int32_t word = s->word[at];
    if (!w->sub.start) return push_input(s, s->number[at]);
    for (size_t i = w->sub.start[word]; i < w->sub.start[word + 1]; i++)
        if (!push_input(s, number_of(s, w->sub.row[i]))) return false;
    return true;
}

static ses_w2v_step step_of(const ses_w2v_shard *s, size_t in, size_t out)
{
    return (ses_w2v_step){ (uint32_t)in, (uint32_t)(s->in.n - in), (uint32_t)out,
                           (uint32_t)(s->out.n - out) };
}

/* ---- steps of one word at index `at`, with contexts from .. to ---- */

/* Contexts predict the word: each by itself (skip-gram), or their mean (CBOW). */
static bool plan_window(const ses_w2v *w, ses_w2v_shard *s, int64_t at, int64_t from, int64_t to,
                        ses_word_draws *d)
{
    size_t in = s->in.n, out = s->out.n;
    if (!add_outputs(w, s, out, s->word[at], d)) return false;
    for (int64_t i = from; i < to; i++)
        if (i != at && !add_input(w, s, i)) return false;
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
static bool plan_subwords(const ses_w2v *w, ses_w2v_shard *s, int64_t at, int64_t from, int64_t to,
                          ses_word_draws *d)
{
    size_t in = s->in.n, out = s->out.n;
    if (!add_input(w, s, at)) return false;
    for (int64_t i = from; i < to; i++) {
        if (i == at) continue;
        bool full = w->hs || s->out.n - out + (size_t)w->negative + 1 > SES_WORD_STEP_MAX ||
                    has_output(&s->out, out, number_of(s, (int32_t)w->in_rows + s->word[i]));
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

static bool plan_word(const ses_w2v *w, ses_w2v_shard *s, int64_t at, int64_t n, uint64_t start)
{
    ses_word_draws d = ses_word_draws_of(start, s->position[at]);
    int64_t half = ses_word_half(&d, w->window), left = at, right = at + 1;
    while (left > 0 && at - left < half && s->word[left - 1] >= 0) left--;
    while (right < n && right - at <= half && s->word[right] >= 0) right++;
    if (right - left == 1) return true;
    return w->sub.start && !w->cbow ? plan_subwords(w, s, at, left, right, &d)
                                    : plan_window(w, s, at, left, right, &d);
}

bool ses_w2v_plan(ses_w2v *w, int64_t number)
{
    ses_w2v_shard *s = &w->shard[number];
    uint32_t pass = (uint32_t)(w->round / w->rounds);
    int64_t begin = s->begin + w->round % w->rounds * SES_W2V_SHARD_WORDS, from, to;
    int64_t end = begin + SES_W2V_SHARD_WORDS < s->end ? begin + SES_W2V_SHARD_WORDS : s->end;
    s->n_steps = s->in.n = s->out.n = s->n_used = 0;
    if (begin >= end) return true;
    if (!s->slots && !grow_slots(s)) return false;
    memset(s->slot, 0, s->slots * sizeof *s->slot);
    int64_t n = collect_words(w, s, begin, end, pass, &from, &to);
    if (n < 0) return false;
    for (int64_t i = 0; i < n && !w->sub.start; i++)
        if (s->word[i] >= 0 && (s->number[i] = number_of(s, s->word[i])) < 0) return false;
    uint64_t start = ses_w2v_step_start(w, pass);
    for (int64_t at = from; at < to; at++)
        if (s->word[at] >= 0 && !plan_word(w, s, at, n, start)) return false;
    for (size_t i = 0; i < s->n_used; i++) mark(w, number, s->used[i].row);
    return true;
}
