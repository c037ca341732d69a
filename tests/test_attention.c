/* Every variant of attention against ref, with f32 and with bf16 operands: ragged batches, cross-attention
 * lengths, causal, windows, biases, dropout, probabilities, all kinds of tails. A sequence's bits do not
 * depend on the batch or the threads. And the gradients of the op for scores so large that exp(S - lse) has
 * no precision. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "fence.h"
#include "variants.h"

#include "kernel/kernel.h"
#include "op/op.h"

#include <math.h>

/* A probability beside a boundary of rounding to bf16 may fall to the other side: limits grow by this. */
enum { FLIP = 3000 };
enum { PAD = 5, MAX_SEQS = 6, MAX_ARRAYS = 16 }; /* PAD: columns of each row outside all heads */

typedef struct shape {
    int64_t heads, dim, seqs;
    int len_q[MAX_SEQS], len_k[MAX_SEQS];
    bool causal;
    int reach;
    double drop;
    bool dist, bias;
    int gap;         /* columns between heads of q, k, v */
    int capacity;    /* free capacity after the keys of each sequence */
    float magnitude; /* magnitude of queries and keys; 0: 1 */
} shape;

/* Layout and size of an array of rows. */
typedef struct grid {
    int64_t row, head, heads, dim;
    size_t n;
} grid;

static grid grid_of(const shape *s, int64_t rows, int gap)
{
    grid g = { .head = s->dim + gap, .heads = s->heads, .dim = s->dim };
    g.row = g.heads * g.head + PAD;
    g.n = rows ? (size_t)(rows * g.row - PAD - gap) : 0;
    return g;
}

static bool in_head(const grid *g, size_t i)
{
    int64_t col = (int64_t)i % g->row;
    return col < g->heads * g->head && col % g->head < g->dim;
}

/* Arguments in fenced memory. The kernels write out, lse, probs and the gradients. */
typedef struct problem {
    shape s;
    ses_attn a;
    ses_attn_grad g;
    int32_t cu_seqlens_q[MAX_SEQS + 1], cu_seqlens_k[MAX_SEQS + 1], len_k[MAX_SEQS];
    fence fence[MAX_ARRAYS];
    int fences;
    grid out_grid, q_grid, k_grid;
    size_t pairs, dists;
    float *q, *k, *v, *dout, *out, *lse, *delta, *prob, *dq, *dk, *dv, *dist, *ddist, *bias, *dbias;
} problem;

static float *array(problem *p, size_t n)
{
    float *x = fence_floats(&p->fence[p->fences++], n ? n : 1);
    for (size_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

/* Normal random numbers in the heads; the gaps must be neither read nor written. */
static float *normal(problem *p, const grid *g, float size, uint64_t seed)
{
    float *x = array(p, g->n);
    for (size_t i = 0; i < g->n; i++)
        if (in_head(g, i)) x[i] = size * (float)ses_rand_normal((ses_rng_key){ seed, 0, 0 }, i);
    return x;
}

static void lengths(problem *p, const shape *s)
{
    p->a = (ses_attn){ .seqs = s->seqs, .heads = s->heads, .dim = s->dim };
    for (int64_t i = 0; i < s->seqs; i++) {
        p->cu_seqlens_q[i + 1] = p->cu_seqlens_q[i] + s->len_q[i];
        p->cu_seqlens_k[i + 1] = p->cu_seqlens_k[i] + s->len_k[i] + s->capacity;
        p->len_k[i] = s->len_k[i];
        p->a.max_seqlen_q = s->len_q[i] > p->a.max_seqlen_q ? s->len_q[i] : p->a.max_seqlen_q;
        p->a.max_seqlen_k = s->len_k[i] > p->a.max_seqlen_k ? s->len_k[i] : p->a.max_seqlen_k;
        p->pairs += (size_t)(s->heads * s->len_q[i] * s->len_k[i]);
    }
    p->dists = (size_t)((2 * p->a.max_seqlen_k - 1) * s->heads);
    p->out_grid = grid_of(s, p->cu_seqlens_q[s->seqs], 0);
    p->q_grid = grid_of(s, p->cu_seqlens_q[s->seqs], s->gap);
    p->k_grid = grid_of(s, p->cu_seqlens_k[s->seqs], s->gap);
}

static void problem_new(problem *p, const shape *s)
{
    *p = (problem){ .s = *s };
    lengths(p, s);
    grid all = { .row = 1, .head = 1, .heads = 1, .dim = 1, .n = p->dists }, pairs = all;
    pairs.n = p->pairs;
    float size = s->magnitude > 0 ? s->magnitude : 1;
    p->q = normal(p, &p->q_grid, size, 1), p->dout = normal(p, &p->out_grid, 1, 4);
    p->k = normal(p, &p->k_grid, size, 2), p->v = normal(p, &p->k_grid, 1, 3);
    p->dist = normal(p, &all, 1, 5), p->bias = normal(p, &pairs, 1, 6);
    p->out = array(p, p->out_grid.n), p->dq = array(p, p->q_grid.n);
    p->dk = array(p, p->k_grid.n), p->dv = array(p, p->k_grid.n);
    size_t stats = (size_t)(s->heads * p->cu_seqlens_q[s->seqs]);
    p->lse = array(p, stats), p->delta = array(p, stats);
    p->prob = array(p, p->pairs), p->ddist = array(p, p->dists), p->dbias = array(p, p->pairs);
    ses_attn *a = &p->a;
    a->cu_seqlens_q = p->cu_seqlens_q, a->cu_seqlens_k = p->cu_seqlens_k,
    a->len_k = s->capacity ? p->len_k : NULL;
    a->q = p->q, a->k = p->k, a->v = p->v, a->out = p->out, a->lse = p->lse, a->probs = p->prob;
    a->q_row = p->q_grid.row, a->k_row = a->v_row = p->k_grid.row, a->out_row = p->out_grid.row;
    a->q_head = a->k_head = a->v_head = s->gap ? s->dim + s->gap : 0;
    a->scale = (float)(1 / sqrt((double)s->dim)), a->causal = s->causal, a->window = s->reach;
    a->rel_bias = s->dist ? p->dist : NULL, a->bias = s->bias ? p->bias : NULL;
    a->dropout = s->drop, a->rng_key = (ses_rng_key){ 21, 3, 4 };
    p->g = (ses_attn_grad){
        .dout = p->dout, .dq.data = p->dq, .dk.data = p->dk, .dv.data = p->dv, .delta = p->delta
    };
    p->g.drel_bias.data = s->dist ? p->ddist : NULL;
    p->g.dbias.data = s->bias ? p->dbias : NULL;
}

static void problem_free(problem *p)
{
    for (int i = 0; i < p->fences; i++) fence_free(&p->fence[i]);
}

static float before(size_t i) { return (float)(i % 5) - 2; } /* initial values of the outputs */

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = before(i);
}

static void run(problem *p, ses_exec *x, const ses_kernels *k)
{
    fill(p->out, p->out_grid.n), fill(p->dq, p->q_grid.n), fill(p->dk, p->k_grid.n), fill(p->dv, p->k_grid.n);
    fill(p->prob, p->pairs), fill(p->ddist, p->dists), fill(p->dbias, p->pairs);
    k->attention(x, &p->a);
    k->attention_bwd(x, &p->a, &p->g);
}

/* The largest difference relative to the largest magnitude of `want`, at least 1; 1e9 if a gap was
 * written. */
static double worst_row(const grid *g, const float *got, const float *want)
{
    double worst = 0, size = 1;
    for (size_t i = 0; i < g->n; i++)
        if (in_head(g, i)) {
            worst = isfinite(got[i]) ? fmax(worst, fabs((double)got[i] - want[i])) : 1e9;
            size = fmax(size, fabs((double)want[i]));
        } else if (got[i] != before(i)) {
            return 1e9;
        }
    return worst / size;
}

static double worst_of(const float *got, const float *want, size_t n)
{
    return worst_row(&(grid){ .row = 1, .head = 1, .heads = 1, .dim = 1, .n = n }, got, want);
}

static void compare(const problem *p, const problem *ref, const char *what, bool bf16)
{
    double limit = (bf16 ? FLIP : 1) * 3e-6 * fmax(1, p->s.magnitude * p->s.magnitude), lse = 0;
    double out = worst_row(&p->out_grid, p->out, ref->out), probs = worst_of(p->prob, ref->prob, p->pairs);
    double dq = worst_row(&p->q_grid, p->dq, ref->dq), dk = worst_row(&p->k_grid, p->dk, ref->dk);
    double dv = worst_row(&p->k_grid, p->dv, ref->dv), ddist = worst_of(p->ddist, ref->ddist, p->dists);
    double dbias = worst_of(p->dbias, ref->dbias, p->pairs);
    for (int64_t i = 0; i < p->s.heads * p->cu_seqlens_q[p->s.seqs]; i++)
        if (p->lse[i] != ref->lse[i]) lse = fmax(lse, fabs((double)p->lse[i] - ref->lse[i]));
    CHECK_MSG(out <= limit && probs <= limit && lse <= 2 * limit && dq <= limit && dk <= limit &&
                  dv <= limit && ddist <= limit && dbias <= limit,
              "%s dim %d len %d/%d causal %d reach %d drop %g dist %d bias %d gap %d room %d: out %g probs "
              "%g lse %g "
              "dq %g dk %g dv %g ddist %g dbias %g",
              what, (int)p->s.dim, p->s.len_q[0], p->s.len_k[0], p->s.causal, p->s.reach, p->s.drop,
              p->s.dist, p->s.bias, p->s.gap, p->s.capacity, out, probs, lse, dq, dk, dv, ddist, dbias);
}

static void check_shape(ses_exec *x, const shape *s)
{
    problem ref, p;
    variant_list all = variants(x->bf16);
    problem_new(&ref, s);
    problem_new(&p, s);
    for (int add = 0; add < 2; add++) {
        ref.g.dq.accumulate = ref.g.dv.accumulate = p.g.dq.accumulate = p.g.dv.accumulate = add;
        ref.g.dk.accumulate = p.g.dk.accumulate = ref.g.drel_bias.accumulate = p.g.drel_bias.accumulate =
            !add;
        ref.g.dbias.accumulate = p.g.dbias.accumulate = add;
        run(&ref, x, &all.of[0].k);
        for (const variant *v = all.of + 1; v < all.of + all.n; v++) {
            run(&p, x, &v->k);
            compare(&p, &ref, v->name, x->bf16);
        }
    }
    problem_free(&ref), problem_free(&p);
}

static void test_shapes(ses_exec *x)
{
    static const int dims[] = { 1, 3, 8, 15, 16, 17, 24, 32, 48, 49, 64, 80, 100, 256, 300 };
    for (size_t i = 0; i < SES_LEN(dims); i++)
        for (int form = 0; form < 6; form++) {
            shape s = {
                .heads = 2, .dim = dims[i], .seqs = 4, .len_q = { 1, 13, 8, 30 }, .len_k = { 1, 13, 8, 30 }
            };
            s.causal = form & 1, s.drop = form & 2 ? 0.3 : 0, s.gap = form & 2;
            /* cross-attention, or with a cache */
            if (form >= 2) s.len_k[0] = 17, s.len_k[1] = 50, s.len_k[3] = 31;
            if (form >= 4) s.dist = true, s.bias = form & 1, s.reach = (int)i, s.capacity = 3;
            check_shape(x, &s);
        }
}

/* Sizes beyond the blocks of the levels, lengths around a tile, empty sequences. */
static void test_lengths(ses_exec *x)
{
    static const shape list[] = {
        { .heads = 1, .dim = 20, .seqs = 1, .len_q = { 259 }, .len_k = { 1100 } },
        { .heads = 1, .dim = 20, .seqs = 1, .len_q = { 600 }, .len_k = { 600 }, .causal = true },
        { .heads = 1, .dim = 9, .seqs = 2, .len_q = { 200, 30 }, .len_k = { 560, 529 }, .drop = 0.1 },
        { .heads = 1, .dim = 9, .seqs = 1, .len_q = { 385 }, .len_k = { 400 }, .causal = true, .drop = 0.5 },
        { .heads = 3, .dim = 64, .seqs = 2, .len_q = { 128, 97 }, .len_k = { 128, 97 } },
        { .heads = 1,
          .dim = 8,
          .seqs = 3,
          .len_q = { 20, 0, 3 },
          .len_k = { 9, 0, 2 },
          .causal = true }, /* queries without visible keys */
        { .heads = 2, .dim = 8, .seqs = 3, .len_q = { 4, 3, 0 }, .len_k = { 5, 0, 6 } },
        { .heads = 2, .dim = 16, .seqs = 2, .len_q = { 40, 7 }, .len_k = { 40, 7 }, .magnitude = 6 },
        { .heads = 1, .dim = 4, .seqs = 1, .len_q = { 5 }, .len_k = { 600 }, .drop = 1 },
        { .heads = 1, .dim = 7, .seqs = 1, .len_q = { 700 }, .len_k = { 700 }, .reach = 40 },
        { .heads = 1, .dim = 7, .seqs = 1, .len_q = { 300 }, .len_k = { 650 }, .reach = 200, .causal = true },
        { .heads = 2,
          .dim = 7,
          .seqs = 2,
          .len_q = { 250, 3 },
          .len_k = { 600, 30 },
          .dist = true,
          .bias = true },
        { .heads = 2,
          .dim = 7,
          .seqs = 2,
          .len_q = { 450, 3 },
          .len_k = { 450, 9 },
          .dist = true,
          .drop = 0.2,
          .reach = 99 },
        { .heads = 2,
          .dim = 7,
          .seqs = 1,
          .len_q = { 450 },
          .len_k = { 450 },
          .bias = true,
          .causal = true,
          .reach = 9 },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) check_shape(x, &list[i]);
    for (int n = 2; n < 60; n += 5) {
        shape s = {
            .heads = 1, .dim = 8, .seqs = 2, .len_q = { n, n + 1 }, .len_k = { n + 2, n + 1 }, .causal = n & 1
        };
        s.dist = s.bias = n & 2, s.reach = n & 4;
        check_shape(x, &s);
    }
}

/* Rows from `first` on in the batch have the same bits as the rows of the sequence alone. */
static bool same_rows(const grid *g, const float *all, const float *alone, int32_t first, int n)
{
    bool same = true;
    for (size_t i = 0; i < (size_t)n; i++)
        same = same && !memcmp(all + ((size_t)first + i) * (size_t)g->row, alone + i * (size_t)g->row,
                               (size_t)(g->heads * g->dim) * sizeof *all);
    return same;
}

static void check_alone(ses_exec *x, const problem *all, int i, const ses_kernels *k)
{
    shape alone = all->s;
    alone.seqs = 1, alone.len_q[0] = all->s.len_q[i], alone.len_k[0] = all->s.len_k[i];
    problem one;
    problem_new(&one, &alone);
    size_t q0 = (size_t)(all->cu_seqlens_q[i] * all->q_grid.row),
           k0 = (size_t)(all->cu_seqlens_k[i] * all->k_grid.row);
    memcpy(one.q, all->q + q0, one.q_grid.n * 4), memcpy(one.dout, all->dout + q0, one.q_grid.n * 4);
    memcpy(one.k, all->k + k0, one.k_grid.n * 4), memcpy(one.v, all->v + k0, one.k_grid.n * 4);
    run(&one, x, k);
    CHECK(same_rows(&one.out_grid, all->out, one.out, all->cu_seqlens_q[i], alone.len_q[0]));
    CHECK(same_rows(&one.q_grid, all->dq, one.dq, all->cu_seqlens_q[i], alone.len_q[0]));
    CHECK(same_rows(&one.k_grid, all->dk, one.dk, all->cu_seqlens_k[i], alone.len_k[0]));
    CHECK(same_rows(&one.k_grid, all->dv, one.dv, all->cu_seqlens_k[i], alone.len_k[0]));
    problem_free(&one);
}

static void test_batch(ses_exec *x)
{
    shape s = { .heads = 2, .dim = 24, .seqs = 4, .len_q = { 9, 140, 1, 33 }, .len_k = { 12, 140, 600, 33 } };
    variant_list tested = variants(x->bf16);
    for (int form = 0; form < 3; form++) {
        s.causal = form == 1, s.reach = form == 2 ? 20 : 0;
        problem all;
        problem_new(&all, &s);
        for (const variant *v = tested.of; v < tested.of + tested.n; v++) {
            run(&all, &x[2], &v->k);
            for (int i = 0; i < s.seqs; i++) check_alone(&x[0], &all, i, &v->k);
        }
        problem_free(&all);
    }
}

static void test_threads(ses_exec *x)
{
    static const shape s = { .heads = 3,
                             .dim = 16,
                             .seqs = 3,
                             .len_q = { 150, 7, 20 },
                             .len_k = { 150, 7, 20 },
                             .drop = 0.2,
                             .dist = true,
                             .bias = true };
    problem a, b;
    problem_new(&a, &s), problem_new(&b, &s);
    variant_list all = variants(x->bf16);
    for (const variant *v = all.of; v < all.of + all.n; v++) {
        run(&a, &x[0], &v->k);
        for (int t = 1; t < 3; t++) {
            run(&b, &x[t], &v->k);
            CHECK(!memcmp(a.out, b.out, a.out_grid.n * 4) && !memcmp(a.dq, b.dq, a.q_grid.n * 4));
            CHECK(!memcmp(a.dk, b.dk, a.k_grid.n * 4) && !memcmp(a.dv, b.dv, a.k_grid.n * 4));
            CHECK(!memcmp(a.prob, b.prob, a.pairs * 4) &&
                  !memcmp(a.lse, b.lse, (size_t)(3 * a.cu_seqlens_q[3]) * 4));
            CHECK(!memcmp(a.ddist, b.ddist, a.dists * 4) && !memcmp(a.dbias, b.dbias, a.pairs * 4));
        }
    }
    problem_free(&a), problem_free(&b);
}

/* Optional results do not change the others; gradients with data NULL are not written. */
static void test_optional(ses_exec *x)
{
    static const shape s = { .heads = 2, .dim = 10, .seqs = 2, .len_q = { 20, 30 }, .len_k = { 20, 30 } };
    problem a, b;
    problem_new(&a, &s), problem_new(&b, &s);
    variant_list all = variants(x->bf16);
    for (const variant *v = all.of; v < all.of + all.n; v++) {
        run(&a, x, &v->k);
        fill(b.out, b.out_grid.n);
        ses_attn bare = b.a;
        bare.lse = bare.probs = NULL;
        v->k.attention(x, &bare);
        CHECK(!memcmp(a.out, b.out, a.out_grid.n * 4));
        for (int want = 0; want < 8; want++) {
            b.g.dq.data = want & 1 ? b.dq : NULL;
            b.g.dk.data = want & 2 ? b.dk : NULL;
            b.g.dv.data = want & 4 ? b.dv : NULL;
            run(&b, x, &v->k);
            int got = (memcmp(a.dq, b.dq, a.q_grid.n * 4) ? 0 : 1) |
                      (memcmp(a.dk, b.dk, a.k_grid.n * 4) ? 0 : 2) |
                      (memcmp(a.dv, b.dv, a.k_grid.n * 4) ? 0 : 4);
            CHECK(got == want);
        }
    }
    problem_free(&a), problem_free(&b);
}

/* One head in double: softmax of one row of scores and its gradients. */
enum { T = 6, D = 4 };
typedef struct exact {
    double dq[T * D], dk[T * D], dv[T * D];
} exact;

static void exact_row(exact *y, const float *q, const float *k, const float *v, const float *dout, int i)
{
    double p[T], dp[T], most = -INFINITY, sum = 0, delta = 0;
    for (int j = 0; j < T; j++) {
        p[j] = dp[j] = 0;
        for (int d = 0; d < D; d++) {
            p[j] += (double)q[i * D + d] * k[j * D + d];
            dp[j] += (double)dout[i * D + d] * v[j * D + d];
        }
        most = fmax(most, p[j]);
    }
    for (int j = 0; j < T; j++) sum += p[j] = exp(p[j] - most);
    for (int j = 0; j < T; j++) delta += (p[j] /= sum) * dp[j];
    for (int j = 0; j < T; j++)
        for (int d = 0; d < D; d++) {
            double ds = p[j] * (dp[j] - delta);
            y->dq[i * D + d] += ds * k[j * D + d];
            y->dk[j * D + d] += ds * q[i * D + d];
            y->dv[j * D + d] += p[j] * dout[i * D + d];
        }
}

static void check_close(const float *ours, const double *want, const char *what, int isa)
{
    double most = 0, apart = 0;
    for (int i = 0; i < T * D; i++)
        most = fmax(most, fabs(want[i])), apart = fmax(apart, fabs(ours[i] - want[i]));
    CHECK_MSG(apart <= 1e-5 * most, "%s at level %d: %g of %g", what, isa, apart, most);
}

/* Scores of a million: a query attends to one key, or equally to two. */
static void test_large_scores(void)
{
    static const int32_t cu[] = { 0, T };
    float q[T * D], k[T * D], v[T * D], dout[T * D];
    exact want = { 0 };
    for (int i = 0; i < T * D; i++) {
        q[i] = (float)(900 * sin(1.7 * i)), k[i] = (float)(1100 * cos(0.9 * i + 1));
        v[i] = (float)sin(0.3 * i + 2), dout[i] = (float)cos(2.1 * i);
    }
    for (int d = 0; d < D; d++) k[1 * D + d] = k[4 * D + d] = 3 * q[d];
    for (int i = 0; i < T; i++) exact_row(&want, q, k, v, dout, i);
    for (int isa = SES_ISA_REF; isa <= (int)ses_isa_best(); isa++) {
        ses_err e = { 0 };
        ses_device *dev =
            ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = (ses_isa)isa }, &e);
        ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
        ses_attention_inputs in = { .q = ses_tape_input(t, q, SES_DIM(T, D)),
                                    .k = ses_tape_input(t, k, SES_DIM(T, D)),
                                    .v = ses_tape_input(t, v, SES_DIM(T, D)),
                                    .cu_seqlens_q = ses_tape_ints(t, cu, 2),
                                    .cu_seqlens_k = ses_tape_ints(t, cu, 2) };
        in.q->requires_grad = in.k->requires_grad = in.v->requires_grad = true;
        ses_tensor *y = ses_attention(
            t, &in, &(ses_attention_options){ .heads = 1, .max_seqlen_q = T, .max_seqlen_k = T, .scale = 1 },
            NULL);
        ses_tensor *by = ses_tape_input(t, dout, SES_DIM(1, T * D));
        ses_backward(t,
                     ses_linear(t, ses_reshape(t, y, SES_DIM(1, T * D)), by, NULL, SES_ACT_NONE, SES_OUT_IN));
        if (CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg)) {
            check_close(in.q->grad, want.dq, "dq", isa);
            check_close(in.k->grad, want.dk, "dk", isa);
            check_close(in.v->grad, want.dv, "dv", isa);
        }
        ses_tape_free(t);
        ses_device_free(dev);
    }
}

int main(void)
{
    ses_err e = { 0 };
    ses_exec x[3] = { { .pool = ses_thread_pool_new(1, &e) },
                      { .pool = ses_thread_pool_new(2, &e) },
                      { .pool = ses_thread_pool_new(3, &e) } };
    if (!CHECK(x[0].pool && x[1].pool && x[2].pool)) return check_report();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        for (int i = 0; i < 3; i++) x[i].bf16 = bf16;
        test_shapes(&x[1]);
        test_lengths(&x[1]);
        test_batch(x);
        test_threads(x);
        test_optional(&x[0]);
    }
    test_large_scores();
    for (int i = 0; i < 3; i++) ses_thread_pool_free(x[i].pool);
    return check_report();
}
