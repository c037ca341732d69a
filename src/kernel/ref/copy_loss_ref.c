/* Reference loss with a copy mechanism; kernels.def has the formulas. */
#include "act_ref.h"
#include "kernel/chunking.h"

/* -log(D + (1 - D) p) with D = sigmoid(a) and p = exp(-nll), in a form without cancellation: if the sum is
 * near 1, from its difference to 1, else from the logarithms of its terms. */
static double copied_loss(double a, double nll)
{
    double missing = ses_sigmoid_ref(-a) * -expm1(-nll);
    if (missing < 0.5) return -log1p(-missing);
    double larger = fmax(a, -nll), smaller = fmin(a, -nll);
    return fmax(a, 0) + log1p(exp(-fabs(a))) - larger - log1p(exp(smaller - larger));
}

void ses_k_copy_rows_ref(ses_exec *x, ses_real *row_loss, ses_real *weight, const ses_real *a,
                         const int32_t *input, const int32_t *label, int64_t rows)
{
    (void)x;
    for (int64_t r = 0; r < rows; r++) {
        double nll = row_loss[r];
        bool labeled = label[r] != SES_IGNORE_INDEX, copied = labeled && input[r] == label[r];
        weight[r] = (ses_real)(copied ? ses_sigmoid_ref(-nll - a[r]) : labeled);
        if (copied)
            row_loss[r] = (ses_real)copied_loss(a[r], nll);
        else
            row_loss[r] = (ses_real)(labeled ? nll + fmax(a[r], 0) + log1p(exp(-fabs((double)a[r]))) : 0);
    }
}

void ses_k_copy_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                        const ses_real *weight, const ses_real *a, const int32_t *label, int64_t rows)
{
    (void)x;
    for (int64_t r = 0; da.data && r < rows; r++) {
        double d = ((double)weight[r] - ses_sigmoid_ref(-(double)a[r])) * loss[1] * dloss[0];
        ses_dst_put(da, r, label[r] == SES_IGNORE_INDEX ? 0 : d);
    }
}
