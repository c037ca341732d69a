/* Reads vector index files: mapped, with all counts and offsets checked by the open. */
#include "vector_index.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "mapped vectors are little-endian");

enum { PAD = 64, ENTRY = 16 };

struct ses_vector_index {
    ses_mmap map; /* zeroed if `data` is borrowed */
    const unsigned char *data;
    ses_vector_index_info info;
    uint64_t text_bytes;
    size_t at[SES_INDEX_PARTS + 1], bytes[SES_INDEX_PARTS];
};

/* ---- checksums ---- */

bool ses_index_hash_file(const char *path, uint64_t *out, ses_err *e)
{
    char *buf = ses_alloc(SES_CHECKSUM_CHUNK, e);
    FILE *f = buf ? fopen(path, "rb") : NULL;
    bool ok = f != NULL;
    if (buf && !f) ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    *out = 0;
    for (size_t n; ok && (n = fread(buf, 1, SES_CHECKSUM_CHUNK, f)) > 0;)
        *out = ses_checksum_join(*out, ses_checksum(buf, n));
    if (ok && ferror(f)) ok = ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    if (f) fclose(f);
    ses_free(buf);
    return ok;
}

/* ---- layout and checks ---- */

bool ses_index_layout(const ses_vector_index_info *info, uint64_t text_bytes, size_t at[SES_INDEX_PARTS + 1],
                      size_t bytes[SES_INDEX_PARTS])
{
    size_t count = (size_t)info->count, dim = (size_t)info->dim;
    bool is_int8 = info->dtype == SES_I8;
    bytes[SES_INDEX_PROBE] = dim * sizeof(float);
    bytes[SES_INDEX_SCALES] = is_int8 ? count * sizeof(float) : 0;
    bytes[SES_INDEX_TEXTS] = (size_t)text_bytes;
    if (!ses_mul_size(count, dim * (is_int8 ? 1 : 2), &bytes[SES_INDEX_VECTORS]) ||
        !ses_mul_size(count, ENTRY, &bytes[SES_INDEX_ENTRIES]))
        return false;
    at[0] = SES_VECTOR_INDEX_HEADER;
    for (int i = 0; i < SES_INDEX_PARTS; i++) {
        size_t end;
        if (!ses_add_size(at[i], bytes[i], &end) || !ses_add_size(end, PAD - 1, &end)) return false;
        at[i + 1] = end & ~(size_t)(PAD - 1);
    }
    return true;
}

static uint64_t header_word(const ses_vector_index *x, int i) { return ses_le64(x->data + 8 * i); }

static bool read_header(ses_vector_index *x, size_t n, ses_err *e)
{
    ses_vector_index_info *info = &x->info;
    if (n < SES_VECTOR_INDEX_HEADER || memcmp(x->data, SES_VECTOR_INDEX_MAGIC, 8))
        return ses_fail(e, SES_EFORMAT, "not an index, or truncated; build it again with --rebuild");
    uint64_t version = header_word(x, SES_INDEX_VERSION);
    if ((uint32_t)version != SES_VECTOR_INDEX_VERSION)
        return ses_fail(e, SES_EUNSUPPORTED, "format version %" PRIu32 ", expected %d; use --rebuild",
                        (uint32_t)version, SES_VECTOR_INDEX_VERSION);
    if (header_word(x, SES_INDEX_HEADER_HASH) != ses_checksum_chunks(x->data, 8 * SES_INDEX_HEADER_HASH))
        return ses_fail(e, SES_EFORMAT, "damaged header; build the index again with --rebuild");
    uint64_t count = header_word(x, SES_INDEX_COUNT), dim = header_word(x, SES_INDEX_DIM);
    memcpy(info->model_name, x->data + 8 * SES_INDEX_MODEL_NAME, sizeof info->model_name);
    if (version >> 32 > 1 || count > INT32_MAX || !dim || dim > SES_VECTOR_INDEX_MAX_DIM ||
        !memchr(info->model_name, 0, sizeof info->model_name))
        return ses_fail(e, SES_EFORMAT, "inconsistent header; build the index again with --rebuild");
    info->dtype = version >> 32 ? SES_I8 : SES_F16;
    info->count = (int64_t)count;
    info->dim = (int64_t)dim;
    info->source = (ses_index_source){ .size = header_word(x, SES_INDEX_SOURCE_SIZE),
                                       .mtime_ns = header_word(x, SES_INDEX_SOURCE_MTIME),
                                       .hash = header_word(x, SES_INDEX_SOURCE_HASH),
                                       .settings = header_word(x, SES_INDEX_SOURCE_SETTINGS) };
    x->text_bytes = header_word(x, SES_INDEX_TEXT_BYTES);
    if (!ses_index_layout(info, x->text_bytes, x->at, x->bytes))
        return ses_fail(e, SES_EFORMAT, "inconsistent header; build the index again with --rebuild");
    if (x->at[SES_INDEX_PARTS] != n)
        return ses_fail(e, SES_EFORMAT, "%zu bytes, expected %zu: %s; build the index again with --rebuild",
                        n, x->at[SES_INDEX_PARTS],
                        n < x->at[SES_INDEX_PARTS] ? "the file is truncated" : "extra bytes at its end");
    return true;
}

static const unsigned char *entry(const ses_vector_index *x, int64_t i)
{
    return x->data + x->at[SES_INDEX_ENTRIES] + (size_t)i * ENTRY;
}

static bool check_entries(const ses_vector_index *x, ses_err *e)
{
    uint64_t begin = 0, line = 0;
    for (int64_t i = 0; i < x->info.count; i++) {
        uint64_t next = ses_le64(entry(x, i)), next_line = ses_le64(entry(x, i) + 8);
        if (next < begin || next > x->text_bytes || (!i && next) || next_line <= line ||
            next_line > INT64_MAX)
            return ses_fail(e, SES_EFORMAT, "damaged: text %" PRId64 " is out of order; use --rebuild",
                            i + 1);
        begin = next, line = next_line;
    }
    return true;
}

static bool check_padding(const ses_vector_index *x, ses_err *e)
{
    for (int part = 0; part < SES_INDEX_PARTS; part++)
        for (size_t i = x->at[part] + x->bytes[part]; i < x->at[part + 1]; i++)
            if (x->data[i])
                return ses_fail(e, SES_EFORMAT,
                                "damaged: padding is not zero; build it again with --rebuild");
    return true;
}

ses_vector_index *ses_vector_index_from_memory(const void *data, size_t n, ses_err *e)
{
    ses_vector_index *x = ses_alloc(sizeof *x, e);
    if (!x) return NULL;
    x->data = data;
    if (read_header(x, n, e) && check_entries(x, e) && check_padding(x, e)) return x;
    ses_free(x);
    return NULL;
}

ses_vector_index *ses_vector_index_open(const char *path, ses_err *e)
{
    ses_mmap map;
    if (!ses_mmap_open(&map, path, e)) return NULL;
    ses_vector_index *x = ses_vector_index_from_memory(map.data, map.size, e);
    if (x) return x->map = map, x;
    ses_mmap_free(&map);
    ses_wrap(e, "%s", path);
    return NULL;
}

void ses_vector_index_free(ses_vector_index *x)
{
    if (!x) return;
    ses_mmap_free(&x->map);
    ses_free(x);
}

typedef struct verify_job {
    const unsigned char *data;
    size_t n;
    uint64_t *sum;
} verify_job;

static void verify_chunk(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    const verify_job *j = ctx;
    size_t at = (size_t)i * SES_CHECKSUM_CHUNK, left = j->n - at;
    j->sum[i] = ses_checksum(j->data + at, left < SES_CHECKSUM_CHUNK ? left : SES_CHECKSUM_CHUNK);
}

bool ses_vector_index_verify(const ses_vector_index *x, ses_thread_pool *pool, ses_err *e)
{
    static const char *const name[] = { "probe", "vectors", "scales", "entries", "texts" };
    for (int part = 0; part < SES_INDEX_PARTS; part++) {
        size_t n = x->bytes[part], chunks = n / SES_CHECKSUM_CHUNK + (n % SES_CHECKSUM_CHUNK != 0);
        uint64_t *sum = ses_alloc_array(chunks, sizeof *sum, e), hash = 0;
        if (!sum) return false;
        verify_job j = { x->data + x->at[part], n, sum };
        ses_parallel_for(pool, (int64_t)chunks, verify_chunk, &j);
        for (size_t i = 0; i < chunks; i++) hash = ses_checksum_join(hash, sum[i]);
        ses_free(sum);
        if (hash != header_word(x, SES_INDEX_PART_HASH + part))
            return ses_fail(e, SES_EFORMAT,
                            "damaged: the checksum of the %s differs; build the index again with --rebuild",
                            name[part]);
    }
    return true;
}

/* ---- reading ---- */

const ses_vector_index_info *ses_vector_index_info_of(const ses_vector_index *x) { return &x->info; }

const float *ses_vector_index_probe(const ses_vector_index *x)
{
    return (const float *)(const void *)(x->data + x->at[SES_INDEX_PROBE]);
}

const void *ses_vector_index_vector(const ses_vector_index *x, int64_t i)
{
    size_t row = (size_t)x->info.dim * (x->info.dtype == SES_I8 ? 1 : 2);
    return x->data + x->at[SES_INDEX_VECTORS] + (size_t)i * row;
}

const float *ses_vector_index_scales(const ses_vector_index *x)
{
    if (x->info.dtype != SES_I8) return NULL;
    return (const float *)(const void *)(x->data + x->at[SES_INDEX_SCALES]);
}

ses_string ses_vector_index_text(const ses_vector_index *x, int64_t i)
{
    uint64_t begin = ses_le64(entry(x, i));
    uint64_t end = i + 1 < x->info.count ? ses_le64(entry(x, i + 1)) : x->text_bytes;
    const unsigned char *p = x->data + x->at[SES_INDEX_TEXTS] + begin;
    return (ses_string){ (const char *)p, (size_t)(end - begin) };
}

int64_t ses_vector_index_line(const ses_vector_index *x, int64_t i)
{
    return (int64_t)ses_le64(entry(x, i) + 8);
}
