/* Loads weights from a checkpoint: finds each parameter by its transformers name, checks its shape, and maps,
 * quantizes or converts it. */
#include "base/alloc.h"
#include "base/str.h"
#include "io/safetensors_impl.h"
#include "model_desc.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"
#include "tensor/shape_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 256 };

/* Spellings of a tensor name: as given, with or without the base model's prefix, and with the old names gamma
 * and beta of norm parameters. */
const ses_tensor_entry *ses_entry_find(const ses_model *m, const ses_safetensors *file, const char *before,
                                       const char *name)
{
    static const char *const tail[][2] = { { ".weight", ".gamma" }, { ".bias", ".beta" } };
    char spelling[2][NAME + 32];
    const char *class_prefix = ses_class_prefix(m);
    const char *prefix = *class_prefix ? class_prefix : m->desc->prefix; /* the file is of another class */
    snprintf(spelling[0], sizeof spelling[0], "%s%s", before, name);
    if (!strncmp(name, prefix, strlen(prefix)))
        snprintf(spelling[1], sizeof spelling[1], "%s%s", before, name + strlen(prefix));
    else
        snprintf(spelling[1], sizeof spelling[1], "%s%s%s", before, prefix, name);
    for (int i = 0; i < 2; i++) {
        const ses_tensor_entry *found = ses_safetensors_find(file, spelling[i]);
        for (size_t t = 0; t < SES_LEN(tail) && !found; t++) {
            size_t len = strlen(spelling[i]), end = strlen(tail[t][0]);
            char old[NAME + 32];
            if (len < end || strcmp(spelling[i] + len - end, tail[t][0])) continue;
            snprintf(old, sizeof old, "%.*s%s", (int)(len - end), spelling[i], tail[t][1]);
            found = ses_safetensors_find(file, old);
        }
        if (found) return found;
    }
    return NULL;
}

static const ses_tensor_entry *find(const ses_model *m, const char *name)
{
    return ses_entry_find(m, m->file, "", name);
}

/* Finds a parameter by any of its transformers names. */
const ses_tensor_entry *ses_model_find(const ses_model *m, const char *name)
{
    char hf_name[NAME];
    const ses_tensor_entry *x = NULL;
    for (int i = 0; !x && ses_name_to_hf_any(m, name, i, hf_name, sizeof hf_name); i++) x = find(m, hf_name);
    return x;
}

static bool shape_fits(const ses_tensor *t, const ses_tensor_entry *x, const ses_tensor_entry *scale,
                       ses_err *e)
{
    char expected[96], got[160];
    bool same = x->rank == ses_rank(t);
    for (int i = 0; same && i < x->rank; i++) same = x->dim[i] == t->dim[i];
    ses_shape_text(expected, sizeof expected, t->dim, ses_rank(t));
    ses_shape_text(got, sizeof got, x->dim, x->rank);
    if (!same) return ses_fail(e, SES_EFORMAT, "shape %s, config.json requires %s", got, expected);
    if (x->dtype == SES_F32 || x->dtype == SES_F16 || x->dtype == SES_BF16 || x->dtype == SES_F64)
        return true;
    if (x->dtype == SES_I8 && scale) return true;
    if (x->dtype == SES_I8)
        return ses_fail(e, SES_EFORMAT,
                        "dtype I8 without \"%s_scale\" with a finite, non-negative scale for each "
                        "output",
                        ses_quoted_of(x->name, strlen(x->name)).s);
    return ses_fail(e, SES_EFORMAT, "dtype %s, expected F32, F16, BF16 or F64", ses_dtype_name(x->dtype));
}

/* Scales of an int8 weight, one for each of its `outputs`; NULL: none. */
static const ses_tensor_entry *find_scale(const ses_safetensors *file, const ses_param *p,
                                          const ses_tensor_entry *x, int64_t outputs)
{
    char name[NAME + 32];
    snprintf(name, sizeof name, "%s_scale", x->name);
    const ses_tensor_entry *scale =
        x->dtype == SES_I8 && (p->dense || p->embedding) ? ses_safetensors_find(file, name) : NULL;
    bool fits = scale && scale->dtype == SES_F32 && scale->count == outputs;
    for (int64_t i = 0; fits && i < scale->count; i++) {
        float by;
        memcpy(&by, (const char *)scale->data + (size_t)i * sizeof by, sizeof by);
        fits = by >= 0 && isfinite(by);
    }
    return fits ? scale : NULL;
}

/* The same for a weight as large as config.json requires: one per output of the dense layer. */
static const ses_tensor_entry *scale_of(const ses_safetensors *file, const ses_param *p,
                                        const ses_tensor_entry *x)
{
    return find_scale(file, p, x, ses_weight_dim(p->tensor, p->layout == SES_IN_OUT));
}

/* Converts n elements of x, starting at `at`, to reals. */
static bool convert(ses_real *to, const ses_param *p, const ses_tensor_entry *x,
                    const ses_tensor_entry *scale, size_t at, size_t n, ses_err *e)
{
    const char *data = x->data;
    if (!ses_convert(to, SES_REAL, data + at * ses_dtype_size(x->dtype), x->dtype, n, e)) return false;
    if (!scale) return true;
    size_t outputs = (size_t)scale->count,
           cols = p->layout == SES_OUT_IN ? (size_t)x->count / outputs : outputs;
    size_t row = at / cols, col = at % cols;
    for (size_t i = 0; i < n; i++) {
        float by;
        memcpy(&by, (const char *)scale->data + (p->layout == SES_OUT_IN ? row : col) * sizeof by, sizeof by);
        to[i] *= by;
        if (++col == cols) row++, col = 0;
    }
    return true;
}

/* Chunk by chunk through a stack buffer, for any device. */
static bool copy_in(ses_device *dev, const ses_param *p, const ses_tensor_entry *x,
                    const ses_tensor_entry *scale, ses_err *e)
{
    enum { CHUNK = 2048 };
    ses_real chunk[CHUNK];
    size_t count = (size_t)x->count;
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t n = count - at < CHUNK ? count - at : CHUNK;
        if (!convert(chunk, p, x, scale, at, n, e)) return false;
        dev->mem->upload(dev, ses_master_data(p->tensor) + at, chunk, n * sizeof *chunk);
    }
    return true;
}

/* Packs the weight directly from the file if products can read its dtype. */
static bool pack_quantized(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                           const ses_tensor_entry *scale, bool *packed, ses_err *e)
{
    const float *by = scale ? scale->data : NULL;
    ses_quant_rows from = { .data = x->data, .dtype = x->dtype, .scale = by };
    *packed = false;
    if (x->dtype != SES_I8 && x->dtype != SES_F16 && x->dtype != SES_BF16) return true;
    if ((uintptr_t)by % sizeof *by) return true;
    return ses_store_load_quantized(s, i, &from, ses_safetensors_is_mapped(file, x), packed, e);
}

/* Loads a weight that only quantized products read; the f32 values are not kept. */
static bool load_quantized(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                           const ses_tensor_entry *scale, ses_err *e)
{
    const ses_param *p = ses_store_at(s, i);
    bool packed;
    if (!pack_quantized(s, i, file, x, scale, &packed, e)) return false;
    if (packed) return true;
    ses_real *all = ses_alloc_array((size_t)x->count, sizeof *all, e);
    bool ok = all && convert(all, p, x, scale, 0, (size_t)x->count, e);
    p->tensor->f = all;
    ok = ok && ses_store_quantize(s, i, scale ? SES_I8 : SES_REAL, e);
    p->tensor->f = NULL;
    ses_free(all);
    return ok;
}

/* Embedding lookups read the mapped table, products the packed weight. */
static bool load_embedding(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                           const ses_tensor_entry *scale, ses_err *e)
{
    return (!ses_store_at(s, i)->dense || load_quantized(s, i, file, x, scale, e)) &&
           ses_store_bind_quantized(s, i, x->data, x->dtype, scale ? scale->data : NULL, e);
}

bool ses_param_load(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                    const ses_model_options *o, bool final, ses_err *e)
{
    const ses_param *p = ses_store_at(s, i);
    ses_device *dev = ses_store_device(s);
    const ses_tensor_entry *scale = scale_of(file, p, x);
    bool train = o->train && p->role != SES_PARAM_BASE;
    if (!shape_fits(p->tensor, x, scale, e)) return false;
    if (o->check_only) return true;
    bool mapped =
        !train && dev->is_host && x->dtype == SES_REAL && (uintptr_t)x->data % sizeof(ses_real) == 0;
    if (mapped) {
        ses_store_bind(s, i, x->data, ses_safetensors_is_mapped(file, x));
        return true;
    }
    bool is_final = final && !train && !o->no_packing && dev->is_host,
         is_quantized = x->dtype == SES_F16 || x->dtype == SES_BF16 || x->dtype == SES_I8;
    if (is_final && p->embedding && is_quantized) return load_embedding(s, i, file, x, scale, e);
    if (is_final && p->dense && !p->embedding && (is_quantized || ses_device_dtype(dev) != SES_REAL))
        return load_quantized(s, i, file, x, scale, e);
    return (train || ses_store_alloc_one(s, i, e)) && copy_in(dev, p, x, scale, e);
}

/* The entry that was loaded under another name of x; NULL: x is not an alias. */
static const ses_tensor_entry *alias_of(const ses_model *m, const ses_tensor_entry *x)
{
    char hf_name[NAME];
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        const char *name = ses_store_at(m->store, i)->name;
        for (int k = 1; ses_name_to_hf_any(m, name, k, hf_name, sizeof hf_name); k++)
            if (find(m, hf_name) == x) return ses_model_find(m, name);
    }
    return NULL;
}

/* Buffers that files contain beside the weights: they follow from the config, or nothing reads them. A bias
 * with two or more dimensions is a causal mask (GPT-2, GPT-Neo). Rotary tables belong to rotary models. */
static bool is_buffer(const ses_model *m, const ses_tensor_entry *x)
{
    static const struct {
        const char *end;
        int rank; /* at least */
        bool rotary;
    } buffers[] = {
        { "position_ids", 0 },
        { "token_type_ids", 0 },
        { "inv_freq", 0, .rotary = true },
        { "cos_cached", 0, .rotary = true },
        { "sin_cached", 0, .rotary = true },
        { "masked_bias", 0 },
        { "causal_mask", 0 },
        { "attn.bias", 2 },
        { "attention.bias", 2 },
        { "embed_positions.weights", 0 }, /* sinusoids of fairseq */
        { "_float_tensor", 0 },
        { ".version", 0 },
        { "num_batches_tracked", 0 },
    };
    size_t len = strlen(x->name);
    for (size_t i = 0; i < SES_LEN(buffers); i++) {
        size_t n = strlen(buffers[i].end);
        if (buffers[i].rotary && m->c.position.kind != SES_POS_ROTARY) continue;
        if (len >= n && !strcmp(x->name + len - n, buffers[i].end) && x->rank >= buffers[i].rank) return true;
    }
    return false;
}

/* Tensors that no parameter has read. */
typedef struct unused {
    ses_buf list;    /* heads of other tasks, and parts that the class does not use */
    ses_buf foreign; /* parts that no model of this type has */
} unused;

static bool append_name(ses_buf *list, const ses_tensor_entry *x)
{
    return ses_buf_appendf(list, "%s%s", list->len ? ", " : "", ses_quoted_of(x->name, strlen(x->name)).s);
}

/* Handles an unused tensor. A tied tensor may be stored repeatedly if the copies are equal. */
static bool note_unused(ses_model *m, const ses_tensor_entry *x, unused *u, ses_err *e)
{
    enum { SHOWN = 300 }; /* bytes of names in the error */
    if (m->desc->unread && !strncmp(x->name, m->desc->unread, strlen(m->desc->unread))) return true;
    if (is_buffer(m, x) || ses_tensor_is_renamed(m->desc, x->name)) return true;
    const ses_tensor_entry *first = m->c.embed.tied ? alias_of(m, x) : NULL;
    if (first && (first->bytes != x->bytes || memcmp(first->data, x->data, x->bytes)))
        return ses_fail(e, SES_EFORMAT,
                        "\"%s\" differs from \"%s\", but config.json ties them (\"tie_word_embeddings\")",
                        x->name, first->name);
    ses_file_name name = ses_model_file_name(m, x->name);
    if (name == SES_NAME_COPY) return true;
    if (name != SES_NAME_FOREIGN) return append_name(&u->list, x) || ses_buf_ok(&u->list, e);
    if (u->foreign.len > SHOWN) return true;
    return append_name(&u->foreign, x) || ses_buf_ok(&u->foreign, e);
}

/* Fails if some of the unused tensors belong to another architecture. */
static bool check_unused(const ses_model *m, const unused *u, bool strict, ses_err *e)
{
    if (u->foreign.len)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the weights have tensors that no \"%s\" has: %s; without them its results would be "
                        "wrong: this is another architecture, run it with the library it was made for",
                        m->desc->name, u->foreign.data);
    return !strict || !u->list.len ||
           ses_fail(e, SES_EFORMAT, "%s does not use: %s", m->class->name, u->list.data);
}

/* Fills a buffer: sinusoidal positions, zeros or ones. */
bool ses_model_compute_buffer(ses_model *m, size_t i, ses_err *e)
{
    const ses_param *p = ses_store_at(m->store, i);
    for (size_t k = 0; k < SES_LEN(m->stack); k++)
        if (m->stack[k].position == p->tensor) return ses_stack_compute(&m->stack[k], m->store, &m->c, e);
    m->dev->mem->zero(m->dev, ses_master_data(p->tensor), (size_t)ses_count(p->tensor) * sizeof(ses_real));
    static const ses_real one = 1;
    for (int64_t j = 0; p->init == SES_INIT_ONE && j < ses_count(p->tensor); j++)
        m->dev->mem->upload(m->dev, ses_master_data(p->tensor) + j, &one, sizeof one);
    return true;
}

bool ses_model_param_in_file(const ses_model *m, const ses_param *p)
{
    return m->file && ses_model_find(m, p->name);
}

/* A parameter of an adapter without values; or, with new_heads, a head's parameter that the file lacks in
 * this shape. */
static bool is_new_param(const ses_model *m, size_t i, const ses_tensor_entry *x, const ses_model_options *o)
{
    const ses_tensor *t = ses_store_at(m->store, i)->tensor;
    if (ses_adapter_owns(ses_store_at(m->store, i)->name)) return !x && !ses_adapter_has_file(m->adapter);
    if (!o->new_heads || i < m->first_head_param) return false;
    bool same = x && x->rank == ses_rank(t);
    for (int d = 0; same && d < x->rank; d++) same = x->dim[d] == t->dim[d];
    return !same;
}

static bool init_new_param(ses_model *m, size_t i, const ses_model_options *o, ses_err *e)
{
    if (!o->train && !ses_store_alloc_one(m->store, i, e)) return false;
    ses_model_init_param(m, i, o->seed);
    return true;
}

/* The file's token table has fewer rows, and the options allow it. */
static bool has_new_rows(const ses_model *m, const ses_param *p, const ses_tensor_entry *x,
                         const ses_model_options *o)
{
    const ses_tensor *t = p->tensor;
    return o->new_tokens && o->train && t == m->stack[0].token && x->rank == 2 && x->dim[1] == t->dim[1] &&
           x->dim[0] < t->dim[0];
}

/* New rows are initialized, the first ones are the file's. */
static bool load_first_rows(ses_model *m, size_t i, const ses_tensor_entry *x, const ses_model_options *o,
                            bool *used, ses_err *e)
{
    const ses_param *p = ses_store_at(m->store, i);
    const ses_tensor_entry *scale = find_scale(m->file, p, x, x->dim[0]);
    if (scale) used[scale - ses_safetensors_at(m->file, 0)] = true;
    if (x->dtype == SES_I8 && !scale)
        return ses_fail(e, SES_EFORMAT, "%s: tensor \"%s\" is int8 and has no scales", x->file,
                        ses_quoted_of(x->name, strlen(x->name)).s);
    if (o->check_only) return true;
    ses_model_init_param(m, i, o->seed);
    return copy_in(m->dev, p, x, scale, e);
}

/* Loads or computes parameter i. */
static bool load_param(ses_model *m, size_t i, const ses_model_options *o, bool *used, ses_err *e)
{
    char name[NAME] = "", shape[96];
    const ses_param *p = ses_store_at(m->store, i);
    bool computed = p->role == SES_PARAM_BUFFER || p->role == SES_PARAM_CONSTANT,
         named = ses_model_tensor_name(m, i, name, sizeof name);
    const ses_tensor_entry *x = m->adapter ? ses_adapter_find(m->adapter, m, p->name) : NULL;
    bool base = !x;
    if (!x && p->role != SES_PARAM_CONSTANT) x = ses_model_find(m, p->name);
    if (!x && computed)
        return o->check_only ||
               ((o->train || ses_store_alloc_one(m->store, i, e)) && ses_model_compute_buffer(m, i, e));
    if (!named) return ses_fail(e, SES_EUNSUPPORTED, "parameter \"%s\" has no transformers name", p->name);
    if (is_new_param(m, i, x, o)) {
        ses_store_set_role(m->store, p->tensor, SES_PARAM_TRAINED); /* also beside an adapter */
        return o->check_only || init_new_param(m, i, o, e);
    }
    if (!base && ses_adapter_is_new(m->adapter)) ses_store_set_role(m->store, p->tensor, SES_PARAM_TRAINED);
    ses_shape_text(shape, sizeof shape, p->tensor->dim, ses_rank(p->tensor));
    if (!x && ses_adapter_owns(p->name)) return ses_adapter_missing(m, p->name, shape, e);
    if (!x) return ses_model_missing_tensor(m, name, shape, e);
    const ses_tensor_entry *scale = base ? scale_of(m->file, p, x) : NULL;
    const ses_tensor_entry *replaced =
        base ? x : ses_model_find(m, p->name); /* replaced by the adapter's own */
    if (replaced) used[replaced - ses_safetensors_at(m->file, 0)] = true;
    if (scale) used[scale - ses_safetensors_at(m->file, 0)] = true;
    bool changed =
        m->adapter && (!base || ses_adapter_is_new(m->adapter) || ses_adapter_changes(m->adapter, p->name));
    if (o->shared && !changed && !o->check_only && ses_store_borrow(m->store, i, o->shared->store))
        return true;
    if (has_new_rows(m, p, x, o)) return load_first_rows(m, i, x, o, used, e);
    return ses_param_load(m->store, i, m->file, x, o, !changed, e) ||
           ses_wrap(e, "%s: tensor \"%s\"", x->file, ses_quoted_of(x->name, strlen(x->name)).s);
}

static bool load_all(ses_model *m, const ses_model_options *o, bool *used, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < ses_store_count(m->store); i++) ok = load_param(m, i, o, used, e);
    ok = ok && (!m->adapter || ses_adapter_merge(m->adapter, m, o, e));
    return ok || ses_adapter_wrap_misfit(m->adapter, e);
}

/* Lists the newly initialized parameters by their transformers names. */
static bool list_missing_keys(ses_model *m, const ses_model_options *o, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = m->first_head_param; i < ses_store_count(m->store); i++) {
        char name[NAME];
        const ses_param *p = ses_store_at(m->store, i);
        if (p->role != SES_PARAM_TRAINED || ses_adapter_owns(p->name)) continue;
        const ses_tensor_entry *x = m->adapter ? ses_adapter_find(m->adapter, m, p->name) : NULL;
        if (!is_new_param(m, i, x ? x : ses_model_find(m, p->name), o)) continue;
        if (ses_model_tensor_name(m, i, name, sizeof name))
            ses_buf_appendf(&list, "%s%s", list.len ? ", " : "", name);
    }
    m->missing_keys = ses_strndup(list.len ? list.data : "", list.len, e);
    bool ok = m->missing_keys && ses_buf_ok(&list, e);
    ses_buf_free(&list);
    return ok;
}

bool ses_model_load(ses_model *m, const char *dir, const ses_model_options *o, ses_err *e)
{
    bool train = o->train && !o->check_only;
    unused u = { 0 };
    bool ok = false, *used = NULL;
    m->file = ses_checkpoint_open_as(dir, m->class->name, e);
    if (!m->file || !ses_tensors_rename(m->desc, m->file, e)) return false;
    size_t n = ses_safetensors_count(m->file);
    used = ses_alloc_array(n, sizeof *used, e);
    ses_model_options check = *o;
    check.check_only = true; /* check all shapes before allocating */
    if (!used || !load_all(m, &check, used, e) || (train && !ses_store_alloc_trainable(m->store, e)) ||
        (!o->check_only && !load_all(m, o, used, e)))
        goto done;
    for (size_t i = 0; i < n; i++)
        if (!used[i] && !note_unused(m, ses_safetensors_at(m->file, i), &u, e)) goto done;
    if (!check_unused(m, &u, o->strict, e)) goto done;
    m->dtype = ses_tensors_dtype(m->file);
    m->unexpected_keys = ses_strndup(u.list.len ? u.list.data : "", u.list.len, e);
    ok = m->unexpected_keys && list_missing_keys(m, o, e) &&
         (o->check_only || ses_model_loaded(m, false, e)) &&
         (train || o->check_only || o->no_packing || ses_store_finalize(m->store, e));
    if (ok && !o->check_only) ses_store_sync_bf16(m->store);
done:
    ses_wrap(e, "%s", dir);
    ses_free(used);
    ses_buf_free(&u.list);
    ses_buf_free(&u.foreign);
    return ok;
}
