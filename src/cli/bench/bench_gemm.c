/* bench gemm: matrix products in the shapes of BERT, forward and backward, compared with other libraries. */
#include "base/alloc.h"
#include "bench.h"
#include "cli/standard_output.h"
#include "cli/ui/text_table.h"
#include "gemm_peers.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_M = 2048, COLD_BYTES = 128 << 20, SIZES = 6 };

typedef struct shape {
    int64_t n, k;
} shape;

static const shape shapes[] = { { 768, 768 }, { 3072, 768 }, { 768, 3072 } };
static const int64_t sizes[SIZES] = { 1, 8, 32, 128, 512, 2048 };
static const bool quick_size[SIZES] = { false, true, false, true, true, false };

/* Shares of zero blocks of the sparse int8 weights; COLD_SPARSE has all copies. */
enum { SPARSE = 4, COLD_SPARSE = 2 };
static const double zero_share[SPARSE] = { 0.5, 0.7, 0.8, 0.9 };

/* Buffers of one N x K; enough copies of the weights that rotating over them exceeds the cache. */
typedef struct weights {
    shape s;
    int64_t m;
    int64_t copies, packed_size; /* elements per copy */
    int64_t bytes_size;          /* bytes per int8 copy */
    float *w;                    /* [copies][n * k] */
    char *packed;                /* [copies][packed_size] of packed_dtype */
    ses_dtype packed_dtype;      /* SES_BF16 if products take bf16 operands */
    uint16_t *half;              /* [copies][packed_size] */
    char *bytes;                 /* [copies][bytes_size] */
    char *sparse[SPARSE];        /* int8 weights with zero blocks, sparse_size bytes per copy */
    int64_t sparse_size[SPARSE];
    uint8_t *rows; /* x quantized to int8; scale: [MAX_M] */
    float *scale;
    float *x, *y, *dw, *bias; /* [MAX_M, k], [MAX_M, n], [n, k], [n] */
    ses_device *dev;
    const ses_gemm_peer *peer; /* NULL: Sesame */
} weights;

/* ---- products ---- */

static void multiply(const weights *v, const void *packed, const float *bias, ses_act act)
{
    ses_gemm g = ses_gemm_nt(v->y, v->x, v->w, v->m, v->s.n, v->s.k);
    g.packed = packed;
    g.packed_dtype = v->packed_dtype;
    g.bias = bias;
    g.act = act;
    v->dev->k.gemm(&v->dev->exec, &g);
}

/* Bytes of n packed copies. */
static int64_t packed_bytes(const weights *v, int64_t n)
{
    return n * v->packed_size * (int64_t)ses_dtype_size(v->packed_dtype);
}

static void hot(void *ctx, int64_t call)
{
    const weights *v = ctx;
    (void)call;
    multiply(v, v->packed, NULL, SES_ACT_NONE);
}

static void cold(void *ctx, int64_t call)
{
    const weights *v = ctx;
    multiply(v, v->packed + packed_bytes(v, call % v->copies), NULL, SES_ACT_NONE);
}

static void multiply_half(const weights *v, int64_t copy)
{
    ses_gemm g = ses_gemm_nt(v->y, v->x, v->w, v->m, v->s.n, v->s.k);
    g.packed = v->half + copy * v->packed_size;
    g.packed_dtype = SES_F16;
    v->dev->k.gemm(&v->dev->exec, &g);
}

static void half_hot(void *ctx, int64_t call)
{
    (void)call;
    multiply_half(ctx, 0);
}

static void half_cold(void *ctx, int64_t call)
{
    const weights *v = ctx;
    multiply_half(v, call % v->copies);
}

static void multiply_i8(const weights *v, const void *packed)
{
    ses_gemm g = ses_gemm_nt(v->y, v->x, v->w, v->m, v->s.n, v->s.k);
    g.packed = packed;
    g.packed_dtype = SES_I8;
    ses_i8_rows rows = { v->rows, v->scale };
    v->dev->k.quantize_rows(&v->dev->exec, rows, v->x, v->m, v->s.k);
    v->dev->k.gemm_i8(&v->dev->exec, &g, 1, rows, NULL);
}

static void bytes_hot(void *ctx, int64_t call)
{
    const weights *v = ctx;
    (void)call;
    multiply_i8(v, v->bytes);
}

static void bytes_cold(void *ctx, int64_t call)
{
    const weights *v = ctx;
    multiply_i8(v, v->bytes + call % v->copies * v->bytes_size);
}

#define SPARSE_HOT(name, i)                   \
    static void name(void *ctx, int64_t call) \
    {                                         \
        const weights *v = ctx;               \
        (void)call;                           \
        multiply_i8(v, v->sparse[i]);         \
    }
SPARSE_HOT(half_zero, 0)
SPARSE_HOT(zero_70, 1)
SPARSE_HOT(zero_80, 2)
SPARSE_HOT(zero_90, 3)

static void sparse_cold(void *ctx, int64_t call)
{
    const weights *v = ctx;
    multiply_i8(v, v->sparse[COLD_SPARSE] + call % v->copies * v->sparse_size[COLD_SPARSE]);
}

static void pack_in_call(void *ctx, int64_t call)
{
    (void)call;
    multiply(ctx, NULL, NULL, SES_ACT_NONE);
}

static void with_gelu(void *ctx, int64_t call)
{
    const weights *v = ctx;
    (void)call;
    multiply(v, v->packed, v->bias, SES_ACT_GELU);
}

static void dx(void *ctx, int64_t call) /* x = y w */
{
    const weights *v = ctx;
    (void)call;
    ses_gemm g = ses_gemm_nn(v->x, v->y, v->w, v->m, v->s.k, v->s.n);
    v->dev->k.gemm(&v->dev->exec, &g);
}

static void dw(void *ctx, int64_t call) /* dw = y' x */
{
    const weights *v = ctx;
    (void)call;
    ses_gemm g = ses_gemm_tn(v->dw, v->y, v->x, v->s.n, v->s.k, v->m);
    v->dev->k.gemm(&v->dev->exec, &g);
}

static void peer_forward(const weights *v, const float *w)
{
    ses_gemm_problem p = { false, true, v->m, v->s.n, v->s.k, v->x, w, v->y };
    v->peer->multiply(v->peer, &p);
}

static void peer_hot(void *ctx, int64_t call)
{
    const weights *v = ctx;
    (void)call;
    peer_forward(v, v->w);
}

static void peer_cold(void *ctx, int64_t call)
{
    const weights *v = ctx;
    peer_forward(v, v->w + call % v->copies * (v->s.n * v->s.k));
}

static void peer_dx(void *ctx, int64_t call)
{
    const weights *v = ctx;
    (void)call;
    ses_gemm_problem p = { false, false, v->m, v->s.k, v->s.n, v->y, v->w, v->x };
    v->peer->multiply(v->peer, &p);
}

static void peer_dw(void *ctx, int64_t call)
{
    const weights *v = ctx;
    (void)call;
    ses_gemm_problem p = { true, false, v->s.n, v->s.k, v->m, v->y, v->x, v->dw };
    v->peer->multiply(v->peer, &p);
}

typedef struct comparison {
    const char *bench, *title; /* in JSON; in the table */
    void (*sesame)(void *ctx, int64_t call), (*peer)(void *ctx, int64_t call);
} comparison;

static const comparison comparisons[] = {
    { "gemm", "forward, packed, hot", hot, peer_hot },
    { "gemm_cold", "forward, packed, cold", cold, peer_cold },
    { "gemm_f16", "f16 weights, hot", half_hot, NULL },
    { "gemm_f16_cold", "f16 weights, cold", half_cold, NULL },
    { "gemm_i8", "int8 weights, hot", bytes_hot, NULL },
    { "gemm_i8_cold", "int8 weights, cold", bytes_cold, NULL },
    { "gemm_i8_zero50", "int8, half of the blocks 0", half_zero, NULL },
    { "gemm_i8_zero70", "int8, 70 % of the blocks 0", zero_70, NULL },
    { "gemm_i8_zero80", "int8, 80 % of the blocks 0", zero_80, NULL },
    { "gemm_i8_zero90", "int8, 90 % of the blocks 0", zero_90, NULL },
    { "gemm_i8_zero80_cold", "int8, 80 % of the blocks 0, cold", sparse_cold, NULL },
    { "gemm_onthefly", "packed in the call", pack_in_call, NULL },
    { "gemm_gelu", "packed, bias + GELU", with_gelu, NULL },
    { "gemm_dx", "backward dX", dx, peer_dx },
    { "gemm_dw", "backward dW", dw, peer_dw },
};

enum { COMPARISONS = SES_LEN(comparisons), ROWS = COMPARISONS * (1 + SES_GEMM_PEERS) };

/* Splits row r of the table: a comparison, and a side (0: Sesame, else a peer). */
static void split_row(size_t r, size_t *comparison_, size_t *side)
{
    *comparison_ = r / (1 + SES_GEMM_PEERS);
    *side = r % (1 + SES_GEMM_PEERS);
}

/* ---- buffers ---- */

static void fill(float *x, int64_t n)
{
    uint32_t state = 12345;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1; /* in [-1, 1): hardly any zeros or subnormals */
    }
}

static float *random_floats(int64_t n, ses_err *e)
{
    float *x = ses_alloc_aligned((size_t)n * sizeof *x, e);
    if (x) fill(x, n);
    return x;
}

static void weights_free(weights *v)
{
    ses_free(v->w);
    ses_free(v->packed);
    ses_free(v->x);
    ses_free(v->y);
    ses_free(v->dw);
    ses_free(v->bias);
    ses_free(v->half);
    ses_free(v->bytes);
    for (int i = 0; i < SPARSE; i++) ses_free(v->sparse[i]);
    ses_free(v->rows);
    ses_free(v->scale);
}

/* Packs weights with zero blocks, densely at levels without sparse products. */
static bool pack_sparse(weights *v, int i, float *w, ses_err *e)
{
    const ses_kernels *k = &v->dev->k;
    ses_i8_weight from = { .b = w, .b_row = 1, .b_col = v->s.k, .n = v->s.n, .k = v->s.k };
    int64_t count = v->s.n * v->s.k, copies = i == COLD_SPARSE ? v->copies : 1;
    uint32_t state = 1;
    memcpy(w, v->w, (size_t)count * sizeof *w);
    for (int64_t at = 0; at < count; at += 4) {
        state = state * 1664525 + 1013904223;
        if ((state >> 8) * 0x1p-24 < zero_share[i]) memset(w + at, 0, 4 * sizeof *w);
    }
    int64_t bytes = k->gemm_i8_sparse_size(&v->dev->exec, &from, 1);
    v->sparse_size[i] = ((bytes ? bytes : k->gemm_i8_pack_size(v->s.n, v->s.k)) + 63) / 64 * 64;
    v->sparse[i] = ses_alloc_aligned((size_t)(copies * v->sparse_size[i]), e);
    if (!v->sparse[i]) return false;
    k->gemm_i8_sparse_pack(&v->dev->exec, v->sparse[i], &from);
    for (int64_t c = 1; c < copies; c++)
        memcpy(v->sparse[i] + c * v->sparse_size[i], v->sparse[i], (size_t)v->sparse_size[i]);
    return true;
}

static bool weights_new(weights *v, ses_bench *b, shape s, ses_err *e)
{
    int64_t count = s.n * s.k;
    *v = (weights){ .s = s, .dev = b->dev, .packed_dtype = b->dev->exec.bf16 ? SES_BF16 : SES_REAL };
    v->copies = COLD_BYTES / (count * (int64_t)sizeof(float)) + 1;
    v->packed_size = b->dev->k.gemm_pack_size(s.n, s.k);
    v->w = random_floats(v->copies * count, e);
    v->packed = ses_alloc_aligned((size_t)packed_bytes(v, v->copies), e);
    v->x = random_floats(MAX_M * s.k, e);
    v->y = random_floats(MAX_M * s.n, e);
    v->dw = random_floats(count, e);
    v->bias = random_floats(s.n, e);
    v->bytes_size = (b->dev->k.gemm_i8_pack_size(s.n, s.k) + 63) / 64 * 64;
    v->half = ses_alloc_aligned((size_t)(v->copies * v->packed_size) * sizeof *v->half, e);
    v->bytes = ses_alloc_aligned((size_t)(v->copies * v->bytes_size), e);
    v->rows = ses_alloc_aligned((size_t)(MAX_M * 4 * ses_quad_count(s.k)), e);
    v->scale = random_floats(MAX_M, e);
    if (!v->w || !v->packed || !v->x || !v->y || !v->dw || !v->bias || !v->half || !v->bytes || !v->rows ||
        !v->scale)
        return false;
    for (int64_t i = 0; i < v->copies; i++) {
        b->dev->k.gemm_pack(&b->dev->exec, v->packed + packed_bytes(v, i), v->packed_dtype, v->w + i * count,
                            1, s.k, s.n, s.k);
        b->dev->k.gemm_pack(&b->dev->exec, v->half + i * v->packed_size, SES_F16, v->w + i * count, 1, s.k,
                            s.n, s.k);
        b->dev->k.gemm_i8_pack(&b->dev->exec, v->bytes + i * v->bytes_size, v->w + i * count, 1, s.k, s.n,
                               s.k);
    }
    bool ok = true;
    for (int i = 0; ok && i < SPARSE; i++) ok = pack_sparse(v, i, v->dw, e); /* dw is overwritten later */
    return ok;
}

/* ---- one N x K ---- */

/* Seconds of each row at each size; 0: not measured. */
typedef struct result {
    double seconds[ROWS][SIZES];
} result;

static double flops(const weights *v, int64_t m) { return 2.0 * (double)m * (double)v->s.n * (double)v->s.k; }

/* Skips rows that would take more than a second, such as reference loops at 2048 tokens. */
static bool too_slow(const result *r, size_t row, size_t size)
{
    double before = 0, per = 0;
    for (size_t i = 0; i < size; i++)
        if (r->seconds[row][i] > 0) before = r->seconds[row][i], per = before / (double)sizes[i];
    return before > 0 && per * (double)sizes[size] > 1;
}

/* Name and shape of a row in JSON. */
typedef struct label {
    char bench[32], shape[32];
} label;

static label make_label(const weights *v, size_t row, size_t size, const ses_gemm_peer *peer)
{
    label l;
    size_t c, s;
    split_row(row, &c, &s);
    snprintf(l.bench, sizeof l.bench, "%s%s%s", comparisons[c].bench, s ? "." : "", s ? peer[s - 1].key : "");
    snprintf(l.shape, sizeof l.shape, "%" PRId64 "x%" PRId64 "x%" PRId64, sizes[size], v->s.n, v->s.k);
    return l;
}

/* Whether --only excludes all rows of this N x K. */
static bool is_excluded(const ses_bench *b, const weights *v, const ses_gemm_peer *peer)
{
    for (size_t row = 0; b->only && row < ROWS; row++)
        for (size_t size = 0; size < SIZES; size++) {
            label l = make_label(v, row, size, peer);
            char name[sizeof l + 1];
            snprintf(name, sizeof name, "%s %s", l.bench, l.shape);
            if (strstr(name, b->only)) return false;
        }
    return b->only != NULL;
}

static void measure(ses_bench *b, weights *side, size_t n_sides, const ses_gemm_peer *peer, size_t size,
                    result *r)
{
    ses_bench_case timed[ROWS];
    size_t measured_row[ROWS], n = 0;
    for (size_t row = 0; row < ROWS; row++) {
        size_t c, s;
        split_row(row, &c, &s);
        void (*fn)(void *, int64_t) = s ? comparisons[c].peer : comparisons[c].sesame;
        bool available = s < n_sides && fn && (!s || side[s].peer->call) && !too_slow(r, row, size);
        if (!available) continue;
        side[s].m = sizes[size];
        timed[n] = (ses_bench_case){ .fn = fn, .ctx = &side[s] };
        label l = make_label(&side[0], row, size, peer);
        snprintf(timed[n].name, sizeof timed[n].name, "%s %s", l.bench, l.shape);
        if (b->only && !strstr(timed[n].name, b->only)) continue;
        measured_row[n++] = row;
    }
    if (n) ses_bench_time(b, timed, n);
    for (size_t i = 0; i < n; i++) r->seconds[measured_row[i]][size] = timed[i].best;
}

static bool emit(const ses_bench *b, const weights *v, const ses_gemm_peer *peer, const result *r, ses_err *e)
{
    bool ok = true;
    for (size_t size = 0; size < SIZES; size++)
        for (size_t row = 0; row < ROWS && ok; row++) {
            if (!r->seconds[row][size]) continue;
            label l = make_label(v, row, size, peer);
            double rate = 1e-9 * flops(v, sizes[size]) / r->seconds[row][size];
            ok = ses_bench_row(b, l.bench, l.shape, rate, "GFLOP/s", rate / b->peak, e);
        }
    return ok;
}

static void cells(ses_text_table *t, const ses_bench *b, const weights *v, const double *seconds)
{
    for (size_t size = 0; size < SIZES; size++) {
        if (b->quick && !quick_size[size]) continue;
        double rate = seconds[size] > 0 ? 1e-9 * flops(v, sizes[size]) / seconds[size] : 0;
        if (rate > 0)
            ses_text_table_cell(t, rate < 10 ? "%.1f %2.0f%%" : "%.0f %2.0f%%", rate, 100 * rate / b->peak);
        else
            ses_text_table_cell(t, "-");
        ses_text_table_style(t, rate > 0 ? ses_fraction_style(rate / b->peak) : SES_DIM);
    }
}

static bool measured(const result *r, size_t row)
{
    for (size_t size = 0; size < SIZES; size++)
        if (r->seconds[row][size] > 0) return true;
    return false;
}

static bool show(const ses_bench *b, const weights *v, const ses_gemm_peer *peer, const result *r, ses_err *e)
{
    ses_text_table *t =
        ses_text_table_new(b->quick ? "GFLOP/s, fraction of peak|>M = 8|>128|>512"
                                    : "GFLOP/s, fraction of peak|>M = 1|>8|>32|>128|>512|>2048",
                           e);
    if (!t) return false;
    for (size_t row = 0; row < ROWS; row++) {
        size_t c, s;
        split_row(row, &c, &s);
        if (s && (!peer[s - 1].call || !comparisons[c].peer)) continue;
        if (b->only && !measured(r, row)) continue;
        ses_text_table_cell(t, s ? "  %s" : "%s", s ? peer[s - 1].name : comparisons[c].title);
        ses_text_table_style(t, s ? SES_DIM : SES_PLAIN);
        cells(t, b, v, r->seconds[row]);
    }
    ses_bench_heading(b, "gemm", "  N x K = %" PRId64 " x %" PRId64 ", %s, %d thread%s, peak %.0f GFLOP/s",
                      v->s.n, v->s.k, ses_isa_name(b->isa), b->threads, b->threads == 1 ? "" : "s", b->peak);
    bool ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
    putchar('\n');
    ok = ok && ses_stdout_flush(e);
    ses_text_table_free(t);
    return ok;
}

static bool run_shape(ses_bench *b, shape s, const ses_gemm_peer *peer, ses_err *e)
{
    weights side[1 + SES_GEMM_PEERS]; /* shared buffers, one entry per library */
    result r = { 0 };
    bool ok = weights_new(&side[0], b, s, e);
    for (size_t i = 0; i < SES_GEMM_PEERS; i++) {
        side[1 + i] = side[0];
        side[1 + i].peer = &peer[i];
    }
    if (ok) ses_bench_peak(b);
    for (size_t size = 0; ok && size < SIZES && !ses_bench_stopped(); size++)
        if (!b->quick || quick_size[size]) measure(b, side, SES_LEN(side), peer, size, &r);
    if (ok) ses_bench_peak(b);
    ses_progress_end(&b->progress);
    ok = ok && (b->json ? emit(b, &side[0], peer, &r, e) : show(b, &side[0], peer, &r, e));
    weights_free(&side[0]);
    return ok;
}

static bool run(ses_bench *b, ses_err *e)
{
    ses_gemm_peer peer[SES_GEMM_PEERS];
    ses_gemm_peers_open(peer, b->threads, b->isa);
    for (size_t i = 0; i < SES_GEMM_PEERS; i++)
        if (!peer[i].call && !b->call->quiet && b->isa != SES_ISA_REF)
            fprintf(stderr, "%s is not installed: no comparison\n", peer[i].name);
    bool any = false;
    for (size_t i = 0; i < SES_LEN(shapes) && !ses_bench_stopped(); i++) {
        if (is_excluded(b, &(weights){ .s = shapes[i] }, peer)) continue;
        if (!run_shape(b, shapes[i], peer, e)) return false;
        any = true;
    }
    return any || ses_bench_stopped() ||
           ses_fail(e, SES_EUSAGE,
                    "--only %s: no row contains this text; rows are named like \"gemm 8x768x768\"", b->only);
}

const ses_bench_kind ses_bench_gemm = {
    .name = "gemm", .run = run, .both_thread_counts = true, .cpu_only = true
};
