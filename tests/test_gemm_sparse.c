/* Products with sparse int8 weights: at every level the bits of the dense product of the same numbers, for
 * sizes with all kinds of tails, densities from 0 to 1, every epilogue, one and several threads. */
#define _DEFAULT_SOURCE
#include "gemm_i8_cases.h"

/* Sets blocks of four inputs of an output to zero, except a share; whole outputs if `empty`. */
static void make_sparse(float *b, int64_t n, int64_t k, double share, bool empty)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p += 4) {
            uint64_t at = (uint64_t)(j * ses_quad_count(k) + p / 4);
            bool keep = ses_rand_unit((ses_rng_key){ 11, 0, 0 }, at) < share && !(empty && j % 3 == 1);
            for (int64_t i = p; i < p + 4 && i < k && !keep; i++) b[j * k + i] = 0;
        }
}

/* B packed densely or sparsely; dot: which instructions it asks for. */
static char *pack_case(ses_exec *x, const ses_kernels *k, const ses_i8_weight *w, bool sparse, bool no_dot,
                       fence *f)
{
    int64_t bytes = sparse ? k->gemm_i8_sparse_size(x, w, 1) : k->gemm_i8_pack_size(w->n, w->k);
    CHECK(bytes > 0);
    char *packed = (char *)fence_floats(f, (size_t)(bytes + 3) / 4);
    if (sparse)
        k->gemm_i8_sparse_pack(x, packed, w);
    else if (w->bytes)
        k->gemm_i8_pack_quantized(x, packed, w->bytes, w->scale, w->b_row, w->b_col, w->n, w->k);
    else
        k->gemm_i8_pack(x, packed, w->b, w->b_row, w->b_col, w->n, w->k);
    if (no_dot && *(int32_t *)packed == 1) memset(packed, 0, sizeof(int32_t));
    return packed;
}

typedef struct outcome {
    float *c, *pre, *plain, *normed;
    uint8_t *bytes;
    float *scale;
} outcome;

static outcome outcome_new(int64_t m, int64_t n)
{
    size_t count = (size_t)(m * n) + 1;
    return (outcome){ calloc(count, 4),
                      calloc(count, 4),
                      calloc(count, 4),
                      calloc(count, 4),
                      calloc(count + (size_t)(4 * m), 4),
                      calloc(2 * (size_t)m, 4) };
}

static void outcome_free(outcome *o)
{
    free(o->c), free(o->pre), free(o->plain), free(o->normed), free(o->bytes), free(o->scale);
}

/* Products with these packed weights: with pre_act and GELU, without, accumulated, and with norm and
 * quantization of A and of the result in the epilogue. */
static outcome multiply(ses_exec *x, const ses_kernels *k, const problem *p, const char *packed,
                        ses_i8_rows a, const float *gain)
{
    outcome o = outcome_new(p->m, p->n);
    ses_gemm g = product(p, packed, SES_I8);
    g.c = o.c, g.pre_act = o.pre;
    k->gemm_i8(x, &g, 1, a, NULL);
    g.pre_act = NULL, g.c = o.plain;
    k->gemm_i8(x, &g, 1, a, NULL);
    g.bias = NULL, g.act = SES_ACT_NONE, g.accumulate = true;
    k->gemm_i8(x, &g, 1, a, NULL);
    g = product(p, packed, SES_I8);
    g.c = o.normed, g.pre_act = NULL, g.act = SES_ACT_NONE;
    ses_gemm_epilogue end = {
        .gain = gain, .bias = p->bias, .residual = p->pre, .eps = 1e-12, .i8_out = { o.bytes, o.scale }
    };
    k->gemm_i8(x, &g, 1, (ses_i8_rows){ 0 }, &end);
    return o;
}

static bool same_outcome(const outcome *a, const outcome *b, int64_t m, int64_t n)
{
    size_t bytes = (size_t)(m * n) * sizeof(float);
    return !memcmp(a->c, b->c, bytes) && !memcmp(a->pre, b->pre, bytes) &&
           !memcmp(a->plain, b->plain, bytes) && !memcmp(a->normed, b->normed, bytes) &&
           !memcmp(a->bytes, b->bytes, (size_t)(m * 4 * ses_quad_count(n))) &&
           !memcmp(a->scale, b->scale, (size_t)m * sizeof(float));
}

/* Every level with its variant, named; plain C tiles are linked into this test. */
typedef struct level {
    ses_kernels k;
    char name[32];
    bool no_dot;
} level;

enum { MAX_LEVELS = 2 * SES_ISA_COUNT + 2 };

static size_t all_levels(level *l)
{
    size_t n = 0;
    for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++) {
        bool has_plain = strcmp(ses_isa_name((ses_isa)isa), "amx"); /* processors with tiles have VNNI */
        for (int no_dot = 0; no_dot < 1 + has_plain; no_dot++) {
            l[n] = (level){ .k = ses_kernels_cpu((ses_isa)isa), .no_dot = no_dot };
            snprintf(l[n++].name, sizeof l->name, "%s%s", ses_isa_name((ses_isa)isa),
                     no_dot ? " no dot" : "");
        }
    }
#ifdef __x86_64__ /* tiles multiply bytes with the zero point of x86 */
    l[n] = (level){ .k = ses_kernels_cpu(SES_ISA_REF), .name = "plain C tiles" };
    l[n].k.quantize_rows = ses_k_quantize_rows_plain;
    l[n].k.gemm_i8_pack_size = ses_k_gemm_i8_pack_size_plain;
    l[n].k.gemm_i8_pack = ses_k_gemm_i8_pack_plain;
    l[n].k.gemm_i8_pack_quantized = ses_k_gemm_i8_pack_quantized_plain;
    l[n].k.gemm_i8_sparse_size = ses_k_gemm_i8_sparse_size_plain;
    l[n].k.gemm_i8_sparse_pack = ses_k_gemm_i8_sparse_pack_plain;
    l[n].k.gemm_i8 = ses_k_gemm_i8_plain;
    l[n].k.norm = ses_k_norm_plain;
    l[n++].k.glu = ses_k_glu_plain;
#endif
    return n;
}

static void same_bits(ses_exec *x, int64_t m, int64_t n, int64_t k, double share)
{
    problem p = problem_new(m, n, k);
    fence fg = { 0 }, fq = { 0 }, fs = { 0 };
    const float *gain = fill(&fg, n, 7);
    make_sparse(p.b, n, k, share, share < 0.5);
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    run_i8(x, &ref, &p, false);
    float *ref_pre = malloc((size_t)(m * n) * sizeof *ref_pre);
    memcpy(ref_pre, p.pre, (size_t)(m * n) * sizeof *ref_pre);
    level l[MAX_LEVELS];
    size_t n_levels = all_levels(l);
    ses_i8_rows a = { (uint8_t *)fence_floats(&fq, (size_t)(m * ses_quad_count(k))),
                      fence_floats(&fs, (size_t)m) };
    for (size_t i = 0; i < n_levels; i++) {
        ses_i8_weight w = { .b = p.b, .b_row = 1, .b_col = k, .n = n, .k = k };
        fence fd = { 0 }, fp = { 0 };
        char *dense = pack_case(x, &l[i].k, &w, false, l[i].no_dot, &fd),
             *sparse = pack_case(x, &l[i].k, &w, true, l[i].no_dot, &fp);
        l[i].k.quantize_rows(x, a, p.a, m, k);
        outcome want = multiply(x, &l[i].k, &p, dense, a, gain),
                got = multiply(x, &l[i].k, &p, sparse, a, gain);
        CHECK_MSG(same_outcome(&got, &want, m, n), "%s %dx%dx%d share %g", l[i].name, (int)m, (int)n, (int)k,
                  share);
        run_packed(x, &l[i].k, &p, sparse);
        CHECK_MSG(distance(p.pre, ref_pre, m * n) < 3e-7, "%s %dx%dx%d share %g: not as ref", l[i].name,
                  (int)m, (int)n, (int)k, share);
        outcome_free(&want), outcome_free(&got);
        fence_free(&fd), fence_free(&fp);
    }
    free(ref_pre);
    fence_free(&fg), fence_free(&fq), fence_free(&fs);
    problem_free(&p);
}

/* A dense and a sparse weight in one call. */
static void mixed(ses_exec *x)
{
    enum { M = 37, N = 70, K = 90 };
    problem p = problem_new(M, N, K);
    make_sparse(p.b, N, K, 0.3, true);
    level l[MAX_LEVELS];
    size_t n_levels = all_levels(l);
    uint8_t q[M * 4 * 23];
    float scale[M], *c = malloc((size_t)(2 * M * N) * sizeof *c);
    for (size_t i = 0; i < n_levels; i++) {
        ses_i8_weight w = { .b = p.b, .b_row = 1, .b_col = K, .n = N, .k = K };
        fence f[2] = { 0 };
        ses_gemm two[2];
        l[i].k.quantize_rows(x, (ses_i8_rows){ q, scale }, p.a, M, K);
        for (int s = 0; s < 2; s++) {
            two[s] = product(&p, pack_case(x, &l[i].k, &w, s, false, &f[s]), SES_I8);
            two[s].c = c + s * N, two[s].ldc = 2 * N, two[s].pre_act = NULL;
        }
        memset(c, 0, (size_t)(2 * M * N) * sizeof *c);
        l[i].k.gemm_i8(x, two, 2, (ses_i8_rows){ q, scale }, NULL);
        for (int r = 0; r < M; r++)
            CHECK_MSG(!memcmp(c + 2 * r * N, c + (2 * r + 1) * N, N * sizeof *c) && c[2 * r * N] != 0, "%s",
                      l[i].name);
        fence_free(&f[0]), fence_free(&f[1]);
    }
    free(c);
    problem_free(&p);
}

/* Sources: reals or int8, by columns or by rows, give the same packed matrix; its size is exact. */
static void same_packing(ses_exec *x, int64_t n, int64_t k)
{
    size_t count = (size_t)(n * k);
    int8_t *q = malloc(count), *turned = malloc(count);
    float *b = malloc(2 * count * sizeof *b), *b_turned = b + count,
          *scale = malloc((size_t)n * sizeof *scale);
    for (int64_t j = 0; j < n; j++) {
        scale[j] = ldexpf(1, (int)(j % 9) - 7);
        for (int64_t p = 0; p < k; p++) {
            bool zero = (j + p / 4) % 3 && p != k / 2; /* every column has a 127: quantizing is exact */
            int v = p == k / 2 ? 127 : zero ? 0 : (int)(127 * real(6, (uint64_t)(j * k + p)));
            q[j * k + p] = turned[p * n + j] = (int8_t)v;
            b[j * k + p] = b_turned[p * n + j] = (float)v * scale[j];
        }
    }
    const ses_i8_weight w[] = { { .b = b, .b_row = 1, .b_col = k, .n = n, .k = k },
                                { .b = b_turned, .b_row = n, .b_col = 1, .n = n, .k = k },
                                { .bytes = q, .scale = scale, .b_row = 1, .b_col = k, .n = n, .k = k },
                                { .bytes = turned, .scale = scale, .b_row = n, .b_col = 1, .n = n, .k = k } };
    level l[MAX_LEVELS];
    size_t n_levels = all_levels(l);
    for (size_t i = 0; i < n_levels; i++) {
        int64_t bytes = l[i].k.gemm_i8_sparse_size(x, &w[0], 1);
        fence f[2] = { 0 };
        char *want = (char *)fence_floats(&f[0], (size_t)(bytes + 3) / 4),
             *got = (char *)fence_floats(&f[1], (size_t)(bytes + 3) / 4);
        memset(want, 0, (size_t)bytes), memset(got, 0, (size_t)bytes);
        l[i].k.gemm_i8_sparse_pack(x, want, &w[0]);
        for (size_t s = 1; s < SES_LEN(w); s++) {
            CHECK(l[i].k.gemm_i8_sparse_size(x, &w[s], 1) == bytes);
            l[i].k.gemm_i8_sparse_pack(x, got, &w[s]);
            CHECK_MSG(!memcmp(want, got, (size_t)bytes), "%s %dx%d source %d", l[i].name, (int)n, (int)k,
                      (int)s);
        }
        fence_free(&f[0]), fence_free(&f[1]);
    }
    free(q), free(turned), free(b), free(scale);
}

/* The sparse form is chosen by the share of zero blocks, and is smaller. */
static void choice(ses_exec *x)
{
    enum { N = 256, K = 512 };
    level l[MAX_LEVELS];
    size_t n_levels = all_levels(l);
    for (size_t i = 0; i < n_levels; i++) {
        problem p = problem_new(1, N, K);
        ses_i8_weight w = { .b = p.b, .b_row = 1, .b_col = K, .n = N, .k = K };
        CHECK_MSG(l[i].k.gemm_i8_sparse_size(x, &w, 0) == 0, "%s: dense weights", l[i].name);
        make_sparse(p.b, N, K, 0.05, false);
        int64_t bytes = l[i].k.gemm_i8_sparse_size(x, &w, 0);
        CHECK_MSG(bytes > 0 && 5 * bytes < l[i].k.gemm_i8_pack_size(N, K), "%s: %d bytes", l[i].name,
                  (int)bytes);
        CHECK(l[i].k.gemm_i8_sparse_size(x, &w, 0.01) == 0);
        problem_free(&p);
    }
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    problem p = problem_new(1, 8, 8);
    memset(p.b, 0, 64 * sizeof *p.b);
    CHECK(ref.gemm_i8_sparse_size(x, &(ses_i8_weight){ .b = p.b, .b_row = 1, .b_col = 8, .n = 8, .k = 8 },
                                  0) == 0);
    problem_free(&p);
}

int main(void)
{
    static const int m[] = { 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 70 };
    static const int n[] = { 1, 3, 8, 15, 16, 17, 63, 64, 65, 97, 130 };
    static const int k[] = { 1, 3, 4, 5, 63, 64, 67, 130, 800, 1601 };
    static const double share[] = { 0, 0.01, 0.2, 0.5, 1 };
    ses_err e = { 0 };
    for (int threads = 1; threads <= 3; threads++) {
        ses_exec x = { .pool = ses_thread_pool_new(threads, &e) };
        if (!CHECK(x.pool)) return check_report();
        for (size_t i = 0; i < SES_LEN(m); i++)
            for (size_t j = 0; j < SES_LEN(n); j++) {
                size_t at = i * 7 + j * 3 + (size_t)threads;
                same_bits(&x, m[i], n[j], k[at % SES_LEN(k)], share[at / 2 % SES_LEN(share)]);
            }
        for (size_t i = 0; i < SES_LEN(share); i++) same_bits(&x, 70, 97, 1601, share[i]);
        for (size_t i = 0; i < SES_LEN(n); i++) same_packing(&x, n[i], k[i % SES_LEN(k)]);
        mixed(&x);
        choice(&x);
        if (threads == 2) same_bits(&x, 3, 50, SES_GEMM_I8_MAX_K, 0.3);
        ses_thread_pool_free(x.pool);
    }
    return check_report();
}
