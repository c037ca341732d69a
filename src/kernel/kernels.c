/* Kernel tables generated from kernels.def. */
#include "kernel.h"
#include "levels.h"

#include <stddef.h>
#include <string.h>

/* Variants of a level, by the columns of kernels.def. NULL: the level below is used. */
#define NONE(k, isa) NULL
#define ONE(k, isa) SES_IF_##isa(ses_k_##k##_##isa, NULL)
#define SIMD__ NONE
#define SIMD_X ONE
#define BF16__ NONE
#define BF16_B ONE
#define BF16_T NONE
#define TILE__ NONE
#define TILE_B ONE
#define TILE_T ONE

static const ses_kernels table[SES_ISA_COUNT] = {
#if defined __aarch64__
#define SES_KERNEL(name, simd, matrix, cuda, result, params)                                \
    [SES_ISA_REF].name = ses_k_##name##_ref, [SES_ISA_NEON].name = SIMD_##simd(name, neon), \
    [SES_ISA_NEON_BF16].name = BF16_##matrix(name, neonbf16),
#else
#define SES_KERNEL(name, simd, matrix, cuda, result, params)                                \
    [SES_ISA_REF].name = ses_k_##name##_ref, [SES_ISA_AVX2].name = SIMD_##simd(name, avx2), \
    [SES_ISA_AVX512].name = SIMD_##simd(name, avx512),                                      \
    [SES_ISA_AVX512_BF16].name = BF16_##matrix(name, avx512bf16),                           \
    [SES_ISA_AMX].name = TILE_##matrix(name, amx),
#endif
#include "kernels.def"
#undef SES_KERNEL
};

/* No row for `_`: a kernel without a CUDA variant must be declared unneeded (N). */
#define HAS_CUDA_X true
#define HAS_CUDA_N false
static const ses_kernel_info list[] = {
#define SES_KERNEL(name, simd, matrix, cuda, result, params) { #name, HAS_CUDA_##cuda },
#include "kernels.def"
#undef SES_KERNEL
};

bool ses_kernel_has(size_t i, ses_isa isa)
{
    static const size_t offset[] = {
#define SES_KERNEL(name, simd, matrix, cuda, result, params) offsetof(ses_kernels, name),
#include "kernels.def"
#undef SES_KERNEL
    };
    void (*kernel)(void);
    memcpy(&kernel, (const char *)&table[isa] + offset[i], sizeof kernel);
    return kernel != NULL;
}

ses_kernels ses_kernels_cpu(ses_isa cap)
{
    ses_kernels k = table[SES_ISA_REF];
    ses_isa best = ses_isa_limit(cap);
    for (int i = SES_ISA_REF + 1; i <= (int)best; i++) {
#define SES_KERNEL(name, simd, matrix, cuda, result, params) \
    if (table[i].name) k.name = table[i].name;
#include "kernels.def"
#undef SES_KERNEL
    }
    return k;
}

const char *ses_kernels_missing(const ses_kernels *k)
{
    const char *missing = NULL;
#define SES_KERNEL(name, simd, matrix, cuda, result, params) \
    if (!k->name && !missing && HAS_CUDA_##cuda) missing = #name;
#include "kernels.def"
#undef SES_KERNEL
    return missing;
}

const ses_kernel_info *ses_kernel_list(size_t *n)
{
    *n = SES_LEN(list);
    return list;
}

static ses_gemm new_gemm(ses_real *c, int64_t m, int64_t n, int64_t k)
{
    return (ses_gemm){ .m = m, .n = n, .k = k, .c = c, .ldc = n, .packed_dtype = SES_REAL };
}

static ses_gemm set_operands(ses_gemm g, const ses_real *a, int64_t a_row, int64_t a_col, const ses_real *b,
                             int64_t b_row, int64_t b_col)
{
    g.a = a, g.a_row = a_row, g.a_col = a_col;
    g.b = b, g.b_row = b_row, g.b_col = b_col;
    return g;
}

ses_gemm ses_gemm_nt(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k)
{
    return set_operands(new_gemm(c, m, n, k), a, k, 1, b, 1, k);
}

ses_gemm ses_gemm_nn(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k)
{
    return set_operands(new_gemm(c, m, n, k), a, k, 1, b, n, 1);
}

ses_gemm ses_gemm_tn(ses_real *c, const ses_real *a, const ses_real *b, int64_t m, int64_t n, int64_t k)
{
    return set_operands(new_gemm(c, m, n, k), a, 1, m, b, n, 1);
}

static void add_rows(const ses_gemm_batch *b, ses_real *c, const ses_real *d)
{
    ses_real alpha = (ses_real)b->alpha, beta = (ses_real)b->beta;
    for (int64_t i = 0; i < b->g.m; i++, c += b->g.ldc, d += d ? b->g.ldc : 0)
        for (int64_t j = 0; j < b->g.n; j++) c[j] = d ? alpha * c[j] + beta * d[j] : alpha * c[j];
}

void ses_gemm_one_by_one(ses_exec *x, const ses_gemm_batch *b, void (*gemm)(ses_exec *x, const ses_gemm *g))
{
    for (int64_t i = 0; i < b->count; i++) {
        ses_gemm one = b->g;
        one.a += i * b->a_step, one.b += i * b->b_step, one.c += i * b->c_step;
        gemm(x, &one);
        if (b->d || b->alpha != 1) add_rows(b, one.c, b->d ? b->d + i * b->c_step : NULL);
    }
}
