/* CUDA kernels of the loss with a copy mechanism; ref/copy_loss_ref.c explains the two forms. */
#include "act_cuda.cuh"

__device__ static inline float softplus(float x) { return fmaxf(x, 0) + log1pf(expf(-fabsf(x))); }

__device__ static inline float copied_loss(float a, float nll)
{
    float missing = sigmoid(-a) * -expm1f(-nll);
    if (missing < 0.5f) return -log1pf(-missing);
    float larger = fmaxf(a, -nll), smaller = fminf(a, -nll);
    return softplus(a) - larger - log1pf(expf(smaller - larger));
}

template <class T>
static void copy_rows(ses_exec *x, ses_real *row_loss, ses_real *nll, const ses_real *a, const int32_t *input,
                      const int32_t *label, int64_t rows)
{
    const T *from = elems<T>(a);
    for_each(x, rows, [=] __device__(int64_t r) {
        float n = row_loss[r], v = to_float(from[r]);
        bool labeled = label[r] != SES_IGNORE_INDEX, copied = labeled && input[r] == label[r];
        nll[r] = n;
        row_loss[r] = copied ? copied_loss(v, n) : labeled ? n + softplus(v) : 0;
    });
}

template <class T>
static void copy_bwd(ses_exec *x, ses_dst da, ses_real *weight, const ses_real *dloss, const ses_real *loss,
                     const ses_real *a, const int32_t *input, const int32_t *label, int64_t rows)
{
    dst<T> to = dst_of<T>(da);
    const T *from = elems<T>(a);
    bool stores = da.data != NULL;
    for_each(x, rows, [=] __device__(int64_t r) {
        float n = weight[r], v = to_float(from[r]);
        bool labeled = label[r] != SES_IGNORE_INDEX, copied = labeled && input[r] == label[r];
        float d = copied ? sigmoid(-v) * sigmoid(v + n) * expm1f(-n) : sigmoid(v);
        weight[r] = copied ? sigmoid(-n - v) : (float)labeled;
        if (stores) store(to, r, labeled ? d * loss[1] * dloss[0] : 0);
    });
}

void ses_cuda_copy_loss(ses_kernels *k, bool is_bf16)
{
    k->copy_rows = is_bf16 ? copy_rows<bf16> : copy_rows<float>;
    k->copy_bwd = is_bf16 ? copy_bwd<bf16> : copy_bwd<float>;
}
