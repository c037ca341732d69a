/* Blocks of 128 threads that work on tiles of 64 rows, 16 per warp, with products on tensor cores. */
#ifndef SES_KERNEL_MMA_TILES_CUH
#define SES_KERNEL_MMA_TILES_CUH

#include "attention_mma.cuh"

enum { THREADS = 128, TILES = SIDE / 8 };

/* ---- tiles in shared memory: rows of DH + 8 numbers avoid bank conflicts ---- */

template <int DH> struct shape {
    enum { LD = DH + 8, TILE = SIDE * LD };
};

/* Rows first .. first + 63 of x; rows past n and columns past dim are zero. */
template <int DH>
__device__ static inline void load_tile(bf16 *to, const bf16 *x, int64_t row, int64_t first, int64_t n,
                                        int dim)
{
    enum { PACKS = DH / 8 };
    for (int c = threadIdx.x; c < SIDE * PACKS; c += THREADS) {
        int r = c / PACKS, d = c % PACKS * 8;
        bool in = first + r < n && d < dim;
        copy16(to + r * shape<DH>::LD + d, in ? x + (first + r) * row + d : x, in);
    }
}

/* The warp's rows of a tile. */
template <int DH> __device__ static inline const bf16 *own_rows(const bf16 *tile)
{
    return tile + threadIdx.x / WARP * 16 * shape<DH>::LD;
}

/* Stores the rows of a block's result, columns below dim. */
template <int DH>
__device__ static inline void store_rows(dst<bf16> to, const float c[DH / 8][4], int64_t first, int64_t n,
                                         int64_t at, int64_t row, int dim, const float by[2])
{
    int t = threadIdx.x % 4, g = threadIdx.x % WARP / 4, warp = threadIdx.x / WARP;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int64_t i = first + warp * 16 + g + 8 * h;
        if (i >= n) continue;
#pragma unroll
        for (int d = 0; d < DH / 8; d++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (d * 8 + 2 * t + e < dim)
                    store(to, at + i * row + d * 8 + 2 * t + e, c[d][2 * h + e] * by[h]);
    }
}

#endif
