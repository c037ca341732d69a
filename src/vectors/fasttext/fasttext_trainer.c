/* The supervised trainer: batches, threads, learning rate. */
#include "fasttext_trainer_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "kernel/kernel.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, FREQUENT = 128, GROUP = 8 /* examples of a chunk */, INIT_CHUNK = 1 << 12 };

typedef ses_fasttext_trainer trainer;

static void each_chunk(const trainer *t, int64_t chunks, ses_chunk_fn *fn, trainer *ctx)
{
    if (t->run->pool) {
        ses_parallel_for(t->run->pool, chunks, fn, ctx);
        return;
    }
    for (int64_t i = 0; i < chunks; i++) fn(ctx, i, NULL);
}

/* ---- weights ---- */

static void init_rows(void *ctx, int64_t chunk, void *scratch)
{
    const trainer *t = ctx;
    (void)scratch;
    ses_rng_key key = { (uint64_t)t->o->seed, 0, SES_FASTTEXT_SITE_INIT };
    float scale = 2.0f / (float)t->dim, low = -1.0f / (float)t->dim;
    size_t end =
        ((size_t)chunk + 1) * INIT_CHUNK < t->in_rows ? ((size_t)chunk + 1) * INIT_CHUNK : t->in_rows;
    for (size_t row = (size_t)chunk * INIT_CHUNK; row < end; row++)
        for (size_t k = 0; k < t->dim; k += 4) {
            uint32_t bits[4];
            ses_philox(bits, key, (uint64_t)row * ((t->dim + 3) / 4) + k / 4);
            for (size_t i = 0; i < 4 && k + i < t->dim; i++)
                t->in[row * t->stride + k + i] = (float)(bits[i] >> 8) * 0x1p-24f * scale + low;
        }
}

static bool make_weights(trainer *t, ses_err *e)
{
    size_t all;
    t->dim = (size_t)t->o->set.dim;
    t->stride = (t->dim + SES_ROW_BLOCK - 1) / SES_ROW_BLOCK * SES_ROW_BLOCK;
    t->labels = ses_fasttext_n_labels(t->m);
    t->in_rows = t->m->d.n_words + (size_t)t->o->set.bucket;
    if (!ses_mul_size(t->in_rows, t->stride, &all)) return ses_fail(e, SES_ENOMEM, "too many weights");
    t->in = ses_alloc_huge(all, sizeof *t->in, e);
    t->out = ses_alloc_array(t->labels * t->stride, sizeof *t->out, e);
    t->score = ses_alloc_array(t->labels, sizeof *t->score, e);
    if (!t->in || !t->out || !t->score) return false;
    each_chunk(t, (int64_t)((t->in_rows + INIT_CHUNK - 1) / INIT_CHUNK), init_rows, t);
    if (t->o->set.loss == SES_FASTTEXT_NEGATIVE) {
        t->negative = ses_fasttext_negatives(&t->m->d, t->m->d.n_words, t->m->d.n, &t->n_negative, e);
        if (!t->negative) return false;
    }
    return !t->o->pretrained || ses_fasttext_copy_pretrained(&t->m->d, t->o->pretrained, t->in, t->stride, e);
}

void ses_fasttext_move_frequent(const ses_fasttext_trainer *t, bool back)
{
    for (size_t i = 0; i < t->bags.n_frequent; i++) {
        float *row = t->in + (size_t)t->bags.frequent[i] * t->stride, *copy = t->frequent + i * t->stride;
        memcpy(back ? row : copy, back ? copy : row, t->stride * sizeof *row);
    }
}

static bool make_batches(trainer *t, ses_err *e)
{
    const ses_fasttext_bags *b = &t->bags;
    t->batch = t->run->batch ? (size_t)t->run->batch : BATCH;
    if (!ses_fasttext_bags_split(&t->bags, t->in_rows, FREQUENT, e)) return false;
    t->frequent = ses_alloc_array(b->n_frequent * t->stride, sizeof *t->frequent, e);
    for (size_t i = 0; i < b->n; i++) {
        size_t rows = b->row_start[i + 1] - b->row_start[i];
        if (rows > t->most_rows) t->most_rows = rows;
    }
    t->parts = t->run->pool ? (size_t)ses_thread_pool_size(t->run->pool) : 1;
    for (int i = 0; i < 2; i++) t->hidden[i] = ses_alloc_array(t->batch * t->stride, sizeof(float), e);
    t->gradient = ses_alloc_array(t->batch * t->stride, sizeof *t->gradient, e);
    t->order = ses_alloc_array(b->n, sizeof *t->order, e);
    t->mine = ses_alloc_array(t->parts * t->most_rows, sizeof *t->mine, e);
    if (b->n > UINT32_MAX) return ses_fail(e, SES_EARG, "more than %u texts", UINT32_MAX);
    return t->frequent && t->hidden[0] && t->hidden[1] && t->gradient && t->order && t->mine;
}

/* ---- phases of a batch ---- */

static size_t batch_end(const trainer *t, size_t batch)
{
    size_t end = (batch + 1) * t->batch;
    return end < t->bags.n ? end : t->bags.n;
}

static void sum_group(const trainer *t, size_t batch, size_t group)
{
    size_t first = batch * t->batch, from = first + group * GROUP, end = batch_end(t, batch);
    for (size_t i = from; i < from + GROUP && i < end; i++) {
        size_t start = t->bags.row_start[t->order[i]], n = t->bags.row_start[t->order[i] + 1] - start;
        t->steps->sum(t->in, t->stride, t->bags.row + start, n, 1,
                      t->hidden[batch % 2] + (i - first) * t->stride);
    }
}

/* Chunk 0 trains the output matrix on the current batch; the others sum the hidden vectors of the next
 * one. */
static void first_phase(void *ctx, int64_t chunk, void *scratch)
{
    trainer *t = ctx;
    (void)scratch;
    if (chunk) {
        sum_group(t, t->at + 1, (size_t)chunk - 1);
        return;
    }
    size_t first = t->at * t->batch, end = batch_end(t, t->at);
    for (size_t i = first; i < end && !t->diverged; i++)
        ses_fasttext_train_output(t, t->order[i], t->hidden[t->at % 2] + (i - first) * t->stride,
                                  t->gradient + (i - first) * t->stride);
}

/* Adds the gradients of the batch to the rows of one part, in the order of the examples. */
static void second_phase(void *ctx, int64_t part, void *scratch)
{
    const trainer *t = ctx;
    (void)scratch;
    size_t first = t->at * t->batch, end = batch_end(t, t->at);
    int32_t *mine = t->mine + (size_t)part * t->most_rows;
    for (size_t i = first; i < end; i++) {
        size_t start = t->bags.row_start[t->order[i]], n = t->bags.row_start[t->order[i] + 1] - start,
               kept = 0;
        const int32_t *row = t->bags.row + start;
        const float *gradient = t->gradient + (i - first) * t->stride;
        if (t->parts == 1) {
            t->steps->add(t->in, t->stride, row, n, gradient);
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            mine[kept] = row[k];
            kept += (uint32_t)row[k] % (uint32_t)t->parts == (uint32_t)part;
        }
        t->steps->add(t->in, t->stride, mine, kept, gradient);
    }
}

static int64_t groups_of(const trainer *t, size_t batch)
{
    size_t first = batch * t->batch;
    return first >= t->bags.n ? 0 : (int64_t)((batch_end(t, batch) - first + GROUP - 1) / GROUP);
}

static void sum_first(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    sum_group(ctx, 0, (size_t)chunk);
}

/* ---- epochs ---- */

static void shuffle(trainer *t)
{
    ses_rng_key key = { (uint64_t)t->o->seed, (uint32_t)t->epoch, SES_FASTTEXT_SITE_ORDER };
    for (size_t i = 0; i < t->bags.n; i++) t->order[i] = (uint32_t)i;
    for (size_t i = t->bags.n; i > 1; i--) {
        size_t k = (size_t)((uint64_t)ses_rand32(key, i) * i >> 32);
        uint32_t swap = t->order[i - 1];
        t->order[i - 1] = t->order[k];
        t->order[k] = swap;
    }
}

static bool report(trainer *t, int64_t all, ses_err *e)
{
    if (t->diverged)
        return ses_fail(e, SES_EARG, "training diverged: the learning rate %g is too large", t->o->lr);
    if (!t->o->progress || t->o->progress(t->o->ctx, t->tokens_done, all)) return true;
    t->run->interrupted = true;
    if (!t->run->state) return ses_fail(e, SES_EIO, "interrupted; nothing was written");
    if (!ses_fasttext_state_save(t, e)) return false;
    return ses_fail(e, SES_EIO, "interrupted; %s holds the state, --resume continues", t->run->state);
}

static bool train_epoch(trainer *t, int64_t all, ses_err *e)
{
    size_t batches = (t->bags.n + t->batch - 1) / t->batch;
    int64_t next_report = t->tokens_done;
    for (; t->at < batches; t->at++) {
        if (t->tokens_done >= next_report) {
            if (!report(t, all, e)) return false;
            next_report = t->tokens_done + (1 << 16);
        }
        t->rate = (float)(t->o->lr * (1 - (double)t->tokens_done / (double)all));
        each_chunk(t, 1 + groups_of(t, t->at + 1), first_phase, t);
        if (t->diverged) return report(t, all, e);
        each_chunk(t, (int64_t)t->parts, second_phase, t);
        for (size_t i = t->at * t->batch; i < batch_end(t, t->at); i++)
            t->tokens_done += t->bags.tokens[t->order[i]];
    }
    return true;
}

static bool train(trainer *t, ses_err *e)
{
    size_t epochs = (size_t)t->o->set.epoch;
    int64_t all = (int64_t)epochs * t->bags.all_tokens;
    double saved = ses_seconds();
    if (t->run->resume && t->run->state && !ses_fasttext_state_load(t, e)) return false;
    ses_fasttext_move_frequent(t, false);
    for (; t->epoch < epochs; t->epoch++, t->at = 0, t->loss = 0, t->trained = 0) {
        shuffle(t);
        for (size_t i = 0; i < t->at * t->batch; i++)
            t->tokens_done += t->bags.tokens[t->order[i]]; /* resumed */
        if (!t->at) each_chunk(t, groups_of(t, 0), sum_first, t);
        if (!train_epoch(t, all, e)) return false;
        t->run->loss = t->trained ? t->loss / (double)t->trained : 0;
        if (t->run->state && t->run->save_seconds > 0 && t->epoch + 1 < epochs &&
            ses_seconds() - saved >= t->run->save_seconds) {
            if (!ses_fasttext_state_save(t, e)) return false;
            saved = ses_seconds();
        }
    }
    t->run->words = t->tokens_done;
    if (t->o->progress) t->o->progress(t->o->ctx, all, all); /* too late to stop */
    return true;
}

/* The matrices without the padding of their rows. */
static void finish(trainer *t)
{
    ses_fasttext_move_frequent(t, true);
    for (size_t row = 0; row < t->in_rows && t->stride != t->dim; row++)
        memmove(t->in + row * t->dim, t->in + row * t->stride, t->dim * sizeof *t->in);
    for (size_t row = 0; row < t->labels && t->stride != t->dim; row++)
        memmove(t->out + row * t->dim, t->out + row * t->stride, t->dim * sizeof *t->out);
    t->m->in = (ses_fasttext_matrix){ .rows = (int64_t)t->in_rows, .columns = t->o->set.dim, .own = t->in };
    t->m->out = (ses_fasttext_matrix){ .rows = (int64_t)t->labels, .columns = t->o->set.dim, .own = t->out };
    t->in = t->out = NULL;
}

bool ses_fasttext_train(const ses_fasttext_options *o, const ses_fasttext_texts *texts, ses_fasttext_run *run,
                        ses_fasttext_model *m, ses_err *e)
{
    trainer t = { .o = o, .run = run, .m = m, .steps = ses_row_steps_of(ses_isa_best()) };
    bool ok = ses_fasttext_count_texts(o, texts, m, e) && ses_fasttext_bags_fill(&t.bags, texts, m, e) &&
              ses_fasttext_index(m, e) && make_weights(&t, e) && make_batches(&t, e) && train(&t, e);
    if (ok) finish(&t);
    ses_fasttext_bags_free(&t.bags);
    void *own[] = { t.in,    t.out,      t.hidden[0], t.hidden[1], t.gradient,
                    t.score, t.negative, t.order,     t.mine,      t.frequent };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    return ok;
}
