/* SES_IF_LEVEL(yes, no): `yes` if this build has the kernels of the level. The build defines
 * SES_WITHOUT_LEVEL for levels that it leaves out (cmake/levels.cmake), and only for the files that include
 * this header: another choice compiles only these. */
#ifndef SES_KERNEL_LEVELS_H
#define SES_KERNEL_LEVELS_H

#if defined __x86_64__ && !defined SES_REF_ONLY && !defined SES_WITHOUT_AVX2
#define SES_IF_avx2(yes, no) yes
#else
#define SES_IF_avx2(yes, no) no
#endif
#if defined __x86_64__ && !defined SES_REF_ONLY && !defined SES_WITHOUT_AVX512
#define SES_IF_avx512(yes, no) yes
#else
#define SES_IF_avx512(yes, no) no
#endif
#if defined __x86_64__ && !defined SES_REF_ONLY && !defined SES_WITHOUT_AVX512BF16
#define SES_IF_avx512bf16(yes, no) yes
#else
#define SES_IF_avx512bf16(yes, no) no
#endif
#if defined __x86_64__ && !defined SES_REF_ONLY && !defined SES_WITHOUT_AMX
#define SES_IF_amx(yes, no) yes
#else
#define SES_IF_amx(yes, no) no
#endif
#if defined __aarch64__ && !defined SES_REF_ONLY && !defined SES_WITHOUT_NEON
#define SES_IF_neon(yes, no) yes
#else
#define SES_IF_neon(yes, no) no
#endif
#if defined __aarch64__ && !defined SES_REF_ONLY && !defined SES_WITHOUT_NEONBF16
#define SES_IF_neonbf16(yes, no) yes
#else
#define SES_IF_neonbf16(yes, no) no
#endif

#endif
