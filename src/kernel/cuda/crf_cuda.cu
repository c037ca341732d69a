/* Loss of a linear-chain CRF and its backward pass. Forward: one block per sequence. Backward: one block per
 * chunk of sequences, whose sums are added in order. A warp has one label; its lanes are the labels before or
 * after it. Scores are added in double, exponentials are float. */
#include "cuda_common.cuh"

/* The next labeled row from `row` on, or `end`. */
__device__ static inline int64_t next_row(const ses_crf_chain &c, int64_t row, int64_t end)
{
    while (row < end && c.label[row] == SES_IGNORE_INDEX) row++;
    return row;
}

/* The labeled row before `row`, or -1. */
__device__ static inline int64_t previous_row(const ses_crf_chain &c, int64_t row, int64_t begin)
{
    do row--;
    while (row >= begin && c.label[row] == SES_IGNORE_INDEX);
    return row >= begin ? row : -1;
}

__device__ static inline double warp_max(double x)
{
    for (int d = WARP / 2; d; d /= 2) x = fmax(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* log sum over i < n of exp(score(i)), by a warp; returned to every lane. */
template <class F> __device__ static inline double log_sum_exp(int64_t n, F score)
{
    int lane = threadIdx.x % WARP;
    double max = -INFINITY;
    float sum = 0;
    for (int64_t i = lane; i < n; i += WARP) max = fmax(max, score(i));
    max = warp_max(max);
    if (isinf(max)) return max;
    for (int64_t i = lane; i < n; i += WARP) sum += expf((float)(score(i) - max));
    return max + (double)logf(warp_sum(sum));
}

template <class T> __global__ void crf_forward(ses_crf_chain c, const T *x)
{
    extern __shared__ double a[]; /* [labels] */
    int64_t L = c.labels, s = blockIdx.x, end = c.cu_seqlens[s + 1], before = -1;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    double loss = 0;
    for (int64_t row = next_row(c, c.cu_seqlens[s], end); row < end; row = next_row(c, row + 1, end)) {
        const float *alpha = c.alpha + before * L; /* not read if before < 0 */
        for (int64_t j = warp; j < L; j += warps) {
            double sum = before < 0 ? (double)c.start[j] : log_sum_exp(L, [=](int64_t i) {
                return (double)alpha[i] + (double)c.trans[i * L + j];
            });
            if (lane == 0) a[j] = (double)to_float(x[row * L + j]) + sum;
        }
        __syncthreads();
        double all = log_sum_exp(L, [=](int64_t i) { return a[i]; });
        for (int64_t j = threadIdx.x; j < L; j += blockDim.x) c.alpha[row * L + j] = (float)(a[j] - all);
        int32_t y = c.label[row], from = before < 0 ? 0 : c.label[before];
        loss += all - (double)to_float(x[row * L + y]);
        loss -= before < 0 ? (double)c.start[y] : (double)c.trans[from * L + y];
        before = row;
        __syncthreads();
    }
    if (warp) return;
    if (before >= 0) {
        const float *alpha = c.alpha + before * L;
        loss += log_sum_exp(L, [=](int64_t i) { return (double)alpha[i] + (double)c.end[i]; });
        loss -= (double)c.end[c.label[before]];
    }
    if (lane == 0) c.loss[2 + s] = (float)loss;
}

/* The mean over the sequences that have labels. One block. */
__global__ void crf_mean(ses_crf_chain c)
{
    double sum = 0, count = 0;
    for (int64_t s = threadIdx.x; s < c.seqs; s += blockDim.x)
        if (next_row(c, c.cu_seqlens[s], c.cu_seqlens[s + 1]) < c.cu_seqlens[s + 1])
            sum += (double)c.loss[2 + s], count += 1;
    sum = block_sum(sum), count = block_sum(count);
    if (threadIdx.x) return;
    c.loss[0] = (float)(count > 0 ? sum / count : 0);
    c.loss[1] = (float)(count > 0 ? 1 / count : 0);
}

/* A warp for each label, up to 32. */
static unsigned threads_for(int64_t labels) { return labels < WARP ? WARP * (unsigned)labels : WARP * WARP; }

template <class T> static void crf(ses_exec *x, const ses_crf_chain *c)
{
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (c->seqs > 0)
        crf_forward<T>
            <<<(unsigned)c->seqs, threads_for(c->labels), (size_t)c->labels * sizeof(double), stream>>>(
                *c, elems<T>(c->x));
    check_launch(x->cuda);
    crf_mean<<<1, BLOCK, 0, stream>>>(*c);
    check_launch(x->cuda);
}

/* Memory of a chunk of sequences: sums of dtrans [L, L], dstart and dend [L]; beta and next [L]. */
struct chunk_work {
    double *dtrans, *dstart, *dend, *beta, *next;
};

__device__ static inline chunk_work work_of(const ses_crf_chain &c, double *work, int64_t chunk)
{
    int64_t L = c.labels;
    double *w = work + chunk * L * (L + 4);
    chunk_work k = { w, w + L * L, w + L * L + L, w + L * L + 2 * L, w + L * L + 3 * L };
    return k;
}

/* The gradients of a row's scores: probabilities of its labels minus its label. */
template <class T>
__device__ static inline void row_grad(const ses_crf_chain &c, const chunk_work &w, dst<T> dx, float scale,
                                       int64_t row, bool first, bool last)
{
    int64_t L = c.labels;
    const float *alpha = c.alpha + row * L;
    const double *beta = w.beta;
    double all = log_sum_exp(L, [=](int64_t i) { return (double)alpha[i] + beta[i]; });
    for (int64_t j = threadIdx.x; j < L; j += blockDim.x) {
        float p = expf((float)((double)alpha[j] + beta[j] - all)) - (j == c.label[row] ? 1.0f : 0.0f);
        if (dx.data) store(dx, row * L + j, scale * p);
        if (last) w.dend[j] += (double)p;
        if (first) w.dstart[j] += (double)p;
    }
}

/* Adds the probability of each pair of labels at rows `before` and `row`; beta becomes that of `before`. */
template <class T>
__device__ static inline void step_back(const ses_crf_chain &c, const chunk_work &w, const T *x,
                                        int64_t before, int64_t row)
{
    int64_t L = c.labels;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    const float *alpha = c.alpha + before * L;
    double *beta = w.beta, *next = w.next;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < L; j += blockDim.x) beta[j] += (double)to_float(x[row * L + j]);
    __syncthreads();
    for (int64_t i = warp; i < L; i += warps) {
        double sum = log_sum_exp(L, [=](int64_t j) { return (double)c.trans[i * L + j] + beta[j]; });
        if (lane == 0) next[i] = sum;
    }
    __syncthreads();
    double all = log_sum_exp(L, [=](int64_t i) { return (double)alpha[i] + next[i]; });
    for (int64_t k = threadIdx.x; k < L * L; k += blockDim.x) {
        double score = (double)alpha[k / L] + (double)c.trans[k] + beta[k % L] - all;
        float p = expf((float)score) - (k == c.label[before] * L + c.label[row] ? 1.0f : 0.0f);
        w.dtrans[k] += (double)p;
    }
    __syncthreads();
    all = log_sum_exp(L, [=](int64_t i) { return next[i]; }); /* a common term changes no probability */
    for (int64_t i = threadIdx.x; i < L; i += blockDim.x) beta[i] = next[i] - all;
    __syncthreads();
}

template <class T>
__global__ void crf_backward(ses_crf_chain c, const T *x, const float *dloss, dst<T> dx, double *work)
{
    int64_t L = c.labels;
    float scale = dloss[0] * c.loss[1];
    chunk_work w = work_of(c, work, blockIdx.x);
    for (int64_t i = threadIdx.x; i < L * (L + 2); i += blockDim.x) w.dtrans[i] = 0;
    for (int64_t s = blockIdx.x; s < c.seqs; s += gridDim.x) {
        int64_t begin = c.cu_seqlens[s], end = c.cu_seqlens[s + 1], last = previous_row(c, end, begin);
        for (int64_t row = begin; dx.data && row < end; row++)
            if (c.label[row] == SES_IGNORE_INDEX)
                for (int64_t j = threadIdx.x; j < L; j += blockDim.x) store(dx, row * L + j, 0);
        __syncthreads(); /* beta may still be in use */
        for (int64_t j = threadIdx.x; j < L; j += blockDim.x) w.beta[j] = (double)c.end[j];
        __syncthreads();
        for (int64_t row = last, before; row >= 0; row = before) {
            before = previous_row(c, row, begin);
            row_grad(c, w, dx, scale, row, before < 0, row == last);
            if (before >= 0) step_back(c, w, x, before, row);
        }
    }
}

/* Adds the chunks' sums from offset `at` of each. */
static void put_sum(ses_exec *x, const ses_crf_chain *c, const ses_crf_grad *g, ses_dst to, int64_t at,
                    int64_t n, int64_t chunks)
{
    dst<float> out = dst_of<float>(to);
    const double *work = g->work;
    const float *dloss = g->dloss, *loss = c->loss;
    int64_t step = c->labels * (c->labels + 4);
    if (!to.data) return;
    for_each(x, n, [=] __device__(int64_t i) {
        double sum = 0;
        for (int64_t k = 0; k < chunks; k++) sum += work[k * step + at + i];
        store(out, i, (float)(sum * (double)(dloss[0] * loss[1])));
    });
}

template <class T> static void crf_bwd(ses_exec *x, const ses_crf_chain *c, const ses_crf_grad *g)
{
    int64_t L = c->labels, chunks = SES_CRF_CHUNKS;
    if (c->seqs < chunks) chunks = c->seqs;
    if (chunks > 0)
        crf_backward<T><<<(unsigned)chunks, threads_for(L), 0, ses_cuda_stream(x->cuda)>>>(
            *c, elems<T>(c->x), g->dloss, dst_of<T>(g->dx), g->work);
    check_launch(x->cuda);
    put_sum(x, c, g, g->dtrans, 0, L * L, chunks);
    put_sum(x, c, g, g->dstart, L * L, L, chunks);
    put_sum(x, c, g, g->dend, L * L + L, L, chunks);
}

void ses_cuda_crf(ses_kernels *k, bool is_bf16)
{
    k->crf = is_bf16 ? crf<bf16> : crf<float>;
    k->crf_bwd = is_bf16 ? crf_bwd<bf16> : crf_bwd<float>;
}
