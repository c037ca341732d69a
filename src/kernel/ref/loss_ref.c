/* Reference losses: cross entropy, label smoothing, span cross entropy, BCE and MSE. */
#include "act_ref.h"
#include "kernel/chunking.h"

/* log(sum_i exp(a[i * step])) for i < n */
static double log_sum_exp(const ses_real *a, int64_t n, int64_t step)
{
    double max = a[0], sum = 0;
    for (int64_t i = 1; i < n; i++) max = fmax(max, a[i * step]);
    for (int64_t i = 0; i < n; i++) sum += exp(a[i * step] - max);
    return max + log(sum);
}

typedef struct xent {
    ses_real *row_loss, *lse;
    const ses_real *a;
    const int32_t *label;
    int64_t rows, cols, ld;
    ses_dst da;
    double scale;
    const ses_real *lse_in;
} xent;

static void xent_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const xent *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const ses_real *a = c->a + row * c->ld;
        bool labeled = c->label[row] != SES_IGNORE_INDEX;
        double lse = labeled ? log_sum_exp(a, c->cols, 1) : 0;
        c->lse[row] = (ses_real)lse;
        c->row_loss[row] = (ses_real)(labeled ? lse - a[c->label[row]] : 0);
    }
}

void ses_k_xent_rows_ref(ses_exec *x, ses_real *row_loss, ses_real *lse, const ses_real *a,
                         const int32_t *label, int64_t rows, int64_t cols, int64_t ld)
{
    xent c = {
        .row_loss = row_loss, .lse = lse, .a = a, .label = label, .rows = rows, .cols = cols, .ld = ld
    };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), xent_chunk, &c);
}

void ses_k_xent_mean_ref(ses_exec *x, ses_real *loss, const ses_real *row_loss, const int32_t *label,
                         int64_t rows)
{
    (void)x;
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++)
        if (label[i] != SES_IGNORE_INDEX) sum += row_loss[i], count++;
    loss[0] = (ses_real)(count ? sum / count : 0);
    loss[1] = (ses_real)(count ? 1.0 / count : 0);
}

static void xent_bwd_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const xent *c = ctx;
    ses_range r = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t row = r.begin; row < r.end; row++) {
        const ses_real *a = c->a + row * c->ld;
        for (int64_t j = 0; j < c->cols; j++) {
            double d = 0;
            if (c->label[row] != SES_IGNORE_INDEX)
                d = c->scale * (exp(a[j] - (double)c->lse_in[row]) - (j == c->label[row]));
            ses_dst_put(c->da, row * c->ld + j, d);
        }
        for (int64_t j = c->cols; j < c->ld && !c->da.accumulate; j++) c->da.data[row * c->ld + j] = 0;
    }
}

void ses_k_xent_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                        const ses_real *lse, const ses_real *a, const int32_t *label, int64_t rows,
                        int64_t cols, int64_t ld)
{
    if (!da.data) return;
    xent c = { .da = da,
               .scale = (double)loss[1] * dloss[0],
               .lse_in = lse,
               .a = a,
               .label = label,
               .rows = rows,
               .cols = cols,
               .ld = ld };
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), xent_bwd_chunk, &c);
}

/* True if the label of column c of sequence s is a position inside the sequence. */
static bool has_label(const int32_t *cu_seqlens, const int32_t *label, int64_t s, int64_t c, int64_t cols)
{
    int32_t l = label[s * cols + c];
    return l >= 0 && l < cu_seqlens[s + 1] - cu_seqlens[s];
}

void ses_k_xent_span_ref(ses_exec *x, ses_real *loss, ses_real *lse, const ses_real *a,
                         const int32_t *cu_seqlens, const int32_t *label, int64_t seqs, int64_t cols)
{
    (void)x;
    double total = 0;
    for (int64_t c = 0; c < cols; c++) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t s = 0; s < seqs; s++) {
            bool labeled = has_label(cu_seqlens, label, s, c, cols);
            const ses_real *first = a + cu_seqlens[s] * cols + c;
            double l = labeled ? log_sum_exp(first, cu_seqlens[s + 1] - cu_seqlens[s], cols) : 0;
            lse[s * cols + c] = (ses_real)l;
            if (labeled) sum += l - first[label[s * cols + c] * cols], count++;
        }
        if (count) total += sum / count;
        loss[1 + c] = (ses_real)(count ? 1.0 / count / cols : 0);
    }
    loss[0] = (ses_real)(total / cols);
}

void ses_k_xent_span_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                             const ses_real *lse, const ses_real *a, const int32_t *cu_seqlens,
                             const int32_t *label, int64_t seqs, int64_t cols)
{
    (void)x;
    if (!da.data) return;
    for (int64_t s = 0; s < seqs; s++)
        for (int32_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; t++)
            for (int64_t c = 0; c < cols; c++) {
                double d = 0;
                if (has_label(cu_seqlens, label, s, c, cols)) {
                    double p = exp(a[t * cols + c] - (double)lse[s * cols + c]);
                    d = (double)loss[1 + c] * dloss[0] * (p - (t - cu_seqlens[s] == label[s * cols + c]));
                }
                ses_dst_put(da, t * cols + c, d);
            }
}

void ses_k_bce_ref(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n)
{
    (void)x;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = a[i];
        sum += fmax(v, 0) - v * target[i] + log1p(exp(-fabs(v)));
    }
    loss[0] = (ses_real)(sum / n);
}

void ses_k_bce_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *a,
                       const ses_real *target, int64_t n)
{
    (void)x;
    if (!da.data) return;
    for (int64_t i = 0; i < n; i++) ses_dst_put(da, i, (ses_sigmoid_ref(a[i]) - target[i]) * dloss[0] / n);
}

void ses_k_mse_ref(ses_exec *x, ses_real *loss, const ses_real *a, const ses_real *target, int64_t n)
{
    (void)x;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = target ? (double)a[i] - target[i] : a[i];
        sum += d * d;
    }
    loss[0] = (ses_real)(sum / n);
}

void ses_k_mse_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *a,
                       const ses_real *target, int64_t n)
{
    (void)x;
    if (!da.data) return;
    for (int64_t i = 0; i < n; i++)
        ses_dst_put(da, i, 2 * (target ? (double)a[i] - target[i] : a[i]) * dloss[0] / n);
}

void ses_k_label_smoothing_ref(ses_exec *x, ses_real *loss, const ses_real *a, const int32_t *label,
                               int64_t rows, int64_t cols)
{
    (void)x;
    double sum = 0;
    int64_t count = 0;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0;
        if (label[r] == SES_IGNORE_INDEX) continue;
        for (int64_t j = 0; j < cols; j++) mean += a[r * cols + j] / (double)cols;
        sum += a[r * cols + label[r]] - mean;
        count++;
    }
    loss[0] = (ses_real)(count ? sum / (double)count : 0);
    loss[1] = (ses_real)(count ? 1.0 / (double)count : 0);
}

void ses_k_label_smoothing_bwd_ref(ses_exec *x, ses_dst da, const ses_real *dloss, const ses_real *loss,
                                   const int32_t *label, int64_t rows, int64_t cols)
{
    (void)x;
    double scale = (double)loss[1] * dloss[0];
    for (int64_t r = 0; da.data && r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            ses_dst_put(da, r * cols + j,
                        label[r] == SES_IGNORE_INDEX ? 0 : scale * ((j == label[r]) - 1.0 / (double)cols));
}
