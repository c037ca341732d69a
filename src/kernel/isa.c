/* Instruction set levels: their names, and the detection of the highest one. */
#define _GNU_SOURCE
#include "kernel.h"
#include "levels.h"

#if defined SES_REF_ONLY
/* no detection */
#elif defined __x86_64__
#include <cpuid.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined __aarch64__
#include <sys/auxv.h>
#endif

#if defined __aarch64__
static const char *const name[SES_ISA_COUNT] = { "best", "ref", "neon", "neonbf16" };
#else
static const char *const name[SES_ISA_COUNT] = { "best", "ref", "avx2", "avx512", "avx512bf16", "amx" };
#endif

const char *ses_isa_name(ses_isa isa) { return isa < SES_ISA_COUNT ? name[isa] : "unknown"; }

bool ses_isa_built(ses_isa isa)
{
    static const bool built[SES_ISA_COUNT] = {
        [SES_ISA_REF] = true,
#if defined __aarch64__
        [SES_ISA_NEON] = SES_IF_neon(true, false),
        [SES_ISA_NEON_BF16] = SES_IF_neonbf16(true, false),
#else
        [SES_ISA_AVX2] = SES_IF_avx2(true, false),
        [SES_ISA_AVX512] = SES_IF_avx512(true, false),
        [SES_ISA_AVX512_BF16] = SES_IF_avx512bf16(true, false),
        [SES_ISA_AMX] = SES_IF_amx(true, false),
#endif
    };
    return isa < SES_ISA_COUNT && built[isa];
}

bool ses_isa_has_bf16(ses_isa isa)
{
#if defined __aarch64__
    return isa == SES_ISA_REF || isa == SES_ISA_NEON_BF16;
#else
    return isa == SES_ISA_REF || isa == SES_ISA_AVX512_BF16 || isa == SES_ISA_AMX;
#endif
}

ses_isa ses_isa_vectors(ses_isa isa)
{
#if defined __aarch64__
    return isa > SES_ISA_NEON && isa < SES_ISA_COUNT ? SES_ISA_NEON : isa;
#else
    return isa > SES_ISA_AVX512 && isa < SES_ISA_COUNT ? SES_ISA_AVX512 : isa;
#endif
}

bool ses_isa_has_tiles(ses_isa isa)
{
#if defined __aarch64__
    (void)isa;
    return false;
#else
    return isa >= SES_ISA_AMX && isa < SES_ISA_COUNT;
#endif
}

/* The highest level of the machine. */
#if defined SES_REF_ONLY
static ses_isa machine_isa(void) { return SES_ISA_REF; }

#elif defined __x86_64__

static bool has_bit(unsigned x, int bit) { return x >> bit & 1; }

/* Linux wants every process to ask for tiles; the answer holds for all its threads. */
ses_amx_state ses_amx_detect(int *error)
{
    enum { TILE = 24, INT8 = 25, BF16 = 22, OSXSAVE = 27 }; /* bits of CPUID leaf 7 EDX, leaf 1 ECX */
    enum { XCR0_TILES = 3 << 17, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    unsigned a, b, c, d;
    *error = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_bit(d, TILE) || !has_bit(d, INT8) ||
        !has_bit(d, BF16))
        return SES_AMX_ABSENT;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_bit(c, OSXSAVE)) return SES_AMX_NOT_SAVED;
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & XCR0_TILES) != XCR0_TILES) return SES_AMX_NOT_SAVED;
#if defined __linux__
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0) return SES_AMX_READY;
    *error = errno;
#endif
    return SES_AMX_DENIED;
}

static ses_isa machine_isa(void)
{
    __builtin_cpu_init(); /* also checks that the operating system saves the vector registers */
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (!avx512) return avx2 ? SES_ISA_AVX2 : SES_ISA_REF;
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni")) return SES_ISA_AVX512;
    int error;
    return ses_amx_detect(&error) == SES_AMX_READY ? SES_ISA_AMX : SES_ISA_AVX512_BF16;
}

#elif defined __aarch64__

static ses_isa machine_isa(void)
{
    enum { HAS_BF16 = 1 << 14 }; /* HWCAP2_BF16 */
    return getauxval(AT_HWCAP2) & HAS_BF16 ? SES_ISA_NEON_BF16 : SES_ISA_NEON;
}

#else
static ses_isa machine_isa(void) { return SES_ISA_REF; }
#endif

bool ses_isa_left_out(ses_isa isa)
{
    return isa != SES_ISA_BEST && isa <= machine_isa() && !ses_isa_built(isa);
}

ses_isa ses_isa_limit(ses_isa cap)
{
    int best = (int)machine_isa();
    if (cap != SES_ISA_BEST && (int)cap < best) best = (int)cap;
    while (best > SES_ISA_REF && !ses_isa_built((ses_isa)best)) best--;
    return (ses_isa)best;
}

ses_isa ses_isa_best(void) { return ses_isa_limit(SES_ISA_BEST); }

#if defined SES_REF_ONLY || !defined __x86_64__
ses_amx_state ses_amx_detect(int *error)
{
    *error = 0;
    return SES_AMX_ABSENT;
}
#endif
