/* Work that is queued repeatedly with the same shapes, kept as a CUDA graph: launching it takes
 * microseconds. */
#include "tape_impl.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "tensor/device_impl.h"

#include <assert.h>
#include <string.h>

enum { N_ARENAS = 2, SLOTS = 16, MAX_FAILURES = 4 };

/* Everything that determines the addresses the work reads and writes. */
typedef struct graph_key {
    unsigned char given[SES_MAX_GRAPH_KEY];
    const void *x;
    int64_t dim[SES_MAX_DIM];
    ses_arena at[N_ARENAS]; /* allocation state */
    uint64_t free_epoch;    /* the device's counter: memory freed since then invalidates the graph */
} graph_key;

typedef struct graph_slot {
    graph_key key;
    bool is_set;
    int failed; /* failed captures: kernels may autotune first, and some work cannot be captured */
    void *graph;
    ses_arena end[N_ARENAS]; /* allocation state after the work */
    ses_tensor out;
} graph_slot;

struct ses_graph_cache {
    graph_slot slot[SLOTS];
};

static ses_arena *arena(ses_tape *t, int i) { return i ? &t->tmp : &t->mem; }

static void clear_slot(ses_tape *t, graph_slot *slot)
{
    if (slot->graph) t->dev->mem->graphs->free(t->dev, slot->graph);
    memset(slot, 0, sizeof *slot);
}

void ses_graph_cache_free(ses_tape *t)
{
    for (int i = 0; t->graphs && i < SLOTS; i++) clear_slot(t, &t->graphs->slot[i]);
    ses_free(t->graphs);
    t->graphs = NULL;
}

static graph_slot *slot_of(ses_tape *t, const graph_key *key)
{
    if (!t->graphs) t->graphs = ses_alloc(sizeof *t->graphs, NULL);
    uint64_t hash = ses_hash((ses_hash_key){ 0 }, key, sizeof *key);
    return t->graphs ? &t->graphs->slot[hash % SLOTS] : NULL;
}

static void set_arenas(ses_tape *t, const ses_arena as[N_ARENAS])
{
    for (int i = 0; i < N_ARENAS; i++) *arena(t, i) = as[i];
}

/* Calls f under stream capture: its work is recorded, not run. A failed capture has no effect: capturing
 * allocates no memory, so only the used sizes of the arenas change, and they are restored. */
static void capture(ses_tape *t, graph_slot *slot, ses_segment_fn *f, void *ctx, ses_tensor *x)
{
    const ses_device_graphs *g = t->dev->mem->graphs;
    if (!g->begin(t->dev)) return; /* another thread captures: try again later */
    ses_tensor *y = f(ctx, x);
    void *graph = g->end(t->dev);
    if (graph && y) {
        for (int i = 0; i < N_ARENAS; i++) slot->end[i] = *arena(t, i);
        slot->graph = graph, slot->out = *y;
        return;
    }
    if (graph) g->free(t->dev, graph);
    ses_err_clear(&t->err);
    set_arenas(t, slot->key.at);
    slot->failed++;
}

ses_tensor *ses_graph_replay(ses_tape *t, ses_segment_fn *f, void *ctx, ses_tensor *x, const void *key,
                             size_t size)
{
    const ses_device_graphs *g = t->dev->mem->graphs;
    if (!g || !x || t->err.code || t->opt.record || t->opt.train) return f(ctx, x);
    graph_key key_now;
    memset(&key_now, 0, sizeof key_now);
    assert(size <= sizeof key_now.given);
    memcpy(key_now.given, key, size);
    key_now.x = x->data, key_now.free_epoch = g->free_epoch(t->dev);
    memcpy(key_now.dim, x->dim, sizeof key_now.dim);
    for (int i = 0; i < N_ARENAS; i++) key_now.at[i] = *arena(t, i);
    graph_slot *slot = slot_of(t, &key_now);
    bool repeated = slot && slot->is_set && !memcmp(&slot->key, &key_now, sizeof key_now),
         single_blocks = true;
    for (int i = 0; i < N_ARENAS; i++) single_blocks &= ses_arena_is_single_block(arena(t, i));
    if (slot && !repeated) {
        clear_slot(t, slot);
        slot->key = key_now, slot->is_set = true;
    }
    if (!repeated || !single_blocks || slot->failed >= MAX_FAILURES) return f(ctx, x);
    ses_tensor x_header = *x; /* f may rewind the memory of this header */
    if (!slot->graph) capture(t, slot, f, ctx, x);
    bool ran = slot->graph && g->run(t->dev, slot->graph, key_now.free_epoch);
    set_arenas(t, ran ? slot->end : slot->key.at);
    const ses_tensor *at = ran ? &slot->out : &x_header;
    ses_tensor *y = ses_tensor_wrap(t, at->data, at->dtype, at->dim, &t->err);
    return ran || !y ? y : f(ctx, y);
}
