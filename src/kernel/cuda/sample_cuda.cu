#include "cuda_common.cuh"

/* A block a row; of equal scores the first column's counts, as in sample_ref.c. */
template <class T>
__global__ void draw_row(int32_t *pick, const T *a, int64_t cols, double heat, ses_rng_key key)
{
    __shared__ double score[1024];
    __shared__ int32_t column[1024];
    int64_t first = blockIdx.x * cols;
    double best = -INFINITY;
    int32_t at = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
        double u = (ses_rand32(key, (uint64_t)(first + j)) + 0.5) * 0x1p-32;
        double s = num(a[first + j]) / heat - log(-log(u));
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
    if (threadIdx.x == 0) pick[blockIdx.x] = column[0];
}

template <class T>
static void sample(ses_exec *x, int32_t *pick, const ses_real *a, int64_t rows, int64_t cols, double heat,
                   ses_rng_key key)
{
    if (rows <= 0) return;
    draw_row<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(pick, cells<T>(a), cols,
                                                                                    heat, key);
    launched(x->cuda);
}

void ses_cuda_draw(ses_kernels *k, bool narrow)
{
    if (narrow)
        k->sample = sample<bf16>;
    else
        k->sample = sample<float>;
}
