#include "reduce_cuda.cuh"

/* A block a row; stat as teacher_loss_ref.c has it. */
template <class T>
__global__ void match_rows(float *stat, const T *a, const T *b, int64_t cols, ses_teacher_loss_kind kind,
                           float heat)
{
    a += blockIdx.x * cols;
    b += blockIdx.x * cols;
    stat += 3 * (int64_t)blockIdx.x;
    double s0 = 0, s1 = 0, s2 = 0;
    if (kind == SES_TEACHER_KL) {
        float most_a = -INFINITY, most_b = -INFINITY;
        for (int64_t j = threadIdx.x; j < cols; j += blockDim.x)
            most_a = fmaxf(most_a, num(a[j])), most_b = fmaxf(most_b, num(b[j]));
        most_a = block_max(most_a) / heat;
        most_b = block_max(most_b) / heat;
        double sum_a = block_total(cols, [=](int64_t j) { return (double)expf(num(a[j]) / heat - most_a); });
        double sum_b = block_total(cols, [=](int64_t j) { return (double)expf(num(b[j]) / heat - most_b); });
        s1 = most_a + log(sum_a);
        s2 = most_b + log(sum_b);
        double gap = block_total(cols, [=](int64_t j) {
            return (double)(expf(num(b[j]) / heat - most_b) * (num(b[j]) - num(a[j])));
        });
        s0 = heat * gap / sum_b + (double)heat * heat * (s1 - s2);
    } else if (kind == SES_TEACHER_COSINE) {
        double aa = block_total(cols, [=](int64_t j) { return (double)num(a[j]) * num(a[j]); }) + 1e-30;
        double bb = block_total(cols, [=](int64_t j) { return (double)num(b[j]) * num(b[j]); }) + 1e-30;
        double ab = block_total(cols, [=](int64_t j) { return (double)num(a[j]) * num(b[j]); });
        s1 = 1 / sqrt(aa) / sqrt(bb);
        s2 = ab * s1 / aa;
        s0 = 1 - ab * s1;
    } else {
        s0 = block_total(cols,
                         [=](int64_t j) {
                             double d = (double)num(a[j]) - num(b[j]);
                             return d * d;
                         }) /
             (double)cols;
    }
    if (threadIdx.x == 0) stat[0] = (float)s0, stat[1] = (float)s1, stat[2] = (float)s2;
}

/* One block. */
__global__ void match_mean(float *loss, const float *stat, int64_t rows)
{
    double sum = block_total(rows, [=](int64_t i) { return (double)stat[3 * i]; });
    if (threadIdx.x == 0) loss[0] = (float)(sum / (double)rows);
}

template <class T>
static void teacher_loss(ses_exec *x, ses_real *loss, ses_real *stat, const ses_real *a, const ses_real *b,
                         int64_t rows, int64_t cols, ses_teacher_loss_kind kind, double heat)
{
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (rows <= 0) return;
    match_rows<T><<<(unsigned)rows, row_threads(cols), 0, stream>>>(stat, cells<T>(a), cells<T>(b), cols,
                                                                    kind, (float)heat);
    launched(x->cuda);
    match_mean<<<1, 1024, 0, stream>>>(loss, stat, rows);
    launched(x->cuda);
}

template <class T>
static void teacher_loss_bwd(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *stat,
                             const ses_real *a, const ses_real *b, int64_t rows, int64_t cols,
                             ses_teacher_loss_kind kind, double heat_of)
{
    sink<T> to = sink_of<T>(da);
    const T *from = cells<T>(a), *like = cells<T>(b);
    float heat = (float)heat_of;
    if (!da.data) return;
    each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        const float *s = stat + 3 * row;
        float u = num(from[row * cols + j]), v = num(like[row * cols + j]), d = 2 * (u - v) / (float)cols;
        if (kind == SES_TEACHER_KL)
            d = heat * (expf(u / heat - s[1]) - expf(v / heat - s[2]));
        else if (kind == SES_TEACHER_COSINE)
            d = u * s[2] - v * s[1];
        put(to, row * cols + j, dloss[0] / (float)rows * d);
    });
}

template <class T> static void fill(ses_kernels *k)
{
    k->teacher_loss = teacher_loss<T>, k->teacher_loss_bwd = teacher_loss_bwd<T>;
}

void ses_cuda_match(ses_kernels *k, bool narrow) { narrow ? fill<bf16>(k) : fill<float>(k); }
