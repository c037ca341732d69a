/* Peak multiply-add throughput of one CPU thread with all operands in registers. Used by benchmarks and
 * `doctor` as the upper bound of a kernel's speed. */
#ifndef SES_KERNEL_PEAK_FLOPS_H
#define SES_KERNEL_PEAK_FLOPS_H

#include "sesame/base.h"

/* GFLOP/s of one thread at level `isa` (at most ses_isa_best()): the best burst measured within `seconds`. */
double ses_peak_gflops(ses_isa isa, double seconds);

/* The same of products of tiles, int8 (bf16 false) or bf16: 0 if the level has no tiles. */
double ses_peak_tiles(ses_isa isa, bool bf16, double seconds);

/* Each runs `rounds` rounds of independent multiply-adds and returns the number of floating-point operations.
 * *sink receives the sum of the registers, so the compiler cannot remove the work. */
double ses_peak_burst_ref(int64_t rounds, float *sink);
double ses_peak_burst_avx2(int64_t rounds, float *sink);
double ses_peak_burst_avx512(int64_t rounds, float *sink);
double ses_peak_burst_neon(int64_t rounds, float *sink);
double ses_peak_tiles_i8_amx(int64_t rounds);
double ses_peak_tiles_bf16_amx(int64_t rounds);
double ses_peak_tiles_i8_plain(int64_t rounds); /* in tests only */
double ses_peak_tiles_bf16_plain(int64_t rounds);

#endif
