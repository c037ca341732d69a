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

template <class T> static void fill(ses_kernels *k)
{
    k->teacher_loss = teacher_loss<T>, k->teacher_loss_bwd = teacher_loss_bwd<T>;
}

void ses_cuda_teacher_loss(ses_kernels *k, bool is_bf16) { is_bf16 ? fill<bf16>(k) : fill<float>(k); }
