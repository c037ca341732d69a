/* Rounding errors of narrow products, norms and attention at every level, against sums in double. */
#include "base/alloc.h"
#include "check.h"
#include "kernel/kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS = 19, MAX_COLS = 96 };

static uint64_t state = 1; /* state of the random numbers */
static float number(void)  /* about normal, standard deviation 1 */
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(state >> 40) / (1 << 24);
    }
    return (float)(sum - 6);
}

static void fill(float *x, int64_t n, double scale)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)(scale * (double)number());
}

/* Error in ulp of the exact result. */
static double ulps(float y, double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)y - exact) / ldexp(FLT_EPSILON, exponent - 1);
}

typedef struct product {
    int64_t m, n, k;
    bool transposed, packed, bias, accumulate;
} product;

static void check_product(const ses_kernels *k, ses_exec *x, const product *p, const char *level)
{
    static float a[MAX_COLS * MAX_COLS], b[MAX_COLS * MAX_COLS], c[MAX_COLS * MAX_COLS],
        first[MAX_COLS * MAX_COLS], bias[MAX_COLS];
    double worst = 0;
    fill(a, p->m * p->k, 1), fill(b, p->k * p->n, 0.3), fill(first, p->m * p->n, 1), fill(bias, p->n, 0.1);
    memcpy(c, first, sizeof c);
    ses_gemm g =
        p->transposed ? ses_gemm_tn(c, a, b, p->m, p->n, p->k) : ses_gemm_nt(c, a, b, p->m, p->n, p->k);
    g.accumulate = p->accumulate;
    g.bias = p->bias ? bias : NULL;
    float *packed = p->packed ? malloc((size_t)k->gemm_pack_size(p->n, p->k) * sizeof *packed) : NULL;
    if (packed) {
        k->gemm_pack(x, packed, SES_F32, b, g.b_row, g.b_col, p->n, p->k);
        g.packed = packed;
    }
    k->gemm(x, &g);
    free(packed);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = (p->bias ? (double)bias[j] : 0) + (p->accumulate ? (double)first[i * p->n + j] : 0);
            for (int64_t q = 0; q < p->k; q++)
                sum += (double)a[i * g.a_row + q * g.a_col] * (double)b[q * g.b_row + j * g.b_col];
            worst = fmax(worst, ulps(c[i * p->n + j], sum));
        }
    CHECK_MSG(worst < 0.51, "%s: product %lld x %lld x %lld: %.2f ulp", level, (long long)p->m,
              (long long)p->n, (long long)p->k, worst);
}

static void test_products(const ses_kernels *k, ses_exec *x, const char *level)
{
    static const product list[] = {
        { .m = 17, .n = 24, .k = 24, .bias = true },
        { .m = 1, .n = 71, .k = 44, .packed = true, .bias = true },
        { .m = 19, .n = 88, .k = 96, .packed = true },
        { .m = 44, .n = 24, .k = 31, .transposed = true, .accumulate = true },
        { .m = 8, .n = 1, .k = 7, .accumulate = true },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) check_product(k, x, list + i, level);
}

/* The norms of rows: the result is rounded once. */
static void test_norms(const ses_kernels *k, ses_exec *x, const char *level)
{
    static float a[ROWS * MAX_COLS], y[ROWS * MAX_COLS], gain[MAX_COLS], bias[MAX_COLS];
    static const int64_t width[] = { 1, 24, 71, MAX_COLS };
    fill(gain, MAX_COLS, 1), fill(bias, MAX_COLS, 0.1);
    for (size_t w = 0; w < SES_LEN(width); w++) {
        int64_t cols = width[w];
        double rms_worst = 0, norm_worst = 0, eps = 1e-6;
        fill(a, ROWS * cols, 2);
        k->rms(x, y, NULL, a, gain, ROWS, cols, eps, 0);
        for (int64_t i = 0; i < ROWS * cols; i++) {
            double squares = 0;
            for (int64_t j = i / cols * cols; j < (i / cols + 1) * cols; j++)
                squares += (double)a[j] * (double)a[j];
            double exact = (double)a[i] * (double)gain[i % cols] / sqrt(squares / (double)cols + eps);
            rms_worst = fmax(rms_worst, ulps(y[i], exact));
        }
        CHECK_MSG(rms_worst < 1, "%s: rms of %lld columns: %.2f ulp", level, (long long)cols, rms_worst);
        k->norm(x, y, NULL, NULL, a, NULL, gain, bias, ROWS, cols, eps, NULL);
        for (int64_t i = 0; i < ROWS * cols; i++) {
            double mean = 0, var = 0;
            const float *row = a + i / cols * cols;
            for (int64_t j = 0; j < cols; j++) mean += (double)row[j] / (double)cols;
            for (int64_t j = 0; j < cols; j++)
                var += ((double)row[j] - mean) * ((double)row[j] - mean) / (double)cols;
            double exact =
                ((double)a[i] - mean) / sqrt(var + eps) * (double)gain[i % cols] + (double)bias[i % cols];
            norm_worst = fmax(norm_worst, ulps(y[i], exact));
        }
        CHECK_MSG(norm_worst < 0.51, "%s: norm of %lld columns: %.2f ulp", level, (long long)cols,
                  norm_worst);
    }
}

/* Attention of narrow heads with scores of about 30: the rounding error of a score changes probabilities. */
static void test_attention(const ses_kernels *k, ses_exec *x, const char *level)
{
    enum { LEN = 40, DIM = 8 };
    static float q[LEN * DIM], key[LEN * DIM], v[LEN * DIM], y[LEN * DIM];
    static const int32_t cu[] = { 0, LEN };
    double squared = 0, norm = 0;
    state = 1;
    fill(q, LEN * DIM, 4), fill(key, LEN * DIM, 4), fill(v, LEN * DIM, 1);
    ses_attn a = { .seqs = 1, .heads = 1, .dim = DIM, .max_seqlen_q = LEN, .max_seqlen_k = LEN };
    a.cu_seqlens_q = a.cu_seqlens_k = cu;
    a.q = q, a.k = key, a.v = v, a.out = y, a.scale = 0.7f;
    a.q_row = a.k_row = a.v_row = a.out_row = DIM;
    k->attention(x, &a);
    for (int64_t i = 0; i < LEN; i++) {
        double score[LEN], max = -INFINITY, sum = 0, out[DIM] = { 0 };
        for (int64_t j = 0; j < LEN; j++) {
            score[j] = 0;
            for (int64_t d = 0; d < DIM; d++)
                score[j] += (double)a.scale * (double)q[i * DIM + d] * (double)key[j * DIM + d];
            max = fmax(max, score[j]);
        }
        for (int64_t j = 0; j < LEN; j++) {
            double p = exp(score[j] - max);
            sum += p;
            for (int64_t d = 0; d < DIM; d++) out[d] += p * (double)v[j * DIM + d];
        }
        for (int64_t d = 0; d < DIM; d++) {
            squared += pow((double)y[i * DIM + d] - out[d] / sum, 2);
            norm += pow(out[d] / sum, 2);
        }
    }
    double error = sqrt(squared / norm) / FLT_EPSILON;
    CHECK_MSG(error < 3, "%s: attention: error of %.2f epsilons", level, error);
}

int main(void)
{
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_err e = { 0 };
        ses_kernels k = ses_kernels_cpu((ses_isa)isa);
        ses_exec x = { .pool = ses_thread_pool_new(2, &e) };
        const char *level = ses_isa_name((ses_isa)isa);
        CHECK(x.pool);
        test_products(&k, &x, level);
        test_norms(&k, &x, level);
        test_attention(&k, &x, level);
        ses_thread_pool_free(x.pool);
    }
    return check_report();
}
