/* Builds vector indexes and writes them. Vectors and texts wait in files without a name, so that memory holds
 * 20 bytes per text. */
#define _XOPEN_SOURCE 700
#include "vector_index.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct ses_index_builder {
    char *path;
    ses_vector_index_info info;
    size_t row_bytes;
    int vectors, texts; /* unnamed files; unset vectors are holes */
    unsigned char *row; /* one vector */
    float *scales;
    uint64_t *entries; /* [count, 2] */
    size_t cap_scales, cap_entries;
    uint64_t text_bytes; /* in the file and in pending */
    ses_buf pending;     /* texts not yet in the file */
};

ses_index_builder *ses_index_builder_new(const char *path, ses_dtype dtype, int64_t dim, ses_err *e)
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
    b->vectors = b->texts = -1;
    b->path = ses_strdup(path, e);
    b->row = ses_alloc(b->row_bytes, e);
    if (b->path && b->row && (b->vectors = ses_file_unnamed(path, e)) >= 0 &&
        (b->texts = ses_file_unnamed(path, e)) >= 0)
        return b;
    ses_index_builder_free(b);
    return NULL;
}

void ses_index_builder_free(ses_index_builder *b)
{
    if (!b) return;
    if (b->vectors >= 0) close(b->vectors);
    if (b->texts >= 0) close(b->texts);
    ses_free(b->path);
    ses_free(b->row);
    ses_free(b->scales);
    ses_free(b->entries);
    ses_buf_free(&b->pending);
    ses_free(b);
}

static bool flush_texts(ses_index_builder *b, ses_err *e)
{
    bool ok = ses_fd_write(b->texts, b->pending.data, b->pending.len, b->path, e);
    b->pending.len = 0;
    return ok;
}

bool ses_index_builder_add(ses_index_builder *b, const char *text, size_t n, int64_t line, ses_err *e)
{
    size_t i = (size_t)b->info.count;
    if (i >= INT32_MAX) return ses_fail(e, SES_EARG, "more than %d texts", INT32_MAX);
    if (!ses_array_reserve(&b->scales, &b->cap_scales, i + 1, sizeof *b->scales, e) ||
        !ses_array_reserve(&b->entries, &b->cap_entries, i + 1, 2 * sizeof *b->entries, e))
        return false;
    b->scales[i] = 0;
    b->entries[2 * i] = b->text_bytes;
    b->entries[2 * i + 1] = (uint64_t)line;
    if (n) ses_buf_append(&b->pending, text, n);
    if (!ses_buf_ok(&b->pending, e)) return false;
    if (b->pending.len >= SES_CHECKSUM_CHUNK && !flush_texts(b, e)) return false;
    b->text_bytes += n;
    b->info.count++;
    return true;
}

int64_t ses_index_builder_count(const ses_index_builder *b) { return b->info.count; }

static bool put_row(ses_index_builder *b, int64_t i, const unsigned char *row, ses_err *e)
{
    for (size_t done = 0; done < b->row_bytes;) {
        ssize_t k =
            pwrite(b->vectors, row + done, b->row_bytes - done, (off_t)((size_t)i * b->row_bytes + done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return ses_fail_write(b->path, k ? errno : ENOSPC, e);
        done += (size_t)k;
    }
    return true;
}

bool ses_index_builder_set(ses_index_builder *b, int64_t i, const float *vector, ses_err *e)
{
    int64_t dim = b->info.dim;
    if (b->info.dtype == SES_F16) {
        for (int64_t c = 0; c < dim; c++) {
            uint16_t h = ses_f32_to_f16(vector[c]);
            memcpy(b->row + 2 * c, &h, sizeof h);
        }
        return put_row(b, i, b->row, e);
    }
    float max = 0;
    for (int64_t c = 0; c < dim; c++) max = fmaxf(max, fabsf(vector[c]));
    b->scales[i] = max / 127;
    for (int64_t c = 0; c < dim; c++)
        b->row[c] = (unsigned char)(int8_t)(max > 0 ? lrintf(vector[c] * 127 / max) : 0);
    return put_row(b, i, b->row, e);
}

bool ses_index_builder_copy(ses_index_builder *b, int64_t i, const ses_vector_index *from, int64_t j,
                            ses_err *e)
{
    const float *scale = ses_vector_index_scales(from);
    if (scale) b->scales[i] = scale[j];
    return put_row(b, i, ses_vector_index_vector(from, j), e);
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
    put_word(header, SES_INDEX_TEXT_BYTES, b->text_bytes);
    put_word(header, SES_INDEX_SOURCE_SIZE, source->size);
    put_word(header, SES_INDEX_SOURCE_MTIME, source->mtime_ns);
    put_word(header, SES_INDEX_SOURCE_HASH, source->hash);
    put_word(header, SES_INDEX_SOURCE_SETTINGS, source->settings);
    char name[sizeof b->info.model_name] = { 0 };
    snprintf(name, sizeof name, "%s", model_name);
    memcpy(header + 8 * SES_INDEX_MODEL_NAME, name, sizeof name);
}

/* A part of the index: in memory, or in a file if `memory` is NULL. */
typedef struct index_part {
    const void *memory;
    int fd;
    size_t n;
} index_part;

static bool read_chunk(const index_part *p, size_t at, unsigned char *out, size_t n, const char *path,
                       ses_err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(p->fd, out + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            return ses_fail(e, SES_EIO, "%s: its temporary file: %s", path,
                            k ? strerror(errno) : "too short");
        done += (size_t)k;
    }
    return true;
}

/* Calculates the hash of a part, or writes it if w is not NULL, in chunks. */
static bool pass_part(const index_part *p, unsigned char *chunk, ses_file_writer *w, uint64_t *hash,
                      const char *path, ses_err *e)
{
    *hash = 0;
    for (size_t at = 0; at < p->n; at += SES_CHECKSUM_CHUNK) {
        size_t n = p->n - at < SES_CHECKSUM_CHUNK ? p->n - at : SES_CHECKSUM_CHUNK;
        const void *data = p->memory ? (const unsigned char *)p->memory + at : chunk;
        if (!p->memory && !read_chunk(p, at, chunk, n, path, e)) return false;
        if (!w)
            *hash = ses_checksum_join(*hash, ses_checksum(data, n));
        else if (!ses_file_writer_put(w, data, n, e))
            return false;
    }
    return true;
}

static bool write_parts(const ses_index_builder *b, unsigned char header[SES_VECTOR_INDEX_HEADER],
                        const index_part part[SES_INDEX_PARTS], const size_t at[SES_INDEX_PARTS + 1],
                        bool overwrite, ses_err *e)
{
    static const unsigned char zeros[64] = { 0 };
    unsigned char *chunk = ses_alloc(SES_CHECKSUM_CHUNK, e);
    uint64_t hash;
    bool ok = chunk != NULL;
    for (int i = 0; ok && i < SES_INDEX_PARTS; i++) {
        ok = pass_part(&part[i], chunk, NULL, &hash, b->path, e);
        put_word(header, SES_INDEX_PART_HASH + i, hash);
    }
    put_word(header, SES_INDEX_HEADER_HASH, ses_checksum_chunks(header, 8 * SES_INDEX_HEADER_HASH));
    ses_file_writer *w = ok ? ses_file_writer_open(b->path, overwrite, e) : NULL;
    ok = w && ses_file_writer_check_space(w, at[SES_INDEX_PARTS], e) &&
         ses_file_writer_put(w, header, SES_VECTOR_INDEX_HEADER, e);
    for (int i = 0; ok && i < SES_INDEX_PARTS; i++)
        ok = pass_part(&part[i], chunk, w, &hash, b->path, e) &&
             ses_file_writer_put(w, zeros, at[i + 1] - at[i] - part[i].n, e);
    ok = ok && ses_file_writer_commit(w, e);
    ses_file_writer_free(w);
    ses_free(chunk);
    return ok;
}

bool ses_index_builder_write(ses_index_builder *b, const ses_index_source *source, const char *model_name,
                             const float *probe, bool overwrite, ses_err *e)
{
    unsigned char header[SES_VECTOR_INDEX_HEADER] = { 0 };
    size_t at[SES_INDEX_PARTS + 1], bytes[SES_INDEX_PARTS];
    if (!ses_index_layout(&b->info, b->text_bytes, at, bytes))
        return ses_fail(e, SES_EARG, "%s: too large", b->path);
    if (!flush_texts(b, e)) return false;
    if (ftruncate(b->vectors, (off_t)bytes[SES_INDEX_VECTORS])) return ses_fail_write(b->path, errno, e);
    put_header(header, b, source, model_name);
    const index_part part[SES_INDEX_PARTS] = {
        [SES_INDEX_PROBE] = { probe, -1, bytes[SES_INDEX_PROBE] },
        [SES_INDEX_VECTORS] = { NULL, b->vectors, bytes[SES_INDEX_VECTORS] },
        [SES_INDEX_SCALES] = { b->scales, -1, bytes[SES_INDEX_SCALES] },
        [SES_INDEX_ENTRIES] = { b->entries, -1, bytes[SES_INDEX_ENTRIES] },
        [SES_INDEX_TEXTS] = { NULL, b->texts, bytes[SES_INDEX_TEXTS] }
    };
    return write_parts(b, header, part, at, overwrite, e);
}
