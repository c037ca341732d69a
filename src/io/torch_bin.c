/* Reader of PyTorch's .bin files. Since PyTorch 1.6 torch.save writes a zip archive:
 *     NAME/data.pkl       a dict from names to calls that would create the tensors; nothing is called here
 *     NAME/data/KEY       the bytes of each storage; tensors are views by offset, sizes and strides
 *     NAME/byteorder      "little", if present
 * The legacy format is five pickles (magic number, format version, system info, the dict, the list of storage
 * keys), followed by each storage: its element count in 8 bytes and its elements. Contiguous tensors are used
 * in place; others are copied. */
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/str.h"
#include "folder/file_kind.h"
#include "pickle.h"
#include "safetensors_impl.h"
#include "sesame/unstable/tensor.h"
#include "zip.h"

#include <inttypes.h>
#include <string.h>

/* Ids of the allowed globals; storages and dtypes add their ses_dtype. */
enum { CONTAINER, TENSOR, TENSOR_V2, TENSOR_V3, PARAMETER, STORAGE = 16, DTYPE = 32 };

#define FUNCTION(name, id)                            \
    {                                                 \
        "torch._utils", name, SES_PICKLE_FUNCTION, id \
    }
#define STORAGE_OF(name, dtype)                                          \
    {                                                                    \
        "torch", name "Storage", SES_PICKLE_NAME_ONLY, STORAGE + (dtype) \
    }
#define DTYPE_OF(name, dtype)                                \
    {                                                        \
        "torch", name, SES_PICKLE_NAME_ONLY, DTYPE + (dtype) \
    }

static const ses_pickle_global allowed[] = {
    { "collections", "OrderedDict", SES_PICKLE_NEW_DICT, CONTAINER },
    { "torch", "Size", SES_PICKLE_IDENTITY, CONTAINER },
    FUNCTION("_rebuild_tensor", TENSOR),
    FUNCTION("_rebuild_tensor_v2", TENSOR_V2),
    FUNCTION("_rebuild_tensor_v3", TENSOR_V3),
    FUNCTION("_rebuild_parameter", PARAMETER),
    STORAGE_OF("Float", SES_F32),
    STORAGE_OF("Half", SES_F16),
    STORAGE_OF("BFloat16", SES_BF16),
    STORAGE_OF("Double", SES_F64),
    STORAGE_OF("Long", SES_I64),
    STORAGE_OF("Int", SES_I32),
    STORAGE_OF("Short", SES_I16),
    STORAGE_OF("Char", SES_I8),
    STORAGE_OF("Byte", SES_U8),
    STORAGE_OF("Bool", SES_BOOL),
    { "torch.storage", "UntypedStorage", SES_PICKLE_NAME_ONLY, STORAGE + SES_U8 }, /* its count is in bytes */
    DTYPE_OF("float32", SES_F32),
    DTYPE_OF("float16", SES_F16),
    DTYPE_OF("bfloat16", SES_BF16),
    DTYPE_OF("float64", SES_F64),
    DTYPE_OF("int64", SES_I64),
    DTYPE_OF("int32", SES_I32),
    DTYPE_OF("int16", SES_I16),
    DTYPE_OF("int8", SES_I8),
    DTYPE_OF("uint8", SES_U8),
    DTYPE_OF("bool", SES_BOOL),
};

typedef struct storage {
    const char *key;
    size_t key_len;
    ses_dtype dtype;
    int64_t count;             /* elements, from the pickle */
    const unsigned char *data; /* in the file; NULL: not known yet */
    size_t bytes;
} storage;

typedef struct reader {
    ses_safetensors *to;
    ses_zip zip;
    ses_pickle *pickle;
    const char *prefix; /* "NAME/" */
    size_t prefix_len;
    ses_buf path;       /* scratch: path of an archive entry */
    size_t copy_budget; /* bytes that copies of tensors may still take; starts as the file size */
    bool (*locate)(struct reader *, storage *, ses_err *); /* finds the bytes of a storage */
    storage *legacy;                                       /* storages of a legacy file */
    size_t n_legacy, cap_legacy;
    ses_strmap keys; /* key to index in legacy */
} reader;

/* A tensor's view of its storage. */
typedef struct view {
    int64_t offset, stride[SES_ENTRY_MAX_DIM]; /* in elements */
} view;

/* ---- the archive ---- */

/* The archive entry NAME/tail; NULL if absent, or if out of memory, which sets *e. */
static const ses_zip_entry *record(reader *r, const char *dir, const char *tail, size_t n, ses_err *e)
{
    r->path.len = 0;
    ses_buf_append(&r->path, r->prefix, r->prefix_len);
    ses_buf_puts(&r->path, dir);
    ses_buf_append(&r->path, tail, n);
    return ses_buf_ok(&r->path, e) ? ses_zip_find(&r->zip, r->path.data, r->path.len) : NULL;
}

/* NAME/data.pkl; NAME depends on the file name at the time of writing. */
static const ses_zip_entry *find_pickle(reader *r, ses_err *e)
{
    static const char tail[] = "/data.pkl";
    enum { TAIL = sizeof tail - 1 };
    const ses_zip_entry *found = NULL;
    for (size_t i = 0; i < r->zip.n; i++) {
        const ses_zip_entry *x = &r->zip.entry[i];
        if (x->name_len <= TAIL || memcmp(x->name + x->name_len - TAIL, tail, TAIL) != 0 ||
            memchr(x->name, '/', x->name_len - TAIL))
            continue;
        if (found) {
            ses_fail(e, SES_EFORMAT, "both \"%s\" and \"%s\" found",
                     ses_quoted_of(found->name, found->name_len).s, ses_quoted_of(x->name, x->name_len).s);
            return NULL;
        }
        found = x;
    }
    if (!found) {
        ses_fail(e, SES_EFORMAT, "a zip archive without data.pkl: not written by torch.save");
        return NULL;
    }
    r->prefix = found->name;
    r->prefix_len = found->name_len - TAIL + 1;
    return found;
}

static bool check_records(reader *r, ses_err *e)
{
    static const char script[] = "constants.pkl", order[] = "byteorder";
    const ses_zip_entry *x = record(r, "", script, sizeof script - 1, e);
    if (x) return ses_fail(e, SES_EUNSUPPORTED, "a TorchScript program, not a dict of tensors");
    x = record(r, "", order, sizeof order - 1, e);
    if (!x) return ses_buf_ok(&r->path, e);
    if (x->size == 6 && !memcmp(x->data, "little", 6)) return true;
    return ses_fail(e, SES_EUNSUPPORTED, "byte order \"%s\", expected \"little\"",
                    ses_quoted_of((const char *)x->data, x->size).s);
}

static bool locate_in_archive(reader *r, storage *s, ses_err *e)
{
    const ses_zip_entry *z = record(r, "data/", s->key, s->key_len, e);
    if (!z)
        return ses_fail(e, SES_EFORMAT, "storage \"%s\" is not in the archive",
                        ses_quoted_of(s->key, s->key_len).s);
    s->data = z->data;
    s->bytes = z->size;
    return true;
}

/* ---- tensors ---- */

static int id_of(const reader *r, const ses_pickle_node *x, ses_pickle_kind kind)
{
    return ses_pickle_kind_of(x) == kind ? ses_pickle_global_of(r->pickle, x)->id : -1;
}

/* ("storage", type, key, device, count); in legacy files a sixth element describes a view of another
 * storage. */
static bool read_storage(reader *r, const ses_pickle_node *x, storage *s, ses_err *e)
{
    size_t word_len = 0, want = r->locate == locate_in_archive ? 5 : 6;
    if (ses_pickle_kind_of(x) != SES_PICKLE_PERSID)
        return ses_fail(e, SES_EFORMAT, "storage: a persistent id expected, not %s",
                        ses_pickle_kind_name(ses_pickle_kind_of(x)));
    const ses_pickle_node *id = ses_pickle_payload(r->pickle, x);
    if (ses_pickle_kind_of(id) != SES_PICKLE_TUPLE || ses_pickle_len(id) != want)
        return ses_fail(e, SES_EFORMAT, "storage: a persistent id of %zu elements expected", want);
    const char *word = ses_pickle_string(r->pickle, ses_pickle_at(r->pickle, id, 0), &word_len);
    int type = id_of(r, ses_pickle_at(r->pickle, id, 1), SES_PICKLE_GLOBAL);
    s->key = ses_pickle_string(r->pickle, ses_pickle_at(r->pickle, id, 2), &s->key_len);
    if (!word || word_len != 7 || memcmp(word, "storage", 7) != 0 || type < STORAGE || type >= DTYPE ||
        !s->key || !ses_pickle_int(ses_pickle_at(r->pickle, id, 4), &s->count) || s->count < 0)
        return ses_fail(e, SES_EFORMAT, "storage: (\"storage\", type, key, device, size) expected");
    if (want == 6 && ses_pickle_kind_of(ses_pickle_at(r->pickle, id, 5)) != SES_PICKLE_NONE)
        return ses_fail(e, SES_EUNSUPPORTED, "storage \"%s\" is a view of another storage",
                        ses_quoted_of(s->key, s->key_len).s);
    s->dtype = (ses_dtype)(type - STORAGE);
    return true;
}

static bool check_size(const storage *s, ses_err *e)
{
    size_t want;
    if (ses_mul_size((size_t)s->count, ses_dtype_size(s->dtype), &want) && want == s->bytes) return true;
    return ses_fail(e, SES_EFORMAT, "storage \"%s\" has %zu bytes, expected %" PRId64 " elements of %s",
                    ses_quoted_of(s->key, s->key_len).s, s->bytes, s->count, ses_dtype_name(s->dtype));
}

static bool find_storage(reader *r, const ses_pickle_node *x, storage *s, ses_err *e)
{
    return read_storage(r, x, s, e) && r->locate(r, s, e) && check_size(s, e);
}

/* Reads offset, sizes and strides. */
static bool read_shape(reader *r, const ses_pickle_node *args, ses_tensor_entry *t, view *g, ses_err *e)
{
    const ses_pickle_node *size = ses_pickle_at(r->pickle, args, 2),
                          *stride = ses_pickle_at(r->pickle, args, 3);
    if (!ses_pickle_int(ses_pickle_at(r->pickle, args, 1), &g->offset) || g->offset < 0)
        return ses_fail(e, SES_EFORMAT, "the storage offset is not an integer of at least 0");
    if (ses_pickle_kind_of(size) != SES_PICKLE_TUPLE || ses_pickle_kind_of(stride) != SES_PICKLE_TUPLE)
        return ses_fail(e, SES_EFORMAT, "shape and strides: tuples expected, not %s and %s",
                        ses_pickle_kind_name(ses_pickle_kind_of(size)),
                        ses_pickle_kind_name(ses_pickle_kind_of(stride)));
    size_t rank = ses_pickle_len(size);
    if (rank > SES_ENTRY_MAX_DIM)
        return ses_fail(e, SES_EUNSUPPORTED, "shape of %zu axes, the maximum is %d", rank, SES_ENTRY_MAX_DIM);
    if (ses_pickle_len(stride) != rank)
        return ses_fail(e, SES_EFORMAT, "shape of %zu axes, but %zu strides", rank, ses_pickle_len(stride));
    t->rank = (int)rank;
    t->count = 1;
    for (size_t i = 0; i < rank; i++) {
        if (!ses_pickle_int(ses_pickle_at(r->pickle, size, i), &t->dim[i]) || t->dim[i] < 0)
            return ses_fail(e, SES_EFORMAT, "shape[%zu] is not an integer of at least 0", i);
        if (!ses_pickle_int(ses_pickle_at(r->pickle, stride, i), &g->stride[i]) || g->stride[i] < 0)
            return ses_fail(e, SES_EFORMAT, "stride[%zu] is not an integer of at least 0", i);
        if (!ses_mul_i64(t->count, t->dim[i], &t->count))
            return ses_fail(e, SES_EFORMAT, "the number of elements exceeds 63 bits");
    }
    return true;
}

/* The last element, `offset + sum (dim - 1) stride`, must be inside the storage. */
static bool check_bounds(const ses_tensor_entry *t, const view *g, const storage *s, ses_err *e)
{
    size_t last = (size_t)g->offset, step, have = s->bytes / ses_dtype_size(t->dtype);
    bool fits = true;
    for (int i = 0; i < t->rank && fits; i++)
        fits = ses_mul_size((size_t)(t->dim[i] - 1), (size_t)g->stride[i], &step) &&
               ses_add_size(last, step, &last);
    if (!fits) return ses_fail(e, SES_EFORMAT, "the last offset exceeds 64 bits");
    if (last >= have) return ses_fail(e, SES_EFORMAT, "uses element %zu of a storage of %zu", last, have);
    return true;
}

static bool is_contiguous(const ses_tensor_entry *t, const view *g)
{
    int64_t step = 1;
    for (int i = t->rank; i-- > 0; step *= t->dim[i])
        if (t->dim[i] != 1 && g->stride[i] != step) return false;
    return true;
}

/* Copies the elements in row-major order of the shape. */
static void gather(unsigned char *to, const unsigned char *from, const ses_tensor_entry *t, const view *g,
                   size_t size)
{
    int64_t at[SES_ENTRY_MAX_DIM] = { 0 };
    size_t i = 0;
    for (int64_t k = 0; k < t->count; k++) {
        memcpy(to + (size_t)k * size, from + i * size, size);
        for (int a = t->rank; a-- > 0;) {
            i += (size_t)g->stride[a];
            if (++at[a] < t->dim[a]) break;
            i -= (size_t)(g->stride[a] * t->dim[a]);
            at[a] = 0;
        }
    }
}

static bool put_data(reader *r, ses_tensor_entry *t, const view *g, const storage *s, ses_err *e)
{
    size_t size = ses_dtype_size(t->dtype);
    t->data = s->data;
    if (!t->count) return true;
    if (!check_bounds(t, g, s, e)) return false;
    const unsigned char *from = s->data + (size_t)g->offset * size;
    if (is_contiguous(t, g)) {
        t->data = from;
        t->bytes = (size_t)t->count * size; /* within the storage */
        return true;
    }
    if (!ses_mul_size((size_t)t->count, size, &t->bytes) || t->bytes > r->copy_budget)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "not contiguous, and its %" PRId64 " elements exceed the size of the file", t->count);
    unsigned char *copy = ses_arena_alloc(&r->to->arena, t->bytes, e);
    if (!copy) return false;
    r->copy_budget -= t->bytes;
    gather(copy, from, t, g, size);
    t->data = copy;
    return true;
}

/* _rebuild_tensor(storage, offset, shape, strides); v2 adds requires_grad, hooks and optional metadata; v3
 * adds a dtype before the metadata. Returns the arguments; *id: the function. NULL: not a tensor. */
static const ses_pickle_node *arguments(const reader *r, const ses_pickle_node *x, int *id, ses_err *e)
{
    static const struct {
        uint8_t min, max;
    } count[] = { [TENSOR] = { 4, 4 }, [TENSOR_V2] = { 6, 7 }, [TENSOR_V3] = { 7, 8 } };
    *id = id_of(r, x, SES_PICKLE_CALL);
    if (*id == PARAMETER) { /* (tensor, requires_grad, hooks) */
        x = ses_pickle_payload(r->pickle, x);
        if (ses_pickle_len(x) != 3) {
            ses_fail(e, SES_EFORMAT, "parameter with %zu arguments, expected 3", ses_pickle_len(x));
            return NULL;
        }
        x = ses_pickle_at(r->pickle, x, 0);
        *id = id_of(r, x, SES_PICKLE_CALL);
    }
    if (*id < TENSOR || *id > TENSOR_V3) {
        bool dict = ses_pickle_kind_of(x) == SES_PICKLE_DICT; /* a checkpoint with more than the weights */
        ses_fail(e, SES_EUNSUPPORTED, "%s, not a tensor%s", ses_pickle_kind_name(ses_pickle_kind_of(x)),
                 dict ? ": save the state dict alone, torch.save(model.state_dict(), FILE)" : "");
        return NULL;
    }
    const ses_pickle_node *args = ses_pickle_payload(r->pickle, x);
    size_t n = ses_pickle_len(args);
    if (n >= count[*id].min && n <= count[*id].max) return args;
    ses_fail(e, SES_EFORMAT, "%zu arguments for %s", n, ses_pickle_global_of(r->pickle, x)->name);
    return NULL;
}

static bool read_tensor(reader *r, const ses_pickle_node *x, ses_tensor_entry *t, ses_err *e)
{
    int id;
    storage s = { 0 };
    view g = { 0 };
    const ses_pickle_node *args = arguments(r, x, &id, e);
    if (!args || !find_storage(r, ses_pickle_at(r->pickle, args, 0), &s, e)) return false;
    t->dtype = s.dtype;
    if (id == TENSOR_V3) {
        int dtype = id_of(r, ses_pickle_at(r->pickle, args, 6), SES_PICKLE_GLOBAL);
        if (dtype < DTYPE) return ses_fail(e, SES_EFORMAT, "dtype: a torch dtype expected");
        t->dtype = (ses_dtype)(dtype - DTYPE);
    }
    return read_shape(r, args, t, &g, e) && put_data(r, t, &g, &s, e);
}

static bool read_pair(reader *r, const ses_pickle_node *key, const ses_pickle_node *value, const char *file,
                      ses_err *e)
{
    size_t n;
    const char *name = ses_pickle_string(r->pickle, key, &n);
    if (!name)
        return ses_fail(e, SES_EUNSUPPORTED, "a key of the dict is %s, expected a tensor name",
                        ses_pickle_kind_name(ses_pickle_kind_of(key)));
    ses_tensor_entry t = { .file = file };
    if (memchr(name, 0, n))
        ses_fail(e, SES_EFORMAT, "NUL in its name");
    else if (read_tensor(r, value, &t, e))
        return (t.name = ses_arena_strndup(&r->to->arena, name, n, e)) && ses_tensor_entry_add(r->to, &t, e);
    return ses_wrap(e, "tensor \"%s\"", ses_quoted_of(name, n).s);
}

static bool check_dict(const reader *r, ses_err *e)
{
    ses_pickle_kind kind = ses_pickle_kind_of(ses_pickle_root(r->pickle));
    return kind == SES_PICKLE_DICT || ses_fail(e, SES_EUNSUPPORTED, "contains %s, expected a dict of tensors",
                                               ses_pickle_kind_name(kind));
}

static bool read_dict(reader *r, const char *file, ses_err *e)
{
    const ses_pickle_node *root = ses_pickle_root(r->pickle), *key, *value;
    if (!ses_tensor_entries_reserve(r->to, ses_pickle_len(root), e)) return false;
    for (ses_pickle_iter it = ses_pickle_iter_of(root); ses_pickle_next(r->pickle, &it, &key, &value);)
        if (!read_pair(r, key, value, file, e)) return false;
    return true;
}

static bool read_archive(reader *r, const void *bytes, size_t n, const char *file, ses_err *e)
{
    const ses_zip_entry *x;
    r->locate = locate_in_archive;
    if (!ses_zip_read(&r->zip, bytes, n, e) || !(x = find_pickle(r, e)) || !check_records(r, e)) return false;
    r->pickle = ses_pickle_read(x->data, x->size, allowed, SES_LEN(allowed), e);
    return r->pickle ? check_dict(r, e) && read_dict(r, file, e) : ses_wrap(e, "data.pkl");
}

/* ---- the legacy format, before PyTorch 1.6 ---- */

static bool locate_in_legacy(reader *r, storage *s, ses_err *e)
{
    int64_t i;
    if (!ses_strmap_find(&r->keys, s->key, s->key_len, &i) || !r->legacy[i].data)
        return ses_fail(e, SES_EFORMAT, "storage \"%s\" is not in the file",
                        ses_quoted_of(s->key, s->key_len).s);
    s->data = r->legacy[i].data;
    s->bytes = r->legacy[i].bytes;
    return true;
}

/* Collects the storages of all tensors, which give their sizes. */
static bool collect_storages(reader *r, ses_err *e)
{
    const ses_pickle_node *key, *value, *args;
    ses_pickle_iter it = ses_pickle_iter_of(ses_pickle_root(r->pickle));
    while (ses_pickle_next(r->pickle, &it, &key, &value)) {
        int id;
        bool fresh;
        storage s = { 0 };
        if (!(args = arguments(r, value, &id, &(ses_err){ 0 }))) continue; /* read_dict reports it */
        if (!read_storage(r, ses_pickle_at(r->pickle, args, 0), &s, e)) return false;
        if (!ses_array_reserve(&r->legacy, &r->cap_legacy, r->n_legacy + 1, sizeof s, e) ||
            !ses_strmap_insert(&r->keys, s.key, s.key_len, (int64_t)r->n_legacy, &fresh, e))
            return false;
        if (fresh) r->legacy[r->n_legacy++] = s;
    }
    return true;
}

/* Assigns the bytes after the list of keys to the storages, in the order of the keys. */
static bool locate_storages(reader *r, const ses_pickle *keys, const unsigned char *p, size_t n, ses_err *e)
{
    enum { COUNT = 8 };
    const ses_pickle_node *key;
    ses_pickle_iter it = ses_pickle_iter_of(ses_pickle_root(keys));
    while ((key = ses_pickle_next_item(keys, &it))) {
        size_t len = 0;
        int64_t i;
        const char *name = ses_pickle_string(keys, key, &len);
        if (!name) return ses_fail(e, SES_EFORMAT, "a storage key is not a string");
        ses_quoted q = ses_quoted_of(name, len);
        if (!ses_strmap_find(&r->keys, name, len, &i))
            return ses_fail(e, SES_EFORMAT, "storage \"%s\" belongs to no tensor", q.s);
        storage *s = &r->legacy[i];
        if (s->data) return ses_fail(e, SES_EFORMAT, "storage \"%s\" appears twice", q.s);
        if (n < COUNT || !ses_mul_size((size_t)s->count, ses_dtype_size(s->dtype), &s->bytes) ||
            s->bytes > n - COUNT)
            return ses_fail(e, SES_EFORMAT,
                            "storage \"%s\": truncated: %zu bytes left for %" PRId64 " elements of %s", q.s,
                            n, s->count, ses_dtype_name(s->dtype));
        if (ses_le64(p) != (uint64_t)s->count)
            return ses_fail(e, SES_EFORMAT, "storage \"%s\" has %" PRIu64 " elements, expected %" PRId64, q.s,
                            ses_le64(p), s->count);
        s->data = p + COUNT;
        p += COUNT + s->bytes;
        n -= COUNT + s->bytes;
    }
    return !n || ses_fail(e, SES_EFORMAT, "%zu bytes follow the last storage", n);
}

/* Requires format 1001, written on a little-endian machine. */
static bool check_system(const ses_pickle *version, const ses_pickle *system, ses_err *e)
{
    int64_t format;
    const ses_pickle_node *key, *value;
    if (!ses_pickle_int(ses_pickle_root(version), &format) || format != 1001)
        return ses_fail(e, SES_EUNSUPPORTED, "format version is not 1001");
    ses_pickle_iter it = ses_pickle_iter_of(ses_pickle_root(system));
    while (ses_pickle_next(system, &it, &key, &value)) {
        size_t n;
        bool little = true;
        const char *name = ses_pickle_string(system, key, &n);
        if (name && n == 13 && !memcmp(name, "little_endian", 13) && ses_pickle_bool(value, &little) &&
            !little)
            return ses_fail(e, SES_EUNSUPPORTED, "byte order \"big\", expected \"little\"");
    }
    return true;
}

/* Bytes of the first pickle, the number 0x1950a86a20f9469cfc6c in any protocol; 0: not a legacy file. */
static size_t magic_size(const unsigned char *p, size_t n)
{
    static const unsigned char magic[] = { 0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46, 0xF9,
                                           0x20, 0x6A, 0xA8, 0x50, 0x19, '.' };
    size_t at = n > 2 && p[2] == 0x95 ? 11 : 2; /* after PROTO and an optional FRAME */
    if (n < at + sizeof magic || p[0] != 0x80 || memcmp(p + at, magic, sizeof magic) != 0) return 0;
    return at + sizeof magic;
}

static bool read_legacy(reader *r, const unsigned char *p, size_t n, const char *file, ses_err *e)
{
    static const char *const what[] = { "version", "system", "dict", "storages" };
    enum { VERSION, SYSTEM, DICT, STORAGES, PARTS };
    ses_pickle *part[PARTS] = { NULL };
    size_t at = magic_size(p, n), used = 0;
    bool ok = true;
    r->locate = locate_in_legacy;
    for (int i = 0; ok && i < PARTS; i++, at += used) {
        part[i] = ses_pickle_read_first(p + at, n - at, allowed, SES_LEN(allowed), &used, e);
        ok = part[i] || ses_wrap(e, "pickle of the %s, at byte %zu", what[i], at);
    }
    r->pickle = part[DICT];
    ok = ok && check_system(part[VERSION], part[SYSTEM], e) && check_dict(r, e) && collect_storages(r, e) &&
         locate_storages(r, part[STORAGES], p + at, n - at, e) && read_dict(r, file, e);
    for (int i = 0; i < PARTS; i++)
        if (i != DICT) ses_pickle_free(part[i]);
    return ok;
}

/* A zip archive or a pickle is read, and errors about its contents are more exact. */
static bool check_kind(const unsigned char *p, size_t n, ses_err *e)
{
    bool may_be_torch = n && (*p == 'P' || *p == 0x80);
    return may_be_torch || ses_file_kind_check(p, n, "PyTorch weights", e);
}

bool ses_torch_add(ses_safetensors *s, const void *bytes, size_t n, const char *file, ses_err *e)
{
    reader r = { .to = s, .copy_budget = n };
    file = ses_arena_strndup(&s->arena, file, strlen(file), e);
    bool ok =
        file && ses_check_not_lfs(bytes, n, "weights", e) && check_kind(bytes, n, e) &&
        (magic_size(bytes, n) ? read_legacy(&r, bytes, n, file, e) : read_archive(&r, bytes, n, file, e));
    ses_pickle_free(r.pickle);
    ses_zip_free(&r.zip);
    ses_buf_free(&r.path);
    ses_strmap_free(&r.keys);
    ses_free(r.legacy);
    return ok;
}

bool ses_is_torch_file(const unsigned char *p, size_t n)
{
    return (n >= 10 && !memcmp(p, "PK\3\4", 4) && p[8] != '{') || magic_size(p, n);
}
