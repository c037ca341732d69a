#include "act_cuda.cuh"
#include "reduce_cuda.cuh"

/* A block a row. */
__global__ void xent_row(ses_real *row_loss, ses_real *lse, const ses_real *a, const int32_t *label,
                         int64_t cols)
{
    int64_t row = blockIdx.x;
    int32_t right = label[row];
    if (right == SES_IGNORE) {
        if (threadIdx.x == 0) lse[row] = row_loss[row] = 0;
        return;
    }
    a += row * cols;
    float max = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) max = fmaxf(max, a[j]);
    max = block_max(max);
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x) sum += expf(a[j] - max);
    sum = block_sum(sum);
    if (threadIdx.x) return;
    float l = max + logf(sum);
    lse[row] = l;
    row_loss[row] = l - a[right];
}

void ses_k_xent_rows_cuda(ses_exec *x, ses_real *row_loss, ses_real *lse, const ses_real *a,
                          const int32_t *label, int64_t rows, int64_t cols)
{
    if (rows <= 0) return;
    xent_row<<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(row_loss, lse, a, label,
                                                                                 cols);
    launched(x->cuda);
}

/* loss[0] = the mean of row_loss over the rows that count, loss[1] = 1 / their number; one block. */
__global__ void mean_of_rows(ses_real *loss, const ses_real *row_loss, const int32_t *label, int64_t rows)
{
    double sum =
        block_total(rows, [=](int64_t i) { return label[i] != SES_IGNORE ? (double)row_loss[i] : 0; });
    double count = block_total(rows, [=](int64_t i) { return label[i] != SES_IGNORE ? 1.0 : 0; });
    if (threadIdx.x) return;
    loss[0] = (float)(count > 0 ? sum / count : 0);
    loss[1] = (float)(count > 0 ? 1 / count : 0);
}

void ses_k_xent_mean_cuda(ses_exec *x, ses_real *loss, const ses_real *row_loss, const int32_t *label,
                          int64_t rows)
{
    mean_of_rows<<<1, 1024, 0, ses_cuda_stream(x->cuda)>>>(loss, row_loss, label, rows);
    launched(x->cuda);
}

void ses_k_xent_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dloss, const ses_real *loss,
                         const ses_real *lse, const ses_real *a, const int32_t *label, int64_t rows,
                         int64_t cols)
{
    sink<ses_real> to = sink_of<ses_real>(da);
    if (!da.data) return;
    each(x, rows * cols, [=] __device__(int64_t i) {
        int64_t row = i / cols, j = i % cols;
        float d = 0;
        if (label[row] != SES_IGNORE) d = loss[1] * dloss[0] * (expf(a[i] - lse[row]) - (j == label[row]));
        put(to, i, d);
    });
}

__global__ void margin_row(ses_real *margin, const ses_real *a, const int32_t *label, int64_t cols)
{
    int64_t row = blockIdx.x;
    a += row * cols;
    double mean = block_total(cols, [=](int64_t j) { return (double)a[j]; }) / (double)cols;
    if (threadIdx.x == 0) margin[row] = label[row] == SES_IGNORE ? 0 : (float)(a[label[row]] - mean);
}

void ses_k_margin_cuda(ses_exec *x, ses_real *loss, const ses_real *a, const int32_t *label, int64_t rows,
                       int64_t cols)
{
    float *margin = (float *)scratch_lock(x->cuda, (size_t)(rows + 1) * sizeof *margin);
    if (!margin) return;
    if (rows > 0)
        margin_row<<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(margin, a, label,
                                                                                       cols);
    launched(x->cuda);
    ses_k_xent_mean_cuda(x, loss, margin, label, rows);
    scratch_unlock(x->cuda);
}

void ses_k_margin_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dloss, const ses_real *loss,
                           const int32_t *label, int64_t rows, int64_t cols)
{
    sink<ses_real> to = sink_of<ses_real>(da);
    if (!da.data) return;
    each(x, rows * cols, [=] __device__(int64_t i) {
        int32_t right = label[i / cols];
        float d = loss[1] * dloss[0] * ((i % cols == right) - 1 / (float)cols);
        put(to, i, right == SES_IGNORE ? 0 : d);
    });
}

/* Whether the label of column c of sequence s counts, that is, lies inside the sequence. */
__device__ static inline bool seg_counts(const int32_t *cu, const int32_t *label, int64_t s, int64_t c,
                                         int64_t cols)
{
    int32_t l = label[s * cols + c];
    return l >= 0 && l < cu[s + 1] - cu[s];
}

/* lse[s][c], and each pair's loss; a warp a pair. */
__global__ void seg_pairs(ses_real *lse, float *pair_loss, const ses_real *a, const int32_t *cu,
                          const int32_t *label, int64_t seqs, int64_t cols)
{
    int64_t pair = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, s = pair / cols, c = pair % cols;
    int lane = threadIdx.x % WARP;
    if (pair >= seqs * cols) return;
    bool counts = seg_counts(cu, label, s, c, cols);
    const ses_real *first = a + cu[s] * cols + c;
    int32_t n = counts ? cu[s + 1] - cu[s] : 0;
    float max = -INFINITY, sum = 0;
    for (int32_t i = lane; i < n; i += WARP) max = fmaxf(max, first[i * cols]);
    max = warp_max(max);
    for (int32_t i = lane; i < n; i += WARP) sum += expf(first[i * cols] - max);
    sum = warp_sum(sum);
    if (lane) return;
    float l = counts ? max + logf(sum) : 0;
    lse[pair] = l;
    pair_loss[pair] = counts ? l - first[label[pair] * cols] : 0;
}

/* One block: columns after each other. */
__global__ void seg_mean(ses_real *loss, const float *pair_loss, const int32_t *cu, const int32_t *label,
                         int64_t seqs, int64_t cols)
{
    double total = 0;
    for (int64_t c = 0; c < cols; c++) {
        double sum = block_total(seqs, [=](int64_t s) { return (double)pair_loss[s * cols + c]; });
        double count =
            block_total(seqs, [=](int64_t s) { return seg_counts(cu, label, s, c, cols) ? 1.0 : 0; });
        if (count > 0) total += sum / count;
        if (threadIdx.x == 0) loss[1 + c] = (float)(count > 0 ? 1 / count / (double)cols : 0);
    }
    if (threadIdx.x == 0) loss[0] = (float)(total / (double)cols);
}

void ses_k_xent_seg_cuda(ses_exec *x, ses_real *loss, ses_real *lse, const ses_real *a, const int32_t *cu,
                         const int32_t *label, int64_t seqs, int64_t cols)
{
    float *pair_loss = (float *)scratch_lock(x->cuda, (size_t)(seqs * cols + 1) * sizeof *pair_loss);
    if (!pair_loss) return;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (seqs * cols > 0)
        seg_pairs<<<(unsigned)ceil_div(seqs * cols, WARPS), BLOCK, 0, stream>>>(lse, pair_loss, a, cu, label,
                                                                                seqs, cols);
    launched(x->cuda);
    seg_mean<<<1, 1024, 0, stream>>>(loss, pair_loss, cu, label, seqs, cols);
    launched(x->cuda);
    scratch_unlock(x->cuda);
}

/* A block a sequence. */
__global__ void seg_bwd(sink<ses_real> da, const ses_real *dloss, const ses_real *loss, const ses_real *lse,
                        const ses_real *a, const int32_t *cu, const int32_t *label, int64_t cols)
{
    int64_t s = blockIdx.x, n = (cu[s + 1] - cu[s]) * cols, at = cu[s] * cols;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t c = i % cols;
        float d = 0;
        if (seg_counts(cu, label, s, c, cols)) {
            float p = expf(a[at + i] - lse[s * cols + c]);
            d = loss[1 + c] * dloss[0] * (p - (i / cols == label[s * cols + c]));
        }
        put(da, at + i, d);
    }
}

void ses_k_xent_seg_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dloss, const ses_real *loss,
                             const ses_real *lse, const ses_real *a, const int32_t *cu, const int32_t *label,
                             int64_t seqs, int64_t cols)
{
    if (!da.data || seqs <= 0) return;
    seg_bwd<<<(unsigned)seqs, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(sink_of<ses_real>(da), dloss, loss, lse,
                                                                    a, cu, label, cols);
    launched(x->cuda);
}

/* Means over all elements of a loss between a and target; one block. */
__global__ void target_mean(ses_real *loss, const ses_real *a, const ses_real *target, int64_t n,
                            ses_loss kind)
{
    double sum = block_total(n, [=](int64_t i) {
        float v = a[i], t = target[i];
        if (kind == SES_LOSS_SQUARE) return ((double)v - t) * ((double)v - t);
        return (double)(fmaxf(v, 0) - v * t + log1pf(expf(-fabsf(v))));
    });
    if (threadIdx.x == 0) loss[0] = (float)(sum / (double)n);
}

static void target_loss(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n,
                        ses_loss kind)
{
    target_mean<<<1, 1024, 0, ses_cuda_stream(x->cuda)>>>(loss, a, target, n, kind);
    launched(x->cuda);
}

void ses_k_bce_cuda(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n)
{
    target_loss(x, loss, a, target, n, SES_LOSS_BINARY);
}

void ses_k_mse_cuda(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n)
{
    target_loss(x, loss, a, target, n, SES_LOSS_SQUARE);
}

void ses_k_bce_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dloss, const ses_real *a,
                        const ses_real *target, int64_t n)
{
    sink<ses_real> to = sink_of<ses_real>(da);
    if (da.data)
        each(x, n,
             [=] __device__(int64_t i) { put(to, i, (sigmoid(a[i]) - target[i]) * dloss[0] / (float)n); });
}

void ses_k_mse_bwd_cuda(ses_exec *x, ses_sink da, const ses_real *dloss, const ses_real *a,
                        const ses_real *target, int64_t n)
{
    sink<ses_real> to = sink_of<ses_real>(da);
    if (da.data)
        each(x, n, [=] __device__(int64_t i) { put(to, i, 2 * (a[i] - target[i]) * dloss[0] / (float)n); });
}
