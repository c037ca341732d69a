/* Parallel loops over items that may be too small to be one chunk each. */
#ifndef SES_KERNEL_PARALLEL_ITEMS_H
#define SES_KERNEL_PARALLEL_ITEMS_H

#include "chunking.h"

/* Runs of `each` consecutive items per chunk, for items too small to be one chunk each. */
typedef struct item_runs {
    ses_chunk_fn *fn;
    void *ctx;
    int64_t n, each;
} item_runs;

static void run_items(void *ctx, int64_t index, void *scratch)
{
    const item_runs *p = ctx;
    ses_range run = ses_chunk(p->n, p->each, index);
    for (int64_t i = run.begin; i < run.end; i++) p->fn(p->ctx, i, scratch);
}

/* cost: multiply-adds per item */
static inline void parallel_items(ses_exec *x, int64_t n, int64_t cost, ses_chunk_fn *fn, void *ctx)
{
    /* CHUNK_WORK: multiply-adds per chunk; ITEM_COST: fixed cost of an item */
    enum { CHUNK_WORK = 1 << 19, ITEM_COST = 1 << 16 };
    if (n <= 0) return;
    int64_t chunks = ses_chunks(n, 1 + CHUNK_WORK / (cost + ITEM_COST));
    item_runs p = { fn, ctx, n, ses_chunks(n, chunks) };
    ses_parallel_for(x->pool, ses_chunks(n, p.each), run_items, &p);
}

#endif
