#include "cuda_common.cuh"

#include <cub/device/device_radix_sort.cuh>

template <class T> struct tables {
    const T *table[SES_MAX_TABLES];
    const int32_t *id[SES_MAX_TABLES];
    int n;
};

/* A pack a thread. */
template <class T> static void gather_packs(ses_exec *x, T *to, tables<T> g, int64_t rows, int64_t cols)
{
    enum { N = pack<T>::N };
    int64_t across = cols / N;
    each(x, rows * across, [=] __device__(int64_t i) {
        int64_t t = i / across, j = i % across * N;
        float sum[N] = {};
        for (int k = 0; k < g.n; k++) {
            int32_t at = g.id[k][t];
            if (at == SES_IGNORE_INDEX) continue;
            pack<T> p = *(const pack<T> *)(g.table[k] + at * cols + j);
#pragma unroll
            for (int n = 0; n < N; n++) sum[n] += num(p.at[n]);
        }
        pack<T> y;
#pragma unroll
        for (int n = 0; n < N; n++) y.at[n] = cell<T>(sum[n]);
        *(pack<T> *)(to + t * cols + j) = y;
    });
}

template <class T>
static void gather(ses_exec *x, ses_real *y, const ses_real *const *table, const int32_t *const *id,
                   int n_tables, int64_t rows, int64_t cols)
{
    tables<T> g = {};
    T *to = cells<T>(y);
    g.n = n_tables;
    bool packed = cols % pack<T>::N == 0 && whole_packs(y);
    for (int i = 0; i < n_tables; i++) {
        g.table[i] = cells<T>(table[i]), g.id[i] = id[i];
        packed = packed && whole_packs(table[i]);
    }
    if (packed) return gather_packs<T>(x, to, g, rows, cols);
    each_row(x, rows, cols, [=] __device__(int64_t t, int64_t j) {
        float sum = 0;
        for (int k = 0; k < g.n; k++) {
            int32_t at = g.id[k][t];
            if (at != SES_IGNORE_INDEX) sum += num(g.table[k][at * cols + j]);
        }
        to[t * cols + j] = cell<T>(sum);
    });
}

/* Scattered addition in a fixed order. The places are sorted by id, stably, so that rows of one id stand side
 * by side in the order of t. Blocks sum runs of equal ids within chunks of `chunk` places: a run inside one
 * chunk is added to the table at once, the pieces of one that crosses borders are kept and added up after. */
template <class T> struct scatter {
    sink<T> table;
    const T *dy;
    const int32_t *key, *place; /* sorted */
    float *piece;               /* [chunks][2][cols]: of a run that came from before, of one that goes on */
    int64_t rows, cols, chunk;
    int32_t skip;
};

/* Threads over columns; the blocks of y take further columns. */
template <class T> __global__ void scatter_chunks(scatter<T> s)
{
    int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk < s.rows ? begin + s.chunk : s.rows;
    float sum = 0;
    bool from_before = begin > 0 && s.key[begin] == s.key[begin - 1];
    if (j >= s.cols) return;
    for (int64_t i = begin; i < end; i++) {
        int32_t id = s.key[i];
        if (id != s.skip) sum += num(s.dy[(int64_t)s.place[i] * s.cols + j]);
        bool last = i + 1 == s.rows || s.key[i + 1] != id; /* of its run */
        if (!last && i + 1 < end) continue;
        if (from_before)
            s.piece[(blockIdx.x * 2) * s.cols + j] = sum;
        else if (!last)
            s.piece[(blockIdx.x * 2 + 1) * s.cols + j] = sum;
        else if (id != s.skip)
            put(s.table, (int64_t)id * s.cols + j, sum);
        from_before = false;
        sum = 0;
    }
}

/* The chunk in which a run begins that goes on adds all its pieces. */
template <class T> __global__ void scatter_pieces(scatter<T> s)
{
    int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = blockIdx.x * s.chunk, end = begin + s.chunk;
    if (j >= s.cols || end >= s.rows || s.key[end] != s.key[end - 1]) return; /* none goes on */
    int32_t id = s.key[end - 1];
    if (id == s.skip || (begin > 0 && s.key[begin - 1] == id)) return; /* it began before */
    float sum = s.piece[(blockIdx.x * 2 + 1) * s.cols + j];
    int64_t low = blockIdx.x + 1,
            high = (s.rows + s.chunk - 1) / s.chunk; /* the first chunk that begins otherwise */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s.key[middle * s.chunk] == id)
            low = middle + 1;
        else
            high = middle;
    }
#pragma unroll 8
    for (int64_t c = blockIdx.x + 1; c < high; c++) sum += s.piece[(c * 2) * s.cols + j];
    put(s.table, (int64_t)id * s.cols + j, sum);
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
    scatter<T> s = { sink_of<T>(table), cells<T>(dy), key, place, piece, rows, cols, chunk, skip };
    unsigned threads = cols < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    dim3 grid((unsigned)chunks, (unsigned)ceil_div(cols, threads));
    scatter_chunks<T><<<grid, threads, 0, stream>>>(s);
    launched(x->cuda);
    scatter_pieces<T><<<grid, threads, 0, stream>>>(s);
    launched(x->cuda);
    scratch_unlock(x->cuda);
}

template <class T> struct pooling {
    const T *from;
    const int32_t *cu;
    int64_t cols;
    ses_pool_kind kind;
};

/* The greatest value wins, the first of equals; a NaN wins over all. */
template <class T> __device__ static inline int32_t greatest(const pooling<T> &p, int64_t s, int64_t j)
{
    int32_t best = p.cu[s];
    for (int32_t t = best + 1; t < p.cu[s + 1]; t++) {
        float v = num(p.from[t * p.cols + j]);
        if (v > num(p.from[best * p.cols + j]) || v != v) best = t;
    }
    return best;
}

template <class T> __device__ static inline float pool_mean(const pooling<T> &p, int64_t s, int64_t j)
{
    float sum = 0;
    for (int32_t t = p.cu[s]; t < p.cu[s + 1]; t++) sum += num(p.from[t * p.cols + j]);
    return sum / (float)(p.cu[s + 1] - p.cu[s]);
}

template <class T>
static void pool(ses_exec *x, ses_real *y, int32_t *arg, const ses_real *a, const int32_t *cu, int64_t seqs,
                 int64_t cols, ses_pool_kind kind)
{
    pooling<T> p = { cells<T>(a), cu, cols, kind };
    T *to = cells<T>(y);
    each_row(x, seqs, cols, [=] __device__(int64_t s, int64_t j) {
        bool empty = cu[s] == cu[s + 1];
        int32_t best = empty ? -1 : kind == SES_POOL_MAX ? greatest(p, s, j) : cu[s];
        if (kind == SES_POOL_MAX && arg) arg[s * cols + j] = best;
        float v = empty ? 0 : kind == SES_POOL_MEAN ? pool_mean(p, s, j) : num(p.from[best * cols + j]);
        to[s * cols + j] = cell<T>(v);
    });
}

template <class T>
static void pool_bwd(ses_exec *x, ses_dst da, const ses_real *dy, const int32_t *arg, const int32_t *cu,
                     int64_t seqs, int64_t cols, ses_pool_kind kind)
{
    sink<T> to = sink_of<T>(da);
    const T *from = cells<T>(dy);
    if (!da.data) return;
    each_row(x, seqs, cols, [=] __device__(int64_t s, int64_t j) {
        float d = num(from[s * cols + j]);
        int32_t best = kind == SES_POOL_MAX ? arg[s * cols + j] : cu[s];
        if (kind == SES_POOL_MEAN) d /= (float)(cu[s + 1] - cu[s]);
        for (int32_t t = cu[s]; t < cu[s + 1]; t++)
            put(to, t * cols + j, kind == SES_POOL_MEAN || t == best ? d : 0);
    });
}

template <class T> static void fill(ses_kernels *k)
{
    k->gather = gather<T>, k->scatter_add = scatter_add<T>, k->pool = pool<T>, k->pool_bwd = pool_bwd<T>;
}

void ses_cuda_gather(ses_kernels *k, bool narrow) { narrow ? fill<bf16>(k) : fill<float>(k); }
