/* Matrix tiles of the level that this translation unit is compiled for: two-dimensional registers of 16 rows
 * of 64 bytes, and products of them. Kernels FAMILY_tile.c are written once over the names below; tile_amx.h
 * implements them by AMX instructions, tile_plain.h in plain C for tests on any machine.
 *
 *     mt_set t;                                  the eight tiles of this thread, numbered 0 .. 7
 *     mt_configure(&t, &shapes)                  sets rows and bytes per row of each tile, zeroes all tiles
 *     mt_release(&t)                             ends the use of tiles; do it before a chunk returns, because
 *                                                a thread with tiles in use takes longer to switch
 *     mt_zero(&t, c)                             tile c = 0
 *     mt_load(&t, a, p, stride)                  row i of tile a = the bytes at p + i stride
 *     mt_load_once(&t, a, p, stride)             the same, for data that need not stay in the L1 cache
 *     mt_store(&t, c, p, stride)                 and back
 *     mt_dot_i8(&t, c, a, b)                   c += a b: bytes of a and b, int32 sums
 *     mt_dot_bf16(&t, c, a, b)                   c += a b: bf16 numbers, f32 sums
 *
 * Rows that do not lie within a cache line take twice the time: align arrays to MT_BYTES.
 *
 * Tile numbers are integer constants, strides are bytes. Shapes: c is [m][n] of 32 bits, a is [m][k] of bytes
 * or bf16, b is [k / 4][n][4] of bytes or [k / 2][n][2] of bf16, with at most m = 16, n = 16, k = 64 or 32.
 * The rows of a and c must agree, and so must four times the rows of b and the bytes per row of a.
 *
 * mt_dot_i8 reads the bytes of a as quantized rows: unsigned if SES_I8_ZERO is 128, else signed. The bytes of
 * b are signed. Sums are exact.
 * mt_dot_bf16 adds the products of even and of odd k in two chains of fused multiply-adds that start at 0,
 * adds both sums, and adds the result to c. Denormal numbers count as 0, as operands and as results. */
#ifndef SES_KERNEL_TILE_H
#define SES_KERNEL_TILE_H

#include "kernel/kernel.h"

enum { MT_TILES = 8, MT_ROWS = 16, MT_BYTES = 64 };

/* Shapes of the tiles, as the instruction ldtilecfg reads them. */
typedef struct mt_shapes {
    uint8_t palette, start_row, unused[14];
    uint16_t bytes[16]; /* bytes per row of each tile */
    uint8_t rows[16];
} mt_shapes;

_Static_assert(sizeof(mt_shapes) == 64, "layout of ldtilecfg");

/* A block of 2 x 2 tiles: C = A B with up to 32 rows and 32 columns. */
enum { MT_C00, MT_C01, MT_C10, MT_C11, MT_A0, MT_A1, MT_B0, MT_B1 };

/* Shapes for such a block with `rows` rows, 1 .. 32. If rows is at most 16, the tiles C10, C11 and A1 have
 * one row and must not be used. */
static inline mt_shapes mt_block_shapes(int64_t rows)
{
    mt_shapes s = { .palette = 1 };
    uint8_t first = (uint8_t)(rows < MT_ROWS ? rows : MT_ROWS),
            second = (uint8_t)(rows > MT_ROWS ? rows - MT_ROWS : 1);
    for (int i = 0; i < MT_TILES; i++) s.bytes[i] = MT_BYTES;
    s.rows[MT_C00] = s.rows[MT_C01] = s.rows[MT_A0] = first;
    s.rows[MT_C10] = s.rows[MT_C11] = s.rows[MT_A1] = second;
    s.rows[MT_B0] = s.rows[MT_B1] = MT_ROWS;
    return s;
}

/* Shapes for two left operands A0 and A1 with the same rows, 1 .. 16. */
static inline mt_shapes mt_row_shapes(int64_t rows)
{
    mt_shapes s = mt_block_shapes(rows);
    s.rows[MT_C10] = s.rows[MT_C11] = s.rows[MT_A1] = (uint8_t)rows;
    return s;
}

/* Compilers have different names for AMX; the build defines SES_AMX with the flags of the level. */
#if (defined __AMX_TILE__ || defined __AMXTILE__) && !defined SES_AMX
#error "compiled for AMX, but SES_AMX is not defined: the tiles would be plain C"
#endif
#ifdef SES_AMX
#include "tile_amx.h"
#else
#include "tile_plain.h"
#define mt_set mt_plain_set
#define mt_configure mt_plain_configure
#define mt_release mt_plain_release
#define mt_zero mt_plain_zero
#define mt_load mt_plain_load
#define mt_load_once mt_plain_load
#define mt_store mt_plain_store
#define mt_dot_i8 mt_plain_dot_i8
#define mt_dot_bf16 mt_plain_dot_bf16
#endif

#endif
