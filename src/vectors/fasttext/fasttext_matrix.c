/* Matrices of fastText files: reading, writing, rows. */
#include "fasttext_matrix.h"

#include "base/alloc.h"
#include "base/bytes.h"

#include <string.h>

enum { QUANTIZER_HEADER = 16 };

typedef struct cursor {
    const unsigned char *bytes;
    size_t size, at;
} cursor;

static const unsigned char *take(cursor *c, size_t n, const char *what, ses_err *e)
{
    if (n > c->size - c->at) {
        ses_fail(e, SES_EFORMAT, "%s at offset %zu needs %zu bytes, the file has %zu more", what, c->at, n,
                 c->size - c->at);
        return NULL;
    }
    c->at += n;
    return c->bytes + c->at - n;
}

static float *read_floats(cursor *c, size_t n, const char *what, ses_err *e)
{
    const unsigned char *p = take(c, n * sizeof(float), what, e);
    float *x = p ? ses_alloc_array(n, sizeof *x, e) : NULL;
    if (x) memcpy(x, p, n * sizeof *x);
    return x;
}

/* The part sizes of a quantizer; they follow from its columns and dsub. */
static bool read_parts(cursor *c, int64_t columns, int32_t *parts, int32_t *dsub, int32_t *last, ses_err *e)
{
    size_t at = c->at;
    const unsigned char *p = take(c, QUANTIZER_HEADER, "the quantizer", e);
    if (!p) return false;
    int32_t dim = (int32_t)ses_le32(p);
    *parts = (int32_t)ses_le32(p + 4);
    *dsub = (int32_t)ses_le32(p + 8);
    *last = (int32_t)ses_le32(p + 12);
    bool ok = dim == columns && *dsub > 0 && *last > 0 && *last <= *dsub && *parts > 0 &&
              (int64_t)(*parts - 1) * *dsub + *last == columns;
    return ok || ses_fail(e, SES_EFORMAT,
                          "quantizer at offset %zu: %d columns in %d parts of %d, the last of %d; expected "
                          "parts that add up to the %lld columns of the matrix",
                          at, dim, *parts, *dsub, *last, (long long)columns);
}

static bool read_quantized(ses_fasttext_matrix *m, cursor *c, ses_err *e)
{
    const unsigned char *head = take(c, 21, "a quantized matrix", e);
    int32_t one[3];
    if (!head) return false;
    bool norms = head[0] != 0;
    m->rows = (int64_t)ses_le64(head + 1);
    m->columns = (int64_t)ses_le64(head + 9);
    int32_t codes = (int32_t)ses_le32(head + 17);
    if (head[0] > 1 || m->rows < 0 || m->columns < 1 || m->columns > INT32_MAX || codes < 0)
        return ses_fail(e, SES_EFORMAT, "quantized matrix of %lld rows, %lld columns and %d codes",
                        (long long)m->rows, (long long)m->columns, codes);
    m->code = take(c, (size_t)codes, "the codes of a matrix", e);
    if (!m->code || !read_parts(c, m->columns, &m->parts, &m->dsub, &m->last, e)) return false;
    if (m->rows > codes || m->rows * m->parts != codes)
        return ses_fail(e, SES_EFORMAT, "%d codes for %lld rows of %d parts", codes, (long long)m->rows,
                        m->parts);
    m->centroid = read_floats(c, (size_t)m->columns * SES_CENTROIDS, "the centroids", e);
    if (!m->centroid || !norms) return m->centroid != NULL;
    m->norm_code = take(c, (size_t)m->rows, "the codes of the norms", e);
    if (!m->norm_code || !read_parts(c, 1, &one[0], &one[1], &one[2], e)) return false;
    m->norm_centroid = read_floats(c, SES_CENTROIDS, "the centroids of the norms", e);
    return m->norm_centroid != NULL;
}

static bool read_dense(ses_fasttext_matrix *m, cursor *c, ses_err *e)
{
    const unsigned char *head = take(c, 16, "a matrix", e);
    size_t n;
    if (!head) return false;
    m->rows = (int64_t)ses_le64(head);
    m->columns = (int64_t)ses_le64(head + 8);
    if (m->rows < 0 || m->columns < 1 || !ses_mul_size((size_t)m->rows, (size_t)m->columns, &n) ||
        !ses_mul_size(n, sizeof(float), &n))
        return ses_fail(e, SES_EFORMAT, "matrix of %lld rows and %lld columns", (long long)m->rows,
                        (long long)m->columns);
    m->file = take(c, n, "the numbers of a matrix", e);
    return m->file != NULL;
}

bool ses_fasttext_matrix_read(ses_fasttext_matrix *m, bool quantized, const unsigned char *bytes, size_t size,
                              size_t *at, ses_err *e)
{
    cursor c = { bytes, size, *at };
    bool ok = quantized ? read_quantized(m, &c, e) : read_dense(m, &c, e);
    *at = c.at;
    return ok;
}

bool ses_fasttext_matrix_is_quantized(const ses_fasttext_matrix *m) { return !m->own && !m->file; }

static bool put_parts(ses_file_writer *w, int64_t columns, int32_t parts, int32_t dsub, int32_t last,
                      const float *centroid, ses_err *e)
{
    const int32_t head[] = { (int32_t)columns, parts, dsub, last };
    return ses_file_writer_put(w, head, sizeof head, e) &&
           ses_file_writer_put(w, centroid, (size_t)columns * SES_CENTROIDS * sizeof *centroid, e);
}

bool ses_fasttext_matrix_write(const ses_fasttext_matrix *m, ses_file_writer *w, ses_err *e)
{
    const int64_t shape[] = { m->rows, m->columns };
    size_t n = (size_t)m->rows * (size_t)m->columns * sizeof(float);
    if (!ses_fasttext_matrix_is_quantized(m))
        return ses_file_writer_put(w, shape, sizeof shape, e) &&
               ses_file_writer_put(w, m->own ? (const void *)m->own : m->file, n, e);
    const unsigned char norms = m->norm_code != NULL;
    const int32_t codes = (int32_t)(m->rows * m->parts);
    bool ok = ses_file_writer_put(w, &norms, 1, e) && ses_file_writer_put(w, shape, sizeof shape, e) &&
              ses_file_writer_put(w, &codes, sizeof codes, e) &&
              ses_file_writer_put(w, m->code, (size_t)codes, e) &&
              put_parts(w, m->columns, m->parts, m->dsub, m->last, m->centroid, e);
    return ok && (!norms || (ses_file_writer_put(w, m->norm_code, (size_t)m->rows, e) &&
                             put_parts(w, 1, 1, 1, 1, m->norm_centroid, e)));
}

void ses_fasttext_matrix_free(ses_fasttext_matrix *m)
{
    void *own[] = { m->own, m->own_code, m->own_norm_code, m->centroid, m->norm_centroid };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    *m = (ses_fasttext_matrix){ 0 };
}

bool ses_fasttext_matrix_load(ses_fasttext_matrix *m, ses_err *e)
{
    if (m->own || !m->file) return true;
    m->own = ses_alloc_huge((size_t)m->rows * (size_t)m->columns, sizeof *m->own, e);
    if (!m->own) return false;
    memcpy(m->own, m->file, (size_t)m->rows * (size_t)m->columns * sizeof *m->own);
    return true;
}

/* ---- rows ---- */

static float float_at(const unsigned char *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Adds scale * row. */
static void add_codes(const ses_fasttext_matrix *m, int64_t row, float scale, float *x)
{
    const unsigned char *code = m->code + row * m->parts;
    for (int32_t part = 0; part < m->parts; part++) {
        int32_t width = part == m->parts - 1 ? m->last : m->dsub;
        const float *c = m->centroid + (size_t)part * SES_CENTROIDS * (size_t)m->dsub + code[part] * width;
        for (int32_t k = 0; k < width; k++) x[part * m->dsub + k] += scale * c[k];
    }
}

static float norm_of(const ses_fasttext_matrix *m, int64_t row)
{
    return m->norm_code ? m->norm_centroid[m->norm_code[row]] : 1;
}

void ses_fasttext_add_row(const ses_fasttext_matrix *m, int64_t row, float *x)
{
    size_t n = (size_t)m->columns, at = (size_t)row * n;
    if (m->own)
        for (size_t k = 0; k < n; k++) x[k] += m->own[at + k];
    else if (m->file)
        for (size_t k = 0; k < n; k++) x[k] += float_at(m->file + (at + k) * sizeof(float));
    else
        add_codes(m, row, norm_of(m, row), x);
}

float ses_fasttext_dot_row(const ses_fasttext_matrix *m, int64_t row, const float *x)
{
    size_t n = (size_t)m->columns, at = (size_t)row * n;
    float sum = 0;
    if (m->own || m->file) {
        for (size_t k = 0; k < n; k++)
            sum += (m->own ? m->own[at + k] : float_at(m->file + (at + k) * sizeof(float))) * x[k];
        return sum;
    }
    const unsigned char *code = m->code + row * m->parts;
    for (int32_t part = 0; part < m->parts; part++) {
        int32_t width = part == m->parts - 1 ? m->last : m->dsub;
        const float *c = m->centroid + (size_t)part * SES_CENTROIDS * (size_t)m->dsub + code[part] * width;
        for (int32_t k = 0; k < width; k++) sum += x[part * m->dsub + k] * c[k];
    }
    return sum * norm_of(m, row);
}
