/* Packing of int8 matrices; see gemm_i8_tile.h for the layout. The including file defines QUAD_STEP, see
 * gemm_i8.h. */
#ifndef SES_KERNEL_GEMM_I8_PACK_H
#define SES_KERNEL_GEMM_I8_PACK_H

#include "gemm_i8_tile.h"
#include "gemm_pack.h"

/* Start of a packed B, followed by scale[width], zp_correction[width], panels */
typedef struct packed_header {
    int32_t dot;    /* dot_kind of the processor that packed it */
    int32_t sparse; /* not 0: see gemm_i8_sparse.h */
    int32_t pad[14];
} packed_header;

typedef struct packed_panels {
    int dot;
    const float *scale;           /* scale per column */
    const int32_t *zp_correction; /* per column, see gemm_i8_tile.h */
    const int8_t *panel;
} packed_panels;

static packed_panels panels_of(const void *packed, int64_t n)
{
    const packed_header *h = packed;
    int64_t width = tile_round_up(n, VF_LANES);
    const float *scale = (const float *)(const void *)(h + 1);
    const int32_t *zp_correction = (const int32_t *)(const void *)(scale + width);
    return (packed_panels){ h->dot, scale, zp_correction, (const int8_t *)(zp_correction + width) };
}

/* Quads of a panel. */
static int64_t panel_quads(int64_t k) { return tile_round_up(ses_quad_count(k), QUAD_STEP); }

int64_t VF_NAME(ses_k_gemm_i8_pack_size)(int64_t n, int64_t k)
{
    return (int64_t)sizeof(packed_header) + tile_round_up(n, VF_LANES) * (8 + 4 * panel_quads(k));
}

/* Source of the panels: floats to quantize, or int8 numbers with one scale per column. */
typedef struct packing {
    float *scale; /* NULL: not written */
    int32_t *zp_correction;
    int8_t *panel;
    const float *b;
    const int8_t *bytes; /* NULL: use b */
    const float *bytes_scale;
    int64_t b_row, b_col, n, k;
    int dot; /* see dot_kind */
} packing;

/* Column j as int8, padded with zeros to a multiple of 4. */
static void load_column(const packing *c, int64_t j, int8_t *q)
{
    int64_t p = 0;
    for (int64_t i = c->k; i < 4 * ses_quad_count(c->k); i++) q[i] = 0;
    if (c->bytes && c->b_row == 1) memcpy(q, c->bytes + j * c->b_col, (size_t)c->k);
    if (c->bytes) {
        for (; c->b_row != 1 && p < c->k; p++) q[p] = c->bytes[p * c->b_row + j * c->b_col];
        return;
    }
    const float *b = c->b + j * c->b_col;
    float max_abs = c->b_row == 1 ? max_abs_of(b, c->k) : 0;
    for (; c->b_row != 1 && p < c->k; p++) max_abs = fmaxf(max_abs, fabsf(b[p * c->b_row]));
    float by = quant_factor(max_abs);
    if (c->scale) c->scale[j] = max_abs / 127;
    if (c->b_row == 1) quantize_signed(q, b, c->k, c->k, by);
    for (p = 0; c->b_row != 1 && p < c->k; p++) q[p] = (int8_t)rintf(b[p * c->b_row] * by);
}

/* int values of VF_LANES adjacent columns in row p, for a B with unit column stride. */
VF_INLINE vi load_row(const packing *c, int64_t p, int64_t j, vf by)
{
    if (c->bytes) return vi_load_bytes(c->bytes + p * c->b_row + j);
    return vi_from_vf(vf_mul(vf_load(c->b + p * c->b_row + j), by));
}

/* Packs VF_LANES columns of such a B, row by row. */
static void pack_rows(const packing *c, int8_t *to, int64_t width, int64_t j)
{
    vf by = vf_zero();
    if (!c->bytes) {
        vf max_abs = vf_zero();
        for (int64_t p = 0; p < c->k; p++)
            max_abs = vf_max(vf_abs(vf_load(c->b + p * c->b_row + j)), max_abs);
        by = quant_factors(max_abs);
        vf_store(c->scale + j, vf_div(max_abs, vf_set1(127)));
    }
    for (int64_t p = 0; p < c->k; p += 4, to += 4 * width) {
        vi quad = vi_set1(0);
        for (int64_t i = tile_min(4, c->k - p); i-- > 0;)
            quad = vi_add(vi_shl(quad, 8), vi_and(load_row(c, p + i, j, by), vi_set1(255)));
        vi_store(to, quad);
    }
}

/* Packs VF_LANES columns, of which n exist, from contiguous columns: a transpose of groups of four bytes,
 * moved as 32-bit elements. */
static void pack_columns(const packing *c, int8_t *to, int64_t width, int64_t j, int64_t n, int8_t *buffer)
{
    int64_t quads = ses_quad_count(c->k), row = 4 * quads;
    const int8_t *from = buffer;
    if (c->bytes && c->b_row == 1 && c->k % 4 == 0 && c->b_col % 4 == 0)
        from = c->bytes + j * c->b_col, row = c->b_col;
    else
        for (int64_t i = 0; i < n; i++) load_column(c, j + i, buffer + i * row);
    transpose_vector((float *)(void *)to, width, (const float *)(const void *)from, row / 4, n, quads);
}

_Static_assert(VF_LANES *SES_GEMM_I8_MAX_K <= SES_SCRATCH_BYTES, "scratch");

static void pack_chunk(void *ctx, int64_t index, void *scratch)
{
    const packing *c = ctx;
    int64_t begin = index * TILE_COLS, width = panel_width(c->n, begin), quads = ses_quad_count(c->k),
            depth = panel_quads(c->k);
    int8_t *panel = c->panel + begin * 4 * depth;
    memset(panel + quads * 4 * width, 0, (size_t)((depth - quads) * 4 * width));
    for (int64_t v = 0; v < width; v += VF_LANES) {
        int64_t j = begin + v, n = tile_min(VF_LANES, c->n - j);
        for (int64_t i = c->bytes ? 0 : n; i < VF_LANES; i++)
            c->scale[j + i] = i < n ? c->bytes_scale[j + i] : 0;
        if (c->b_col == 1 && n == VF_LANES)
            pack_rows(c, panel + 4 * v, width, j);
        else
            pack_columns(c, panel + 4 * v, width, j, n, scratch);
        vi_store(c->zp_correction + j, zp_correction_of(panel + 4 * v, width, quads));
    }
    if (c->dot == MATRIX) zip_panel(panel, width, quads);
}

static void pack_b(ses_exec *x, void *packed, packing c)
{
    packed_header *h = packed;
    int64_t width = tile_round_up(c.n, VF_LANES);
    *h = (packed_header){ .dot = dot_kind() };
    c.dot = h->dot;
    c.scale = (float *)(void *)(h + 1);
    c.zp_correction = (int32_t *)(void *)(c.scale + width);
    c.panel = (int8_t *)(c.zp_correction + width);
    ses_parallel_for(x->pool, (c.n + TILE_COLS - 1) / TILE_COLS, pack_chunk, &c);
}

void VF_NAME(ses_k_gemm_i8_pack)(ses_exec *x, void *packed, const float *b, int64_t b_row, int64_t b_col,
                                 int64_t n, int64_t k)
{
    pack_b(x, packed, (packing){ .b = b, .b_row = b_row, .b_col = b_col, .n = n, .k = k });
}

void VF_NAME(ses_k_gemm_i8_pack_quantized)(ses_exec *x, void *packed, const int8_t *b, const float *scale,
                                           int64_t b_row, int64_t b_col, int64_t n, int64_t k)
{
    pack_b(x, packed,
           (packing){ .bytes = b, .bytes_scale = scale, .b_row = b_row, .b_col = b_col, .n = n, .k = k });
}

#endif
