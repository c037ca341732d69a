/* Builds vector indexes in memory and writes them. */
#include "vector_index.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/half.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct ses_index_builder {
    ses_vector_index_info info;
    size_t row_bytes;
    unsigned char *vectors;
    float *scales;
    uint64_t *entries; /* [count, 2] */
    size_t cap_vectors, cap_scales, cap_entries;
    ses_buf texts;
};

ses_index_builder *ses_index_builder_new(ses_dtype dtype, int64_t dim, ses_err *e)
{
    if (dim < 1 || dim > SES_VECTOR_INDEX_MAX_DIM) {
        ses_fail(e, SES_EARG, "vectors of %lld numbers, expected 1 to %d", (long long)dim,
                 SES_VECTOR_INDEX_MAX_DIM);
        return NULL;
    }
    ses_index_builder *b = ses_alloc(sizeof *b, e);
    if (!b) return NULL;
    b->info.dtype = dtype;
    b->info.dim = dim;
    b->row_bytes = (size_t)dim * (dtype == SES_I8 ? 1 : 2);
    return b;
}

void ses_index_builder_free(ses_index_builder *b)
{
    if (!b) return;
    ses_free(b->vectors);
    ses_free(b->scales);
    ses_free(b->entries);
    ses_buf_free(&b->texts);
    ses_free(b);
}

bool ses_index_builder_add(ses_index_builder *b, const char *text, size_t n, int64_t line, ses_err *e)
{
    size_t i = (size_t)b->info.count;
    if (i >= INT32_MAX) return ses_fail(e, SES_EARG, "more than %d texts", INT32_MAX);
    if (!ses_array_reserve(&b->vectors, &b->cap_vectors, i + 1, b->row_bytes, e) ||
        !ses_array_reserve(&b->scales, &b->cap_scales, i + 1, sizeof *b->scales, e) ||
        !ses_array_reserve(&b->entries, &b->cap_entries, i + 1, 2 * sizeof *b->entries, e))
        return false;
    memset(b->vectors + i * b->row_bytes, 0, b->row_bytes);
    b->scales[i] = 0;
    b->entries[2 * i] = b->texts.len;
    b->entries[2 * i + 1] = (uint64_t)line;
    if (n) ses_buf_append(&b->texts, text, n);
    if (!ses_buf_ok(&b->texts, e)) return false;
    b->info.count++;
    return true;
}

int64_t ses_index_builder_count(const ses_index_builder *b) { return b->info.count; }

void ses_index_builder_set(ses_index_builder *b, int64_t i, const float *vector)
{
    unsigned char *row = b->vectors + (size_t)i * b->row_bytes;
    int64_t dim = b->info.dim;
    if (b->info.dtype == SES_F16) {
        for (int64_t c = 0; c < dim; c++) {
            uint16_t h = ses_f32_to_f16(vector[c]);
            memcpy(row + 2 * c, &h, sizeof h);
        }
        return;
    }
    float max = 0;
    for (int64_t c = 0; c < dim; c++) max = fmaxf(max, fabsf(vector[c]));
    b->scales[i] = max / 127;
    for (int64_t c = 0; c < dim; c++)
        row[c] = (unsigned char)(int8_t)(max > 0 ? lrintf(vector[c] * 127 / max) : 0);
}

void ses_index_builder_copy(ses_index_builder *b, int64_t i, const ses_vector_index *from, int64_t j)
{
    memcpy(b->vectors + (size_t)i * b->row_bytes, ses_vector_index_vector(from, j), b->row_bytes);
    const float *scale = ses_vector_index_scales(from);
    if (scale) b->scales[i] = scale[j];
}

static void put_word(unsigned char *header, int i, uint64_t x)
{
    for (int k = 0; k < 8; k++) header[8 * i + k] = (unsigned char)(x >> 8 * k);
}

static void put_header(unsigned char header[SES_VECTOR_INDEX_HEADER], const ses_index_builder *b,
                       const ses_index_source *source, const char *model_name)
{
    memcpy(header, SES_VECTOR_INDEX_MAGIC, 8);
    put_word(header, SES_INDEX_VERSION, SES_VECTOR_INDEX_VERSION | (uint64_t)(b->info.dtype == SES_I8) << 32);
    put_word(header, SES_INDEX_COUNT, (uint64_t)b->info.count);
    put_word(header, SES_INDEX_DIM, (uint64_t)b->info.dim);
    put_word(header, SES_INDEX_TEXT_BYTES, b->texts.len);
    put_word(header, SES_INDEX_SOURCE_SIZE, source->size);
    put_word(header, SES_INDEX_SOURCE_MTIME, source->mtime_ns);
    put_word(header, SES_INDEX_SOURCE_HASH, source->hash);
    put_word(header, SES_INDEX_SOURCE_SETTINGS, source->settings);
    char name[sizeof b->info.model_name] = { 0 };
    snprintf(name, sizeof name, "%s", model_name);
    memcpy(header + 8 * SES_INDEX_MODEL_NAME, name, sizeof name);
}

bool ses_index_builder_write(const ses_index_builder *b, const char *path, const ses_index_source *source,
                             const char *model_name, const float *probe, ses_err *e)
{
    static const unsigned char zeros[64] = { 0 };
    const void *part[SES_INDEX_PARTS] = { probe, b->vectors, b->scales, b->entries, b->texts.data };
    unsigned char header[SES_VECTOR_INDEX_HEADER] = { 0 };
    size_t at[SES_INDEX_PARTS + 1], bytes[SES_INDEX_PARTS];
    if (!ses_index_layout(&b->info, b->texts.len, at, bytes))
        return ses_fail(e, SES_EARG, "%s: too large", path);
    put_header(header, b, source, model_name);
    for (int i = 0; i < SES_INDEX_PARTS; i++)
        put_word(header, SES_INDEX_PART_HASH + i, ses_index_hash_bytes(part[i], bytes[i]));
    put_word(header, SES_INDEX_HEADER_HASH, ses_index_hash_bytes(header, 8 * SES_INDEX_HEADER_HASH));
    ses_file_writer *w = ses_file_writer_open(path, true, e);
    bool ok = w && ses_file_writer_check_space(w, at[SES_INDEX_PARTS], e) &&
              ses_file_writer_put(w, header, sizeof header, e);
    for (int i = 0; ok && i < SES_INDEX_PARTS; i++)
        ok = (!bytes[i] || ses_file_writer_put(w, part[i], bytes[i], e)) &&
             ses_file_writer_put(w, zeros, at[i + 1] - at[i] - bytes[i], e);
    ok = ok && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    return ok;
}
