/* Exact search in a vector index: blocks of vectors are dequantized into the cache and multiplied with every
 * query; each thread keeps the best k of its blocks. */
#include "vector_index.h"

#include "base/alloc.h"
#include "kernel/kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_VALUES = 1 << 15, MAX_BLOCK = 256, UNROLL = 16 };

typedef struct searcher {
    ses_thread_pool *pool; /* one thread: kernels run inside a chunk of the outer pool */
    ses_real *rows;        /* [block, dim] */
    ses_index_hit *heap;   /* [n, k]: the worst hit first */
    int64_t *size;         /* [n] */
} searcher;

typedef struct search_job {
    const ses_vector_index *index;
    const ses_vector_index_info *info;
    ses_kernels kernels;
    const float *query;
    int64_t n, k, block, n_workers;
    searcher *worker;
} search_job;

/* Order of hits: higher score, then lower index. */
static bool is_better(ses_index_hit a, ses_index_hit b)
{
    return a.score > b.score || (a.score == b.score && a.index < b.index);
}

static int compare_hits(const void *a, const void *b)
{
    ses_index_hit x = *(const ses_index_hit *)a, y = *(const ses_index_hit *)b;
    return is_better(x, y) ? -1 : is_better(y, x);
}

static void sift_down(ses_index_hit *heap, int64_t n, int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_better(heap[child], heap[child + 1])) child++;
        if (!is_better(heap[i], heap[child])) return;
        ses_index_hit h = heap[i];
        heap[i] = heap[child], heap[child] = h;
    }
}

static void push_hit(ses_index_hit *heap, int64_t *n, int64_t k, ses_index_hit hit)
{
    if (*n == k) {
        if (!is_better(hit, heap[0])) return;
        heap[0] = hit;
        sift_down(heap, k, 0);
        return;
    }
    int64_t i = (*n)++;
    for (; i > 0 && is_better(heap[(i - 1) / 2], hit); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = hit;
}

/* Independent sums, so that the compiler vectorizes the loop without reordering additions. */
static float dot(const ses_real *a, const float *b, int64_t n)
{
    float sum[UNROLL] = { 0 }, total = 0;
    int64_t i = 0;
    for (; i + UNROLL <= n; i += UNROLL)
        for (int64_t j = 0; j < UNROLL; j++) sum[j] += (float)a[i + j] * b[i + j];
    for (int64_t j = 0; i + j < n; j++) sum[j] += (float)a[i + j] * b[i + j];
    for (int step = UNROLL / 2; step; step /= 2)
        for (int j = 0; j < step; j++) sum[j] += sum[j + step];
    total = sum[0];
    return isnan(total) ? -INFINITY : total;
}

static void search_block(const search_job *j, searcher *w, int64_t first, int64_t rows)
{
    int64_t dim = j->info->dim;
    const float *scales = ses_vector_index_scales(j->index);
    ses_quant_rows table = { .data = ses_vector_index_vector(j->index, first),
                             .dtype = j->info->dtype,
                             .scale = scales ? scales + first : NULL };
    ses_exec exec = { .pool = w->pool };
    j->kernels.dequantize_rows(&exec, w->rows, &table, NULL, rows, dim);
    for (int64_t q = 0; q < j->n; q++)
        for (int64_t r = 0; r < rows; r++) {
            ses_index_hit hit = { first + r, dot(w->rows + r * dim, j->query + q * dim, dim) };
            push_hit(w->heap + q * j->k, &w->size[q], j->k, hit);
        }
}

static void search_worker(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    const search_job *j = ctx;
    int64_t count = j->info->count;
    for (int64_t first = i * j->block; first < count; first += j->n_workers * j->block) {
        int64_t left = count - first;
        search_block(j, &j->worker[i], first, left < j->block ? left : j->block);
    }
}

static bool start_worker(const search_job *j, searcher *w, ses_err *e)
{
    w->pool = ses_thread_pool_new(1, e);
    w->rows = w->pool ? ses_alloc_array((size_t)(j->block * j->info->dim), sizeof *w->rows, e) : NULL;
    w->heap = w->rows ? ses_alloc_array((size_t)j->n, (size_t)j->k * sizeof *w->heap, e) : NULL;
    w->size = w->heap ? ses_alloc_array((size_t)j->n, sizeof *w->size, e) : NULL;
    return w->size != NULL;
}

static void free_workers(search_job *j)
{
    for (int64_t i = 0; j->worker && i < j->n_workers; i++) {
        ses_thread_pool_free(j->worker[i].pool);
        ses_free(j->worker[i].rows);
        ses_free(j->worker[i].heap);
        ses_free(j->worker[i].size);
    }
    ses_free(j->worker);
}

/* Merges the heaps of all workers into the first one, and sorts it. */
static void merge_hits(search_job *j, int64_t q, ses_index_hit *hits)
{
    searcher *to = &j->worker[0];
    for (int64_t i = 1; i < j->n_workers; i++)
        for (int64_t h = 0; h < j->worker[i].size[q]; h++)
            push_hit(to->heap + q * j->k, &to->size[q], j->k, j->worker[i].heap[q * j->k + h]);
    memcpy(hits, to->heap + q * j->k, (size_t)j->k * sizeof *hits);
    qsort(hits, (size_t)j->k, sizeof *hits, compare_hits);
}

bool ses_vector_index_search(const ses_vector_index *x, ses_thread_pool *pool, ses_isa isa,
                             const float *query, int64_t n, int64_t k, ses_index_hit *hits, ses_err *e)
{
    search_job j = { .index = x,
                     .info = ses_vector_index_info_of(x),
                     .kernels = ses_kernels_cpu(isa),
                     .query = query,
                     .n = n,
                     .k = k,
                     .n_workers = ses_thread_pool_size(pool) };
    if (k > j.info->count)
        return ses_fail(e, SES_EARG, "%lld results requested from an index of %lld texts", (long long)k,
                        (long long)j.info->count);
    if (k < 1 || n < 1) return true;
    j.block = BLOCK_VALUES / j.info->dim;
    j.block = j.block < 1 ? 1 : j.block > MAX_BLOCK ? MAX_BLOCK : j.block;
    j.worker = ses_alloc_array((size_t)j.n_workers, sizeof *j.worker, e);
    bool ok = j.worker != NULL;
    for (int64_t i = 0; ok && i < j.n_workers; i++) ok = start_worker(&j, &j.worker[i], e);
    if (ok) ses_parallel_for(pool, j.n_workers, search_worker, &j);
    for (int64_t q = 0; ok && q < n; q++) merge_hits(&j, q, hits + q * k);
    free_workers(&j);
    return ok;
}
