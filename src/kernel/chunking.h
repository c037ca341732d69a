/* How CPU kernels partition work into chunks, and how they store results.
 * Chunk sizes depend on the problem size only, never on the number of threads, so every sum has the same
 * order on any number of threads. */
#ifndef SES_KERNEL_CHUNKING_H
#define SES_KERNEL_CHUNKING_H

#include "kernel.h"

enum {
    SES_CHUNK = 16384,      /* elements per chunk: 64 KB of floats, a few microseconds of work */
    SES_COL_BLOCK = 64,     /* columns per chunk of a sum over rows */
    SES_MAX_PARTIALS = 256, /* partial sums of a reduction to one number; they lie on the stack */
};

typedef struct ses_range {
    int64_t begin, end;
} ses_range;

static inline int64_t ses_chunks(int64_t n, int64_t size) { return (n + size - 1) / size; }

static inline ses_range ses_chunk(int64_t n, int64_t size, int64_t i)
{
    int64_t end = (i + 1) * size;
    return (ses_range){ i * size, end < n ? end : n };
}

/* Rows of `cols` elements per chunk. */
static inline int64_t ses_chunk_rows(int64_t cols) { return cols < SES_CHUNK ? SES_CHUNK / cols : 1; }

/* Elements per partial sum, such that there are at most SES_MAX_PARTIALS. */
static inline int64_t ses_partial_size(int64_t n)
{
    int64_t size = ses_chunks(n, SES_MAX_PARTIALS);
    return size > SES_CHUNK ? size : SES_CHUNK;
}

static inline void ses_dst_put(ses_dst to, int64_t i, double v)
{
    to.data[i] = (ses_real)(to.accumulate ? to.data[i] + v : v);
}

/* 1 / (1 - p): dropout scales the kept elements by it. */
static inline ses_real ses_drop_scale(double p) { return (ses_real)(p < 1 ? 1 / (1 - p) : 0); }

#endif
