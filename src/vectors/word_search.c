/* Exact search: blocks of words are multiplied with batches of queries; each query keeps its best k. */
#include "word_search.h"

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

enum { LOAD_ROWS = 512, BLOCK = 16 * SES_PACK_STEP, BATCH = 256 };

struct ses_word_search {
    int64_t n, dim;
    ses_real *unit; /* [n, dim] */
    ses_thread_pool *pool;
    ses_kernels kernels;
};

void ses_unit_vector(ses_real *out, const float *x, int64_t dim)
{
    double sum = 0;
    for (int64_t k = 0; k < dim; k++) sum += (double)x[k] * x[k];
    ses_real length = (ses_real)sqrt(sum);
    for (int64_t k = 0; k < dim; k++) out[k] = length > 0 ? x[k] / length : 0;
}

/* ---- loading ---- */

typedef struct loading {
    const ses_vectors *v;
    ses_word_search *s;
    int64_t *bad; /* one per chunk: first row that failed, + 1 */
} loading;

static void load_chunk(void *ctx, int64_t i, void *scratch)
{
    loading *l = ctx;
    float *x = scratch; /* SES_SCRATCH_BYTES hold SES_VECTORS_MAX_DIM floats */
    int64_t dim = l->s->dim, end = (i + 1) * LOAD_ROWS < l->s->n ? (i + 1) * LOAD_ROWS : l->s->n;
    for (int64_t r = i * LOAD_ROWS; r < end && !l->bad[i]; r++)
        if (ses_vectors_get(l->v, r, x, NULL))
            ses_unit_vector(l->s->unit + r * dim, x, dim);
        else
            l->bad[i] = r + 1;
}

static bool load(ses_word_search *s, const ses_vectors *v, ses_err *e)
{
    int64_t chunks = (s->n + LOAD_ROWS - 1) / LOAD_ROWS;
    loading l = { v, s, ses_alloc_array((size_t)chunks, sizeof *l.bad, e) };
    if (!l.bad) return false;
    ses_parallel_for(s->pool, chunks, load_chunk, &l);
    float *x = ses_alloc_array((size_t)s->dim, sizeof *x, e);
    bool ok = x != NULL;
    for (int64_t i = 0; ok && i < chunks; i++) /* reads the first bad row again, for the message */
        if (l.bad[i]) ok = ses_vectors_get(v, l.bad[i] - 1, x, e);
    ses_free(x);
    ses_free(l.bad);
    return ok;
}

ses_word_search *ses_word_search_new(const ses_vectors *v, int64_t n, int threads, ses_err *e)
{
    ses_word_search *s = ses_alloc(sizeof *s, e);
    size_t count;
    if (!s) return NULL;
    s->n = n, s->dim = ses_vectors_dim(v);
    s->kernels = ses_kernels_cpu(SES_ISA_BEST);
    s->pool = ses_thread_pool_new(threads, e);
    if (s->pool && !ses_mul_size((size_t)n, (size_t)s->dim, &count))
        ses_fail(e, SES_ENOMEM, "too many vectors");
    else if (s->pool)
        s->unit = ses_alloc_huge(count, sizeof *s->unit, e);
    if (s->unit && load(s, v, e)) return s;
    ses_word_search_free(s);
    return NULL;
}

void ses_word_search_free(ses_word_search *s)
{
    if (!s) return;
    ses_thread_pool_free(s->pool);
    ses_free(s->unit);
    ses_free(s);
}

const ses_real *ses_word_search_unit(const ses_word_search *s, int64_t i) { return s->unit + i * s->dim; }

/* ---- searching ---- */

typedef struct batch {
    const ses_word_query *q;
    int64_t n, k;       /* queries, hits each */
    int64_t *term;      /* [n]: first row of each in x and scores */
    ses_real *x;        /* [terms, dim] */
    ses_real *scores;   /* [terms, BLOCK] */
    int64_t first, len; /* words of the block */
    ses_word_hit *hits; /* [n, k] */
} batch;

static bool is_excluded(const ses_word_query *q, int64_t i)
{
    for (int64_t k = 0; k < q->n_exclude; k++)
        if (q->exclude[k] == i) return true;
    return false;
}

/* Inserts a hit that is better than the last one. Words come in order, so equal scores keep it. */
static void keep(ses_word_hit *hits, int64_t k, ses_word_hit h)
{
    int64_t at = k - 1;
    while (at && (hits[at - 1].index < 0 || hits[at - 1].score < h.score)) {
        hits[at] = hits[at - 1];
        at--;
    }
    hits[at] = h;
}

static ses_real product(const ses_word_query *q, const ses_real *s, int64_t j)
{
    ses_real plus = 1, minus = 1;
    for (int t = 0; t < q->plus; t++) plus *= (1 + s[t * BLOCK + j]) / 2;
    for (int t = 0; t < q->minus; t++) minus *= (1 + s[(q->plus + t) * BLOCK + j]) / 2;
    return plus / (minus + (ses_real)1e-6);
}

static void take_block(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    const batch *b = ctx;
    const ses_word_query *q = &b->q[i];
    const ses_real *s = b->scores + b->term[i] * BLOCK;
    ses_word_hit *hits = b->hits + i * b->k, *last = hits + b->k - 1;
    for (int64_t j = 0; j < b->len; j++) {
        float score = (float)(q->multiply ? product(q, s, j) : s[j]);
        if ((last->index < 0 || score > last->score) && !is_excluded(q, b->first + j))
            keep(hits, b->k, (ses_word_hit){ b->first + j, score });
    }
}

static void run_batch(const ses_word_search *s, batch *b, int64_t terms)
{
    ses_exec exec = { .pool = s->pool };
    for (int64_t i = 0; i < b->n * b->k; i++) b->hits[i] = (ses_word_hit){ -1, 0 };
    for (b->first = 0; b->first < s->n; b->first += BLOCK) {
        b->len = s->n - b->first < BLOCK ? s->n - b->first : BLOCK;
        ses_gemm g = ses_gemm_nt(b->scores, b->x, s->unit + b->first * s->dim, terms, b->len, s->dim);
        g.ldc = BLOCK;
        s->kernels.gemm(&exec, &g);
        ses_parallel_for(s->pool, b->n, take_block, b);
    }
}

bool ses_word_search_run(const ses_word_search *s, const ses_word_query *q, int64_t n, int64_t k,
                         ses_word_hit *hits, ses_err *e)
{
    enum { ROWS = BATCH + SES_WORD_SEARCH_MAX_TERMS };
    int64_t term[BATCH];
    batch b = { .k = k, .term = term };
    b.x = ses_alloc_array(ROWS, (size_t)s->dim * sizeof *b.x, e);
    b.scores = b.x ? ses_alloc_array(ROWS, BLOCK * sizeof *b.scores, e) : NULL;
    bool ok = b.scores != NULL;
    for (int64_t done = 0; ok && k > 0 && done < n; done += b.n) {
        int64_t terms = 0;
        b.q = q + done, b.hits = hits + done * k;
        for (b.n = 0; done + b.n < n && b.n < BATCH && terms < BATCH; b.n++) {
            const ses_word_query *x = &b.q[b.n];
            size_t own = (size_t)(x->plus + x->minus);
            term[b.n] = terms;
            memcpy(b.x + terms * s->dim, x->x, own * (size_t)s->dim * sizeof *b.x);
            terms += (int64_t)own;
        }
        run_batch(s, &b, terms);
    }
    ses_free(b.scores);
    ses_free(b.x);
    return ok;
}
