/* Saves a model as a folder that transformers reads: config.json, and weights under their transformers
 * names. int8 weights have a file name of their own, which transformers does not find. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/thread_pool.h"
#include "io/safetensors_impl.h"
#include "model/adapter/adapter_impl.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "tensor/pack.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = SES_PARAM_PIECE };

/* The threads that convert values; NULL: the device downloads them for one. */
static ses_thread_pool *pool_of(const ses_device *d) { return d->is_host ? d->exec.pool : NULL; }

/* The scale of each element from `at` on: of its output of the dense layer. */
static void put_scales(const ses_param_source *s, float *scale, size_t at, size_t n)
{
    size_t cols = (size_t)ses_weight_dim(s->t, 1), row = at / cols, col = at % cols;
    for (size_t i = 0; i < n; row++, col = 0)
        for (; col < cols && i < n; col++, i++) scale[i] = s->scale[s->layout == SES_OUT_IN ? row : col];
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

bool ses_param_convert(const ses_param_source *s, void *out, float *scale, size_t at, size_t n, ses_err *e)
{
    ses_real piece[PIECE];
    s->dev->mem->download(s->dev, piece, ses_master_data(s->t) + at, n * sizeof *piece);
    if (s->scale) put_scales(s, scale, at, n);
    for (size_t i = 0; s->scale && i < n; i++)
        piece[i] = scale[i] > 0 ? (ses_real)rint(piece[i] / (ses_real)scale[i]) : 0;
    return ses_convert(out, s->dtype, piece, SES_REAL, n, e);
}

typedef struct reading {
    const ses_param_source *s;
    char *out;
    size_t begin, end; /* elements */
    atomic_bool failed;
} reading;

static bool read_piece(const reading *r, int64_t i, ses_err *e)
{
    float scale[PIECE];
    size_t at = r->begin + (size_t)i * PIECE, n = r->end - at < PIECE ? r->end - at : PIECE;
    return ses_param_convert(r->s, r->out + (at - r->begin) * ses_dtype_size(r->s->dtype), scale, at, n, e);
}

static void try_piece(void *ctx, int64_t i, void *scratch)
{
    reading *r = ctx;
    (void)scratch;
    if (!read_piece(r, i, NULL)) atomic_store(&r->failed, true);
}

/* Bytes [offset, offset + bytes) of the parameter in the file's dtype. */
bool ses_param_read(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    const ses_param_source *s = ctx;
    size_t size = ses_dtype_size(s->dtype), n = bytes / size;
    reading r = { .s = s, .out = out, .begin = offset / size, .end = offset / size + n };
    int64_t pieces = (int64_t)((n + PIECE - 1) / PIECE);
    ses_parallel_for(pool_of(s->dev), pieces, try_piece, &r);
    bool ok = !atomic_load(&r.failed);
    for (int64_t i = 0; !ok && i < pieces; i++) /* the error of the first one */
        if (!read_piece(&r, i, e)) return false;
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

/* Largest magnitudes of the outputs of a dense weight. A chunk is `outputs` of them, in the order of memory:
 * rows or columns of [rows, cols]. */
typedef struct magnitudes {
    ses_device *dev;
    const ses_tensor *t;
    float *largest;
    size_t rows, cols, outputs;
    bool by_row;
} magnitudes;

/* Columns from .. to - 1 of row i; *largest is that of the row, or largest[j] that of column from + j. */
static void add_magnitudes(const magnitudes *m, size_t i, size_t from, size_t to, float *largest)
{
    ses_real piece[PIECE];
    for (size_t at = from; at < to; at += PIECE) {
        size_t n = to - at < PIECE ? to - at : PIECE;
        m->dev->mem->download(m->dev, piece, ses_master_data(m->t) + i * m->cols + at, n * sizeof *piece);
        for (size_t j = 0; j < n; j++) {
            float x = (float)fabs((double)piece[j]), *of = m->by_row ? largest : &largest[at - from + j];
            if (!(x <= *of)) *of = x;
        }
    }
}

static void magnitudes_chunk(void *ctx, int64_t chunk, void *scratch)
{
    const magnitudes *m = ctx;
    (void)scratch;
    size_t all = m->by_row ? m->rows : m->cols, from = (size_t)chunk * m->outputs,
           to = all - from < m->outputs ? all : from + m->outputs;
    for (size_t i = m->by_row ? from : 0; i < (m->by_row ? to : m->rows); i++)
        add_magnitudes(m, i, m->by_row ? 0 : from, m->by_row ? m->cols : to,
                       m->largest + (m->by_row ? i : from));
}

/* Largest magnitude of each output's weights / 127. */
static const float *scales(const ses_model *m, const ses_param *p, ses_arena *mem, ses_err *e)
{
    enum { ROWS = 16, COLUMNS = 256 };
    const ses_tensor *t = p->tensor;
    bool by_row = p->layout == SES_OUT_IN;
    size_t rows = (size_t)ses_weight_dim(t, 0), cols = (size_t)ses_weight_dim(t, 1), n = by_row ? rows : cols;
    float *scale = ses_arena_array(mem, n, sizeof *scale, e);
    if (!scale) return NULL;
    magnitudes a = {
        m->dev, t, scale, rows, cols, by_row ? ROWS : m->dev->is_host ? COLUMNS : PIECE, by_row
    };
    ses_parallel_for(pool_of(m->dev), (int64_t)((n + a.outputs - 1) / a.outputs), magnitudes_chunk, &a);
    for (size_t i = 0; i < n; i++) scale[i] /= 127;
    return scale;
}

bool ses_param_source_init(ses_param_source *s, const ses_model *m, const ses_param *p,
                           const ses_save_options *o, ses_arena *mem, ses_err *e)
{
    *s = (ses_param_source){ .dev = m->dev, .t = p->tensor, .dtype = stored_as(p, o), .layout = p->layout };
    if (s->dtype == SES_I8) s->scale = scales(m, p, mem, e);
    return s->dtype != SES_I8 || s->scale;
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
    if (o->dtype == SES_I8 && !adapter && !ses_safetensors_writer_add_checksum(w, e)) goto done;
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
