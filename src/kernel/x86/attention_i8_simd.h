/* Attention with products of few bits (kernels.def says what is rounded how); for attention_avx2.c and
 * attention_avx512.c, after attention_simd.h, whose f32 serves what this does not take. A chunk is some
 * queries of one head of one sequence: it rounds and packs the keys and values, then takes TILE_ROWS queries
 * at a time. All sums are of whole numbers, so no way of cutting changes a query's bits. */
#include "gemm_i8_tile.h"

#include <float.h>

enum { QUERIES8 = 2 * QUERIES, LINE = 16 }; /* LINE: numbers of a cache line */

_Static_assert((int)SES_ATTN_I8_MAX_DIM == (int)MAX_DIM, "one bound");

/* Keys and values as the tiles read them; the arrays are in scratch. */
typedef struct narrow {
    const ses_attn *a;
    ses_attn_part part;
    bool dot;
    int64_t i, n;    /* its queries */
    int64_t width;   /* keys in whole vectors */
    int64_t quads;   /* of a head */
    int8_t *keys;    /* panels as of gemm_i8_tile.h */
    int32_t *excess; /* [width] */
    float *k_scale;  /* [width]: with the factor of all scores, for powers of two */
    float *shut;     /* [width]: 0, minus infinity where there is no key */
    int32_t
        *values; /* panels of pairs, [(keys + 1) / 2][width of panel]: two multiples of 16 bits a number */
    float *
        weight; /* [width]: the value's largest magnitude / top * SES_ATTN_I8_PROB_SCALE, 0 where there is none */
    float top;        /* the largest magnitude of the values */
    const uint8_t *q; /* [n][4 quads] */
    float *q_scale;   /* [n] in whole vectors */
    float *scores;    /* [TILE_ROWS][width] */
    int16_t *probs;   /* [TILE_ROWS][width] */
} narrow;

enum { WIDTH8 = (SES_ATTN_I8_MAX_KEYS + VF_LANES - 1) / VF_LANES * VF_LANES };

_Static_assert(WIDTH8 *MAX_DIM + WIDTH8 / 2 * (MAX_DIM + VF_LANES) * 4 + WIDTH8 * 16 +
                       TILE_ROWS * WIDTH8 * 6 + QUERIES8 * (MAX_DIM + 4) <=
                   SES_SCRATCH_BYTES,
               "scratch");

/* Not returned as a struct: a copy of what was just stored in small parts waits for all of them. */
static void place_in(narrow *f, char *scratch)
{
    int64_t ld = tile_round_up(f->a->dim, VF_LANES);
    f->values = (int32_t *)(void *)scratch;
    f->excess = f->values + f->width / 2 * ld;
    f->k_scale = (float *)(void *)(f->excess + f->width);
    f->shut = f->k_scale + f->width;
    f->weight = f->shut + f->width;
    f->q_scale = f->weight + f->width;
    f->scores = f->q_scale + QUERIES8;
    f->probs = (int16_t *)(void *)(f->scores + TILE_ROWS * f->width);
    f->keys = (int8_t *)(f->probs + TILE_ROWS * f->width);
}

/* Where the part's rows, from token t of its head on, lie that come rounded; their largest magnitudes. */
static const uint8_t *given(const narrow *f, ses_i8_rows x, const int32_t *cu, int64_t t)
{
    return x.q + (f->part.head * cu[f->a->seqs] + t) * 4 * f->quads;
}
static const float *given_most(const narrow *f, ses_i8_rows x, const int32_t *cu, int64_t t)
{
    return x.scale + f->part.head * cu[f->a->seqs] + t;
}

/* ---- rounding and packing ---- */

/* A vector of keys that come rounded, `there` of them; returns their largest magnitudes. */
static vf lay_given_keys(const narrow *f, int8_t *panel, int64_t width, int64_t j, int64_t there)
{
    const void *q = given(f, f->a->k_i8, f->a->cu_seqlens_k, f->part.k0 + j);
    transpose_vector((float *)(void *)panel, width, q, f->quads, there, f->quads);
    for (int64_t p = 0; p < f->quads; p++, panel += 4 * width)
        vi_store(panel, vi_xor(vi_load(panel), vi_set1((int32_t)0x80808080))); /* 128 less */
    return vf_get(given_most(f, f->a->k_i8, f->a->cu_seqlens_k, f->part.k0 + j), there);
}

/* The same of reals. */
static vf lay_keys(const narrow *f, int8_t *panel, int64_t width, int64_t j, int64_t there)
{
    const ses_attn *a = f->a;
    const float *k = a->k + (f->part.k0 + j) * a->k_row + f->part.head * ses_attn_head(a->k_head, a);
    float by[VF_LANES];
    int64_t row = 4 * f->quads;
    int8_t room[VF_LANES * MAX_DIM];
    vf most = most_of_rows(k, a->k_row, there, a->dim);
    vf_store(by, factors(most));
    for (int64_t i = 0; i < there; i++) round_signed(room + i * row, k + i * a->k_row, a->dim, row, by[i]);
    transpose_vector((float *)(void *)panel, width, (const float *)(const void *)room, f->quads, there,
                     f->quads);
    return most;
}

static void pack_keys(const narrow *f)
{
    const ses_attn *a = f->a;
    vf unit = vf_set1(a->scale * 1.44269504f / 127); /* e^x = 2^(x log2 e) */
    for (int64_t j = 0; j < f->width; j += VF_LANES) {
        int64_t there = tile_min(VF_LANES, f->part.len_k - j);
        int64_t first = j / TILE_COLS * TILE_COLS, width = panel_width(f->width, first);
        int8_t *panel = f->keys + first * 4 * f->quads + 4 * (j - first);
        vf most = a->k_i8.q ? lay_given_keys(f, panel, width, j, there) : lay_keys(f, panel, width, j, there);
        vf_store(f->k_scale + j, vf_mul(most, unit));
        vf_store(f->shut + j, vf_until(vf_zero(), vf_set1(-INFINITY), there));
        vi_store(f->excess + j, excess_of(panel, width, f->quads));
    }
}

/* Rounded to `room`, unless they come so. */
static void round_queries(narrow *f, uint8_t *room)
{
    const ses_attn *a = f->a;
    int64_t first = f->part.q0 + f->i;
    f->q = a->q_i8.q ? given(f, a->q_i8, a->cu_seqlens_q, first) : room;
    const float *q = a->q_i8.q ? NULL : a->q + first * a->q_row + f->part.head * ses_attn_head(a->q_head, a);
    for (int64_t i = 0; i < f->n; i += VF_LANES) {
        int64_t there = tile_min(VF_LANES, f->n - i);
        vf most = q ? most_of_rows(q + i * a->q_row, a->q_row, there, a->dim)
                    : vf_get(given_most(f, a->q_i8, a->cu_seqlens_q, first + i), there);
        vf scale = vf_max(vf_set1(FLT_MIN), vf_mul(most, vf_set1(1.0f / 127))); /* not 0 times infinity */
        vf_store(f->q_scale + i, scale);
        float by[VF_LANES];
        vf_store(by, factors(most));
        for (int64_t r = i; q && r < i + there; r++)
            round_bytes(room + r * 4 * f->quads, q + r * a->q_row, a->dim, 4 * f->quads, by[r - i]);
    }
}

/* Multiples of a row of values from column d on. */
VF_INLINE vi value_of(const narrow *f, const float *x, const uint8_t *q, int64_t d, float by)
{
    int64_t left = f->a->dim - d;
    if (!q) return vi_from_vf(vf_mul(vf_get(x + d, left), vf_set1(by)));
    uint8_t some[VF_LANES] = { 0 };
    if (left < VF_LANES) q = memcpy(some, q + d, (size_t)left), d = 0;
    return vi_sub(vi_load_unsigned(q + d), vi_set1(128));
}

/* Two rows of values, reals or what comes rounded, the second of which may be missing, as pairs number
 * `at`. */
VF_INLINE void pack_pair(const narrow *f, const float *x, const uint8_t *q, const float *by, bool both,
                         int64_t at)
{
    const ses_attn *a = f->a;
    int64_t panel = part_width(a->dim), ld = tile_round_up(a->dim, VF_LANES), pairs = (f->part.len_k + 1) / 2;
    for (int64_t d = 0; d < ld; d += VF_LANES) {
        int64_t begin = d / panel * panel, width = tile_min(panel, ld - begin);
        vi low = value_of(f, x, q, d, by[0]), high = vi_set1(0);
        if (both) high = value_of(f, q ? NULL : x + a->v_row, q ? q + 4 * f->quads : NULL, d, by[1]);
        vi_store(f->values + begin * pairs + at * width + d - begin,
                 vi_add(vi_and(low, vi_set1(0xffff)), vi_shl(high, 16)));
    }
}

static void pack_values(narrow *f)
{
    const ses_attn *a = f->a;
    bool come = a->k_i8.q;
    for (int64_t j = 0; j < f->width; j += VF_LANES) {
        int64_t there = tile_min(VF_LANES, f->part.len_k - j), t = f->part.k0 + j;
        const float *v = come ? NULL : a->v + t * a->v_row + f->part.head * ses_attn_head(a->v_head, a);
        const uint8_t *q = come ? given(f, a->v_i8, a->cu_seqlens_k, t) : NULL;
        vf most = come ? vf_get(given_most(f, a->v_i8, a->cu_seqlens_k, t), there)
                       : most_of_rows(v, a->v_row, there, a->dim);
        float by[VF_LANES];
        vf_store(by, factors(most));
        vf_store(f->weight + j, most);
        for (int64_t i = 0; i < there; i += 2)
            pack_pair(f, come ? NULL : v + i * a->v_row, come ? q + i * 4 * f->quads : NULL, by + i,
                      i + 1 < there, (j + i) / 2);
    }
    f->top = most_of(f->weight, f->width); /* one that is not finite makes all answers so */
    vf by = vf_set1(f->top > 0 ? SES_ATTN_I8_PROB_SCALE / f->top : 0);
    for (int64_t j = 0; j < f->width; j += VF_LANES)
        vf_store(f->weight + j, vf_mul(vf_load(f->weight + j), by));
}

/* ---- tiles ---- */

/* Queries meet the panel of keys from j on: scores without the query's scale, the largest of each lane. */
VF_INLINE void score_tile(const narrow *f, float *s, vf *top, const uint8_t *q, int64_t j, const int rows,
                          const int vecs, const bool dot)
{
    vi c[TILE_ROWS][TILE_VECS];
    tile8_sum(c, q, 4 * f->quads, f->keys + j * 4 * f->quads, NULL, f->excess + j, f->quads, rows, vecs, dot,
              false);
    TILE_UNROLL for (int v = 0; v < vecs; v++)
    {
        vf by = vf_load(f->k_scale + j + v * VF_LANES), shut = vf_load(f->shut + j + v * VF_LANES);
        TILE_UNROLL for (int i = 0; i < rows; i++)
        {
            vf x = vf_fma(vf_from_vi(c[i][v]), by, shut);
            vf_store(s + i * f->width + j + v * VF_LANES, x);
            top[i] = vf_max(top[i], x);
        }
    }
}

/* Probabilities meet a panel of values from column d on: out = sums times `by` of each query. */
VF_INLINE void value_tile(const narrow *f, float *out, const float *by, int64_t d, const int rows,
                          const int vecs, const bool dot)
{
    int64_t pairs = (f->part.len_k + 1) / 2;
    const int32_t *b = f->values + d * pairs;
    vi c[TILE_ROWS][TILE_VECS];
    TILE_UNROLL for (int i = 0; i < rows; i++)
    {
        TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] = vi_set1(0);
    }
    for (int64_t p = 0; p < pairs; p++, b += vecs * VF_LANES) {
        vi bv[TILE_VECS];
        TILE_UNROLL for (int v = 0; v < vecs; v++) bv[v] = vi_load(b + v * VF_LANES);
        TILE_UNROLL for (int i = 0; i < rows; i++)
        {
            vi x = four(f->probs + i * f->width + 2 * p);
            TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] =
                dot ? vi_dot2_add(c[i][v], x, bv[v]) : vi_add(c[i][v], vi_dot2(x, bv[v]));
        }
    }
    for (int i = 0; i < rows; i++, out += f->a->out_row)
        for (int v = 0; v < vecs; v++)
            vf_put(out + d + v * VF_LANES, vf_mul(vf_from_vi(c[i][v]), vf_set1(by[i])),
                   f->a->dim - d - v * VF_LANES);
}

typedef void score_fn(const narrow *f, float *s, vf *top, const uint8_t *q, int64_t j);
typedef void value_fn(const narrow *f, float *out, const float *by, int64_t d);

#define TILE_DIRECT(name, form, rows, vecs) form(name##_##rows##x##vecs, rows, vecs)
#define SCORE_TILE(name, rows, vecs, dot)                                             \
    static void name(const narrow *f, float *s, vf *top, const uint8_t *q, int64_t j) \
    {                                                                                 \
        score_tile(f, s, top, q, j, rows, vecs, dot);                                 \
    }
#define VALUE_TILE(name, rows, vecs, dot)                                     \
    static void name(const narrow *f, float *out, const float *by, int64_t d) \
    {                                                                         \
        value_tile(f, out, by, d, rows, vecs, dot);                           \
    }
#define SCORE_DOT(name, rows, vecs) SCORE_TILE(name, rows, vecs, true)
#define SCORE_STEP(name, rows, vecs) SCORE_TILE(name, rows, vecs, false)
#define VALUE_DOT(name, rows, vecs) VALUE_TILE(name, rows, vecs, true)
#define VALUE_STEP(name, rows, vecs) VALUE_TILE(name, rows, vecs, false)
TILE_ALL(score_dot, SCORE_DOT)
TILE_ALL(score_step, SCORE_STEP)
TILE_ALL(value_dot, VALUE_DOT)
TILE_ALL(value_step, VALUE_STEP)
static score_fn *const score8[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(score_step), TILE_TABLE(score_dot) };
static value_fn *const value8[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(value_step), TILE_TABLE(value_dot) };

/* ---- a query ---- */

/* 2^x for x <= 0, off by 3e-6 of it at most: probabilities are rounded to 6e-5 next. */
VF_INLINE vf power2(vf x)
{
    static const float c[] = { 1.3426686e-2f, 5.2242471e-2f, 2.4128021e-1f, 6.9304484e-1f, 1 };
    return vf_scale2_floor(vf_horner(vf_fraction(x), c, 5), x);
}

/* Scores of a query, which times `by` are logarithms of two, against the largest of them. */
typedef struct score_row {
    const float *s;
    vf by, most;
    vf sum; /* of the probabilities so far */
} score_row;

/* A vector of probabilities, weighed by their values' scales: multiples in the lowest bits, where the
 * constant leaves them. */
VF_INLINE vi weighed(const narrow *f, score_row *row, int64_t j)
{
    vf p = power2(vf_mul(vf_sub(vf_load(row->s + j), row->most), row->by));
    row->sum = vf_add(row->sum, p);
    return vi_of_bits(vf_fma(p, vf_load(f->weight + j), vf_set1(0x1.8p23f)));
}

/* Scores of row r become probabilities; returns their sum, lane by lane. */
static vf probabilities(const narrow *f, int64_t r, float by, float most)
{
    score_row row = { f->scores + r * f->width, vf_set1(by), vf_set1(most), vf_zero() };
    int16_t *to = f->probs + r * f->width;
    int64_t j = 0;
    for (; j + 2 * VF_LANES <= f->width; j += 2 * VF_LANES) {
        vi low = weighed(f, &row, j);
        vi_store_words2(to + j, low, weighed(f, &row, j + VF_LANES));
    }
    if (j < f->width) vi_store_words(to + j, weighed(f, &row, j));
    return row.sum;
}

static void attend8(const narrow *f, int64_t i, int64_t rows)
{
    const ses_attn *a = f->a;
    const uint8_t *q = f->q + i * 4 * f->quads;
    float *out = a->out + (f->part.q0 + f->i + i) * a->out_row + f->part.head * a->dim;
    int64_t most = f->dot ? TILE_ROWS : STEP_ROWS, panel = part_width(a->dim);
    float largest[TILE_ROWS], by[VF_LANES];
    vf top[TILE_ROWS], sum[TILE_ROWS];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < a->dim; d += LINE) prefetch_own(out + r * a->out_row + d);
    for (int64_t r = 0; r < rows; r++) top[r] = vf_set1(-INFINITY);
    for (int64_t j = 0; j < f->width; j += TILE_COLS)
        for (int64_t r = 0; r < rows; r += most)
            score8[f->dot][tile_min(most, rows - r) - 1][panel_width(f->width, j) / VF_LANES - 1](
                f, f->scores + r * f->width, top + r, q + r * 4 * f->quads, j);
    for (int64_t r = 0; r < rows; r++) largest[r] = vf_hmax(top[r]);
    for (int64_t r = 0; r < rows; r++) sum[r] = probabilities(f, r, f->q_scale[i + r], largest[r]);
    for (int64_t r = 0; r < VF_LANES; r++) by[r] = r < rows ? vf_sum(sum[r]) : 1;
    vf_store(by, vf_div(vf_set1(f->top / (127.0f * SES_ATTN_I8_PROB_SCALE)), vf_load(by)));
    for (int64_t d = 0; d < a->dim; d += panel) {
        int64_t width = tile_min(panel, tile_round_up(a->dim, VF_LANES) - d);
        value8[f->dot][rows - 1][width / VF_LANES - 1](f, out, by, d);
    }
}

typedef struct narrow_job {
    ses_attn *a;
    bool dot;
} narrow_job;

static void narrow_chunk(void *ctx, int64_t index, void *scratch)
{
    const narrow_job *b = ctx;
    int64_t blocks = (b->a->max_seqlen_q + QUERIES - 1) / QUERIES, pairs = (blocks + 1) / 2;
    int64_t head = index / pairs, block = index % pairs * 2;
    ses_attn_part part = ses_attn_part_of(b->a, head);
    if (!ses_attn_i8_fits(part.len_k) && !b->a->k_i8.q) {
        for (int64_t i = block; i < tile_min(block + 2, blocks); i++)
            forward_chunk(b->a, head * blocks + i, scratch);
        return;
    }
    narrow f = {
        .a = b->a, .part = part, .dot = b->dot, .i = block * QUERIES, .quads = ses_quad_count(b->a->dim)
    };
    f.n = tile_min(QUERIES8, part.len_q - f.i);
    f.width = tile_round_up(part.len_k, VF_LANES);
    if (f.n <= 0 || part.len_k <= 0) return;
    place_in(&f, scratch);
    pack_keys(&f);
    pack_values(&f);
    round_queries(&f, (uint8_t *)(f.keys + f.width * 4 * f.quads));
    for (int64_t i = 0, rows, left = tiles_of(f.n); left > 0; left--, i += rows) {
        rows = even_rows(f.n - i, left);
        attend8(&f, i, rows);
    }
}

void VF_NAME(ses_k_attention_i8)(ses_exec *x, const ses_attn *a, bool plain)
{
    ses_attn copy = *a;
    narrow_job b = { .a = &copy, .dot = !plain && has_dot() };
    int64_t blocks = (a->max_seqlen_q + QUERIES8 - 1) / QUERIES8;
    if (ses_attn_i8_supported(a))
        parallel_pieces(x, a->seqs * a->heads * blocks,
                        tile_min(QUERIES8, a->max_seqlen_q) * a->max_seqlen_k * a->dim / 2, narrow_chunk, &b);
    else
        VF_NAME(ses_k_attention)(x, a);
}
