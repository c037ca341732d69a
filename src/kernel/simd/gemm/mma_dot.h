/* mma_bf16.h by dot products of pairs (vdpbf16ps): the register tile of gemm_tile.h with a pair in place of a
 * float. */
#ifndef SES_KERNEL_MMA_DOT_H
#define SES_KERNEL_MMA_DOT_H

enum {
    MMA_ROWS = TILE_ROWS,
    MMA_COLS = TILE_COLS,
    MMA_LANES = VF_LANES,
    MMA_DEPTH = 2,
    MMA_A_BYTES = 384 << 10, /* size of a chunk's rows: part of the L2 cache */
    MMA_MIN_ROWS = 64,       /* rows of a chunk, if there are as many */
    MMA_PACK_ROWS = 64,      /* the same if the chunk packs B */
    MMA_CHUNKS = 3,          /* chunks per thread */
    MMA_FAR = 0,
};

#define mma_dot VF_NAME(ses_mma_dot)
extern tile_direct_fn *const mma_dot[TILE_ROWS][TILE_VECS]; /* by rows - 1 and vectors - 1, as tile_direct */

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

static inline void mma_block(mma *m, float *t, int64_t ldt, const uint16_t *a, const uint16_t *panel,
                             int64_t width, int64_t depth, int64_t rows)
{
    const void *pairs = a;
    (void)m;
    mma_dot[rows - 1][width / VF_LANES - 1](t, ldt, pairs, mma_row_stride(depth) / 2, panel, depth / 2);
}

/* Panels stay as they are packed. */
static inline void mma_arrange(uint16_t *panel, int64_t width, int64_t depth)
{
    (void)panel, (void)width, (void)depth;
}

#endif
