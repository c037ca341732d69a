/* CUDA kernels of the distillation losses. */
#include "reduce_cuda.cuh"

/* One block per row; stat is specified in kernels.def. */
template <class T>
__global__ void teacher_rows(float *stat, const T *a, const T *b, int64_t cols, ses_teacher_loss_kind kind,
                             float temperature)
{
    a += blockIdx.x * cols;
    b += blockIdx.x * cols;
    stat += 3 * (int64_t)blockIdx.x;
    double s0 = 0, s1 = 0, s2 = 0;
    if (kind == SES_TEACHER_KL) {
        float max_a = -INFINITY, max_b = -INFINITY;
        for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
            max_a = fmaxf(max_a, to_float(a[j])), max_b = fmaxf(max_b, to_float(b[j]));
        max_a = block_max(max_a) / temperature;
        max_b = block_max(max_b) / temperature;
        double sum_a =
            block_total(cols, [=](int64_t j) { return (double)expf(to_float(a[j]) / temperature - max_a); });
        double sum_b =
            block_total(cols, [=](int64_t j) { return (double)expf(to_float(b[j]) / temperature - max_b); });
        s1 = max_a + log(sum_a);
        s2 = max_b + log(sum_b);
        double gap = block_total(cols, [=](int64_t j) {
            return (double)(expf(to_float(b[j]) / temperature - max_b) * (to_float(b[j]) - to_float(a[j])));
        });
        s0 = temperature * gap / sum_b + (double)temperature * temperature * (s1 - s2);
    } else if (kind == SES_TEACHER_COSINE) {
        double aa =
            block_total(cols, [=](int64_t j) { return (double)to_float(a[j]) * to_float(a[j]); }) + 1e-30;
        double bb =
            block_total(cols, [=](int64_t j) { return (double)to_float(b[j]) * to_float(b[j]); }) + 1e-30;
        double ab = block_total(cols, [=](int64_t j) { return (double)to_float(a[j]) * to_float(b[j]); });
        s1 = 1 / sqrt(aa) / sqrt(bb);
        s2 = ab * s1 / aa;
        s0 = 1 - ab * s1;
    } else {
        s0 = block_total(cols,
                         [=](int64_t j) {
                             double d = (double)to_float(a[j]) - to_float(b[j]);
                             return d * d;
                         }) /
             (double)cols;
    }
    if (threadIdx.x == 0) stat[0] = (float)s0, stat[1] = (float)s1, stat[2] = (float)s2;
}

/* One block. */
__global__ void teacher_mean(float *loss, const float *stat, int64_t rows)
{
    double sum = block_total(rows, [=](int64_t i) { return (double)stat[3 * i]; });
    if (threadIdx.x == 0) loss[0] = (float)(sum / (double)rows);
}

template <class T>
static void teacher_loss(ses_exec *x, ses_real *loss, ses_real *stat, const ses_real *a, const ses_real *b,
                         int64_t rows, int64_t cols, ses_teacher_loss_kind kind, double temperature)
{
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (rows <= 0) return;
    teacher_rows<T><<<(unsigned)rows, row_threads(cols), 0, stream>>>(stat, elems<T>(a), elems<T>(b), cols,
                                                                      kind, (float)temperature);
    check_launch(x->cuda);
    teacher_mean<<<1, 1024, 0, stream>>>(loss, stat, rows);
    check_launch(x->cuda);
}

template <class T>
static void teacher_loss_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *stat,
                             const ses_real *a, const ses_real *b, int64_t rows, int64_t cols,
                             ses_teacher_loss_kind kind, double temperature_of)
{
    dst<T> to = dst_of<T>(da);
    const T *from = elems<T>(a), *target = elems<T>(b);
    float temperature = (float)temperature_of;
    if (!da.data) return;
    for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        const float *s = stat + 3 * row;
        float u = to_float(from[row * cols + j]), v = to_float(target[row * cols + j]),
              d = 2 * (u - v) / (float)cols;
        if (kind == SES_TEACHER_KL)
            d = temperature * (expf(u / temperature - s[1]) - expf(v / temperature - s[2]));
        else if (kind == SES_TEACHER_COSINE)
            d = u * s[2] - v * s[1];
        store(to, row * cols + j, dloss[0] / (float)rows * d);
    });
}

/* ---- relations: scores in f32 ---- */

/* One block per row. */
__global__ void relation_rows(float *stat, const float *a, const float *b, int64_t cols, float a_scale,
                              float b_scale)
{
    a += blockIdx.x * cols;
    b += blockIdx.x * cols;
    stat += 3 * (int64_t)blockIdx.x;
    float max_a = -INFINITY, max_b = -INFINITY;
    for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
        max_a = fmaxf(max_a, a_scale * a[j]), max_b = fmaxf(max_b, b_scale * b[j]);
    max_a = block_max(max_a);
    max_b = block_max(max_b);
    double sum_a = block_total(cols, [=](int64_t j) { return (double)expf(a_scale * a[j] - max_a); });
    double sum_b = block_total(cols, [=](int64_t j) { return (double)expf(b_scale * b[j] - max_b); });
    double gap = block_total(cols, [=](int64_t j) {
        float u = a_scale * a[j] - max_a, v = b_scale * b[j] - max_b;
        return (double)(expf(v) * (v - u));
    });
    if (threadIdx.x == 0) {
        stat[0] = (float)(gap / sum_b + log(sum_a) - log(sum_b));
        stat[1] = (float)(max_a + log(sum_a));
        stat[2] = (float)(max_b + log(sum_b));
    }
}

static void relation(ses_exec *x, ses_real *stat, const ses_real *a, const ses_real *b, int64_t rows,
                     int64_t cols, double a_scale, double b_scale)
{
    if (rows <= 0) return;
    relation_rows<<<(unsigned)rows, row_threads(cols), 0, ses_cuda_stream(x->cuda)>>>(
        stat, a, b, cols, (float)a_scale, (float)b_scale);
    check_launch(x->cuda);
}

static void relation_mean(ses_exec *x, ses_real *loss, const ses_real *stat, int64_t rows)
{
    if (rows <= 0) return;
    teacher_mean<<<1, 1024, 0, ses_cuda_stream(x->cuda)>>>(loss, stat, rows);
    check_launch(x->cuda);
}

template <class T>
static void relation_bwd(ses_exec *x, ses_real *da, const ses_real *dloss, const ses_real *stat,
                         const ses_real *a, const ses_real *b, int64_t rows, int64_t cols, double a_scale_of,
                         double b_scale_of, double scale_of)
{
    T *to = elems<T>(da);
    float a_scale = (float)a_scale_of, b_scale = (float)b_scale_of, scale = (float)scale_of;
    for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        const float *s = stat + 3 * row;
        int64_t at = row * cols + j;
        to[at] =
            from_float<T>(dloss[0] * scale * (expf(a_scale * a[at] - s[1]) - expf(b_scale * b[at] - s[2])));
    });
}

template <class T> static void fill(ses_kernels *k)
{
    k->teacher_loss = teacher_loss<T>, k->teacher_loss_bwd = teacher_loss_bwd<T>;
    k->relation = relation, k->relation_mean = relation_mean, k->relation_bwd = relation_bwd<T>;
}

void ses_cuda_teacher_loss(ses_kernels *k, bool is_bf16) { is_bf16 ? fill<bf16>(k) : fill<float>(k); }
