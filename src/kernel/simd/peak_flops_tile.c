/* Bursts of peak_flops.h over tiles: four accumulators hide the latency of a product. */
#include "kernel/peak_flops.h"
#include "kernel/simd/vec/tile.h"
#include "kernel/simd/vec/vec.h"

double VF_NAME(ses_peak_tiles_i8)(int64_t rounds)
{
    mt_set t;
    mt_shapes shapes = mt_block_shapes(2 * MT_ROWS);
    mt_configure(&t, &shapes);
    for (int64_t r = 0; r < rounds; r++) {
        mt_dot_i8(&t, MT_C00, MT_A0, MT_B0);
        mt_dot_i8(&t, MT_C01, MT_A0, MT_B1);
        mt_dot_i8(&t, MT_C10, MT_A1, MT_B0);
        mt_dot_i8(&t, MT_C11, MT_A1, MT_B1);
    }
    mt_release(&t);
    return 2.0 * 4 * MT_ROWS * VF_LANES * MT_BYTES * (double)rounds;
}

double VF_NAME(ses_peak_tiles_bf16)(int64_t rounds)
{
    mt_set t;
    mt_shapes shapes = mt_block_shapes(2 * MT_ROWS);
    mt_configure(&t, &shapes);
    for (int64_t r = 0; r < rounds; r++) {
        mt_dot_bf16(&t, MT_C00, MT_A0, MT_B0);
        mt_dot_bf16(&t, MT_C01, MT_A0, MT_B1);
        mt_dot_bf16(&t, MT_C10, MT_A1, MT_B0);
        mt_dot_bf16(&t, MT_C11, MT_A1, MT_B1);
    }
    mt_release(&t);
    return 2.0 * 4 * MT_ROWS * VF_LANES * (MT_BYTES / 2) * (double)rounds;
}
