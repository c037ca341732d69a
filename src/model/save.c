/* A folder the reference library reads: config.json and the weights under its names. */
#include "adapter.h"
#include "base/alloc.h"
#include "base/file.h"
#include "tensor/device.h"

#include <string.h>

/* Bytes [offset, offset + bytes) of the parameter in the file's dtype. */
bool ses_param_read(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    enum { PIECE = 2048 };
    const ses_param_source *s = ctx;
    ses_real piece[PIECE];
    size_t size = ses_dtype_size(s->dtype), at = offset / size, end = (offset + bytes) / size;
    for (char *to = out; at < end;) {
        size_t n = end - at < PIECE ? end - at : PIECE;
        s->dev->mem->download(s->dev, piece, s->t->f + at, n * sizeof *piece);
        if (!ses_convert(to, s->dtype, piece, SES_REAL, n, e)) return false;
        to += n * size;
        at += n;
    }
    return true;
}

bool ses_model_file_name(const ses_model *m, size_t i, char *buf, size_t n)
{
    if (ses_adapter_is_new(m->adapter)) return ses_adapter_name(m, i, buf, n);
    return ses_store_at(m->store, i)->role != SES_PARAM_FIXED && /* which no file holds */
           ses_model_tensor_name(m, i, buf, n);
}

ses_safetensors *ses_model_saved(const ses_model *m, const char *dir, ses_err *e)
{
    if (!ses_adapter_is_new(m->adapter)) return ses_checkpoint_open(dir, e);
    char *path = ses_path_join(dir, SES_ADAPTER_FILE, e);
    ses_safetensors *s = path ? ses_safetensors_open(path, e) : NULL;
    ses_free(path);
    return s;
}

static bool save_adapter(ses_model *m, ses_safetensors_writer *w, const char *dir, const ses_save_options *o,
                         ses_err *e)
{
    char *path = ses_path_join(dir, SES_ADAPTER_FILE, e);
    bool ok = path && ses_safetensors_save(w, path, o->overwrite, e) &&
              ses_adapter_save_config(m, dir, o->overwrite, e);
    ses_free(path);
    return ok;
}

static bool save_weights(ses_model *m, const char *dir, const ses_save_options *o, ses_err *e)
{
    size_t n = ses_store_count(m->store);
    bool ok = false;
    ses_param_source *from = ses_alloc_array(n, sizeof *from, e);
    ses_safetensors_writer *w = from ? ses_safetensors_writer_new(e) : NULL;
    if (!w || !ses_safetensors_writer_meta(w, "format", "pt", e)) goto done;
    for (size_t i = 0; i < n; i++) {
        char name[256];
        const ses_tensor *t = ses_store_at(m->store, i)->tensor;
        from[i] = (ses_param_source){ m->dev, t, o->dtype };
        if (!ses_model_file_name(m, i, name, sizeof name)) continue;
        if (!ses_safetensors_writer_add_source(w, name, o->dtype, ses_rank(t), t->dim, ses_param_read,
                                               &from[i], e))
            goto done;
    }
    if (ses_adapter_is_new(m->adapter))
        ok = save_adapter(m, w, dir, o, e);
    else
        ok = ses_checkpoint_save(w, dir, o->shard_bytes, o->overwrite, e);
done:
    ses_safetensors_writer_free(w);
    ses_free(from);
    return ok;
}

/* The config as it was read, with what this model is. */
static bool save_config(ses_model *m, const char *dir, const ses_save_options *o, ses_err *e)
{
    static const char *const dtypes[] = {
        [SES_F32] = "float32", [SES_F16] = "float16", [SES_BF16] = "bfloat16"
    };
    ses_json_writer *w = ses_json_writer_new(2, e);
    char *path = w ? ses_path_join(dir, "config.json", e) : NULL;
    bool ok = false;
    if (!path) goto done;
    ses_json_begin_object(w);
    ses_json_put_key(w, "architectures");
    ses_json_begin_array(w);
    ses_json_put_string(w, m->class->name);
    ses_json_end_array(w);
    ses_json_put_key(w, "dtype");
    ses_json_put_string(w, dtypes[o->dtype]);
    for (size_t i = 0; i < ses_json_len(m->config); i++) {
        const char *key = ses_json_key(m->config, i, NULL);
        if (!strcmp(key, "architectures") || !strcmp(key, "dtype") || !strcmp(key, "torch_dtype")) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(m->config, i));
    }
    ses_json_end_object(w);
    size_t len;
    const char *text = ses_json_writer_text(w, &len, e);
    ok = text && ses_file_write(path, text, len, o->overwrite, e);
done:
    ses_free(path);
    ses_json_writer_free(w);
    return ok;
}

bool ses_model_save(ses_model *m, const char *dir, const ses_save_options *options, ses_err *e)
{
    ses_save_options o = options ? *options : (ses_save_options){ .dtype = SES_F32 };
    if (o.dtype != SES_F32 && o.dtype != SES_F16 && o.dtype != SES_BF16)
        return ses_fail(e, SES_EARG, "weights cannot be saved as %s, only as F32, F16 or BF16",
                        ses_dtype_name(o.dtype));
    return ses_dir_make(dir, e) && save_weights(m, dir, &o, e) && save_config(m, dir, &o, e);
}
