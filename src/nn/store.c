/* The parameter store: declaration, memory for training or inference, quantization, initialization. */
#include "store_impl.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/strmap.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct ses_store {
    ses_device *dev;
    ses_arena names; /* parameter names and tensor headers */
    ses_arena owned; /* values of parameters with memory of their own, on the device */
    /* their bf16 copies, in a second arena, so that consecutive parameters are consecutive in both */
    ses_arena copies;
    ses_pack_arena packs; /* packed weights */
    ses_strmap index;
    ses_param *param;
    size_t n, cap;
    ses_real *value, *grad; /* training: flat buffers of all values and all gradients */
    char *value_bf16;       /* bf16 copy of value, on devices with bf16 activations */
    bool needs_sync;        /* parameters were allocated since the last ses_store_sync_bf16 */
    size_t flat;            /* elements in each buffer, including alignment gaps */
    const ses_adapter_hook *adapter;
    const ses_low_rank_hook *low_rank;
    ses_err err;
};

enum { ALIGN_ELEMS = SES_ALIGN / sizeof(ses_real) }; /* parameters start on cache lines */
enum { DEVICE_BLOCK = 128 << 20 }; /* bytes per GPU allocation: consecutive parameters share a block */

ses_store *ses_store_new(ses_device *dev, ses_err *e)
{
    ses_store *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->dev = dev;
    ses_pack_arena_init(&s->packs, dev);
    s->owned.allocator = s->copies.allocator = ses_device_allocator(dev);
    if (!dev->is_host) s->owned.min_block = s->copies.min_block = DEVICE_BLOCK;
    return s;
}

void ses_store_free(ses_store *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++)
        if (!s->param[i].borrowed) ses_pack_free(s->param[i].tensor->pack);
    ses_pack_arena_free(&s->packs);
    if (s->value) s->dev->mem->free(s->dev, s->value);
    if (s->grad) s->dev->mem->free(s->dev, s->grad);
    if (s->value_bf16) s->dev->mem->free(s->dev, s->value_bf16);
    ses_free(s->param);
    ses_strmap_free(&s->index);
    ses_arena_free(&s->owned);
    ses_arena_free(&s->copies);
    ses_arena_free(&s->names);
    ses_free(s);
}

static bool grow(ses_store *s)
{
    if (s->n < s->cap) return true;
    size_t cap = s->cap ? 2 * s->cap : 64;
    ses_param *p = ses_realloc_array(s->param, cap, sizeof *p, &s->err);
    if (!p) return false;
    s->param = p;
    s->cap = cap;
    return true;
}

ses_tensor *ses_store_add(ses_store *s, const char *name, const int64_t dim[SES_MAX_DIM], ses_init init)
{
    if (s->err.code || !grow(s)) return NULL;
    ses_tensor *t = ses_arena_array(&s->names, 1, sizeof *t, &s->err);
    char *copy = t ? ses_arena_strndup(&s->names, name, strlen(name), &s->err) : NULL;
    bool is_new = false;
    if (!copy || !ses_strmap_insert(&s->index, copy, strlen(copy), (int64_t)s->n, &is_new, &s->err))
        return NULL;
    assert(is_new); /* each name is declared once */
    memcpy(t->dim, dim, sizeof t->dim);
    t->dtype = s->dev->activation_dtype;
    const ses_adapter_hook *a = s->adapter;
    ses_param_role role = a && !a->is_trained(a->ctx, name) ? SES_PARAM_BASE : SES_PARAM_TRAINED;
    s->param[s->n++] =
        (ses_param){ .name = copy, .tensor = t, .init = init, .role = role, .decay = ses_rank(t) > 1 };
    return t;
}

void ses_store_set_adapter_hook(ses_store *s, const ses_adapter_hook *a) { s->adapter = a; }
const ses_adapter_hook *ses_store_adapter_hook(const ses_store *s) { return s->adapter; }
void ses_store_set_low_rank_hook(ses_store *s, const ses_low_rank_hook *hook) { s->low_rank = hook; }
const ses_low_rank_hook *ses_store_low_rank_hook(const ses_store *s) { return s->low_rank; }

static ses_param *param_of(ses_store *s, const ses_tensor *t)
{
    for (size_t i = s->n; t && i-- > 0;) /* usually the last one added */
        if (s->param[i].tensor == t) return &s->param[i];
    return NULL;
}

void ses_store_set_role(ses_store *s, const ses_tensor *t, ses_param_role role)
{
    ses_param *p = param_of(s, t);
    if (p) p->role = role;
}

void ses_store_set_init(ses_store *s, const ses_tensor *t, ses_init init)
{
    ses_param *p = param_of(s, t);
    if (p) p->init = init;
}

void ses_store_set_dense(ses_store *s, const ses_tensor *t, ses_weight_layout layout)
{
    ses_param *p = param_of(s, t);
    if (p) p->dense = true, p->layout = layout;
}

void ses_store_set_parts(ses_store *s, const ses_tensor *t, int64_t parts)
{
    ses_param *p = param_of(s, t);
    if (p) p->parts = parts;
}

void ses_store_set_embedding(ses_store *s, const ses_tensor *t)
{
    ses_param *p = param_of(s, t);
    if (p) p->embedding = p->keep_16bit = true;
}

void ses_store_keep_16bit(ses_store *s, size_t from)
{
    for (size_t i = from; i < s->n; i++) s->param[i].keep_16bit = true;
}

bool ses_store_ok(const ses_store *s, ses_err *e)
{
    return s->err.code == SES_OK || ses_fail(e, s->err.code, "%s", s->err.msg);
}

ses_device *ses_store_device(const ses_store *s) { return s->dev; }
size_t ses_store_count(const ses_store *s) { return s->n; }
const ses_param *ses_store_at(const ses_store *s, size_t i) { return &s->param[i]; }

const ses_param *ses_store_find(const ses_store *s, const char *name)
{
    int64_t i;
    return ses_strmap_find(&s->index, name, strlen(name), &i) ? &s->param[i] : NULL;
}

int64_t ses_store_element_count(const ses_store *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++) n += ses_count(s->param[i].tensor);
    return n;
}

int64_t ses_store_trainable_count(const ses_store *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->param[i].tensor->requires_grad) n += ses_count(s->param[i].tensor);
    return n;
}

/* Elements allocated for a parameter: matrices are padded with zero rows to a multiple of 8 rows, as GPU
 * products need it. */
static size_t padded(const ses_tensor *t)
{
    enum { ROWS = 8 };
    size_t row = ses_rank(t) == 2 ? (size_t)t->dim[1] : 1,
           whole = ses_rank(t) == 2 ? ROWS * row : ALIGN_ELEMS;
    size_t n = ((size_t)ses_count(t) + whole - 1) / whole * whole;
    return (n + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
}

static bool has_bf16(const ses_store *s) { return s->dev->activation_dtype != SES_REAL; }

static ses_real *flat_new(ses_store *s, ses_err *e)
{
    size_t bytes;
    if (!ses_mul_size(s->flat, sizeof(ses_real), &bytes)) {
        ses_fail(e, SES_ENOMEM, "out of memory (%zu elements requested)", s->flat);
        return NULL;
    }
    ses_real *p = s->dev->mem->alloc(s->dev, bytes, e);
    if (p) s->dev->mem->zero(s->dev, p, bytes);
    return p;
}

bool ses_store_alloc_trainable(ses_store *s, ses_err *e)
{
    s->flat = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->param[i].role != SES_PARAM_BASE) s->flat += padded(s->param[i].tensor);
    s->value = flat_new(s, e);
    s->grad = s->value ? flat_new(s, e) : NULL;
    if (!s->grad) return false;
    size_t at = 0, elem = ses_dtype_size(s->dev->activation_dtype);
    if (has_bf16(s) && !(s->value_bf16 = s->dev->mem->alloc(s->dev, s->flat * elem, e))) return false;
    for (size_t i = 0; i < s->n; i++) {
        ses_tensor *t = s->param[i].tensor;
        if (s->param[i].role == SES_PARAM_BASE) continue;
        t->f = s->value + at;
        if (has_bf16(s)) t->master = t->f, t->data = s->value_bf16 + at * elem;
        t->grad = s->grad + at;
        t->capacity = (int64_t)padded(t);
        t->requires_grad = s->param[i].role == SES_PARAM_TRAINED;
        t->has_grad = true;
        at += padded(t);
    }
    return true;
}

void ses_store_share(ses_store *s, size_t i, const ses_tensor *with)
{
    ses_tensor *t = s->param[i].tensor;
    assert(ses_same_shape(t, with) && t->grad && with->grad);
    t->f = with->f;
    t->master = with->master;
    t->grad = with->grad;
    s->param[i].role = SES_PARAM_SHARED;
}

void ses_store_free_shared(ses_store *s)
{
    void *const memory[] = { s->value, s->grad, s->value_bf16 };
    for (size_t i = 0; i < SES_LEN(memory); i++)
        if (memory[i]) s->dev->mem->free(s->dev, memory[i]);
    s->value = s->grad = NULL;
    s->value_bf16 = NULL;
    s->flat = 0;
}

bool ses_store_borrow(ses_store *s, size_t i, const ses_store *from)
{
    ses_param *p = &s->param[i];
    const ses_param *x = ses_store_find(from, p->name);
    bool same = x && from->dev == s->dev && ses_same_shape(p->tensor, x->tensor) && !x->tensor->grad &&
                p->keep_16bit == x->keep_16bit && (!p->embedding || x->embedding) &&
                (!p->dense || (x->dense && x->layout == p->layout));
    if (!same || (!x->tensor->data && !x->tensor->pack)) return false;
    *p->tensor = *x->tensor;
    p->borrowed = true;
    return true;
}

bool ses_store_alloc_one(ses_store *s, size_t i, ses_err *e)
{
    ses_tensor *t = s->param[i].tensor;
    t->data = ses_arena_alloc(&s->owned, (size_t)ses_count(t) * sizeof(ses_real), e);
    s->param[i].owned = t->data != NULL;
    s->param[i].mapped = false; /* released pages of a file can be read again, these cannot */
    if (!t->data || !has_bf16(s)) return t->data != NULL;
    t->master = t->f;
    t->data = ses_arena_alloc(&s->copies, (size_t)ses_count(t) * ses_dtype_size(t->dtype), e);
    s->needs_sync = true;
    return t->data != NULL;
}

bool ses_store_make_writable(ses_store *s, size_t i, ses_err *e)
{
    ses_tensor *t = s->param[i].tensor;
    const ses_real *values = t->f;
    if (s->param[i].owned) return true;
    if (!ses_store_alloc_one(s, i, e)) return false;
    memcpy(t->f, values, (size_t)ses_count(t) * sizeof *values);
    return true;
}

void ses_store_sync_bf16(ses_store *s)
{
    if (!has_bf16(s)) return;
    if (s->value) s->dev->mem->to_bf16(s->dev, s->value_bf16, s->value, (int64_t)s->flat);
    for (size_t i = 0; (!s->value || s->needs_sync) && i < s->n; i++) {
        const ses_tensor *t = s->param[i].tensor;
        if (t->master && !s->param[i].borrowed)
            s->dev->mem->to_bf16(s->dev, t->data, t->master, ses_count(t));
    }
    s->needs_sync = false;
}

ses_flat ses_store_flat(const ses_store *s)
{
    return (ses_flat){ s->value, s->grad, s->value_bf16, s->value ? (int64_t)s->flat : 0 };
}

int64_t ses_store_flat_offset(const ses_store *s, size_t i)
{
    const ses_param *p = &s->param[i];
    if (!s->grad || p->role == SES_PARAM_SHARED || p->role == SES_PARAM_BASE) return -1;
    return p->tensor->grad - s->grad;
}

void ses_store_sync_bf16_range(ses_store *s, int64_t begin, int64_t end)
{
    size_t elem = ses_dtype_size(s->dev->activation_dtype);
    if (has_bf16(s) && s->value && end > begin)
        s->dev->mem->to_bf16(s->dev, s->value_bf16 + (size_t)begin * elem, s->value + begin, end - begin);
}

void ses_store_bind(ses_store *s, size_t i, const ses_real *data, bool mapped)
{
    s->param[i].mapped = mapped;
    s->param[i].tensor->data = (void *)(uintptr_t)data; /* read-only: such a store is never trained */
}

/* Storage type of weight p in products; `as` is the requested or stored type. Large K would overflow int32
 * accumulators of int8 products. */
static ses_dtype packed_type(const ses_store *s, const ses_param *p, ses_dtype as)
{
    ses_dtype dtype = as == SES_REAL ? s->dev->weight_dtype : as;
    bool too_deep = ses_weight_dim(p->tensor, p->layout == SES_OUT_IN) > SES_GEMM_I8_MAX_K;
    if (!p->dense) return SES_REAL;
    return dtype == SES_I8 && (too_deep || (p->keep_16bit && as != SES_I8)) ? SES_F16 : dtype;
}

/* Reports values that cannot be quantized: NaN, infinity, too large for f16. */
static bool check_quantizable(const ses_tensor *t, ses_dtype to, ses_err *e)
{
    static const double largest_f16 = 65504;
    double largest = 0, not_finite = 0; /* not_finite becomes NaN if any value is not finite */
    for (int64_t i = 0, n = ses_count(t); i < n; i++) {
        double x = (double)t->f[i];
        not_finite += x - x;
        largest = fabs(x) > largest ? fabs(x) : largest;
    }
    if (not_finite != 0) return ses_fail(e, SES_EFORMAT, "a weight is NaN or infinite");
    if (to != SES_F16 || largest <= largest_f16) return true;
    return ses_fail(e, SES_EARG, "a weight of %.4g is too large for f16: use bf16", largest);
}

static ses_pack *new_pack(ses_store *s, ses_dtype as, bool mapped, ses_err *e)
{
    /* or the model's size, if smaller; untouched pages of a block cost nothing */
    enum { BLOCK = 64 << 20 };
    size_t whole = (size_t)ses_store_element_count(s) * sizeof(ses_real);
    s->packs.arena.min_block = whole < BLOCK ? whole : BLOCK;
    return ses_pack_new(&s->packs, as, mapped, e);
}

bool ses_store_quantize(ses_store *s, size_t i, ses_dtype as, ses_err *e)
{
    const ses_param *p = &s->param[i];
    ses_tensor *t = p->tensor;
    ses_dtype to = packed_type(s, p, as);
    if (to == SES_REAL || t->pack) return true;
    if (!check_quantizable(t, to, e)) return false;
    t->pack = new_pack(s, to, p->mapped, e);
    return t->pack && ses_pack_build(t, p->layout, &s->dev->k, &s->dev->exec, e);
}

bool ses_store_load_quantized(ses_store *s, size_t i, const ses_quant_rows *from, bool mapped, bool *packed,
                              ses_err *e)
{
    const ses_param *p = &s->param[i];
    *packed =
        packed_type(s, p, from->dtype) == from->dtype &&
        (from->dtype == SES_I8 || s->dev->weight_dtype == SES_REAL || s->dev->weight_dtype == from->dtype);
    if (!*packed) return true;
    p->tensor->pack = new_pack(s, from->dtype, mapped, e);
    return p->tensor->pack &&
           ses_pack_from_quantized(p->tensor, p->layout, from, &s->dev->k, &s->dev->exec, e);
}

bool ses_store_bind_quantized(ses_store *s, size_t i, const void *data, ses_dtype as, const void *scale,
                              ses_err *e)
{
    ses_tensor *t = s->param[i].tensor;
    if (!t->pack && !(t->pack = new_pack(s, SES_REAL, false, e))) return false;
    return ses_pack_borrow_rows(t, data, as, scale, e);
}

bool ses_store_finalize(ses_store *s, ses_err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const ses_param *p = &s->param[i];
        ses_tensor *t = p->tensor;
        if (p->borrowed) continue;
        bool quantize = p->embedding && s->dev->embedding_dtype == SES_I8;
        if (!ses_store_quantize(s, i, quantize ? SES_I8 : SES_REAL, e)) return ses_wrap(e, "%s", p->name);
        if (ses_rank(t) > 1 && !t->pack && !(t->pack = new_pack(s, SES_REAL, p->mapped, e))) return false;
        if (quantize && !ses_pack_quant_rows(t) &&
            (!check_quantizable(t, SES_I8, e) || !ses_pack_quantize_rows(t, SES_I8, e)))
            return ses_wrap(e, "%s", p->name);
    }
    return true;
}

static double initial_value(const ses_param *p, double deviation, ses_rng_key key, uint64_t i)
{
    switch (p->init) {
    case SES_INIT_NORMAL: return deviation * ses_rand_normal(key, i);
    case SES_INIT_FAN_IN: return (2 * (double)ses_rand_unit(key, i) - 1) / sqrt((double)ses_cols(p->tensor));
    case SES_INIT_TENTH: return 0.1 * (2 * (double)ses_rand_unit(key, i) - 1);
    case SES_INIT_ONE: return 1;
    case SES_INIT_ZERO: break;
    }
    return 0;
}

/* Initializes a parameter in parallel. */
enum { CHUNK = 1024 };

typedef struct init_job {
    ses_store *store;
    const ses_param *param;
    double deviation, uniform; /* uniform above 0: uniform in +- this */
    ses_rng_key key;
} init_job;

static void init_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const init_job *d = ctx;
    ses_device *dev = d->store->dev;
    ses_real row[CHUNK];
    int64_t at = chunk * CHUNK, count = ses_count(d->param->tensor),
            len = count - at < CHUNK ? count - at : CHUNK;
    for (int64_t j = 0; j < len; j++)
        row[j] = (ses_real)(d->uniform > 0
                                ? d->uniform * (2 * (double)ses_rand_unit(d->key, (uint64_t)(at + j)) - 1)
                                : initial_value(d->param, d->deviation, d->key, (uint64_t)(at + j)));
    dev->mem->upload(dev, ses_master_data(d->param->tensor) + at, row, (size_t)len * sizeof *row);
}

static void init(init_job d)
{
    ses_parallel_for(d.store->dev->exec.pool, (ses_count(d.param->tensor) + CHUNK - 1) / CHUNK, init_chunk,
                     &d);
}

void ses_store_init_one(ses_store *s, size_t i, double deviation, uint64_t seed)
{
    init((init_job){ s, &s->param[i], deviation, 0, { .seed = seed, .site = (uint32_t)i } });
}

void ses_store_init_uniform(ses_store *s, size_t i, double range, uint64_t seed)
{
    init((init_job){ s, &s->param[i], 0, range, { .seed = seed, .site = (uint32_t)i } });
}

void ses_store_init(ses_store *s, double deviation, uint64_t seed)
{
    for (size_t i = 0; i < s->n; i++) ses_store_init_one(s, i, deviation, seed);
}

void ses_store_zero_grad(ses_store *s)
{
    if (s->grad) s->dev->mem->zero(s->dev, s->grad, s->flat * sizeof *s->grad);
}

double ses_store_grad_norm(const ses_store *s)
{
    return s->grad ? sqrt(s->dev->k_f32.sum_squares(&s->dev->exec, s->grad, (int64_t)s->flat)) : 0;
}
