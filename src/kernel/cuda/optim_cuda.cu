/* CUDA kernels of the optimizer steps: AdamW over many tensors, LAMB, SGD, Adafactor. */
#include "reduce_cuda.cuh"

/* Adam's hyperparameters, rounded to float once; the step is the one of optim_simd.c. */
struct adam {
    float beta1, one_minus_beta1, beta2, one_minus_beta2, correction1, correction2, eps, lr, decay, scale;
};

static adam adam_of(const ses_adamw *o)
{
    adam a = { (float)o->beta1,        (float)(1 - o->beta1), (float)o->beta2, (float)(1 - o->beta2),
               (float)o->correction1,  (float)o->correction2, (float)o->eps,   (float)o->lr,
               (float)o->weight_decay, (float)o->scale };
    return a;
}

/* Updates m and v. Returns the step before learning rate and weight decay. */
__device__ static inline float adam_step(const adam &o, float g, ses_real *m, ses_real *v)
{
    float m1 = o.beta1 * *m + o.one_minus_beta1 * g, v1 = o.beta2 * *v + o.one_minus_beta2 * g * g;
    *m = m1;
    *v = v1;
    return m1 * o.correction1 / (sqrtf(v1 * o.correction2) + o.eps);
}

/* Many tensors in one launch, passed as a kernel argument: shared hyperparameters, and per-tensor entries. */
enum { MAX_LIST = 128, BLOCK_ELEMS = 4096 }; /* elements per block */

struct adam_tensor {
    float *w, *m, *v;
    const float *g;
    bf16 *w_bf16;
    unsigned n, first; /* first: its first block */
    float lr, decay, correction1, correction2;
};

struct adam_list {
    adam o;
    int n;
    adam_tensor part[MAX_LIST];
};

__device__ static inline void adam_elem(const adam &o, const adam_tensor &p, float decay, unsigned i)
{
    float step = adam_step(o, o.scale * p.g[i], p.m + i, p.v + i), w = p.w[i];
    w -= decay * w + o.lr * step;
    p.w[i] = w;
    if (p.w_bf16) p.w_bf16[i] = from_float<bf16>(w);
}

__device__ static inline void adam_elem4(const adam &o, const adam_tensor &p, float decay, unsigned i)
{
    vec16<float> w = *(const vec16<float> *)(p.w + i), g = *(const vec16<float> *)(p.g + i),
                 m = *(const vec16<float> *)(p.m + i), v = *(const vec16<float> *)(p.v + i);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float step = adam_step(o, o.scale * g.at[k], m.at + k, v.at + k);
        w.at[k] -= decay * w.at[k] + o.lr * step;
    }
    *(vec16<float> *)(p.w + i) = w;
    *(vec16<float> *)(p.m + i) = m;
    *(vec16<float> *)(p.v + i) = v;
    if (!p.w_bf16) return;
    bf16 low[4];
#pragma unroll
    for (int k = 0; k < 4; k++) low[k] = from_float<bf16>(w.at[k]);
    *(uint2 *)(p.w_bf16 + i) = *(const uint2 *)low;
}

__global__ void __launch_bounds__(BLOCK) adam_list_kernel(const __grid_constant__ adam_list list)
{
    int low = 0, high = list.n - 1; /* finds the last tensor that starts at or before this block */
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (list.part[middle].first <= blockIdx.x)
            low = middle;
        else
            high = middle - 1;
    }
    adam_tensor p = list.part[low];
    adam o = list.o;
    o.lr = p.lr, o.correction1 = p.correction1, o.correction2 = p.correction2;
    unsigned begin = (blockIdx.x - p.first) * BLOCK_ELEMS, end = min(begin + BLOCK_ELEMS, p.n),
             whole = end / 4 * 4;
    for (unsigned i = begin + threadIdx.x * 4; i < whole; i += BLOCK * 4) adam_elem4(o, p, p.decay, i);
    for (unsigned i = max(begin, whole) + threadIdx.x; i < end; i += BLOCK) adam_elem(o, p, p.decay, i);
}

static adam_tensor adam_tensor_of(const ses_adamw_tensor *p, unsigned first)
{
    adam_tensor part = { p->w,
                         p->m,
                         p->v,
                         p->g,
                         (bf16 *)p->w_bf16,
                         (unsigned)p->n,
                         first,
                         (float)p->o.lr,
                         (float)(p->o.lr * p->o.weight_decay),
                         (float)p->o.correction1,
                         (float)p->o.correction2 };
    return part;
}

/* The tensors share betas, epsilon and grad scale. */
static void adamw_list(ses_exec *x, const ses_adamw_tensor *part, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        adam_list list = { adam_of(&part[i].o), 0, {} };
        unsigned blocks = 0;
        for (; i < n && list.n < MAX_LIST; i++) {
            if (part[i].n <= 0) continue;
            if (part[i].n > UINT32_MAX / 2)
                return record_failure(x->cuda, "adamw: tensor has more than 2^31 elements");
            list.part[list.n++] = adam_tensor_of(&part[i], blocks);
            blocks += (unsigned)ceil_div(part[i].n, BLOCK_ELEMS);
        }
        if (blocks) adam_list_kernel<<<blocks, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(list);
        check_launch(x->cuda);
    }
}

static void adamw(ses_exec *x, ses_real *w, const ses_real *g, ses_real *m, ses_real *v, int64_t n,
                  const ses_adamw *o)
{
    ses_adamw_tensor one = { w, g, m, v, NULL, n, *o };
    adamw_list(x, &one, 1);
}

static void lamb(ses_exec *x, ses_real *u, const ses_real *w, const ses_real *g, ses_real *m, ses_real *v,
                 int64_t n, const ses_adamw *o)
{
    adam a = adam_of(o);
    for_each(x, n, [=] __device__(int64_t i) {
        u[i] = adam_step(a, a.scale * g[i], m + i, v + i) + a.decay * w[i];
    });
}

/* part: partial sums of squares of w and of u; each block adds them again. */
static __global__ void lamb_apply(ses_real *w, const ses_real *u, int64_t n, const double *part, double lr)
{
    double squares_w = block_total(PARTIALS, [=](int64_t i) { return part[i]; }),
           squares_u = block_total(PARTIALS, [=](int64_t i) { return part[PARTIALS + i]; });
    float by = (float)(-lr * ses_lamb_trust(squares_w, squares_u));
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) w[i] += by * u[i];
}

static void lamb_update(ses_exec *x, ses_real *w, const ses_real *u, int64_t n, double lr)
{
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    double *part = n > 0 ? (double *)scratch_lock(x->cuda, 2 * PARTIALS * sizeof *part) : NULL;
    if (!part) return;
    square_partials<<<PARTIALS, BLOCK, 0, stream>>>(part, w, n);
    check_launch(x->cuda);
    square_partials<<<PARTIALS, BLOCK, 0, stream>>>(part + PARTIALS, u, n);
    check_launch(x->cuda);
    lamb_apply<<<blocks_for(x->cuda, n), BLOCK, 0, stream>>>(w, u, n, part, lr);
    check_launch(x->cuda);
    scratch_unlock(x->cuda);
}

static void sgd(ses_exec *x, ses_real *w, const ses_real *g, ses_real *buf, int64_t n, const ses_sgd *o)
{
    float lr = (float)o->lr, momentum = (float)o->momentum, keep = (float)o->grad_weight,
          decay = (float)o->weight_decay, scale = (float)o->scale;
    bool nesterov = o->nesterov;
    for_each(x, n, [=] __device__(int64_t i) {
        float d = scale * g[i] + decay * w[i];
        if (buf) {
            float new_value = momentum * buf[i] + keep * d;
            buf[i] = new_value;
            d = nesterov ? d + momentum * new_value : new_value;
        }
        w[i] -= lr * d;
    });
}

static void adagrad(ses_exec *x, ses_real *w, const ses_real *g, ses_real *sum, int64_t n,
                    const ses_adagrad *o)
{
    float lr = (float)o->lr, eps = (float)o->eps, start = (float)o->accumulator,
          decay = (float)o->weight_decay, scale = (float)o->scale;
    for_each(x, n, [=] __device__(int64_t i) {
        float d = scale * g[i] + decay * w[i], new_sum = sum[i] + d * d;
        sum[i] = new_sum;
        w[i] -= lr * d / (sqrtf(new_sum + start) + eps);
    });
}

/* row[i] = beta2 row[i] + (1 - beta2) mean_j(g[i][j]^2 + eps); one block per row. */
__global__ void factor_rows(ses_real *row, const ses_real *g, int64_t cols, float beta2,
                            double one_minus_beta2, float eps, float scale)
{
    const ses_real *at = g + blockIdx.x * cols;
    double sum = block_total(cols, [=](int64_t j) {
        float v = scale * at[j];
        return (double)(v * v + eps);
    });
    if (threadIdx.x == 0)
        row[blockIdx.x] = beta2 * row[blockIdx.x] + (float)(one_minus_beta2 * sum / (double)cols);
}

__global__ void factor_mean(float *mean, const ses_real *row, int64_t rows)
{
    double sum = block_total(rows, [=](int64_t i) { return (double)row[i]; });
    if (threadIdx.x == 0) *mean = (float)(sum / (double)rows);
}

/* Three kernels: row means, column means, quotients. */
static void adafactor_matrix(ses_exec *x, ses_real *u, ses_real *row, ses_real *col, const ses_real *g,
                             int64_t rows, int64_t cols, const ses_adafactor *o)
{
    float beta2 = (float)o->beta2, col_weight = (float)((1 - o->beta2) / (double)rows), eps = (float)o->eps,
          scale = (float)o->scale;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (rows <= 0 || cols <= 0) return;
    factor_rows<<<(unsigned)rows, BLOCK, 0, stream>>>(row, g, cols, beta2, 1 - o->beta2, eps, scale);
    check_launch(x->cuda);
    for_each(x, cols, [=] __device__(int64_t j) { col[j] *= beta2; });
    sum_columns(x, accumulating(col), rows, cols, [=] __device__(int64_t i, int64_t j) {
        float v = scale * g[i * cols + j];
        return col_weight * (v * v + eps);
    });
    float *mean = (float *)scratch_lock(x->cuda, sizeof *mean);
    if (!mean) return;
    factor_mean<<<1, 1024, 0, stream>>>(mean, row, rows);
    check_launch(x->cuda);
    for_each(x, rows * cols, [=] __device__(int64_t i) {
        float by = sqrtf(row[i / cols] / *mean) * sqrtf(col[i % cols]);
        u[i] = scale * g[i] / by;
    });
    scratch_unlock(x->cuda);
}

static void adafactor_each(ses_exec *x, ses_real *u, ses_real *v, const ses_real *g, int64_t n,
                           const ses_adafactor *o)
{
    float beta2 = (float)o->beta2, one_minus_beta2 = (float)(1 - o->beta2), eps = (float)o->eps,
          scale = (float)o->scale;
    for_each(x, n, [=] __device__(int64_t i) {
        float d = scale * g[i], new_value = beta2 * v[i] + one_minus_beta2 * (d * d + eps);
        v[i] = new_value;
        u[i] = d / sqrtf(new_value);
    });
}

/* Weights, gradients and optimizer state are f32 on every device. */
void ses_cuda_optim(ses_kernels *k)
{
    k->adamw = adamw, k->adamw_list = adamw_list, k->sgd = sgd, k->lamb = lamb;
    k->adagrad = adagrad;
    k->lamb_update = lamb_update;
    k->adafactor_matrix = adafactor_matrix, k->adafactor_each = adafactor_each;
}
