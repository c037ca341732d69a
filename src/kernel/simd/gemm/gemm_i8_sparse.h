/* int8 products with a sparse B: of each column only the quads (four consecutive rows) that are not all zero.
 *
 * A vector holds one quad of VF_LANES tokens: A is rearranged to [quads][SPARSE_TOKENS][4], and every quad of
 * B is multiplied with SPARSE_VECS vectors. Columns are summed SPARSE_GROUP at a time, because their lists
 * have different quads but nearly the same length: the columns of a block are sorted by length, and the
 * shorter lists of a group are filled with zeros. A deep A is summed in parts that fit the L1 cache. Sums are
 * exact, so the result has the bits of a dense B.
 *
 * Packed: header, scales and zero-point corrections as of a dense B, start[blocks] in bytes from the first
 * block, then the blocks. A block has for each part of A a sparse_part, followed by the steps of its groups:
 *
 *     uint16_t offset[SPARSE_GROUP]       in the part of A, in units of 8 bytes
 *     int8_t quad[SPARSE_GROUP][4]
 *
 * The including file defines SPARSE_SHARE, see ses_k_gemm_i8_sparse_size. */
#ifndef SES_KERNEL_GEMM_I8_SPARSE_H
#define SES_KERNEL_GEMM_I8_SPARSE_H

#include <stdatomic.h>

enum {
    SPARSE_VECS = 2,
    SPARSE_TOKENS = SPARSE_VECS * VF_LANES,
    SPARSE_GROUP = 4,
    SPARSE_COLS = 64, /* columns of a block */
    SPARSE_STEP = 6 * SPARSE_GROUP,
    SPARSE_QUAD = 4 * SPARSE_TOKENS,              /* bytes of a quad of A */
    SPARSE_PART_QUADS = (24 << 10) / SPARSE_QUAD, /* 24 KB of A */
    SPARSE_SUM_BYTES = SPARSE_COLS * SPARSE_QUAD, /* sums of a block */
    SPARSE_START_STEP = LINE_BYTES / 8,           /* entries of a line of start[] */
    /* most scratch memory of a product */
    SPARSE_SCRATCH = SPARSE_QUAD * (SES_GEMM_I8_MAX_K / 4) + SPARSE_SUM_BYTES,
};

typedef struct sparse_part {
    uint8_t order[SPARSE_COLS]; /* columns by length of their lists */
    uint16_t steps[SPARSE_COLS / SPARSE_GROUP];
} sparse_part;

static int64_t sparse_blocks(int64_t n) { return ses_chunks(n, SPARSE_COLS); }

/* Quads of a part of A. All parts have about the same size. */
static int64_t sparse_part_quads(int64_t k)
{
    int64_t quads = ses_quad_count(k);
    return ses_chunks(quads, ses_chunks(quads, SPARSE_PART_QUADS));
}

/* ---- packing ---- */

/* A part of a block's columns while it is packed. */
typedef struct sparse_lists {
    const int8_t *column; /* [SPARSE_COLS][4 quads of B] */
    int64_t row;          /* bytes of a column */
    int64_t begin, end;   /* quads of the part */
    int64_t length[SPARSE_COLS];
    sparse_part part;
} sparse_lists;

static bool quad_is_zero(const int8_t *q)
{
    int32_t x;
    memcpy(&x, q, sizeof x);
    return x == 0;
}

/* Counts the quads of each column and sorts the columns by their number, stable. */
static void sparse_sort(sparse_lists *s)
{
    for (int j = 0; j < SPARSE_COLS; j++) {
        s->length[j] = 0;
        for (int64_t q = s->begin; q < s->end; q++)
            s->length[j] += !quad_is_zero(s->column + j * s->row + 4 * q);
        int at = j;
        for (; at > 0 && s->length[s->part.order[at - 1]] < s->length[j]; at--)
            s->part.order[at] = s->part.order[at - 1];
        s->part.order[at] = (uint8_t)j;
    }
    for (int j = 0; j < SPARSE_COLS; j += SPARSE_GROUP)
        s->part.steps[j / SPARSE_GROUP] = (uint16_t)s->length[s->part.order[j]];
}

/* Writes the steps of one group; returns their end. */
static char *sparse_put_group(const sparse_lists *s, int first, char *to)
{
    int64_t at[SPARSE_GROUP];
    for (int i = 0; i < SPARSE_GROUP; i++) at[i] = s->begin;
    for (int64_t step = 0; step < s->part.steps[first / SPARSE_GROUP]; step++, to += SPARSE_STEP)
        for (int i = 0; i < SPARSE_GROUP; i++) {
            const int8_t *column = s->column + s->part.order[first + i] * s->row;
            while (at[i] < s->end && quad_is_zero(column + 4 * at[i])) at[i]++;
            bool more = at[i] < s->end;
            uint16_t offset = (uint16_t)(more ? (at[i] - s->begin) * (SPARSE_QUAD / 8) : 0);
            memcpy(to + 2 * i, &offset, sizeof offset);
            memset(to + 2 * SPARSE_GROUP + 4 * i, 0, 4);
            if (more) memcpy(to + 2 * SPARSE_GROUP + 4 * i, column + 4 * at[i]++, 4);
        }
    return to;
}

/* Packs the columns of a block to `to`, or only counts (NULL). Returns the bytes. */
static int64_t sparse_pack_columns(const int8_t *column, int64_t k, char *to)
{
    int64_t quads = ses_quad_count(k), depth = sparse_part_quads(k), bytes = 0;
    sparse_lists s = { .column = column, .row = 4 * quads };
    for (; s.begin < quads; s.begin = s.end) {
        s.end = tile_min(quads, s.begin + depth);
        sparse_sort(&s);
        char *at = to ? to + bytes : NULL;
        if (at) memcpy(at, &s.part, sizeof s.part), at += sizeof s.part;
        bytes += (int64_t)sizeof s.part;
        for (int j = 0; j < SPARSE_COLS; j += SPARSE_GROUP) {
            if (at) at = sparse_put_group(&s, j, at);
            bytes += SPARSE_STEP * (int64_t)s.part.steps[j / SPARSE_GROUP];
        }
    }
    return bytes;
}

_Static_assert((int64_t)SPARSE_COLS *SES_GEMM_I8_MAX_K <= SES_SCRATCH_BYTES, "scratch");

/* int8 columns of a block, zeros past n. */
static const int8_t *sparse_load(const packing *c, int64_t block, int8_t *column)
{
    int64_t row = 4 * ses_quad_count(c->k), j = block * SPARSE_COLS, n = tile_min(SPARSE_COLS, c->n - j);
    for (int64_t i = 0; i < n; i++) load_column(c, j + i, column + i * row);
    memset(column + n * row, 0, (size_t)((SPARSE_COLS - n) * row));
    return column;
}

typedef struct sparse_packing {
    packing from;
    atomic_int_least64_t bytes; /* total size of the blocks */
    int64_t *start;             /* size of each block, later its offset; NULL: not kept */
    char *block;
} sparse_packing;

static void sparse_count_chunk(void *ctx, int64_t index, void *scratch)
{
    sparse_packing *c = ctx;
    int64_t bytes = sparse_pack_columns(sparse_load(&c->from, index, scratch), c->from.k, NULL);
    if (c->start) c->start[index] = bytes;
    atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
}

/* Packs a block, with its scales and zero-point corrections. */
static void sparse_pack_chunk(void *ctx, int64_t index, void *scratch)
{
    const sparse_packing *c = ctx;
    const int8_t *column = sparse_load(&c->from, index, scratch);
    int64_t row = 4 * ses_quad_count(c->from.k), begin = index * SPARSE_COLS;
    int64_t end = tile_min(begin + SPARSE_COLS, tile_round_up(c->from.n, VF_LANES));
    for (int64_t j = begin; j < end; j++) {
        int32_t sum = 0;
        for (int64_t p = 0; p < row; p++) sum += column[(j - begin) * row + p];
        c->from.zp_correction[j] = SES_I8_ZERO * sum;
        if (j >= c->from.n)
            c->from.scale[j] = 0;
        else if (c->from.bytes)
            c->from.scale[j] = c->from.bytes_scale[j];
    }
    sparse_pack_columns(column, c->from.k, c->block + c->start[index]);
}

static packing sparse_source(const ses_i8_weight *w)
{
    return (packing){ .b = w->b,
                      .bytes = w->bytes,
                      .bytes_scale = w->scale,
                      .b_row = w->b_row,
                      .b_col = w->b_col,
                      .n = w->n,
                      .k = w->k };
}

typedef struct sparse_sampling {
    const packing *from;
    int64_t quads; /* that are not zero */
} sparse_sampling;

enum { SPARSE_SAMPLES = 16 };

static void sparse_sample_chunk(void *ctx, int64_t index, void *scratch)
{
    sparse_sampling *s = ctx;
    int64_t quads = ses_quad_count(s->from->k);
    (void)index;
    for (int64_t i = 0; i < SPARSE_SAMPLES; i++) {
        int8_t *column = scratch;
        load_column(s->from, i * s->from->n / SPARSE_SAMPLES, column);
        for (int64_t q = 0; q < quads; q++) s->quads += !quad_is_zero(column + 4 * q);
    }
}

/* Share of quads that are not zero in some columns of B. */
static double sparse_sample(ses_exec *x, const packing *c)
{
    sparse_sampling s = { .from = c };
    ses_parallel_for(x->pool, 1, sparse_sample_chunk, &s);
    return (double)s.quads / (double)(SPARSE_SAMPLES * ses_quad_count(c->k));
}

/* Bytes before the first block. */
static int64_t sparse_head(int64_t n)
{
    return (int64_t)sizeof(packed_header) + tile_round_up(n, VF_LANES) * 8 +
           tile_round_up(sparse_blocks(n), SPARSE_START_STEP) * (int64_t)sizeof(int64_t);
}

int64_t VF_NAME(ses_k_gemm_i8_sparse_size)(ses_exec *x, const ses_i8_weight *w, double max_share)
{
    sparse_packing c = { .from = sparse_source(w) };
    double dense = (double)w->n * (double)ses_quad_count(w->k), share = max_share ? max_share : SPARSE_SHARE;
    if (w->n <= 0 || w->k <= 0 || sparse_sample(x, &c.from) > (1 + share) / 2) return 0;
    ses_parallel_for(x->pool, sparse_blocks(w->n), sparse_count_chunk, &c);
    int64_t parts = ses_chunks(ses_quad_count(w->k), sparse_part_quads(w->k)),
            lists = c.bytes - sparse_blocks(w->n) * parts * (int64_t)sizeof(sparse_part);
    if ((double)lists / SPARSE_STEP * SPARSE_GROUP > share * dense && max_share < 1) return 0;
    return sparse_head(w->n) + c.bytes;
}

void VF_NAME(ses_k_gemm_i8_sparse_pack)(ses_exec *x, void *packed, const ses_i8_weight *w)
{
    packed_header *h = packed;
    int64_t width = tile_round_up(w->n, VF_LANES), blocks = sparse_blocks(w->n), at = 0;
    *h = (packed_header){ .dot = dot_kind() ? DOT : PLAIN, .sparse = 1 };
    sparse_packing c = { .from = sparse_source(w), .block = (char *)packed + sparse_head(w->n) };
    c.start = (int64_t *)(void *)((char *)(h + 1) + 8 * width);
    ses_parallel_for(x->pool, blocks, sparse_count_chunk, &c);
    for (int64_t i = 0, bytes; i < blocks; i++, at += bytes) bytes = c.start[i], c.start[i] = at;
    c.from.scale = (float *)(void *)(h + 1);
    c.from.zp_correction = (int32_t *)(void *)(c.from.scale + width);
    ses_parallel_for(x->pool, blocks, sparse_pack_chunk, &c);
}

/* ---- the product ---- */

/* Scratch memory of a thread. */
typedef struct sparse_rows {
    uint8_t *a;        /* [quads][SPARSE_TOKENS][4] */
    int32_t *sum;      /* [SPARSE_COLS][SPARSE_TOKENS] */
    const uint8_t *of; /* the rows that are in a; NULL: none */
} sparse_rows;

static int64_t sparse_scratch_bytes(int64_t k) { return SPARSE_QUAD * ses_quad_count(k) + SPARSE_SUM_BYTES; }

static sparse_rows sparse_scratch(void *at)
{
    return (sparse_rows){ .a = (uint8_t *)at + SPARSE_SUM_BYTES, .sum = at };
}

/* Adds the steps of a group to its sums. Returns the end of the steps. */
VF_INLINE const char *sparse_group(int32_t *sum, const uint8_t *order, const uint8_t *a, const char *at,
                                   int64_t steps, const bool first, const int vecs, const int dot)
{
    vi c[SPARSE_GROUP][SPARSE_VECS];
    TILE_UNROLL for (int i = 0; i < SPARSE_GROUP; i++) TILE_UNROLL for (int v = 0; v < vecs; v++) c[i][v] =
        first ? vi_set1(0) : vi_load(sum + order[i] * SPARSE_TOKENS + v * VF_LANES);
    for (; steps > 0; steps--, at += SPARSE_STEP) {
        TILE_UNROLL for (int i = 0; i < SPARSE_GROUP; i++)
        {
            uint16_t offset;
            memcpy(&offset, at + 2 * i, sizeof offset);
            const uint8_t *quad = a + (size_t)offset * 8;
            vq b = vq_load(at + 2 * SPARSE_GROUP + 4 * i);
            TILE_UNROLL for (int v = 0; v < vecs; v++)
            {
                vi tokens = vi_load(quad + 4 * v * VF_LANES);
                c[i][v] = dot ? vi_dot4_each(c[i][v], tokens, b) : vi_dot4_each_plain(c[i][v], tokens, b);
            }
        }
    }
    TILE_UNROLL for (int i = 0; i < SPARSE_GROUP; i++) TILE_UNROLL for (int v = 0; v < vecs; v++)
        vi_store(sum + order[i] * SPARSE_TOKENS + v * VF_LANES, c[i][v]);
    return at;
}

#ifdef VI_HALF
/* The same for half a vector of tokens. */
VF_INLINE const char *sparse_group_half(int32_t *sum, const uint8_t *order, const uint8_t *a, const char *at,
                                        int64_t steps, const bool first)
{
    vh c[SPARSE_GROUP];
    TILE_UNROLL for (int i = 0; i < SPARSE_GROUP; i++) c[i] =
        first ? vh_zero() : vh_load(sum + order[i] * SPARSE_TOKENS);
    for (; steps > 0; steps--, at += SPARSE_STEP) {
        TILE_UNROLL for (int i = 0; i < SPARSE_GROUP; i++)
        {
            uint16_t offset;
            memcpy(&offset, at + 2 * i, sizeof offset);
            c[i] = vh_dot4_each(c[i], vh_load(a + (size_t)offset * 8),
                                vh_load_quad(at + 2 * SPARSE_GROUP + 4 * i));
        }
        __builtin_prefetch(at + AHEAD_BYTES, 0, 2); /* few rows read B from memory */
    }
    TILE_UNROLL for (int i = 0; i < SPARSE_GROUP; i++) vh_store(sum + order[i] * SPARSE_TOKENS, c[i]);
    return at;
}
#else
#define sparse_group_half(sum, order, a, at, steps, first) \
    sparse_group(sum, order, a, at, steps, first, 1, 1) /* never used */
#endif

enum { HALF_VEC = 0 }; /* a number of vectors */

/* Sums of a block: all its parts. */
VF_INLINE void sparse_block_sum(const sparse_rows *s, const char *at, int64_t k, const int vecs,
                                const int dot)
{
    int64_t quads = ses_quad_count(k), depth = sparse_part_quads(k);
    for (int64_t q = 0; q < quads; q += depth) {
        sparse_part part;
        memcpy(&part, at, sizeof part);
        at += sizeof part;
        const uint8_t *a = s->a + q * SPARSE_QUAD;
        for (int g = 0; g < SPARSE_COLS / SPARSE_GROUP; g++) {
            const uint8_t *order = part.order + SPARSE_GROUP * g;
            int64_t steps = part.steps[g];
            if (vecs == HALF_VEC)
                at = q ? sparse_group_half(s->sum, order, a, at, steps, false)
                       : sparse_group_half(s->sum, order, a, at, steps, true);
            else
                at = q ? sparse_group(s->sum, order, a, at, steps, false, vecs, dot)
                       : sparse_group(s->sum, order, a, at, steps, true, vecs, dot);
        }
    }
}

typedef void sparse_sum_fn(const sparse_rows *s, const char *at, int64_t k);

#define SPARSE_SUM(name, vecs, dot)                                   \
    static void name(const sparse_rows *s, const char *at, int64_t k) \
    {                                                                 \
        sparse_block_sum(s, at, k, vecs, dot);                        \
    }
SPARSE_SUM(sparse_dot_1, 1, DOT)
SPARSE_SUM(sparse_dot_2, 2, DOT)
#ifdef VI_HALF
SPARSE_SUM(sparse_dot_half, HALF_VEC, DOT)
#endif
#ifndef __AVX512VNNI__
SPARSE_SUM(sparse_plain_1, 1, PLAIN)
SPARSE_SUM(sparse_plain_2, 2, PLAIN)
#endif

/* The function for a number of rows. */
static sparse_sum_fn *sparse_sum_of(int64_t rows, int dot)
{
#ifndef __AVX512VNNI__
    if (dot == PLAIN) return rows > VF_LANES ? sparse_plain_2 : sparse_plain_1;
#endif
    (void)dot;
#ifdef VI_HALF
    if (rows <= VF_LANES / 2) return sparse_dot_half;
#endif
    return rows > VF_LANES ? sparse_dot_2 : sparse_dot_1;
}

/* The sums of VF_LANES columns and at most as many tokens, scaled: t = sum * row scale * column scale + bias,
 * as i8_tile_run. */
VF_INLINE void sparse_scale(float *t, const i8_block *in, const int32_t *sum, int64_t rows, const bool gelu)
{
    vf c[VF_LANES], by = vf_load(in->b_scale), bias = in->bias ? vf_load(in->bias) : vf_zero();
    vi zero = vi_load(in->zp_correction);
    TILE_UNROLL for (int i = 0; i < VF_LANES; i++) c[i] = vf_of_bits(vi_load(sum + i * SPARSE_TOKENS));
    vf_transpose(c);
    for (int64_t i = 0; i < rows; i++) {
        vf x = i8_scaled(vi_sub(vi_of_bits(c[i]), zero), vf_mul(vf_set1(in->a_scale[i]), by), bias);
        vf_store(t + i * in->ldt, gelu ? vf_gelu_approx(x) : x);
    }
}

/* Writes the sums of `rows` tokens from row i on and of the block's columns to C. */
static void sparse_store(const sparse_rows *s, const ses_gemm *g, const packed_panels *b,
                         const float *a_scale, int64_t i, int64_t rows, int64_t block)
{
    float tile[VF_LANES * TILE_COLS];
    int64_t begin = block * SPARSE_COLS, end = tile_min(g->n, begin + SPARSE_COLS);
    for (int64_t v = 0; v < rows; v += VF_LANES) {
        int64_t count = tile_min(VF_LANES, rows - v);
        for (int64_t j = begin; j < end; j += VF_LANES) {
            bool direct = is_direct(g, j, VF_LANES);
            const int32_t *sum = s->sum + (j - begin) * SPARSE_TOKENS + v;
            i8_block in = { .a_scale = a_scale + v,
                            .b_scale = b->scale + j,
                            .zp_correction = b->zp_correction + j,
                            .bias = direct && g->bias ? g->bias + j : NULL,
                            .ldt = direct ? g->ldc : TILE_COLS };
            float *to = direct ? g->c + (i + v) * g->ldc + j : tile;
            if (direct && g->act == SES_ACT_GELU)
                sparse_scale(to, &in, sum, count, true);
            else
                sparse_scale(to, &in, sum, count, false);
            if (!direct)
                tile_store(g, (tile_pass){ true, true }, tile, i + v, count, j, tile_min(VF_LANES, end - j),
                           true);
        }
    }
}

/* Multiplies rows i .. end - 1 of A with some blocks of columns. a: the rows from 0 on. */
static void run_sparse(sparse_rows *s, const ses_gemm *g, ses_i8_rows a, int64_t i, int64_t end,
                       ses_range blocks)
{
    packed_panels b = panels_of(g->packed, g->n);
    const int64_t *start = (const int64_t *)(const void *)b.panel;
    const char *block = (const char *)g->packed + sparse_head(g->n);
    int64_t quads = ses_quad_count(g->k);
    for (int64_t rows; i < end; i += rows) {
        rows = tile_min(SPARSE_TOKENS, end - i);
        const uint8_t *from = a.q + i * 4 * quads;
        for (int64_t v = 0; v < rows && s->of != from; v += VF_LANES)
            transpose_vector((float *)(void *)s->a + v, SPARSE_TOKENS,
                             (const float *)(const void *)(from + v * 4 * quads), quads,
                             tile_min(VF_LANES, rows - v), quads);
        s->of = from;
        sparse_sum_fn *sum = sparse_sum_of(rows, b.dot);
        for (int64_t p = blocks.begin; p < blocks.end; p++) {
            sum(s, block + start[p], g->k);
            sparse_store(s, g, &b, a.scale + i, i, rows, p);
        }
    }
}

typedef struct sparse_job {
    const ses_gemm *g;
    ses_i8_rows a;
    int64_t rows, group, groups; /* rows and blocks of columns per chunk; groups of columns */
} sparse_job;

static void sparse_chunk(void *ctx, int64_t index, void *scratch)
{
    const sparse_job *b = ctx;
    ses_range rows = ses_chunk(b->g->m, b->rows, index / b->groups);
    sparse_rows s = sparse_scratch(scratch);
    run_sparse(&s, b->g, b->a, rows.begin, rows.end,
               ses_chunk(sparse_blocks(b->g->n), b->group, index % b->groups));
}

/* One product without an epilogue. Columns are divided if there are too few rows for all threads. */
static void run_sparse_product(ses_exec *x, const ses_gemm *g, ses_i8_rows a)
{
    enum { CHUNKS_PER_THREAD = 4 };
    int64_t threads = ses_thread_pool_size(x->pool), least = threads > 1 ? CHUNKS_PER_THREAD * threads : 1;
    sparse_job b = { .g = g, .a = a, .rows = SPARSE_TOKENS };
    int64_t strips = ses_chunks(g->m, b.rows), blocks = sparse_blocks(g->n);
    b.group = ses_chunks(blocks, tile_min(blocks, ses_chunks(least, strips)));
    b.groups = ses_chunks(blocks, b.group);
    ses_parallel_for(x->pool, strips * b.groups, sparse_chunk, &b);
}

#endif
