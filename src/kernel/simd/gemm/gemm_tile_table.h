/* One function per tile height and width, and the table of them. The including file defines TILE_DIRECT(name,
 * form, rows, vecs), which expands to the function name_ROWSxVECS. */
#ifndef SES_KERNEL_GEMM_TILE_TABLE_H
#define SES_KERNEL_GEMM_TILE_TABLE_H

#include "gemm_tile.h"

#define TILE_PRAGMA(text) _Pragma(#text)
#define TILE_UNROLL TILE_PRAGMA(GCC unroll 16)

#if TILE_VECS == 2
#define TILE_WIDTHS(name, form, rows) TILE_DIRECT(name, form, rows, 1) TILE_DIRECT(name, form, rows, 2)
#define TILE_NAMES(name, rows)               \
    {                                        \
        name##_##rows##x1, name##_##rows##x2 \
    }
#else
#define TILE_WIDTHS(name, form, rows) \
    TILE_DIRECT(name, form, rows, 1) TILE_DIRECT(name, form, rows, 2) TILE_DIRECT(name, form, rows, 3)
#define TILE_NAMES(name, rows)                                  \
    {                                                           \
        name##_##rows##x1, name##_##rows##x2, name##_##rows##x3 \
    }
#endif

#define TILE_TWO(name, form, a, b) TILE_WIDTHS(name, form, a) TILE_WIDTHS(name, form, b)
#define TILE_TWO_NAMES(name, a, b) TILE_NAMES(name, a), TILE_NAMES(name, b)

#define TILE_SIX(name, form) TILE_TWO(name, form, 1, 2) TILE_TWO(name, form, 3, 4) TILE_TWO(name, form, 5, 6)
#define TILE_SIX_NAMES(name) \
    TILE_TWO_NAMES(name, 1, 2), TILE_TWO_NAMES(name, 3, 4), TILE_TWO_NAMES(name, 5, 6)

#if TILE_ROWS == 6
#define TILE_ALL(name, form) TILE_SIX(name, form)
#define TILE_TABLE(name)     \
    {                        \
        TILE_SIX_NAMES(name) \
    }
#else
#define TILE_ALL(name, form) TILE_SIX(name, form) TILE_TWO(name, form, 7, 8)
#define TILE_TABLE(name)                                 \
    {                                                    \
        TILE_SIX_NAMES(name), TILE_TWO_NAMES(name, 7, 8) \
    }
#endif

#endif
