/* Vectorized burst of peak_flops.h: enough chains to hide the latency of a fused multiply-add (4 cycles, two
 * per cycle), few enough for 16 registers. */
#include "kernel/peak_flops.h"
#include "kernel/simd/vec/vec.h"

enum { CHAINS = 12 };

double VF_NAME(ses_peak_burst)(int64_t rounds, float *sink)
{
    vf a[CHAINS], m = vf_set1(0.999f + *sink), c = vf_set1(0.001f), sum = vf_zero();
    for (int i = 0; i < CHAINS; i++) a[i] = vf_set1((float)i);
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < CHAINS; i++) a[i] = vf_fma(a[i], m, c);
    for (int i = 0; i < CHAINS; i++) sum = vf_add(sum, a[i]);
    *sink = vf_sum(sum);
    return 2.0 * CHAINS * VF_LANES * (double)rounds;
}
