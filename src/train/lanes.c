/* Lanes: partial sums, buckets, exchange. */
#include "lanes.h"

#include "base/alloc.h"
#include "kernel/chunking.h"
#include "nn/store_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET = 6553600 };               /* elements: 26 MB */
enum { MAX_STORES = 4, MAX_DEPTH = 20 }; /* depth: log2(SES_MAX_LANES) + 1, and some */

/* A partial sum of this rank, in memory of its own. */
typedef struct partial {
    ses_lane_node node;
    ses_real *sum[MAX_STORES]; /* [flat] of each store */
} partial;

typedef struct bucket {
    size_t store;
    int64_t begin, end; /* elements of the store's flat buffers */
    int64_t first_use;  /* number of the first node that used it in the watched pass; INT64_MAX: none */
} bucket;

/* The partial sums that a rank sends in an update. */
typedef struct sender {
    ses_lane_node node[SES_MAX_LANE_NODES];
    size_t n;
} sender;

struct ses_lanes {
    ses_lanes_options o;
    int rank, size;
    ses_store *store[MAX_STORES];
    ses_flat flat[MAX_STORES];
    ses_shards shards[MAX_STORES];
    double *square[MAX_STORES], *square_on_device[MAX_STORES]; /* [cells] */
    ses_real *read_f32[MAX_STORES];                            /* see gather_f32; NULL: none yet */
    size_t *offset;                                            /* [size + 1], scratch */
    ses_comm_block *block;                                     /* [2, size], scratch */
    bucket *bucket;                                            /* [n_buckets], in the order of sending */
    size_t n_buckets;
    bool is_ordered;

    /* the current update */
    int64_t used;
    ses_lane_node own;
    partial stack[MAX_DEPTH];
    size_t depth;
    size_t merges;                  /* top entries of the stack that are added to the last lane's gradient */
    size_t next;                    /* buckets sent so far */
    sender *from;                   /* [size] */
    size_t rounds;                  /* largest number of partial sums of a rank */
    ses_real *received[MAX_STORES]; /* [partial sums of the other ranks, elements of the shard] */
    int64_t received_cap[MAX_STORES];
    /* Transport in bf16: partial sums of this rank [partial sums, flat] and received sums. */
    uint16_t *sent_bf16[MAX_STORES], *received_bf16[MAX_STORES];
    size_t sent_cap;
    ses_tape_watch watch;
    ses_err err; /* error of a watched pass, which ses_lanes_add reports */
};

/* ---- construction ---- */

static void used(void *ctx, const ses_tensor *x, int64_t number);
static void passed(void *ctx, int64_t number);

static bool add_buckets(ses_lanes *l, ses_err *e)
{
    size_t n = 0;
    for (size_t s = 0; s < l->o.n_stores; s++) n += (size_t)(l->flat[s].n / l->o.bucket) + 1;
    if (!(l->bucket = ses_alloc_array(n, sizeof *l->bucket, e))) return false;
    for (size_t s = l->o.n_stores; s-- > 0;) /* at first backwards: the usual order of a backward pass */
        for (int64_t end = l->flat[s].n; end > 0;) {
            int64_t begin = (end - 1) / l->o.bucket * l->o.bucket;
            l->bucket[l->n_buckets++] = (bucket){ s, begin, end, INT64_MAX };
            end = begin;
        }
    return true;
}

static bool init_store(ses_lanes *l, size_t s, ses_err *e)
{
    ses_device *d = l->o.dev;
    l->store[s] = l->o.store[s];
    l->flat[s] = ses_store_flat(l->store[s]);
    if (!ses_shards_init(&l->shards[s], l->store[s], l->o.whole_tensors, l->rank, l->size, e)) return false;
    size_t cells = (size_t)l->shards[s].n_cells;
    l->square[s] = ses_alloc_array(cells, sizeof *l->square[s], e);
    return l->square[s] && (l->square_on_device[s] = d->mem->alloc(d, cells * sizeof(double), e));
}

ses_lanes *ses_lanes_new(const ses_lanes_options *o, ses_err *e)
{
    int size = ses_comm_size(o->comm);
    if (o->lanes < size || o->lanes > SES_MAX_LANES) {
        ses_fail(e, SES_EARG,
                 o->lanes < size ? "%lld lanes are too few for %d ranks: use at least as many lanes"
                                 : "%lld lanes on %d ranks: expected at most 65536",
                 (long long)o->lanes, size);
        return NULL;
    }
    ses_lanes *l = ses_alloc(sizeof *l, e);
    if (!l) return NULL;
    l->o = *o;
    if (l->o.bucket < 1) l->o.bucket = BUCKET;
    l->rank = ses_comm_rank(o->comm);
    l->size = size;
    l->watch = (ses_tape_watch){ .ctx = l, .used = used, .passed = passed };
    l->offset = ses_alloc_array((size_t)size + 1, sizeof *l->offset, e);
    l->block = l->offset ? ses_alloc_array(2 * (size_t)size, sizeof *l->block, e) : NULL;
    l->from = l->block ? ses_alloc_array((size_t)size, sizeof *l->from, e) : NULL;
    bool ok = l->from != NULL;
    for (size_t s = 0; ok && s < o->n_stores; s++) ok = init_store(l, s, e);
    if (ok && add_buckets(l, e) && ses_lanes_begin(l, o->lanes, e)) return l;
    ses_lanes_free(l);
    return NULL;
}

static void release(const ses_lanes *l, void *p)
{
    if (p) l->o.dev->mem->free(l->o.dev, p);
}

void ses_lanes_free(ses_lanes *l)
{
    if (!l) return;
    for (size_t s = 0; s < MAX_STORES; s++) {
        ses_shards_free(&l->shards[s]);
        ses_free(l->square[s]);
        release(l, l->square_on_device[s]);
        release(l, l->read_f32[s]);
        release(l, l->received[s]);
        release(l, l->sent_bf16[s]);
        release(l, l->received_bf16[s]);
        for (size_t i = 0; i < MAX_DEPTH; i++) release(l, l->stack[i].sum[s]);
    }
    ses_free(l->offset);
    ses_free(l->block);
    ses_free(l->from);
    ses_free(l->bucket);
    ses_free(l);
}

const ses_shards *ses_lanes_shards(const ses_lanes *l, size_t store) { return &l->shards[store]; }
ses_lane_node ses_lanes_own(const ses_lanes *l) { return l->own; }

/* ---- the stack of partial sums ---- */

/* Number of entries at the top of the stack that the tree adds to lane `lane`, which is not on it. */
static size_t merges_of(const ses_lanes *l, int64_t lane)
{
    size_t n = 0;
    while (n < l->depth &&
           ses_lane_is_node(l->used, (ses_lane_node){ l->stack[l->depth - 1 - n].node.begin, lane + 1 }))
        n++;
    return n;
}

/* Changes the stack's nodes as adding a lane before the rank's last one does. */
static size_t push_node(ses_lanes *l, int64_t lane)
{
    size_t merges = merges_of(l, lane);
    if (!merges) l->stack[l->depth++].node = (ses_lane_node){ lane, lane + 1 };
    l->depth -= merges > 1 ? merges - 1 : 0;
    l->stack[l->depth - 1].node.end = lane + 1;
    return merges;
}

static bool reserve_stack(ses_lanes *l, size_t depth, ses_err *e)
{
    ses_device *d = l->o.dev;
    for (size_t i = 0; i < depth; i++)
        for (size_t s = 0; s < l->o.n_stores; s++) {
            size_t bytes = (size_t)l->flat[s].n * sizeof(ses_real);
            if (l->stack[i].sum[s]) continue;
            if (!(l->stack[i].sum[s] = d->mem->alloc(d, bytes, e))) return false;
        }
    return true;
}

static size_t count_others(const ses_lanes *l)
{
    size_t others = 0;
    for (int r = 0; r < l->size; r++) others += r == l->rank ? 0 : l->from[r].n;
    return others;
}

/* Makes *p a buffer of n elements of `size` bytes; the old contents are lost. */
static bool renew(const ses_lanes *l, void *p, size_t n, size_t size, ses_err *e)
{
    void **at = p;
    release(l, *at);
    return (*at = l->o.dev->mem->alloc(l->o.dev, n * size, e)) != NULL;
}

/* Buffers of the partial sums of this rank in bf16. */
static bool reserve_sent(ses_lanes *l, ses_err *e)
{
    size_t n = l->from[l->rank].n;
    if (!l->o.bf16 || l->size == 1 || n <= l->sent_cap) return true;
    for (size_t s = 0; s < l->o.n_stores; s++)
        if (!renew(l, &l->sent_bf16[s], n * (size_t)l->flat[s].n, sizeof(uint16_t), e)) return false;
    l->sent_cap = n;
    return true;
}

static bool reserve_received(ses_lanes *l, ses_err *e)
{
    size_t others = count_others(l);
    for (size_t s = 0; s < l->o.n_stores; s++) {
        int64_t n = ses_shards_end(&l->shards[s]) - ses_shards_begin(&l->shards[s]);
        int64_t need = n * (int64_t)others;
        if (need <= l->received_cap[s]) continue;
        l->received_cap[s] = 0;
        if (!renew(l, &l->received[s], (size_t)need, sizeof(ses_real), e)) return false;
        if (l->o.bf16 && !renew(l, &l->received_bf16[s], (size_t)need, sizeof(uint16_t), e)) return false;
        l->received_cap[s] = need;
    }
    return true;
}

static ses_lane_node own_lanes(const ses_lanes *l, int rank)
{
    ses_lane_node x = ses_lanes_of_rank(l->o.lanes, rank, l->size);
    if (x.end > l->used) x.end = l->used;
    if (x.begin > x.end) x.begin = x.end;
    return x;
}

bool ses_lanes_begin(ses_lanes *l, int64_t lanes, ses_err *e)
{
    size_t deepest = 0;
    l->used = lanes;
    l->own = own_lanes(l, l->rank);
    l->depth = l->merges = l->next = l->rounds = 0;
    for (int r = 0; r < l->size; r++) {
        ses_lane_node x = own_lanes(l, r);
        l->from[r].n = ses_lane_cover(lanes, x.begin, x.end, l->from[r].node);
        if (l->from[r].n > l->rounds) l->rounds = l->from[r].n;
    }
    for (int64_t lane = l->own.begin; lane + 1 < l->own.end; lane++) {
        push_node(l, lane);
        if (l->depth > deepest) deepest = l->depth;
    }
    l->depth = 0;
    return reserve_stack(l, deepest, e) && reserve_sent(l, e) && reserve_received(l, e);
}

static void add(const ses_lanes *l, ses_real *to, const ses_real *a, const ses_real *b, int64_t n)
{
    if (n > 0) l->o.dev->k_f32.add(&l->o.dev->exec, to, a, b, n);
}

/* A lane before the rank's last one. */
static void keep(ses_lanes *l, int64_t lane)
{
    size_t merges = push_node(l, lane), top = l->depth - 1 + (merges > 1 ? merges - 1 : 0);
    for (size_t s = 0; s < l->o.n_stores; s++) {
        int64_t n = l->flat[s].n;
        ses_real *grad = l->flat[s].grad, **sum = l->stack[top].sum;
        if (merges)
            add(l, sum[s], sum[s], grad, n);
        else
            l->o.dev->mem->move(l->o.dev, sum[s], grad, (size_t)n * sizeof *grad);
        for (size_t i = top; i > l->depth - 1; i--)
            add(l, l->stack[i - 1].sum[s], l->stack[i - 1].sum[s], l->stack[i].sum[s], n);
    }
}

/* ---- exchange ---- */

/* The i-th partial sum of this rank; the last one is in the gradient buffer. */
static ses_real *own_sum(const ses_lanes *l, size_t store, size_t i)
{
    return i + 1 < l->from[l->rank].n ? l->stack[i].sum[store] : l->flat[store].grad;
}

/* The index in l->received of the i-th partial sum of another rank, for the elements of this rank. */
static int64_t received_at(const ses_lanes *l, size_t store, int rank, size_t i)
{
    const ses_shards *x = &l->shards[store];
    for (int r = 0; r < rank; r++) i += r == l->rank ? 0 : l->from[r].n;
    return (int64_t)i * (ses_shards_end(x) - ses_shards_begin(x));
}

/* n elements at index `at` of a buffer to send or receive, in f32 or bf16. */
static ses_comm_block block_at(const ses_lanes *l, ses_real *real, uint16_t *half, int64_t at, int64_t n)
{
    if (n < 1) return (ses_comm_block){ NULL, 0 };
    if (l->o.bf16) return (ses_comm_block){ half + at, (size_t)n * sizeof *half };
    return (ses_comm_block){ real + at, (size_t)n * sizeof *real };
}

/* The part of a bucket that a rank owns. */
static ses_range owned_part(const ses_lanes *l, const bucket *b, int rank)
{
    const int64_t *border = l->shards[b->store].border;
    ses_range x = { border[rank] > b->begin ? border[rank] : b->begin,
                    border[rank + 1] < b->end ? border[rank + 1] : b->end };
    if (x.end < x.begin) x.end = x.begin;
    return x;
}

/* Queues the exchange of the i-th partial sums of all ranks. */
static bool send_round(ses_lanes *l, const bucket *b, size_t i, ses_err *e)
{
    size_t s = b->store;
    ses_device *d = l->o.dev;
    ses_comm_block *send = l->block, *recv = l->block + l->size;
    ses_range mine = owned_part(l, b, l->rank);
    bool sends = i < l->from[l->rank].n;
    ses_real *sum = sends ? own_sum(l, s, i) : NULL;
    uint16_t *half = sends && l->o.bf16 ? l->sent_bf16[s] + (int64_t)i * l->flat[s].n : NULL;
    if (half) d->k_f32.pack_bf16(&d->exec, half + b->begin, sum + b->begin, b->end - b->begin);
    memset(l->block, 0, 2 * (size_t)l->size * sizeof *l->block);
    for (int r = 0; r < l->size; r++) {
        ses_range to = owned_part(l, b, r);
        if (r == l->rank) continue;
        if (sends) send[r] = block_at(l, sum, half, to.begin, to.end - to.begin);
        if (i < l->from[r].n)
            recv[r] = block_at(l, l->received[s], l->received_bf16[s],
                               received_at(l, s, r, i) + mine.begin - ses_shards_begin(&l->shards[s]),
                               mine.end - mine.begin);
    }
    return ses_comm_exchange_begin(l->o.comm, d, send, recv, e);
}

/* Completes the rank's last partial sum in a bucket and sends them all. */
static bool finish_bucket(ses_lanes *l, const bucket *b, ses_err *e)
{
    ses_real *grad = l->flat[b->store].grad + b->begin;
    for (size_t i = 0; i < l->merges; i++)
        add(l, grad, l->stack[l->depth - 1 - i].sum[b->store] + b->begin, grad, b->end - b->begin);
    bool ok = true;
    for (size_t i = 0; ok && l->size > 1 && i < l->rounds; i++) ok = send_round(l, b, i, e);
    return ok;
}

static bool finish_buckets(ses_lanes *l, int64_t passed_node, ses_err *e)
{
    for (; l->next < l->n_buckets && l->bucket[l->next].first_use >= passed_node; l->next++)
        if (!finish_bucket(l, &l->bucket[l->next], e)) return false;
    return true;
}

bool ses_lanes_add(ses_lanes *l, int64_t lane, ses_err *e)
{
    if (lane + 1 < l->own.end) return keep(l, lane), true;
    if (l->err.code) return ses_fail(e, l->err.code, "%s", l->err.msg);
    l->merges = merges_of(l, lane);
    return finish_buckets(l, -1, e);
}

/* ---- a watched backward pass ---- */

const ses_tape_watch *ses_lanes_watch(ses_lanes *l, int64_t lane)
{
    if (l->o.no_overlap || l->size == 1 || lane + 1 != l->own.end) return NULL;
    l->merges = merges_of(l, lane);
    for (size_t i = 0; i < l->n_buckets; i++) l->bucket[i].first_use = INT64_MAX;
    return &l->watch;
}

static void used(void *ctx, const ses_tensor *x, int64_t number)
{
    ses_lanes *l = ctx;
    for (size_t i = 0; i < l->n_buckets; i++) {
        bucket *b = &l->bucket[i];
        const ses_real *grad = l->flat[b->store].grad;
        if (x->grad < grad + b->end && x->grad + ses_count(x) > grad + b->begin && number < b->first_use)
            b->first_use = number;
    }
}

/* In the first update the buckets are only timed. */
static void passed(void *ctx, int64_t number)
{
    ses_lanes *l = ctx;
    if (l->is_ordered && !l->err.code) finish_buckets(l, number, &l->err);
}

static int by_completion(const void *a, const void *b)
{
    const bucket *x = a, *y = b;
    if (x->first_use != y->first_use) return x->first_use > y->first_use ? -1 : 1;
    if (x->store != y->store) return x->store > y->store ? -1 : 1;
    return x->begin > y->begin ? -1 : x->begin < y->begin;
}

/* Rank 0's order becomes that of all ranks. */
static bool order_buckets(ses_lanes *l, ses_err *e)
{
    if (l->o.no_overlap || l->size == 1 || l->is_ordered) return true;
    l->is_ordered = true;
    if (l->rank == 0) qsort(l->bucket, l->n_buckets, sizeof *l->bucket, by_completion);
    return ses_comm_bcast(l->o.comm, l->bucket, l->n_buckets * sizeof *l->bucket, 0, e);
}

/* ---- the sum ---- */

/* The sum of a node for the elements that this rank owns. `to`: where a sum of other nodes is put; NULL: into
 * the first one's memory. */
static ses_real *sum_of(const ses_lanes *l, size_t store, ses_lane_node x, ses_real *to)
{
    const ses_shards *own = &l->shards[store];
    for (int r = 0; r < l->size; r++)
        for (size_t i = 0; i < l->from[r].n; i++)
            if (l->from[r].node[i].begin == x.begin && l->from[r].node[i].end == x.end)
                return r == l->rank ? own_sum(l, store, i) + ses_shards_begin(own)
                                    : l->received[store] + received_at(l, store, r, i);
    int64_t split = ses_lane_split(x);
    ses_real *a = sum_of(l, store, (ses_lane_node){ x.begin, split }, NULL),
             *b = sum_of(l, store, (ses_lane_node){ split, x.end }, NULL);
    if (!to) to = a;
    add(l, to, a, b, ses_shards_end(own) - ses_shards_begin(own));
    return to;
}

bool ses_lanes_end(ses_lanes *l, ses_err *e)
{
    ses_device *d = l->o.dev;
    if (l->own.begin == l->own.end && !finish_buckets(l, -1, e)) return false; /* has no lane to add */
    if (!ses_comm_flush(l->o.comm, e) || !order_buckets(l, e)) return false;
    for (size_t s = 0; s < l->o.n_stores; s++) {
        const ses_shards *own = &l->shards[s];
        int64_t n = ses_shards_end(own) - ses_shards_begin(own);
        int64_t others = n * (int64_t)count_others(l);
        if (l->o.bf16 && others > 0)
            d->k_f32.unpack_bf16(&d->exec, l->received[s], l->received_bf16[s], others);
        ses_real *grad = l->flat[s].grad + ses_shards_begin(own),
                 *sum = sum_of(l, s, (ses_lane_node){ 0, l->used }, grad);
        if (sum != grad && n > 0) d->mem->move(d, grad, sum, (size_t)n * sizeof *grad);
    }
    return true;
}

bool ses_lanes_grad_norm(ses_lanes *l, double *norm, ses_err *e)
{
    double all = 0;
    for (size_t s = 0; s < l->o.n_stores; s++) {
        const ses_shards *x = &l->shards[s];
        int64_t from = ses_shards_first_cell(x, l->rank), to = ses_shards_first_cell(x, l->rank + 1);
        double sum = 0;
        ses_shards_squares(x, l->o.dev, l->flat[s].grad, l->square_on_device[s]);
        if (to > from)
            l->o.dev->mem->download(l->o.dev, l->square[s] + from, l->square_on_device[s] + from,
                                    (size_t)(to - from) * sizeof(double));
        for (int r = 0; r <= l->size; r++)
            l->offset[r] = (size_t)ses_shards_first_cell(x, r) * sizeof(double);
        if (!ses_comm_allgather(l->o.comm, NULL, l->square[s], l->offset, e)) return false;
        for (int64_t i = 0; i < x->n_cells; i++) sum += l->square[s][i];
        all += sqrt(sum) * sqrt(sum); /* as the sum over stores without lanes */
    }
    *norm = sqrt(all);
    return true;
}

/* ---- values ---- */

bool ses_lanes_sends_f32(const ses_param *p) { return !p->dense && !p->embedding; }

/* The elements of a store in from .. to - 1 that are sent in f32, too, packed: copied to `packed` (out) or
 * back; packed NULL: only counted. */
static int64_t pack_f32(const ses_lanes *l, size_t store, int64_t from, int64_t to, ses_real *packed,
                        bool out)
{
    ses_device *d = l->o.dev;
    int64_t n = 0;
    for (size_t i = 0; i < ses_store_count(l->store[store]); i++) {
        const ses_param *p = ses_store_at(l->store[store], i);
        int64_t at = ses_store_flat_offset(l->store[store], i), end = at + ses_count(p->tensor);
        if (at < 0 || !ses_lanes_sends_f32(p)) continue;
        if (at < from) at = from;
        if (end > to) end = to;
        if (end <= at) continue;
        ses_real *value = l->flat[store].value + at;
        if (packed)
            d->mem->move(d, out ? packed + n : value, out ? value : packed + n,
                         (size_t)(end - at) * sizeof *value);
        n += end - at;
    }
    return n;
}

static bool gather_f32(ses_lanes *l, size_t store, ses_err *e)
{
    ses_device *d = l->o.dev;
    const int64_t *border = l->shards[store].border;
    int64_t n = pack_f32(l, store, 0, l->flat[store].n, NULL, true), at = 0, own = 0;
    if (!n) return true;
    if (!l->read_f32[store] && !(l->read_f32[store] = d->mem->alloc(d, (size_t)n * sizeof(ses_real), e)))
        return false;
    for (int r = 0; r < l->size; r++) {
        l->offset[r] = (size_t)at * sizeof(ses_real);
        if (r == l->rank) own = at;
        at += pack_f32(l, store, border[r], border[r + 1], NULL, true);
    }
    l->offset[l->size] = (size_t)at * sizeof(ses_real);
    pack_f32(l, store, border[l->rank], border[l->rank + 1], l->read_f32[store] + own, true);
    if (!ses_comm_allgather(l->o.comm, d, l->read_f32[store], l->offset, e)) return false;
    pack_f32(l, store, 0, l->flat[store].n, l->read_f32[store], false);
    return true;
}

bool ses_lanes_gather_values(ses_lanes *l, size_t store, bool copies, ses_err *e)
{
    const ses_flat *f = &l->flat[store];
    if (l->size == 1) return true;
    size_t elem = copies ? sizeof(uint16_t) : sizeof(ses_real);
    for (int r = 0; r <= l->size; r++) l->offset[r] = (size_t)l->shards[store].border[r] * elem;
    return ses_comm_allgather(l->o.comm, l->o.dev, copies ? (void *)f->copy : f->value, l->offset, e) &&
           (!copies || gather_f32(l, store, e));
}
