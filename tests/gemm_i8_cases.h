/* int8 products with every epilogue, for tests of one level: the fused epilogues against separate kernels. */
#ifndef TESTS_GEMM_I8_CASES_H
#define TESTS_GEMM_I8_CASES_H

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

/* The product with these packed weights, and with every epilogue. */
static void run_packed(ses_exec *x, const ses_kernels *k, const problem *p, const char *packed)
{
    fence fq = { 0 }, fs = { 0 };
    size_t rows = (size_t)(p->m * ses_quad_count(p->k) * 4);
    ses_i8_rows a = { (uint8_t *)fence_floats(&fq, rows / 4), fence_floats(&fs, (size_t)p->m) };
    k->quantize_rows(x, a, p->a, p->m, p->k);
    ses_gemm g = product(p, packed, SES_I8);
    k->gemm_i8(x, &g, 1, a, NULL);
    same_quantized(x, k, &g, a, false);
    if (g.n % 2 == 0) same_quantized(x, k, &g, a, true);
    same_plain(x, k, &g, a);
    same_normed(x, k, &g, a);
    same_groups(x, k, &g, a);
    fence_free(&fq), fence_free(&fs);
}

/* no_dot: without dot products of bytes, even if the processor has them. */
static void run_i8(ses_exec *x, const ses_kernels *k, const problem *p, bool no_dot)
{
    fence fp = { 0 };
    size_t bytes = (size_t)k->gemm_i8_pack_size(p->n, p->k);
    char *packed = (char *)fence_floats(&fp, (bytes + 3) / 4);
    k->gemm_i8_pack(x, packed, p->b, 1, p->k, p->n, p->k);
    if (no_dot && *(int32_t *)packed == 1) memset(packed, 0, sizeof(int32_t)); /* 2: another layout */
    run_packed(x, k, p, packed);
    fence_free(&fp);
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

#endif
