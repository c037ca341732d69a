/* bench ops: every op at the sizes of BERT-base with 8 x 128 tokens, forward and backward in training
 * mode: weight gradients are accumulated, activation gradients are written. */
#include "base/alloc.h"
#include "bench.h"
#include "cli/ui/text_table.h"
#include "op/op.h"

#include <inttypes.h>
#include <string.h>

enum {
    B = 8,
    S = 128,
    T = B * S,
    C = 768,
    F = 4 * C,
    H = 12,
    V = 30522,
    LABELED = 154, /* 15 % of T */
    LONG = 512
};

/* build: records the op on a tape, with random inputs that require gradients. */
typedef struct bench_op bench_op;
struct bench_op {
    const ses_op *op;
    const char *shape;
    ses_tensor *(*build)(ses_tape *t);
    double flop; /* forward, in millions; backward takes twice as many. 0: the op is measured in bytes */
    double forward_elements, backward_elements; /* read or written, in millions */
    unsigned weights;                           /* bit i: input i is a parameter */
};

/* ---- inputs ---- */

static ses_tensor *floats(ses_tape *t, const int64_t dim[SES_MAX_DIM])
{
    ses_tensor *x = ses_tape_tensor(t, dim);
    uint32_t state = 99;
    for (int64_t i = 0; x && i < ses_count(x); i++) { /* on a CPU */
        state = state * 1664525 + 1013904223;
        x->f[i] = (ses_real)(state >> 8) * (ses_real)0x1p-23 - 1;
    }
    if (x) x->requires_grad = true;
    return x;
}

static ses_tensor *ints(ses_tape *t, int64_t n, int32_t limit)
{
    int32_t *host = ses_tape_host_alloc(t, (size_t)n, sizeof *host);
    uint32_t state = 7;
    for (int64_t i = 0; host && i < n; i++) {
        state = state * 1664525 + 1013904223;
        host[i] = (int32_t)((state >> 8) % (uint32_t)limit);
    }
    return host ? ses_tape_ints(t, host, n) : NULL;
}

static ses_tensor *offsets(ses_tape *t, int64_t seqs, int64_t len)
{
    int32_t *host = ses_tape_host_alloc(t, (size_t)seqs + 1, sizeof *host);
    for (int64_t i = 0; host && i <= seqs; i++) host[i] = (int32_t)(i * len);
    return host ? ses_tape_ints(t, host, seqs + 1) : NULL;
}

/* ---- the ops ---- */

static ses_tensor *embed(ses_tape *t)
{
    ses_tensor *table[] = { floats(t, SES_DIM(V, C)), floats(t, SES_DIM(LONG, C)), floats(t, SES_DIM(2, C)) };
    ses_tensor *id[] = { ints(t, T, V), ints(t, T, S), ints(t, T, 2) };
    return ses_embed(t, 3, table, id, 0);
}

static ses_tensor *dense(ses_tape *t, int64_t in, int64_t out, ses_act act)
{
    return ses_linear(t, floats(t, SES_DIM(T, in)), floats(t, SES_DIM(out, in)), floats(t, SES_DIM(out)), act,
                      SES_OUT_IN);
}

static ses_tensor *linear(ses_tape *t) { return dense(t, C, C, SES_ACT_NONE); }
static ses_tensor *linear_up(ses_tape *t) { return dense(t, C, F, SES_ACT_GELU); }
static ses_tensor *linear_down(ses_tape *t) { return dense(t, F, C, SES_ACT_NONE); }

static ses_tensor *layer_norm(ses_tape *t)
{
    return ses_layer_norm(t, floats(t, SES_DIM(T, C)), floats(t, SES_DIM(T, C)), floats(t, SES_DIM(C)),
                          floats(t, SES_DIM(C)), 1e-12);
}

static ses_tensor *attend(ses_tape *t, int64_t seqs, int64_t len)
{
    int64_t rows = seqs * len;
    ses_tensor *cu = offsets(t, seqs, len);
    ses_attention_inputs in = { .q = floats(t, SES_DIM(rows, C)),
                                .k = floats(t, SES_DIM(rows, C)),
                                .v = floats(t, SES_DIM(rows, C)),
                                .cu_seqlens_q = cu,
                                .cu_seqlens_k = cu };
    return ses_attention(
        t, &in, &(ses_attention_options){ .heads = H, .max_seqlen_q = len, .max_seqlen_k = len }, NULL);
}

static ses_tensor *attention(ses_tape *t) { return attend(t, B, S); }
static ses_tensor *attention_long(ses_tape *t) { return attend(t, 1, LONG); }
static ses_tensor *activate(ses_tape *t) { return ses_activate(t, floats(t, SES_DIM(T, F)), SES_ACT_GELU); }
static ses_tensor *dropout(ses_tape *t) { return ses_dropout(t, floats(t, SES_DIM(T, C)), 0.1); }
static ses_tensor *softmax(ses_tape *t) { return ses_softmax(t, floats(t, SES_DIM(T * H, S))); }
static ses_tensor *add(ses_tape *t) { return ses_add(t, floats(t, SES_DIM(T, C)), floats(t, SES_DIM(T, C))); }
static ses_tensor *scale(ses_tape *t) { return ses_scale(t, floats(t, SES_DIM(T, C)), 0.5); }

static ses_tensor *concat(ses_tape *t)
{
    ses_tensor *x[] = { floats(t, SES_DIM(T, C)), floats(t, SES_DIM(T, C)), floats(t, SES_DIM(T, C)) };
    return ses_concat(t, 3, x);
}

static ses_tensor *reshape(ses_tape *t) { return ses_reshape(t, floats(t, SES_DIM(T, C)), SES_DIM(B, S, C)); }
static ses_tensor *gather(ses_tape *t)
{
    return ses_gather(t, floats(t, SES_DIM(T, C)), ints(t, LABELED, T));
}

static ses_tensor *pool_rows(ses_tape *t)
{
    return ses_pool_rows(t, floats(t, SES_DIM(T, C)), offsets(t, B, S), SES_POOL_MEAN);
}

static ses_tensor *cross_entropy(ses_tape *t)
{
    return ses_cross_entropy(t, floats(t, SES_DIM(LABELED, V)), ints(t, LABELED, V));
}

static ses_tensor *linear_cross_entropy(ses_tape *t)
{
    return ses_linear_cross_entropy(t, floats(t, SES_DIM(LABELED, C)), floats(t, SES_DIM(V, C)),
                                    floats(t, SES_DIM(V)), ints(t, LABELED, V));
}

static ses_tensor *span_cross_entropy(ses_tape *t)
{
    return ses_span_cross_entropy(t, floats(t, SES_DIM(T, 2)), offsets(t, B, S), ints(t, 2 * B, S));
}

static ses_tensor *target_loss(ses_tape *t)
{
    ses_tensor *target = floats(t, SES_DIM(T, C));
    if (target) target->requires_grad = false;
    return ses_target_loss(t, floats(t, SES_DIM(T, C)), target, SES_LOSS_MSE);
}

/* The two terms of DeBERTa: content-to-position and position-to-content. */
static ses_tensor *relative_scores(ses_tape *t)
{
    ses_tensor *cu = offsets(t, B, S);
    ses_relative_inputs in = {
        .term = { { .x = floats(t, SES_DIM(T, C)), .r = floats(t, SES_DIM(LONG, C)) },
                  { .x = floats(t, SES_DIM(T, C)), .r = floats(t, SES_DIM(LONG, C)), .side = SES_BY_KEY } },
        .cu_seqlens_q = cu,
        .cu_seqlens_k = cu,
        .dist_to_row = offsets(t, 2 * S - 2, 1) /* a row per distance */
    };
    ses_relative_options o = { .heads = H, .max_seqlen_k = S, .pairs = B * S * S };
    return ses_relative_scores(t, &in, &o);
}

static ses_tensor *rms_norm(ses_tape *t)
{
    return ses_rms_norm(t, floats(t, SES_DIM(T, C)), floats(t, SES_DIM(C)), 1e-6);
}

static ses_tensor *affine(ses_tape *t)
{
    return ses_affine(t, floats(t, SES_DIM(T, C)), floats(t, SES_DIM(C)), floats(t, SES_DIM(C)));
}

static ses_tensor *mul(ses_tape *t) { return ses_mul(t, floats(t, SES_DIM(T, F)), floats(t, SES_DIM(T, F))); }
static ses_tensor *glu(ses_tape *t) { return ses_glu(t, floats(t, SES_DIM(T, 2 * F)), SES_ACT_GELU); }
static ses_tensor *columns(ses_tape *t) { return ses_columns(t, floats(t, SES_DIM(T, 3 * C)), C, C); }

static ses_tensor *rotary(ses_tape *t)
{
    return ses_rotary(t, floats(t, SES_DIM(T, 3 * C)), ints(t, T, S), 2 * C, C / H, 10000);
}

#define M(x) ((double)(x)*1e-6)
static const bench_op table[] = {
    { &ses_op_embed, "1024x768 of 30522", embed, 0, M(4 * T * C), M(7 * T * C), 7 },
    { &ses_op_linear, "1024x768x768", linear, M(2.0 * T * C * C), 0, 0, 6 },
    { &ses_op_linear, "1024x3072x768 gelu", linear_up, M(2.0 * T * C * F), 0, 0, 6 },
    { &ses_op_linear, "1024x768x3072", linear_down, M(2.0 * T * C * F), 0, 0, 6 },
    { &ses_op_layer_norm, "1024x768 + res", layer_norm, 0, M(4 * T * C), M(4 * T * C), 12 },
    { &ses_op_attention, "8x128, 12 heads", attention, M(4.0 * B * S * S * C), 0, 0, 0 },
    { &ses_op_attention, "1x512, 12 heads", attention_long, M(4.0 * LONG * LONG * C), 0, 0, 0 },
    { &ses_op_relative_scores, "8x128, 12 heads", relative_scores, M(4.0 * B * S * S * C), 0, 0, 0 },
    { &ses_op_rms_norm, "1024x768", rms_norm, 0, M(2 * T * C), M(3 * T * C), 2 },
    { &ses_op_affine, "1024x768", affine, 0, M(2 * T * C), M(3 * T * C), 6 },
    { &ses_op_mul, "1024x3072", mul, 0, M(3 * T * F), M(6 * T * F), 0 },
    { &ses_op_glu, "1024x6144 gelu", glu, 0, M(3 * T * F), M(5 * T * F), 0 },
    { &ses_op_rotary, "1024x2304", rotary, 0, M(6 * T * C), M(6 * T * C), 0 },
    { &ses_op_columns, "768 of 1024x2304", columns, 0, M(2 * T * C), M(4 * T * C), 0 },
    { &ses_op_activate, "1024x3072 gelu", activate, 0, M(2 * T * F), M(3 * T * F), 0 },
    { &ses_op_dropout, "1024x768", dropout, 0, M(2 * T * C), M(2 * T * C), 0 },
    { &ses_op_softmax, "12288x128", softmax, 0, M(2 * T * H * S), M(3 * T * H * S), 0 },
    { &ses_op_add, "1024x768", add, 0, M(3 * T * C), M(4 * T * C), 0 },
    { &ses_op_scale, "1024x768", scale, 0, M(2 * T * C), M(2 * T * C), 0 },
    { &ses_op_concat, "3 of 1024x768", concat, 0, M(6 * T * C), M(6 * T * C), 0 },
    { &ses_op_reshape, "1024x768", reshape, 0, 0, M(2 * T * C), 0 },
    { &ses_op_gather, "154 of 1024x768", gather, 0, M(2 * LABELED * C), M((T + 3 * LABELED) * C), 0 },
    { &ses_op_pool_rows, "mean of 8x128x768", pool_rows, 0, M((T + B) * C), M((T + B) * C), 0 },
    { &ses_op_cross_entropy, "154x30522", cross_entropy, 0, M(LABELED *V), M(2 * LABELED * V), 0 },
    { &ses_op_linear_cross_entropy, "154x30522x768", linear_cross_entropy, M(2.0 * LABELED * C * V), 0, 0,
      6 },
    { &ses_op_span_cross_entropy, "8x128x2", span_cross_entropy, 0, M(T * 2), M(2 * T * 2), 0 },
    { &ses_op_target_loss, "1024x768 square", target_loss, 0, M(2 * T * C), M(3 * T * C), 0 },
};
#undef M

/* ---- measurement ---- */

typedef struct trial {
    const bench_op *o;
    ses_node *node;
    ses_real *dy; /* copied before each call: an op may overwrite it */
} trial;

static void forward(void *ctx, int64_t call)
{
    const trial *r = ctx;
    (void)call;
    ses_node_forward(r->node);
}

static void backward(void *ctx, int64_t call)
{
    const trial *r = ctx;
    (void)call;
    ses_node_backward(r->node);
}

static void prepare(void *ctx)
{
    const trial *r = ctx;
    const ses_node *n = r->node;
    memcpy(n->out->grad, r->dy, (size_t)ses_count(n->out) * sizeof *r->dy);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]) n->in[i]->has_grad = r->o->weights >> i & 1;
}

static bool measure(ses_bench *b, const bench_op *o, double seconds[2], ses_err *e)
{
    seconds[0] = seconds[1] = 0;
    trial r = { .o = o };
    ses_tape *t = ses_tape_new(b->dev, &(ses_tape_options){ .record = true, .train = true }, e);
    if (!t) return false;
    ses_tensor *y = o->build(t);
    r.node = ses_tape_last_node(t);
    r.dy = y && r.node ? ses_tape_host_alloc(t, (size_t)ses_count(y), sizeof *r.dy) : NULL;
    if (r.dy) {
        for (int64_t i = 0; i < ses_count(y); i++) r.dy[i] = (ses_real)1 / (ses_real)(1 + i % 7);
        ses_node_backward(r.node); /* allocates the buffers */
        ses_bench_case timed[] = { { .fn = forward, .ctx = &r },
                                   { .fn = backward, .prepare = prepare, .ctx = &r } };
        ses_bench_time(b, timed, o->forward_elements > 0 || o->flop > 0 ? 2 : 1);
        if (!(o->forward_elements > 0 || o->flop > 0)) { /* the forward pass does nothing */
            timed[0].best = 0;
            ses_bench_time(b, timed + 1, 1);
        }
        seconds[0] = timed[0].best;
        seconds[1] = timed[1].best;
    }
    bool ok = ses_tape_ok(t, e);
    ses_tape_free(t);
    return ok;
}

/* ---- output ---- */

typedef struct speed {
    double value, fraction; /* fraction < 0: bytes per second */
    const char *unit;
} speed;

static speed speed_of(const ses_bench *b, const bench_op *o, int pass, double seconds)
{
    if (o->flop > 0) {
        double rate = 1e-3 * o->flop * (pass ? 2 : 1) / seconds;
        return (speed){ rate, rate / b->peak, "GFLOP/s" };
    }
    return (speed){ 1e-3 * (pass ? o->backward_elements : o->forward_elements) * sizeof(ses_real) / seconds,
                    -1, "GB/s" };
}

static bool emit(const ses_bench *b, const bench_op *o, const double seconds[2], ses_err *e)
{
    bool ok = true;
    for (int pass = 0; pass < 2 && ok; pass++) {
        char name[64];
        if (!seconds[pass]) continue;
        speed s = speed_of(b, o, pass, seconds[pass]);
        snprintf(name, sizeof name, "op.%s%s", o->op->name, pass ? ".backward" : "");
        ok = ses_bench_row(b, name, o->shape, s.value, s.unit, s.fraction, e);
    }
    return ok;
}

static void cells(ses_text_table *t, const ses_bench *b, const bench_op *o, const double seconds[2])
{
    ses_text_table_cell(t, "%s", o->op->name);
    ses_text_table_cell(t, "%s", o->shape);
    for (int pass = 0; pass < 2; pass++) {
        if (!seconds[pass]) {
            ses_text_table_cell(t, "-");
            ses_text_table_cell(t, "-");
            continue;
        }
        speed s = speed_of(b, o, pass, seconds[pass]);
        double ms = 1e3 * seconds[pass];
        ses_text_table_cell(t, ms < 1 ? "%.3f" : ms < 10 ? "%.2f" : ms < 100 ? "%.1f" : "%.0f", ms);
        if (s.fraction < 0)
            ses_text_table_cell(t, s.value < 100 ? "%.1f GB/s" : "%.0f GB/s", s.value);
        else
            ses_text_table_cell(t, "%.0f G %2.0f%%", s.value, 100 * s.fraction);
        ses_text_table_style(t, s.fraction < 0 ? SES_PLAIN : ses_fraction_style(s.fraction));
    }
}

/* Reports ops without a row in the table. */
static void notify_missing(const ses_bench *b)
{
    for (const ses_op *const *op = ses_ops(); *op && !b->call->quiet; op++) {
        bool found = false;
        for (size_t i = 0; i < SES_LEN(table); i++) found |= table[i].op == *op;
        if (!found) fprintf(stderr, "op %s has no benchmark\n", (*op)->name);
    }
}

static bool run(ses_bench *b, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("Op|Shape|>ms|>forward|>ms|>backward", e);
    bool ok = t != NULL;
    notify_missing(b);
    ses_bench_peak(b);
    for (size_t i = 0; ok && i < SES_LEN(table) && !ses_bench_stopped(); i++) {
        double seconds[2];
        ok = measure(b, &table[i], seconds, e);
        if (ok) cells(t, b, &table[i], seconds);
        ok = ok && emit(b, &table[i], seconds, e);
    }
    ses_progress_end(&b->progress);
    if (ok && !b->json) {
        ses_bench_heading(b, "ops", "  %s, %d thread%s, peak %.0f GFLOP/s", ses_isa_name(b->isa), b->threads,
                          b->threads == 1 ? "" : "s", b->peak);
        ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
        putchar('\n');
    }
    ses_text_table_free(t);
    return ok;
}

const ses_bench_kind ses_bench_ops = { .name = "ops", .run = run, .cpu_only = true };
