/* Writer of safetensors files: collects tensors, sorts them and writes one file. */
#include "safetensors_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "sesame/json.h"
#include "sesame/unstable/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = SES_SAFETENSORS_CHUNK };

ses_safetensors_writer *ses_safetensors_writer_new(ses_err *e)
{
    return ses_alloc(sizeof(ses_safetensors_writer), e);
}

void ses_safetensors_writer_free(ses_safetensors_writer *w)
{
    if (!w) return;
    ses_free(w->item);
    ses_free(w->meta);
    ses_strmap_free(&w->names);
    ses_arena_free(&w->arena);
    ses_free(w);
}

static bool measure(ses_pending_entry *x, int rank, const int64_t *dim, ses_err *e)
{
    if (rank < 0 || rank > SES_ENTRY_MAX_DIM)
        return ses_fail(e, SES_EARG, "%d axes, the maximum is %d", rank, SES_ENTRY_MAX_DIM);
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0 || !ses_mul_i64(count, dim[i], &count))
            return ses_fail(e, SES_EARG, "axis %d has the invalid size %lld", i, (long long)dim[i]);
        x->dim[i] = dim[i];
    }
    x->rank = rank;
    if (!ses_dtype_size(x->dtype)) return ses_fail(e, SES_EARG, "unknown dtype");
    return ses_mul_size((size_t)count, ses_dtype_size(x->dtype), &x->bytes) ||
           ses_fail(e, SES_EARG, "too large");
}

static bool add(ses_safetensors_writer *w, const char *name, const ses_pending_entry *from, int rank,
                const int64_t *dim, ses_err *e)
{
    size_t n = strlen(name);
    ses_pending_entry x = *from;
    if (!ses_array_reserve(&w->item, &w->cap, w->n + 1, sizeof *w->item, e)) return false;
    bool fresh = false;
    if (strcmp(name, "__metadata__") == 0)
        ses_fail(e, SES_EARG, "this name is reserved by the format");
    else if (measure(&x, rank, dim, e) && (x.name = ses_arena_strndup(&w->arena, name, n, e)) &&
             ses_strmap_insert(&w->names, x.name, n, 0, &fresh, e) && !fresh)
        ses_fail(e, SES_EARG, "added twice");
    if (!fresh) return ses_wrap(e, "tensor \"%s\"", ses_quoted_of(name, n).s);
    w->item[w->n++] = x;
    return true;
}

bool ses_safetensors_writer_add(ses_safetensors_writer *w, const char *name, ses_dtype dtype, int rank,
                                const int64_t *dim, const void *data, ses_err *e)
{
    return add(w, name, &(ses_pending_entry){ .dtype = dtype, .data = data }, rank, dim, e);
}

bool ses_safetensors_writer_add_source(ses_safetensors_writer *w, const char *name, ses_dtype dtype, int rank,
                                       const int64_t *dim, ses_tensor_source *source, void *ctx, ses_err *e)
{
    return add(w, name, &(ses_pending_entry){ .dtype = dtype, .source = source, .ctx = ctx }, rank, dim, e);
}

bool ses_safetensors_writer_add_slice(ses_safetensors_writer *w, const char *name, ses_dtype dtype,
                                      int64_t count, size_t first, size_t held, ses_tensor_source *source,
                                      void *ctx, ses_err *e)
{
    ses_pending_entry x = { .dtype = dtype, .source = source, .ctx = ctx, .first = first, .held = held };
    return add(w, name, &x, 1, &count, e);
}

bool ses_safetensors_writer_add_meta(ses_safetensors_writer *w, const char *key, const char *value,
                                     ses_err *e)
{
    if (!ses_array_reserve(&w->meta, &w->cap_meta, w->n_meta + 1, sizeof *w->meta, e)) return false;
    for (size_t i = 0; i < w->n_meta; i++)
        if (strcmp(w->meta[i].key, key) == 0)
            return ses_fail(e, SES_EARG, "metadata \"%s\" added twice", ses_quoted_of(key, strlen(key)).s);
    ses_meta *x = &w->meta[w->n_meta];
    x->key = ses_arena_strndup(&w->arena, key, strlen(key), e);
    x->value = ses_arena_strndup(&w->arena, value, strlen(value), e);
    if (!x->key || !x->value) return false;
    w->n_meta++;
    return true;
}

/* The safetensors library sorts by dtype in this order, then by name. */
static int dtype_rank(ses_dtype d)
{
    static const ses_dtype order[] = { SES_I64, SES_F64, SES_F32, SES_I32, SES_BF16,
                                       SES_F16, SES_I16, SES_I8,  SES_U8,  SES_BOOL };
    int i = 0;
    while (i < (int)SES_LEN(order) && order[i] != d) i++;
    return i;
}

static int by_dtype_and_name(const void *a, const void *b)
{
    const ses_pending_entry *x = *(const ses_pending_entry *const *)a,
                            *y = *(const ses_pending_entry *const *)b;
    int p = dtype_rank(x->dtype), q = dtype_rank(y->dtype);
    return p != q ? p - q : strcmp(x->name, y->name);
}

static void put_tensor(ses_json_writer *j, const ses_pending_entry *x, size_t begin)
{
    ses_json_member_object(j, x->name);
    ses_json_member_string(j, "dtype", ses_dtype_name(x->dtype));
    ses_json_member_array(j, "shape");
    for (int i = 0; i < x->rank; i++) ses_json_put_int(j, x->dim[i]);
    ses_json_end_array(j);
    ses_json_member_array(j, "data_offsets");
    ses_json_put_uint(j, begin);
    ses_json_put_uint(j, begin + x->bytes);
    ses_json_end_array(j);
    ses_json_end_object(j);
}

/* Header length, JSON, and spaces up to a multiple of 8; *total: bytes of all tensors. */
static bool make_header(ses_buf *out, const ses_safetensors_writer *w, const ses_pending_entry *const *item,
                        size_t n, uint64_t *total, ses_err *e)
{
    ses_json_writer *j = ses_json_writer_new(-1, e);
    if (!j) return false;
    ses_json_begin_object(j);
    if (w->n_meta) {
        ses_json_member_object(j, "__metadata__");
        for (size_t i = 0; i < w->n_meta; i++) {
            ses_json_member_string(j, w->meta[i].key, w->meta[i].value);
        }
        ses_json_end_object(j);
    }
    size_t at = 0, len = 0;
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++) {
        put_tensor(j, item[i], at);
        fits = ses_add_size(at, item[i]->bytes, &at);
    }
    ses_json_end_object(j);
    const char *text = fits ? ses_json_writer_text(j, &len, e) : NULL;
    if (!fits) ses_fail(e, SES_EARG, "the number of bytes exceeds 64 bits");
    size_t padded = (len + 7) & ~(size_t)7;
    if (text && padded > SES_SAFETENSORS_MAX_HEADER) {
        ses_fail(e, SES_EARG, "header of %zu bytes, the maximum is %d", padded, SES_SAFETENSORS_MAX_HEADER);
        text = NULL;
    }
    if (text) {
        for (int i = 0; i < 8; i++) ses_buf_put(out, (char)(padded >> (8 * i)));
        ses_buf_append(out, text, len);
        while (out->len < 8 + padded && ses_buf_put(out, ' ')) continue;
    }
    ses_json_writer_free(j);
    *total = at;
    return text && ses_buf_ok(out, e);
}

static bool put_data(ses_file_writer *f, const ses_pending_entry *x, char *chunk, ses_err *e)
{
    if (!x->source) return ses_file_writer_put(f, x->data, x->bytes, e);
    for (size_t at = 0; at < x->bytes;) {
        size_t n = x->bytes - at < CHUNK ? x->bytes - at : CHUNK;
        if (!x->source(x->ctx, chunk, at, n, e))
            return ses_wrap(e, "tensor \"%s\"", ses_quoted_of(x->name, strlen(x->name)).s);
        if (!ses_file_writer_put(f, chunk, n, e)) return false;
        at += n;
    }
    return true;
}

static bool has_checksum(const ses_safetensors_writer *w)
{
    for (size_t i = 0; i < w->n_meta; i++)
        if (!strcmp(w->meta[i].key, SES_SAFETENSORS_CHECKSUM)) return true;
    return false;
}

/* The digits are known when all bytes are in the file. */
static bool put_checksum(ses_file_writer *f, size_t head, ses_err *e)
{
    ses_mmap m;
    char hex[24];
    size_t at = 0;
    bool ok = ses_file_writer_map(f, &m, e) && ses_safetensors_checksum(m.data, m.size, head, &at, hex, e);
    ses_mmap_free(&m);
    return ok && ses_file_writer_patch(f, at, hex, strlen(hex), e);
}

bool ses_safetensors_header(const ses_safetensors_writer *w, const ses_pending_entry **item, size_t n,
                            ses_buf *out, uint64_t *total, ses_err *e)
{
    if (n) qsort(item, n, sizeof *item, by_dtype_and_name);
    return make_header(out, w, item, n, total, e);
}

ses_file_writer *ses_safetensors_prepare(const ses_safetensors_writer *w, const ses_pending_entry **item,
                                         size_t n, const char *path, bool overwrite, ses_err *e)
{
    ses_buf header = { 0 };
    uint64_t total = 0;
    char *chunk = NULL;
    ses_file_writer *f = NULL;
    if (!ses_safetensors_header(w, item, n, &header, &total, e)) {
        ses_wrap(e, "%s", path);
        goto fail;
    }
    chunk = ses_alloc_aligned(CHUNK, e);
    f = chunk ? ses_file_writer_open(path, overwrite, e) : NULL;
    if (!f || !ses_file_writer_check_space(f, total + header.len, e) ||
        !ses_file_writer_put(f, header.data, header.len, e))
        goto fail;
    for (size_t i = 0; i < n; i++)
        if (!put_data(f, item[i], chunk, e)) goto fail;
    if ((has_checksum(w) && !put_checksum(f, header.len, e)) || !ses_file_writer_sync(f, e)) goto fail;
    ses_free(chunk);
    ses_buf_free(&header);
    return f;
fail:
    ses_file_writer_free(f);
    ses_free(chunk);
    ses_buf_free(&header);
    return NULL;
}

bool ses_safetensors_save(const ses_safetensors_writer *w, const char *path, bool overwrite, ses_err *e)
{
    const ses_pending_entry **item = ses_alloc_array(w->n, sizeof *item, e);
    if (!item) return false;
    for (size_t i = 0; i < w->n; i++) item[i] = &w->item[i];
    ses_file_writer *f = ses_safetensors_prepare(w, item, w->n, path, overwrite, e);
    bool ok = f && ses_file_writer_commit(f, e);
    ses_file_writer_free(f);
    ses_free(item);
    return ok;
}
