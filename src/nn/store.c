#include "sesame/store.h"

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
    ses_arena names;     /* strings and tensor headers */
    ses_arena own;       /* values of single parameters, on the device */
    ses_arena copies;    /* their narrow ones: apart, so that neighbors lie side by side in both */
    ses_pack_arena room; /* packed weights */
    ses_strmap index;
    ses_param *param;
    size_t n, cap;
    ses_real *value, *grad; /* the flat buffers of training */
    char *narrow;           /* what value is to ops where the device's reals are narrow */
    bool fresh;             /* parameters of their own have come since the last refresh */
    size_t flat;            /* numbers in each, gaps included */
    const ses_lora_hook *adapting;
    ses_err err;
};

enum { GRAIN = SES_ALIGN / sizeof(ses_real) }; /* parameters start on whole cache lines */
enum { DEVICE_GRAIN = 128 << 20 };             /* bytes of a GPU's memory at a time, so that few lie apart */

ses_store *ses_store_new(ses_device *dev, ses_err *e)
{
    ses_store *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->dev = dev;
    ses_pack_arena_init(&s->room, dev);
    s->own.allocator = s->copies.allocator = ses_device_allocator(dev);
    if (!dev->is_host) s->own.min_block = s->copies.min_block = DEVICE_GRAIN;
    return s;
}

void ses_store_free(ses_store *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) ses_pack_free(s->param[i].tensor->pack);
    ses_pack_arena_free(&s->room);
    if (s->value) s->dev->mem->free(s->dev, s->value);
    if (s->grad) s->dev->mem->free(s->dev, s->grad);
    if (s->narrow) s->dev->mem->free(s->dev, s->narrow);
    ses_free(s->param);
    ses_strmap_free(&s->index);
    ses_arena_free(&s->own);
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
    bool fresh = false;
    if (!copy || !ses_strmap_insert(&s->index, copy, strlen(copy), (int64_t)s->n, &fresh, &s->err))
        return NULL;
    assert(fresh); /* a model declares each name once */
    memcpy(t->dim, dim, sizeof t->dim);
    t->dtype = s->dev->activation_dtype;
    ses_param_role role = s->adapting ? SES_PARAM_BASE : SES_PARAM_TRAINED;
    s->param[s->n++] =
        (ses_param){ .name = copy, .tensor = t, .init = init, .role = role, .decay = ses_rank(t) > 1 };
    return t;
}

void ses_store_set_lora_hook(ses_store *s, const ses_lora_hook *a) { s->adapting = a; }
const ses_lora_hook *ses_store_lora_hook(const ses_store *s) { return s->adapting; }

static ses_param *param_of(ses_store *s, const ses_tensor *t)
{
    for (size_t i = s->n; t && i-- > 0;) /* as a rule the one just added */
        if (s->param[i].tensor == t) return &s->param[i];
    return NULL;
}

void ses_store_set_role(ses_store *s, const ses_tensor *t, ses_param_role role)
{
    ses_param *p = param_of(s, t);
    if (p) p->role = role;
}

void ses_store_set_dense(ses_store *s, const ses_tensor *t, ses_weight_layout order)
{
    ses_param *p = param_of(s, t);
    if (p) p->dense = true, p->layout = order;
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

/* Numbers a parameter takes: matrices in groups of 8 rows, the rest zeros, for products that want it. */
static size_t padded(const ses_tensor *t)
{
    enum { ROWS = 8 };
    size_t row = ses_rank(t) == 2 ? (size_t)t->dim[1] : 1, whole = ses_rank(t) == 2 ? ROWS * row : GRAIN;
    size_t n = ((size_t)ses_count(t) + whole - 1) / whole * whole;
    return (n + GRAIN - 1) / GRAIN * GRAIN;
}

static bool narrow(const ses_store *s) { return s->dev->activation_dtype != SES_REAL; }

static ses_real *flat_new(ses_store *s, ses_err *e)
{
    size_t bytes;
    if (!ses_mul_size(s->flat, sizeof(ses_real), &bytes)) {
        ses_fail(e, SES_ENOMEM, "out of memory (%zu numbers wanted)", s->flat);
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
    size_t at = 0, cell = ses_dtype_size(s->dev->activation_dtype);
    if (narrow(s) && !(s->narrow = s->dev->mem->alloc(s->dev, s->flat * cell, e))) return false;
    for (size_t i = 0; i < s->n; i++) {
        ses_tensor *t = s->param[i].tensor;
        if (s->param[i].role == SES_PARAM_BASE) continue;
        t->f = s->value + at;
        if (narrow(s)) t->master = t->f, t->data = s->narrow + at * cell;
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

bool ses_store_alloc_one(ses_store *s, size_t i, ses_err *e)
{
    ses_tensor *t = s->param[i].tensor;
    t->data = ses_arena_alloc(&s->own, (size_t)ses_count(t) * sizeof(ses_real), e);
    s->param[i].owned = t->data != NULL;
    if (!t->data || !narrow(s)) return t->data != NULL;
    t->master = t->f;
    t->data = ses_arena_alloc(&s->copies, (size_t)ses_count(t) * ses_dtype_size(t->dtype), e);
    s->fresh = true;
    return t->data != NULL;
}

void ses_store_sync_bf16(ses_store *s)
{
    if (!narrow(s)) return;
    if (s->value) s->dev->mem->to_bf16(s->dev, s->narrow, s->value, (int64_t)s->flat);
    for (size_t i = 0; (!s->value || s->fresh) && i < s->n; i++) {
        const ses_tensor *t = s->param[i].tensor;
        if (t->master) s->dev->mem->to_bf16(s->dev, t->data, t->master, ses_count(t));
    }
    s->fresh = false;
}

void ses_store_bind(ses_store *s, size_t i, const ses_real *data, bool mapped)
{
    s->param[i].mapped = mapped;
    s->param[i].tensor->data = (void *)(uintptr_t)data; /* read only: such a store is never trained */
}

/* What products read of weight p, which is `as` wherever it is stored or wanted so. Deep sums of 8-bit
 * products would overflow. */
static ses_dtype rounded(const ses_store *s, const ses_param *p, ses_dtype as)
{
    ses_dtype want = as == SES_REAL ? s->dev->weight_dtype : as;
    bool deep = ses_weight_dim(p->tensor, p->layout == SES_OUT_IN) > SES_GEMM_I8_MAX_K;
    if (!p->dense) return SES_REAL;
    return want == SES_I8 && (deep || (p->keep_16bit && as != SES_I8)) ? SES_F16 : want;
}

/* Numbers that cannot be rounded: NaN, infinity, too large for 16 bits. */
static bool can_round(const ses_tensor *t, ses_dtype to, ses_err *e)
{
    static const double largest_f16 = 65504;
    double most = 0, odd = 0; /* odd: NaN if anything is not finite */
    for (int64_t i = 0, n = ses_count(t); i < n; i++) {
        double x = (double)t->f[i];
        odd += x - x;
        most = fabs(x) > most ? fabs(x) : most;
    }
    if (odd != 0) return ses_fail(e, SES_EFORMAT, "NaN or infinity among the weights, expected finite ones");
    if (to != SES_F16 || most <= largest_f16) return true;
    return ses_fail(e, SES_EARG, "a weight of %.4g is too large for f16: use bf16", most);
}

static ses_pack *new_pack(ses_store *s, ses_dtype as, bool mapped, ses_err *e)
{
    enum { BLOCK = 64 << 20 }; /* or the model, if smaller: what nobody takes of a block is no memory */
    size_t whole = (size_t)ses_store_element_count(s) * sizeof(ses_real);
    s->room.arena.min_block = whole < BLOCK ? whole : BLOCK;
    return ses_pack_new(&s->room, as, mapped, e);
}

bool ses_store_quantize(ses_store *s, size_t i, ses_dtype as, ses_err *e)
{
    const ses_param *p = &s->param[i];
    ses_tensor *t = p->tensor;
    ses_dtype to = rounded(s, p, as);
    if (to == SES_REAL || t->pack) return true;
    if (!can_round(t, to, e)) return false;
    t->pack = new_pack(s, to, p->mapped, e);
    return t->pack && ses_pack_build(t, p->layout, &s->dev->k, &s->dev->exec, e);
}

bool ses_store_load_quantized(ses_store *s, size_t i, const ses_quant_rows *from, bool mapped, bool *taken,
                              ses_err *e)
{
    const ses_param *p = &s->param[i];
    *taken =
        rounded(s, p, from->dtype) == from->dtype &&
        (from->dtype == SES_I8 || s->dev->weight_dtype == SES_REAL || s->dev->weight_dtype == from->dtype);
    if (!*taken) return true;
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
        bool rounds = p->embedding && s->dev->embedding_dtype == SES_I8;
        if (!ses_store_quantize(s, i, rounds ? SES_I8 : SES_REAL, e)) return ses_wrap(e, "%s", p->name);
        if (ses_rank(t) > 1 && !t->pack && !(t->pack = new_pack(s, SES_REAL, p->mapped, e))) return false;
        if (rounds && !ses_pack_quant_rows(t) &&
            (!can_round(t, SES_I8, e) || !ses_pack_quantize_rows(t, SES_I8, e)))
            return ses_wrap(e, "%s", p->name);
    }
    return true;
}

static double drawn(const ses_param *p, double deviation, ses_rng_key key, uint64_t i)
{
    switch (p->init) {
    case SES_INIT_NORMAL: return deviation * ses_rand_normal(key, i);
    case SES_INIT_FAN_IN: return (2 * (double)ses_rand_unit(key, i) - 1) / sqrt((double)ses_cols(p->tensor));
    case SES_INIT_ONE: return 1;
    case SES_INIT_ZERO: break;
    }
    return 0;
}

/* Initial values of a parameter, by all threads. */
enum { DRAWN = 1024 };

typedef struct drawing {
    ses_store *store;
    const ses_param *param;
    double deviation;
    ses_rng_key key;
} drawing;

static void draw_values(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const drawing *d = ctx;
    ses_device *dev = d->store->dev;
    ses_real row[DRAWN];
    int64_t at = chunk * DRAWN, count = ses_count(d->param->tensor),
            len = count - at < DRAWN ? count - at : DRAWN;
    for (int64_t j = 0; j < len; j++)
        row[j] = (ses_real)drawn(d->param, d->deviation, d->key, (uint64_t)(at + j));
    dev->mem->upload(dev, ses_master_data(d->param->tensor) + at, row, (size_t)len * sizeof *row);
}

void ses_store_init_one(ses_store *s, size_t i, double deviation, uint64_t seed)
{
    drawing d = { s, &s->param[i], deviation, { .seed = seed, .site = (uint32_t)i } };
    ses_parallel_for(s->dev->exec.pool, (ses_count(d.param->tensor) + DRAWN - 1) / DRAWN, draw_values, &d);
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
