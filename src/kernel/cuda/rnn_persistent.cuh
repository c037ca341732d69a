/* Matrix products inside a kernel that runs all time steps of a recurrent layer. The product C [m, n] = A B'
 * is split over the blocks of the grid into slices of n and of k; each block keeps its slice of B in shared
 * memory for the whole kernel and writes sums over its slice of k. Tensor cores multiply: bf16, or f32 as
 * three products of tf32 parts, with several times the error of plain f32 products.
 *
 * A lane's 16-byte vector, 8 bf16 or 4 f32 numbers along k, holds the operands of two mma instructions, whose
 * k indices are permuted the same way in A and B: the code is the same for both types. */
#ifndef SES_KERNEL_RNN_PERSISTENT_CUH
#define SES_KERNEL_RNN_PERSISTENT_CUH

#include "rnn_cuda.cuh"

enum {
    RNN_THREADS = 512,
    RNN_WARPS = RNN_THREADS / WARP,
    RNN_CHUNK = 128,         /* bytes of k that are loaded at once */
    RNN_STAGE_BYTES = 65536, /* shared memory for A: 512 rows of a chunk */
    RNN_MAX_N = 128          /* columns of a slice */
};

/* From the L2 cache: other multiprocessors write these numbers. */
template <int V> __device__ static inline units<V> get_uncached(const float *from)
{
    units<V> u;
    if (V == 2) {
        float2 both = __ldcg((const float2 *)from);
        u.at[0] = both.x, u.at[V - 1] = both.y;
    } else {
        u.at[0] = __ldcg(from);
    }
    return u;
}

struct rnn_product {
    const void *a; /* [rows][a_row]; columns past k are 0 */
    const void *b; /* element (n, k) at n n_stride + k k_stride */
    int64_t n_stride, k_stride;
    int n, k;
    int n_slice, k_slice, n_slices, k_slices; /* sizes in elements, numbers of slices; all 0: no product */
    float *sums;                              /* [k_slices][rows][sums_row] */
    int64_t rows;
    int smem; /* offset of B in shared memory, in bytes */

    __host__ __device__ int a_row() const { return k_slice * k_slices; }
    __host__ __device__ int64_t sums_row() const { return (int64_t)n_slice * n_slices; }
    /* Elements (i, j) .. of C and of the columns col, 2 col, ... behind them. Several loads are in flight. */
    template <int V, int COLS>
    __device__ void get(units<V> (&c)[COLS], int64_t i, int64_t j, int64_t col) const
    {
        enum { LOADS = 4 };
        const float *from = sums + i * sums_row() + j;
        for (int s = 0; s < k_slices; s += LOADS) {
            units<V> part[LOADS][COLS];
#pragma unroll
            for (int u = 0; u < LOADS; u++)
#pragma unroll
                for (int k = 0; k < COLS; k++)
                    if (s + u < k_slices)
                        part[u][k] = get_uncached<V>(from + (s + u) * rows * sums_row() + k * col);
#pragma unroll
            for (int u = 0; u < LOADS; u++)
#pragma unroll
                for (int k = 0; k < COLS; k++)
#pragma unroll
                    for (int v = 0; v < V; v++) c[k].at[v] += part[u][k].at[v];
        }
    }
};

/* B in the order that lanes read: [k / 64 bytes][n / 8][lane][16 bytes]. */
template <class T> __device__ static void rnn_load_weights(const rnn_product &p, char *shared)
{
    enum { VEC = 16 / sizeof(T) };
    int slice_n = blockIdx.x % max(p.n_slices, 1), slice_k = blockIdx.x / max(p.n_slices, 1);
    if (slice_k >= p.k_slices) return;
    T *to = (T *)(shared + p.smem);
    const T *from = (const T *)p.b;
    bool k_first = p.k_stride == 1;
    for (int e = threadIdx.x; e < p.n_slice * p.k_slice; e += RNN_THREADS) {
        int n = k_first ? e / p.k_slice : e % p.n_slice, k = k_first ? e % p.k_slice : e / p.n_slice;
        int64_t at_n = (int64_t)slice_n * p.n_slice + n, at_k = (int64_t)slice_k * p.k_slice + k;
        int lane = n % 8 * 4 + k / VEC % 4, tile = k / (4 * VEC) * (p.n_slice / 8) + n / 8;
        to[(tile * WARP + lane) * VEC + k % VEC] =
            at_n < p.n && at_k < p.k ? from[at_n * p.n_stride + at_k * p.k_stride] : from_float<T>(0);
    }
}

__device__ static inline void rnn_mma_bf16(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ static inline void rnn_mma_tf32(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The 11 bits of a float that tf32 keeps, and the rest. */
__device__ static inline uint32_t high_part(uint32_t x) { return x & 0xffffe000u; }
__device__ static inline uint32_t low_part(uint32_t x)
{
    return __float_as_uint(__uint_as_float(x) - __uint_as_float(high_part(x)));
}

/* Operand A of two mma instructions, from vectors of the rows g and g + 8. */
template <class T> struct rnn_operand {
    uint32_t high[2][4], low[2][4]; /* low: f32 only */
    __device__ void set(uint4 top, uint4 bottom)
    {
        const uint32_t all[2][4] = { { top.x, bottom.x, top.y, bottom.y },
                                     { top.z, bottom.z, top.w, bottom.w } };
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                high[s][i] = sizeof(T) == 2 ? all[s][i] : high_part(all[s][i]);
                if (sizeof(T) == 4) low[s][i] = low_part(all[s][i]);
            }
    }
    __device__ void multiply(float c[4], uint4 b) const
    {
        const uint32_t all[2][2] = { { b.x, b.y }, { b.z, b.w } };
#pragma unroll
        for (int s = 0; s < 2; s++) {
            if (sizeof(T) == 2) {
                rnn_mma_bf16(c, high[s], all[s][0], all[s][1]);
            } else {
                uint32_t b0 = high_part(all[s][0]), b1 = high_part(all[s][1]);
                rnn_mma_tf32(c, low[s], b0, b1);
                rnn_mma_tf32(c, high[s], low_part(all[s][0]), low_part(all[s][1]));
                rnn_mma_tf32(c, high[s], b0, b1);
            }
        }
    }
};

__device__ static inline void copy_16_async(void *to, const void *from, bool valid)
{
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from), "r"(valid ? 16 : 0));
}

/* 32 M_WARPS rows at a time. A warp computes 32 rows, N_TILES times 8 columns, and one half of each chunk of
 * k; then the halves are added. */
template <class T, int M_WARPS, int N_TILES> struct rnn_multiplier {
    enum {
        ROWS = 32 * M_WARPS,
        N_WARPS = RNN_WARPS / M_WARPS / 2,
        STAGE = ROWS * RNN_CHUNK,
        STAGES = RNN_STAGE_BYTES / STAGE,
        LOADS = (ROWS * 8 + RNN_THREADS - 1) / RNN_THREADS /* 16-byte vectors of a chunk per thread */
    };
    char *stages;
    const char *a, *weights;
    float *sums;
    int64_t a_bytes, sums_row;
    int m, n_slice, chunks, lane, m_warp, n_warp, half;

    __device__ rnn_multiplier(const rnn_product &p, char *shared, int rows)
    {
        int slice_n = blockIdx.x % p.n_slices, slice_k = blockIdx.x / p.n_slices, warp = threadIdx.x / WARP;
        stages = shared, weights = shared + p.smem, m = rows, n_slice = p.n_slice, sums_row = p.sums_row();
        a_bytes = p.a_row() * (int64_t)sizeof(T);
        a = (const char *)p.a + slice_k * p.k_slice * (int64_t)sizeof(T);
        sums = p.sums + slice_k * p.rows * sums_row + slice_n * n_slice;
        chunks = p.k_slice * (int)sizeof(T) / RNN_CHUNK;
        lane = threadIdx.x % WARP, half = warp % 2, m_warp = warp / 2 % M_WARPS, n_warp = warp / 2 / M_WARPS;
    }

    /* Vectors of odd rows are swapped in halves, so that reads have no bank conflicts. */
    __device__ void load(int first, int chunk, int stage) const
    {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            int row = (threadIdx.x + i * RNN_THREADS) / 8, col = threadIdx.x % 8, at = first + row;
            if (ROWS * 8 < RNN_THREADS && row >= ROWS) break;
            copy_16_async(stages + stage * STAGE + row * RNN_CHUNK + (col ^ (row & 1) << 2) * 16,
                          a + (at < m ? at : 0) * a_bytes + chunk * RNN_CHUNK + col * 16, at < m);
        }
    }

    __device__ void compute(float (&c)[2][N_TILES][4], int chunk, int stage) const
    {
        int g = lane / 4, tiles = n_slice / 8;
        const char *from = stages + stage * STAGE + (m_warp * 32 + g) * RNN_CHUNK +
                           ((half * 4 + lane % 4) ^ (g & 1) << 2) * 16;
        const char *b = weights + ((chunk * 2 + half) * tiles + n_warp) * 512 + lane * 16;
        rnn_operand<T> rows[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            rows[i].set(*(const uint4 *)(from + i * 16 * RNN_CHUNK),
                        *(const uint4 *)(from + (i * 16 + 8) * RNN_CHUNK));
#pragma unroll
        for (int j = 0; j < N_TILES; j++)
            if (n_warp + j * N_WARPS < tiles) {
                uint4 column = *(const uint4 *)(b + j * N_WARPS * 512);
                rows[0].multiply(c[0][j], column), rows[1].multiply(c[1][j], column);
            }
    }

    /* f(row, column, sums of two columns) for the elements of this lane. */
    template <class F> __device__ void each(float (&c)[2][N_TILES][4], F f) const
    {
#pragma unroll
        for (int j = 0; j < N_TILES; j++) {
            int col = (n_warp + j * N_WARPS) * 8 + lane % 4 * 2;
            if (col >= n_slice) continue;
#pragma unroll
            for (int i = 0; i < 4; i++) f(m_warp * 32 + i * 8 + lane / 4, col, &c[i / 2][j][i % 2 * 2]);
        }
    }

    /* Adds the halves of k and stores. */
    __device__ void store(float (&c)[2][N_TILES][4], int first) const
    {
        float *other = (float *)stages;
        __syncthreads(); /* all warps have read the stages */
        if (half)
            each(c, [&](int row, int col, const float *v) {
                *(float2 *)(other + row * n_slice + col) = make_float2(v[0], v[1]);
            });
        __syncthreads();
        if (!half)
            each(c, [&](int row, int col, const float *v) {
                float2 more = *(const float2 *)(other + row * n_slice + col);
                if (first + row < m)
                    *(float2 *)(sums + (first + row) * sums_row + col) =
                        make_float2(v[0] + more.x, v[1] + more.y);
            });
    }

    __device__ void run() const
    {
        for (int first = 0; first < m; first += ROWS) {
            float c[2][N_TILES][4] = {};
            bool has_rows = first + m_warp * 32 < m;
            __syncthreads(); /* store has read the stages */
            for (int i = 0; i < STAGES - 1 && i < chunks; i++) {
                load(first, i, i);
                asm volatile("cp.async.commit_group;");
            }
            for (int i = chunks; i < STAGES - 1; i++) asm volatile("cp.async.commit_group;");
            for (int i = 0, stage = 0, next = STAGES - 1; i < chunks; i++) {
                asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
                __syncthreads();
                if (i + STAGES - 1 < chunks) load(first, i + STAGES - 1, next);
                asm volatile("cp.async.commit_group;");
                if (has_rows) compute(c, i, stage);
                if (++stage == STAGES) stage = 0;
                if (++next == STAGES) next = 0;
            }
            asm volatile("cp.async.wait_all;");
            store(c, first);
        }
    }
};

/* This block's part of the product with m rows of A. */
template <class T> __device__ __noinline__ static void rnn_multiply(const rnn_product &p, char *shared, int m)
{
    if ((int)blockIdx.x >= p.n_slices * p.k_slices) return;
    int tiles = p.n_slice / 8;
    if (m <= 32)
        tiles > 8 ? rnn_multiplier<T, 1, 2>(p, shared, m).run() : rnn_multiplier<T, 1, 1>(p, shared, m).run();
    else if (m <= 64)
        tiles > 12  ? rnn_multiplier<T, 2, 4>(p, shared, m).run()
        : tiles > 8 ? rnn_multiplier<T, 2, 3>(p, shared, m).run()
        : tiles > 4 ? rnn_multiplier<T, 2, 2>(p, shared, m).run()
                    : rnn_multiplier<T, 2, 1>(p, shared, m).run();
    else
        tiles > 10  ? rnn_multiplier<T, 4, 8>(p, shared, m).run()
        : tiles > 6 ? rnn_multiplier<T, 4, 5>(p, shared, m).run()
        : tiles > 4 ? rnn_multiplier<T, 4, 3>(p, shared, m).run()
                    : rnn_multiplier<T, 4, 2>(p, shared, m).run();
}

/* Waits until all blocks of the grid have arrived; `phase` counts the calls. */
__device__ static inline void rnn_grid_barrier(unsigned *arrived, unsigned &phase)
{
    __syncthreads();
    phase++;
    if (threadIdx.x == 0) {
        unsigned seen;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        while (seen < phase * gridDim.x);
    }
    __syncthreads();
}

#endif
