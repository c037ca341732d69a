/* int8 matrix products over vectors; see gemm_i8_tile.h for the register tile and the layout of B. */
#include "gemm_i8_block.h"

enum {
    BLOCK_ROWS = TILE_ROWS,
    CHUNK_WORK = 1 << 20,
    CHUNKS = 0,
    QUAD_STEP = 1,
    EPILOGUE_ROWS = 32,
    EPILOGUE_BYTES = SES_SCRATCH_BYTES,
    EPILOGUE_STEP = 1,
    EPILOGUE_CHUNKS = 2,
    SHARED_ROWS = 2 * TILE_ROWS,
    COPY_QUADS = 0,
};

typedef struct block_state {
    char unused;
} block_state;
static void blocks_begin(block_state *s) { s->unused = 0; }
static void blocks_end(block_state *s) { (void)s; }
static void blocks_finish(block_state *s) { (void)s; }
static void blocks_rows(block_state *s, void *to, const uint8_t *q, int64_t rows, int64_t quads,
                        int64_t panels)
{
    (void)s, (void)to, (void)q, (void)rows, (void)quads, (void)panels;
}

/* Blocks have about the same number of rows. */
static int64_t block_rows(int64_t left, bool dot)
{
    return ses_chunks(left, ses_chunks(left, dot ? TILE_ROWS : PLAIN_ROWS));
}

static void block_run(block_state *s, float *t, const i8_block *in, int64_t rows, int64_t vecs)
{
    (void)s;
    i8_vector_block(t, in, rows, vecs);
}

#define SPARSE_SHARE 0.55 /* 1.3 times as fast at 0.5; with few rows at 0.4 */
#include "gemm_i8.h"
