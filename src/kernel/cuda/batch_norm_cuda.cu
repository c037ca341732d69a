/* Batch norm and its backward pass: one thread per column. Its inputs are small (one row per text). */
#include "cuda_common.cuh"

template <class T>
static void batch_norm(ses_exec *x, ses_real *y, ses_real *stat, const ses_real *a, const ses_real *gain,
                       const ses_real *bias, ses_real *mean, ses_real *var, int64_t rows, int64_t cols,
                       const ses_batch_norm_spec *o)
{
    T *out = elems<T>(y);
    const T *in = elems<T>(a);
    float eps = (float)o->eps, momentum = (float)o->momentum;
    bool train = o->train;
    for_each(x, cols, [=] __device__(int64_t j) {
        float m = mean[j], v = fmaxf(0, var[j]), n = (float)rows;
        if (train) {
            m = v = 0;
            for (int64_t i = 0; i < rows; i++) m += to_float(in[i * cols + j]);
            m /= n;
            for (int64_t i = 0; i < rows; i++) {
                float d = to_float(in[i * cols + j]) - m;
                v += d * d;
            }
            mean[j] += momentum * (m - mean[j]);
            var[j] += momentum * (v / (n - 1) - var[j]);
            v /= n;
        }
        float rstd = 1 / sqrtf(v + eps);
        stat[2 * j] = m, stat[2 * j + 1] = rstd;
        for (int64_t i = 0; i < rows; i++)
            out[i * cols + j] = from_float<T>((to_float(in[i * cols + j]) - m) * rstd * gain[j] + bias[j]);
    });
}

template <class T>
static void batch_norm_bwd(ses_exec *x, ses_dst da, ses_real *dgain, ses_real *dbias, const ses_real *dy,
                           const ses_real *a, const ses_real *stat, const ses_real *gain, int64_t rows,
                           int64_t cols, bool train)
{
    dst<T> to = dst_of<T>(da);
    const T *dys = elems<T>(dy), *in = elems<T>(a);
    for_each(x, cols, [=] __device__(int64_t j) {
        float mean = stat[2 * j], rstd = stat[2 * j + 1], sum = 0, along = 0, n = (float)rows;
        for (int64_t i = 0; i < rows; i++) {
            float d = to_float(dys[i * cols + j]);
            sum += d, along += d * (to_float(in[i * cols + j]) - mean) * rstd;
        }
        if (dgain) dgain[j] += along;
        if (dbias) dbias[j] += sum;
        if (!train) sum = along = 0;
        for (int64_t i = 0; to.data && i < rows; i++) {
            int64_t k = i * cols + j;
            float xhat = (to_float(in[k]) - mean) * rstd;
            store(to, k, rstd * gain[j] * (to_float(dys[k]) - sum / n - xhat * along / n));
        }
    });
}

void ses_cuda_batch_norm(ses_kernels *k, bool is_bf16)
{
    k->batch_norm = is_bf16 ? batch_norm<bf16> : batch_norm<float>;
    k->batch_norm_bwd = is_bf16 ? batch_norm_bwd<bf16> : batch_norm_bwd<float>;
}
