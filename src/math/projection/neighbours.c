/* Nearest neighbours: scores by blocks of queries, selection of candidates, exact distances. */
#include "neighbours.h"

#include "base/alloc.h"
#include "kernel/chunking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA = 16, BLOCK_FLOATS = 4 << 20, MAX_QUERIES = 1024, MIN_QUERIES = 8 };

/* ---- scores ---- */

typedef struct score_job {
    const ses_real *score;
    int64_t n, first;
    ses_score_fn *use;
    void *ctx;
} score_job;

static void use_row(void *ctx, int64_t i, void *scratch)
{
    const score_job *j = ctx;
    j->use(j->ctx, j->first + i, j->score + i * j->n, scratch);
}

static void negative_half_squares(const ses_real *x, int64_t n, int64_t width, ses_real *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < width; j++) sum += (double)x[i * width + j] * (double)x[i * width + j];
        out[i] = (ses_real)(-0.5 * sum);
    }
}

typedef struct score_buffers {
    ses_real *bias, *score, *query;
    void *packed;
    int64_t per_block;
} score_buffers;

static bool make_buffers(score_buffers *b, const ses_math *m, const ses_real *x, int64_t n, int64_t width,
                         ses_err *e)
{
    int64_t q = BLOCK_FLOATS / n, size = m->k.gemm_pack_size(n, width);
    b->per_block = q > MAX_QUERIES ? MAX_QUERIES : q < MIN_QUERIES ? MIN_QUERIES : q;
    b->bias = ses_alloc_array((size_t)n, sizeof *b->bias, e);
    b->score = b->bias ? ses_alloc_huge((size_t)(b->per_block * n), sizeof *b->score, e) : NULL;
    b->query = b->score ? ses_alloc_array((size_t)(b->per_block * width), sizeof *b->query, e) : NULL;
    b->packed = b->query && size ? ses_alloc_huge((size_t)size, sizeof(ses_real), e) : NULL;
    if (!b->query || (size && !b->packed)) return false;
    negative_half_squares(x, n, width, b->bias);
    ses_exec exec = m->exec;
    if (size) m->k.gemm_pack(&exec, b->packed, SES_REAL, x, 1, width, n, width);
    return true;
}

static void free_buffers(score_buffers *b)
{
    ses_free(b->bias);
    ses_free(b->score);
    ses_free(b->query);
    ses_free(b->packed);
}

bool ses_score_rows(const ses_math *m, const ses_real *x, int64_t n, int64_t width, const int32_t *pick,
                    int64_t rows, const char *label, ses_score_fn *use, void *ctx, ses_err *e)
{
    score_buffers b = { 0 };
    bool ok = make_buffers(&b, m, x, n, width, e);
    for (int64_t at = 0; ok && at < rows; at += b.per_block) {
        int64_t step = rows - at < b.per_block ? rows - at : b.per_block;
        const ses_real *query = x + at * width;
        for (int64_t i = 0; pick && i < step; i++)
            memcpy(b.query + i * width, x + (int64_t)pick[at + i] * width, (size_t)width * sizeof *x);
        ses_gemm g = ses_gemm_nt(b.score, pick ? b.query : query, x, step, n, width);
        g.bias = b.bias;
        g.packed = b.packed;
        g.packed_dtype = SES_REAL;
        ses_exec exec = m->exec;
        m->k.gemm(&exec, &g);
        score_job j = { b.score, n, at, use, ctx };
        ses_parallel_for(m->exec.pool, step, use_row, &j);
        ses_math_step(m, label, at + step, rows);
    }
    free_buffers(&b);
    return ok;
}

/* ---- selection ---- */

typedef struct candidate {
    double key;
    int32_t index;
} candidate;

typedef struct search {
    const ses_math *m;
    const ses_real *x;
    int64_t n, width, k;
    const int32_t *pick;
    ses_neighbours *out;
} search;

static bool before(const candidate *a, const candidate *b)
{
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

/* Moves the `keep` smallest of n candidates to the front (Hoare's selection). */
static void select_smallest(candidate *c, int64_t n, int64_t keep)
{
    for (int64_t low = 0, high = n - 1; low < high;) {
        candidate pivot = c[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (before(&c[i], &pivot)) i++;
            while (before(&pivot, &c[j])) j--;
            if (i <= j) {
                candidate t = c[i];
                c[i++] = c[j], c[j--] = t;
            }
        }
        if (keep <= j)
            high = j;
        else if (keep > i)
            low = i;
        else
            return;
    }
}

static int by_key(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a); }

/* The candidates of one query: the `want` largest scores, by windows of scores above the current limit. */
static int64_t collect(const search *s, const ses_real *score, int32_t self, candidate *c, int64_t *hit,
                       int64_t want)
{
    enum { WINDOW = 4096 };
    int64_t have = 0;
    ses_real limit = (ses_real)-INFINITY;
    for (int64_t at = 0; at < s->n; at += WINDOW) {
        int64_t step = s->n - at < WINDOW ? s->n - at : WINDOW;
        int64_t found = s->m->k.scan_above(score + at, step, limit, hit);
        for (int64_t h = 0; h < found; h++) {
            int64_t j = at + hit[h];
            if (j == self || score[j] <= limit) continue;
            c[have++] = (candidate){ -(double)score[j], (int32_t)j };
            if (have < 2 * want) continue;
            select_smallest(c, have, want);
            have = want;
            double worst = c[0].key;
            for (int64_t i = 1; i < want; i++)
                if (c[i].key > worst) worst = c[i].key;
            limit = (ses_real)-worst;
        }
    }
    if (have > want) select_smallest(c, have, want);
    return have < want ? have : want;
}

static double distance(const ses_real *a, const ses_real *b, int64_t width)
{
    double sum[4] = { 0 };
    int64_t j = 0;
    for (; j + 4 <= width; j += 4)
        for (int l = 0; l < 4; l++) {
            double d = (double)a[j + l] - (double)b[j + l];
            sum[l] += d * d;
        }
    for (int l = 0; j < width; j++, l++) {
        double d = (double)a[j] - (double)b[j];
        sum[l] += d * d;
    }
    return sqrt((sum[0] + sum[2]) + (sum[1] + sum[3]));
}

static void search_row(void *ctx, int64_t query, const ses_real *score, void *scratch)
{
    const search *s = ctx;
    int32_t self = s->pick ? s->pick[query] : (int32_t)query;
    int64_t want = s->k + EXTRA < s->n - 1 ? s->k + EXTRA : s->n - 1;
    candidate *c = scratch;
    int64_t *hit = (int64_t *)(void *)(c + 2 * want + 1);
    int64_t have = collect(s, score, self, c, hit, want);
    for (int64_t i = 0; i < have; i++)
        c[i].key = distance(s->x + self * s->width, s->x + c[i].index * s->width, s->width);
    qsort(c, (size_t)have, sizeof *c, by_key);
    for (int64_t i = 0; i < s->k; i++) {
        s->out->index[query * s->k + i] = c[i].index;
        s->out->distance[query * s->k + i] = c[i].key;
    }
}

bool ses_neighbours_find(ses_neighbours *nb, const ses_math *m, const ses_real *x, int64_t n, int64_t width,
                         int64_t k, const int32_t *pick, int64_t rows, ses_err *e)
{
    *nb = (ses_neighbours){ .rows = pick ? rows : n, .k = k };
    enum { MAX_K = SES_SCRATCH_BYTES / (4 * (int)sizeof(candidate)) };
    if (k < 1 || k >= n || n > INT32_MAX || k > MAX_K)
        return ses_fail(e, SES_EARG, "%lld neighbours of each of %lld points", (long long)k, (long long)n);
    size_t count;
    if (!ses_mul_size((size_t)nb->rows, (size_t)k, &count))
        return ses_fail(e, SES_ENOMEM, "neighbours of %lld points", (long long)nb->rows);
    nb->distance = ses_alloc_array(count, sizeof *nb->distance, e);
    nb->index = nb->distance ? ses_alloc_array(count, sizeof *nb->index, e) : NULL;
    search s = { m, x, n, width, k, pick, nb };
    if (nb->index && ses_score_rows(m, x, n, width, pick, nb->rows, "neighbours", search_row, &s, e))
        return true;
    ses_neighbours_free(nb);
    return false;
}

void ses_neighbours_free(ses_neighbours *nb)
{
    ses_free(nb->index);
    ses_free(nb->distance);
    *nb = (ses_neighbours){ 0 };
}
