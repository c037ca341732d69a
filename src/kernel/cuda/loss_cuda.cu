/* CUDA kernels of the losses: cross entropy, label smoothing, span cross entropy, BCE and MSE. */
#include "act_cuda.cuh"
#include "reduce_cuda.cuh"

/* One block per row, 16 bytes per access if rows are aligned. */
template <class T>
__global__ void xent_row(float *row_loss, float *lse, const T *a, const int32_t *label, int64_t cols,
                         int64_t ld, bool aligned)
{
    enum { N = vec16<T>::N };
    int64_t row = blockIdx.x, vec_cols = aligned ? cols / N * N : 0;
    int32_t target_col = label[row];
    if (target_col == SES_IGNORE_INDEX) {
        if (threadIdx.x == 0) lse[row] = row_loss[row] = 0;
        return;
    }
    a += row * ld;
    float max_seen = -INFINITY, sum = 0; /* over the columns of this thread */
    auto take = [&](const float *v, int n) {
        float new_max = max_seen;
        for (int k = 0; k < n; k++) new_max = fmaxf(new_max, v[k]);
        if (new_max == -INFINITY) return;
        sum *= expf(max_seen - new_max);
        for (int k = 0; k < n; k++)
            sum += sizeof(T) < sizeof(float) ? __expf(v[k] - new_max) : expf(v[k] - new_max);
        max_seen = new_max;
    };
    for (int64_t j = threadIdx.x * N; j < vec_cols; j += blockDim.x * N) {
        vec16<T> p = *(const vec16<T> *)(a + j);
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = to_float(p.at[k]);
        take(v, N);
    }
    for (int64_t j = vec_cols + threadIdx.x; j < cols; j += blockDim.x) {
        float v = to_float(a[j]);
        take(&v, 1);
    }
    float max = block_max(max_seen);
    sum = block_sum(max_seen == -INFINITY ? 0 : sum * expf(max_seen - max));
    if (threadIdx.x) return;
    float l = max + logf(sum);
    lse[row] = l;
    row_loss[row] = l - to_float(a[target_col]);
}

template <class T>
static void xent_rows(ses_exec *x, ses_real *row_loss, ses_real *lse, const ses_real *a, const int32_t *label,
                      int64_t rows, int64_t cols, int64_t ld)
{
    if (rows <= 0) return;
    bool aligned = aligned16(a) && ld % vec16<T>::N == 0;
    unsigned threads = row_threads(cols) < 512 ? row_threads(cols) : 512;
    xent_row<T><<<(unsigned)rows, threads, 0, ses_cuda_stream(x->cuda)>>>(row_loss, lse, elems<T>(a), label,
                                                                          cols, ld, aligned);
    check_launch(x->cuda);
}

/* loss[0] = mean of row_loss over the rows with a label, loss[1] = 1 / their number; one block. */
__global__ void mean_of_rows(ses_real *loss, const ses_real *row_loss, const int32_t *label, int64_t rows)
{
    double sum =
        block_total(rows, [=](int64_t i) { return label[i] != SES_IGNORE_INDEX ? (double)row_loss[i] : 0; });
    double count = block_total(rows, [=](int64_t i) { return label[i] != SES_IGNORE_INDEX ? 1.0 : 0; });
    if (threadIdx.x) return;
    loss[0] = (float)(count > 0 ? sum / count : 0);
    loss[1] = (float)(count > 0 ? 1 / count : 0);
}

static void xent_mean(ses_exec *x, ses_real *loss, const ses_real *row_loss, const int32_t *label,
                      int64_t rows)
{
    mean_of_rows<<<1, 1024, 0, ses_cuda_stream(x->cuda)>>>(loss, row_loss, label, rows);
    check_launch(x->cuda);
}

template <class T>
__global__ void xent_bwd_row(dst<T> to, const float *dloss, const float *loss, const float *lse, const T *a,
                             const int32_t *label, int64_t cols, int64_t ld, bool aligned)
{
    enum { N = vec16<T>::N };
    int64_t row = blockIdx.x, vec_cols = aligned ? cols / N * N : 0;
    int32_t target_col = label[row];
    float scale = target_col == SES_IGNORE_INDEX ? 0 : loss[1] * dloss[0], base = lse[row];
    auto slope = [=](float v, int64_t j) {
        float p = sizeof(T) < sizeof(float) ? __expf(v - base) : expf(v - base);
        return target_col == SES_IGNORE_INDEX ? 0 : scale * (p - (j == target_col));
    };
    for (int64_t j = threadIdx.x * N; j < vec_cols; j += blockDim.x * N) {
        vec16<T> p = *(const vec16<T> *)(a + row * ld + j);
#pragma unroll
        for (int k = 0; k < N; k++) p.at[k] = from_float<T>(slope(to_float(p.at[k]), j + k));
        *(vec16<T> *)(to.data + row * ld + j) = p;
    }
    for (int64_t j = vec_cols + threadIdx.x; j < cols; j += blockDim.x)
        store(to, row * ld + j, slope(to_float(a[row * ld + j]), j));
    for (int64_t j = cols + threadIdx.x; j < ld && !to.accumulate; j += blockDim.x)
        store(to, row * ld + j, 0);
}

template <class T>
static void xent_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                     const ses_real *lse, const ses_real *a, const int32_t *label, int64_t rows, int64_t cols,
                     int64_t ld)
{
    if (!da.data || rows <= 0) return;
    bool aligned =
        !da.is_f32 && !da.accumulate && ld % vec16<T>::N == 0 && aligned16(a) && aligned16(da.data);
    unsigned threads = row_threads(cols) < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    xent_bwd_row<T><<<(unsigned)rows, threads, 0, ses_cuda_stream(x->cuda)>>>(
        dst_of<T>(da), dloss, loss, lse, elems<T>(a), label, cols, ld, aligned);
    check_launch(x->cuda);
}

template <class T>
__global__ void smoothing_row(float *label_smoothing, const T *a, const int32_t *label, int64_t cols)
{
    int64_t row = blockIdx.x;
    a += row * cols;
    double mean = block_total(cols, [=](int64_t j) { return (double)to_float(a[j]); }) / (double)cols;
    if (threadIdx.x == 0)
        label_smoothing[row] = label[row] == SES_IGNORE_INDEX ? 0 : (float)(to_float(a[label[row]]) - mean);
}

template <class T>
static void label_smoothing(ses_exec *x, ses_real *loss, const ses_real *a, const int32_t *label,
                            int64_t rows, int64_t cols)
{
    float *row_term = (float *)scratch_lock(x->cuda, (size_t)(rows + 1) * sizeof *row_term);
    if (!row_term) return;
    if (rows > 0)
        smoothing_row<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
            row_term, elems<T>(a), label, cols);
    check_launch(x->cuda);
    xent_mean(x, loss, row_term, label, rows);
    scratch_unlock(x->cuda);
}

template <class T>
static void label_smoothing_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                                const int32_t *label, int64_t rows, int64_t cols)
{
    dst<T> to = dst_of<T>(da);
    if (!da.data) return;
    for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        float d = loss[1] * dloss[0] * ((j == label[row]) - 1 / (float)cols);
        store(to, row * cols + j, label[row] == SES_IGNORE_INDEX ? 0 : d);
    });
}

/* True if the label of column c of sequence s is a position inside the sequence. */
__device__ static inline bool has_label(const int32_t *cu_seqlens, const int32_t *label, int64_t s, int64_t c,
                                        int64_t cols)
{
    int32_t l = label[s * cols + c];
    return l >= 0 && l < cu_seqlens[s + 1] - cu_seqlens[s];
}

/* lse[s][c] and the loss of each sequence and column; one warp per pair. */
template <class T>
__global__ void span_rows(float *lse, float *pair_loss, const T *a, const int32_t *cu_seqlens,
                          const int32_t *label, int64_t seqs, int64_t cols)
{
    int64_t pair = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, s = pair / cols, c = pair % cols;
    int lane = threadIdx.x % WARP;
    if (pair >= seqs * cols) return;
    bool labeled = has_label(cu_seqlens, label, s, c, cols);
    const T *first = a + cu_seqlens[s] * cols + c;
    int32_t n = labeled ? cu_seqlens[s + 1] - cu_seqlens[s] : 0;
    float max = -INFINITY, sum = 0;
    for (int32_t i = lane; i < n; i += WARP) max = fmaxf(max, to_float(first[i * cols]));
    max = warp_max(max);
    for (int32_t i = lane; i < n; i += WARP) sum += expf(to_float(first[i * cols]) - max);
    sum = warp_sum(sum);
    if (lane) return;
    float l = labeled ? max + logf(sum) : 0;
    lse[pair] = l;
    pair_loss[pair] = labeled ? l - to_float(first[label[pair] * cols]) : 0;
}

/* One block, one column after another. */
__global__ void span_mean(ses_real *loss, const float *pair_loss, const int32_t *cu_seqlens,
                          const int32_t *label, int64_t seqs, int64_t cols)
{
    double total = 0;
    for (int64_t c = 0; c < cols; c++) {
        double sum = block_total(seqs, [=](int64_t s) { return (double)pair_loss[s * cols + c]; });
        double count =
            block_total(seqs, [=](int64_t s) { return has_label(cu_seqlens, label, s, c, cols) ? 1.0 : 0; });
        if (count > 0) total += sum / count;
        if (threadIdx.x == 0) loss[1 + c] = (float)(count > 0 ? 1 / count / (double)cols : 0);
    }
    if (threadIdx.x == 0) loss[0] = (float)(total / (double)cols);
}

template <class T>
static void xent_span(ses_exec *x, ses_real *loss, ses_real *lse, const ses_real *a,
                      const int32_t *cu_seqlens, const int32_t *label, int64_t seqs, int64_t cols)
{
    float *pair_loss = (float *)scratch_lock(x->cuda, (size_t)(seqs * cols + 1) * sizeof *pair_loss);
    if (!pair_loss) return;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (seqs * cols > 0)
        span_rows<T><<<(unsigned)ceil_div(seqs * cols, WARPS), BLOCK, 0, stream>>>(
            lse, pair_loss, elems<T>(a), cu_seqlens, label, seqs, cols);
    check_launch(x->cuda);
    span_mean<<<1, 1024, 0, stream>>>(loss, pair_loss, cu_seqlens, label, seqs, cols);
    check_launch(x->cuda);
    scratch_unlock(x->cuda);
}

/* One block per sequence. */
template <class T>
__global__ void span_bwd(dst<T> da, const float *dloss, const float *loss, const float *lse, const T *a,
                         const int32_t *cu_seqlens, const int32_t *label, int64_t cols)
{
    int64_t s = blockIdx.x, n = (cu_seqlens[s + 1] - cu_seqlens[s]) * cols, at = cu_seqlens[s] * cols;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t c = i % cols;
        float d = 0;
        if (has_label(cu_seqlens, label, s, c, cols)) {
            float p = expf(to_float(a[at + i]) - lse[s * cols + c]);
            d = loss[1 + c] * dloss[0] * (p - (i / cols == label[s * cols + c]));
        }
        store(da, at + i, d);
    }
}

template <class T>
static void xent_span_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                          const ses_real *lse, const ses_real *a, const int32_t *cu_seqlens,
                          const int32_t *label, int64_t seqs, int64_t cols)
{
    if (!da.data || seqs <= 0) return;
    span_bwd<T><<<(unsigned)seqs, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(dst_of<T>(da), dloss, loss, lse,
                                                                        elems<T>(a), cu_seqlens, label, cols);
    check_launch(x->cuda);
}

template <ses_loss KIND> __device__ static inline double target_term(float v, const float *target, int64_t i)
{
    float t = target ? target[i] : 0;
    if (KIND == SES_LOSS_MSE) return ((double)v - t) * ((double)v - t);
    return (double)(fmaxf(v, 0) - v * t + log1pf(expf(-fabsf(v))));
}

/* Partial sums of a loss between a and target, which is f32; NULL: zeros. One per block. */
template <class T, ses_loss KIND>
__global__ void target_partials(double *part, const T *a, const float *target, int64_t n)
{
    double sum = 0;
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += target_term<KIND>(to_float(a[i]), target, i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

static __global__ void mean_of_partials(float *loss, const double *part, int64_t parts, int64_t n)
{
    double sum = block_total(parts, [=](int64_t i) { return part[i]; });
    if (threadIdx.x == 0) loss[0] = (float)(sum / (double)n);
}

/* The number of blocks, and with it the order of the sum, depends on n only. */
template <class T, ses_loss KIND>
static void target_loss(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n)
{
    enum { EACH = 16 * BLOCK };
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    int64_t needed = n > 0 ? ceil_div(n, EACH) : 1;
    int64_t parts = needed < (int64_t)PARTIALS ? needed : (int64_t)PARTIALS;
    double *part = (double *)scratch_lock(x->cuda, (size_t)parts * sizeof *part);
    if (!part) return;
    target_partials<T, KIND><<<(unsigned)parts, BLOCK, 0, stream>>>(part, elems<T>(a), target, n);
    check_launch(x->cuda);
    mean_of_partials<<<1, BLOCK, 0, stream>>>(loss, part, parts, n);
    check_launch(x->cuda);
    scratch_unlock(x->cuda);
}

template <class T, ses_loss KIND>
static void target_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *a,
                       const ses_real *target, int64_t n)
{
    dst<T> to = dst_of<T>(da);
    const T *from = elems<T>(a);
    if (!da.data) return;
    for_each(x, n, [=] __device__(int64_t i) {
        float v = to_float(from[i]), t = target ? target[i] : 0;
        float d = KIND == SES_LOSS_MSE ? 2 * (v - t) : sigmoid(v) - t;
        store(to, i, d * dloss[0] / (float)n);
    });
}

template <class T> static void fill(ses_kernels *k)
{
    k->xent_rows = xent_rows<T>, k->xent_mean = xent_mean, k->xent_bwd = xent_bwd<T>;
    k->label_smoothing = label_smoothing<T>, k->label_smoothing_bwd = label_smoothing_bwd<T>;
    k->xent_span = xent_span<T>, k->xent_span_bwd = xent_span_bwd<T>;
    k->bce = target_loss<T, SES_LOSS_BCE>, k->bce_bwd = target_bwd<T, SES_LOSS_BCE>;
    k->mse = target_loss<T, SES_LOSS_MSE>, k->mse_bwd = target_bwd<T, SES_LOSS_MSE>;
}

void ses_cuda_loss(ses_kernels *k, bool is_bf16) { is_bf16 ? fill<bf16>(k) : fill<float>(k); }
