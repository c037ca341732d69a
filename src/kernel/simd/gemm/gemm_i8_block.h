/* A block of an int8 product: rows of A times a panel of B, scaled, with bias and GELU. One function per
 * height and width of the register tile; see gemm_i8_tile.h. */
#ifndef SES_KERNEL_GEMM_I8_BLOCK_H
#define SES_KERNEL_GEMM_I8_BLOCK_H

#include "gemm_i8_tile.h"
#include "kernel/simd/vec/vecmath.h"

/* Rows of A with their scales, columns of B with scales and zero-point corrections. */
typedef struct i8_block {
    const uint8_t *a; /* [rows][4 quads] */
    const float *a_scale;
    const int8_t *b, *next; /* next: see tile_i8_sum */
    const float *b_scale;
    const int32_t *zp_correction;
    int64_t quads;
    int64_t ldt;       /* row stride of the result */
    const float *bias; /* NULL: added later */
    bool gelu;         /* apply GELU after the bias */
    int dot;           /* see dot_kind */
    bool stream;       /* the panel is read only once */
} i8_block;

/* Sums times row scale times column scale, plus bias. scale: the product of both. */
VF_INLINE vf i8_scaled(vi sum, vf scale, vf bias) { return vf_add(vf_mul(vf_from_vi(sum), scale), bias); }

/* t = sum * row scale * column scale + bias */
VF_INLINE void i8_tile_run(float *t, const i8_block *in, const int rows, const int vecs, const int dot,
                           const bool stream)
{
    vi c[TILE_ROWS][TILE_VECS];
    tile_i8_sum(c, in->a, 4 * in->quads, in->b, in->next, in->zp_correction, in->quads, rows, vecs, dot,
                stream);
    /* loaded before t is written: the compiler must assume that they overlap */
    vf by[TILE_VECS], bias[TILE_VECS];
    TILE_UNROLL for (int v = 0; v < vecs; v++)
    {
        by[v] = vf_load(in->b_scale + v * VF_LANES);
        bias[v] = in->bias ? vf_load(in->bias + v * VF_LANES) : vf_zero();
    }
    const float *a_scale = in->a_scale;
    int64_t ldt = in->ldt;
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        vf row = vf_set1(a_scale[i]);
        TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            vf_store(t + i * ldt + v * VF_LANES, i8_scaled(c[i][v], vf_mul(row, by[v]), bias[v]));
        }
    }
}

typedef void i8_tile_fn(float *t, const i8_block *in);

#define TILE_DIRECT(name, form, rows, vecs)                               \
    static void name##_##rows##x##vecs(float *t, const i8_block *in)      \
    {                                                                     \
        i8_tile_run(t, in, rows, vecs, (form) % STREAM, (form) / STREAM); \
    }
enum { STREAM = 3 }; /* added to PLAIN, DOT or MATRIX */
TILE_ALL(dot, DOT)
TILE_ALL(dot_stream, DOT + STREAM)
#ifdef __AVX512VNNI__
static i8_tile_fn *const i8_tile[2 * STREAM][TILE_ROWS][TILE_VECS] = { [DOT] = TILE_TABLE(dot),
                                                                       [DOT + STREAM] =
                                                                           TILE_TABLE(dot_stream) };
#else
TILE_ALL(plain, PLAIN)
TILE_ALL(plain_stream, PLAIN + STREAM)
#ifdef VI_MATRIX
TILE_ALL(matrix, MATRIX)
TILE_ALL(matrix_stream, MATRIX + STREAM)
#endif
static i8_tile_fn *const i8_tile[2 * STREAM][TILE_ROWS][TILE_VECS] = {
    [PLAIN] = TILE_TABLE(plain),
    [DOT] = TILE_TABLE(dot),
    [PLAIN + STREAM] = TILE_TABLE(plain_stream),
    [DOT + STREAM] = TILE_TABLE(dot_stream),
#ifdef VI_MATRIX
    [MATRIX] = TILE_TABLE(matrix),
    [MATRIX + STREAM] = TILE_TABLE(matrix_stream),
#endif
};
#endif

/* Stores a tile of whole vectors through GELU. */
VF_INLINE void store_gelu(float *c, int64_t ldc, const float *tile, int64_t rows, const int vecs)
{
    for (int64_t r = 0; r < rows; r++) TILE_UNROLL for (int v = 0; v < vecs; v++)
        {
            vf x = vf_load(tile + r * TILE_COLS + v * VF_LANES);
            vf_store(c + r * ldc + v * VF_LANES, vf_gelu_approx(x));
        }
}

/* t = the product of at most TILE_ROWS rows and a panel of `vecs` vectors. */
static void i8_vector_block(float *t, const i8_block *in, int64_t rows, int64_t vecs)
{
    i8_tile_fn *run = i8_tile[in->dot + (in->stream ? STREAM : 0)][rows - 1][vecs - 1];
    if (!in->gelu) {
        run(t, in);
        return;
    }
    float tile[TILE_ROWS * TILE_COLS];
    i8_block before = *in; /* the activation */
    before.ldt = TILE_COLS;
    run(tile, &before);
    if (vecs == TILE_VECS)
        store_gelu(t, in->ldt, tile, rows, TILE_VECS);
    else
        store_gelu(t, in->ldt, tile, rows, (int)vecs);
}

#endif
