/* The tape: memory of one step, ops that run as they are recorded, backward pass, recomputation. */
#include "tape_impl.h"

#include "base/alloc.h"
#include "sesame/hooks.h"
#include "tensor/device_impl.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* An unused gradient buffer; the next tensor of its size reuses it. */
typedef struct ses_free_buffer {
    struct ses_free_buffer *next;
    ses_real *buffer;
    size_t bytes;
} free_buffer;

enum { DEVICE_BLOCK = 16 << 20 }; /* smallest GPU allocation: allocating is slow */

ses_tape *ses_tape_new(ses_device *dev, const ses_tape_options *options, ses_err *e)
{
    ses_tape *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    t->dev = dev;
    t->acts = &t->mem;
    t->mem.allocator = t->recompute_mem.allocator = t->tmp.allocator = ses_device_allocator(dev);
    if (!dev->is_host) t->mem.min_block = t->recompute_mem.min_block = t->tmp.min_block = DEVICE_BLOCK;
    if (options) t->opt = *options;
    t->mem.limit = t->recompute_mem.limit = t->tmp.limit = t->opt.max_bytes;
    return t;
}

void ses_tape_free(ses_tape *t)
{
    if (!t) return;
    ses_graph_cache_free(t);
    ses_arena_free(&t->mem);
    ses_arena_free(&t->recompute_mem);
    ses_arena_free(&t->tmp);
    ses_arena_free(&t->host);
    ses_free(t);
}

void ses_tape_reset(ses_tape *t, const ses_tape_options *options)
{
    if (options) t->opt = *options;
    ses_arena_reset(&t->mem);
    ses_arena_reset(&t->host);
    t->mem.limit = t->recompute_mem.limit = t->tmp.limit = t->opt.max_bytes;
    t->last = NULL;
    t->free_buffers = NULL;
    t->site = 0;
    t->nodes = 0;
    t->flops = 0;
    t->watch = NULL;
    t->in_backward = false;
    ses_tape_cache_i8(t, NULL, NULL);
    ses_err_clear(&t->err);
}

bool ses_tape_ok(const ses_tape *t, ses_err *e)
{
    if (t->err.code != SES_OK) return ses_fail(e, t->err.code, "%s", t->err.msg);
    return !t->dev->mem->ok || t->dev->mem->ok(t->dev, e);
}

size_t ses_tape_bytes(const ses_tape *t) { return t->mem.total + t->recompute_mem.total + t->tmp.total; }
bool ses_tape_recording(const ses_tape *t) { return t->opt.record; }
bool ses_tape_recomputing(const ses_tape *t) { return t->opt.record && t->opt.recompute; }
void ses_tape_add_flops(ses_tape *t, double flops) { t->flops += flops; }
double ses_tape_flops(const ses_tape *t) { return t->flops; }
bool ses_tape_training(const ses_tape *t) { return t->opt.train; }
ses_device *ses_tape_device(const ses_tape *t) { return t->dev; }

void ses_tape_wrap_error(ses_tape *t, const char *fmt, ...)
{
    char where[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    ses_wrap(&t->err, "%s", where);
}

void ses_tape_fail(ses_tape *t, ses_code code, const char *fmt, ...)
{
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    ses_fail(&t->err, code, "%s", what);
}

ses_rng_key ses_tape_rng_key(ses_tape *t)
{
    return (ses_rng_key){ .seed = t->opt.seed, .step = t->opt.step, .site = t->site++ };
}

void *ses_tape_host_alloc(ses_tape *t, size_t n, size_t size)
{
    return t->err.code ? NULL : ses_arena_array(&t->host, n, size, &t->err);
}

static bool count_of(const int64_t dim[SES_MAX_DIM], int64_t *count, ses_err *e)
{
    *count = 1;
    for (int i = 0; i < SES_MAX_DIM && dim[i]; i++)
        if (dim[i] < 0 || !ses_mul_i64(*count, dim[i], count))
            return ses_fail(e, SES_EARG, "tensor too large (axis %d is %lld)", i, (long long)dim[i]);
    return true;
}

static void *device_bytes(ses_arena *a, int64_t count, size_t size, ses_err *e)
{
    size_t bytes;
    if (count < 0 || !ses_mul_size((size_t)count, size, &bytes)) {
        ses_fail(e, SES_ENOMEM, "out of memory (%lld elements requested)", (long long)count);
        return NULL;
    }
    return ses_arena_alloc(a, bytes, e);
}

ses_tensor *ses_tensor_wrap(ses_tape *t, void *data, ses_dtype dtype, const int64_t dim[SES_MAX_DIM],
                            ses_err *e)
{
    ses_tensor *x = ses_arena_array(&t->host, 1, sizeof *x, e);
    if (!x) return NULL;
    x->data = data;
    x->dtype = dtype;
    memcpy(x->dim, dim, sizeof x->dim);
    return x;
}

static ses_tensor *tensor_new(ses_tape *t, ses_dtype dtype, const int64_t dim[SES_MAX_DIM], ses_err *e)
{
    int64_t count;
    if (!count_of(dim, &count, e)) return NULL;
    void *data = device_bytes(t->acts, count, ses_dtype_size(dtype), e);
    return data ? ses_tensor_wrap(t, data, dtype, dim, e) : NULL;
}

ses_tensor *ses_tape_tensor(ses_tape *t, const int64_t dim[SES_MAX_DIM])
{
    return t->err.code ? NULL : tensor_new(t, t->dev->activation_dtype, dim, &t->err);
}

static ses_tensor *from_host(ses_tape *t, ses_dtype dtype, const void *host, const int64_t dim[SES_MAX_DIM])
{
    ses_tensor *x = t->err.code ? NULL : tensor_new(t, dtype, dim, &t->err);
    if (x) t->dev->mem->upload(t->dev, x->data, host, (size_t)ses_count(x) * ses_dtype_size(dtype));
    return x;
}

ses_tensor *ses_tape_input(ses_tape *t, const ses_real *host, const int64_t dim[SES_MAX_DIM])
{
    ses_tensor *x = from_host(t, SES_REAL, host, dim);
    if (!x || t->dev->activation_dtype == SES_REAL) return x;
    ses_tensor *copy = tensor_new(t, t->dev->activation_dtype, dim, &t->err);
    if (!copy) return NULL;
    copy->master = x->f;
    t->dev->mem->to_bf16(t->dev, copy->data, copy->master, ses_count(x));
    return copy;
}

ses_tensor *ses_tape_ints(ses_tape *t, const int32_t *host, int64_t n)
{
    return from_host(t, SES_I32, host, SES_DIM(n));
}

bool ses_tape_read(ses_tape *t, const ses_tensor *x, ses_real *host)
{
    if (!x || t->err.code) return false;
    if (x->dtype == SES_I32)
        t->dev->mem->download(t->dev, host, x->data, (size_t)ses_count(x) * sizeof *x->i);
    else if (!ses_device_read(t->dev, x, 0, ses_count(x), host, &t->err))
        return false;
    return ses_tape_ok(t, &t->err);
}

bool ses_tape_read_grad(ses_tape *t, const ses_tensor *x, ses_real *host)
{
    if (!x || !x->requires_grad || t->err.code) return false;
    if (!x->grad || !x->has_grad) {
        memset(host, 0, (size_t)ses_count(x) * sizeof *host);
        return true;
    }
    ses_tensor grad = { .data = x->grad, .dtype = x->master ? SES_REAL : x->dtype };
    return ses_device_read(t->dev, &grad, 0, ses_count(x), host, &t->err) && ses_tape_ok(t, &t->err);
}

ses_tape_mark ses_tape_get_mark(const ses_tape *t)
{
    ses_mark m = ses_arena_mark(&t->mem), h = ses_arena_mark(&t->host);
    return (ses_tape_mark){ { m.block, h.block }, { m.used, h.used } };
}

/* ---- int8 rows, rewinding ---- */

/* Bytes per row: q and scale are one allocation. */
/* Rows in int8: the scales, then the rows from the next cache line on. */
static int64_t i8_scales(int64_t rows)
{
    enum { LINE = SES_ALIGN / sizeof(ses_real) };
    return (rows + LINE - 1) / LINE * LINE;
}
static int64_t i8_row_bytes(int64_t cols) { return 4 * ses_quad_count(cols) + (int64_t)sizeof(ses_real); }

static const ses_i8_rows *i8_rows_new(ses_tape *t, ses_arena *a, int64_t rows, int64_t cols)
{
    int64_t bytes;
    ses_i8_rows *r = ses_tape_host_alloc(t, 1, sizeof *r);
    if (!r) return NULL;
    if (!ses_mul_i64(i8_scales(rows), i8_row_bytes(cols), &bytes)) {
        ses_tape_fail(t, SES_ENOMEM, "out of memory (%lld rows requested)", (long long)rows);
        return NULL;
    }
    if (!(r->scale = device_bytes(a, bytes, 1, &t->err))) return NULL;
    r->q = (uint8_t *)(r->scale + i8_scales(rows));
    return r;
}

const ses_i8_rows *ses_tape_i8_rows(ses_tape *t, int64_t rows, int64_t cols)
{
    return i8_rows_new(t, t->acts, rows, cols);
}

const ses_i8_rows *ses_tape_cached_i8(const ses_tape *t, const ses_tensor *x)
{
    return x->i8_rows ? x->i8_rows : x == t->i8_source ? t->i8_rows : NULL;
}

void ses_tape_cache_i8(ses_tape *t, const ses_tensor *x, const ses_i8_rows *rounded)
{
    t->i8_source = x;
    t->i8_rows = rounded;
}

/* Rewinds without moving x: its memory and that of its int8 rows stay allocated until the next rewind. */
static ses_tensor *rewind_around(ses_tape *t, ses_mark mem, ses_mark host, const ses_tensor *x,
                                 ses_i8_rows rows)
{
    const char *begin = x->data, *end = begin + (size_t)ses_count(x) * ses_dtype_size(x->dtype);
    if (rows.q) end = (const char *)rows.scale + i8_scales(ses_rows(x)) * i8_row_bytes(ses_cols(x));
    if (end < begin || !ses_arena_rewind_except(&t->mem, mem, begin, (size_t)(end - begin))) return NULL;
    ses_arena_rewind(&t->host, host);
    ses_i8_rows *kept = rows.q ? ses_tape_host_alloc(t, 1, sizeof *kept) : NULL;
    ses_tensor *same = ses_tensor_wrap(t, x->data, x->dtype, x->dim, &t->err);
    if (kept) *kept = rows, ses_tape_cache_i8(t, same, kept);
    return same;
}

ses_tensor *ses_tape_rewind(ses_tape *t, ses_tape_mark m, ses_tensor *keep)
{
    if (t->opt.record || t->err.code || !keep) return keep;
    ses_mark mem = { m.block[0], m.used[0] }, host = { m.block[1], m.used[1] };
    ses_tensor old = *keep;   /* its header is about to be freed, */
    ses_i8_rows rows = { 0 }; /* and the header of its int8 rows, which follow it in memory */
    if (t->i8_source == keep) rows = *t->i8_rows;
    ses_tape_cache_i8(t, NULL, NULL);
    ses_tensor *x = rewind_around(t, mem, host, &old, rows);
    if (x || t->err.code) return x;
    ses_arena_rewind(&t->mem, mem);
    ses_arena_rewind(&t->host, host);
    x = tensor_new(t, old.dtype, old.dim, &t->err);
    if (x) t->dev->mem->move(t->dev, x->data, old.data, (size_t)ses_count(x) * ses_dtype_size(x->dtype));
    return x; /* its int8 rows are dropped: x may overlap their old memory */
}

/* ---- nodes ---- */

bool ses_node_needs_backward(const ses_node *n) { return n->tape->opt.record && n->op->backward; }

bool ses_node_out(ses_node *n, const int64_t dim[SES_MAX_DIM], ses_err *e)
{
    n->out = tensor_new(n->tape, n->dtype, dim, e);
    return n->out != NULL;
}

const ses_i8_rows *ses_scratch_i8_rows(const ses_node *n, int64_t rows, int64_t cols)
{
    return i8_rows_new(n->tape, &n->tape->tmp, rows, cols);
}

bool ses_node_out_i8(ses_node *n, const int64_t dim[SES_MAX_DIM], ses_err *e)
{
    n->out = ses_tensor_wrap(n->tape, NULL, n->dtype, dim, e);
    if (n->out) n->out->i8_rows = ses_tape_i8_rows(n->tape, ses_rows(n->out), ses_cols(n->out));
    return n->out && n->out->i8_rows;
}

bool ses_node_save(ses_node *n, int i, int64_t count, ses_err *e)
{
    n->saved[i] = device_bytes(n->tape->acts, count, sizeof(ses_real), e);
    return n->saved[i] != NULL;
}

bool ses_node_save_elems(ses_node *n, int i, int64_t count, ses_err *e)
{
    n->saved[i] = device_bytes(n->tape->acts, count, ses_dtype_size(n->dtype), e);
    return n->saved[i] != NULL;
}

bool ses_check_input(const ses_node *n, int i, const char *what, ses_err *e)
{
    const ses_tensor *x = n->in[i];
    if (x && x->dtype == n->dtype && (x->data || !x->i8_rows)) return true;
    return ses_fail(e, SES_EARG, "%s is missing or not a real tensor", what);
}

bool ses_check_ints(const ses_node *n, int i, const char *what, ses_err *e)
{
    if (n->in[i] && n->in[i]->dtype == SES_I32) return true;
    return ses_fail(e, SES_EARG, "%s is missing or not an integer tensor", what);
}

bool ses_check_range(const ses_node *n, int i, int64_t limit, bool ignore, const char *what, ses_err *e)
{
    const int32_t *x = n->in[i]->i;
    int64_t count = n->tape->dev->is_host ? ses_count(n->in[i]) : 0;
    for (int64_t j = 0; j < count; j++)
        if ((x[j] < 0 || x[j] >= limit) && !(ignore && x[j] == SES_IGNORE_INDEX))
            return ses_fail(e, SES_EARG, "%s %d at index %lld, expected 0 to %lld", what, (int)x[j],
                            (long long)j, (long long)limit - 1);
    return true;
}

const int32_t *ses_node_ints(const ses_node *n, int i)
{
    const ses_tensor *x = n->in[i];
    ses_device *d = n->tape->dev;
    if (!x || d->is_host) return x ? x->i : NULL;
    int32_t *copy = ses_tape_host_alloc(n->tape, (size_t)ses_count(x), sizeof *copy);
    if (copy) d->mem->download(d, copy, x->data, (size_t)ses_count(x) * sizeof *copy);
    return copy;
}

static ses_node *node_new(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr)
{
    ses_node *n = ses_arena_array(&t->host, 1, sizeof *n, &t->err);
    if (!n) return NULL;
    n->op = op;
    n->number = t->nodes++;
    n->tape = t;
    n->dtype = t->dev->activation_dtype;
    for (int i = n_in; i-- > 0;) /* dtype of the first real input; losses stay f32 */
        if (in[i] && in[i]->dtype != SES_I32) n->dtype = in[i]->dtype;
    n->k = n->dtype == SES_REAL ? &t->dev->k_f32 : &t->dev->k;
    n->exec = &t->dev->exec;
    n->n_in = n_in;
    memcpy(n->in, in, (size_t)n_in * sizeof *in);
    if (op->attr_size) {
        void *copy = ses_arena_array(&t->host, 1, op->attr_size, &t->err);
        if (!copy) return NULL;
        n->attr = memcpy(copy, attr, op->attr_size);
    }
    return n;
}

static bool check_f32_inputs(const ses_node *n, ses_err *e)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->op->f32_inputs >> i & 1 && n->in[i] && !n->in[i]->master && n->in[i]->dtype != SES_REAL)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "input %d must be a parameter on a device with bf16 activations", i);
    return true;
}

void ses_tape_set_watch(ses_tape *t, const ses_tape_watch *w) { t->watch = w; }

/* Reports the parameters that a recorded node uses: their gradients have memory before the backward pass. */
static void report_use(const ses_tape *t, const ses_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->requires_grad && n->in[i]->grad)
            t->watch->used(t->watch->ctx, n->in[i], n->number);
}

ses_node *ses_apply_node(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr)
{
    if (t->err.code) return NULL;
    ses_node *n = node_new(t, op, in, n_in, attr);
    if (!n || !op->infer(n, &t->err) || !check_f32_inputs(n, &t->err)) {
        if (t->err.code == SES_OK) ses_fail(&t->err, SES_EARG, "invalid input");
        ses_wrap(&t->err, "%s", op->name);
        return NULL;
    }
    op->forward(n);
    ses_arena_reset(&t->tmp);
    if (t->err.code) return NULL;
    if (t->watch && t->watch->computed) t->watch->computed(t->watch->ctx, n);
    bool needs_grad = false;
    for (int i = 0; i < n_in; i++) needs_grad |= in[i] && in[i]->requires_grad;
    if (needs_grad && ses_node_needs_backward(n)) {
        n->out->requires_grad = true;
        n->prev = t->last;
        t->last = n;
        if (t->watch && t->watch->used && !t->in_backward) report_use(t, n);
    }
    return n;
}

ses_tensor *ses_apply(ses_tape *t, const ses_op *op, ses_tensor *const *in, int n_in, const void *attr)
{
    ses_node *n = ses_apply_node(t, op, in, n_in, attr);
    return n ? n->out : NULL;
}

/* ---- backward ---- */

ses_real *ses_scratch(const ses_node *n, int64_t count)
{
    return device_bytes(&n->tape->tmp, count, sizeof(ses_real), &n->tape->err);
}

ses_real *ses_scratch_elems(const ses_node *n, int64_t count)
{
    return device_bytes(&n->tape->tmp, count, ses_dtype_size(n->dtype), &n->tape->err);
}

void *ses_elem_at(const ses_node *n, const void *array, int64_t i)
{
    return (void *)((uintptr_t)array + (uintptr_t)(i * (int64_t)ses_dtype_size(n->dtype)));
}

ses_dst ses_dst_at(const ses_node *n, ses_dst s, int64_t i)
{
    if (s.data) s.data = s.is_f32 ? s.data + i : ses_elem_at(n, s.data, i);
    return s;
}

const ses_real *ses_input_f32(const ses_node *n, int i)
{
    const ses_tensor *x = n->in[i];
    assert(n->op->f32_inputs >> i & 1);
    return x ? ses_master_data(x) : NULL;
}

/* Gradients of parameters and inputs are f32. */
static size_t grad_bytes(const ses_tensor *x)
{
    return (size_t)ses_count(x) * ses_dtype_size(x->master ? SES_REAL : x->dtype);
}

static bool grad_ready(ses_tape *t, ses_tensor *x)
{
    size_t bytes = grad_bytes(x);
    for (free_buffer **at = &t->free_buffers; !x->grad && *at; at = &(*at)->next)
        if ((*at)->bytes == bytes) {
            x->grad = (*at)->buffer;
            *at = (*at)->next;
            return true;
        }
    if (!x->grad) x->grad = ses_arena_alloc(&t->mem, bytes, &t->err);
    return x->grad != NULL;
}

/* The output of a node has passed its gradient on: recycles the buffer. */
static void grad_done(ses_tape *t, ses_tensor *x)
{
    x->has_grad = false;
    if (!x->grad) return; /* donated */
    free_buffer *s = ses_arena_array(&t->host, 1, sizeof *s, &t->err);
    if (!s) return;
    *s = (free_buffer){ t->free_buffers, x->grad, grad_bytes(x) };
    t->free_buffers = s;
    x->grad = NULL;
}

ses_dst ses_grad(const ses_node *n, int i)
{
    ses_tensor *x = n->in[i];
    if (!x || !x->requires_grad || !grad_ready(n->tape, x)) return (ses_dst){ .data = NULL };
    ses_dst s = { x->grad, x->has_grad, x->master != NULL };
    x->has_grad = true;
    return s;
}

bool ses_grad_donate(const ses_node *n, int i)
{
    ses_tensor *x = n->in[i], *y = n->out;
    if (!x || !x->requires_grad || x->grad || x->master || x->dtype != y->dtype || y->keep_grad ||
        grad_bytes(x) != grad_bytes(y))
        return false;
    x->grad = y->grad;
    x->has_grad = true;
    y->grad = NULL;
    return true;
}

ses_dst ses_grad_zeroed(const ses_node *n, int i)
{
    ses_dst s = ses_grad(n, i);
    ses_device *d = n->tape->dev;
    if (s.data && !s.accumulate) d->mem->zero(d, s.data, grad_bytes(n->in[i]));
    s.accumulate = true;
    return s;
}

ses_real *ses_grad_vector(const ses_node *n, int i)
{
    ses_dst s = ses_grad_zeroed(n, i);
    if (!s.data || s.is_f32 || n->dtype == SES_REAL) return s.data;
    ses_tape_fail(n->tape, SES_EUNSUPPORTED, "input %d must be a parameter on a device with bf16 activations",
                  i);
    return NULL;
}

static void run_node(ses_tape *t, ses_node *n)
{
    if (!n->out->has_grad) return; /* the loss does not depend on this node */
    n->op->backward(n);
    ses_arena_reset(&t->tmp);
    if (t->watch && t->watch->differentiated) t->watch->differentiated(t->watch->ctx, n);
    if (!n->out->keep_grad) grad_done(t, n->out);
    if (t->err.code) ses_wrap(&t->err, "backward of %s", n->op->name);
}

static void run_backward(ses_tape *t, ses_node *last, const ses_tape_watch *watch)
{
    for (ses_node *n = last; n && !t->err.code; n = n->prev) {
        run_node(t, n);
        if (watch && watch->passed && !t->err.code) watch->passed(watch->ctx, n->number);
    }
}

void ses_backward(ses_tape *t, ses_tensor *loss)
{
    if (t->err.code) return;
    if (!t->opt.record || !loss || ses_count(loss) != 1 || !loss->requires_grad) {
        ses_tape_fail(t, SES_EARG,
                      "backward: needs a recording tape and a scalar that depends on parameters");
        return;
    }
    if (!grad_ready(t, loss)) return;
    const ses_real one = 1;
    unsigned char first[sizeof one];
    if (!ses_convert(first, loss->dtype, &one, SES_REAL, 1, &t->err)) return;
    t->dev->mem->upload(t->dev, loss->grad, first, ses_dtype_size(loss->dtype));
    loss->has_grad = true;
    t->in_backward = true;
    run_backward(t, t->last, t->watch);
    t->in_backward = false;
}

/* ---- recomputation (gradient checkpointing) ---- */

typedef struct segment {
    ses_segment_fn *f;
    void *ctx;
    uint32_t site; /* first RNG site of the segment */
} segment;

/* Runs f on nodes of its own; their activations live until segment_end. */
static ses_tensor *segment_begin(ses_tape *t, const segment *p, ses_tensor *x)
{
    t->acts = &t->recompute_mem;
    t->last = NULL;
    t->site = p->site;
    return p->f(p->ctx, x);
}

static void segment_end(ses_tape *t, ses_node *last, uint32_t site)
{
    ses_arena_reset(&t->recompute_mem);
    t->acts = &t->mem;
    t->last = last;
    t->site = site;
}

/* Gradients live in the tape's main arena, so that the gradient of x and of other outside tensors
 * persists. */
static void segment_backward(const ses_node *n)
{
    ses_tape *t = n->tape;
    ses_node *last = t->last;
    uint32_t site = t->site;
    ses_tensor *y = segment_begin(t, n->attr, n->in[0]);
    if (y) {
        y->grad = n->out->grad;
        y->has_grad = true;
        n->out->grad = NULL;
        run_backward(t, t->last, NULL);
    }
    segment_end(t, last, site);
}

static const ses_op segment_op = { .name = "recompute",
                                   .attr_size = sizeof(segment),
                                   .backward = segment_backward };

ses_tensor *ses_recompute(ses_tape *t, ses_segment_fn *f, void *ctx, ses_tensor *x)
{
    segment p = { f, ctx, t->site };
    ses_node *last = t->last, *n = t->err.code ? NULL : node_new(t, &segment_op, &x, 1, &p);
    if (!n) return NULL;
    ses_tensor *y = segment_begin(t, &p, x);
    t->acts = &t->mem;
    if (y) n->out = tensor_new(t, y->dtype, y->dim, &t->err);
    if (n->out) {
        t->dev->mem->move(t->dev, n->out->data, y->data, (size_t)ses_count(y) * ses_dtype_size(y->dtype));
        n->out->requires_grad = y->requires_grad;
        n->prev = last;
    }
    segment_end(t, n->out && y->requires_grad ? n : last, t->site);
    return n->out;
}

/* ---- repeated runs of one node: benchmarks ---- */

ses_node *ses_tape_last_node(const ses_tape *t) { return t->err.code ? NULL : t->last; }

void ses_node_forward(ses_node *n)
{
    n->op->forward(n);
    ses_arena_reset(&n->tape->tmp);
}

void ses_node_backward(ses_node *n)
{
    if (!grad_ready(n->tape, n->out)) return;
    n->out->has_grad = true;
    n->op->backward(n);
    ses_arena_reset(&n->tape->tmp);
    if (!n->out->grad) grad_ready(n->tape, n->out); /* donated */
}
