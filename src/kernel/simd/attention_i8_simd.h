/* int8 attention; kernels.def specifies the quantization. Included after attention_forward_simd.h, whose f32
 * kernel computes the calls that int8 does not support. A chunk is a block of queries of one head of one
 * sequence: it quantizes and packs keys and values, then processes TILE_ROWS queries at a time. All sums are
 * integer sums, so the partitioning does not change any bit. */
#include "gemm_i8_tile.h"

#include <float.h>

enum { QUERIES_I8 = 2 * QUERIES, LINE = 16 }; /* LINE: floats per cache line */

_Static_assert((int)SES_ATTN_I8_MAX_DIM == (int)MAX_DIM, "one bound");

/* A chunk; the arrays lie in scratch memory. */
typedef struct i8_chunk {
    const ses_attn *a;
    ses_attn_seq_head part;
    int vnni;               /* see has_vnni */
    int64_t i, n;           /* queries of the chunk: first, count */
    int64_t width;          /* keys rounded up to whole vectors */
    int64_t quads;          /* groups of four columns per head */
    int8_t *keys;           /* panels, see gemm_i8_tile.h */
    int32_t *zp_correction; /* [width], see gemm_i8_tile.h */
    float *k_scale;         /* [width]: scale of each key, times the score scale and log2(e) */
    float *mask;            /* [width]: 0 for a key, -infinity past the last key */
    /* panels [(keys + 1) / 2][panel width]: two int16 values of consecutive keys per element */
    int32_t *values;
    float *weight;    /* [width]: max |v| / top * SES_ATTN_I8_PROB_SCALE of each key; 0 past the last key */
    float top;        /* largest magnitude of all values */
    const uint8_t *q; /* [n][4 quads] */
    float *q_scale;   /* [n], rounded up to whole vectors */
    float *scores;    /* [TILE_ROWS][width] */
    int16_t *probs;   /* [TILE_ROWS][width] */
} i8_chunk;

enum { WIDTH_I8 = (SES_ATTN_I8_MAX_KEYS + VF_LANES - 1) / VF_LANES * VF_LANES };

_Static_assert(WIDTH_I8 *MAX_DIM + WIDTH_I8 / 2 * (MAX_DIM + VF_LANES) * 4 + WIDTH_I8 * 16 +
                       TILE_ROWS * WIDTH_I8 * 6 + QUERIES_I8 * (MAX_DIM + 4) <=
                   SES_SCRATCH_BYTES,
               "scratch");

/* Fills a struct in place instead of returning one: copying fields that were just stored stalls. */
static void place_scratch(i8_chunk *f, char *scratch)
{
    int64_t ld = tile_round_up(f->a->dim, VF_LANES);
    f->values = (int32_t *)(void *)scratch;
    f->zp_correction = f->values + f->width / 2 * ld;
    f->k_scale = (float *)(void *)(f->zp_correction + f->width);
    f->mask = f->k_scale + f->width;
    f->weight = f->mask + f->width;
    f->q_scale = f->weight + f->width;
    f->scores = f->q_scale + QUERIES_I8;
    f->probs = (int16_t *)(void *)(f->scores + TILE_ROWS * f->width);
    f->keys = (int8_t *)(f->probs + TILE_ROWS * f->width);
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
    int8_t buffer[VF_LANES * MAX_DIM];
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
        int8_t *panel = f->keys + first * 4 * f->quads + 4 * (j - first);
        vf max_abs = a->k_i8.q ? pack_i8_keys(f, panel, width, j, present)
                               : pack_float_keys(f, panel, width, j, present);
        vf_store(f->k_scale + j, vf_mul(max_abs, unit));
        vf_store(f->mask + j, vf_pad(vf_zero(), vf_set1(-INFINITY), present));
        vi_store(f->zp_correction + j, zp_correction_of(panel, width, f->quads));
        if (f->vnni == MATRIX && j + VF_LANES == first + width)
            zip_panel(f->keys + first * 4 * f->quads, width, f->quads);
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

/* Packs two rows of values, floats or quantized, as pair number `at`. both: the second row exists. */
VF_INLINE void pack_pair(const i8_chunk *f, const float *x, const uint8_t *q, const float *by, bool both,
                         int64_t at)
{
    const ses_attn *a = f->a;
    int64_t panel = dim_panel_width(a->dim), ld = tile_round_up(a->dim, VF_LANES),
            pairs = (f->part.len_k + 1) / 2;
    for (int64_t d = 0; d < ld; d += VF_LANES) {
        int64_t begin = d / panel * panel, width = tile_min(panel, ld - begin);
        vi low = value_of(f, x, q, d, by[0]), high = vi_set1(0);
        if (both) high = value_of(f, q ? NULL : x + a->v_row, q ? q + 4 * f->quads : NULL, d, by[1]);
        vi_store(f->values + begin * pairs + at * width + d - begin,
                 vi_add(vi_and(low, vi_set1(0xffff)), vi_shl(high, 16)));
    }
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
        for (int64_t i = 0; i < present; i += 2)
            pack_pair(f, quantized ? NULL : v + i * a->v_row, quantized ? q + i * 4 * f->quads : NULL, by + i,
                      i + 1 < present, (j + i) / 2);
    }
    f->top = max_abs_of(f->weight, f->width); /* a non-finite value makes every output non-finite */
    vf by = vf_set1(f->top > 0 ? SES_ATTN_I8_PROB_SCALE / f->top : 0);
    for (int64_t j = 0; j < f->width; j += VF_LANES)
        vf_store(f->weight + j, vf_mul(vf_load(f->weight + j), by));
}

/* ---- tiles ---- */

/* Scores of `rows` queries and the panel of keys at j, without the query scale; top: maximum per lane. */
VF_INLINE void score_tile(const i8_chunk *f, float *s, vf *top, const uint8_t *q, int64_t j, const int rows,
                          const int vecs, const int vnni)
{
    vi c[TILE_ROWS][TILE_VECS];
    tile_i8_sum(c, q, 4 * f->quads, f->keys + j * 4 * f->quads, NULL, f->zp_correction + j, f->quads, rows,
                vecs, vnni, false);
    TILE_UNROLL for (int v = 0; v < vecs; v++)
    {
        vf by = vf_load(f->k_scale + j + v * VF_LANES), mask = vf_load(f->mask + j + v * VF_LANES);
        TILE_UNROLL for (int i = 0; i < rows; i++)
        {
            vf x = vf_fma(vf_from_vi(c[i][v]), by, mask);
            vf_store(s + i * f->width + j + v * VF_LANES, x);
            top[i] = vf_max(top[i], x);
        }
    }
}

/* out = probabilities times a panel of values at column d, times by[i] for query i. */
VF_INLINE void value_tile(const i8_chunk *f, float *out, const float *by, int64_t d, const int rows,
                          const int vecs, const bool vnni)
{
    int64_t pairs = (f->part.len_k + 1) / 2;
    const int32_t *b = f->values + d * pairs;
    vi c[TILE_ROWS][TILE_VECS];
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_set1(0);
    }
    for (int64_t p = 0; p < pairs; p++, b += vecs * VF_LANES) {
        vi_words bv[TILE_VECS];
        TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = vi_split_words(vi_load(b + v * VF_LANES));
        TILE_UNROLL for (int i = 0; i < rows; i++)
        {
            vq x = vq_load(f->probs + i * f->width + 2 * p);
            TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] =
                vnni ? vi_dot2(c[i][v], x, bv[v]) : vi_dot2_plain(c[i][v], x, bv[v]);
        }
    }
    for (int i = 0; i < rows; i++, out += f->a->out_row)
        for (int v = 0; v < vecs; v++)
            vf_put(out + d + v * VF_LANES, vf_mul(vf_from_vi(c[i][v]), vf_set1(by[i])),
                   f->a->dim - d - v * VF_LANES);
}

typedef void score_fn(const i8_chunk *f, float *s, vf *top, const uint8_t *q, int64_t j);
typedef void value_fn(const i8_chunk *f, float *out, const float *by, int64_t d);

#define TILE_DIRECT(name, form, rows, vecs) form(name##_##rows##x##vecs, rows, vecs)
#define SCORE_TILE(name, rows, vecs, vnni)                                              \
    static void name(const i8_chunk *f, float *s, vf *top, const uint8_t *q, int64_t j) \
    {                                                                                   \
        score_tile(f, s, top, q, j, rows, vecs, vnni);                                  \
    }
#define VALUE_TILE(name, rows, vecs, vnni)                                      \
    static void name(const i8_chunk *f, float *out, const float *by, int64_t d) \
    {                                                                           \
        value_tile(f, out, by, d, rows, vecs, vnni);                            \
    }
#define SCORE_VNNI(name, rows, vecs) SCORE_TILE(name, rows, vecs, VNNI)
#define SCORE_PLAIN(name, rows, vecs) SCORE_TILE(name, rows, vecs, PLAIN)
#define SCORE_MATRIX(name, rows, vecs) SCORE_TILE(name, rows, vecs, MATRIX)
#define VALUE_VNNI(name, rows, vecs) VALUE_TILE(name, rows, vecs, true)
#define VALUE_PLAIN(name, rows, vecs) VALUE_TILE(name, rows, vecs, false)
TILE_ALL(score_vnni, SCORE_VNNI)
TILE_ALL(score_plain, SCORE_PLAIN)
TILE_ALL(value_vnni, VALUE_VNNI)
TILE_ALL(value_plain, VALUE_PLAIN)
#ifdef VI_MATRIX
TILE_ALL(score_matrix, SCORE_MATRIX)
#endif
static score_fn *const score_tiles[][TILE_ROWS][TILE_VECS] = {
    [PLAIN] = TILE_TABLE(score_plain),
    [VNNI] = TILE_TABLE(score_vnni),
#ifdef VI_MATRIX
    [MATRIX] = TILE_TABLE(score_matrix),
#endif
};
static value_fn *const value_tiles[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(value_plain),
                                                                TILE_TABLE(value_vnni) };

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

/* Turns the scores of row r into probabilities; returns their sum per lane. */
static vf probabilities(const i8_chunk *f, int64_t r, float by, float max)
{
    score_row row = { f->scores + r * f->width, vf_set1(by), vf_set1(max), vf_zero() };
    int16_t *to = f->probs + r * f->width;
    int64_t j = 0;
    for (; j + 2 * VF_LANES <= f->width; j += 2 * VF_LANES) {
        vi low = weighted(f, &row, j);
        vi_store_words2(to + j, low, weighted(f, &row, j + VF_LANES));
    }
    if (j < f->width) vi_store_words(to + j, weighted(f, &row, j));
    return row.sum;
}

static void attend_i8(const i8_chunk *f, int64_t i, int64_t rows)
{
    const ses_attn *a = f->a;
    const uint8_t *q = f->q + i * 4 * f->quads;
    float *out = a->out + (f->part.q0 + f->i + i) * a->out_row + f->part.head * a->dim;
    int64_t max_rows = f->vnni ? TILE_ROWS : PLAIN_ROWS, panel = dim_panel_width(a->dim);
    float largest[TILE_ROWS], by[VF_LANES];
    vf top[TILE_ROWS], sum[TILE_ROWS];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < a->dim; d += LINE) prefetch_write(out + r * a->out_row + d);
    for (int64_t r = 0; r < rows; r++) top[r] = vf_set1(-INFINITY);
    for (int64_t j = 0; j < f->width; j += TILE_COLS)
        for (int64_t r = 0; r < rows; r += max_rows)
            score_tiles[f->vnni][tile_min(max_rows, rows - r) - 1][panel_width(f->width, j) / VF_LANES - 1](
                f, f->scores + r * f->width, top + r, q + r * 4 * f->quads, j);
    for (int64_t r = 0; r < rows; r++) largest[r] = vf_hmax(top[r]);
    for (int64_t r = 0; r < rows; r++) sum[r] = probabilities(f, r, f->q_scale[i + r], largest[r]);
    for (int64_t r = 0; r < VF_LANES; r++) by[r] = r < rows ? vf_sum(sum[r]) : 1;
    vf_store(by, vf_div(vf_set1(f->top / (127.0f * SES_ATTN_I8_PROB_SCALE)), vf_load(by)));
    for (int64_t d = 0; d < a->dim; d += panel) {
        int64_t width = tile_min(panel, tile_round_up(a->dim, VF_LANES) - d);
        value_tiles[f->vnni != PLAIN][rows - 1][width / VF_LANES - 1](f, out, by, d);
    }
}

typedef struct i8_job {
    ses_attn *a;
    int vnni; /* see has_vnni */
} i8_job;

static void run_i8_chunk(void *ctx, int64_t index, void *scratch)
{
    const i8_job *b = ctx;
    int64_t blocks = (b->a->max_seqlen_q + QUERIES - 1) / QUERIES, pairs = (blocks + 1) / 2;
    int64_t head = index / pairs, block = index % pairs * 2;
    ses_attn_seq_head part = ses_attn_seq_head_at(b->a, head);
    if (!ses_attn_i8_fits(part.len_k) && !b->a->k_i8.q) {
        for (int64_t i = block; i < tile_min(block + 2, blocks); i++)
            forward_chunk(b->a, head * blocks + i, scratch);
        return;
    }
    i8_chunk f = {
        .a = b->a, .part = part, .vnni = b->vnni, .i = block * QUERIES, .quads = ses_quad_count(b->a->dim)
    };
    f.n = tile_min(QUERIES_I8, part.len_q - f.i);
    f.width = tile_round_up(part.len_k, VF_LANES);
    if (f.n <= 0 || part.len_k <= 0) return;
    place_scratch(&f, scratch);
    pack_keys(&f);
    pack_values(&f);
    quantize_queries(&f, (uint8_t *)(f.keys + f.width * 4 * f.quads));
    for (int64_t i = 0, rows, left = tile_count(f.n); left > 0; left--, i += rows) {
        rows = even_rows(f.n - i, left);
        attend_i8(&f, i, rows);
    }
}

void VF_NAME(ses_k_attention_i8)(ses_exec *x, const ses_attn *a, bool no_vnni)
{
    ses_attn copy = *a;
    i8_job b = { .a = &copy, .vnni = no_vnni ? PLAIN : has_vnni() };
    int64_t blocks = (a->max_seqlen_q + QUERIES_I8 - 1) / QUERIES_I8;
    if (ses_attn_i8_supported(a))
        parallel_items(x, a->seqs * a->heads * blocks,
                       tile_min(QUERIES_I8, a->max_seqlen_q) * a->max_seqlen_k * a->dim / 2, run_i8_chunk,
                       &b);
    else
        VF_NAME(ses_k_attention)(x, a);
}
