#include "cuda.cuh"

#include <cub/device/device_radix_sort.cuh>

struct tables {
    const ses_real *table[SES_MAX_TABLES];
    const int32_t *id[SES_MAX_TABLES];
    int n;
};

void ses_k_gather_cuda(ses_exec *x, ses_real *y, const ses_real *const *table, const int32_t *const *id,
                       int n_tables, int64_t rows, int64_t cols)
{
    tables g = {};
    g.n = n_tables;
    for (int i = 0; i < n_tables; i++) g.table[i] = table[i], g.id[i] = id[i];
    each(x, rows * cols, [=] __device__(int64_t i) {
        int64_t t = i / cols, j = i % cols;
        float sum = 0;
        for (int k = 0; k < g.n; k++) {
            int32_t id = g.id[k][t];
            if (id != SES_IGNORE) sum += g.table[k][id * cols + j];
        }
        y[i] = sum;
    });
}

/* Scattered addition in a fixed order. The places are sorted by id, stably, so that rows of one id stand side
 * by side in the order of t. Blocks sum runs of equal ids within chunks of `chunk` places: a run inside one
 * chunk is added to the table at once, the pieces of one that crosses borders are kept and added up after. */
struct scatter {
    ses_real *table;
    const ses_real *dy;
    const int32_t *key, *place; /* sorted */
    float *piece;               /* [chunks][2][cols]: of a run that came from before, of one that goes on */
    int64_t rows, cols, chunk;
    int32_t skip;
};

/* Threads over columns; the blocks of y take further columns. */
__global__ void scatter_chunks(scatter s)
{
    int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk < s.rows ? begin + s.chunk : s.rows;
    float sum = 0;
    bool from_before = begin > 0 && s.key[begin] == s.key[begin - 1];
    if (j >= s.cols) return;
    for (int64_t i = begin; i < end; i++) {
        int32_t id = s.key[i];
        if (id != s.skip) sum += s.dy[(int64_t)s.place[i] * s.cols + j];
        bool last = i + 1 == s.rows || s.key[i + 1] != id; /* of its run */
        if (!last && i + 1 < end) continue;
        if (from_before)
            s.piece[(blockIdx.x * 2) * s.cols + j] = sum;
        else if (!last)
            s.piece[(blockIdx.x * 2 + 1) * s.cols + j] = sum;
        else if (id != s.skip)
            s.table[(int64_t)id * s.cols + j] += sum;
        from_before = false;
        sum = 0;
    }
}

/* The chunk in which a run begins that goes on adds all its pieces. */
__global__ void scatter_pieces(scatter s)
{
    int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk;
    if (j >= s.cols || end >= s.rows || s.key[end] != s.key[end - 1]) return; /* none goes on */
    int32_t id = s.key[end - 1];
    if (id == s.skip || (begin > 0 && s.key[begin - 1] == id)) return; /* it began before */
    float sum = s.piece[(blockIdx.x * 2 + 1) * s.cols + j];
    for (int64_t c = blockIdx.x + 1; c * s.chunk < s.rows && s.key[c * s.chunk] == id; c++)
        sum += s.piece[(c * 2) * s.cols + j];
    s.table[(int64_t)id * s.cols + j] += sum;
}

static size_t aligned(size_t n) { return (n + 255) / 256 * 256; }

void ses_k_scatter_add_cuda(ses_exec *x, ses_real *table, const ses_real *dy, const int32_t *id, int64_t rows,
                            int64_t cols, int32_t skip)
{
    if (rows <= 0 || cols <= 0) return;
    int64_t chunk = 32;
    while (ceil_div(rows, chunk) * cols > 4 << 20) chunk *= 2;
    int64_t chunks = ceil_div(rows, chunk);
    size_t list = aligned((size_t)rows * sizeof *id), temp = 0;
    size_t pieces = aligned((size_t)(chunks * 2 * cols) * sizeof(float));
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    cub::DeviceRadixSort::SortPairs(NULL, temp, id, (int32_t *)NULL, (int32_t *)NULL, (int32_t *)NULL,
                                    (int)rows, 0, 32, stream);
    char *memory = (char *)scratch_lock(x->cuda, 3 * list + pieces + temp);
    if (!memory) return;
    int32_t *key = (int32_t *)memory, *place = (int32_t *)(memory + list),
            *t = (int32_t *)(memory + 2 * list);
    float *piece = (float *)(memory + 3 * list);
    each(x, rows, [=] __device__(int64_t i) { t[i] = (int32_t)i; });
    ses_cuda_note(x->cuda, cub::DeviceRadixSort::SortPairs(memory + 3 * list + pieces, temp, id, key, t,
                                                           place, (int)rows, 0, 32, stream));
    scatter s = { table, dy, key, place, piece, rows, cols, chunk, skip };
    unsigned threads = cols < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    dim3 grid((unsigned)chunks, (unsigned)ceil_div(cols, threads));
    scatter_chunks<<<grid, threads, 0, stream>>>(s);
    launched(x->cuda);
    scatter_pieces<<<grid, threads, 0, stream>>>(s);
    launched(x->cuda);
    scratch_unlock(x->cuda);
}

struct pooling {
    const ses_real *from;
    const int32_t *cu;
    int64_t cols;
    ses_pool_kind kind;
};

/* The greatest value wins, the first of equals; a NaN wins over all. */
__device__ static inline int32_t greatest(const pooling &p, int64_t s, int64_t j)
{
    int32_t best = p.cu[s];
    for (int32_t t = best + 1; t < p.cu[s + 1]; t++) {
        float v = p.from[t * p.cols + j];
        if (v > p.from[best * p.cols + j] || v != v) best = t;
    }
    return best;
}

__device__ static inline float pool_mean(const pooling &p, int64_t s, int64_t j)
{
    float sum = 0;
    for (int32_t t = p.cu[s]; t < p.cu[s + 1]; t++) sum += p.from[t * p.cols + j];
    return sum / (float)(p.cu[s + 1] - p.cu[s]);
}

void ses_k_pool_cuda(ses_exec *x, ses_real *y, int32_t *arg, const ses_real *a, const int32_t *cu,
                     int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    pooling p = { a, cu, cols, kind };
    each(x, seqs * cols, [=] __device__(int64_t i) {
        int64_t s = i / cols, j = i % cols;
        bool empty = cu[s] == cu[s + 1];
        int32_t best = empty ? -1 : kind == SES_POOL_MAX ? greatest(p, s, j) : cu[s];
        if (kind == SES_POOL_MAX && arg) arg[i] = best;
        y[i] = empty ? 0 : kind == SES_POOL_MEAN ? pool_mean(p, s, j) : a[best * cols + j];
    });
}

void ses_k_pool_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dy, const int32_t *arg, const int32_t *cu,
                         int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    sink<ses_real> to = sink_of<ses_real>(da);
    if (!da.data) return;
    each(x, seqs * cols, [=] __device__(int64_t i) {
        int64_t s = i / cols, j = i % cols;
        int32_t best = kind == SES_POOL_MAX ? arg[i] : cu[s];
        for (int32_t t = cu[s]; t < cu[s + 1]; t++) {
            float d = kind == SES_POOL_MEAN ? dy[i] / (float)(cu[s + 1] - cu[s]) : t == best ? dy[i] : 0;
            put(to, t * cols + j, d);
        }
    });
}
