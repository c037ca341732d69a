/* Weights from a checkpoint: each parameter by the reference's name, its shape checked, then mapped as it
 * stands or converted. */
#include "base/alloc.h"
#include "base/str.h"
#include "model_desc.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 256 };

static void shape_text(char *buf, size_t n, const int64_t *dim, int rank)
{
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", i ? ", " : "", (long long)dim[i]);
    if (at < n) snprintf(buf + at, n - at, "]");
}

/* The spellings a tensor may have: as it is, with or without the base model's prefix, and a norm's weight and
 * bias under their old names gamma and beta. */
const ses_tensor_entry *ses_entry_find(const ses_model *m, const ses_safetensors *file, const char *before,
                                       const char *name)
{
    static const char *const tail[][2] = { { ".weight", ".gamma" }, { ".bias", ".beta" } };
    char spelling[2][NAME + 32];
    const char *mine = ses_class_prefix(m);
    const char *prefix = *mine ? mine : m->desc->prefix; /* another class's file */
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

/* A parameter of ours, by any name it ever had. */
const ses_tensor_entry *ses_model_find(const ses_model *m, const char *ours)
{
    char name[NAME];
    const ses_tensor_entry *x = NULL;
    for (int i = 0; !x && ses_name_to_hf_any(m, ours, i, name, sizeof name); i++) x = find(m, name);
    return x;
}

static bool shape_fits(const ses_tensor *t, const ses_tensor_entry *x, const ses_tensor_entry *scale,
                       ses_err *e)
{
    char want[96], got[160];
    bool same = x->rank == ses_rank(t);
    for (int i = 0; same && i < x->rank; i++) same = x->dim[i] == t->dim[i];
    shape_text(want, sizeof want, t->dim, ses_rank(t));
    shape_text(got, sizeof got, x->dim, x->rank);
    if (!same) return ses_fail(e, SES_EFORMAT, "shape %s, expected %s by config.json", got, want);
    if (x->dtype == SES_F32 || x->dtype == SES_F16 || x->dtype == SES_BF16 || x->dtype == SES_F64)
        return true;
    if (x->dtype == SES_I8 && scale) return true;
    if (x->dtype == SES_I8)
        return ses_fail(e, SES_EFORMAT,
                        "dtype I8, but there is no \"%s_scale\" with a finite number of at least 0 for each "
                        "output",
                        ses_quoted_of(x->name, strlen(x->name)).s);
    return ses_fail(e, SES_EFORMAT, "dtype %s, expected F32, F16, BF16 or F64", ses_dtype_name(x->dtype));
}

/* The scales of a weight of 8 bits, one for each output of the dense layer; NULL: x has none. */
static const ses_tensor_entry *scale_of(const ses_safetensors *file, const ses_param *p,
                                        const ses_tensor_entry *x)
{
    char name[NAME + 32];
    snprintf(name, sizeof name, "%s_scale", x->name);
    const ses_tensor_entry *scale =
        x->dtype == SES_I8 && (p->dense || p->embedding) ? ses_safetensors_find(file, name) : NULL;
    bool fits = scale && scale->dtype == SES_F32 &&
                scale->count == ses_weight_dim(p->tensor, p->layout == SES_IN_OUT);
    for (int64_t i = 0; fits && i < scale->count; i++) {
        float by;
        memcpy(&by, (const char *)scale->data + (size_t)i * sizeof by, sizeof by);
        fits = by >= 0 && isfinite(by);
    }
    return fits ? scale : NULL;
}

/* n numbers of x from `at` on. */
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

/* Piece by piece, through a buffer on the stack, so that any device's memory will do. */
static bool copy_in(ses_device *dev, const ses_param *p, const ses_tensor_entry *x,
                    const ses_tensor_entry *scale, ses_err *e)
{
    enum { PIECE = 2048 };
    ses_real piece[PIECE];
    size_t count = (size_t)x->count;
    for (size_t at = 0; at < count; at += PIECE) {
        size_t n = count - at < PIECE ? count - at : PIECE;
        if (!convert(piece, p, x, scale, at, n, e)) return false;
        dev->mem->upload(dev, ses_master_data(p->tensor) + at, piece, n * sizeof *piece);
    }
    return true;
}

/* Packed straight from the file, where products read what it has. */
static bool take(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                 const ses_tensor_entry *scale, bool *taken, ses_err *e)
{
    const float *by = scale ? scale->data : NULL;
    ses_quant_rows from = { .data = x->data, .dtype = x->dtype, .scale = by };
    *taken = false;
    if (x->dtype != SES_I8 && x->dtype != SES_F16 && x->dtype != SES_BF16) return true;
    if ((uintptr_t)by % sizeof *by) return true;
    return ses_store_load_quantized(s, i, &from, ses_safetensors_is_mapped(file, x), taken, e);
}

/* A weight that products read rounded, and nobody else reads: only that form of it stays. */
static bool load_rounded(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                         const ses_tensor_entry *scale, ses_err *e)
{
    const ses_param *p = ses_store_at(s, i);
    bool taken;
    if (!take(s, i, file, x, scale, &taken, e)) return false;
    if (taken) return true;
    ses_real *all = ses_alloc_array((size_t)x->count, sizeof *all, e);
    bool ok = all && convert(all, p, x, scale, 0, (size_t)x->count, e);
    p->tensor->f = all;
    ok = ok && ses_store_quantize(s, i, scale ? SES_I8 : SES_REAL, e);
    p->tensor->f = NULL;
    ses_free(all);
    return ok;
}

/* Embeddings read a table where the file has it, products what is made of it. */
static bool load_table(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                       const ses_tensor_entry *scale, ses_err *e)
{
    return (!ses_store_at(s, i)->dense || load_rounded(s, i, file, x, scale, e)) &&
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
    bool stays = final && !train && !o->no_packing && dev->is_host,
         narrow = x->dtype == SES_F16 || x->dtype == SES_BF16 || x->dtype == SES_I8;
    if (stays && p->embedding && narrow) return load_table(s, i, file, x, scale, e);
    if (stays && p->dense && !p->embedding && (narrow || ses_device_dtype(dev) != SES_REAL))
        return load_rounded(s, i, file, x, scale, e);
    return (train || ses_store_alloc_one(s, i, e)) && copy_in(dev, p, x, scale, e);
}

/* The entry that was read for what x is another name of; NULL: x is none. */
static const ses_tensor_entry *twin(const ses_model *m, const ses_tensor_entry *x)
{
    char name[NAME];
    for (size_t i = 0; i < ses_store_count(m->store); i++) {
        const char *ours = ses_store_at(m->store, i)->name;
        for (int k = 1; ses_name_to_hf_any(m, ours, k, name, sizeof name); k++)
            if (find(m, name) == x) return ses_model_find(m, ours);
    }
    return NULL;
}

/* A tensor nobody asked for. What is tied may be stored more than once if it is the same. */
static bool pass_over(ses_model *m, const ses_tensor_entry *x, ses_buf *list, ses_err *e)
{
    const ses_tensor_entry *first = m->c.embed.tied ? twin(m, x) : NULL;
    if (first && (first->bytes != x->bytes || memcmp(first->data, x->data, x->bytes)))
        return ses_fail(e, SES_EFORMAT,
                        "\"%s\" differs from \"%s\", but config.json ties them (\"tie_word_embeddings\")",
                        x->name, first->name);
    return ses_buf_appendf(list, "%s%s", list->len ? ", " : "", ses_quoted_of(x->name, strlen(x->name)).s) ||
           ses_buf_ok(list, e);
}

/* Sines, zeros or ones: what no file needs to hold. */
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

static bool of_adapter(const ses_param *p) { return strstr(p->name, ".lora_") != NULL; }

/* Of a new adapter; or of a head, where heads may be new, and not in the file in this shape. */
static bool begins_anew(const ses_model *m, size_t i, const ses_tensor_entry *x, const ses_model_options *o)
{
    const ses_tensor *t = ses_store_at(m->store, i)->tensor;
    if (of_adapter(ses_store_at(m->store, i))) return true;
    if (!o->new_heads || i < m->first_head_param) return false;
    bool same = x && x->rank == ses_rank(t);
    for (int d = 0; same && d < x->rank; d++) same = x->dim[d] == t->dim[d];
    return !same;
}

static bool begin_anew(ses_model *m, size_t i, const ses_model_options *o, ses_err *e)
{
    if (!o->train && !ses_store_alloc_one(m->store, i, e)) return false;
    ses_model_init_param(m, i, o->seed);
    return true;
}

/* Parameter i, from the file or computed. */
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
    if (!named) return ses_fail(e, SES_EUNSUPPORTED, "no name is known for parameter \"%s\"", p->name);
    if (begins_anew(m, i, x, o)) {
        ses_store_set_role(m->store, p->tensor, SES_PARAM_TRAINED); /* with an adapter, too */
        return o->check_only || begin_anew(m, i, o, e);
    }
    shape_text(shape, sizeof shape, p->tensor->dim, ses_rank(p->tensor));
    if (!x) return ses_model_missing_tensor(m, name, shape, e);
    const ses_tensor_entry *scale = base ? scale_of(m->file, p, x) : NULL;
    const ses_tensor_entry *instead =
        base ? x : ses_model_find(m, p->name); /* the adapter's own stands for it */
    if (instead) used[instead - ses_safetensors_at(m->file, 0)] = true;
    if (scale) used[scale - ses_safetensors_at(m->file, 0)] = true;
    return ses_param_load(m->store, i, m->file, x, o, !m->adapter, e) ||
           ses_wrap(e, "%s: tensor \"%s\"", x->file, ses_quoted_of(x->name, strlen(x->name)).s);
}

static bool load_all(ses_model *m, const ses_model_options *o, bool *used, ses_err *e)
{
    for (size_t i = 0; i < ses_store_count(m->store); i++)
        if (!load_param(m, i, o, used, e)) return false;
    return !m->adapter || ses_adapter_is_new(m->adapter) || ses_adapter_merge(m->adapter, m, o, e);
}

/* What began anew, by the reference's names. */
static bool list_fresh(ses_model *m, const ses_model_options *o, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = m->first_head_param; i < ses_store_count(m->store); i++) {
        char name[NAME];
        const ses_param *p = ses_store_at(m->store, i);
        if (p->role != SES_PARAM_TRAINED || of_adapter(p)) continue;
        const ses_tensor_entry *x = m->adapter ? ses_adapter_find(m->adapter, m, p->name) : NULL;
        if (!begins_anew(m, i, x ? x : ses_model_find(m, p->name), o)) continue;
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
    ses_buf list = { 0 };
    bool ok = false, *used = NULL;
    m->file = ses_checkpoint_open(dir, e);
    if (!m->file) return false;
    size_t n = ses_safetensors_count(m->file);
    used = ses_alloc_array(n, sizeof *used, e);
    ses_model_options check = *o;
    check.check_only = true; /* every shape against the file first, memory after */
    if (!used || !load_all(m, &check, used, e) || (train && !ses_store_alloc_trainable(m->store, e)) ||
        (!o->check_only && !load_all(m, o, used, e)))
        goto done;
    for (size_t i = 0; i < n; i++)
        if (!used[i] && !pass_over(m, ses_safetensors_at(m->file, i), &list, e)) goto done;
    if (o->strict && list.len) {
        ses_fail(e, SES_EFORMAT, "a %s does not use: %s", m->class->name, list.data);
        goto done;
    }
    m->dtype = n ? ses_safetensors_at(m->file, 0)->dtype : SES_F32;
    m->unexpected_keys = ses_strndup(list.len ? list.data : "", list.len, e);
    ok = m->unexpected_keys && list_fresh(m, o, e) &&
         (train || o->check_only || o->no_packing || ses_store_finalize(m->store, e));
    if (ok && !o->check_only) ses_store_sync_bf16(m->store);
done:
    ses_wrap(e, "%s", dir);
    ses_free(used);
    ses_buf_free(&list);
    return ok;
}
