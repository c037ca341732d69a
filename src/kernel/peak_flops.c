/* Measures the peak multiply-add throughput of one CPU thread. */
#define _POSIX_C_SOURCE 200809L
#include "peak_flops.h"

#include "kernel.h"
#include "levels.h"

#include <time.h>

enum { CHAINS = 16, ROUNDS = 20000 };

double ses_peak_burst_ref(int64_t rounds, float *sink)
{
    float a[CHAINS], m = 0.999f + *sink, sum = 0;
    for (int i = 0; i < CHAINS; i++) a[i] = (float)i;
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++) a[i] = a[i] * m + 0.001f;
    for (int i = 0; i < CHAINS; i++) sum += a[i];
    *sink = sum;
    return 2.0 * CHAINS * (double)rounds;
}

static double burst(ses_isa isa, int64_t rounds, float *sink)
{
    double (*run)(int64_t rounds, float *sink) = ses_peak_burst_ref;
#if defined __aarch64__
    if (isa >= SES_ISA_NEON) run = SES_IF_neon(ses_peak_burst_neon, run);
#else
    if (isa >= SES_ISA_AVX2) run = SES_IF_avx2(ses_peak_burst_avx2, run);
    if (isa >= SES_ISA_AVX512) run = SES_IF_avx512(ses_peak_burst_avx512, run);
#endif
    return run(rounds, sink);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double tile_burst(ses_isa isa, bool bf16, int64_t rounds)
{
    (void)bf16, (void)rounds;
    if (!ses_isa_has_tiles(isa)) return 0;
    return SES_IF_amx(bf16 ? ses_peak_tiles_bf16_amx(rounds) : ses_peak_tiles_i8_amx(rounds), 0);
}

/* A kind of burst at a level. */
typedef struct burst_kind {
    ses_isa isa;
    bool tiles, bf16;
} burst_kind;

/* The best rate of bursts within `seconds`, in 10^9 operations per second. */
static double best_rate(burst_kind k, double seconds)
{
    double begin = now(), t = begin, best = 0;
    float sink = 0;
    do {
        double last = t,
               operations = k.tiles ? tile_burst(k.isa, k.bf16, ROUNDS / 16) : burst(k.isa, ROUNDS, &sink);
        sink = 0;
        t = now();
        if (t > last && operations / (t - last) > best) best = operations / (t - last);
    } while (t - begin < seconds && best > 0);
    return best * 1e-9;
}

double ses_peak_gflops(ses_isa isa, double seconds) { return best_rate((burst_kind){ .isa = isa }, seconds); }

double ses_peak_tiles(ses_isa isa, bool bf16, double seconds)
{
    return best_rate((burst_kind){ .isa = isa, .tiles = true, .bf16 = bf16 }, seconds);
}
