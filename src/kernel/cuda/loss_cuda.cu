#include "act_cuda.cuh"
#include "reduce_cuda.cuh"

/* A block a row, by packs where rows begin on them. */
template <class T>
__global__ void xent_row(float *row_loss, float *lse, const T *a, const int32_t *label, int64_t cols,
                         int64_t ld, bool packed)
{
    enum { N = pack<T>::N };
    int64_t row = blockIdx.x, whole = packed ? cols / N * N : 0;
    int32_t right = label[row];
    if (right == SES_IGNORE_INDEX) {
        if (threadIdx.x == 0) lse[row] = row_loss[row] = 0;
        return;
    }
    a += row * ld;
    float top = -INFINITY, sum = 0; /* of what this thread has seen */
    auto take = [&](const float *v, int n) {
        float more = top;
        for (int k = 0; k < n; k++) more = fmaxf(more, v[k]);
        if (more == -INFINITY) return;
        sum *= expf(top - more);
        for (int k = 0; k < n; k++)
            sum += sizeof(T) < sizeof(float) ? __expf(v[k] - more) : expf(v[k] - more);
        top = more;
    };
    for (int64_t j = threadIdx.x * N; j < whole; j += blockDim.x * N) {
        pack<T> p = *(const pack<T> *)(a + j);
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = num(p.at[k]);
        take(v, N);
    }
    for (int64_t j = whole + threadIdx.x; j < cols; j += blockDim.x) {
        float v = num(a[j]);
        take(&v, 1);
    }
    float max = block_max(top);
    sum = block_sum(top == -INFINITY ? 0 : sum * expf(top - max));
    if (threadIdx.x) return;
    float l = max + logf(sum);
    lse[row] = l;
    row_loss[row] = l - num(a[right]);
}

template <class T>
static void xent_rows(ses_exec *x, ses_real *row_loss, ses_real *lse, const ses_real *a, const int32_t *label,
                      int64_t rows, int64_t cols, int64_t ld)
{
    if (rows <= 0) return;
    bool packed = whole_packs(a) && ld % pack<T>::N == 0;
    unsigned threads = row_threads(cols) < 512 ? row_threads(cols) : 512;
    xent_row<T><<<(unsigned)rows, threads, 0, ses_cuda_stream(x->cuda)>>>(row_loss, lse, cells<T>(a), label,
                                                                          cols, ld, packed);
    launched(x->cuda);
}

/* loss[0] = the mean of row_loss over the rows that count, loss[1] = 1 / their number; one block. */
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
    launched(x->cuda);
}

template <class T>
__global__ void xent_bwd_row(sink<T> to, const float *dloss, const float *loss, const float *lse, const T *a,
                             const int32_t *label, int64_t cols, int64_t ld, bool packed)
{
    enum { N = pack<T>::N };
    int64_t row = blockIdx.x, whole = packed ? cols / N * N : 0;
    int32_t right = label[row];
    float scale = right == SES_IGNORE_INDEX ? 0 : loss[1] * dloss[0], base = lse[row];
    auto slope = [=](float v, int64_t j) {
        float p = sizeof(T) < sizeof(float) ? __expf(v - base) : expf(v - base);
        return right == SES_IGNORE_INDEX ? 0 : scale * (p - (j == right));
    };
    for (int64_t j = threadIdx.x * N; j < whole; j += blockDim.x * N) {
        pack<T> p = *(const pack<T> *)(a + row * ld + j);
#pragma unroll
        for (int k = 0; k < N; k++) p.at[k] = cell<T>(slope(num(p.at[k]), j + k));
        *(pack<T> *)(to.data + row * ld + j) = p;
    }
    for (int64_t j = whole + threadIdx.x; j < cols; j += blockDim.x)
        put(to, row * ld + j, slope(num(a[row * ld + j]), j));
    for (int64_t j = cols + threadIdx.x; j < ld && !to.accumulate; j += blockDim.x) put(to, row * ld + j, 0);
}

template <class T>
static void xent_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                     const ses_real *lse, const ses_real *a, const int32_t *label, int64_t rows, int64_t cols,
                     int64_t ld)
{
    if (!da.data || rows <= 0) return;
    bool packed =
        !da.is_f32 && !da.accumulate && ld % pack<T>::N == 0 && whole_packs(a) && whole_packs(da.data);
    unsigned threads = row_threads(cols) < BLOCK ? row_threads(cols) : (unsigned)BLOCK;
    xent_bwd_row<T><<<(unsigned)rows, threads, 0, ses_cuda_stream(x->cuda)>>>(
        sink_of<T>(da), dloss, loss, lse, cells<T>(a), label, cols, ld, packed);
    launched(x->cuda);
}

template <class T>
__global__ void margin_row(float *label_smoothing, const T *a, const int32_t *label, int64_t cols)
{
    int64_t row = blockIdx.x;
    a += row * cols;
    double mean = block_total(cols, [=](int64_t j) { return (double)num(a[j]); }) / (double)cols;
    if (threadIdx.x == 0)
        label_smoothing[row] = label[row] == SES_IGNORE_INDEX ? 0 : (float)(num(a[label[row]]) - mean);
}

template <class T>
static void label_smoothing(ses_exec *x, ses_real *loss, const ses_real *a, const int32_t *label,
                            int64_t rows, int64_t cols)
{
    float *each_margin = (float *)scratch_lock(x->cuda, (size_t)(rows + 1) * sizeof *each_margin);
    if (!each_margin) return;
    if (rows > 0)
        margin_row<T><<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
            each_margin, cells<T>(a), label, cols);
    launched(x->cuda);
    xent_mean(x, loss, each_margin, label, rows);
    scratch_unlock(x->cuda);
}

template <class T>
static void label_smoothing_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                                const int32_t *label, int64_t rows, int64_t cols)
{
    sink<T> to = sink_of<T>(da);
    if (!da.data) return;
    each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        float d = loss[1] * dloss[0] * ((j == label[row]) - 1 / (float)cols);
        put(to, row * cols + j, label[row] == SES_IGNORE_INDEX ? 0 : d);
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
template <class T>
__global__ void seg_pairs(float *lse, float *pair_loss, const T *a, const int32_t *cu, const int32_t *label,
                          int64_t seqs, int64_t cols)
{
    int64_t pair = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, s = pair / cols, c = pair % cols;
    int lane = threadIdx.x % WARP;
    if (pair >= seqs * cols) return;
    bool counts = seg_counts(cu, label, s, c, cols);
    const T *first = a + cu[s] * cols + c;
    int32_t n = counts ? cu[s + 1] - cu[s] : 0;
    float max = -INFINITY, sum = 0;
    for (int32_t i = lane; i < n; i += WARP) max = fmaxf(max, num(first[i * cols]));
    max = warp_max(max);
    for (int32_t i = lane; i < n; i += WARP) sum += expf(num(first[i * cols]) - max);
    sum = warp_sum(sum);
    if (lane) return;
    float l = counts ? max + logf(sum) : 0;
    lse[pair] = l;
    pair_loss[pair] = counts ? l - num(first[label[pair] * cols]) : 0;
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

template <class T>
static void xent_span(ses_exec *x, ses_real *loss, ses_real *lse, const ses_real *a, const int32_t *cu,
                      const int32_t *label, int64_t seqs, int64_t cols)
{
    float *pair_loss = (float *)scratch_lock(x->cuda, (size_t)(seqs * cols + 1) * sizeof *pair_loss);
    if (!pair_loss) return;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (seqs * cols > 0)
        seg_pairs<T><<<(unsigned)ceil_div(seqs * cols, WARPS), BLOCK, 0, stream>>>(
            lse, pair_loss, cells<T>(a), cu, label, seqs, cols);
    launched(x->cuda);
    seg_mean<<<1, 1024, 0, stream>>>(loss, pair_loss, cu, label, seqs, cols);
    launched(x->cuda);
    scratch_unlock(x->cuda);
}

/* A block a sequence. */
template <class T>
__global__ void seg_bwd(sink<T> da, const float *dloss, const float *loss, const float *lse, const T *a,
                        const int32_t *cu, const int32_t *label, int64_t cols)
{
    int64_t s = blockIdx.x, n = (cu[s + 1] - cu[s]) * cols, at = cu[s] * cols;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        int64_t c = i % cols;
        float d = 0;
        if (seg_counts(cu, label, s, c, cols)) {
            float p = expf(num(a[at + i]) - lse[s * cols + c]);
            d = loss[1 + c] * dloss[0] * (p - (i / cols == label[s * cols + c]));
        }
        put(da, at + i, d);
    }
}

template <class T>
static void xent_span_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                          const ses_real *lse, const ses_real *a, const int32_t *cu, const int32_t *label,
                          int64_t seqs, int64_t cols)
{
    if (!da.data || seqs <= 0) return;
    seg_bwd<T><<<(unsigned)seqs, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(sink_of<T>(da), dloss, loss, lse,
                                                                       cells<T>(a), cu, label, cols);
    launched(x->cuda);
}

/* Means over all elements of a loss between a and target, which is wide; one block. */
template <class T>
__global__ void target_mean(float *loss, const T *a, const float *target, int64_t n, ses_loss kind)
{
    double sum = block_total(n, [=](int64_t i) {
        float v = num(a[i]), t = target[i];
        if (kind == SES_LOSS_MSE) return ((double)v - t) * ((double)v - t);
        return (double)(fmaxf(v, 0) - v * t + log1pf(expf(-fabsf(v))));
    });
    if (threadIdx.x == 0) loss[0] = (float)(sum / (double)n);
}

template <class T, ses_loss KIND>
static void target_loss(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n)
{
    target_mean<T><<<1, 1024, 0, ses_cuda_stream(x->cuda)>>>(loss, cells<T>(a), target, n, KIND);
    launched(x->cuda);
}

template <class T, ses_loss KIND>
static void target_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *a,
                       const ses_real *target, int64_t n)
{
    sink<T> to = sink_of<T>(da);
    const T *from = cells<T>(a);
    if (!da.data) return;
    each(x, n, [=] __device__(int64_t i) {
        float v = num(from[i]), d = KIND == SES_LOSS_MSE ? 2 * (v - target[i]) : sigmoid(v) - target[i];
        put(to, i, d * dloss[0] / (float)n);
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

void ses_cuda_loss(ses_kernels *k, bool narrow) { narrow ? fill<bf16>(k) : fill<float>(k); }
