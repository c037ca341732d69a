/* Block sizes of f32 products on CPUs: numbers that change the speed, never a bit of a result. */
#ifndef SES_KERNEL_BLOCKS_H
#define SES_KERNEL_BLOCKS_H

#include "cpu_caches.h"

/* See gemm_simd.c. 0: the default. */
typedef struct ses_blocks {
    int rows;        /* rows of A per chunk */
    int packed_rows; /* rows of A per chunk if B is packed in advance */
    int strip_rows;  /* rows of A per chunk if A is packed */
    int strip_cols;  /* columns of B per chunk if A is packed */
    bool far_memory; /* data outside the L2 cache arrives late: tiles prefetch the next panel of B */
} ses_blocks;

/* b with defaults instead of zeros, within the limits of the scratch memory. */
ses_blocks ses_blocks_complete(ses_blocks b);
/* Blocks for these caches; the default where a size is unknown. */
ses_blocks ses_blocks_of_caches(ses_cpu_caches c);

#endif
