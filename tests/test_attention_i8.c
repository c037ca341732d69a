/* int8 attention: every level, with and without VNNI, against ref and close to the exact result, on all kinds
 * of tails. A sequence's bits do not depend on the batch or the threads. Unsupported calls equal f32
 * attention to the bit. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "fence.h"

#include "kernel/kernel.h"

#include <math.h>

enum { MAX_SEQS = 4, GAP = 3 }; /* GAP: columns between heads that must not be accessed */

typedef struct problem {
    ses_attn a;
    int32_t cu_seqlens_q[MAX_SEQS + 1], cu_seqlens_k[MAX_SEQS + 1];
    fence fence[4];
    float *q, *k, *v, *out;
    size_t outs;
} problem;

/* Kernels of each level; after the last level of this machine the kernels with tiles, in plain C. */
typedef struct level {
    const char *name;
    ses_kernels k;
    bool tiles; /* the bits of AVX-512 are expected */
} level;

/* The level of AVX-512; SES_ISA_COUNT: this architecture has none. */
static int avx512_level(void)
{
    int i = SES_ISA_REF;
    while (i < SES_ISA_COUNT && strcmp(ses_isa_name((ses_isa)i), "avx512") != 0) i++;
    return i;
}

static int level_count(void) { return (int)ses_isa_best() + 2; }

static level level_at(int i)
{
    if (i < level_count() - 1)
        return (level){ ses_isa_name((ses_isa)i), ses_kernels_cpu((ses_isa)i), i > avx512_level() };
    level plain = { "plain tiles", ses_kernels_cpu(SES_ISA_REF), true };
    plain.k.attention_i8 = ses_k_attention_i8_plain;
    return plain;
}

static float *rows(fence *f, int64_t n, const ses_attn *a, int64_t row, uint64_t seed, double size)
{
    size_t count = (size_t)(n * row - GAP);
    float *x = fence_floats(f, count);
    for (size_t i = 0; i < count; i++) {
        bool gap = (int64_t)i % row % (a->dim + GAP) >= a->dim;
        x[i] = gap ? NAN : (float)(size * ses_rand_normal((ses_rng_key){ seed, 0, 0 }, i));
    }
    return x;
}

static void problem_new(problem *p, int64_t heads, int64_t dim, int seqs, const int *len_q, const int *len_k)
{
    *p = (problem){ .a = { .heads = heads, .dim = dim, .seqs = seqs } };
    ses_attn *a = &p->a;
    for (int i = 0; i < seqs; i++) {
        p->cu_seqlens_q[i + 1] = p->cu_seqlens_q[i] + len_q[i],
                            p->cu_seqlens_k[i + 1] = p->cu_seqlens_k[i] + len_k[i];
        a->max_seqlen_q = len_q[i] > a->max_seqlen_q ? len_q[i] : a->max_seqlen_q;
        a->max_seqlen_k = len_k[i] > a->max_seqlen_k ? len_k[i] : a->max_seqlen_k;
    }
    int64_t row = heads * (dim + GAP), nq = p->cu_seqlens_q[seqs], nk = p->cu_seqlens_k[seqs];
    p->q = rows(&p->fence[0], nq, a, row, 1, 1), p->k = rows(&p->fence[1], nk, a, row, 2, 1);
    p->v = rows(&p->fence[2], nk, a, row, 3, 2);
    p->outs = (size_t)(nq * heads * dim);
    p->out = fence_floats(&p->fence[3], p->outs);
    a->q = p->q, a->k = p->k, a->v = p->v, a->out = p->out;
    a->q_row = a->k_row = a->v_row = row, a->q_head = a->k_head = a->v_head = dim + GAP;
    a->out_row = heads * dim, a->cu_seqlens_q = p->cu_seqlens_q, a->cu_seqlens_k = p->cu_seqlens_k;
    a->scale = (float)(1 / sqrt((double)dim));
}

static void problem_free(problem *p)
{
    for (int i = 0; i < 4; i++) fence_free(&p->fence[i]);
}

static double distance(const float *a, const float *b, size_t n)
{
    double most = 1e-30, off = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)b[i]));
        off = isfinite(a[i]) ? fmax(off, fabs((double)a[i] - b[i])) : 1e9;
    }
    return off / most;
}

/* Rows of n tokens in the layout that gemm_i8 writes. */
static ses_i8_rows quantized_rows(fence f[2], const ses_attn *a, const float *x, int64_t n)
{
    int64_t width = 4 * ses_quad_count(a->dim), row = a->heads * (a->dim + GAP);
    ses_i8_rows to = { (uint8_t *)fence_floats(&f[0], (size_t)(n * a->heads * width / 4)),
                       fence_floats(&f[1], (size_t)(n * a->heads)) };
    for (int64_t t = 0; t < n; t++)
        for (int64_t h = 0; h < a->heads; h++) {
            const float *from = x + t * row + h * (a->dim + GAP);
            uint8_t *q = to.q + (h * n + t) * width;
            float most = 0;
            for (int64_t d = 0; d < a->dim; d++) most = fmaxf(most, fabsf(from[d]));
            for (int64_t d = 0; d < width; d++)
                q[d] = (uint8_t)(SES_I8_ZERO + (d < a->dim ? (int)rintf(from[d] * (127 / most)) : 0));
            to.scale[h * n + t] = most;
        }
    return to;
}

/* Inputs given quantized have the bits of inputs quantized by the kernel, which are at p->out. */
static void check_quantized(ses_exec *x, const ses_kernels *k, const problem *p, bool no_dot)
{
    fence f[8] = { 0 };
    ses_attn a = p->a;
    int64_t nq = p->cu_seqlens_q[a.seqs], nk = p->cu_seqlens_k[a.seqs];
    a.q_i8 = quantized_rows(f, &a, p->q, nq), a.k_i8 = quantized_rows(f + 2, &a, p->k, nk),
    a.v_i8 = quantized_rows(f + 4, &a, p->v, nk);
    a.q = a.k = a.v = NULL, a.out = fence_floats(&f[6], p->outs);
    k->attention_i8(x, &a, no_dot);
    CHECK_MSG(!memcmp(a.out, p->out, p->outs * sizeof *p->out), "dim %d, %d queries, %d keys", (int)a.dim,
              (int)nq, (int)nk);
    for (int i = 0; i < 8; i++) fence_free(&f[i]);
}

static void check(ses_exec *x, int64_t dim, int seqs, const int *len_q, const int *len_k)
{
    problem p;
    problem_new(&p, 2, dim, seqs, len_q, len_k);
    float *want = malloc(2 * p.outs * sizeof *want), *exact = want + p.outs;
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    ref.attention(x, &p.a);
    memcpy(exact, p.out, p.outs * sizeof *want);
    ref.attention_i8(x, &p.a, false);
    check_quantized(x, &ref, &p, false);
    memcpy(want, p.out, p.outs * sizeof *want);
    double off = distance(want, exact, p.outs);
    CHECK_MSG(off < 0.03, "dim %d, %d keys: ref is off by %g", (int)dim, len_k[0], off);
    float *bits = malloc(p.outs * sizeof *bits);
    for (int i = SES_ISA_REF + 1; i < level_count(); i++)
        for (int no_dot = 0; no_dot < 2; no_dot++) {
            level l = level_at(i);
            for (size_t j = 0; j < p.outs; j++) p.out[j] = NAN;
            l.k.attention_i8(x, &p.a, no_dot);
            check_quantized(x, &l.k, &p, no_dot);
            off = distance(p.out, want, p.outs);
            CHECK_MSG(off < 2e-4, "%s, plain %d, dim %d, %d queries, %d keys: off by %g", l.name, no_dot,
                      (int)dim, len_q[0], len_k[0], off);
            if (i == avx512_level() && i < level_count() - 1) memcpy(bits, p.out, p.outs * sizeof *bits);
            if (l.tiles && !no_dot && (int)ses_isa_best() >= avx512_level())
                CHECK_MSG(!memcmp(p.out, bits, p.outs * sizeof *bits),
                          "bits of %s, dim %d, %d queries, %d keys", l.name, (int)dim, len_q[0], len_k[0]);
        }
    free(want), free(bits);
    problem_free(&p);
}

static void test_sizes(ses_exec *x)
{
    static const int dims[] = { 1, 3, 4, 8, 15, 16, 17, 24, 32, 48, 49, 64, 65, 100, 128, 256 };
    static const int lens[] = { 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 47, 48, 49, 97, 130, 257 };
    for (size_t i = 0; i < SES_LEN(dims); i++) {
        int a = lens[i], b = lens[(i * 7 + 3) % SES_LEN(lens)];
        check(x, dims[i], 2, (const int[]){ a, b }, (const int[]){ a, b });
        check(x, dims[i], 2, (const int[]){ b, a }, (const int[]){ a, b });
    }
    for (size_t i = 0; i < SES_LEN(lens); i++) check(x, 8, 1, (const int[]){ 9 }, &lens[i]);
    check(x, 16, 2, (const int[]){ 300, 9 }, (const int[]){ 300, SES_ATTN_I8_MAX_KEYS });
    check(x, 16, 3, (const int[]){ 3, 0, 4 }, (const int[]){ 5, 0, 6 });
}

/* Values and keys of very different magnitudes, zeros, one key that dominates. */
static void test_scales(ses_exec *x)
{
    enum { N = 70, DIM = 16 };
    for (int form = 0; form < 3; form++) {
        problem p;
        problem_new(&p, 1, DIM, 1, (const int[]){ N }, (const int[]){ N });
        for (int i = 0; i < N * (DIM + GAP) - GAP; i++) {
            if (form == 0) p.v[i] = 0, p.q[i] = i < 40 ? 0 : p.q[i];
            if (form == 1) p.v[i] *= ldexpf(1, i / (DIM + GAP) % 9 - 4);
            if (form == 2) p.k[i] *= i / (DIM + GAP) == 5 ? 30 : 1;
        }
        float want[N * DIM];
        ses_kernels_cpu(SES_ISA_REF).attention_i8(x, &p.a, false);
        memcpy(want, p.out, sizeof want);
        for (int isa = SES_ISA_REF + 1; isa < level_count(); isa++) {
            level_at(isa).k.attention_i8(x, &p.a, false);
            CHECK_MSG(distance(p.out, want, N * DIM) < 2e-4, "%s form %d: %g", level_at(isa).name, form,
                      distance(p.out, want, N * DIM));
        }
        problem_free(&p);
    }
}

static void test_odd(ses_exec *x)
{
    for (int part = 0; part < 3; part++)
        for (int isa = SES_ISA_REF; isa < level_count(); isa++) {
            problem p;
            problem_new(&p, 1, 8, 2, (const int[]){ 20, 20 }, (const int[]){ 20, 20 });
            float *in[] = { p.q, p.k, p.v };
            in[part][5 * (8 + GAP) + 2] = part == 1 ? INFINITY : NAN;
            level_at(isa).k.attention_i8(x, &p.a, false);
            for (int i = 0; i < 40; i++)
                CHECK_MSG(isfinite(p.out[i * 8]) == (part ? i >= 20 : i != 5), "%s part %d query %d: %g",
                          level_at(isa).name, part, i, (double)p.out[i * 8]);
            problem_free(&p);
        }
}

/* The same bits alone and in a batch, on any number of threads. */
static void test_batch(ses_exec *x)
{
    static const int len[] = { 9, 300, 1, 1030 };
    problem all;
    problem_new(&all, 2, 24, 4, len, len);
    for (int isa = SES_ISA_REF; isa < level_count(); isa++) {
        ses_kernels k = level_at(isa).k;
        int seqs = isa < level_count() - 1 ? 4 : 3; /* the long one is computed by ref if tiles are plain C */
        all.a.seqs = seqs, all.a.max_seqlen_q = all.a.max_seqlen_k = seqs < 4 ? 300 : 1030;
        k.attention_i8(&x[1], &all.a, false);
        for (int i = 0; i < seqs; i++) {
            ses_attn one = all.a;
            int32_t cu[] = { 0, len[i] };
            size_t n = (size_t)len[i] * 48;
            float *out = malloc(n * sizeof *out);
            int64_t first = all.cu_seqlens_q[i] * one.q_row;
            one.seqs = 1, one.cu_seqlens_q = one.cu_seqlens_k = cu,
            one.max_seqlen_q = one.max_seqlen_k = len[i];
            one.q += first, one.k += first, one.v += first, one.out = out;
            k.attention_i8(&x[0], &one, false);
            CHECK(!memcmp(out, all.out + all.cu_seqlens_q[i] * 48, n * sizeof *out));
            if (len[i] > SES_ATTN_I8_MAX_KEYS) { /* not quantized */
                k.attention(&x[0], &one);
                CHECK(!memcmp(out, all.out + all.cu_seqlens_q[i] * 48, n * sizeof *out));
            }
            free(out);
        }
    }
    problem_free(&all);
}

/* Calls with masks, biases or dropout equal f32 attention to the bit. */
static void test_unsupported(ses_exec *x)
{
    problem p;
    problem_new(&p, 2, 8, 1, (const int[]){ 21 }, (const int[]){ 21 });
    for (int isa = SES_ISA_REF; isa < level_count(); isa++) {
        ses_kernels k = level_at(isa).k;
        float want[21 * 16];
        ses_attn a = p.a;
        k.attention(x, &a), memcpy(want, p.out, sizeof want), k.attention_i8(x, &a, false);
        CHECK(memcmp(want, p.out, sizeof want));
        a.causal = true;
        k.attention(x, &a), memcpy(want, p.out, sizeof want), k.attention_i8(x, &a, false);
        CHECK(!memcmp(want, p.out, sizeof want));
    }
    problem_free(&p);
}

int main(void)
{
    ses_err e = { 0 };
    ses_exec x[2] = { { .pool = ses_thread_pool_new(1, &e) }, { .pool = ses_thread_pool_new(3, &e) } };
    if (!CHECK(x[0].pool && x[1].pool)) return check_report();
    test_sizes(&x[1]);
    test_scales(&x[1]);
    test_odd(&x[1]);
    test_batch(x);
    test_unsupported(&x[1]);
    for (int i = 0; i < 2; i++) ses_thread_pool_free(x[i].pool);
    return check_report();
}
