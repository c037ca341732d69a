/* Pairs of texts: see pair_batches.h. */
#include "pair_batches.h"

#include "base/alloc.h"
#include "data/rng_stream.h"
#include "run/batch_builder.h"

#include <stdio.h>

enum { SITE = 0x70657406 };

struct ses_pair_batches {
    ses_pair_options o;
    int64_t n;
    int32_t *by_label; /* [n] texts, label after label */
    int64_t *begin;    /* [labels + 1] */
    int64_t *slot;     /* [n] index of a text in by_label */
    int32_t *order;    /* [n] first texts of pairs, shuffled */
    ses_batch_builder builder;
};

static void sort_by_label(ses_pair_batches *p)
{
    int64_t at = 0;
    for (int64_t l = 0; l < p->o.labels; l++) {
        p->begin[l] = at;
        for (int64_t i = 0; i < p->n; i++)
            if (p->o.label[i] == l) p->slot[i] = at, p->by_label[at++] = (int32_t)i;
    }
    p->begin[p->o.labels] = at;
}

ses_pair_batches *ses_pair_batches_new(const ses_pair_options *o, ses_err *e)
{
    ses_pair_batches *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->o = *o;
    p->n = ses_dataset_size(o->texts);
    p->by_label = ses_alloc_array((size_t)p->n + 1, sizeof *p->by_label, e);
    p->begin = ses_alloc_array((size_t)o->labels + 1, sizeof *p->begin, e);
    p->slot = ses_alloc_array((size_t)p->n + 1, sizeof *p->slot, e);
    p->order = ses_alloc_array((size_t)p->n + 1, sizeof *p->order, e);
    if (!p->by_label || !p->begin || !p->slot || !p->order) {
        ses_pair_batches_free(p);
        return NULL;
    }
    sort_by_label(p);
    ses_rng_stream d = ses_rng_stream_of(o->seed, 0, SITE + 1);
    for (int64_t i = 0; i < p->n; i++) p->order[i] = (int32_t)i;
    ses_draw_shuffle(&d, p->order, p->n);
    return p;
}

void ses_pair_batches_free(ses_pair_batches *p)
{
    if (!p) return;
    ses_batch_builder_free(&p->builder);
    ses_free(p->by_label);
    ses_free(p->begin);
    ses_free(p->slot);
    ses_free(p->order);
    ses_free(p);
}

int ses_pair_batches_at(const ses_pair_batches *p, uint64_t number, int64_t text[2])
{
    ses_rng_stream d = ses_rng_stream_of(p->o.seed, number, SITE);
    int target = number % 2 == 0;
    int64_t first = p->order[number / 2 % (uint64_t)p->n], label = p->o.label[first];
    int64_t from = p->begin[label], same = p->begin[label + 1] - from;
    text[0] = text[1] = first;
    if (target && same > 1) { /* one of the others */
        int64_t at = from + ses_draw_below(&d, same - 1);
        text[1] = p->by_label[at + (at >= p->slot[first])];
    } else if (!target) {
        int64_t at = ses_draw_below(&d, p->n - same);
        text[1] = p->by_label[at < from ? at : at + same];
    }
    return target;
}

static int64_t pairs_of_epoch(const ses_pair_batches *p) { return 2 * p->o.pairs * p->n; }

static int64_t count(void *ctx, int64_t epoch)
{
    const ses_pair_batches *p = ctx;
    (void)epoch;
    return (pairs_of_epoch(p) + p->o.batch_pairs - 1) / p->o.batch_pairs;
}

static bool add_text(ses_pair_batches *p, int64_t text, ses_err *e)
{
    ses_sequence q = ses_dataset_at(p->o.texts, text);
    return ses_batch_builder_add(&p->builder, q.ids, q.segments, q.n, e);
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    ses_pair_batches *p = ctx;
    int64_t all = pairs_of_epoch(p), begin = index * p->o.batch_pairs, end = begin + p->o.batch_pairs;
    if (end > all) end = all;
    bool ok = true;
    ses_batch_builder_clear(&p->builder);
    p->builder.choices = 2;
    for (int64_t i = begin; ok && i < end; i++) {
        int64_t text[2];
        ses_real target = (ses_real)ses_pair_batches_at(p, (uint64_t)(epoch * all + i), text);
        ok = add_text(p, text[0], e) && add_text(p, text[1], e) &&
             ses_batch_builder_add_values(&p->builder, &target, 1, e);
    }
    *out = ses_batch_builder_batch(&p->builder);
    return ok;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    const ses_pair_batches *p = ctx;
    snprintf(buf, n, "pairs from %lld of epoch %lld", (long long)(index * p->o.batch_pairs),
             (long long)epoch);
}

ses_batch_source ses_pair_batches_source(ses_pair_batches *p)
{
    return (ses_batch_source){ .ctx = p, .count = count, .batch = batch, .describe = describe };
}
