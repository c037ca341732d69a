/* Relative scores by segment label, read by queries: a query has two scores, one for the keys of its own
 * segment and one for all others. One warp per query. The gradient of the two rows is summed over the
 * queries of a tile, then over the tiles, in order. */
#include "relative_cuda.cuh"

enum { MAX_DIM = 128, PER_LANE = MAX_DIM / WARP, TILE = 64 };

/* The lane's columns of a row of the head. */
struct columns {
    float at[PER_LANE];
};

__device__ static inline columns load_columns(const bf16 *x, int64_t dim)
{
    columns c;
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) {
        int d = threadIdx.x % WARP + k * WARP;
        c.at[k] = d < dim ? to_float(x[d]) : 0;
    }
    return c;
}

__device__ static inline float dot(columns x, columns y)
{
    float sum = 0;
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) sum += x.at[k] * y.at[k];
    return warp_sum(sum);
}

__device__ static inline columns row_of(const ses_relative &a, int64_t head, int row)
{
    return load_columns((const bf16 *)(const void *)a.r + (row * a.heads + head) * a.dim, a.dim);
}

__global__ static void relative_label_scores(ses_relative a, dst<bf16> y, int64_t tiles)
{
    ses_rel_seq_head p = rel_part_at(a, blockIdx.x / tiles);
    int lane = threadIdx.x % WARP;
    columns same = row_of(a, p.head, 0), other = row_of(a, p.head, 1);
    for (int64_t i = blockIdx.x % tiles * WARPS + threadIdx.x / WARP; i < p.len_q; i += tiles * WARPS) {
        columns x = load_columns(rel_x<bf16>(a, p, i), a.dim);
        float if_same = a.scale * dot(x, same), if_other = a.scale * dot(x, other);
        int label = a.label[p.k0 + ses_rel_q_pos(&a, &p, i)];
        for (int64_t j = lane; j < p.len_k; j += WARP) {
            int64_t at = i * p.len_k + j;
            float mask = a.mask ? a.mask[p.mask + at] : 0;
            store(y, p.scores + at, (a.label[p.k0 + j] == label ? if_same : if_other) + mask);
        }
    }
}

/* dx of the tile's queries; sums[tile of a sequence][row][heads][dim] of dy x. */
__global__ static void relative_label_grads(ses_relative a, const bf16 *dy, dst<bf16> dx, float *sums,
                                            int64_t tiles)
{
    __shared__ float part[WARPS][2][MAX_DIM];
    ses_rel_seq_head p = rel_part_at(a, blockIdx.x / tiles);
    int64_t tile = blockIdx.x % tiles;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    columns row[2] = { row_of(a, p.head, 0), row_of(a, p.head, 1) }, sum[2] = {};
    for (int64_t first = tile * TILE; first < p.len_q; first += tiles * TILE)
        for (int64_t i = first + warp; i < first + TILE && i < p.len_q; i += WARPS) {
            columns x = load_columns(rel_x<bf16>(a, p, i), a.dim);
            int label = a.label[p.k0 + ses_rel_q_pos(&a, &p, i)];
            float d[2] = { 0, 0 };
            for (int64_t j = lane; j < p.len_k; j += WARP) {
                float v = to_float(dy[p.scores + i * p.len_k + j]);
                bool is_same = a.label[p.k0 + j] == label;
                d[0] += is_same ? v : 0, d[1] += is_same ? 0 : v;
            }
            d[0] = warp_sum(d[0]), d[1] = warp_sum(d[1]);
            int64_t at = (i + p.q0) * a.x_row + p.head * a.x_head;
#pragma unroll
            for (int k = 0; k < PER_LANE; k++) {
                int c = lane + k * WARP;
                for (int r = 0; r < 2; r++) sum[r].at[k] += d[r] * x.at[k];
                if (dx.data && c < a.dim)
                    store(dx, at + c, a.scale * (d[0] * row[0].at[k] + d[1] * row[1].at[k]));
            }
        }
    if (!sums) return;
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < PER_LANE; k++) part[warp][r][lane + k * WARP] = sum[r].at[k];
    __syncthreads();
    for (int c = threadIdx.x; c < 2 * a.dim; c += blockDim.x) {
        int64_t r = c / a.dim, d = c % a.dim;
        float total = 0;
        for (int w = 0; w < WARPS; w++) total += part[w][r][d];
        sums[(((p.seq * tiles + tile) * 2 + r) * a.heads + p.head) * a.dim + d] = total;
    }
}

/* One warp per element of dr: lanes sum every 32nd tile. */
__global__ static void relative_label_rows(const float *sums, dst<bf16> dr, int64_t n, int64_t parts,
                                           float scale)
{
    int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    if (at >= n) return;
    float sum = 0;
    for (int64_t k = threadIdx.x % WARP; k < parts; k += WARP) sum += sums[k * n + at];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) store(dr, at, scale * sum);
}

static bool fits(const ses_relative *a) { return !a->dist_to_row && !a->x_is_key && a->dim <= MAX_DIM; }

bool relative_labels(ses_cuda *g, const ses_relative *a, ses_dst y)
{
    int64_t tiles = ceil_div(a->max_seqlen_k, WARPS), blocks = a->seqs * a->heads * tiles;
    if (!fits(a)) return false;
    if (blocks > 0)
        relative_label_scores<<<(unsigned)blocks, BLOCK, 0, ses_cuda_stream(g)>>>(*a, dst_of<bf16>(y), tiles);
    check_launch(g);
    return true;
}

bool relative_labels_bwd(ses_cuda *g, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr)
{
    int64_t tiles = ceil_div(a->max_seqlen_k, TILE), blocks = a->seqs * a->heads * tiles,
            n = 2 * a->heads * a->dim, parts = a->seqs * tiles;
    cudaStream_t stream = ses_cuda_stream(g);
    if (!fits(a) || blocks <= 0) return false;
    float *sums = (float *)scratch_lock(g, (size_t)(parts * n) * sizeof(float));
    if (!sums) return true;
    relative_label_grads<<<(unsigned)blocks, BLOCK, 0, stream>>>(*a, elems<bf16>(dy), dst_of<bf16>(dx),
                                                                 dr.data ? sums : NULL, tiles);
    check_launch(g);
    if (dr.data)
        relative_label_rows<<<(unsigned)ceil_div(n, WARPS), BLOCK, 0, stream>>>(sums, dst_of<bf16>(dr), n,
                                                                                parts, (float)a->scale);
    check_launch(g);
    scratch_unlock(g);
    return true;
}
