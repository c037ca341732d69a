/* Rounds of skip-gram and CBOW: train, merge, plan the next. */
#include "word2vec.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

#define FEW_STEPS 0.02f /* steps that need no scale */

enum { AHEAD = 2, LINE = 16, MIN_SLOTS = 1024 }; /* steps to prefetch; floats of a cache line */
#define PAIR_STEP 0.1f /* size of the step of one pair at the learning rate 1; found by experiment */
enum { TREE_STEPS = 12 };
#define MAX_TAG 0xFFFFFFu

/* ---- copies of rows that several shards use ---- */

static bool reserve_slots(ses_w2v_shard *s)
{
    size_t slots = s->slots ? s->slots : MIN_SLOTS;
    while (slots < 2 * (s->in.n + s->out.n)) slots *= 2;
    if (slots > s->slots) {
        ses_free(s->slot);
        s->slots = 0;
        s->slot = ses_alloc_array(slots, sizeof *s->slot, &s->err);
        if (!s->slot) return false;
        s->slots = slots;
    } else {
        memset(s->slot, 0, slots * sizeof *s->slot);
    }
    return true;
}

/* The number of the copy of a row; a new one if it has none. -1: out of memory. */
static int32_t copy_of(ses_w2v_shard *s, int32_t row)
{
    size_t at = (uint32_t)row * 2654435761u & (s->slots - 1);
    for (; s->slot[at]; at = (at + 1) & (s->slots - 1)) {
        ses_w2v_copy *c = &s->copy[s->slot[at] - 1];
        if (c->row == row) return c->uses++, s->slot[at] - 1;
    }
    if (s->n_copies == s->copy_capacity &&
        !ses_array_reserve(&s->copy, &s->copy_capacity, s->n_copies + 1, sizeof *s->copy, &s->err))
        return -1;
    s->copy[s->n_copies] = (ses_w2v_copy){ row, 1 };
    s->slot[at] = (int32_t)++s->n_copies;
    return (int32_t)s->n_copies - 1;
}

static bool locate(const ses_w2v *w, ses_w2v_shard *s, ses_w2v_rows *r, int shift)
{
    int64_t number = s - w->shard;
    if (r->n > r->copy_capacity &&
        !ses_array_reserve(&r->copy, &r->copy_capacity, r->n, sizeof *r->copy, &s->err))
        return false;
    for (size_t i = 0; i < r->n; i++) {
        int32_t row = r->item[i] >> shift;
        r->copy[i] = -1;
        if (!ses_w2v_owns(w, number, row) && (r->copy[i] = copy_of(s, row)) < 0) return false;
    }
    return true;
}

static bool copy_rows(const ses_w2v *w, ses_w2v_shard *s)
{
    size_t stride = (size_t)w->stride, need = s->n_copies * stride;
    if (need > s->copied_capacity) {
        need += need / 2;
        ses_free(s->copied);
        s->copied_capacity = 0;
        s->copied = ses_alloc_huge(need, sizeof *s->copied, &s->err);
        if (!s->copied) return false;
        s->copied_capacity = need;
    }
    for (size_t i = 0; i < s->n_copies; i++)
        memcpy(s->copied + i * stride, w->weight + (size_t)s->copy[i].row * stride,
               stride * sizeof *s->copied);
    return true;
}

/* ---- training ---- */

static float *row_at(const ses_w2v *w, const ses_w2v_shard *s, int32_t row, int32_t copy)
{
    return copy < 0 ? w->weight + (size_t)row * (size_t)w->stride
                    : s->copied + (size_t)copy * (size_t)w->stride;
}

static void prefetch(const ses_w2v *w, const ses_w2v_shard *s, const ses_w2v_step *t)
{
    for (uint32_t i = t->first_out; i < t->first_out + t->n_out; i++) {
        const float *row = row_at(w, s, s->out.item[i] >> 1, s->out.copy[i]);
        for (int64_t c = 0; c < w->stride; c += LINE) __builtin_prefetch(row + c, 1);
    }
    if (!t->n_in) return;
    uint32_t i = t->first_in + t->n_in - 1; /* the others were contexts of the word before */
    const float *row = row_at(w, s, s->in.item[i], s->in.copy[i]);
    for (int64_t c = 0; c < w->stride; c += LINE) __builtin_prefetch(row + c, 1);
}

static void train_steps(const ses_w2v *w, ses_w2v_shard *s, float **x, float *scratch)
{
    float *y[SES_WORD_STEP_MAX], label[SES_WORD_STEP_MAX];
    for (size_t k = 0; k < s->n_steps; k++) {
        const ses_w2v_step *t = &s->step[k];
        int64_t positive = 0;
        if (k + AHEAD < s->n_steps) prefetch(w, s, t + AHEAD);
        for (uint32_t i = 0; i < t->n_in; i++)
            x[i] = row_at(w, s, s->in.item[t->first_in + i], s->in.copy[t->first_in + i]);
        for (uint32_t i = 0; i < t->n_out; i++) {
            int32_t item = s->out.item[t->first_out + i];
            y[i] = row_at(w, s, item >> 1, s->out.copy[t->first_out + i]);
            label[i] = (float)(item & 1);
            positive += item & 1;
        }
        ses_word_step step = { x, y, label, t->n_in, t->n_out, w->stride, w->rate };
        s->loss += w->bags ? w->kernel.bag_step(&step, scratch) : w->kernel.word_step(&step);
        s->pairs += (w->hs ? 1 : positive) * (w->bags ? 1 : t->n_in);
    }
}

static void train_shard(void *ctx, int64_t number, void *scratch)
{
    ses_w2v *w = ctx;
    ses_w2v_shard *s = &w->shard[number];
    size_t stride = (size_t)w->stride, most = 1;
    s->loss = 0, s->pairs = 0, s->n_copies = 0;
    if (!reserve_slots(s) || !locate(w, s, &s->in, 0) || !locate(w, s, &s->out, 1) || !copy_rows(w, s))
        return;
    for (size_t k = 0; k < s->n_steps; k++)
        if (s->step[k].n_in > most) most = s->step[k].n_in;
    if (2 * stride * sizeof(float) + most * sizeof(float *) > SES_SCRATCH_BYTES) {
        ses_fail(&s->err, SES_EUNSUPPORTED, "a bag of %zu rows", most);
        return;
    }
    train_steps(w, s, (float **)(void *)((float *)scratch + 2 * stride), scratch);
    for (size_t i = 0; i < s->n_copies; i++) { /* from values to differences */
        float *to = s->copied + i * stride;
        const float *from = w->weight + (size_t)s->copy[i].row * stride;
        for (size_t c = 0; c < stride; c++) to[c] -= from[c];
    }
}

/* ---- merging ----
 *
 * All shards move a row that they share the same way, so that the sum of many moves would overshoot. One
 * after another, u steps cover the part m(u) = 1 - exp(-u s) of the way to an optimum, with s the size of a
 * step. k shards with U steps altogether would cover m(U); the sum of their differences covers k m(U / k).
 * Differences are scaled by the ratio: about 1 for rows with few steps, 1 / k for rows with many. */

static float part_covered(float steps) { return -expm1f(-steps); }

/* step_in, step_out: sizes of a use of an input and of an output. */
static float scale_of(const ses_w2v *w, int32_t row, ses_w2v_share share)
{
    float steps = (row < w->in_rows ? w->step_in : w->step_out) * (float)share.uses, k = (float)share.shards;
    return steps < FEW_STEPS ? 1 : part_covered(steps) / (k * part_covered(steps / k));
}

/* Part `part` of the rows. */
static void merge(ses_w2v *w, int64_t part)
{
    size_t stride = (size_t)w->stride;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < w->shards; k++) {
            const ses_w2v_shard *s = &w->shard[k];
            for (size_t i = 0; i < s->n_copies; i++) {
                int32_t row = s->copy[i].row;
                ses_w2v_share *share = &w->share[row];
                if (row % w->shards != part) continue;
                if (share->tag != w->tag) *share = (ses_w2v_share){ .tag = w->tag };
                if (!pass) {
                    share->uses += s->copy[i].uses, share->shards++;
                    continue;
                }
                float *to = w->weight + (size_t)row * stride, scale = scale_of(w, row, *share);
                const float *from = s->copied + i * stride;
                for (size_t c = 0; c < stride; c++) to[c] += scale * from[c];
            }
        }
}

static void merge_and_plan(void *ctx, int64_t number, void *scratch)
{
    ses_w2v *w = ctx;
    (void)scratch;
    merge(w, number);
    if (w->planning) ses_w2v_plan(w, number);
}

/* ---- rounds ---- */

/* Linear decay to 1 / 10,000. */
static float rate_of(const ses_w2v *w)
{
    double done = (double)w->round / ((double)w->rounds * w->epochs);
    return (float)(w->lr * fmax(1 - done, 1e-4));
}

static bool failed(const ses_w2v *w, ses_err *e)
{
    for (int64_t k = 0; k < w->shards; k++)
        if (w->shard[k].err.code != SES_OK) return *e = w->shard[k].err, true;
    return false;
}

static void next_tag(ses_w2v *w)
{
    if (w->tag++ < MAX_TAG) return;
    for (int64_t i = 0; i < w->in_rows + w->out_rows; i++) atomic_store(&w->user[i], 0);
    w->tag = 1;
}

bool ses_w2v_begin(ses_w2v *w, ses_err *e)
{
    w->planning = true;
    next_tag(w);
    ses_parallel_for(w->pool, w->shards, merge_and_plan, w);
    return !failed(w, e);
}

bool ses_w2v_round(ses_w2v *w, ses_err *e)
{
    w->rate = rate_of(w);
    w->step_in = PAIR_STEP * w->rate * (float)(w->hs ? TREE_STEPS : w->negative + 1);
    w->step_out = PAIR_STEP * w->rate * (float)(w->bags ? 1 : w->window + 1);
    if (w->round % w->rounds == 0) w->pass_loss = 0, w->pass_pairs = 0;
    ses_parallel_for(w->pool, w->shards, train_shard, w);
    if (failed(w, e)) return false;
    for (int64_t k = 0; k < w->shards; k++) {
        w->loss += w->shard[k].loss, w->pairs += w->shard[k].pairs;
        w->pass_loss += w->shard[k].loss, w->pass_pairs += w->shard[k].pairs;
    }
    if (!isfinite(w->pass_loss))
        return ses_fail(e, SES_EARG, "training diverged: the learning rate %g is too large (--lr)", w->lr);
    w->planning = ++w->round < w->rounds * w->epochs;
    next_tag(w);
    ses_parallel_for(w->pool, w->shards, merge_and_plan, w);
    return !failed(w, e);
}

void ses_w2v_shard_free(ses_w2v_shard *s)
{
    void *own[] = { s->step, s->in.item,  s->in.copy, s->out.item, s->out.copy,
                    s->word, s->position, s->copy,    s->copied,   s->slot };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
}
