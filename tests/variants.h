/* The kernels to test, with f32 or with bf16 operands: ref first, then the levels of this machine that take
 * such operands. bf16 operands have two more variants, compiled for tests (tests/CMakeLists.txt): dot
 * products and tiles in plain C. */
#ifndef TESTS_VARIANTS_H
#define TESTS_VARIANTS_H

#include "kernel/kernel.h"
#include "sesame/base.h"

enum { MAX_VARIANTS = SES_ISA_COUNT + 2 };

typedef struct variant {
    const char *name;
    ses_kernels k;
} variant;

typedef struct variant_list {
    variant of[MAX_VARIANTS];
    int n;
} variant_list;

#ifdef SES_TEST_VARIANTS
#define PLAIN_VARIANT(level)                                                                     \
    int64_t ses_k_gemm_pack_size_##level(int64_t n, int64_t k);                                  \
    void ses_k_gemm_pack_##level(ses_exec *x, void *packed, ses_dtype dtype, const ses_real *b,  \
                                 int64_t b_row, int64_t b_col, int64_t n, int64_t k);            \
    void ses_k_gemm_##level(ses_exec *x, const ses_gemm *g);                                     \
    void ses_k_attention_##level(ses_exec *x, const ses_attn *a);                                \
    void ses_k_attention_bwd_##level(ses_exec *x, const ses_attn *a, const ses_attn_grad *g);    \
    static const ses_kernels level##_kernels = { .gemm_pack_size = ses_k_gemm_pack_size_##level, \
                                                 .gemm_pack = ses_k_gemm_pack_##level,           \
                                                 .gemm = ses_k_gemm_##level,                     \
                                                 .attention = ses_k_attention_##level,           \
                                                 .attention_bwd = ses_k_attention_bwd_##level };
PLAIN_VARIANT(plaindot)
PLAIN_VARIANT(plaintile)
#endif

static inline variant_list variants(bool bf16)
{
    variant_list v = { .n = 0 };
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++)
        if (!bf16 || ses_isa_has_bf16((ses_isa)isa))
            v.of[v.n++] = (variant){ ses_isa_name((ses_isa)isa), ses_kernels_cpu((ses_isa)isa) };
#ifdef SES_TEST_VARIANTS
    if (bf16 && ses_isa_best() >= SES_ISA_AVX2) v.of[v.n++] = (variant){ "plain dots", plaindot_kernels };
    if (bf16 && ses_isa_best() >= SES_ISA_AVX2) v.of[v.n++] = (variant){ "plain tiles", plaintile_kernels };
#endif
    return v;
}

#endif
