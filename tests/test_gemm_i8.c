/* Products with weights in 8 or 16 bits: every level against ref, sizes with all kinds of tails. int8 sums
 * are exact, so all levels multiply the same integers with the same scales. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "fence.h"

#include "kernel/kernel.h"

#include <math.h>

typedef struct problem {
    int64_t m, n, k;
    fence fa, fb, fc, fpre, fbias;
    float *a, *b, *c, *pre, *bias;
} problem;

static float real(uint64_t seed, uint64_t i) { return 2 * ses_rand_unit((ses_rng_key){ seed, 0, 0 }, i) - 1; }

static float *fill(fence *f, int64_t n, uint64_t seed)
{
    float *x = fence_floats(f, (size_t)n);
    for (int64_t i = 0; i < n; i++) x[i] = real(seed, (uint64_t)i);
    return x;
}

static problem problem_new(int64_t m, int64_t n, int64_t k)
{
    problem p = { .m = m, .n = n, .k = k };
    p.a = fill(&p.fa, m * k, 1), p.b = fill(&p.fb, n * k, 2), p.bias = fill(&p.fbias, n, 3);
    p.c = fill(&p.fc, m * n, 4), p.pre = fill(&p.fpre, m * n, 5);
    return p;
}

static void problem_free(problem *p)
{
    fence_free(&p->fa), fence_free(&p->fb), fence_free(&p->fc), fence_free(&p->fpre), fence_free(&p->fbias);
}

static ses_gemm product(const problem *p, const void *packed, ses_dtype dtype)
{
    ses_gemm g = ses_gemm_nt(p->c, p->a, p->b, p->m, p->n, p->k);
    g.packed = packed, g.packed_dtype = dtype, g.bias = p->bias, g.act = SES_ACT_GELU, g.pre_act = p->pre;
    return g;
}

/* C, or its halves as a gated unit, quantized in the epilogue equals C quantized afterwards. */
static void same_quantized(ses_exec *x, const ses_kernels *k, const ses_gemm *g, ses_i8_rows a, bool gated)
{
    fence f[2] = { 0 };
    int64_t n = gated ? g->n / 2 : g->n, width = g->m * ses_quad_count(n);
    ses_i8_rows want = { malloc((size_t)width * 4), malloc((size_t)g->m * sizeof(float)) };
    ses_i8_rows to = { (uint8_t *)fence_floats(&f[0], (size_t)width), fence_floats(&f[1], (size_t)g->m) };
    float *half = malloc((size_t)(g->m * n) * sizeof *half);
    if (gated) k->glu(x, half, g->c, g->m, n, SES_ACT_SILU);
    k->quantize_rows(x, want, gated ? half : g->c, g->m, n);
    ses_gemm unwritten = *g;
    unwritten.c = unwritten.pre_act = NULL;
    k->gemm_i8(x, &unwritten, 1, a,
               &(ses_gemm_epilogue){ .gated = gated, .gate = SES_ACT_SILU, .i8_out = to });
    CHECK_MSG(!memcmp(to.q, want.q, (size_t)width * 4) &&
                  !memcmp(to.scale, want.scale, (size_t)g->m * sizeof(float)),
              "%dx%dx%d", (int)g->m, (int)g->n, (int)g->k);
    free(want.q), free(want.scale), free(half);
    for (int i = 0; i < 2; i++) fence_free(&f[i]);
}

/* Layer norm in the epilogue, with A quantized on the fly, equals the separate kernels, and so do the
 * quantized rows. */
static void same_normed(ses_exec *x, const ses_kernels *k, const ses_gemm *g, ses_i8_rows a)
{
    fence f[5] = { 0 };
    size_t count = (size_t)(g->m * g->n), width = (size_t)(g->m * ses_quad_count(g->n));
    const float *gain = fill(&f[0], g->n, 7), *bias = fill(&f[1], g->n, 8),
                *res = fill(&f[2], g->m * g->n, 9);
    float *want = malloc(count * sizeof *want), *got = fence_floats(&f[3], count);
    uint8_t *bytes = malloc(4 * width), *to = (uint8_t *)fence_floats(&f[4], width);
    float *scale = malloc(2 * (size_t)g->m * sizeof *scale);
    ses_gemm plain = *g;
    plain.act = SES_ACT_NONE, plain.pre_act = NULL, plain.c = want;
    k->gemm_i8(x, &plain, 1, a, NULL);
    k->norm(x, want, NULL, NULL, want, res, gain, bias, g->m, g->n, 1e-12, NULL);
    k->quantize_rows(x, (ses_i8_rows){ bytes, scale }, want, g->m, g->n);
    plain.c = got;
    ses_gemm_epilogue end = {
        .gain = gain, .bias = bias, .residual = res, .eps = 1e-12, .i8_out = { to, scale + g->m }
    };
    k->gemm_i8(x, &plain, 1, (ses_i8_rows){ 0 }, &end);
    CHECK_MSG(!memcmp(got, want, count * sizeof *got) && !memcmp(to, bytes, 4 * width) &&
                  !memcmp(scale, scale + g->m, (size_t)g->m * sizeof *scale),
              "%dx%dx%d", (int)g->m, (int)g->n, (int)g->k);
    free(want), free(bytes), free(scale);
    for (int i = 0; i < 5; i++) fence_free(&f[i]);
}

/* Two products in one call, with column groups quantized separately for attention, equal one product side by
 * side. */
static void same_groups(ses_exec *x, const ses_kernels *k, const ses_gemm *g, ses_i8_rows a)
{
    int64_t part = g->n % 3 == 0 ? g->n / 3 : g->n % 2 == 0 ? g->n / 2 : g->n, parts = g->n / part;
    fence f[5] = { 0 };
    size_t width = (size_t)(4 * ses_quad_count(part)), rows = (size_t)(g->m * parts);
    uint8_t *want = malloc(rows * width);
    float *scale = malloc(rows * sizeof *scale), *side = fence_floats(&f[4], (size_t)(2 * g->m * g->n));
    ses_gemm two[2] = { *g, *g };
    ses_gemm_epilogue end[2];
    for (int i = 0; i < 2; i++) {
        end[i] = (ses_gemm_epilogue){ .group_cols = part };
        end[i].i8_out.q = (uint8_t *)fence_floats(&f[2 * i], rows * width / 4);
        end[i].i8_out.scale = fence_floats(&f[2 * i + 1], rows);
        two[i].c = two[i].pre_act = NULL;
    }
    two[1].bias = NULL;
    k->gemm_i8(x, two, 2, a, end);
    for (int i = 0; i < 2; i++) two[i].c = side + i * g->n, two[i].ldc = 2 * g->n;
    k->gemm_i8(x, two, 2, a, NULL);
    for (int64_t i = 0; i < 2 * g->m; i++)
        for (int64_t p = 0; p < parts; p++) {
            const float *c = side + i / 2 * 2 * g->n + i % 2 * g->n + p * part;
            ses_i8_rows to = end[i % 2].i8_out;
            k->quantize_rows(x, (ses_i8_rows){ want, scale }, c, 1, part);
            int64_t off = p * g->m + i / 2;
            CHECK(!memcmp(want, to.q + off * (int64_t)width, width) &&
                  to.scale[p * g->m + i / 2] / 127 == scale[0]);
        }
    free(want), free(scale);
    for (int i = 0; i < 5; i++) fence_free(&f[i]);
}

/* C without an activation equals pre_act. */
static void same_plain(ses_exec *x, const ses_kernels *k, const ses_gemm *g, ses_i8_rows a)
{
    fence f = { 0 };
    ses_gemm plain = *g;
    plain.act = SES_ACT_NONE, plain.pre_act = NULL, plain.c = fence_floats(&f, (size_t)(g->m * g->n));
    k->gemm_i8(x, &plain, 1, a, NULL);
    CHECK_MSG(!memcmp(plain.c, g->pre_act, (size_t)(g->m * g->n) * sizeof(float)), "%dx%dx%d", (int)g->m,
              (int)g->n, (int)g->k);
    fence_free(&f);
}

/* no_vnni: without VNNI, even if the processor has it. */
static void run_i8(ses_exec *x, const ses_kernels *k, const problem *p, bool no_vnni)
{
    fence fp = { 0 }, fq = { 0 }, fs = { 0 };
    size_t bytes = (size_t)k->gemm_i8_pack_size(p->n, p->k), rows = (size_t)(p->m * ses_quad_count(p->k) * 4);
    char *packed = (char *)fence_floats(&fp, (bytes + 3) / 4);
    uint8_t *q = (uint8_t *)fence_floats(&fq, rows / 4);
    float *scale = fence_floats(&fs, (size_t)p->m);
    k->gemm_i8_pack(x, packed, p->b, 1, p->k, p->n, p->k);
    if (no_vnni) memset(packed, 0, sizeof(int32_t));
    ses_i8_rows a = { q, scale };
    k->quantize_rows(x, a, p->a, p->m, p->k);
    ses_gemm g = product(p, packed, SES_I8);
    k->gemm_i8(x, &g, 1, a, NULL);
    same_quantized(x, k, &g, a, false);
    if (g.n % 2 == 0) same_quantized(x, k, &g, a, true);
    same_plain(x, k, &g, a);
    same_normed(x, k, &g, a);
    same_groups(x, k, &g, a);
    fence_free(&fp), fence_free(&fq), fence_free(&fs);
}

static double largest(const float *a, int64_t n)
{
    double most = 1e-30;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i]));
    return most;
}

static double distance(const float *a, const float *b, int64_t n)
{
    double off = 0;
    for (int64_t i = 0; i < n; i++) off = fmax(off, fabs((double)a[i] - b[i]));
    return off / largest(b, n);
}

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
    for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++)
        for (int no_vnni = 0; no_vnni < 2; no_vnni++) {
            ses_kernels kern = ses_kernels_cpu((ses_isa)isa);
            run_i8(x, &kern, &p, no_vnni);
            CHECK_MSG(distance(p.pre, want_pre, m * n) < 3e-7 &&
                          distance(p.c, want, m * n) < 1e-6 + 2e-4 / largest(want, m * n),
                      "%s %dx%dx%d step %d: %g", ses_isa_name((ses_isa)isa), (int)m, (int)n, (int)k, no_vnni,
                      distance(p.pre, want_pre, m * n));
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
        CHECK(scale[0] == 0 && q[0][0] == 128 && q[0][7] == 128);
        for (int i = 0; i < 8; i++) CHECK(q[3][i] == 128); /* 127 / 1e-38 overflows a float */
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
