/* mma_bf16.h by matrix instructions (bfmmla): the register tile of matrix_tile.h. */
#ifndef SES_KERNEL_MMA_MATRIX_H
#define SES_KERNEL_MMA_MATRIX_H

#include "matrix_tile.h"

enum {
    MMA_ROWS = TILE_ROWS,
    MMA_COLS = TILE_COLS,
    MMA_LANES = VF_LANES,
    MMA_DEPTH = 4,
    MMA_A_BYTES = 384 << 10, /* size of a chunk's rows: part of the L2 cache */
    MMA_MIN_ROWS = 64,       /* rows of a chunk, if there are as many */
    MMA_PACK_ROWS = 64,      /* the same if the chunk packs B */
    MMA_CHUNKS = 3,          /* chunks per thread */
    MMA_FAR = 0,
};

#define mma_tile VF_NAME(ses_mma_tile)
extern tile_direct_fn *const mma_tile[TILE_ROWS][TILE_VECS]; /* by rows - 1 and vectors - 1, as tile_direct */

typedef struct mma {
    char unused;
} mma;

static inline int64_t mma_a_index(int64_t i, int64_t p, int64_t depth)
{
    return i * mma_row_stride(depth) + p;
}

static inline mma mma_begin(void) { return (mma){ 0 }; }
static inline void mma_end(mma *m) { (void)m; }
static inline void mma_ahead(mma *m, const void *next, int64_t lines) { (void)m, (void)next, (void)lines; }

/* Turns pairs of k into groups of four. */
static inline void mma_arrange(uint16_t *panel, int64_t width, int64_t depth)
{
    zip_steps(panel, width, depth / 2);
}

static inline void mma_block(mma *m, float *t, int64_t ldt, const uint16_t *a, const uint16_t *panel,
                             int64_t width, int64_t depth, int64_t rows)
{
    const void *pairs = a;
    (void)m;
    mma_tile[rows - 1][width / VF_LANES - 1](t, ldt, pairs, mma_row_stride(depth) / 2, panel, depth / 4);
}

#endif
