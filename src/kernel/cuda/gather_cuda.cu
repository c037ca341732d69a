/* CUDA kernels that gather rows of tables, scatter gradients to them, and pool sequences. */
#include "cuda_common.cuh"

#include <cub/device/device_radix_sort.cuh>

template <class T> struct tables {
    const T *table[SES_MAX_TABLES];
    const int32_t *id[SES_MAX_TABLES];
    int n;
};

/* 16 bytes per thread. */
template <class T> static void gather_vec(ses_exec *x, T *to, tables<T> g, int64_t rows, int64_t cols)
{
    enum { N = vec16<T>::N };
    int64_t across = cols / N;
    for_each(x, rows * across, [=] __device__(int64_t i) {
        int64_t t = i / across, j = i % across * N;
        float sum[N] = {};
        for (int k = 0; k < g.n; k++) {
            int32_t at = g.id[k][t];
            if (at == SES_IGNORE_INDEX) continue;
            vec16<T> p = *(const vec16<T> *)(g.table[k] + at * cols + j);
#pragma unroll
            for (int n = 0; n < N; n++) sum[n] += to_float(p.at[n]);
        }
        vec16<T> y;
#pragma unroll
        for (int n = 0; n < N; n++) y.at[n] = from_float<T>(sum[n]);
        *(vec16<T> *)(to + t * cols + j) = y;
    });
}

template <class T>
static void gather(ses_exec *x, ses_real *y, const ses_real *const *table, const int32_t *const *id,
                   int n_tables, int64_t rows, int64_t cols)
{
    tables<T> g = {};
    T *to = elems<T>(y);
    g.n = n_tables;
    bool packed = cols % vec16<T>::N == 0 && aligned16(y);
    for (int i = 0; i < n_tables; i++) {
        g.table[i] = elems<T>(table[i]), g.id[i] = id[i];
        packed = packed && aligned16(table[i]);
    }
    if (packed) return gather_vec<T>(x, to, g, rows, cols);
    for_each_row(x, rows, cols, [=] __device__(int64_t t, int64_t j) {
        float sum = 0;
        for (int k = 0; k < g.n; k++) {
            int32_t at = g.id[k][t];
            if (at != SES_IGNORE_INDEX) sum += to_float(g.table[k][at * cols + j]);
        }
        to[t * cols + j] = from_float<T>(sum);
    });
}

/* scatter_add in a fixed order. Positions are sorted by id with a stable sort, so rows with the same id are
 * adjacent and in the order of t. Each block sums runs of equal ids within a chunk of `chunk` positions. A
 * run inside one chunk is added to the table at once; runs across chunks are stored as partial sums and added
 * by scatter_partials. */
template <class T> struct scatter {
    dst<T> table;
    const T *dy;
    const int32_t *key, *source; /* sorted ids, and the row of dy of each */
    /* [chunks][2][cols]: partial sum of a run that began before the chunk, of one that continues after it */
    float *partial;
    int64_t rows, cols, chunk;
    int32_t skip;
};

/* Threads are columns; blockIdx.y selects further columns. */
template <class T> __global__ void scatter_chunks(scatter<T> s)
{
    int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk < s.rows ? begin + s.chunk : s.rows;
    float sum = 0;
    bool from_before = begin > 0 && s.key[begin] == s.key[begin - 1];
    if (j >= s.cols) return;
    for (int64_t i = begin; i < end; i++) {
        int32_t id = s.key[i];
        if (id != s.skip) sum += to_float(s.dy[(int64_t)s.source[i] * s.cols + j]);
        bool last = i + 1 == s.rows || s.key[i + 1] != id; /* last of its run */
        if (!last && i + 1 < end) continue;
        if (from_before)
            s.partial[(blockIdx.x * 2) * s.cols + j] = sum;
        else if (!last)
            s.partial[(blockIdx.x * 2 + 1) * s.cols + j] = sum;
        else if (id != s.skip)
            store(s.table, (int64_t)id * s.cols + j, sum);
        from_before = false;
        sum = 0;
    }
}

/* The chunk in which a run starts adds all partial sums of the run. */
template <class T> __global__ void scatter_partials(scatter<T> s)
{
    int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk;
    if (j >= s.cols || end >= s.rows || s.key[end] != s.key[end - 1]) return; /* no run continues */
    int32_t id = s.key[end - 1];
    if (id == s.skip || (begin > 0 && s.key[begin - 1] == id)) return; /* it started earlier */
    float sum = s.partial[(blockIdx.x * 2 + 1) * s.cols + j];
    int64_t low = blockIdx.x + 1,
            high = (s.rows + s.chunk - 1) / s.chunk; /* first chunk that starts with another id */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s.key[middle * s.chunk] == id)
            low = middle + 1;
        else
            high = middle;
    }
#pragma unroll 8
    for (int64_t c = blockIdx.x + 1; c < high; c++) sum += s.partial[(c * 2) * s.cols + j];
    store(s.table, (int64_t)id * s.cols + j, sum);
}

static size_t aligned(size_t n) { return (n + 255) / 256 * 256; }

template <class T>
static void scatter_add(ses_exec *x, ses_dst table, const ses_real *dy, const int32_t *id, int64_t rows,
                        int64_t cols, int32_t skip)
{
    if (rows <= 0 || cols <= 0) return;
    int64_t chunk = 32;
    while (ceil_div(rows, chunk) * cols > 4 << 20) chunk *= 2;
    int64_t chunks = ceil_div(rows, chunk);
    size_t list = aligned((size_t)rows * sizeof *id), temp = 0;
    size_t partials = aligned((size_t)(chunks * 2 * cols) * sizeof(float));
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    cub::DeviceRadixSort::SortPairs(NULL, temp, id, (int32_t *)NULL, (int32_t *)NULL, (int32_t *)NULL,
                                    (int)rows, 0, 32, stream);
    char *memory = (char *)scratch_lock(x->cuda, 3 * list + partials + temp);
    if (!memory) return;
    int32_t *key = (int32_t *)memory, *source = (int32_t *)(memory + list),
            *t = (int32_t *)(memory + 2 * list);
    float *partial = (float *)(memory + 3 * list);
    for_each(x, rows, [=] __device__(int64_t i) { t[i] = (int32_t)i; });
    ses_cuda_record(x->cuda, cub::DeviceRadixSort::SortPairs(memory + 3 * list + partials, temp, id, key, t,
                                                             source, (int)rows, 0, 32, stream));
    scatter<T> s = { dst_of<T>(table), elems<T>(dy), key, source, partial, rows, cols, chunk, skip };
    unsigned threads = cols < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    dim3 grid((unsigned)chunks, (unsigned)ceil_div(cols, threads));
    scatter_chunks<T><<<grid, threads, 0, stream>>>(s);
    check_launch(x->cuda);
    scatter_partials<T><<<grid, threads, 0, stream>>>(s);
    check_launch(x->cuda);
    scratch_unlock(x->cuda);
}

template <class T> struct pooling {
    const T *from;
    const int32_t *cu_seqlens;
    int64_t cols;
    ses_pool_kind kind;
};

/* Index of the maximum: the first of equal values; a NaN wins over every number. */
template <class T> __device__ static inline int32_t argmax(const pooling<T> &p, int64_t s, int64_t j)
{
    int32_t best = p.cu_seqlens[s];
    for (int32_t t = best + 1; t < p.cu_seqlens[s + 1]; t++) {
        float v = to_float(p.from[t * p.cols + j]);
        if (v > to_float(p.from[best * p.cols + j]) || v != v) best = t;
    }
    return best;
}

template <class T> __device__ static inline float pool_mean(const pooling<T> &p, int64_t s, int64_t j)
{
    float sum = 0;
    for (int32_t t = p.cu_seqlens[s]; t < p.cu_seqlens[s + 1]; t++) sum += to_float(p.from[t * p.cols + j]);
    return sum / (float)(p.cu_seqlens[s + 1] - p.cu_seqlens[s]);
}

template <class T>
static void pool(ses_exec *x, ses_real *y, int32_t *arg, const ses_real *a, const int32_t *cu_seqlens,
                 int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    pooling<T> p = { elems<T>(a), cu_seqlens, cols, kind };
    T *to = elems<T>(y);
    for_each_row(x, seqs, cols, [=] __device__(int64_t s, int64_t j) {
        bool empty = cu_seqlens[s] == cu_seqlens[s + 1];
        int32_t best = empty ? -1 : kind == SES_POOL_MAX ? argmax(p, s, j) : cu_seqlens[s];
        if (kind == SES_POOL_MAX && arg) arg[s * cols + j] = best;
        float v = empty ? 0 : kind == SES_POOL_MEAN ? pool_mean(p, s, j) : to_float(p.from[best * cols + j]);
        to[s * cols + j] = from_float<T>(v);
    });
}

template <class T>
static void pool_bwd(ses_exec *x, ses_dst da, const ses_real *dy, const int32_t *arg,
                     const int32_t *cu_seqlens, int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    dst<T> to = dst_of<T>(da);
    const T *from = elems<T>(dy);
    if (!da.data) return;
    for_each_row(x, seqs, cols, [=] __device__(int64_t s, int64_t j) {
        float d = to_float(from[s * cols + j]);
        int32_t best = kind == SES_POOL_MAX ? arg[s * cols + j] : cu_seqlens[s];
        if (kind == SES_POOL_MEAN) d /= (float)(cu_seqlens[s + 1] - cu_seqlens[s]);
        for (int32_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; t++)
            store(to, t * cols + j, kind == SES_POOL_MEAN || t == best ? d : 0);
    });
}

template <class T> static void fill(ses_kernels *k)
{
    k->gather = gather<T>, k->scatter_add = scatter_add<T>, k->pool = pool<T>, k->pool_bwd = pool_bwd<T>;
}

void ses_cuda_gather(ses_kernels *k, bool is_bf16) { is_bf16 ? fill<bf16>(k) : fill<float>(k); }
