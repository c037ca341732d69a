/* Products with weights in 8 or 16 bits: every level against ref, sizes with all kinds of tails. int8 sums
 * are exact, so all levels multiply the same integers with the same scales. */
#define _DEFAULT_SOURCE
#include "gemm_i8_cases.h"

static void eight_bits(ses_exec *x, int64_t m, int64_t n, int64_t k)
{
    problem p = problem_new(m, n, k);
    size_t count = (size_t)(m * n);
    float *want = malloc(2 * count * sizeof *want), *want_pre = want + count;
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    run_i8(x, &ref, &p, false);
    memcpy(want, p.c, count * sizeof *want), memcpy(want_pre, p.pre, count * sizeof *want);
    double sum = 0; /* also checks that the result approximates the product */
    for (int64_t i = 0; i < k; i++) sum += (double)p.a[i] * p.b[i];
    CHECK_MSG(fabs(sum + (double)p.bias[0] - want_pre[0]) < 0.02 * sqrt((double)k), "%dx%dx%d", (int)m,
              (int)n, (int)k);
    for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++) {
        bool has_plain = strcmp(ses_isa_name((ses_isa)isa), "amx"); /* processors with tiles have VNNI */
        for (int no_dot = 0; no_dot < 1 + has_plain; no_dot++) {
            ses_kernels kern = ses_kernels_cpu((ses_isa)isa);
            run_i8(x, &kern, &p, no_dot);
            CHECK_MSG(distance(p.pre, want_pre, m * n) < 3e-7 &&
                          distance(p.c, want, m * n) < 1e-6 + 2e-4 / largest(want, m * n),
                      "%s %dx%dx%d step %d: %g", ses_isa_name((ses_isa)isa), (int)m, (int)n, (int)k, no_dot,
                      distance(p.pre, want_pre, m * n));
        }
    }
    free(want);
    problem_free(&p);
}

/* Multiples of powers of two whose largest is 127: quantizing them is exact, and all sources (floats or int8,
 * by columns or by rows) give the same packed matrix. */
static void same_packing(ses_exec *x, int64_t n, int64_t k)
{
    size_t count = (size_t)(n * k);
    int8_t *q = malloc(count), *turned = malloc(count);
    float *b = malloc(2 * count * sizeof *b), *b_turned = b + count,
          *scale = malloc((size_t)n * sizeof *scale);
    for (int64_t j = 0; j < n; j++) {
        scale[j] = ldexpf(1, (int)(j % 9) - 7);
        for (int64_t p = 0; p < k; p++) {
            int v = p == k / 2 ? 127 : (int)(127 * real(6, (uint64_t)(j * k + p)));
            q[j * k + p] = turned[p * n + j] = (int8_t)v;
            b[j * k + p] = b_turned[p * n + j] = (float)v * scale[j];
        }
    }
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_kernels kern = ses_kernels_cpu((ses_isa)isa);
        size_t bytes = (size_t)kern.gemm_i8_pack_size(n, k);
        char *want = malloc(bytes), *got = malloc(bytes);
        kern.gemm_i8_pack(x, want, b, 1, k, n, k);
        kern.gemm_i8_pack(x, got, b_turned, n, 1, n, k);
        CHECK_MSG(!memcmp(want, got, bytes), "%s %dx%d: reals by rows", ses_isa_name((ses_isa)isa), (int)n,
                  (int)k);
        kern.gemm_i8_pack_quantized(x, got, q, scale, 1, k, n, k);
        CHECK_MSG(!memcmp(want, got, bytes), "%s %dx%d: bytes by columns", ses_isa_name((ses_isa)isa), (int)n,
                  (int)k);
        kern.gemm_i8_pack_quantized(x, got, turned, scale, n, 1, n, k);
        CHECK_MSG(!memcmp(want, got, bytes), "%s %dx%d: bytes by rows", ses_isa_name((ses_isa)isa), (int)n,
                  (int)k);
        free(want), free(got);
    }
    free(q), free(turned), free(b), free(scale);
}

/* Against the f32 product with a B rounded in advance. */
static void sixteen_bits(ses_exec *x, int64_t m, int64_t n, int64_t k, ses_dtype dtype)
{
    problem p = problem_new(m, n, k);
    size_t count = (size_t)(m * n);
    float *want = malloc(count * sizeof *want);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_kernels kern = ses_kernels_cpu((ses_isa)isa);
        fence fp = { 0 };
        void *packed = fence_floats(&fp, (size_t)(kern.gemm_pack_size(n, k) + 1) / 2);
        kern.gemm_pack(x, packed, dtype, p.b, 1, k, n, k);
        ses_gemm g = product(&p, packed, dtype);
        kern.gemm(x, &g);
        fence_free(&fp);
        if (isa == SES_ISA_REF) memcpy(want, p.pre, count * sizeof *want);
        CHECK_MSG(distance(p.pre, want, m * n) < 2e-6, "%s %dx%dx%d", ses_isa_name((ses_isa)isa), (int)m,
                  (int)n, (int)k);
    }
    double exact = 0;
    for (int64_t i = 0; i < k; i++) exact += (double)p.a[i] * p.b[i];
    CHECK(fabs(exact + (double)p.bias[0] - want[0]) <
          (dtype == SES_F16 ? 5e-4 : 4e-3) * sqrt((double)k) + 1e-6);
    free(want);
    problem_free(&p);
}

/* The bits of a row do not depend on the number of rows. */
static void row_alone(ses_exec *x, ses_dtype dtype)
{
    enum { M = 21, N = 50, K = 131 };
    for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++) {
        ses_kernels kern = ses_kernels_cpu((ses_isa)isa);
        problem p = problem_new(M, N, K);
        fence fp = { 0 };
        void *packed = fence_floats(&fp, (size_t)kern.gemm_pack_size(N, K));
        kern.gemm_pack(x, packed, dtype, p.b, 1, K, N, K);
        ses_gemm g = product(&p, packed, dtype);
        kern.gemm(x, &g);
        float row[N], row_pre[N];
        for (int i = 0; i < M; i += 7) {
            ses_gemm one = product(&p, packed, dtype);
            one.m = 1, one.a = p.a + i * K, one.c = row, one.pre_act = row_pre;
            kern.gemm(x, &one);
            CHECK(!memcmp(row, p.c + i * N, sizeof row));
        }
        fence_free(&fp);
        problem_free(&p);
    }
}

static void odd_rows(ses_exec *x)
{
    static const float a[4][5] = {
        { 0 }, { 1, NAN, 2, 3, 4 }, { 1, 2, INFINITY, -1, 0 }, { 1e-40f, -1e-40f, 0, 0, 1e-38f }
    };
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_kernels k = ses_kernels_cpu((ses_isa)isa);
        uint8_t q[4][8];
        float scale[4];
        k.quantize_rows(x, (ses_i8_rows){ q[0], scale }, a[0], 4, 5);
        CHECK(scale[0] == 0 && q[0][0] == SES_I8_ZERO && q[0][7] == SES_I8_ZERO);
        for (int i = 0; i < 8; i++) CHECK(q[3][i] == SES_I8_ZERO); /* 127 / 1e-38 overflows a float */
        CHECK(!isfinite(scale[1]) && !isfinite(scale[2]));
    }
}

int main(void)
{
    static const int m[] = { 1, 2, 3, 4, 5, 7, 8, 9, 17, 50, 200 };
    static const int n[] = { 1, 7, 8, 9, 16, 17, 31, 33, 48, 49, 97 };
    static const int k[] = { 1, 2, 3, 4, 5, 8, 19, 67, 800 };
    ses_err e = { 0 };
    ses_exec x = { .pool = ses_thread_pool_new(2, &e) };
    if (!CHECK(x.pool)) return check_report();
    for (size_t i = 0; i < SES_LEN(m); i++)
        for (size_t j = 0; j < SES_LEN(n); j++) {
            int depth = k[(i * 5 + j) % SES_LEN(k)];
            eight_bits(&x, m[i], n[j], depth);
            sixteen_bits(&x, m[i], n[j], depth, (i + j) % 2 ? SES_F16 : SES_BF16);
        }
    for (size_t i = 0; i < SES_LEN(n); i++)
        for (size_t j = 0; j < SES_LEN(k); j++) same_packing(&x, n[i], k[j]);
    eight_bits(&x, 3, 50, SES_GEMM_I8_MAX_K);
    sixteen_bits(&x, 3, 50, 1601, SES_F16);
    sixteen_bits(&x, 40, 50, 1601, SES_BF16);
    row_alone(&x, SES_F16), row_alone(&x, SES_BF16), row_alone(&x, SES_REAL);
    odd_rows(&x);
    ses_thread_pool_free(x.pool);
    return check_report();
}
