/* Scores of additive attention: one block per query, a warp per key. Backward: one block per query or key,
 * threads are columns; the gradient of v is a sum over queries in a fixed order. */
#include "reduce_cuda.cuh"

/* A query or key with the other side of its sequence; called by all threads of a block. */
struct position {
    int64_t row;            /* in its sequence */
    int64_t q, n_q, k, n_k; /* first query and key of the sequence, and their numbers */
    int64_t pairs;          /* scores before the sequence */
};

/* The position of row `at` by the offsets `cu`, one of both; n_q 0: after the last offset. */
__device__ static inline position position_of(const ses_additive &a, const int32_t *cu, int64_t at)
{
    position p = {};
    if (at >= cu[a.seqs]) return p;
    int64_t s = 0, end = a.seqs; /* cu[s] <= at < cu[end] */
    while (end - s > 1) {
        int64_t mid = (s + end) / 2;
        if (cu[mid] <= at)
            s = mid;
        else
            end = mid;
    }
    p.row = at - cu[s];
    p.q = a.cu_seqlens_q[s], p.n_q = a.cu_seqlens_q[s + 1] - p.q;
    p.k = a.cu_seqlens_k[s], p.n_k = a.cu_seqlens_k[s + 1] - p.k;
    p.pairs = pairs_before(s, a.cu_seqlens_q, a.cu_seqlens_k, NULL);
    return p;
}

template <class T> __global__ void additive_scores(ses_additive a, const T *q, const T *k, T *y)
{
    position p = position_of(a, a.cu_seqlens_q, blockIdx.x);
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    q += blockIdx.x * a.cols;
    for (int64_t j = warp; j < p.n_k; j += WARPS) {
        const T *key = k + (p.k + j) * a.cols;
        float sum = 0;
        for (int64_t c = lane; c < a.cols; c += WARP)
            sum += a.v[c] * tanhf(to_float(q[c]) + to_float(key[c]));
        sum = warp_sum(sum);
        if (lane == 0) y[p.pairs + p.row * p.n_k + j] = from_float<T>(sum);
    }
}

template <class T> static void additive(ses_exec *x, const ses_additive *a, ses_real *y)
{
    if (a->queries <= 0) return;
    additive_scores<T><<<(unsigned)a->queries, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        *a, elems<T>(a->q), elems<T>(a->k), elems<T>(y));
    check_launch(x->cuda);
}

/* dq of a query; dv [queries][cols]: its part of the gradient of v, or NULL. */
template <class T>
__global__ void additive_bwd_query(ses_additive a, const T *q, const T *k, const T *dy, dst<T> dq, float *dv)
{
    position p = position_of(a, a.cu_seqlens_q, blockIdx.x);
    int64_t at = blockIdx.x * a.cols;
    for (int64_t c = threadIdx.x; c < a.cols; c += blockDim.x) {
        float query = to_float(q[at + c]), slope = 0, sum = 0;
        for (int64_t j = 0; j < p.n_k; j++) {
            float t = tanhf(query + to_float(k[(p.k + j) * a.cols + c]));
            float d = to_float(dy[p.pairs + p.row * p.n_k + j]);
            slope += d * (1 - t * t), sum += d * t;
        }
        if (dq.data) store(dq, at + c, a.v[c] * slope);
        if (dv) dv[at + c] = sum;
    }
}

template <class T>
__global__ void additive_bwd_key(ses_additive a, const T *q, const T *k, const T *dy, dst<T> dk)
{
    position p = position_of(a, a.cu_seqlens_k, blockIdx.x);
    int64_t at = blockIdx.x * a.cols;
    for (int64_t c = threadIdx.x; p.n_q && c < a.cols; c += blockDim.x) {
        float key = to_float(k[at + c]), slope = 0;
        for (int64_t i = 0; i < p.n_q; i++) {
            float t = tanhf(to_float(q[(p.q + i) * a.cols + c]) + key);
            slope += to_float(dy[p.pairs + i * p.n_k + p.row]) * (1 - t * t);
        }
        store(dk, at + c, a.v[c] * slope);
    }
}

/* Launches the gradients of queries; parts [queries][cols], then the sums of strips, or NULL without dv. */
template <class T>
static void query_grads(ses_exec *x, const ses_additive *a, const ses_real *dy, ses_dst dq, float *parts,
                        float *dv, int64_t strip)
{
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    int64_t cols = a->cols, strips = ceil_div(a->queries, strip);
    float *sums = parts + a->queries * cols;
    unsigned across = (unsigned)ceil_div(cols, STRIP_COLS);
    additive_bwd_query<T><<<(unsigned)a->queries, BLOCK, 0, stream>>>(*a, elems<T>(a->q), elems<T>(a->k),
                                                                      elems<T>(dy), dst_of<T>(dq), parts);
    check_launch(x->cuda);
    if (!dv) return;
    strip_sums<float><<<dim3(across, (unsigned)strips), BLOCK, 0, stream>>>(
        sums, a->queries, cols, strip,
        [=] __device__(int64_t row, int64_t j) { return parts[row * cols + j]; });
    check_launch(x->cuda);
    strip_totals<float><<<across, BLOCK, 0, stream>>>(sums, strips, cols,
                                                      [=] __device__(int64_t j, float sum) { dv[j] += sum; });
    check_launch(x->cuda);
}

template <class T>
static void additive_bwd(ses_exec *x, const ses_additive *a, const ses_real *dy, ses_dst dq, ses_dst dk,
                         ses_real *dv)
{
    if (a->queries <= 0) return;
    if (dk.data && a->keys > 0)
        additive_bwd_key<T><<<(unsigned)a->keys, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
            *a, elems<T>(a->q), elems<T>(a->k), elems<T>(dy), dst_of<T>(dk));
    check_launch(x->cuda);
    int64_t strip = ceil_div(a->queries, MAX_STRIPS) > 64 ? ceil_div(a->queries, MAX_STRIPS) : 64;
    if (!dv) {
        if (dq.data) query_grads<T>(x, a, dy, dq, NULL, NULL, strip);
        return;
    }
    size_t numbers = (size_t)((a->queries + ceil_div(a->queries, strip)) * a->cols);
    float *parts = (float *)scratch_lock(x->cuda, numbers * sizeof *parts);
    if (!parts) return;
    query_grads<T>(x, a, dy, dq, parts, dv, strip);
    scratch_unlock(x->cuda);
}

void ses_cuda_additive(ses_kernels *k, bool is_bf16)
{
    k->additive = is_bf16 ? additive<bf16> : additive<float>;
    k->additive_bwd = is_bf16 ? additive_bwd<bf16> : additive_bwd<float>;
}
