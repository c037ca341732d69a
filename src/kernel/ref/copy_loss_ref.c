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

void ses_k_copy_rows_ref(ses_exec *x, ses_real *row_loss, ses_real *nll, const ses_real *a,
                         const int32_t *input, const int32_t *label, int64_t rows)
{
    (void)x;
    for (int64_t r = 0; r < rows; r++) {
        double n = nll[r] = row_loss[r];
        if (label[r] == SES_IGNORE_INDEX)
            row_loss[r] = 0;
        else if (input[r] == label[r])
            row_loss[r] = (ses_real)copied_loss(a[r], n);
        else
            row_loss[r] = (ses_real)(n + fmax(a[r], 0) + log1p(exp(-fabs((double)a[r]))));
    }
}

/* sigmoid(-nll - a) - sigmoid(-a), without cancellation: a confident prediction has a small gradient. */
static double copied_slope(double a, double nll)
{
    return ses_sigmoid_ref(-a) * ses_sigmoid_ref(a + nll) * expm1(-nll);
}

void ses_k_copy_bwd_ref(ses_exec *x, ses_dst da, ses_real *weight, const ses_real *dloss,
                        const ses_real *loss, const ses_real *a, const int32_t *input, const int32_t *label,
                        int64_t rows)
{
    (void)x;
    for (int64_t r = 0; r < rows; r++) {
        double nll = weight[r], d = 0, w = 0;
        if (label[r] == SES_IGNORE_INDEX)
            d = w = 0;
        else if (input[r] == label[r])
            d = copied_slope(a[r], nll), w = ses_sigmoid_ref(-nll - a[r]);
        else
            d = ses_sigmoid_ref(a[r]), w = 1;
        weight[r] = (ses_real)w;
        if (da.data) ses_dst_put(da, r, d * loss[1] * dloss[0]);
    }
}
