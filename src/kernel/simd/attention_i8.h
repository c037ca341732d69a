/* int8 attention; kernels.def specifies the quantization. A chunk is a block of queries of one head of one
 * sequence: it quantizes and packs keys and values, then processes a few queries at a time. All sums are
 * integer sums, so the partitioning does not change any bit. The including file defines the products:
 *
 *     enum { BLOCK_QUERIES, KEY_QUADS, KEY_ROOM, VALUE_BYTES, PROB_BYTES };
 *         queries at a time; the quads of a packed key are a multiple of KEY_QUADS; packed values and
 *         probabilities have room for a multiple of KEY_ROOM keys; bytes of a packed value, of a probability
 *     pack_value_rows, clear_values, attend_chunk: see below
 */
#ifndef SES_KERNEL_ATTENTION_I8_H
#define SES_KERNEL_ATTENTION_I8_H

#include "kernel/attention_chunking.h"
#include "kernel/parallel_items.h"
#include "kernel/simd/gemm/gemm_i8_tile.h"
#include "kernel/simd/gemm/gemm_pack.h"
#include "kernel/simd/vec/vecmath.h"

#include <float.h>

enum { QUERIES_I8 = 256, LINE = 16 }; /* queries per chunk; floats per cache line */

/* A chunk; the arrays lie in scratch memory. */
typedef struct i8_chunk {
    const ses_attn *a;
    ses_attn_seq_head part;
    int dot;                /* see dot_kind */
    int64_t i, n;           /* queries of the chunk: first, count */
    int64_t width;          /* keys rounded up to whole vectors */
    int64_t room;           /* keys rounded up to KEY_ROOM, for values and probabilities */
    int64_t quads, depth;   /* groups of four columns per head; of a packed key */
    int8_t *keys;           /* panels, see gemm_i8_tile.h */
    int32_t *zp_correction; /* [width], see gemm_i8_tile.h */
    float *k_scale;         /* [width]: scale of each key, times the score scale and log2(e) */
    float *mask;            /* [width]: 0 for a key, -infinity past the last key */
    void *values;           /* packed by pack_value_rows */
    float *weight;    /* [width]: max |v| / top * SES_ATTN_I8_PROB_SCALE of each key; 0 past the last key */
    float top;        /* largest magnitude of all values */
    const uint8_t *q; /* [n][4 quads] */
    float *q_scale;   /* [n], rounded up to whole vectors */
    float *scores;    /* [BLOCK_QUERIES][width] */
    void *probs;      /* [BLOCK_QUERIES][room] */
} i8_chunk;

enum {
    WIDTH_I8 = (SES_ATTN_I8_MAX_KEYS + KEY_ROOM - 1) / KEY_ROOM * KEY_ROOM,
    DIM_I8 = SES_ATTN_I8_MAX_DIM + 4 * KEY_QUADS + 2 * VF_LANES, /* bound of a row of keys or values */
};

_Static_assert(WIDTH_I8 *DIM_I8 *(1 + VALUE_BYTES) + WIDTH_I8 * 16 +
                       BLOCK_QUERIES * WIDTH_I8 * (4 + PROB_BYTES) + QUERIES_I8 * (SES_ATTN_I8_MAX_DIM + 4) <=
                   SES_SCRATCH_BYTES,
               "scratch");

/* Packs the rows of values from key j on, of which `present` exist, at most VF_LANES: floats v, or quantized
 * rows q if v is NULL. by: factors from floats to int8. */
VF_INLINE void pack_value_rows(const i8_chunk *f, const float *v, const uint8_t *q, const float *by,
                               int64_t j, int64_t present);
/* Fills the room of values that pack_value_rows does not fill. */
VF_INLINE void clear_values(const i8_chunk *f);
/* Computes all queries of the chunk. */
static void attend_chunk(const i8_chunk *f);

/* Fills a struct in place instead of returning one: copying fields that were just stored stalls. */
static void place_scratch(i8_chunk *f, char *scratch)
{
    int64_t ld = tile_round_up(f->a->dim, 2 * VF_LANES);
    f->values = scratch;
    f->zp_correction = (int32_t *)(void *)(scratch + f->room * ld * VALUE_BYTES);
    f->k_scale = (float *)(void *)(f->zp_correction + f->width);
    f->mask = f->k_scale + f->width;
    f->weight = f->mask + f->width;
    f->q_scale = f->weight + f->width;
    f->scores = f->q_scale + QUERIES_I8;
    f->probs = f->scores + BLOCK_QUERIES * f->width;
    f->keys = (int8_t *)f->probs + BLOCK_QUERIES * f->room * PROB_BYTES;
}

/* Rows that are already quantized, from token t of the head on, and their largest magnitudes. */
static const uint8_t *i8_rows_at(const i8_chunk *f, ses_i8_rows x, const int32_t *cu, int64_t t)
{
    return x.q + (f->part.head * cu[f->a->seqs] + t) * 4 * f->quads;
}
static const float *max_abs_at(const i8_chunk *f, ses_i8_rows x, const int32_t *cu, int64_t t)
{
    return x.scale + f->part.head * cu[f->a->seqs] + t;
}

/* ---- quantizing and packing ---- */

/* Packs VF_LANES quantized keys, of which `present` exist; returns their largest magnitudes. */
static vf pack_i8_keys(const i8_chunk *f, int8_t *panel, int64_t width, int64_t j, int64_t present)
{
    const void *q = i8_rows_at(f, f->a->k_i8, f->a->cu_seqlens_k, f->part.k0 + j);
    transpose_vector((float *)(void *)panel, width, q, f->quads, present, f->quads);
    for (int64_t p = 0; p < f->quads; p++, panel += 4 * width) /* subtracts the zero point from each byte */
        vi_store(panel, vi_xor(vi_load(panel), vi_set1((int32_t)(SES_I8_ZERO * 0x01010101u))));
    return vf_get(max_abs_at(f, f->a->k_i8, f->a->cu_seqlens_k, f->part.k0 + j), present);
}

/* Quantizes and packs VF_LANES float keys; returns their largest magnitudes. */
static vf pack_float_keys(const i8_chunk *f, int8_t *panel, int64_t width, int64_t j, int64_t present)
{
    const ses_attn *a = f->a;
    const float *k = a->k + (f->part.k0 + j) * a->k_row + f->part.head * ses_attn_head_stride(a->k_head, a);
    float by[VF_LANES];
    int64_t row = 4 * f->quads;
    int8_t buffer[VF_LANES * SES_ATTN_I8_MAX_DIM];
    vf max_abs = max_abs_rows(k, a->k_row, present, a->dim);
    vf_store(by, quant_factors(max_abs));
    for (int64_t i = 0; i < present; i++)
        quantize_signed(buffer + i * row, k + i * a->k_row, a->dim, row, by[i]);
    transpose_vector((float *)(void *)panel, width, (const float *)(const void *)buffer, f->quads, present,
                     f->quads);
    return max_abs;
}

static void pack_keys(const i8_chunk *f)
{
    const ses_attn *a = f->a;
    vf unit = vf_set1(a->scale * 1.44269504f / 127); /* e^x = 2^(x log2 e) */
    for (int64_t j = 0; j < f->width; j += VF_LANES) {
        int64_t present = tile_min(VF_LANES, f->part.len_k - j);
        int64_t first = j / TILE_COLS * TILE_COLS, width = panel_width(f->width, first);
        int8_t *panel = f->keys + first * 4 * f->depth + 4 * (j - first);
        for (int64_t p = f->quads; p < f->depth; p++) vi_store(panel + 4 * width * p, vi_set1(0));
        vf max_abs = a->k_i8.q ? pack_i8_keys(f, panel, width, j, present)
                               : pack_float_keys(f, panel, width, j, present);
        vf_store(f->k_scale + j, vf_mul(max_abs, unit));
        vf_store(f->mask + j, vf_pad(vf_zero(), vf_set1(-INFINITY), present));
        vi_store(f->zp_correction + j, zp_correction_of(panel, width, f->quads));
        if (f->dot == MATRIX && j + VF_LANES == first + width)
            zip_panel(f->keys + first * 4 * f->depth, width, f->quads);
    }
}

/* Quantizes the queries to `buffer`, unless they are already quantized. */
static void quantize_queries(i8_chunk *f, uint8_t *buffer)
{
    const ses_attn *a = f->a;
    int64_t first = f->part.q0 + f->i;
    f->q = a->q_i8.q ? i8_rows_at(f, a->q_i8, a->cu_seqlens_q, first) : buffer;
    const float *q =
        a->q_i8.q ? NULL : a->q + first * a->q_row + f->part.head * ses_attn_head_stride(a->q_head, a);
    for (int64_t i = 0; i < f->n; i += VF_LANES) {
        int64_t present = tile_min(VF_LANES, f->n - i);
        vf max_abs = q ? max_abs_rows(q + i * a->q_row, a->q_row, present, a->dim)
                       : vf_get(max_abs_at(f, a->q_i8, a->cu_seqlens_q, first + i), present);
        /* avoids 0 times infinity */
        vf scale = vf_max(vf_set1(FLT_MIN), vf_mul(max_abs, vf_set1(1.0f / 127)));
        vf_store(f->q_scale + i, scale);
        float by[VF_LANES];
        vf_store(by, quant_factors(max_abs));
        for (int64_t r = i; q && r < i + present; r++)
            quantize_bytes(buffer + r * 4 * f->quads, q + r * a->q_row, a->dim, 4 * f->quads, by[r - i]);
    }
}

/* int values of a row from column d on, from floats or from quantized bytes. */
VF_INLINE vi value_of(const i8_chunk *f, const float *x, const uint8_t *q, int64_t d, float by)
{
    int64_t left = f->a->dim - d;
    if (!q) return vi_from_vf(vf_mul(vf_get(x + d, left), vf_set1(by)));
    uint8_t some[VF_LANES] = { 0 };
    if (left < VF_LANES) q = memcpy(some, q + d, (size_t)left), d = 0;
    return vi_load_quantized(q + d);
}

static void pack_values(i8_chunk *f)
{
    const ses_attn *a = f->a;
    bool quantized = a->k_i8.q;
    for (int64_t j = 0; j < f->width; j += VF_LANES) {
        int64_t present = tile_min(VF_LANES, f->part.len_k - j), t = f->part.k0 + j;
        const float *v =
            quantized ? NULL : a->v + t * a->v_row + f->part.head * ses_attn_head_stride(a->v_head, a);
        const uint8_t *q = quantized ? i8_rows_at(f, a->v_i8, a->cu_seqlens_k, t) : NULL;
        vf max_abs = quantized ? vf_get(max_abs_at(f, a->v_i8, a->cu_seqlens_k, t), present)
                               : max_abs_rows(v, a->v_row, present, a->dim);
        float by[VF_LANES];
        vf_store(by, quant_factors(max_abs));
        vf_store(f->weight + j, max_abs);
        pack_value_rows(f, v, q, by, j, present);
    }
    f->top = max_abs_of(f->weight, f->width); /* a non-finite value makes every output non-finite */
    vf by = vf_set1(f->top > 0 ? SES_ATTN_I8_PROB_SCALE / f->top : 0);
    for (int64_t j = 0; j < f->width; j += VF_LANES)
        vf_store(f->weight + j, vf_mul(vf_load(f->weight + j), by));
}

/* ---- softmax of a query ---- */

/* 2^x for x <= 0 with relative error at most 3e-6. Probabilities are then rounded to multiples of 6e-5. */
VF_INLINE vf power2(vf x)
{
    static const float c[] = { 1.3426686e-2f, 5.2242471e-2f, 2.4128021e-1f, 6.9304484e-1f, 1 };
    return vf_scale2_floor(vf_horner(vf_fraction(x), c, 5), x);
}

/* Scores of a query: (s - max) by is the exponent of 2. */
typedef struct score_row {
    const float *s;
    vf by, max;
    vf sum; /* sum of the probabilities so far */
} score_row;

/* Probabilities times the scale of their values, as integers in the low bits: adding 1.5 * 2^23 rounds to
 * nearest. */
VF_INLINE vi weighted(const i8_chunk *f, score_row *row, int64_t j)
{
    vf p = power2(vf_mul(vf_sub(vf_load(row->s + j), row->max), row->by));
    row->sum = vf_add(row->sum, p);
    return vi_of_bits(vf_fma(p, vf_load(f->weight + j), vf_set1(0x1.8p23f)));
}

/* Scores of a tile as exponents of 2, without the query scale: c + the mask, times the key scale. */
VF_INLINE vf score_of(const i8_chunk *f, vi c, int64_t j)
{
    return vf_fma(vf_from_vi(c), vf_load(f->k_scale + j), vf_load(f->mask + j));
}

/* Factors of the sums of integers per query: by[r] for the sums of probabilities sum[r]. */
static void output_factors(const i8_chunk *f, float by[VF_LANES], const vf *sum, int64_t rows)
{
    for (int64_t r = 0; r < VF_LANES; r++) by[r] = r < rows ? vf_sum(sum[r]) : 1;
    vf_store(by, vf_div(vf_set1(f->top / (127.0f * SES_ATTN_I8_PROB_SCALE)), vf_load(by)));
}

/* Output of the query i of the chunk. */
static float *output_row(const i8_chunk *f, int64_t i)
{
    return f->a->out + (f->part.q0 + f->i + i) * f->a->out_row + f->part.head * f->a->dim;
}

static void prefetch_output(const i8_chunk *f, int64_t i, int64_t rows)
{
    const float *out = output_row(f, i);
    int64_t step = f->a->out_row, dim = f->a->dim;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < dim; d += LINE) prefetch_write(out + r * step + d);
}

/* Computes a block of queries of one head. Returns false if it has more keys than int8 attention supports. */
static bool run_i8_queries(const ses_attn *a, int dot, int64_t head, int64_t block, void *scratch)
{
    ses_attn_seq_head part = ses_attn_seq_head_at(a, head);
    if (!ses_attn_i8_fits(part.len_k) && !a->k_i8.q) return false;
    i8_chunk f = {
        .a = a, .part = part, .dot = dot, .i = block * QUERIES_I8, .quads = ses_quad_count(a->dim)
    };
    f.n = tile_min(QUERIES_I8, part.len_q - f.i);
    f.width = tile_round_up(part.len_k, VF_LANES);
    f.room = tile_round_up(part.len_k, KEY_ROOM);
    f.depth = tile_round_up(f.quads, KEY_QUADS);
    if (f.n <= 0 || part.len_k <= 0) return true;
    place_scratch(&f, scratch);
    clear_values(&f);
    pack_keys(&f);
    pack_values(&f);
    quantize_queries(&f, (uint8_t *)(f.keys + f.width * 4 * f.depth));
    attend_chunk(&f);
    return true;
}

#endif
