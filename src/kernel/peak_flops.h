/* The CPU's own limit: how fast one thread multiplies and adds when nothing but registers is touched. */
#ifndef SES_KERNEL_PEAK_H
#define SES_KERNEL_PEAK_H

#include "sesame/types.h"

/* GFLOP/s of one thread at a level (at most ses_isa_best()), the best burst found within `seconds`. */
double ses_peak_gflops(ses_isa isa, double seconds);

/* Each does `rounds` times its fixed number of operations and returns how many that was; the sum of its
 * registers goes to *sink, so that no compiler can skip the work. */
double ses_peak_burst_ref(int64_t rounds, float *sink);
double ses_peak_burst_avx2(int64_t rounds, float *sink);
double ses_peak_burst_avx512(int64_t rounds, float *sink);

#endif
