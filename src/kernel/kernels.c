/* Kernel tables generated from kernels.def, and the choice of a CPU level. */
#include "kernel.h"

#if defined __x86_64__ && !defined SES_REF_ONLY
#define SLOT_X(k, isa) ses_k_##k##_##isa
#define HAVE_SIMD 1
#else
#define SLOT_X(k, isa) NULL
#define HAVE_SIMD 0
#endif
#define SLOT__(k, isa) NULL

static const ses_kernels table[SES_ISA_COUNT] = {
#define SES_KERNEL(name, a2, a5, cu, result, params)                                      \
    [SES_ISA_REF].name = ses_k_##name##_ref, [SES_ISA_AVX2].name = SLOT_##a2(name, avx2), \
    [SES_ISA_AVX512].name = SLOT_##a5(name, avx512),
#include "kernels.def"
#undef SES_KERNEL
};

#define HAS_X true
#define HAS__ false
/* No row for `_`: a kernel without a CUDA variant must be declared unneeded (N). */
#define HAS_CUDA_X true
#define HAS_CUDA_N false
static const ses_kernel_info list[] = {
#define SES_KERNEL(name, a2, a5, cu, result, params)                                    \
    { #name,                                                                            \
      { [SES_ISA_REF] = true, [SES_ISA_AVX2] = HAS_##a2, [SES_ISA_AVX512] = HAS_##a5 }, \
      HAS_CUDA_##cu },
#include "kernels.def"
#undef SES_KERNEL
};

static const char *const isa_name[SES_ISA_COUNT] = { "best", "ref", "avx2", "avx512" };

const char *ses_isa_name(ses_isa isa) { return isa < SES_ISA_COUNT ? isa_name[isa] : "unknown"; }

ses_isa ses_isa_best(void)
{
#if HAVE_SIMD
    __builtin_cpu_init(); /* also checks that the operating system saves the vector registers */
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return avx512 ? SES_ISA_AVX512 : avx2 ? SES_ISA_AVX2 : SES_ISA_REF;
#else
    return SES_ISA_REF;
#endif
}

ses_kernels ses_kernels_cpu(ses_isa cap)
{
    ses_kernels k = table[SES_ISA_REF];
    ses_isa best = ses_isa_best();
    if (cap == SES_ISA_BEST) cap = best;
    for (int i = SES_ISA_AVX2; i <= (int)cap && i <= (int)best; i++) {
#define SES_KERNEL(name, a2, a5, cu, result, params) \
    if (table[i].name) k.name = table[i].name;
#include "kernels.def"
#undef SES_KERNEL
    }
    return k;
}

const char *ses_kernels_missing(const ses_kernels *k)
{
    const char *missing = NULL;
#define SES_KERNEL(name, a2, a5, cu, result, params) \
    if (!k->name && !missing && HAS_CUDA_##cu) missing = #name;
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
