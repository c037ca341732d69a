/* Every variant of gemm against ref, with f32 and with bf16 operands: sizes with all kinds of tails, layouts,
 * epilogues. And bit-exactness: a row's result does not depend on the other rows, the threads, or whether B
 * was packed in advance. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "fence.h"
#include "variants.h"

#include "kernel/kernel.h"
#include "kernel/peak_flops.h"

#include <math.h>

enum { PAD = 3 }; /* columns of C that must not be written */

/* Memory layout of A and B. */
typedef enum { ROW_MAJOR, TRANSPOSED, SPREAD } layout;

typedef struct problem {
    ses_gemm g;
    fence fa, fb, fc, fpre, fbias;
    float *a, *b, *c, *pre, *bias;
    size_t c_count;
} problem;

static float whole(uint64_t seed, uint64_t i)
{
    return (float)(ses_rand32((ses_rng_key){ seed, 0, 0 }, i) % 9) - 4;
}
static float real(uint64_t seed, uint64_t i) { return 2 * ses_rand_unit((ses_rng_key){ seed, 0, 0 }, i) - 1; }

static float *matrix(fence *f, layout l, int64_t rows, int64_t cols, int64_t *row, int64_t *col, bool exact,
                     uint64_t seed)
{
    *row = l == TRANSPOSED ? 1 : l == SPREAD ? 2 * cols + 5 : cols;
    *col = l == TRANSPOSED ? rows : l == SPREAD ? 2 : 1;
    size_t n = (size_t)((rows - 1) * *row + (cols - 1) * *col + 1);
    float *x = fence_floats(f, n);
    for (size_t i = 0; i < n; i++) x[i] = NAN; /* gaps must not be read */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            uint64_t at = (uint64_t)(i * cols + j);
            x[i * *row + j * *col] = exact ? whole(seed, at) : real(seed, at);
        }
    return x;
}

static void problem_new(problem *p, int64_t m, int64_t n, int64_t k, layout la, layout lb, bool exact)
{
    *p = (problem){ .g = { .m = m, .n = n, .k = k, .ldc = n + PAD } };
    p->a = matrix(&p->fa, la, m, k, &p->g.a_row, &p->g.a_col, exact, 1);
    p->b = matrix(&p->fb, lb, k, n, &p->g.b_row, &p->g.b_col, exact, 2);
    p->c_count = (size_t)((m - 1) * p->g.ldc + n);
    p->c = fence_floats(&p->fc, p->c_count);
    p->pre = fence_floats(&p->fpre, p->c_count);
    p->bias = fence_floats(&p->fbias, (size_t)n);
    for (int64_t j = 0; j < n; j++) p->bias[j] = exact ? whole(3, (uint64_t)j) : real(3, (uint64_t)j);
    p->g.a = p->a, p->g.b = p->b, p->g.c = p->c;
}

static void problem_free(problem *p)
{
    fence_free(&p->fa), fence_free(&p->fb), fence_free(&p->fc), fence_free(&p->fpre), fence_free(&p->fbias);
}

static float before(size_t i) { return (float)(i % 7) - 3; } /* initial values of C */

static void run(ses_exec *x, const ses_kernels *k, problem *p, bool packed)
{
    fence fp = { 0 };
    float *pack = NULL;
    for (size_t i = 0; i < p->c_count; i++) p->c[i] = before(i), p->pre[i] = 77;
    ses_gemm g = p->g;
    if (packed) {
        size_t size = (size_t)k->gemm_pack_size(g.n, g.k);
        pack = fence_floats(&fp, x->bf16 ? (size + 1) / 2 : size);
        g.packed_dtype = x->bf16 ? SES_BF16 : SES_REAL;
        k->gemm_pack(x, pack, g.packed_dtype, g.b, g.b_row, g.b_col, g.n, g.k);
        g.packed = pack, g.b = NULL;
    }
    k->gemm(x, &g);
    if (pack) fence_free(&fp);
}

static bool pad_kept(const problem *p)
{
    bool kept = true;
    for (size_t i = 0; i < p->c_count; i++)
        if ((int64_t)i % p->g.ldc >= p->g.n) kept = kept && p->c[i] == before(i) && p->pre[i] == 77;
    return kept;
}

/* Sums of integers are exact: every level must equal ref. */
static void exact_case(ses_exec *x, int64_t m, int64_t n, int64_t k, layout la, layout lb)
{
    variant_list all = variants(x->bf16);
    problem p;
    problem_new(&p, m, n, k, la, lb, true);
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    float *want = malloc(p.c_count * sizeof *want);
    for (int form = 0; form < 3 && CHECK(want); form++) { /* plain, accumulate, bias and relu */
        p.g.accumulate = form == 1;
        p.g.bias = form == 2 ? p.bias : NULL;
        p.g.act = form == 2 ? SES_ACT_RELU : SES_ACT_NONE;
        run(x, &ref, &p, false);
        memcpy(want, p.c, p.c_count * sizeof *want);
        for (const variant *v = all.of; v < all.of + all.n; v++)
            for (int packed = 0; packed < 2; packed++) {
                run(x, &v->k, &p, packed);
                bool same = true;
                for (size_t i = 0; i < p.c_count; i++) same = same && p.c[i] == want[i];
                CHECK_MSG(same && pad_kept(&p), "%s %dx%dx%d layouts %d %d form %d packed %d", v->name,
                          (int)m, (int)n, (int)k, la, lb, form, packed);
            }
    }
    free(want);
    problem_free(&p);
}

static void test_sizes(ses_exec *x)
{
    static const int m[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 50 };
    static const int n[] = { 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 64, 97, 113 };
    static const int k[] = { 1, 2, 3, 4, 5, 8, 19, 67 };
    for (size_t i = 0; i < SES_LEN(m); i++)
        for (size_t j = 0; j < SES_LEN(n); j++) {
            int depth = k[(i * 5 + j) % SES_LEN(k)];
            for (int l = 0; l < 9; l++)
                if (l < 4 || (i + j) % 4 == 0)
                    exact_case(x, m[i], n[j], depth, (layout)(l % 3), (layout)(l / 3));
        }
}

/* Several passes over k, several blocks of rows, several groups of panels. */
static void test_large(ses_exec *x)
{
    for (int l = 0; l < 4; l++) {
        exact_case(x, 5, 50, 1601, (layout)(l % 2), (layout)(l / 2));
        exact_case(x, 3, 7, 769, (layout)(l % 2), (layout)(l / 2));
        exact_case(x, 401, 401, 9, (layout)(l % 2), (layout)(l / 2));
    }
    exact_case(x, 1537, 3, 70, ROW_MAJOR, TRANSPOSED);
    exact_case(x, 3, 20, 9001, ROW_MAJOR, TRANSPOSED); /* several passes with bf16 operands */
}

static void epilogue_case(ses_exec *x, int64_t m, int64_t n, int64_t k, ses_act act, bool bias, bool pre)
{
    variant_list all = variants(x->bf16);
    problem p;
    problem_new(&p, m, n, k, ROW_MAJOR, TRANSPOSED, false);
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF);
    float *want = malloc(2 * p.c_count * sizeof *want), *want_pre = want + p.c_count;
    p.g.bias = bias ? p.bias : NULL, p.g.pre_act = pre ? p.pre : NULL, p.g.act = act;
    run(x, &ref, &p, false);
    if (CHECK(want)) memcpy(want, p.c, p.c_count * 4), memcpy(want_pre, p.pre, p.c_count * 4);
    for (const variant *v = all.of + 1; want && v < all.of + all.n; v++) {
        run(x, &v->k, &p, true);
        double worst = 0;
        for (size_t i = 0; i < p.c_count; i++)
            worst = fmax(worst, fmax(fabs(p.c[i] - want[i]), fabs(p.pre[i] - want_pre[i])));
        double limit = 1e-6 + 4e-8 * (double)k; /* k roundings of sums that grow as sqrt(k) */
        if (x->bf16 && act == SES_ACT_GELU && !pre) limit += 2e-4;
        CHECK_MSG(worst <= limit && pad_kept(&p), "%s %dx%dx%d act %d bias %d pre %d: %g, %g allowed",
                  v->name, (int)m, (int)n, (int)k, act, bias, pre, worst, limit);
    }
    free(want);
    problem_free(&p);
}

static void test_epilogues(ses_exec *x)
{
    for (int act = SES_ACT_NONE; act < SES_ACT_COUNT; act++)
        for (int flags = 0; flags < 4; flags++) {
            epilogue_case(x, 11, 53, 40, (ses_act)act, flags & 1, flags & 2);
            epilogue_case(x, 3, 21, 1000, (ses_act)act, flags & 1, flags & 2);
        }
    epilogue_case(x, 9, 100, 3072, SES_ACT_NONE, true, false);
}

/* All rows of a product, computed in every possible way. */
static void test_bits(ses_exec pool[3])
{
    enum { M = 29, N = 131, K = 901 };
    problem p, t;
    problem_new(&p, M, N, K, ROW_MAJOR, TRANSPOSED, false);
    problem_new(&t, M, N, K, TRANSPOSED, ROW_MAJOR, false);
    p.g.bias = p.bias, p.g.act = SES_ACT_GELU, t.g.bias = t.bias, t.g.act = SES_ACT_GELU;
    float *want = malloc(p.c_count * sizeof *want);
    variant_list all = variants(pool[0].bf16);
    for (const variant *v = all.of; CHECK(want) && v < all.of + all.n; v++) {
        run(&pool[0], &v->k, &p, true);
        memcpy(want, p.c, p.c_count * sizeof *want);
        for (int threads = 0; threads < 3; threads++)
            for (int packed = 0; packed < 2; packed++) {
                run(&pool[threads], &v->k, &p, packed);
                CHECK(!memcmp(want, p.c, p.c_count * sizeof *want));
                run(&pool[threads], &v->k, &t, packed);
                CHECK(!memcmp(want, t.c, p.c_count * sizeof *want));
            }
        for (int first = 0; first < M; first += 5)
            for (int rows = 1; first + rows <= M; rows += rows < 9 ? 1 : 7) {
                p.g.a = p.a + first * K, p.g.m = rows;
                run(&pool[1], &v->k, &p, rows & 1);
                bool same = true;
                for (int i = 0; i < rows; i++)
                    same = same && !memcmp(p.c + i * p.g.ldc, want + (first + i) * p.g.ldc, N * sizeof *want);
                CHECK_MSG(same, "%s rows %d from %d", v->name, rows, first);
            }
        p.g.a = p.a, p.g.m = M;
    }
    free(want);
    problem_free(&p), problem_free(&t);
}

/* One random number of 1 .. max. */
static int random_size(uint64_t i, uint32_t max)
{
    return 1 + (int)(ses_rand32((ses_rng_key){ 7, 0, 0 }, i) % max);
}

/* Block sizes do not change a bit, in any layout. */
static void test_blocks(ses_exec *x)
{
    static const layout of_a[] = { ROW_MAJOR, ROW_MAJOR, TRANSPOSED },
                        of_b[] = { TRANSPOSED, ROW_MAJOR, ROW_MAJOR };
    enum { M = 150, N = 205, K = 1601, ROUNDS = 12, FORMS = 5 };
    for (int isa = SES_ISA_REF + 1; isa <= (int)ses_isa_best(); isa++)
        for (int form = 0; form < FORMS; form++) { /* three layouts, packed f32, packed f16 */
            ses_kernels k = ses_kernels_cpu((ses_isa)isa);
            problem p;
            problem_new(&p, M, N, K, of_a[form % 3], of_b[form % 3], false);
            float *first = malloc(p.c_count * sizeof *first), *packed = NULL;
            if (form > 2) {
                packed = malloc((size_t)k.gemm_pack_size(N, K) * sizeof *packed);
                p.g.packed = packed, p.g.packed_dtype = form == 3 ? SES_F32 : SES_F16;
                p.g.a = p.a, p.g.a_row = K, p.g.a_col = 1;
                k.gemm_pack(x, packed, p.g.packed_dtype, p.b, p.g.b_row, p.g.b_col, N, K);
            }
            for (int round = 0; round <= ROUNDS; round++) {
                uint64_t at = (uint64_t)(8 * (round + ROUNDS * form));
                ses_exec y = { .pool = x->pool, .bf16 = x->bf16 };
                if (round)
                    y.blocks =
                        (ses_blocks){ random_size(at, 200), random_size(at + 1, 200),
                                      random_size(at + 2, 200), random_size(at + 3, 300), round % 2 == 0 };
                memset(p.c, 0, p.c_count * sizeof *p.c);
                k.gemm(&y, &p.g);
                if (!round) memcpy(first, p.c, p.c_count * sizeof *first);
                CHECK_MSG(!memcmp(first, p.c, p.c_count * sizeof *first), "%s, form %d, round %d",
                          ses_isa_name((ses_isa)isa), form, round);
            }
            free(first), free(packed);
            problem_free(&p);
        }
}

static bool same_blocks(ses_blocks a, ses_blocks b)
{
    return a.rows == b.rows && a.packed_rows == b.packed_rows && a.strip_rows == b.strip_rows &&
           a.strip_cols == b.strip_cols && a.far_memory == b.far_memory;
}

static void test_block_sizes(void)
{
    ses_cpu_caches zen = { 32 << 10, 1 << 20, 32 << 20 }, unknown = { 0 }, odd = { 1, SIZE_MAX, 3 };
    ses_blocks b = ses_blocks_of_caches(zen), standard = ses_blocks_complete((ses_blocks){ 0 });
    CHECK(same_blocks(b, standard));
    b = ses_blocks_of_caches(unknown);
    CHECK(same_blocks(b, standard));
    b = ses_blocks_of_caches(odd);
    CHECK(same_blocks(b, standard));
    zen.l2 *= 2;
    CHECK(ses_blocks_of_caches(zen).far_memory && !standard.far_memory);
    b = ses_blocks_complete((ses_blocks){ .strip_rows = 1 << 30, .rows = -5 });
    CHECK(b.strip_rows <= 1024 && b.rows == standard.rows);
}

/* No rows or no columns: nothing is written. k = 0: the sums are zero. */
static void test_empty(ses_exec *x)
{
    variant_list all = variants(x->bf16);
    for (const variant *v = all.of; v < all.of + all.n; v++) {
        float a[4] = { 1, 2, 3, 4 }, bias[2] = { 5, 6 }, c[4] = { 7, 7, 7, 7 };
        ses_gemm g = {
            .m = 0, .n = 2, .k = 2, .c = c, .ldc = 2, .a = a, .a_row = 2, .a_col = 1, .b = a, .b_row = 2
        };
        g.b_col = 1, g.bias = bias;
        v->k.gemm(x, &g);
        g.m = 2, g.n = 0;
        v->k.gemm(x, &g);
        CHECK(c[0] == 7 && c[3] == 7);
        g.n = 2, g.k = 0;
        v->k.gemm(x, &g);
        CHECK(c[0] == 5 && c[1] == 6 && c[2] == 5 && c[3] == 6);
    }
}

/* A NaN stays in its row or column. */
static void test_nan(ses_exec *x)
{
    variant_list all = variants(x->bf16);
    problem p;
    problem_new(&p, 12, 50, 30, ROW_MAJOR, ROW_MAJOR, true);
    p.a[5 * 30 + 3] = NAN;
    p.b[7 * 50 + 17] = INFINITY;
    for (const variant *v = all.of; v < all.of + all.n; v++) {
        run(x, &v->k, &p, false);
        bool right = true;
        for (int i = 0; i < 12; i++)
            for (int j = 0; j < 50; j++) {
                float c = p.c[i * p.g.ldc + j];
                right = right && (i == 5 ? isnan(c) : j == 17 ? !isfinite(c) : isfinite(c));
            }
        CHECK(right);
    }
    problem_free(&p);
}

/* Operands are rounded to nearest even, an f32 pack is not, and the vector levels ignore ses_exec.bf16. */
static void test_rounding(ses_exec *x)
{
    /* 1 + 2^-8 is halfway between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6 */
    float a[3] = { 1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1.8p-8f }, one[2] = { 1, 1 }, c[3], pack[64];
    const float want[3] = { 1, 1 + 0x1p-6f, 1 + 0x1p-7f };
    variant_list all = variants(true);
    for (const variant *v = all.of; v < all.of + all.n; v++) {
        ses_gemm g = ses_gemm_nt(c, a, one, 3, 1, 1);
        v->k.gemm(x, &g);
        CHECK_MSG(!memcmp(c, want, sizeof c), "%s: %.9g %.9g %.9g", v->name, c[0], c[1], c[2]);
        g = ses_gemm_nt(c, one, a, 1, 3, 1);
        v->k.gemm(x, &g);
        CHECK_MSG(!memcmp(c, want, sizeof c), "%s: %.9g %.9g %.9g", v->name, c[0], c[1], c[2]);
        g = ses_gemm_nt(c, a, one, 3, 1, 1);
        if (v->k.gemm_pack_size(1, 1) > (int64_t)SES_LEN(pack)) continue;
        v->k.gemm_pack(x, pack, SES_REAL, one, 1, 1, 1, 1);
        g.packed = pack;
        v->k.gemm(x, &g);
        CHECK_MSG(!memcmp(c, a, sizeof c), "%s, f32 pack", v->name);
    }
}

int main(void)
{
    ses_err e = { 0 };
    ses_exec x[3] = { { .pool = ses_thread_pool_new(1, &e) },
                      { .pool = ses_thread_pool_new(2, &e) },
                      { .pool = ses_thread_pool_new(3, &e) } };
    if (!CHECK(x[0].pool && x[1].pool && x[2].pool)) return check_report();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        for (int i = 0; i < 3; i++) x[i].bf16 = bf16;
        test_sizes(&x[0]);
        test_large(&x[1]);
        test_epilogues(&x[1]);
        test_bits(x);
        if (!bf16) test_blocks(&x[1]); /* other products have no block sizes from the caches */
        test_nan(&x[0]);
        test_empty(&x[1]);
    }
    test_block_sizes();
    test_rounding(&x[1]);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++)
        CHECK(ses_peak_gflops((ses_isa)isa, 0.002) > 0.01);
    for (int i = 0; i < 3; i++) ses_thread_pool_free(x[i].pool);
    return check_report();
}
