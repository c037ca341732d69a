/* Saves a model as a folder that transformers reads: config.json, and weights under their transformers
 * names. int8 weights have a file name of their own, which transformers does not find. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "io/safetensors_impl.h"
#include "model/adapter/adapter_impl.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The output of a dense layer that element i of its weight belongs to. */
static size_t output_of(const ses_tensor *t, ses_weight_layout layout, size_t i)
{
    size_t cols = (size_t)ses_weight_dim(t, 1);
    return layout == SES_OUT_IN ? i / cols : i % cols;
}

static void to_multiples(const ses_param_source *s, ses_real *x, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float scale = s->scale[output_of(s->t, s->layout, at + i)];
        x[i] = scale > 0 ? (ses_real)rint(x[i] / (ses_real)scale) : 0;
    }
}

/* Storage dtype of parameter p. SES_I8 stores heads and (unless requested) embeddings in 16 bits, vectors in
 * 32. */
static ses_dtype stored_as(const ses_param *p, const ses_save_options *o)
{
    if (o->dtype != SES_I8) return o->dtype;
    if (p->embedding && o->tables == SES_I8) return SES_I8;
    if (p->dense && !p->keep_16bit && !p->embedding) return SES_I8;
    return ses_rank(p->tensor) > 1 ? SES_F16 : SES_F32;
}

/* Bytes [offset, offset + bytes) of the parameter in the file's dtype. */
bool ses_param_read(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    enum { PIECE = 2048 };
    const ses_param_source *s = ctx;
    ses_real piece[PIECE];
    size_t size = ses_dtype_size(s->dtype), at = offset / size, end = (offset + bytes) / size;
    for (char *to = out; at < end;) {
        size_t n = end - at < PIECE ? end - at : PIECE;
        s->dev->mem->download(s->dev, piece, ses_master_data(s->t) + at, n * sizeof *piece);
        if (s->scale) to_multiples(s, piece, at, n);
        if (!ses_convert(to, s->dtype, piece, SES_REAL, n, e)) return false;
        to += n * size;
        at += n;
    }
    return true;
}

bool ses_model_saved_name(const ses_model *m, size_t i, char *buf, size_t n)
{
    if (ses_adapter_is_new(m->adapter)) return ses_adapter_name(m, i, buf, n);
    return ses_store_at(m->store, i)->role != SES_PARAM_CONSTANT && /* not stored in files */
           ses_model_tensor_name(m, i, buf, n);
}

ses_safetensors *ses_model_open_saved(const ses_model *m, const char *dir, ses_err *e)
{
    if (!ses_adapter_is_new(m->adapter)) return ses_checkpoint_open(dir, e);
    return ses_adapter_open_files(m->adapter->desc, dir, e);
}

/* w: the adapter's tensors; head: tensors in a file of their own. */
static bool save_adapter(const ses_model *m, const ses_safetensors_writer *w,
                         const ses_safetensors_writer *head, const char *dir, const ses_save_options *o,
                         ses_err *e)
{
    const ses_adapter_desc *d = m->adapter->desc;
    char *path = ses_path_join(dir, d->file[0][0], e);
    bool ok = path && ses_safetensors_save(w, path, o->overwrite, e);
    ses_free(path);
    path = ok && d->file[1][0] ? ses_path_join(dir, d->file[1][0], e) : NULL;
    if (ok && d->file[1][0]) ok = path && ses_safetensors_save(head, path, o->overwrite, e);
    ses_free(path);
    return ok && ses_adapter_save_config(m, dir, o->overwrite, e);
}

/* Largest magnitude of each output's weights / 127. */
static const float *scales(const ses_model *m, const ses_param *p, ses_arena *mem, ses_err *e)
{
    enum { PIECE = 2048 };
    ses_real piece[PIECE];
    const ses_tensor *t = p->tensor;
    size_t count = (size_t)ses_count(t), outputs = (size_t)ses_weight_dim(t, p->layout == SES_IN_OUT);
    float *scale = ses_arena_array(mem, outputs, sizeof *scale, e);
    for (size_t at = 0; scale && at < count; at += PIECE) {
        size_t n = count - at < PIECE ? count - at : PIECE;
        m->dev->mem->download(m->dev, piece, ses_master_data(t) + at, n * sizeof *piece);
        for (size_t i = 0; i < n; i++) {
            float *largest = &scale[output_of(t, p->layout, at + i)], x = (float)fabs((double)piece[i]);
            if (!(x <= *largest)) *largest = x;
        }
    }
    for (size_t i = 0; scale && i < outputs; i++) scale[i] /= 127;
    return scale;
}

bool ses_param_source_init(ses_param_source *s, const ses_model *m, const ses_param *p,
                           const ses_save_options *o, ses_arena *mem, ses_err *e)
{
    *s = (ses_param_source){ .dev = m->dev, .t = p->tensor, .dtype = stored_as(p, o), .layout = p->layout };
    if (s->dtype == SES_I8) s->scale = scales(m, p, mem, e);
    return s->dtype != SES_I8 || s->scale;
}

float ses_param_source_scale(const ses_param_source *s, size_t i)
{
    return s->scale ? s->scale[output_of(s->t, s->layout, i)] : 1;
}

static bool add_param(const ses_model *m, size_t i, const ses_save_options *o, ses_safetensors_writer *w,
                      ses_param_source *from, ses_arena *mem, ses_err *e)
{
    char name[256], scale_name[256 + 8];
    const ses_param *p = ses_store_at(m->store, i);
    const ses_tensor *t = p->tensor;
    if (!ses_model_saved_name(m, i, name, sizeof name)) return true;
    if (!t->f)
        return ses_fail(e, SES_EARG,
                        "\"%s\" is held quantized only: open the model with no_packing to save it", name);
    if (!ses_param_source_init(from, m, p, o, mem, e)) return false;
    if (from->scale) {
        int64_t outputs = ses_weight_dim(t, p->layout == SES_IN_OUT);
        snprintf(scale_name, sizeof scale_name, "%s_scale", name);
        if (!ses_safetensors_writer_add(w, scale_name, SES_F32, 1, SES_DIM(outputs), from->scale, e))
            return false;
    }
    return ses_safetensors_writer_add_source(w, name, from->dtype, ses_rank(t), t->dim, ses_param_read, from,
                                             e);
}

static bool save_weights(const ses_model *m, const char *dir, const ses_save_options *o, ses_err *e)
{
    size_t n = ses_store_count(m->store);
    bool ok = false;
    ses_arena mem = { 0 };
    const ses_adapter_desc *adapter = ses_adapter_is_new(m->adapter) ? m->adapter->desc : NULL;
    ses_param_source *from = ses_alloc_array(n, sizeof *from, e);
    ses_safetensors_writer *w = from ? ses_safetensors_writer_new(e) : NULL,
                           *head = w ? ses_safetensors_writer_new(e) : NULL;
    bool apart = adapter && adapter->file[1][0]; /* the head has a file of its own */
    if (!head || (!(adapter && adapter->no_meta) && !ses_safetensors_writer_add_meta(w, "format", "pt", e)))
        goto done;
    for (size_t i = 0; i < n; i++) {
        bool own = ses_adapter_owns(ses_store_at(m->store, i)->name);
        if (!add_param(m, i, o, apart && !own ? head : w, &from[i], &mem, e)) goto done;
    }
    if (adapter && adapter->save && !adapter->save(m, w, &mem, e)) goto done;
    if (adapter)
        ok = save_adapter(m, w, head, dir, o, e);
    else
        ok = (o->dtype == SES_I8 ? ses_checkpoint_save_int8 : ses_checkpoint_save)(w, dir, o->shard_bytes,
                                                                                   o->overwrite, e);
done:
    ses_safetensors_writer_free(head);
    ses_safetensors_writer_free(w);
    ses_free(from);
    ses_arena_free(&mem);
    return ok;
}

/* config.json as read, with this model's class and dtype. */
static bool save_config(const ses_model *m, const char *dir, const ses_save_options *o, ses_err *e)
{
    static const char *const dtypes[] = {
        [SES_F32] = "float32", [SES_F16] = "float16", [SES_BF16] = "bfloat16", [SES_I8] = "float16"
    };
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_array(w, "architectures");
    ses_json_put_string(w, m->class->name);
    ses_json_end_array(w);
    ses_json_member_string(w, "dtype", dtypes[o->dtype]);
    if (o->dtype == SES_I8) {
        ses_json_member_object(w, "quantization_config");
        ses_json_member_string(w, "quant_method", "sesame-int8");
        ses_json_end_object(w);
    }
    for (size_t i = 0; i < ses_json_len(m->config); i++) {
        const char *key = ses_json_key(m->config, i, NULL);
        if (!strcmp(key, "architectures") || !strcmp(key, "dtype") || !strcmp(key, "torch_dtype") ||
            !strcmp(key, "quantization_config") || (!strcmp(key, SES_EXITS_KEY) && !m->exits.n))
            continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(m->config, i));
    }
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, "config.json", o->overwrite, e);
}

bool ses_model_save(const ses_model *m, const char *dir, const ses_save_options *options, ses_err *e)
{
    ses_save_options o = options ? *options : (ses_save_options){ .dtype = SES_F32 };
    if (o.dtype != SES_F32 && o.dtype != SES_F16 && o.dtype != SES_BF16 && o.dtype != SES_I8)
        return ses_fail(e, SES_EARG, "weights can be saved as F32, F16, BF16 or I8, not as %s",
                        ses_dtype_name(o.dtype));
    const char *unmerged = ses_adapter_is_new(m->adapter) ? NULL : ses_adapter_unmerged(m->adapter);
    if (unmerged)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s cannot be merged into the weights of a model: keep its folder as an adapter",
                        unmerged);
    return ses_dir_make(dir, e) && save_weights(m, dir, &o, e) && save_config(m, dir, &o, e);
}
