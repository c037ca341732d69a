/* mma_bf16.h by matrix tiles: 2 x 2 tiles of 16 rows and 16 columns. */
#ifndef SES_KERNEL_MMA_TILE_H
#define SES_KERNEL_MMA_TILE_H

#include "kernel/simd/vec/tile.h"

#include <stdbool.h>

enum {
    MMA_ROWS = 2 * MT_ROWS,
    MMA_COLS = 32,
    MMA_LANES = 16,
    MMA_DEPTH = 32,
    MMA_A_BYTES = 1 << 20, /* size of a chunk's rows: half of the L2 cache of processors with AMX */
    MMA_MIN_ROWS =
        64, /* rows of a chunk: B comes from the L3 cache once per chunk; A should stay in the L2 */
    MMA_PACK_ROWS = 256, /* the same if the chunk packs B */
    MMA_CHUNKS = 1,      /* chunks per thread */
    MMA_FAR = 1,         /* data outside the L2 cache arrives late: prefetch it */
};

typedef struct mma {
    mt_set tiles;
    int64_t rows;     /* that the tiles are configured for; 0: not configured */
    const char *next; /* see mma_ahead */
    int64_t lines;
} mma;

/* A block of A is [depth / MMA_DEPTH][MMA_ROWS][MMA_DEPTH]: its tiles are read one after another. */
static inline int64_t mma_a_index(int64_t i, int64_t p, int64_t depth)
{
    return i / MMA_ROWS * MMA_ROWS * depth + p / MMA_DEPTH * MMA_ROWS * MMA_DEPTH + i % MMA_ROWS * MMA_DEPTH +
           p % MMA_DEPTH;
}

static inline mma mma_begin(void) { return (mma){ .rows = 0 }; }

static inline void mma_ahead(mma *m, const void *next, int64_t lines) { m->next = next, m->lines = lines; }

static inline void mma_end(mma *m)
{
    if (m->rows) mt_release(&m->tiles);
}

/* tall: more than MT_ROWS rows; wide: more than 16 columns */
VF_INLINE void mma_run(mma *m, float *t, int64_t ldt, const uint16_t *a, const uint16_t *panel, int64_t width,
                       int64_t depth, const bool tall, const bool wide)
{
    enum { SIZE = sizeof *a, COLS = MMA_LANES, LINE = 64 };
    const char *next = m->next;
    int64_t lda_bytes = MMA_DEPTH * SIZE, ldb_bytes = 2 * width * SIZE, ldt_bytes = ldt * (int64_t)sizeof *t;
    const uint16_t *low = a + MT_ROWS * MMA_DEPTH, *right = panel + 2 * COLS;
    mt_zero(&m->tiles, MT_C00);
    if (wide) mt_zero(&m->tiles, MT_C01);
    if (tall) mt_zero(&m->tiles, MT_C10);
    if (tall && wide) mt_zero(&m->tiles, MT_C11);
    for (int64_t k = 0; k < depth; k += MMA_DEPTH) {
        mt_load(&m->tiles, MT_B0, panel + k * width, ldb_bytes);
        mt_load(&m->tiles, MT_A0, a + k * MMA_ROWS, lda_bytes);
        mt_dot_bf16(&m->tiles, MT_C00, MT_A0, MT_B0);
        if (wide) mt_load(&m->tiles, MT_B1, right + k * width, ldb_bytes);
        if (wide) mt_dot_bf16(&m->tiles, MT_C01, MT_A0, MT_B1);
        if (tall) mt_load(&m->tiles, MT_A1, low + k * MMA_ROWS, lda_bytes);
        if (tall) mt_dot_bf16(&m->tiles, MT_C10, MT_A1, MT_B0);
        if (tall && wide) mt_dot_bf16(&m->tiles, MT_C11, MT_A1, MT_B1);
        for (int64_t l = 0; l < m->lines; l++, next += LINE) __builtin_prefetch(next, 0, 2);
    }
    mt_store(&m->tiles, MT_C00, t, ldt_bytes);
    if (wide) mt_store(&m->tiles, MT_C01, t + COLS, ldt_bytes);
    if (tall) mt_store(&m->tiles, MT_C10, t + MT_ROWS * ldt, ldt_bytes);
    if (tall && wide) mt_store(&m->tiles, MT_C11, t + MT_ROWS * ldt + COLS, ldt_bytes);
}

static inline void mma_block(mma *m, float *t, int64_t ldt, const uint16_t *a, const uint16_t *panel,
                             int64_t width, int64_t depth, int64_t rows)
{
    if (rows != m->rows) {
        mt_shapes shapes = mt_block_shapes(rows);
        mt_configure(&m->tiles, &shapes);
        m->rows = rows;
    }
    bool wide = width > MMA_LANES;
    if (rows > MT_ROWS && wide)
        mma_run(m, t, ldt, a, panel, width, depth, true, true);
    else if (rows > MT_ROWS)
        mma_run(m, t, ldt, a, panel, width, depth, true, false);
    else if (wide)
        mma_run(m, t, ldt, a, panel, width, depth, false, true);
    else
        mma_run(m, t, ldt, a, panel, width, depth, false, false);
}

/* Panels stay as they are packed. */
static inline void mma_arrange(uint16_t *panel, int64_t width, int64_t depth)
{
    (void)panel, (void)width, (void)depth;
}

#endif
