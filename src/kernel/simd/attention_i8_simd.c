/* int8 attention over vectors, compiled once per SIMD level. The f32 kernel of the level computes the calls
 * that int8 does not support. */
#include "blocks_f32.h"

#include "attention_shared.h"

enum { BLOCK_QUERIES = TILE_ROWS, KEY_QUADS = 1, KEY_ROOM = VF_LANES, VALUE_BYTES = 2, PROB_BYTES = 2 };

#include "attention_i8.h"

_Static_assert((int)SES_ATTN_I8_MAX_DIM == (int)MAX_DIM && (int)QUERIES_I8 == 2 * QUERIES, "one bound");

/* Values are panels [(keys + 1) / 2][panel width]: two int16 values of consecutive keys per element. */
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
        vi_store((int32_t *)f->values + begin * pairs + at * width + d - begin,
                 vi_add(vi_and(low, vi_set1(0xffff)), vi_shl(high, 16)));
    }
}

VF_INLINE void clear_values(const i8_chunk *f) { (void)f; }

VF_INLINE void pack_value_rows(const i8_chunk *f, const float *v, const uint8_t *q, const float *by,
                               int64_t j, int64_t present)
{
    for (int64_t i = 0; i < present; i += 2)
        pack_pair(f, v ? v + i * f->a->v_row : NULL, v ? NULL : q + i * 4 * f->quads, by + i, i + 1 < present,
                  (j + i) / 2);
}

/* ---- tiles ---- */

/* Scores of `rows` queries and the panel of keys at j, without the query scale; top: maximum per lane. */
VF_INLINE void score_tile(const i8_chunk *f, float *s, vf *top, const uint8_t *q, int64_t j, const int rows,
                          const int vecs, const int dot)
{
    vi c[TILE_ROWS][TILE_VECS];
    tile_i8_sum(c, q, 4 * f->quads, f->keys + j * 4 * f->depth, NULL, f->zp_correction + j, f->quads, rows,
                vecs, dot, false);
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
                          const int vecs, const bool dot)
{
    int64_t pairs = (f->part.len_k + 1) / 2;
    const int32_t *b = (const int32_t *)f->values + d * pairs;
    const int16_t *probs = f->probs;
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
            vq x = vq_load(probs + i * f->width + 2 * p);
            TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] =
                dot ? vi_dot2(c[i][v], x, bv[v]) : vi_dot2_plain(c[i][v], x, bv[v]);
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
#define SCORE_TILE(name, rows, vecs, dot)                                               \
    static void name(const i8_chunk *f, float *s, vf *top, const uint8_t *q, int64_t j) \
    {                                                                                   \
        score_tile(f, s, top, q, j, rows, vecs, dot);                                   \
    }
#define VALUE_TILE(name, rows, vecs, dot)                                       \
    static void name(const i8_chunk *f, float *out, const float *by, int64_t d) \
    {                                                                           \
        value_tile(f, out, by, d, rows, vecs, dot);                             \
    }
#define SCORE_DOT(name, rows, vecs) SCORE_TILE(name, rows, vecs, DOT)
#define SCORE_PLAIN(name, rows, vecs) SCORE_TILE(name, rows, vecs, PLAIN)
#define SCORE_MATRIX(name, rows, vecs) SCORE_TILE(name, rows, vecs, MATRIX)
#define VALUE_DOT(name, rows, vecs) VALUE_TILE(name, rows, vecs, true)
#define VALUE_PLAIN(name, rows, vecs) VALUE_TILE(name, rows, vecs, false)
TILE_ALL(score_dot, SCORE_DOT)
TILE_ALL(score_plain, SCORE_PLAIN)
TILE_ALL(value_dot, VALUE_DOT)
TILE_ALL(value_plain, VALUE_PLAIN)
#ifdef VI_MATRIX
TILE_ALL(score_matrix, SCORE_MATRIX)
#endif
static score_fn *const score_tiles[][TILE_ROWS][TILE_VECS] = {
    [PLAIN] = TILE_TABLE(score_plain),
    [DOT] = TILE_TABLE(score_dot),
#ifdef VI_MATRIX
    [MATRIX] = TILE_TABLE(score_matrix),
#endif
};
static value_fn *const value_tiles[2][TILE_ROWS][TILE_VECS] = { TILE_TABLE(value_plain),
                                                                TILE_TABLE(value_dot) };

/* Turns the scores of row r into probabilities; returns their sum per lane. */
static vf probabilities(const i8_chunk *f, int64_t r, float by, float max)
{
    score_row row = { f->scores + r * f->width, vf_set1(by), vf_set1(max), vf_zero() };
    int16_t *to = (int16_t *)f->probs + r * f->width;
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
    float *out = output_row(f, i);
    int64_t max_rows = f->dot ? TILE_ROWS : PLAIN_ROWS, panel = dim_panel_width(a->dim);
    float largest[TILE_ROWS], by[VF_LANES];
    vf top[TILE_ROWS], sum[TILE_ROWS];
    prefetch_output(f, i, rows);
    for (int64_t r = 0; r < rows; r++) top[r] = vf_set1(-INFINITY);
    for (int64_t j = 0; j < f->width; j += TILE_COLS)
        for (int64_t r = 0; r < rows; r += max_rows)
            score_tiles[f->dot][tile_min(max_rows, rows - r) - 1][panel_width(f->width, j) / VF_LANES - 1](
                f, f->scores + r * f->width, top + r, q + r * 4 * f->quads, j);
    for (int64_t r = 0; r < rows; r++) largest[r] = vf_hmax(top[r]);
    for (int64_t r = 0; r < rows; r++) sum[r] = probabilities(f, r, f->q_scale[i + r], largest[r]);
    output_factors(f, by, sum, rows);
    for (int64_t d = 0; d < a->dim; d += panel) {
        int64_t width = tile_min(panel, tile_round_up(a->dim, VF_LANES) - d);
        value_tiles[f->dot != PLAIN][rows - 1][width / VF_LANES - 1](f, out, by, d);
    }
}

static void attend_chunk(const i8_chunk *f)
{
    for (int64_t i = 0, rows, left = tile_count(f->n); left > 0; left--, i += rows) {
        rows = even_rows(f->n - i, left);
        attend_i8(f, i, rows);
    }
}

typedef struct i8_job {
    ses_attn *a;
    int dot; /* see dot_kind */
} i8_job;

static void run_i8_chunk(void *ctx, int64_t index, void *scratch)
{
    const i8_job *b = ctx;
    int64_t blocks = ses_chunks(b->a->max_seqlen_q, QUERIES),
            pairs = ses_chunks(b->a->max_seqlen_q, QUERIES_I8);
    int64_t head = index / pairs, block = index % pairs;
    if (run_i8_queries(b->a, b->dot, head, block, scratch)) return;
    for (int64_t i = 2 * block; i < tile_min(2 * block + 2, blocks); i++)
        VF_NAME(ses_attention_chunk)(b->a, head * blocks + i, scratch);
}

void VF_NAME(ses_k_attention_i8)(ses_exec *x, const ses_attn *a, bool no_dot)
{
    ses_attn copy = *a;
    i8_job b = { .a = &copy, .dot = no_dot ? PLAIN : dot_kind() };
    int64_t blocks = (a->max_seqlen_q + QUERIES_I8 - 1) / QUERIES_I8;
    if (ses_attn_i8_supported(a))
        parallel_items(x, a->seqs * a->heads * blocks,
                       tile_min(QUERIES_I8, a->max_seqlen_q) * a->max_seqlen_k * a->dim / 2, run_i8_chunk,
                       &b);
    else
        VF_NAME(ses_k_attention)(x, a);
}
