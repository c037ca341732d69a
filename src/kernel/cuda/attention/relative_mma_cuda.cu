/* Relative scores on tensor cores (bf16): products of 64 tokens of x with the rows of r of 64 neighboring
 * distances. Element [t][e] of such a tile belongs to one pair, the token t and its other token at
 * distance e, so tiles are skewed views of the scores, which are written from, and read into, shared
 * memory.  The gradient of r is summed for each distance over a range of sequences, then over the ranges
 * and over the distances that share a row, in order: repeated runs give the same bits. */
#include "mma_tiles.cuh"
#include "relative_cuda.cuh"

/* Rows of scores in shared memory: diagonals hit different banks. */
enum { SCORES_LD = SIDE + 2, GRAD_LD = SIDE + 8 };

/* 64 tokens of x in one head of a sequence. A distance is j - pos(i). */
struct x_tile {
    ses_rel_seq_head p;
    int64_t first, n;   /* first token; tokens of the sequence */
    int64_t ahead;      /* position of the first query */
    int64_t begin, end; /* distances of the tile's pairs */
};

__device__ static inline int64_t tile_position(const ses_relative &a, const x_tile &m, int64_t t)
{
    return a.q_pos ? a.q_pos[m.p.q0 + t] : t + m.ahead;
}

__device__ static inline x_tile tile_of(const ses_relative &a, const ses_rel_seq_head &p, int64_t first)
{
    x_tile m = { p, first, a.x_is_key ? p.len_k : p.len_q, p.len_k - p.len_q, 0, 0 };
    int64_t last = (first + SIDE < m.n ? first + SIDE : m.n) - 1;
    if (first > last || p.len_q <= 0 || p.len_k <= 0) return m;
    if (a.x_is_key) {
        m.begin = first - (m.ahead + p.len_q - 1), m.end = last - m.ahead + 1;
        return m;
    }
    int64_t low = tile_position(a, m, first), high = low;
    for (int64_t t = first + 1; a.q_pos && t <= last; t++) {
        int64_t pos = tile_position(a, m, t);
        low = pos < low ? pos : low, high = pos > high ? pos : high;
    }
    if (!a.q_pos) high = last + m.ahead;
    m.begin = -high, m.end = p.len_k - low;
    return m;
}

/* An element of a tile: scores[at] of the sequences, if it belongs to a pair, and tile[shared]. */
struct element {
    int64_t at;
    int shared;
    bool is_pair;
};

/* Element k of 64 in line `line` of 64 of the tile with the distances from e0 on, which has rows of ld
 * numbers. Neighbors in a line are neighboring keys of a query: a line is a row of the tile if x are the
 * queries, two diagonals, which belong to the queries i and i + 64, if x are the keys. */
__device__ static inline element element_of(const ses_relative &a, const x_tile &m, int64_t e0, int ld,
                                            int line, int k)
{
    int64_t i, j;
    int shared;
    if (a.x_is_key) {
        i = m.first - e0 + line - (SIDE - 1) - m.ahead + (k > line ? SIDE : 0), j = m.first + k;
        shared = k * ld + ((k - line - 1) & (SIDE - 1));
    } else {
        i = m.first + line, j = i < m.n ? tile_position(a, m, i) + e0 + k : -1;
        shared = line * ld + k;
    }
    element x = { m.p.scores + i * m.p.len_k + j, shared,
                  i >= 0 && i < m.p.len_q && j >= 0 && j < m.p.len_k };
    return x;
}

/* A warp has every STEP-th line, LINES at a time, so that their loads are under way together. */
enum { LINES = 4, STEP = THREADS / WARP };

template <int DH> __device__ static inline void load_tokens(bf16 *to, const ses_relative &a, const x_tile &m)
{
    load_tile<DH>(to, rel_x<bf16>(a, m.p, 0), a.x_row, m.first, m.n, (int)a.dim);
}

/* ---- forward ---- */

/* Stores the scores of lines first, first + STEP, ... */
__device__ static inline void put_lines(const ses_relative &a, dst<bf16> y, const x_tile &m, int64_t e0,
                                        const float *scores, int first)
{
    float before[LINES][2];
#pragma unroll
    for (int u = 0; u < LINES; u++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            element x = element_of(a, m, e0, SCORES_LD, first + u * STEP, threadIdx.x % WARP + h * WARP);
            before[u][h] = a.mask && x.is_pair ? a.mask[x.at - m.p.scores + m.p.mask] : 0;
            if (y.accumulate && x.is_pair) before[u][h] += to_float(y.data[x.at]);
        }
#pragma unroll
    for (int u = 0; u < LINES; u++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            element x = element_of(a, m, e0, SCORES_LD, first + u * STEP, threadIdx.x % WARP + h * WARP);
            if (x.is_pair) y.data[x.at] = from_float<bf16>(fmaf(a.scale, scores[x.shared], before[u][h]));
        }
}

/* Scores of a tile. x: shared memory for the tokens, two tiles of r, the products. */
template <int DH>
__device__ static inline void tile_scores(const ses_relative &a, dst<bf16> y, const x_tile &m, bf16 *x)
{
    bf16 *r = x + shape<DH>::TILE;
    float *scores = (float *)(r + 2 * shape<DH>::TILE);
    int t = threadIdx.x % 4, g = threadIdx.x % WARP / 4, warp = threadIdx.x / WARP;
    load_tokens<DH>(x, a, m);
    if (m.begin < m.end) load_distances<DH>(r, a, m.p, m.begin, m.end);
    copies_end();
    for (int64_t e0 = m.begin; e0 < m.end; e0 += SIDE) {
        int now = (int)((e0 - m.begin) / SIDE % 2);
        if (e0 + SIDE < m.end) load_distances<DH>(r + (1 - now) * shape<DH>::TILE, a, m.p, e0 + SIDE, m.end);
        copies_end();
        copies_wait<1>();
        __syncthreads();
        float c[TILES][4];
        products<DH, TILES>(c, own_rows<DH>(x), r + now * shape<DH>::TILE, SIDE);
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(float2 *)(scores + (warp * 16 + g + 8 * h) * SCORES_LD + n * 8 + 2 * t) =
                    make_float2(c[n][2 * h], c[n][2 * h + 1]);
        __syncthreads();
        for (int line = warp; line < SIDE; line += LINES * STEP) put_lines(a, y, m, e0, scores, line);
    }
}

template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 4 : 2)
    relative_scores_mma(ses_relative a, dst<bf16> y, int64_t tiles)
{
    extern __shared__ uint4 shared[];
    ses_rel_seq_head p = rel_part_at(a, blockIdx.x / tiles);
    for (int64_t first = blockIdx.x % tiles * SIDE; first < (a.x_is_key ? p.len_k : p.len_q);
         first += tiles * SIDE) {
        __syncthreads();
        tile_scores<DH>(a, y, tile_of(a, p, first), (bf16 *)shared);
    }
}

/* ---- backward ---- */

/* The gradients of the tile's scores as [t][e], or [t][63 - e] if `reversed`; zeros without a pair. */
__device__ static inline void load_grads(bf16 *to, const ses_relative &a, const x_tile &m, const bf16 *dy,
                                         int64_t e0, bool reversed)
{
    for (int first = threadIdx.x / WARP; first < SIDE; first += LINES * STEP) {
        bf16 v[LINES][2];
#pragma unroll
        for (int u = 0; u < LINES; u++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                element x = element_of(a, m, e0, GRAD_LD, first + u * STEP, threadIdx.x % WARP + h * WARP);
                v[u][h] = x.is_pair ? dy[x.at] : from_float<bf16>(0);
            }
#pragma unroll
        for (int u = 0; u < LINES; u++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int k = threadIdx.x % WARP + h * WARP, line = first + u * STEP,
                    at = element_of(a, m, e0, GRAD_LD, line, k).shared;
                to[reversed ? line * GRAD_LD + SIDE - 1 - k : at] = v[u][h]; /* reversed: x are queries */
            }
    }
}

/* dx = scale * sum over distances of dy r, for a tile. r: shared memory for two tiles of r and the
 * gradients. */
template <int DH>
__device__ static inline void tile_token_grads(const ses_relative &a, const bf16 *dy, dst<bf16> dx,
                                               const x_tile &m, bf16 *r)
{
    bf16 *grads = r + 2 * shape<DH>::TILE;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const bf16 *own = grads + (warp * 16 + lane % 16) * GRAD_LD + lane / 16 * 8;
    float sum[DH / 8][4] = {};
    if (m.begin < m.end) load_distances<DH>(r, a, m.p, m.begin, m.end);
    copies_end();
    for (int64_t e0 = m.begin; e0 < m.end; e0 += SIDE) {
        int now = (int)((e0 - m.begin) / SIDE % 2);
        if (e0 + SIDE < m.end) load_distances<DH>(r + (1 - now) * shape<DH>::TILE, a, m.p, e0 + SIDE, m.end);
        copies_end();
        load_grads(grads, a, m, dy, e0, false);
        copies_wait<1>();
        __syncthreads();
        uint32_t w[TILES / 2][4];
#pragma unroll
        for (int k = 0; k < TILES / 2; k++) load_matrices(w[k], own + k * 16);
        accumulate<DH, TILES / 2>(sum, w, r + now * shape<DH>::TILE, SIDE);
        __syncthreads();
    }
    float by[2] = { a.scale, a.scale };
    int64_t at = (a.x_is_key ? m.p.k0 : m.p.q0) * a.x_row + m.p.head * a.x_head;
    store_rows<DH>(dx, sum, m.first, m.n, at, a.x_row, (int)a.dim, by);
}

template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 4 : 2)
    relative_bwd_tokens(ses_relative a, const bf16 *dy, dst<bf16> dx, int64_t tiles)
{
    extern __shared__ uint4 shared[];
    ses_rel_seq_head p = rel_part_at(a, blockIdx.x / tiles);
    for (int64_t first = blockIdx.x % tiles * SIDE; first < (a.x_is_key ? p.len_k : p.len_q);
         first += tiles * SIDE) {
        __syncthreads();
        tile_token_grads<DH>(a, dy, dx, tile_of(a, p, first), (bf16 *)shared);
    }
}

/* sums[range][distance][heads][dim] of dy' x: the block's range of sequences, head and 64 distances. */
template <int DH>
__global__ void __launch_bounds__(THREADS, DH <= 64 ? 4 : 2)
    relative_bwd_distances(ses_relative a, const bf16 *dy, float *sums, int64_t ranges, int64_t chunks)
{
    extern __shared__ uint4 shared[];
    bf16 *x = (bf16 *)shared, *grads = x + shape<DH>::TILE;
    int64_t head = blockIdx.x % a.heads, chunk = blockIdx.x / a.heads % chunks,
            range = blockIdx.x / a.heads / chunks;
    int64_t s = a.seqs * range / ranges, end = a.seqs * (range + 1) / ranges,
            before = pairs_before(s, a.cu_seqlens_q, a.cu_seqlens_k, NULL);
    int64_t from = chunk * SIDE - (a.max_seqlen_k - 1); /* distances from .. from + 63, before a reversal */
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, t = lane % 4, g = lane / 4;
    /* rows of the transposed tile: the warp's distances */
    const bf16 *own = grads + (lane % 8 + lane / 16 * 8) * GRAD_LD + warp * 16 + lane / 8 % 2 * 8;
    float sum[DH / 8][4] = {};
    for (; s < end; s++) {
        ses_rel_seq_head p = rel_part(a, s, head, before);
        int64_t n = a.x_is_key ? p.len_k : p.len_q, e0 = p.reversed ? -from - (SIDE - 1) : from;
        before += p.len_q * p.len_k;
        for (int64_t first = 0; first < n; first += SIDE) {
            x_tile m = tile_of(a, p, first);
            if (m.end <= e0 || m.begin >= e0 + SIDE) continue;
            __syncthreads();
            load_tokens<DH>(x, a, m);
            copies_end();
            load_grads(grads, a, m, dy, e0, p.reversed);
            copies_wait<0>();
            __syncthreads();
            uint32_t w[TILES / 2][4];
#pragma unroll
            for (int k = 0; k < TILES / 2; k++) load_transposed(w[k], own + k * 16 * GRAD_LD);
            accumulate<DH, TILES / 2>(sum, w, x, SIDE);
        }
    }
    int64_t distances = chunks * SIDE,
            row = (range * distances + chunk * SIDE + warp * 16 + g) * a.heads + head;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int d = 0; d < DH / 8; d++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (d * 8 + 2 * t + e < a.dim)
                    sums[(row + 8 * h * a.heads) * a.dim + d * 8 + 2 * t + e] = sum[d][2 * h + e];
}

/* dr of the block's row of r: the distances that select it, ranges of sequences in order. */
__global__ static void relative_bwd_rows(ses_relative a, const float *sums, dst<bf16> dr, int64_t ranges,
                                         int64_t chunks)
{
    int64_t n = 2 * a.max_seqlen_k - 1, cols = a.heads * a.dim, row = blockIdx.x;
    __shared__ int low, high;
    if (threadIdx.x == 0) low = (int)n, high = -1;
    __syncthreads();
    for (int d = threadIdx.x; d < n; d += blockDim.x)
        if (a.dist_to_row[d] == row) atomicMin(&low, d), atomicMax(&high, d);
    __syncthreads();
    for (int64_t c = threadIdx.x + (int64_t)blockIdx.y * blockDim.x; c < cols;
         c += (int64_t)gridDim.y * blockDim.x) {
        float sum = 0;
        for (int64_t d = low; d <= high; d++) {
            if (a.dist_to_row[d] != row) continue;
            for (int64_t k = 0; k < ranges; k++) sum += sums[(k * chunks * SIDE + d) * cols + c];
        }
        store(dr, row * cols + c, a.scale * sum);
    }
}

/* ---- launching ---- */

/* Copies move 16 bytes. If x are the keys, positions and reversed distances are not supported. */
static bool fits(const ses_relative *a)
{
    return a->dist_to_row && a->dim <= 128 && (a->dim | a->x_row | a->x_head) % 8 == 0 && aligned16(a->x) &&
           aligned16(a->r) && !(a->x_is_key && (a->q_pos || a->reversed_from < a->seqs));
}

template <int DH> static size_t shared_of(int tiles, int ld, size_t size)
{
    return (size_t)tiles * shape<DH>::TILE * sizeof(bf16) + (size_t)SIDE * (size_t)ld * size;
}

template <int DH> static void forward(ses_cuda *g, const ses_relative *a, ses_dst y)
{
    int64_t tiles = ceil_div(a->max_seqlen_k, SIDE);
    size_t bytes = shared_of<DH>(3, SCORES_LD, sizeof(float));
    allow_shared(g, relative_scores_mma<DH>, bytes);
    relative_scores_mma<DH><<<(unsigned)(a->seqs * a->heads * tiles), THREADS, bytes, ses_cuda_stream(g)>>>(
        *a, dst_of<bf16>(y), tiles);
    check_launch(g);
}

bool relative_mma(ses_cuda *g, const ses_relative *a, ses_dst y)
{
    if (!fits(a)) return false;
    if (a->seqs * a->heads * a->max_seqlen_k <= 0) return true;
    a->dim <= 64 ? forward<64>(g, a, y) : forward<128>(g, a, y);
    return true;
}

/* Ranges of sequences, a function of sizes only: enough blocks, 64 MiB of sums. */
static int64_t range_count(const ses_relative *a, int64_t chunks)
{
    int64_t each = chunks * SIDE * a->heads * a->dim * (int64_t)sizeof(float),
            ranges = a->seqs < 8 ? a->seqs : 8;
    while (ranges > 1 && ranges * each > 64 << 20) ranges--;
    return ranges;
}

template <int DH>
static void backward(ses_cuda *g, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr)
{
    int64_t tiles = ceil_div(a->max_seqlen_k, SIDE), chunks = ceil_div(2 * a->max_seqlen_k - 1, SIDE),
            ranges = range_count(a, chunks);
    cudaStream_t stream = ses_cuda_stream(g);
    size_t bytes = shared_of<DH>(2, GRAD_LD, sizeof(bf16));
    allow_shared(g, relative_bwd_tokens<DH>, bytes);
    if (dx.data)
        relative_bwd_tokens<DH><<<(unsigned)(a->seqs * a->heads * tiles), THREADS, bytes, stream>>>(
            *a, elems<bf16>(dy), dst_of<bf16>(dx), tiles);
    check_launch(g);
    if (!dr.data) return;
    float *sums =
        (float *)scratch_lock(g, (size_t)(ranges * chunks * SIDE * a->heads * a->dim) * sizeof(float));
    if (!sums) return;
    bytes = shared_of<DH>(1, GRAD_LD, sizeof(bf16));
    allow_shared(g, relative_bwd_distances<DH>, bytes);
    relative_bwd_distances<DH><<<(unsigned)(ranges * chunks * a->heads), THREADS, bytes, stream>>>(
        *a, elems<bf16>(dy), sums, ranges, chunks);
    check_launch(g);
    dim3 blocks((unsigned)a->rows, (unsigned)ceil_div(a->heads * a->dim, BLOCK));
    relative_bwd_rows<<<blocks, BLOCK, 0, stream>>>(*a, sums, dst_of<bf16>(dr), ranges, chunks);
    check_launch(g);
    scratch_unlock(g);
}

bool relative_mma_bwd(ses_cuda *g, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr)
{
    if (!fits(a) || a->seqs * a->heads * a->max_seqlen_k <= 0) return false;
    a->dim <= 64 ? backward<64>(g, a, dy, dx, dr) : backward<128>(g, a, dy, dx, dr);
    return true;
}
