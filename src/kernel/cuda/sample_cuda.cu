/* CUDA kernel that samples a column per row of logits. */
#include "cuda_common.cuh"

/* One block per row. The first of equal scores wins, as in sample_ref.c. */
template <class T>
__global__ void sample_row(int32_t *sampled, const T *a, int64_t cols, double temperature, ses_rng_key key)
{
    __shared__ double score[1024];
    __shared__ int32_t column[1024];
    int64_t first = blockIdx.x * cols;
    double best = -INFINITY;
    int32_t at = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        double u = (ses_rand32(key, (uint64_t)(first + j)) + 0.5) * 0x1p-32;
        double s = to_float(a[first + j]) / temperature - log(-log(u));
        if (s > best) best = s, at = (int32_t)j;
    }
    score[threadIdx.x] = best;
    column[threadIdx.x] = at;
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        double other = score[threadIdx.x + half];
        int32_t there = column[threadIdx.x + half];
        if (other < score[threadIdx.x]) continue;
        if (other == score[threadIdx.x] && there > column[threadIdx.x]) continue;
        score[threadIdx.x] = other;
        column[threadIdx.x] = there;
    }
    if (threadIdx.x == 0) sampled[blockIdx.x] = column[0];
}

template <class T>
static void sample(ses_exec *x, int32_t *sampled, const ses_real *a, int64_t rows, int64_t cols,
                   double temperature, ses_rng_key key)
{
    if (rows <= 0) return;
    sample_row<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(sampled, elems<T>(a),
                                                                                      cols, temperature, key);
    check_launch(x->cuda);
}

void ses_cuda_sample(ses_kernels *k, bool is_bf16)
{
    if (is_bf16)
        k->sample = sample<bf16>;
    else
        k->sample = sample<float>;
}
