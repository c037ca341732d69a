/* int8 attention over tiles, with the same sums as over vectors. A probability is split into two bytes of
 * seven bits; their products with the values are added. */
/* panels of two vectors, see gemm_tile.h */
#define TILE_ROWS 8
#define TILE_VECS 2
#include "kernel/simd/vec/tile.h"
#include "kernel/simd/vec/vec_loop.h"

enum {
    BLOCK_QUERIES = MT_ROWS,
    KEY_QUADS = MT_BYTES / 4,
    KEY_ROOM = MT_BYTES,
    VALUE_BYTES = 1,
    PROB_BYTES = 2,
};

#include "attention_i8.h"

#ifdef SES_AMX
#define BELOW ses_k_attention_i8_avx512
#else
#define BELOW ses_k_attention_i8_ref
#endif

_Static_assert(VF_LANES == MT_ROWS && (int)TILE_COLS == 2 * VF_LANES, "a panel is two tiles");

/* ---- values ---- */

enum { GROUP_BYTES = 2 * MT_ROWS * MT_BYTES }; /* 64 keys and 32 columns: two tiles side by side */

/* Group of 64 keys, for 32 columns from d on. */
static int8_t *value_group(const i8_chunk *f, int64_t group, int64_t d)
{
    int64_t sides = ses_chunks(f->a->dim, TILE_COLS);
    return (int8_t *)f->values + (group * sides + d / TILE_COLS) * GROUP_BYTES;
}

/* Rows of tiles are quads of keys, in the order of vi_store_halves: quad l of the vector v of keys is row
 * 4 l + v. */
VF_INLINE void pack_value_rows(const i8_chunk *f, const float *v, const uint8_t *q, const float *by,
                               int64_t j, int64_t present)
{
    int64_t vector = j % MT_BYTES / VF_LANES;
    for (int64_t d = 0; d < f->a->dim; d += VF_LANES)
        for (int64_t l = 0; l < VF_LANES / 4; l++) {
            vi quad = vi_set1(0);
            for (int64_t i = tile_min(4 * l + 4, present); i-- > 4 * l;)
                quad = vi_add(vi_shl(quad, 8), vi_and(value_of(f, v ? v + i * f->a->v_row : NULL,
                                                               v ? NULL : q + i * 4 * f->quads, d, by[i]),
                                                      vi_set1(255)));
            vi_store(value_group(f, j / MT_BYTES, d) + (4 * l + vector) * 2 * MT_BYTES +
                         d % TILE_COLS / VF_LANES * MT_BYTES,
                     quad);
        }
}

/* Clears the rows of the last group that no key fills, and columns past the last one. */
VF_INLINE void clear_values(const i8_chunk *f)
{
    int64_t sides = ses_chunks(f->a->dim, TILE_COLS);
    if (f->a->dim % TILE_COLS)
        memset(f->values, 0, (size_t)(f->room / MT_BYTES * sides * GROUP_BYTES));
    else if (f->width < f->room)
        memset(value_group(f, f->width / MT_BYTES, 0), 0, (size_t)(sides * GROUP_BYTES));
}

/* ---- scores ---- */

/* Integer sums of the queries at q, rows a_row bytes apart, with a panel of keys; sum: [rows][TILE_COLS].
 * loaded: tile A0 holds the queries. */
VF_INLINE void score_sums(mt_set *t, int32_t *sum, const uint8_t *q, int64_t a_row, const int8_t *keys,
                          int64_t depth, const bool right, const bool loaded)
{
    const int64_t b_row = right ? 2 * MT_BYTES : MT_BYTES;
    mt_zero(t, MT_C00);
    if (right) mt_zero(t, MT_C01);
    for (int64_t p = 0; p < depth; p += KEY_QUADS, q += MT_BYTES, keys += KEY_QUADS * b_row) {
        if (!loaded) mt_load(t, MT_A0, q, a_row);
        mt_load(t, MT_B0, keys, b_row);
        mt_dot_i8(t, MT_C00, MT_A0, MT_B0);
        if (right) mt_load(t, MT_B1, keys + MT_BYTES, b_row);
        if (right) mt_dot_i8(t, MT_C01, MT_A0, MT_B1);
    }
    mt_store(t, MT_C00, sum, TILE_COLS * 4);
    if (right) mt_store(t, MT_C01, sum + VF_LANES, TILE_COLS * 4);
}

/* Scores of the queries with all keys; top: maximum per lane. */
static void score_rows(const i8_chunk *f, mt_set *t, vf *top, const uint8_t *q, int64_t a_row, int64_t rows)
{
    bool loaded = f->depth == KEY_QUADS; /* one step */
    if (loaded) mt_load(t, MT_A0, q, a_row);
    for (int64_t j = 0; j < f->width; j += TILE_COLS) {
        _Alignas(MT_BYTES) int32_t sum[MT_ROWS * TILE_COLS];
        const int8_t *keys = f->keys + j * 4 * f->depth;
        bool right = j + VF_LANES < f->width;
        if (!right)
            score_sums(t, sum, q, a_row, keys, f->depth, false, false);
        else if (loaded)
            score_sums(t, sum, q, a_row, keys, f->depth, true, true);
        else
            score_sums(t, sum, q, a_row, keys, f->depth, true, false);
        for (int64_t v = 0; v < (right ? TILE_COLS : VF_LANES); v += VF_LANES) {
            vi zero = vi_load(f->zp_correction + j + v);
            for (int64_t i = 0; i < rows; i++) {
                vf x = score_of(f, vi_sub(vi_load(sum + i * TILE_COLS + v), zero), j + v);
                vf_store(f->scores + i * f->width + j + v, x);
                top[i] = vf_max(top[i], x);
            }
        }
    }
}

/* ---- probabilities ---- */

/* Turns the scores of row r into probabilities; returns their sum per lane. The upper halves of all rows
 * come first, then the lower halves. */
static vf probabilities(const i8_chunk *f, int64_t r, float by, float max)
{
    score_row row = { f->scores + r * f->width, vf_set1(by), vf_set1(max), vf_zero() };
    uint8_t *high = (uint8_t *)f->probs + r * f->room, *low = high + BLOCK_QUERIES * f->room;
    for (int64_t j = 0; j < f->room; j += MT_BYTES) {
        vi p[4];
        for (int v = 0; v < 4; v++)
            p[v] = j + v * VF_LANES < f->width
                       ? vi_sub(weighted(f, &row, j + v * VF_LANES), vi_of_bits(vf_set1(0x1.8p23f)))
                       : vi_set1(0);
        vi_store_halves(high + j, low + j, p);
    }
    return row.sum;
}

/* ---- outputs ---- */

/* Columns d .. d + 31 of the queries at i: probabilities times values, times by[r]. */
static void value_rows(const i8_chunk *f, mt_set *t, const float *by, int64_t i, int64_t rows, int64_t d)
{
    enum { TILE = MT_ROWS * VF_LANES };
    _Alignas(MT_BYTES) int32_t sum[4 * TILE];
    const uint8_t *high = f->probs, *low = high + BLOCK_QUERIES * f->room;
    mt_zero(t, MT_C00);
    mt_zero(t, MT_C01);
    mt_zero(t, MT_C10);
    mt_zero(t, MT_C11);
    for (int64_t j = 0; j < f->room; j += MT_BYTES) {
        const int8_t *values = value_group(f, j / MT_BYTES, d);
        mt_load(t, MT_A0, high + j, f->room);
        mt_load(t, MT_B0, values, 2 * MT_BYTES);
        mt_dot_i8(t, MT_C00, MT_A0, MT_B0);
        mt_load(t, MT_B1, values + MT_BYTES, 2 * MT_BYTES);
        mt_dot_i8(t, MT_C01, MT_A0, MT_B1);
        mt_load(t, MT_A1, low + j, f->room);
        mt_dot_i8(t, MT_C10, MT_A1, MT_B0);
        mt_dot_i8(t, MT_C11, MT_A1, MT_B1);
    }
    mt_store(t, MT_C00, sum, MT_BYTES);
    mt_store(t, MT_C01, sum + TILE, MT_BYTES);
    mt_store(t, MT_C10, sum + 2 * TILE, MT_BYTES);
    mt_store(t, MT_C11, sum + 3 * TILE, MT_BYTES);
    float *out = output_row(f, i) + d;
    int64_t left = f->a->dim - d;
    for (int64_t r = 0; r < rows; r++, out += f->a->out_row)
        for (int64_t v = 0; v < 2 && v * VF_LANES < left; v++) {
            const int32_t *at = sum + v * TILE + r * VF_LANES;
            vi c = vi_add(vi_shl(vi_load(at), 7), vi_load(at + 2 * TILE));
            vf_put(out + v * VF_LANES, vf_mul(vf_from_vi(c), vf_set1(by[r])), left - v * VF_LANES);
        }
}

static void attend_block(const i8_chunk *f, mt_set *t, int64_t i, int64_t rows)
{
    const uint8_t *q = f->q + i * 4 * f->quads;
    int64_t a_row = 4 * f->quads;
    /* queries filled with zeros to whole tiles */
    _Alignas(MT_BYTES) uint8_t filled[MT_ROWS * (SES_ATTN_I8_MAX_DIM + MT_BYTES)];
    if (f->quads != f->depth) {
        a_row = 4 * f->depth;
        memset(filled, 0, (size_t)(rows * a_row));
        for (int64_t r = 0; r < rows; r++)
            memcpy(filled + r * a_row, q + r * 4 * f->quads, (size_t)(4 * f->quads));
        q = filled;
    }
    float by[VF_LANES];
    vf top[MT_ROWS], sum[MT_ROWS];
    prefetch_output(f, i, rows);
    for (int64_t r = 0; r < rows; r++) top[r] = vf_set1(-INFINITY);
    score_rows(f, t, top, q, a_row, rows);
    for (int64_t r = 0; r < rows; r++) sum[r] = probabilities(f, r, f->q_scale[i + r], vf_hmax(top[r]));
    output_factors(f, by, sum, rows);
    for (int64_t d = 0; d < f->a->dim; d += TILE_COLS) value_rows(f, t, by, i, rows, d);
}

static void attend_chunk(const i8_chunk *f)
{
    mt_set tiles;
    int64_t rows, last = 0;
    for (int64_t i = 0; i < f->n; i += rows, last = rows) {
        rows = tile_min(MT_ROWS, f->n - i);
        mt_shapes shapes = mt_row_shapes(rows);
        if (rows != last) mt_configure(&tiles, &shapes);
        attend_block(f, &tiles, i, rows);
    }
    mt_release(&tiles);
}

/* ---- the kernel ---- */

static void run_chunk(void *ctx, int64_t index, void *scratch)
{
    const ses_attn *a = ctx;
    int64_t blocks = ses_chunks(a->max_seqlen_q, QUERIES_I8);
    run_i8_queries(a, true, index / blocks, index % blocks, scratch);
}

void VF_NAME(ses_k_attention_i8)(ses_exec *x, const ses_attn *a, bool no_dot)
{
    if (no_dot || !ses_attn_i8_supported(a) || (a->max_seqlen_k > SES_ATTN_I8_MAX_KEYS && !a->k_i8.q)) {
        BELOW(x, a, no_dot);
        return;
    }
    ses_attn copy = *a;
    parallel_items(x, a->seqs * a->heads * ses_chunks(a->max_seqlen_q, QUERIES_I8),
                   tile_min(QUERIES_I8, a->max_seqlen_q) * a->max_seqlen_k * a->dim / 2, run_chunk, &copy);
}
