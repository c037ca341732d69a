/* Rounds of skip-gram and CBOW on threads: train, merge, plan the next. */
#include "word2vec.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { AHEAD = 2, LINE = 16 }; /* steps to prefetch; floats of a cache line */
#define PAIR_STEP 0.1f         /* size of the step of one pair at the learning rate 1; found by experiment */
enum { TREE_STEPS = 12 };
#define MAX_TAG 0xFFFFFFu

/* ---- copies of rows that several shards use ---- */

static bool reserve_copies(const ses_w2v *w, ses_w2v_shard *s)
{
    size_t need = s->n_used * (size_t)w->stride;
    if (s->n_used > s->copy_capacity &&
        !ses_array_reserve(&s->copy, &s->copy_capacity, s->n_used, sizeof *s->copy, &s->err))
        return false;
    if (need <= s->copied_capacity) return true;
    need += need / 2;
    ses_free(s->copied);
    s->copied_capacity = 0;
    s->copied = ses_alloc_huge(need, sizeof *s->copied, &s->err);
    if (!s->copied) return false;
    s->copied_capacity = need;
    return true;
}

/* Finds the address of each row in the round. Rows that other shards use are copied. */
static bool locate(const ses_w2v *w, ses_w2v_shard *s)
{
    int64_t number = s - w->shard;
    size_t stride = (size_t)w->stride;
    s->n_copies = 0;
    for (int64_t k = 0; k < w->shards; k++) s->first[k] = -1;
    if (!reserve_copies(w, s)) return false;
    for (size_t i = 0; i < s->n_used; i++) {
        ses_w2v_used *u = &s->used[i];
        float *row = w->weight + (size_t)u->row * stride;
        u->at = row;
        if (!u->uses || ses_w2v_owns(w, number, u->row)) continue;
        int32_t *first = &s->first[(uint32_t)u->row % (uint32_t)w->shards];
        u->at = s->copied + s->n_copies * stride;
        memcpy(u->at, row, stride * sizeof *row);
        s->copy[s->n_copies] =
            (ses_w2v_copy){ .data = u->at, .row = u->row, .uses = u->uses, .next = *first };
        *first = (int32_t)s->n_copies++;
    }
    return true;
}

/* ---- training ---- */

static void prefetch_row(const ses_w2v *w, const float *row)
{
    for (int64_t c = 0; c < w->stride; c += LINE) __builtin_prefetch(row + c, 1);
}

static void prefetch(const ses_w2v *w, const ses_w2v_shard *s, const ses_w2v_step *t)
{
    for (uint32_t i = t->first_out; i < t->first_out + t->n_out; i++)
        prefetch_row(w, s->used[s->out.item[i] >> 1].at);
    if (t->n_in) /* the others were contexts of the word before */
        prefetch_row(w, s->used[s->in.item[t->first_in + t->n_in - 1]].at);
}

static void train_steps(const ses_w2v *w, ses_w2v_shard *s, float **x, float *scratch)
{
    float *y[SES_WORD_STEP_MAX], label[SES_WORD_STEP_MAX];
    for (size_t k = 0; k < s->n_steps; k++) {
        const ses_w2v_step *t = &s->step[k];
        int64_t positive = 0;
        if (k + AHEAD < s->n_steps) prefetch(w, s, t + AHEAD);
        for (uint32_t i = 0; i < t->n_in; i++) x[i] = s->used[s->in.item[t->first_in + i]].at;
        for (uint32_t i = 0; i < t->n_out; i++) {
            int32_t item = s->out.item[t->first_out + i];
            y[i] = s->used[item >> 1].at;
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
    s->loss = 0, s->pairs = 0;
    if (!locate(w, s)) return;
    for (size_t k = 0; k < s->n_steps; k++)
        if (s->step[k].n_in > most) most = s->step[k].n_in;
    if (2 * stride * sizeof(float) + most * sizeof(float *) > SES_SCRATCH_BYTES) {
        ses_fail(&s->err, SES_EUNSUPPORTED, "a bag of %zu rows", most);
        return;
    }
    train_steps(w, s, (float **)(void *)((float *)scratch + 2 * stride), scratch);
}

/* ---- merging: all shards move a row that they share the same way, so that the sum of many moves would
 * overshoot; differences are scaled (ses_word_scale) ---- */

/* The scale for a row with `uses` by k shards. step_in, step_out: size of a use as input, as output. */
static float scale_of(const ses_w2v *w, int32_t row, int64_t uses, int64_t k)
{
    return ses_word_scale(row < w->in_rows ? w->step_in : w->step_out, uses, k);
}

/* Merges the copies of a row, in the order of the shards. */
static void merge_row(ses_w2v *w, int32_t row)
{
    const float *from[SES_W2V_MAX_SHARDS];
    int64_t n = 0, uses = 0;
    for (const ses_w2v_copy *c = w->copies[row]; c; c = c->peer) from[n++] = c->data, uses += c->uses;
    w->copies[row] = NULL;
    w->kernel.merge_rows(w->weight + (size_t)row * (size_t)w->stride, from, n, scale_of(w, row, uses, n),
                         w->stride);
}

/* Part `part` of the rows: lists the copies of each, then merges them. */
static void merge(ses_w2v *w, int64_t part)
{
    for (int64_t k = w->shards - 1; k >= 0; k--)
        for (int32_t i = w->shard[k].first[part]; i >= 0; i = w->shard[k].copy[i].next) {
            ses_w2v_copy *c = &w->shard[k].copy[i];
            c->peer = w->copies[c->row];
            w->copies[c->row] = c;
        }
    for (int64_t k = 0; k < w->shards; k++)
        for (int32_t i = w->shard[k].first[part]; i >= 0; i = w->shard[k].copy[i].next)
            if (w->copies[w->shard[k].copy[i].row]) merge_row(w, w->shard[k].copy[i].row);
}

static void merge_and_plan(void *ctx, int64_t number, void *scratch)
{
    ses_w2v *w = ctx;
    (void)scratch;
    merge(w, number);
    if (w->planning) ses_w2v_plan(w, number);
}

/* ---- rounds ---- */

float ses_w2v_rate(const ses_w2v *w, int64_t round)
{
    double done = (double)round / ((double)w->rounds * w->epochs);
    return (float)(w->lr * fmax(1 - done, 1e-4));
}

float ses_w2v_in_step(const ses_w2v *w, float rate)
{
    return PAIR_STEP * rate * (float)(w->hs ? TREE_STEPS : w->negative + 1);
}

float ses_w2v_out_step(const ses_w2v *w, float rate)
{
    return PAIR_STEP * rate * (float)(w->bags ? 1 : w->window + 1);
}

bool ses_w2v_check_loss(const ses_w2v *w, ses_err *e)
{
    return isfinite(w->pass_loss) ||
           ses_fail(e, SES_EARG, "training diverged: the learning rate %g is too large (--lr)", w->lr);
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

static bool divide(ses_w2v *w, ses_err *e)
{
    int64_t n = w->corpus.n;
    w->shard = ses_alloc_array((size_t)w->shards, sizeof *w->shard, e);
    if (!w->shard) return false;
    for (int64_t k = 0; k < w->shards; k++) {
        w->shard[k].begin = n * k / w->shards, w->shard[k].end = n * (k + 1) / w->shards;
        int64_t rounds =
            (w->shard[k].end - w->shard[k].begin + SES_W2V_SHARD_WORDS - 1) / SES_W2V_SHARD_WORDS;
        if (rounds > w->rounds) w->rounds = rounds;
    }
    return true;
}

static bool begin(ses_w2v *w, ses_err *e)
{
    size_t rows = (size_t)(w->in_rows + w->out_rows);
    w->pool = ses_thread_pool_new(w->job->threads, e);
    w->user = ses_alloc_array(rows, sizeof *w->user, e);
    w->copies = ses_alloc_array(rows, sizeof(ses_w2v_copy *), e);
    if (!w->pool || !w->user || !w->copies) return false;
    w->planning = true;
    for (int64_t k = 0; k < w->shards; k++)
        for (int64_t part = 0; part < w->shards; part++) w->shard[k].first[part] = -1;
    next_tag(w);
    ses_parallel_for(w->pool, w->shards, merge_and_plan, w);
    return !failed(w, e);
}

static bool advance(ses_w2v *w, ses_err *e)
{
    w->rate = ses_w2v_rate(w, w->round);
    w->step_in = ses_w2v_in_step(w, w->rate), w->step_out = ses_w2v_out_step(w, w->rate);
    if (w->round % w->rounds == 0) w->pass_loss = 0, w->pass_pairs = 0;
    ses_parallel_for(w->pool, w->shards, train_shard, w);
    if (failed(w, e)) return false;
    for (int64_t k = 0; k < w->shards; k++) {
        w->loss += w->shard[k].loss, w->pairs += w->shard[k].pairs;
        w->pass_loss += w->shard[k].loss, w->pass_pairs += w->shard[k].pairs;
    }
    if (!ses_w2v_check_loss(w, e)) return false;
    w->planning = ++w->round < w->rounds * w->epochs;
    next_tag(w);
    ses_parallel_for(w->pool, w->shards, merge_and_plan, w);
    return !failed(w, e);
}

static bool fetch(ses_w2v *w, ses_err *e)
{
    (void)w, (void)e;
    return true; /* the weights are trained in place */
}

static void free_shard(ses_w2v_shard *s)
{
    void *own[] = { s->step,     s->in.item, s->out.item, s->word, s->number,
                    s->position, s->used,    s->slot,     s->copy, s->copied };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
}

static void end(ses_w2v *w)
{
    for (int64_t k = 0; w->shard && k < w->shards; k++) free_shard(&w->shard[k]);
    ses_thread_pool_free(w->pool);
    ses_free((void *)w->user);
    ses_free((void *)w->copies);
}

const ses_w2v_engine ses_w2v_threads = { divide, begin, advance, fetch, end };
