/* The KV cache: slots, cross-attention sources, and copies between slots. */
#include "cache_impl.h"

#include "base/alloc.h"
#include "tensor/device_impl.h"

#include <string.h>

enum { MAX_TRACKED_SLOTS = 1024 }; /* with more slots, shared prefixes are not tracked */

static void *at(const ses_kv_buffer *s, int64_t layer, int part, int64_t head, int64_t row)
{
    return s->data +
           (size_t)((((2 * layer + part) * s->heads + head) * s->rows + row) * s->dim) * s->elem_size;
}

static bool buffer_new(ses_device *dev, ses_kv_buffer *s, ses_err *e)
{
    int64_t n;
    size_t bytes;
    if (s->rows > INT32_MAX || !ses_mul_i64(2 * s->layers, s->rows, &n) ||
        !ses_mul_i64(n, s->heads * s->dim, &n) ||
        !ses_mul_size((size_t)n, ses_dtype_size(dev->activation_dtype), &bytes))
        return ses_fail(e, SES_ENOMEM, "a KV cache of %lld tokens is too large", (long long)s->rows);
    s->elem_size = ses_dtype_size(dev->activation_dtype);
    s->data = dev->mem->alloc(dev, bytes ? bytes : 1, e);
    return s->data != NULL;
}

static void buffer_free(ses_device *dev, ses_kv_buffer *s)
{
    if (s->data) dev->mem->free(dev, s->data);
    s->data = NULL;
}

/* Bytes of `rows` rows of one head. */
static size_t row_bytes(const ses_kv_buffer *s, int64_t rows)
{
    return (size_t)(rows * s->dim) * s->elem_size;
}

/* Copies rows from .. from + n - 1 of one buffer to row `to` of another (or the same) in every layer. */
static void move_rows(ses_device *dev, const ses_kv_buffer *a, int64_t to, const ses_kv_buffer *b,
                      int64_t from, int64_t n)
{
    for (int64_t l = 0; n > 0 && l < a->layers; l++)
        for (int part = 0; part < 2; part++)
            for (int64_t h = 0; h < a->heads; h++)
                dev->mem->move(dev, at(a, l, part, h, to), at(b, l, part, h, from), row_bytes(a, n));
}

void ses_cache_free(ses_cache *c)
{
    if (!c) return;
    buffer_free(c->dev, &c->self);
    buffer_free(c->dev, &c->cross);
    if (c->staging) c->dev->mem->free(c->dev, c->staging);
    ses_free(c->len);
    ses_free(c->first);
    ses_free(c->room);
    ses_free(c->shared_prefix[0]);
    ses_free(c->shared_prefix[1]);
    ses_free(c->source_of);
    ses_free(c->source);
    ses_free(c);
}

int64_t ses_cache_slots(const ses_cache *c) { return c->slots; }
int64_t ses_cache_capacity(const ses_cache *c) { return c->capacity ? c->capacity - c->virtual_rows : 0; }
int64_t ses_cache_len(const ses_cache *c, int64_t slot)
{
    return c->len[slot] ? c->len[slot] - c->virtual_rows : 0;
}

size_t ses_cache_bytes(const ses_cache *c)
{
    return 2 * (size_t)(c->self.layers * c->self.heads) *
           (row_bytes(&c->self, c->self.rows) + row_bytes(&c->cross, c->cross.rows));
}

/* ---- growing ---- */

/* Enlarges the per-slot bookkeeping. */
static bool grow_slots(ses_cache *c, int64_t slots, ses_err *e)
{
    bool tracked = slots <= MAX_TRACKED_SLOTS;
    size_t n = (size_t)slots;
    int64_t *len = ses_alloc_array(n, sizeof *len, e), *first = ses_alloc_array(n, sizeof *first, e),
            *room = ses_alloc_array(n, sizeof *room, e);
    int32_t *source_of = ses_alloc_array(n, sizeof *source_of, e);
    ses_cache_source *source = ses_alloc_array(n, sizeof *source, e);
    int32_t *common[2] = { NULL, NULL };
    for (int i = 0; tracked && i < 2; i++) common[i] = ses_alloc_array(n * n, sizeof **common, e);
    if (!len || !first || !room || !source_of || !source || (tracked && (!common[0] || !common[1]))) {
        ses_free(len), ses_free(first), ses_free(room), ses_free(source_of), ses_free(source),
            ses_free(common[0]), ses_free(common[1]);
        return false;
    }
    for (int64_t s = 0; s < slots; s++) {
        bool old = s < c->slots;
        if (old) len[s] = c->len[s], first[s] = c->first[s], room[s] = c->room[s];
        source_of[s] = old ? c->source_of[s] : -1;
        if (old) source[s] = c->source[s];
        if (old && tracked && c->shared_prefix[0])
            memcpy(common[0] + s * slots, c->shared_prefix[0] + s * c->slots,
                   (size_t)c->slots * sizeof **common);
    }
    ses_free(c->len), ses_free(c->first), ses_free(c->room), ses_free(c->source_of), ses_free(c->source),
        ses_free(c->shared_prefix[0]), ses_free(c->shared_prefix[1]);
    c->len = len, c->first = first, c->room = room, c->source_of = source_of, c->source = source;
    c->shared_prefix[0] = common[0], c->shared_prefix[1] = common[1];
    return true;
}

bool ses_cache_grow(ses_cache *c, int64_t slots, int64_t length, ses_err *e)
{
    if (slots < c->slots) slots = c->slots;
    if (length > 0) length += c->virtual_rows;
    if (length < c->capacity) length = c->capacity;
    if (slots == c->slots && length == c->capacity) return true;
    ses_kv_buffer bigger = c->self;
    if (slots < 1 || length < 1 || !ses_mul_i64(slots, length, &bigger.rows))
        return ses_fail(e, SES_EARG,
                        "a KV cache needs at least 1 slot and 1 token, not %lld slots of %lld tokens",
                        (long long)slots, (long long)length);
    bigger.data = NULL;
    if (!buffer_new(c->dev, &bigger, e)) return false;
    if (slots != c->slots && !grow_slots(c, slots, e)) {
        buffer_free(c->dev, &bigger);
        return false;
    }
    for (int64_t s = 0; s < c->slots; s++)
        move_rows(c->dev, &bigger, s * length, &c->self, c->first[s], c->len[s]);
    buffer_free(c->dev, &c->self);
    c->self = bigger, c->slots = slots, c->capacity = length;
    for (int64_t s = 0; s < slots; s++) c->first[s] = s * length, c->room[s] = length;
    return true;
}

bool ses_cache_grow_rows(ses_cache *c, int64_t rows, ses_err *e)
{
    ses_kv_buffer bigger = c->self;
    if (rows <= c->self.rows) return true;
    bigger.rows = rows, bigger.data = NULL;
    if (!buffer_new(c->dev, &bigger, e)) return false;
    for (int64_t s = 0; s < c->slots; s++)
        move_rows(c->dev, &bigger, c->first[s], &c->self, c->first[s], c->len[s]);
    buffer_free(c->dev, &c->self);
    c->self = bigger;
    return true;
}

/* First row after a room that overlaps [row, row + length); -1: none overlaps. */
static int64_t end_of_room(const ses_cache *c, int64_t row, int64_t length)
{
    for (int64_t s = 0; s < c->slots; s++)
        if (c->room[s] && row < c->first[s] + c->room[s] && c->first[s] < row + length)
            return c->first[s] + c->room[s];
    return -1;
}

bool ses_cache_reserve(ses_cache *c, int64_t slot, int64_t length)
{
    int64_t row = 0, next;
    if (length > 0) length += c->virtual_rows;
    c->room[slot] = 0;
    while (length > 0 && (next = end_of_room(c, row, length)) >= 0) row = next;
    if (row + length > c->self.rows) return false;
    c->first[slot] = row, c->room[slot] = length;
    return true;
}

ses_cache *ses_cache_create(ses_device *dev, const ses_stack *k, int64_t width, int64_t slots, int64_t length,
                            ses_err *e)
{
    ses_cache *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    c->dev = dev;
    c->self = c->cross = (ses_kv_buffer){ .layers = k->depth, .heads = k->heads, .dim = width / k->heads };
    if (!k->cross || k->cross_unused) c->cross.layers = 0;
    c->virtual_rows = k->virt.tokens;
    c->prefix = k->virt.keys ? k->virt.tokens : 0;
    if (length < 0 ? grow_slots(c, slots, e) : ses_cache_grow(c, slots, length, e)) {
        c->slots = slots;
        return c;
    }
    ses_cache_free(c);
    return NULL;
}

/* ---- slots ---- */

static void release_source(ses_cache *c, int64_t slot)
{
    if (c->source_of[slot] >= 0) c->source[c->source_of[slot]].refcount--;
    c->source_of[slot] = -1;
}

void ses_cache_trim(ses_cache *c, int64_t slot, int64_t len)
{
    len = len > 0 ? len + c->virtual_rows : 0;
    if (len < c->len[slot]) c->len[slot] = len;
    if (!len) release_source(c, slot);
    for (int64_t x = 0; c->shared_prefix[0] && x < c->slots; x++) {
        int32_t *ab = &c->shared_prefix[0][slot * c->slots + x],
                *ba = &c->shared_prefix[0][x * c->slots + slot];
        if (*ab > len) *ab = *ba = (int32_t)len;
    }
}

/* Number of leading rows in which slots a and b are known to be equal. */
static int64_t equal_rows(const ses_cache *c, int64_t a, int64_t b)
{
    return a == b ? c->len[a] : c->shared_prefix[0] ? c->shared_prefix[0][a * c->slots + b] : 0;
}

static bool reserve_staging(ses_cache *c, int64_t rows, ses_err *e)
{
    if (rows <= c->staging_rows) return true;
    if (c->staging) c->dev->mem->free(c->dev, c->staging);
    c->staging_rows = 0;
    c->staging = c->dev->mem->alloc(c->dev, row_bytes(&c->self, rows), e);
    if (c->staging) c->staging_rows = rows;
    return c->staging != NULL;
}

static void copy_via_staging(ses_cache *c, int64_t n, const int32_t *to, const int32_t *from, int64_t layer,
                             int part, int64_t head)
{
    const ses_device_memory *mem = c->dev->mem;
    for (int out = 0; out < 2; out++) {
        char *staging = c->staging;
        for (int64_t i = 0; i < n; i++) {
            int64_t skip = equal_rows(c, to[i], from[i]), rows = c->len[from[i]] - skip;
            if (rows <= 0) continue;
            void *slot = at(&c->self, layer, part, head, c->first[out ? to[i] : from[i]] + skip);
            mem->move(c->dev, out ? slot : staging, out ? staging : slot, row_bytes(&c->self, rows));
            staging += row_bytes(&c->self, rows);
        }
    }
}

/* Updates shared prefixes and reference counts after the content of slot source_slot[s] moved to s. */
static void move_bookkeeping(ses_cache *c, const int32_t *source_slot)
{
    int64_t n = c->slots;
    for (int64_t a = 0; c->shared_prefix[0] && a < n; a++)
        for (int64_t b = 0; b < n; b++)
            c->shared_prefix[1][a * n + b] = (int32_t)equal_rows(c, source_slot[a], source_slot[b]);
    int32_t *now = c->shared_prefix[1];
    c->shared_prefix[1] = c->shared_prefix[0], c->shared_prefix[0] = now;
    /* increment all before decrementing any, so that a source in use never becomes free */
    for (int64_t s = 0; s < n; s++)
        if (c->source_of[source_slot[s]] >= 0) c->source[c->source_of[source_slot[s]]].refcount++;
    for (int64_t s = 0; s < n; s++)
        if (c->source_of[s] >= 0) c->source[c->source_of[s]].refcount--;
}

bool ses_cache_reorder(ses_cache *c, int64_t n, const int32_t *to, const int32_t *from, ses_err *e)
{
    int64_t rows = 0;
    int32_t *source_slot = ses_alloc_array(2 * (size_t)c->slots, sizeof *source_slot, e),
            *source = source_slot ? source_slot + c->slots : NULL;
    int64_t *len = source_slot ? ses_alloc_array((size_t)c->slots, sizeof *len, e) : NULL;
    bool ok = len != NULL;
    for (int32_t s = 0; ok && s < c->slots; s++) source_slot[s] = s;
    for (int64_t i = 0; ok && i < n; i++) {
        if (to[i] < 0 || to[i] >= c->slots || from[i] < 0 || from[i] >= c->slots ||
            source_slot[to[i]] != to[i])
            ok = ses_fail(e, SES_EARG,
                          "cannot copy slot %d from slot %d: the cache has %lld slots, and each may be a "
                          "destination once",
                          (int)to[i], (int)from[i], (long long)c->slots);
        if (!ok) break;
        source_slot[to[i]] = from[i];
        rows += c->len[from[i]] - equal_rows(c, to[i], from[i]);
    }
    if (ok && reserve_staging(c, rows, e)) {
        for (int64_t l = 0; rows && l < c->self.layers; l++)
            for (int64_t i = 0; i < 2 * c->self.heads; i++) copy_via_staging(c, n, to, from, l, i % 2, i / 2);
        move_bookkeeping(c, source_slot);
        for (int64_t s = 0; s < c->slots; s++)
            len[s] = c->len[source_slot[s]], source[s] = c->source_of[source_slot[s]];
        memcpy(c->len, len, (size_t)c->slots * sizeof *len);
        memcpy(c->source_of, source, (size_t)c->slots * sizeof *source);
    } else {
        ok = false;
    }
    ses_free(source_slot);
    ses_free(len);
    return ok;
}

/* ---- sources ---- */

/* First row after a source in use that overlaps [row, row + len); -1: none overlaps. */
static int64_t end_of_overlap(const ses_cache *c, int64_t row, int64_t len)
{
    for (int64_t i = 0; i < c->slots; i++) {
        const ses_cache_source *s = &c->source[i];
        if (s->refcount && row < s->row + s->len && s->row < row + len) return s->row + s->len;
    }
    return -1;
}

static bool grow_cross(ses_cache *c, int64_t rows, ses_err *e)
{
    ses_kv_buffer bigger = c->cross;
    if (rows <= c->cross.rows) return true;
    bigger.rows = rows > 2 * c->cross.rows ? rows : 2 * c->cross.rows;
    bigger.data = NULL;
    if (!buffer_new(c->dev, &bigger, e)) return false;
    if (c->cross.data) move_rows(c->dev, &bigger, 0, &c->cross, 0, c->cross.rows);
    buffer_free(c->dev, &c->cross);
    c->cross = bigger;
    return true;
}

/* Gives an empty slot a source of `len` tokens. */
static bool acquire_source(ses_cache *c, int64_t slot, int64_t len, ses_err *e)
{
    int64_t row = 0, next, i = 0;
    while ((next = end_of_overlap(c, row, len)) >= 0) row = next;
    if (!grow_cross(c, row + len, e)) return false;
    release_source(c, slot);
    /* terminates: there are as many sources as slots, and this slot has none */
    while (c->source[i].refcount) i++;
    c->source[i] = (ses_cache_source){ row, len, 1 };
    c->source_of[slot] = (int32_t)i;
    return true;
}

/* ---- forward pass ---- */

/* Rows of the sources of the batch's sequences; allocates the new ones. */
static void begin_sources(ses_forward_ctx *p, ses_cache *c)
{
    const ses_batch *b = p->batch;
    ses_seqs *q = &p->source;
    ses_err e = { 0 };
    int32_t *begin = ses_tape_host_alloc(p->tape, (size_t)b->seqs + 1, sizeof *begin),
            *len = ses_tape_host_alloc(p->tape, (size_t)b->seqs, sizeof *len);
    int32_t *row = b->ids ? ses_tape_host_alloc(p->tape, (size_t)b->tokens, sizeof *row) : NULL;
    if (!begin || !len || (b->ids && !row)) return;
    for (int64_t s = 0; b->ids && s < b->seqs; s++)
        if (!acquire_source(c, b->slots[s], b->cu_seqlens[s + 1] - b->cu_seqlens[s], &e)) {
            ses_tape_fail(p->tape, e.code, "%s", e.msg);
            return;
        }
    for (int64_t s = 0; s < b->seqs; s++) {
        const ses_cache_source *x = &c->source[c->source_of[b->slots[s]]];
        begin[s] = (int32_t)x->row, len[s] = (int32_t)x->len;
        if (x->len > q->max_seqlen) q->max_seqlen = x->len;
        for (int32_t t = 0; row && t < len[s]; t++) row[b->cu_seqlens[s] + t] = begin[s] + t;
    }
    q->cu_seqlens = ses_tape_ints(p->tape, begin, b->seqs + 1);
    q->key_lens = ses_tape_ints(p->tape, len, b->seqs);
    if (row) q->key_rows = ses_tape_ints(p->tape, row, b->tokens);
}

/* Offsets of the decoder's new tokens. */
static const int32_t *offsets(const ses_batch *b)
{
    return b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
}

/* Rows of a slot before its next token. */
static int64_t rows_before(const ses_cache *c, int64_t slot)
{
    return c->len[slot] ? c->len[slot] : c->prefix;
}

/* Rows of virtual tokens in the batch's empty slots. */
static void begin_prefixes(ses_forward_ctx *p, const ses_cache *c)
{
    const ses_batch *b = p->batch;
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)(b->seqs * c->prefix), sizeof *row);
    int64_t n = 0;
    for (int64_t s = 0; row && s < b->seqs; s++)
        for (int64_t i = 0; !c->len[b->slots[s]] && i < c->prefix; i++)
            row[n++] = (int32_t)(c->first[b->slots[s]] + i);
    p->past.n_prefixes = n / c->prefix;
    if (n) p->past.prefix_rows = ses_tape_ints(p->tape, row, n);
}

void ses_cache_begin(ses_forward_ctx *p)
{
    const ses_batch *b = p->batch;
    const int32_t *cu = offsets(b);
    ses_cache *c = b->cache;
    if (c->cross.layers) begin_sources(p, c);
    int32_t *begin = ses_tape_host_alloc(p->tape, (size_t)b->seqs + 1, sizeof *begin),
            *len = ses_tape_host_alloc(p->tape, (size_t)b->seqs, sizeof *len),
            *row = ses_tape_host_alloc(p->tape, (size_t)cu[b->seqs], sizeof *row);
    ses_seqs *keys = &p->past;
    if (!begin || !len || !row) return;
    for (int64_t s = 0; s < b->seqs; s++) {
        int32_t cached = (int32_t)rows_before(c, b->slots[s]), added = cu[s + 1] - cu[s];
        begin[s] = (int32_t)c->first[b->slots[s]], len[s] = cached + added;
        if (len[s] > keys->max_seqlen) keys->max_seqlen = len[s];
        for (int32_t t = 0; t < added; t++) row[cu[s] + t] = begin[s] + cached + t;
    }
    keys->cu_seqlens = ses_tape_ints(p->tape, begin, b->seqs + 1);
    keys->key_lens = ses_tape_ints(p->tape, len, b->seqs);
    keys->key_rows = ses_tape_ints(p->tape, row, cu[b->seqs]);
    if (c->prefix) begin_prefixes(p, c);
}

int64_t ses_cache_position(const ses_forward_ctx *p, int64_t s, int64_t shift)
{
    int64_t len = p->batch->cache->len[p->batch->slots[s]];
    return len ? len : shift;
}

void ses_cache_end(ses_forward_ctx *p, bool ok)
{
    const ses_batch *b = p->batch;
    const int32_t *cu = offsets(b);
    for (int64_t s = 0; s < b->seqs; s++) {
        if (ok) b->cache->len[b->slots[s]] = rows_before(b->cache, b->slots[s]) + cu[s + 1] - cu[s];
        if (!ok && !b->cache->len[b->slots[s]]) release_source(b->cache, b->slots[s]);
    }
}

typedef struct rows_from { /* heads of a row: first column, row stride, head stride, number */
    const ses_tensor *x;
    int64_t column, row, head, heads;
} rows_from;

static void store_heads(ses_forward_ctx *p, const ses_kv_buffer *s, const ses_seqs *keys, int i, int part,
                        rows_from a)
{
    ses_device *dev = ses_tape_device(p->tape);
    if (!keys->key_rows) return;
    const void *first = (const char *)a.x->data + (size_t)a.column * s->elem_size;
    dev->k.scatter_heads(&dev->exec, at(s, i, part, 0, 0), s->rows * s->dim, keys->key_rows->i, first, a.row,
                         a.head, ses_count(keys->key_rows), a.heads, s->dim);
}

/* Stores the keys and values of virtual tokens in the slots that were empty. */
static void store_prefixes(ses_forward_ctx *p, const ses_kv_buffer *s, const ses_virtual *v,
                           ses_tensor *prefix, int i, int64_t heads)
{
    ses_device *dev = ses_tape_device(p->tape);
    const ses_seqs *keys = &p->past;
    for (int part = 0; keys->n_prefixes && part < 2; part++) {
        const ses_tensor *x = ses_virtual_part(v, p->tape, prefix, i, part);
        for (int64_t k = 0; x && k < keys->n_prefixes; k++)
            dev->k.scatter_heads(&dev->exec, at(s, i, part, 0, 0), s->rows * s->dim,
                                 keys->prefix_rows->i + k * v->tokens, x->data, heads * s->dim, s->dim,
                                 v->tokens, heads, s->dim);
    }
}

static ses_tensor *layer_view(ses_forward_ctx *p, const ses_kv_buffer *s, int i, int part, int64_t heads)
{
    ses_err e = { 0 };
    ses_tensor *x = ses_tensor_wrap(p->tape, at(s, i, part, 0, 0), ses_tape_device(p->tape)->activation_dtype,
                                    SES_DIM(s->rows, heads * s->dim), &e);
    if (!x) ses_tape_fail(p->tape, e.code, "%s", e.msg);
    return x;
}

void ses_cache_extend(ses_forward_ctx *p, const ses_virtual *v, ses_tensor *prefix, int i, int64_t heads,
                      ses_attention_inputs *in)
{
    const ses_kv_buffer *s = &p->batch->cache->self;
    int64_t D = s->dim, C = heads * D;
    if (!in->q || (!in->k) != (!in->v)) return; /* the tape has failed */
    if (prefix) store_prefixes(p, s, v, prefix, i, heads);
    if (in->k) {
        store_heads(p, s, &p->past, i, 0, (rows_from){ in->k, 0, C, D, heads });
        store_heads(p, s, &p->past, i, 1, (rows_from){ in->v, 0, C, D, heads });
    } else {
        bool side = p->c->attention.qkv_layout == SES_QKV_FUSED;
        int64_t part = side ? C : D, head = side ? D : 3 * D;
        store_heads(p, s, &p->past, i, 0, (rows_from){ in->q, part, 3 * C, head, heads });
        store_heads(p, s, &p->past, i, 1, (rows_from){ in->q, 2 * part, 3 * C, head, heads });
    }
    in->k = layer_view(p, s, i, 0, heads), in->v = layer_view(p, s, i, 1, heads), in->head_major = true;
}

void ses_cache_cross(ses_forward_ctx *p, int i, int64_t heads, ses_attention_inputs *in)
{
    const ses_kv_buffer *s = &p->batch->cache->cross;
    int64_t D = s->dim, C = heads * D;
    if (in->k && in->v) {
        store_heads(p, s, &p->source, i, 0, (rows_from){ in->k, 0, C, D, heads });
        store_heads(p, s, &p->source, i, 1, (rows_from){ in->v, 0, C, D, heads });
    } else if (in->k) { /* keys | values */
        store_heads(p, s, &p->source, i, 0, (rows_from){ in->k, 0, 2 * C, D, heads });
        store_heads(p, s, &p->source, i, 1, (rows_from){ in->k, C, 2 * C, D, heads });
    }
    in->k = layer_view(p, s, i, 0, heads), in->v = layer_view(p, s, i, 1, heads), in->head_major = true;
}
