/* Products of bf16 matrices with f32 sums, the inner loop of every kernel FAMILY_bf16.c.
 *
 * A is packed in blocks of MMA_ROWS rows: row i, column p is at mma_a_index(i, p, depth). B is packed in
 * panels of MMA_COLS columns, [depth / 2][width][2]: pairs of k for each column; the width of the last panel
 * is the rest of n rounded up to a multiple of MMA_LANES, filled with zeros. depth is k rounded up to a
 * multiple of MMA_DEPTH, filled with zeros in A and B.
 *
 *     mma m = mma_begin();         at the start of a chunk
 *     mma_block(&m, t, ldt, a, panel, width, depth, rows)      t[rows][width] = A panel, for a block of A
 *     mma_end(&m);                 at its end
 *     mma_ahead(&m, next, lines)   the next blocks prefetch this many cache lines per MMA_DEPTH, from next on
 *     mma_arrange(panel, width, depth)     turns a panel packed like this into the order that mma_block reads
 *
 * The sums of an element are in the order of k at any position in a block. Therefore the bits of a row depend
 * only on the row and on B. */
#ifndef SES_KERNEL_MMA_BF16_H
#define SES_KERNEL_MMA_BF16_H

#include "gemm_tile.h"
#include "kernel/simd/vec/vec_bf16.h"

/* Row stride of a row-major A: an odd number of whole cache lines, so that rows lie in different sets. */
static inline int64_t mma_row_stride(int64_t depth)
{
    enum { LINE = 32 };
    return ((depth + LINE - 1) / LINE | 1) * LINE;
}

#if defined SES_AMX || defined SES_PLAIN_TILES
#include "mma_tile.h"
#elif defined __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
#include "mma_matrix.h"
#else
#include "mma_dot.h"
#endif

/* The vector level below, for products with f32 operands. */
#if defined SES_VECTOR_LEVEL
#define VF_BASE(kernel) VF_NAME_(kernel, SES_VECTOR_LEVEL)
#elif defined __aarch64__
#define VF_BASE(kernel) VF_NAME_(kernel, neon)
#else
#define VF_BASE(kernel) VF_NAME_(kernel, avx512)
#endif

static inline int64_t mma_depth(int64_t k) { return tile_round_up(k, MMA_DEPTH); }

/* Width of the panel that begins at column j. */
static inline int64_t mma_width(int64_t n, int64_t j)
{
    return tile_min(MMA_COLS, tile_round_up(n - j, MMA_LANES));
}

#endif
