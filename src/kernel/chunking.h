/* How kernels cut their work into chunks: by size alone, never by the number of threads, so that the
 * same numbers meet in the same order everywhere. And how they store a result. */
#ifndef SES_KERNEL_SPLIT_H
#define SES_KERNEL_SPLIT_H

#include "kernel.h"

enum {
    SES_CHUNK = 16384,   /* elements of a chunk: 64 KB of floats, some microseconds of work */
    SES_COL_BLOCK = 64,  /* columns of a chunk that runs down the rows */
    SES_MAX_PARTS = 256, /* partial sums of a reduction to one number, kept on the stack */
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

/* Rows of `cols` elements in one chunk. */
static inline int64_t ses_chunk_rows(int64_t cols) { return cols < SES_CHUNK ? SES_CHUNK / cols : 1; }

/* Size of the parts of a reduction: at most SES_MAX_PARTS of them. */
static inline int64_t ses_part_size(int64_t n)
{
    int64_t size = ses_chunks(n, SES_MAX_PARTS);
    return size > SES_CHUNK ? size : SES_CHUNK;
}

static inline void ses_put(ses_dst to, int64_t i, double v)
{
    to.data[i] = (ses_real)(to.accumulate ? to.data[i] + v : v);
}

/* The factor of what dropout keeps. */
static inline ses_real ses_drop_scale(double p) { return (ses_real)(p < 1 ? 1 / (1 - p) : 0); }

#endif
