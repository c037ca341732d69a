/* Kernels over tiles: with tiles and vectors in plain C against ref and, if the processor has AVX-512, bit by
 * bit against VNNI; if it has AMX, with its instructions too. */
#define _DEFAULT_SOURCE
#include "gemm_i8_cases.h"

/* Plain C variants of the kernels with tiles, and of the kernels that their epilogues are compared with. */
static ses_kernels plain_kernels(void)
{
    ses_kernels k = ses_kernels_cpu(SES_ISA_REF);
    k.quantize_rows = ses_k_quantize_rows_plain;
    k.gemm_i8_pack_size = ses_k_gemm_i8_pack_size_plain;
    k.gemm_i8_pack = ses_k_gemm_i8_pack_plain;
    k.gemm_i8_pack_quantized = ses_k_gemm_i8_pack_quantized_plain;
    k.gemm_i8 = ses_k_gemm_i8_plain;
    k.norm = ses_k_norm_plain;
    k.glu = ses_k_glu_plain;
    return k;
}

typedef struct result {
    float *c, *pre;
} result;

static result run_level(ses_exec *x, const ses_kernels *k, const problem *p)
{
    size_t bytes = (size_t)(p->m * p->n) * sizeof(float);
    run_i8(x, k, p, false);
    result r = { malloc(bytes), malloc(bytes) };
    memcpy(r.c, p->c, bytes), memcpy(r.pre, p->pre, bytes);
    return r;
}

static bool same_bits(result a, result b, int64_t n)
{
    return !memcmp(a.c, b.c, (size_t)n * sizeof *a.c) && !memcmp(a.pre, b.pre, (size_t)n * sizeof *a.c);
}

static void product_case(ses_exec *x, int64_t m, int64_t n, int64_t k)
{
    problem p = problem_new(m, n, k);
    ses_kernels ref = ses_kernels_cpu(SES_ISA_REF), plain = plain_kernels();
    result want = run_level(x, &ref, &p), got = run_level(x, &plain, &p);
    CHECK_MSG(distance(got.pre, want.pre, m * n) < 3e-7 &&
                  distance(got.c, want.c, m * n) < 1e-6 + 2e-4 / largest(want.c, m * n),
              "%dx%dx%d", (int)m, (int)n, (int)k);
#ifdef __x86_64__
    if (ses_isa_best() >= SES_ISA_AVX512) {
        ses_kernels dot = ses_kernels_cpu(SES_ISA_AVX512);
        result bits = run_level(x, &dot, &p);
        CHECK_MSG(same_bits(got, bits, m * n), "plain C %dx%dx%d", (int)m, (int)n, (int)k);
        if (ses_isa_best() >= SES_ISA_AMX) {
            ses_kernels amx = ses_kernels_cpu(SES_ISA_AMX);
            result tiles = run_level(x, &amx, &p);
            CHECK_MSG(same_bits(tiles, bits, m * n), "AMX %dx%dx%d", (int)m, (int)n, (int)k);
            free(tiles.c), free(tiles.pre);
        }
        free(bits.c), free(bits.pre);
    }
#endif
    free(want.c), free(want.pre), free(got.c), free(got.pre);
    problem_free(&p);
}

static void test_products(ses_exec *x)
{
    static const int m[] = { 1, 2, 3, 15, 16, 17, 31, 32, 33, 65, 100 };
    static const int n[] = { 1, 15, 16, 17, 31, 32, 33, 48, 66 };
    static const int k[] = { 1, 3, 60, 63, 64, 65, 127, 128, 200, 320 };
    for (size_t i = 0; i < SES_LEN(m); i++)
        for (size_t j = 0; j < SES_LEN(n); j++) product_case(x, m[i], n[j], k[(i * 3 + j) % SES_LEN(k)]);
    product_case(x, 70, 96, 768);
    static const int rows[] = { 9, 17, 37, 70, 200 }; /* A is copied: k <= 1,024, four panels or more */
    for (size_t i = 0; i < SES_LEN(rows); i++) product_case(x, rows[i], 150 + 33 * (int)i, 64 * ((int)i + 1));
    product_case(x, 72, 400, 1024);
    product_case(x, 72, 130, 1088); /* too long to be copied */
    product_case(x, 600, 96, 70);   /* chunks of several blocks of rows */
    product_case(x, 70, 8200, 33);  /* rows that leave room for one block only */
}

int main(void)
{
    ses_err e = { 0 };
    ses_exec x = { .pool = ses_thread_pool_new(2, &e) };
    if (!CHECK(x.pool)) return check_report();
    test_products(&x);
#ifdef __x86_64__
    if (ses_isa_best() < SES_ISA_AMX) SKIP("AMX instructions: not on this processor");
#endif
    ses_thread_pool_free(x.pool);
    return check_report();
}
