/* Reader of safetensors files. The whole header is checked before a tensor is returned. */
#include "safetensors_impl.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/str.h"
#include "folder/file_kind.h"
#include "sesame/json.h"
#include "sesame/unstable/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "mapped tensors are little-endian");

/* File layout: header length (8 bytes, little-endian), a JSON object, the data of the tensors end to end. */
typedef struct layout {
    const unsigned char *data; /* after the header */
    uint64_t size;
    const char *file;
} layout;

/* A tensor as declared by the header. */
typedef struct claim {
    ses_tensor_entry entry;
    uint64_t begin, end;
} claim;

bool ses_check_not_lfs(const void *p, size_t n, const char *what, ses_err *e)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/";
    if (n < sizeof lfs - 1 || memcmp(p, lfs, sizeof lfs - 1) != 0) return true;
    return ses_fail(e, SES_EFORMAT, "a Git LFS pointer instead of the %s: run `git lfs pull`", what);
}

static bool read_header(const unsigned char *p, size_t n, ses_json_doc **doc, layout *l, ses_err *e)
{
    if (!ses_check_not_lfs(p, n, "weights", e)) return false;
    if (n < 8)
        return ses_fail(e, SES_EFORMAT, "file of %zu bytes, too short for the header length (8 bytes)", n);
    uint64_t len = ses_le64(p);
    bool plausible = len <= SES_SAFETENSORS_MAX_HEADER && n > 8 && p[8] == '{';
    if (!plausible && !ses_file_kind_check(p, n, "safetensors", e)) return false;
    if (len > SES_SAFETENSORS_MAX_HEADER)
        return ses_fail(e, SES_EFORMAT,
                        "header of %" PRIu64 " bytes, the maximum is %d: not a safetensors file", len,
                        SES_SAFETENSORS_MAX_HEADER);
    if (len > n - 8)
        return ses_fail(e, SES_EFORMAT,
                        "header of %" PRIu64 " bytes past the end (%zu bytes follow its length)", len, n - 8);
    if (len == 0 || p[8] != '{') return ses_fail(e, SES_EFORMAT, "header does not begin with '{'");
    *doc = ses_json_parse((const char *)p + 8, (size_t)len, e);
    if (!*doc) return ses_wrap(e, "header");
    l->data = p + 8 + len;
    l->size = n - 8 - len;
    return true;
}

/* Shards repeat the metadata: it is taken from the first file that has any. */
static bool read_meta(ses_safetensors *s, const ses_json *meta, ses_err *e)
{
    if (ses_json_type_of(meta) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "__metadata__: an object of strings expected, not %s",
                        ses_json_type_name(ses_json_type_of(meta)));
    size_t n = ses_json_len(meta);
    bool use = n && !s->n_meta;
    if (use) {
        ses_free(s->meta); /* left by a shard that failed in the middle */
        s->meta = ses_alloc_array(n, sizeof *s->meta, e);
        if (!s->meta) return false;
    }
    for (size_t i = 0; i < n; i++) {
        size_t kn, vn;
        const char *key = ses_json_key(meta, i, &kn), *value = ses_json_string(ses_json_at(meta, i), &vn);
        if (!value)
            return ses_fail(e, SES_EFORMAT, "__metadata__: \"%s\": a string expected, not %s",
                            ses_quoted_of(key, kn).s,
                            ses_json_type_name(ses_json_type_of(ses_json_at(meta, i))));
        if (strlen(key) != kn || strlen(value) != vn)
            return ses_fail(e, SES_EFORMAT, "__metadata__: \"%s\": contains a NUL", ses_quoted_of(key, kn).s);
        if (!use) continue;
        ses_meta *x = &s->meta[i];
        x->key = ses_arena_strndup(&s->arena, key, kn, e);
        x->value = ses_arena_strndup(&s->arena, value, vn, e);
        if (!x->key || !x->value) return false;
        s->n_meta++;
    }
    return true;
}

static bool read_shape(claim *c, const ses_json *shape, ses_err *e)
{
    if (ses_json_type_of(shape) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "shape: an array expected, not %s",
                        ses_json_type_name(ses_json_type_of(shape)));
    size_t rank = ses_json_len(shape);
    if (rank > SES_ENTRY_MAX_DIM)
        return ses_fail(e, SES_EUNSUPPORTED, "shape of %zu axes, the maximum is %d", rank, SES_ENTRY_MAX_DIM);
    c->entry.rank = (int)rank;
    c->entry.count = 1;
    for (size_t i = 0; i < rank; i++) {
        int64_t d;
        if (!ses_json_int(ses_json_at(shape, i), &d) || d < 0)
            return ses_fail(e, SES_EFORMAT, "shape[%zu] is not an integer of at least 0", i);
        c->entry.dim[i] = d;
        if (!ses_mul_i64(c->entry.count, d, &c->entry.count))
            return ses_fail(e, SES_EFORMAT, "the number of elements exceeds 63 bits");
    }
    return true;
}

static bool read_offsets(claim *c, const ses_json *offsets, const layout *l, ses_err *e)
{
    if (ses_json_type_of(offsets) != SES_JSON_ARRAY || ses_json_len(offsets) != 2 ||
        !ses_json_uint(ses_json_at(offsets, 0), &c->begin) ||
        !ses_json_uint(ses_json_at(offsets, 1), &c->end))
        return ses_fail(e, SES_EFORMAT, "data_offsets: two byte offsets expected");
    if (c->begin > c->end)
        return ses_fail(e, SES_EFORMAT, "offsets %" PRIu64 " to %" PRIu64 " are in the wrong order", c->begin,
                        c->end);
    if (c->end > l->size)
        return ses_fail(e, SES_EFORMAT,
                        "offset %" PRIu64 " past the end (the file has %" PRIu64 " bytes of data)", c->end,
                        l->size);
    size_t want;
    if (!ses_mul_size((size_t)c->entry.count, ses_dtype_size(c->entry.dtype), &want))
        return ses_fail(e, SES_EFORMAT, "the number of bytes exceeds 64 bits");
    if (want != c->end - c->begin)
        return ses_fail(e, SES_EFORMAT, "offsets span %" PRIu64 " bytes, %" PRId64 " elements of %s need %zu",
                        c->end - c->begin, c->entry.count, ses_dtype_name(c->entry.dtype), want);
    c->entry.data = l->data + c->begin;
    c->entry.bytes = want;
    return true;
}

/* Reads dtype, shape and data_offsets; no other keys are allowed. */
static bool read_claim(claim *c, const ses_json *v, const layout *l, ses_err *e)
{
    if (ses_json_type_of(v) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "an object expected, not %s",
                        ses_json_type_name(ses_json_type_of(v)));
    static const char *const keys[] = { "dtype", "shape", "data_offsets" };
    for (size_t i = 0; i < SES_LEN(keys); i++)
        if (!ses_json_get(v, keys[i])) return ses_fail(e, SES_EFORMAT, "%s missing", keys[i]);
    for (size_t i = 0; i < ses_json_len(v) && ses_json_len(v) > SES_LEN(keys); i++) {
        size_t n;
        const char *key = ses_json_key(v, i, &n);
        if (strlen(key) != n || (strcmp(key, keys[0]) && strcmp(key, keys[1]) && strcmp(key, keys[2])))
            return ses_fail(e, SES_EFORMAT, "unknown key \"%s\"", ses_quoted_of(key, n).s);
    }
    size_t n;
    const char *dtype = ses_json_string(ses_json_get(v, "dtype"), &n);
    if (!dtype) return ses_fail(e, SES_EFORMAT, "dtype: a string expected");
    if (strlen(dtype) != n || !ses_dtype_from_name(dtype, &c->entry.dtype))
        return ses_fail(e, SES_EUNSUPPORTED, "unsupported dtype \"%s\"", ses_quoted_of(dtype, n).s);
    return read_shape(c, ses_json_get(v, "shape"), e) &&
           read_offsets(c, ses_json_get(v, "data_offsets"), l, e);
}

static int by_offset(const void *a, const void *b)
{
    const claim *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->entry.name, y->entry.name);
}

/* Sorted by offset, each tensor must begin at the end of the previous one, the first at 0; the last must end
 * the file. */
static bool check_contiguous(const claim *c, size_t n, uint64_t size, ses_err *e)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = c[i].entry.name;
        if (c[i].begin > at)
            return ses_fail(e, SES_EFORMAT, "tensor \"%s\": gap of %" PRIu64 " bytes before offset %" PRIu64,
                            ses_quoted_of(name, strlen(name)).s, c[i].begin - at, c[i].begin);
        if (c[i].begin < at)
            return ses_fail(e, SES_EFORMAT,
                            "tensor \"%s\": offset %" PRIu64 " overlaps the previous tensor (ends at %" PRIu64
                            ")",
                            ses_quoted_of(name, strlen(name)).s, c[i].begin, at);
        at = c[i].end;
    }
    if (at != size) return ses_fail(e, SES_EFORMAT, "%" PRIu64 " bytes after the last tensor", size - at);
    return true;
}

bool ses_tensor_entries_reserve(ses_safetensors *s, size_t more, ses_err *e)
{
    ses_tensor_entry *entry = ses_realloc_array(s->entry, s->n_entry + more, sizeof *entry, e);
    if (!entry) return false;
    s->entry = entry;
    return ses_strmap_reserve(&s->names, s->n_entry + more, e);
}

bool ses_tensor_entry_add(ses_safetensors *s, const ses_tensor_entry *x, ses_err *e)
{
    bool fresh = false;
    size_t n = strlen(x->name);
    const int64_t *at = ses_strmap_insert(&s->names, x->name, n, (int64_t)s->n_entry, &fresh, e);
    if (!at) return false;
    const char *file = fresh ? NULL : s->entry[*at].file;
    if (!fresh && file == x->file)
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\" appears twice", ses_quoted_of(x->name, n).s);
    if (!fresh)
        return ses_fail(e, SES_EFORMAT, "tensor \"%s\" is also in %s", ses_quoted_of(x->name, n).s, file);
    s->entry[s->n_entry++] = *x;
    return true;
}

static bool add_entries(ses_safetensors *s, const claim *c, size_t n, ses_err *e)
{
    if (!ses_tensor_entries_reserve(s, n, e)) return false;
    for (size_t i = 0; i < n; i++)
        if (!ses_tensor_entry_add(s, &c[i].entry, e)) return false;
    return true;
}

static bool read_tensors(ses_safetensors *s, const ses_json *root, const layout *l, ses_err *e)
{
    size_t n = ses_json_len(root), used = 0;
    bool ok = false;
    claim *c = ses_alloc_array(n, sizeof *c, e);
    if (!c) return false;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *name = ses_json_key(root, i, &len);
        const ses_json *v = ses_json_at(root, i);
        if (strcmp(name, "__metadata__") == 0 && len == 12) {
            if (!read_meta(s, v, e)) goto done;
            continue;
        }
        claim *x = &c[used++];
        x->entry.file = l->file;
        x->entry.name = ses_arena_strndup(&s->arena, name, len, e);
        if (!x->entry.name) goto done;
        if (strlen(name) != len) ses_fail(e, SES_EFORMAT, "NUL in its name");
        if (strlen(name) != len || !read_claim(x, v, l, e)) {
            ses_wrap(e, "tensor \"%s\"", ses_quoted_of(name, len).s);
            goto done;
        }
    }
    if (used) qsort(c, used, sizeof *c, by_offset);
    ok = check_contiguous(c, used, l->size, e) && add_entries(s, c, used, e);
done:
    ses_free(c);
    return ok;
}

/* Compares the checksum, if there is one. */
static bool check_sum(const void *bytes, size_t n, const ses_json *root, const layout *l, ses_err *e)
{
    size_t at;
    char hex[24];
    const ses_json *v = ses_json_get(ses_json_get(root, "__metadata__"), SES_SAFETENSORS_CHECKSUM);
    const char *is = ses_json_string(v, NULL);
    if (!is) return true;
    if (!ses_safetensors_checksum(bytes, n, n - (size_t)l->size, &at, hex, e)) return false;
    return !strcmp(hex, is) || ses_fail(e, SES_EFORMAT, "damaged: its checksum is not that of its bytes");
}

bool ses_safetensors_add(ses_safetensors *s, const void *bytes, size_t n, const char *file, ses_err *e)
{
    layout l = { .file = ses_arena_strndup(&s->arena, file, strlen(file), e) };
    ses_json_doc *doc = NULL;
    bool ok = l.file && read_header(bytes, n, &doc, &l, e) &&
              check_sum(bytes, n, ses_json_root(doc), &l, e) && read_tensors(s, ses_json_root(doc), &l, e);
    ses_json_free(doc);
    return ok;
}

ses_safetensors *ses_tensors_from_memory(ses_tensor_reader *read, const void *bytes, size_t n,
                                         const char *file, ses_err *e)
{
    ses_safetensors *s = ses_alloc(sizeof *s, e);
    if (s && read(s, bytes, n, file, e)) return s;
    ses_wrap(e, "%s", file);
    ses_safetensors_free(s);
    return NULL;
}

ses_safetensors *ses_safetensors_from_memory(const void *bytes, size_t n, const char *file, ses_err *e)
{
    return ses_tensors_from_memory(ses_safetensors_add, bytes, n, file, e);
}

static ses_tensor_reader *reader_of(const ses_mmap *m)
{
    if (ses_is_torch_file(m->data, m->size)) return ses_torch_add;
    return ses_is_hdf5_file(m->data, m->size) ? ses_hdf5_add : ses_safetensors_add;
}

ses_safetensors *ses_tensors_open(ses_tensor_reader *read, const char *path, ses_err *e)
{
    ses_safetensors *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->map = ses_alloc(sizeof *s->map, e);
    if (!s->map || !ses_mmap_open(s->map, path, e)) goto fail;
    s->n_map = 1;
    if (!read) read = reader_of(s->map);
    if (!read(s, s->map->data, s->map->size, ses_path_basename(path), e)) {
        ses_wrap(e, "%s", path);
        goto fail;
    }
    return s;
fail:
    ses_safetensors_free(s);
    return NULL;
}

ses_safetensors *ses_safetensors_open(const char *path, ses_err *e)
{
    return ses_tensors_open(ses_safetensors_add, path, e);
}

void ses_safetensors_free(ses_safetensors *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n_map; i++) ses_mmap_free(&s->map[i]);
    ses_free(s->map);
    ses_free(s->entry);
    ses_free(s->meta);
    ses_strmap_free(&s->names);
    ses_arena_free(&s->arena);
    ses_free(s);
}

size_t ses_safetensors_count(const ses_safetensors *s) { return s ? s->n_entry : 0; }

const ses_tensor_entry *ses_safetensors_at(const ses_safetensors *s, size_t i)
{
    return i < ses_safetensors_count(s) ? &s->entry[i] : NULL;
}

const ses_tensor_entry *ses_safetensors_find(const ses_safetensors *s, const char *name)
{
    int64_t i;
    return s && ses_strmap_find(&s->names, name, strlen(name), &i) ? &s->entry[i] : NULL;
}

bool ses_safetensors_is_mapped(const ses_safetensors *s, const ses_tensor_entry *x)
{
    uintptr_t at = (uintptr_t)x->data;
    for (size_t i = 0; i < s->n_map; i++)
        if (at >= (uintptr_t)s->map[i].data && at - (uintptr_t)s->map[i].data < s->map[i].size) return true;
    return false;
}

static bool has_scale(const ses_safetensors *s, const ses_tensor_entry *x)
{
    char name[512];
    int n = snprintf(name, sizeof name, "%s_scale", x->name);
    return n > 0 && (size_t)n < sizeof name && ses_safetensors_find(s, name);
}

ses_dtype ses_tensors_dtype(const ses_safetensors *s)
{
    int64_t count[SES_DTYPE_COUNT] = { 0 };
    ses_dtype most = SES_F32;
    for (size_t i = 0; i < s->n_entry; i++) {
        if (s->entry[i].dtype == SES_I8 && has_scale(s, &s->entry[i])) return SES_I8;
        count[s->entry[i].dtype] += s->entry[i].count;
    }
    for (int d = 0; d < SES_DTYPE_COUNT; d++)
        if (count[d] > count[most]) most = (ses_dtype)d;
    return most;
}

size_t ses_safetensors_meta_count(const ses_safetensors *s) { return s ? s->n_meta : 0; }

bool ses_safetensors_meta_at(const ses_safetensors *s, size_t i, const char **key, const char **value)
{
    if (i >= ses_safetensors_meta_count(s)) return false;
    *key = s->meta[i].key;
    *value = s->meta[i].value;
    return true;
}

bool ses_tensor_entry_to_f32(const ses_tensor_entry *t, float *out, ses_err *e)
{
    return ses_convert(out, SES_F32, t->data, t->dtype, (size_t)t->count, e);
}
