/* The register tile of all matrix products, and the layouts it reads. Include a vec_*.h first.
 *
 * B is packed in panels of TILE_COLS columns, [k][width]; the width of the last panel is the rest of n
 * rounded up to whole vectors, filled with zeros. A is read in place, or packed in strips [k][TILE_ROWS].
 * Each element of the product is one chain of fused multiply-adds in the order of k, at any position in a
 * tile. Therefore the bits of a row depend only on the row and on B. */
#ifndef SES_KERNEL_GEMM_TILE_H
#define SES_KERNEL_GEMM_TILE_H

#include "kernel/simd/vec/vec_loop.h"

/* TILE_ROWS * TILE_VECS accumulators, one row of B and one element of A must fit into the registers. A file
 * whose panels have another width defines both before. */
#if defined TILE_ROWS
#elif VF_LANES == 16
#define TILE_ROWS 8 /* 24 of 32 registers */
#define TILE_VECS 3
#else
#define TILE_ROWS 6 /* 12 of 16 registers */
#define TILE_VECS 2
#endif
enum { TILE_COLS = TILE_VECS * VF_LANES };

static inline int64_t tile_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tile_round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Width of the panel that begins at column j. */
static inline int64_t panel_width(int64_t n, int64_t j)
{
    return tile_min(TILE_COLS, tile_round_up(n - j, VF_LANES));
}

/* t[rows][cols] = rows of A times a panel.
 * tile_direct[rows - 1][vecs - 1]: A in place, A(i, p) = a[i * a_row + p].
 * tile_strip[vecs - 1]: A packed in a strip of TILE_ROWS rows.
 * tile_half[dtype == SES_BF16]: tile_direct with a panel of 16-bit numbers. */
typedef void tile_direct_fn(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, int64_t k);
typedef void tile_strip_fn(float *t, int64_t ldt, const float *a, const float *b, int64_t k);

#define tile_direct VF_NAME(ses_tile_direct)
#define tile_half VF_NAME(ses_tile_half)
#define tile_strip VF_NAME(ses_tile_strip)
extern tile_direct_fn *const tile_direct[TILE_ROWS][TILE_VECS], *const tile_half[2][TILE_ROWS][TILE_VECS];
extern tile_strip_fn *const tile_strip[TILE_VECS];

/* Variants for processors whose memory is far from the L2 cache. tile_next also prefetches part of the next
 * panel: tile_next_bytes(k) from `next` on. The bits are the same. */
#if VF_LANES == 16
#define TILE_HAS_NEXT 1
typedef void tile_next_fn(float *t, int64_t ldt, const float *a, int64_t a_row, const void *b, int64_t k,
                          const void *next);
#define tile_next VF_NAME(ses_tile_next)
#define tile_near_strip VF_NAME(ses_tile_near_strip)
extern tile_next_fn *const tile_next[TILE_ROWS][TILE_VECS];
extern tile_strip_fn *const tile_near_strip[TILE_VECS];
#else
#define TILE_HAS_NEXT 0
#endif
enum { TILE_NEXT_LINES = 2 };
static inline int64_t tile_next_bytes(int64_t k) { return k / 4 * TILE_NEXT_LINES * 64; }

#endif
