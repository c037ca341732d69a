/* Reads the index of a TensorFlow checkpoint and checks its shards. */
#include "tf_checkpoint.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/wire/crc32c.h"
#include "base/wire/protobuf.h"
#include "leveldb_table.h"
#include "sesame/unstable/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- entries ---- */

static const struct dtype_number {
    const char *name;
    int number; /* in TensorFlow's enum DataType */
    ses_dtype dtype;
    bool supported;
} dtypes[] = {
    { "DT_FLOAT", 1, SES_F32, true },        { "DT_DOUBLE", 2, SES_F64, true },
    { "DT_INT32", 3, SES_I32, true },        { "DT_UINT8", 4, SES_U8, true },
    { "DT_INT16", 5, SES_I16, true },        { "DT_INT8", 6, SES_I8, true },
    { "DT_INT64", 9, SES_I64, true },        { "DT_BOOL", 10, SES_BOOL, true },
    { "DT_BFLOAT16", 14, SES_BF16, true },   { "DT_HALF", 19, SES_F16, true },
    { .name = "DT_STRING", .number = 7 },    { .name = "DT_COMPLEX64", .number = 8 },
    { .name = "DT_QINT8", .number = 11 },    { .name = "DT_QUINT8", .number = 12 },
    { .name = "DT_QINT32", .number = 13 },   { .name = "DT_UINT16", .number = 17 },
    { .name = "DT_RESOURCE", .number = 20 },
};

static bool set_dtype(ses_tf_tensor *t, uint64_t number, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(dtypes); i++) {
        if ((uint64_t)dtypes[i].number != number) continue;
        t->dtype = dtypes[i].dtype;
        return dtypes[i].supported || ses_fail(e, SES_EUNSUPPORTED, "dtype %s (%d) is not supported",
                                               dtypes[i].name, dtypes[i].number);
    }
    return ses_fail(e, SES_EUNSUPPORTED, "unknown dtype %" PRIu64, number);
}

/* The size of an axis; an absent one is 0. */
static bool read_axis(ses_proto c, int64_t *size, ses_err *e)
{
    ses_proto_field f;
    *size = 0;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        if (f.number == 1 && f.wire == SES_PROTO_VARINT) *size = (int64_t)f.value;
    }
    return *size >= 0 || ses_fail(e, SES_EFORMAT, "shape has an axis of size %" PRId64, *size);
}

static bool read_shape(ses_proto c, ses_tf_tensor *t, ses_err *e)
{
    ses_proto_field f;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        if (f.number != 2 || f.wire != SES_PROTO_BYTES) continue;
        if (t->rank == SES_ENTRY_MAX_DIM)
            return ses_fail(e, SES_EUNSUPPORTED, "shape of more than %d axes", SES_ENTRY_MAX_DIM);
        int64_t *size = &t->dim[t->rank++];
        if (!read_axis(ses_proto_inside(&c, f.bytes), size, e)) return false;
        if (!ses_mul_i64(t->count, *size, &t->count))
            return ses_fail(e, SES_EFORMAT, "the number of elements exceeds 63 bits");
    }
    return true;
}

static bool take_field(ses_tf_tensor *t, const ses_proto *c, const ses_proto_field *f, ses_err *e)
{
    bool number = f->wire == SES_PROTO_VARINT;
    switch (f->number) {
    case 1: return !number || set_dtype(t, f->value, e);
    case 2: return f->wire != SES_PROTO_BYTES || read_shape(ses_proto_inside(c, f->bytes), t, e);
    case 3: t->shard = number && f->value <= INT64_MAX ? (int64_t)f->value : -1; return true;
    case 4: t->offset = f->value; return true;
    case 5: t->bytes = f->value; return true;
    case 6: t->crc = (uint32_t)f->value; return true;
    case 7:
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the tensor is stored in slices (a partitioned variable), which are not supported");
    default: return true;
    }
}

static bool check_tensor(const ses_tf_index *x, const ses_tf_tensor *t, ses_err *e)
{
    size_t want;
    if (t->shard < 0 || t->shard >= x->shards)
        return ses_fail(e, SES_EFORMAT, "shard %" PRId64 " of %" PRId64, t->shard, x->shards);
    if (!ses_mul_size((size_t)t->count, ses_dtype_size(t->dtype), &want))
        return ses_fail(e, SES_EFORMAT, "the number of bytes exceeds 64 bits");
    if (want != t->bytes)
        return ses_fail(e, SES_EFORMAT, "%" PRIu64 " bytes, %" PRId64 " elements of %s need %zu", t->bytes,
                        t->count, ses_dtype_name(t->dtype), want);
    return true;
}

static bool read_entry(const ses_tf_index *x, ses_tf_tensor *t, ses_string value, ses_err *e)
{
    ses_proto c = ses_proto_of(value.p, value.n, "damaged entry");
    ses_proto_field f;
    bool typed = false;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e) || !take_field(t, &c, &f, e)) return false;
        typed |= f.number == 1;
    }
    if (!typed) return ses_fail(e, SES_EFORMAT, "dtype missing");
    return check_tensor(x, t, e);
}

static bool read_header(ses_tf_index *x, ses_string value, ses_err *e)
{
    ses_proto c = ses_proto_of(value.p, value.n, "damaged header");
    ses_proto_field f;
    while (c.p < c.end) {
        if (!ses_proto_next(&c, &f, e)) return false;
        if (f.wire != SES_PROTO_VARINT) continue;
        if (f.number == 1) {
            if (f.value > SES_TF_MAX_SHARDS)
                return ses_fail(e, SES_EFORMAT, "%" PRIu64 " shards, the maximum is %d", f.value,
                                SES_TF_MAX_SHARDS);
            x->shards = (int64_t)f.value;
        }
        if (f.number == 2 && f.value)
            return ses_fail(e, SES_EUNSUPPORTED, "big-endian numbers, expected little-endian");
    }
    return x->shards > 0 || ses_fail(e, SES_EFORMAT, "header without shards");
}

/* ---- the index ---- */

static bool take_pair(void *ctx, ses_string key, ses_string value, ses_err *e)
{
    static const char graph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";
    ses_tf_index *x = ctx;
    bool fresh;
    if (!key.n) return read_header(x, value, e) || ses_wrap(e, "header");
    if (!x->shards) return ses_fail(e, SES_EFORMAT, "header missing: not the index of a checkpoint");
    if (ses_equal(key.p, key.n, graph))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "an object-based checkpoint (tf.train.Checkpoint); supported are checkpoints with "
                        "variable names (tf.compat.v1.train.Saver), as google-research publishes them");
    ses_tf_tensor t = { .count = 1 };
    t.name = ses_arena_strndup(&x->mem, key.p, key.n, e);
    if (!t.name) return false;
    bool ok =
        strlen(t.name) == key.n ? read_entry(x, &t, value, e) : ses_fail(e, SES_EFORMAT, "NUL in its name");
    if (!ok) return ses_wrap(e, "tensor \"%s\"", ses_quoted_of(key.p, key.n).s);
    if (!ses_array_reserve(&x->tensor, &x->cap, x->n + 1, sizeof *x->tensor, e)) return false;
    if (!ses_strmap_insert(&x->names, t.name, key.n, (int64_t)x->n, &fresh, e)) return false;
    x->tensor[x->n++] = t;
    return true;
}

bool ses_tf_index_parse(ses_tf_index *x, const void *bytes, size_t n, ses_err *e)
{
    *x = (ses_tf_index){ 0 };
    if (!ses_leveldb_each(bytes, n, take_pair, x, e)) return false;
    return x->n > 0 || ses_fail(e, SES_EFORMAT, "no tensors");
}

void ses_tf_index_free(ses_tf_index *x)
{
    ses_free(x->tensor);
    ses_strmap_free(&x->names);
    ses_arena_free(&x->mem);
    *x = (ses_tf_index){ 0 };
}

const ses_tf_tensor *ses_tf_find(const ses_tf_index *x, const char *name)
{
    int64_t i;
    return ses_strmap_find(&x->names, name, strlen(name), &i) ? &x->tensor[i] : NULL;
}

/* ---- shards ---- */

static int by_offset(const void *a, const void *b)
{
    const ses_tf_tensor *x = *(const ses_tf_tensor *const *)a, *y = *(const ses_tf_tensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool check_bytes(const ses_tf_tensor *t, uint64_t from, const unsigned char *p, size_t n, ses_err *e)
{
    if (t->offset < from)
        return ses_fail(e, SES_EFORMAT,
                        "offset %" PRIu64 " overlaps the previous tensor (ends at %" PRIu64 ")", t->offset,
                        from);
    if (t->offset > n || t->bytes > n - t->offset)
        return ses_fail(e, SES_EFORMAT,
                        "%" PRIu64 " bytes at %" PRIu64 " past the end (the file has %zu bytes): the file is "
                        "truncated",
                        t->bytes, t->offset, n);
    const unsigned char *data = t->bytes ? p + t->offset : (const unsigned char *)"";
    uint32_t crc = ses_crc32c_mask(ses_crc32c(data, (size_t)t->bytes));
    return crc == t->crc ||
           ses_fail(e, SES_EFORMAT,
                    "wrong checksum %08" PRIx32 ", expected %08" PRIx32 ": the file is damaged", crc, t->crc);
}

bool ses_tf_shard_check(const ses_tf_index *x, int64_t shard, const void *bytes, size_t n, ses_err *e)
{
    const ses_tf_tensor **t = ses_alloc_array(x->n, sizeof *t, e);
    size_t used = 0;
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < x->n; i++)
        if (x->tensor[i].shard == shard) t[used++] = &x->tensor[i];
    if (used) qsort(t, used, sizeof *t, by_offset);
    uint64_t from = 0;
    for (size_t i = 0; ok && i < used; i++) {
        ok = check_bytes(t[i], from, bytes, n, e) ||
             ses_wrap(e, "tensor \"%s\"", ses_quoted_of(t[i]->name, strlen(t[i]->name)).s);
        from = ok ? t[i]->offset + t[i]->bytes : 0;
    }
    ses_free(t);
    return ok;
}
