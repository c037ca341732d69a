/* Relative scores of any type and shape. Forward: one block per query. Backward: one block per token of x
 * or per row of r. */
#include "relative_cuda.cuh"

template <class T>
__device__ static inline const T *row_of(const ses_relative &a, const ses_rel_seq_head &p, int64_t i,
                                         int64_t j)
{
    return (const T *)(const void *)a.r + (ses_rel_row(&a, &p, i, j) * a.heads + p.head) * a.dim;
}

template <class T>
__device__ static inline const T *x_of(const ses_relative &a, const ses_rel_seq_head &p, int64_t i, int64_t j)
{
    return rel_x<T>(a, p, a.x_is_key ? j : i);
}

template <class T>
__device__ static inline float score(const ses_relative &a, const ses_rel_seq_head &p, int64_t i, int64_t j)
{
    const T *r = row_of<T>(a, p, i, j), *t = x_of<T>(a, p, i, j);
    float sum = 0;
    for (int64_t d = 0; d < a.dim; d++) sum += to_float(t[d]) * to_float(r[d]);
    return a.scale * sum + (a.mask ? a.mask[p.mask + i * p.len_k + j] : 0);
}

/* max_seqlen_k blocks per sequence and head: block i processes queries i, i + max_seqlen_k, ... */
template <class T> __global__ void relative_scores(ses_relative a, dst<T> y)
{
    ses_rel_seq_head p = rel_part_at(a, blockIdx.x / a.max_seqlen_k);
    for (int64_t i = blockIdx.x % a.max_seqlen_k; i < p.len_q; i += a.max_seqlen_k)
        for (int64_t j = threadIdx.x; j < p.len_k; j += blockDim.x)
            store(y, p.scores + i * p.len_k + j, score<T>(a, p, i, j));
}

template <class T> static void relative(ses_exec *x, const ses_relative *a, ses_dst y)
{
    int64_t blocks = a->seqs * a->heads * a->max_seqlen_k;
    if (sizeof(T) < sizeof(float) && (relative_mma(x->cuda, a, y) || relative_labels(x->cuda, a, y))) return;
    if (blocks <= 0) return;
    relative_scores<T><<<(unsigned)blocks, 128, 0, ses_cuda_stream(x->cuda)>>>(*a, dst_of<T>(y));
    check_launch(x->cuda);
}

void relative_bf16(ses_exec *x, const ses_relative *a, ses_dst y) { relative<bf16>(x, a, y); }

/* Gradient of a token of x: sums over all scores it contributes to. Threads are the head's columns. */
template <class T> __global__ void relative_bwd_x(ses_relative a, const T *dy, dst<T> dx)
{
    ses_rel_seq_head p = rel_part_at(a, blockIdx.x / a.max_seqlen_k);
    int64_t tokens = a.x_is_key ? p.len_k : p.len_q, others = a.x_is_key ? p.len_q : p.len_k;
    for (int64_t t = blockIdx.x % a.max_seqlen_k; t < tokens; t += a.max_seqlen_k)
        for (int64_t d = threadIdx.x; d < a.dim; d += blockDim.x) {
            float sum = 0;
            for (int64_t o = 0; o < others; o++) {
                int64_t i = a.x_is_key ? o : t, j = a.x_is_key ? t : o;
                sum += to_float(dy[p.scores + i * p.len_k + j]) * to_float(row_of<T>(a, p, i, j)[d]);
            }
            store(dx, (t + (a.x_is_key ? p.k0 : p.q0)) * a.x_row + p.head * a.x_head + d, a.scale * sum);
        }
}

/* Contribution of a warp's queries (every WARPS-th) to column d of a row that is selected by distance. */
template <class T>
__device__ static inline float distance_sum(const ses_relative &a, const ses_rel_seq_head &p, const T *dy,
                                            int64_t row, int64_t d, int warp)
{
    float sum = 0;
    for (int64_t r = 1 - p.len_k; r < p.len_k; r++) {
        if (a.dist_to_row[r + a.max_seqlen_k - 1] != row) continue;
        for (int64_t i = warp; i < p.len_q; i += WARPS) {
            int64_t j = ses_rel_q_pos(&a, &p, i) + (p.reversed ? -r : r);
            if (j >= 0 && j < p.len_k)
                sum += to_float(dy[p.scores + i * p.len_k + j]) * to_float(x_of<T>(a, p, i, j)[d]);
        }
    }
    return sum;
}

/* The same for a row that is selected by segment label. */
template <class T>
__device__ static inline float label_sum(const ses_relative &a, const ses_rel_seq_head &p, const T *dy,
                                         int64_t row, int64_t d, int warp)
{
    float sum = 0;
    for (int64_t i = warp; i < p.len_q; i += WARPS)
        for (int64_t j = 0; j < p.len_k; j++)
            if (ses_rel_row(&a, &p, i, j) == row)
                sum += to_float(dy[p.scores + i * p.len_k + j]) * to_float(x_of<T>(a, p, i, j)[d]);
    return sum;
}

/* One row of r in one head, summed over all sequences in order, which share it. Warps are queries, lanes are
 * the head's columns; the warps' sums are added in order. */
template <class T> __global__ void relative_bwd_r(ses_relative a, const T *dy, dst<T> dr)
{
    __shared__ float sums[WARPS][WARP];
    int64_t row = blockIdx.x / a.heads, head = blockIdx.x % a.heads;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int64_t d0 = 0; d0 < a.dim; d0 += WARP) {
        int64_t d = d0 + lane, before = 0;
        float sum = 0;
        for (int64_t s = 0; s < a.seqs; s++) {
            ses_rel_seq_head p = rel_part(a, s, head, before);
            before += p.len_q * p.len_k;
            if (d < a.dim) sum += (a.dist_to_row ? distance_sum<T> : label_sum<T>)(a, p, dy, row, d, warp);
        }
        __syncthreads();
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp || d >= a.dim) continue;
        for (int i = 1; i < WARPS; i++) sum += sums[i][lane];
        store(dr, (row * a.heads + head) * a.dim + d, a.scale * sum);
    }
}

template <class T>
static void relative_bwd(ses_exec *x, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr)
{
    int64_t blocks = a->seqs * a->heads * a->max_seqlen_k;
    unsigned threads = a->dim > WARP ? 2 * WARP : WARP;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (sizeof(T) < sizeof(float) &&
        (relative_mma_bwd(x->cuda, a, dy, dx, dr) || relative_labels_bwd(x->cuda, a, dy, dx, dr)))
        return;
    if (dx.data && blocks > 0)
        relative_bwd_x<T><<<(unsigned)blocks, threads, 0, stream>>>(*a, elems<T>(dy), dst_of<T>(dx));
    check_launch(x->cuda);
    if (dr.data)
        relative_bwd_r<T>
            <<<(unsigned)(a->rows * a->heads), BLOCK, 0, stream>>>(*a, elems<T>(dy), dst_of<T>(dr));
    check_launch(x->cuda);
}

void ses_cuda_relative(ses_kernels *k, bool is_bf16)
{
    k->relative = is_bf16 ? relative_bf16 : relative<float>;
    k->relative_bwd = is_bf16 ? relative_bwd<bf16> : relative_bwd<float>;
}
