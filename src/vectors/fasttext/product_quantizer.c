/* Product quantization as fastText does it: k-means per part of the columns, with 256 centroids, 25
 * iterations, at most 65,536 rows, and a random number generator that is seeded with 1234. */
#include "fasttext_quantize.h"

#include "base/alloc.h"
#include "vectors/exact/libstdcxx.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS = 25, MAX_POINTS = 256 * SES_CENTROIDS, SEED = 1234, CHUNK = 1024, LANES = 8 };
#define EPSILON 1e-7f

typedef struct assignment {
    const float *x;          /* row i at x + i * stride */
    const float *transposed; /* centroids [width, SES_CENTROIDS] */
    unsigned char *code;     /* row i: at code + i * code_stride */
    size_t n, stride, code_stride;
    int32_t width;
} assignment;

/* The first of the nearest centroids. */
static unsigned char nearest(const assignment *a, const float *x)
{
    float distance[SES_CENTROIDS], best[LANES];
    int32_t at[LANES];
    memset(distance, 0, sizeof distance);
    for (int32_t d = 0; d < a->width; d++) {
        const float *c = a->transposed + (size_t)d * SES_CENTROIDS;
        for (int k = 0; k < SES_CENTROIDS; k++) {
            float difference = x[d] - c[k];
            distance[k] += difference * difference;
        }
    }
    for (int l = 0; l < LANES; l++) best[l] = distance[l], at[l] = l;
    for (int k = LANES; k < SES_CENTROIDS; k += LANES)
        for (int l = 0; l < LANES; l++) {
            at[l] = distance[k + l] < best[l] ? k + l : at[l];
            best[l] = distance[k + l] < best[l] ? distance[k + l] : best[l];
        }
    int least = 0;
    for (int l = 1; l < LANES; l++)
        if (best[l] < best[least] || (best[l] == best[least] && at[l] < at[least])) least = l;
    return (unsigned char)at[least];
}

static void assign_chunk(void *ctx, int64_t chunk, void *scratch)
{
    const assignment *a = ctx;
    (void)scratch;
    size_t end = ((size_t)chunk + 1) * CHUNK < a->n ? ((size_t)chunk + 1) * CHUNK : a->n;
    for (size_t i = (size_t)chunk * CHUNK; i < end; i++)
        a->code[i * a->code_stride] = nearest(a, a->x + i * a->stride);
}

/* Finds the codes of all rows; transposed: memory for the centroids. */
static void assign(assignment a, const float *centroid, float *transposed, ses_thread_pool *pool)
{
    for (int k = 0; k < SES_CENTROIDS; k++)
        for (int32_t d = 0; d < a.width; d++) transposed[d * SES_CENTROIDS + k] = centroid[k * a.width + d];
    a.transposed = transposed;
    int64_t chunks = (int64_t)((a.n + CHUNK - 1) / CHUNK);
    if (pool) {
        ses_parallel_for(pool, chunks, assign_chunk, &a);
        return;
    }
    for (int64_t i = 0; i < chunks; i++) assign_chunk(&a, i, NULL);
}

/* Means of the rows of each centroid; an empty one takes half of the rows of another. */
static void move_centroids(const assignment *a, float *centroid, ses_minstd *g)
{
    int32_t count[SES_CENTROIDS] = { 0 }, d = a->width;
    memset(centroid, 0, sizeof *centroid * (size_t)d * SES_CENTROIDS);
    for (size_t i = 0; i < a->n; i++) {
        for (int32_t k = 0; k < d; k++) centroid[a->code[i] * d + k] += a->x[i * (size_t)d + (size_t)k];
        count[a->code[i]]++;
    }
    for (int c = 0; c < SES_CENTROIDS; c++)
        for (int32_t k = 0; k < d && count[c]; k++) centroid[c * d + k] /= (float)count[c];
    for (int c = 0; c < SES_CENTROIDS; c++) {
        int other = 0;
        if (count[c]) continue;
        while (ses_minstd_real(g, 0, 1) * ((double)a->n - SES_CENTROIDS) >= count[other] - 1)
            other = (other + 1) % SES_CENTROIDS;
        memcpy(centroid + c * d, centroid + other * d, sizeof *centroid * (size_t)d);
        for (int32_t k = 0; k < d; k++) {
            float step = (float)((k % 2) * 2 - 1) * EPSILON;
            centroid[c * d + k] += step;
            centroid[other * d + k] -= step;
        }
        count[c] = count[other] / 2;
        count[other] -= count[c];
    }
}

typedef struct quantizer {
    const float *x; /* [rows, columns] */
    size_t rows, columns;
    int32_t dsub, parts, last;
    float *centroid;     /* [columns * SES_CENTROIDS] */
    unsigned char *code; /* [rows, parts] */
    ses_thread_pool *pool;
} quantizer;

static bool run(const quantizer *q, ses_err *e)
{
    size_t n = q->rows < MAX_POINTS ? q->rows : MAX_POINTS, width = (size_t)q->dsub;
    int32_t *chosen = ses_alloc_array(q->rows, sizeof *chosen, e),
            *start = ses_alloc_array(n, sizeof *start, e);
    float *x = ses_alloc_array(n * width, sizeof *x, e);
    float *transposed = ses_alloc_array(width * SES_CENTROIDS, sizeof *transposed, e);
    unsigned char *code = ses_alloc_array(n, 1, e);
    ses_minstd g = ses_minstd_of(SEED);
    bool ok = chosen && start && x && transposed && code;
    for (size_t i = 0; ok && i < q->rows; i++) chosen[i] = (int32_t)i;
    for (int32_t part = 0; ok && part < q->parts; part++) {
        int32_t d = part == q->parts - 1 ? q->last : q->dsub;
        size_t first = (size_t)part * width, bytes = (size_t)d * sizeof *x;
        float *centroid = q->centroid + first * SES_CENTROIDS;
        if (n != q->rows) ses_libstdcxx_shuffle(chosen, q->rows, &g);
        for (size_t i = 0; i < n; i++)
            memcpy(x + i * (size_t)d, q->x + (size_t)chosen[i] * q->columns + first, bytes);
        for (size_t i = 0; i < n; i++) start[i] = (int32_t)i;
        ses_libstdcxx_shuffle(start, n, &g);
        for (int32_t k = 0; k < SES_CENTROIDS; k++)
            memcpy(centroid + k * d, x + (size_t)start[k] * (size_t)d, bytes);
        assignment a = { .x = x, .code = code, .n = n, .stride = (size_t)d, .code_stride = 1, .width = d };
        for (int i = 0; i < ITERATIONS; i++) {
            assign(a, centroid, transposed, q->pool);
            move_centroids(&a, centroid, &g);
        }
        assign((assignment){ .x = q->x + first,
                             .code = q->code + part,
                             .n = q->rows,
                             .stride = q->columns,
                             .code_stride = (size_t)q->parts,
                             .width = d },
               centroid, transposed, q->pool);
    }
    void *own[] = { chosen, start, x, transposed, code };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    return ok;
}

/* Divides rows by their norms and quantizes the norms. */
static bool quantize_norms(ses_fasttext_matrix *m, ses_thread_pool *pool, ses_err *e)
{
    size_t rows = (size_t)m->rows, columns = (size_t)m->columns;
    float *norm = ses_alloc_array(rows, sizeof *norm, e);
    m->own_norm_code = ses_alloc_array(rows, 1, e);
    m->norm_code = m->own_norm_code;
    m->norm_centroid = ses_alloc_array(SES_CENTROIDS, sizeof *m->norm_centroid, e);
    bool ok = norm && m->norm_code && m->norm_centroid;
    for (size_t i = 0; ok && i < rows; i++) {
        double sum = 0;
        float *row = m->own + i * columns;
        for (size_t k = 0; k < columns; k++) sum += row[k] * row[k];
        norm[i] = (float)sqrt(sum);
        for (size_t k = 0; k < columns && norm[i] != 0; k++) row[k] /= norm[i];
    }
    ok = ok && run(&(quantizer){ .x = norm,
                                 .rows = rows,
                                 .columns = 1,
                                 .dsub = 1,
                                 .parts = 1,
                                 .last = 1,
                                 .centroid = m->norm_centroid,
                                 .code = m->own_norm_code,
                                 .pool = pool },
                   e);
    ses_free(norm);
    return ok;
}

static bool check(const ses_fasttext_matrix *m, int32_t parts, ses_err *e)
{
    size_t n = (size_t)m->rows * (size_t)m->columns;
    if (m->rows < SES_CENTROIDS)
        return ses_fail(e, SES_EARG, "a matrix of %lld rows is too small to quantize; it needs %d",
                        (long long)m->rows, SES_CENTROIDS);
    if (m->rows > INT32_MAX / parts)
        return ses_fail(e, SES_EARG,
                        "%lld rows of %d parts are too many codes for the format: keep fewer (--cutoff) or "
                        "use larger parts (--dsub)",
                        (long long)m->rows, parts);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(m->own[i]))
            return ses_fail(e, SES_EARG, "row %zu has a number that is not finite", i / (size_t)m->columns);
    return true;
}

bool ses_fasttext_matrix_quantize(ses_fasttext_matrix *m, int32_t dsub, bool norms, ses_thread_pool *pool,
                                  ses_err *e)
{
    int32_t columns = (int32_t)m->columns;
    m->dsub = dsub;
    m->parts = (columns + dsub - 1) / dsub;
    m->last = columns - (m->parts - 1) * dsub;
    if (!check(m, m->parts, e) || (norms && !quantize_norms(m, pool, e))) return false;
    m->centroid = ses_alloc_array((size_t)columns * SES_CENTROIDS, sizeof *m->centroid, e);
    m->own_code = ses_alloc_array((size_t)m->rows * (size_t)m->parts, 1, e);
    m->code = m->own_code;
    if (!m->centroid || !m->code ||
        !run(&(quantizer){ .x = m->own,
                           .rows = (size_t)m->rows,
                           .columns = (size_t)columns,
                           .dsub = m->dsub,
                           .parts = m->parts,
                           .last = m->last,
                           .centroid = m->centroid,
                           .code = m->own_code,
                           .pool = pool },
             e))
        return false;
    ses_free(m->own);
    m->own = NULL;
    m->file = NULL;
    return true;
}
