/* bench rnn: recurrent networks with random weights; forward passes, and training steps without an optimizer
 * (mean squared error, gradients of all weights and of the input). bench/peers/rnn.py has the same rows. */
#include "base/alloc.h"
#include "bench.h"
#include "cli/ui/text_table.h"
#include "op/op.h"
#include "sesame/unstable/store.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_LAYERS = 3, MAX_BATCHES = 3 };

typedef struct net {
    const char *name;
    ses_rnn_type type;
    int layers;
    int64_t width[MAX_LAYERS + 1]; /* columns of the input, units of each layer */
    int64_t proj;                  /* columns of the projected output; 0: none */
    bool both;                     /* both directions */
    bool cpu, gpu;
    struct {
        int64_t seqs, len;
    } batch[MAX_BATCHES];
} net;

static const net nets[] = {
    { "lstm-1152", SES_RNN_LSTM, 1, { 1152, 1152 }, .cpu = true, .batch = { { 64, 72 } } },
    { "bilstm-300", SES_RNN_LSTM, 1, { 300, 256 }, .both = true, .cpu = true, .batch = { { 32, 25 } } },
    { "bigru-300", SES_RNN_GRU, 1, { 300, 256 }, .both = true, .cpu = true, .batch = { { 32, 25 } } },
    { "awd-lstm",
      SES_RNN_LSTM,
      3,
      { 400, 1152, 1152, 400 },
      .gpu = true,
      .batch = { { 64, 72 }, { 128, 72 }, { 256, 72 } } },
    { "elmo",
      SES_RNN_LSTM,
      1,
      { 512, 4096 },
      .proj = 512,
      .gpu = true,
      .batch = { { 128, 20 }, { 64, 128 } } },
    { "bilstm-400",
      SES_RNN_LSTM,
      1,
      { 400, 256 },
      .both = true,
      .gpu = true,
      .batch = { { 32, 25 }, { 256, 25 } } },
};

typedef struct direction {
    ses_tensor *w_in, *b_in, *w, *b, *proj;
} direction;

typedef struct subject {
    const net *n;
    ses_device *dev;
    ses_store *store;
    ses_tape *tape;
    int64_t seqs, tokens;
    int32_t *cu;
    direction layer[MAX_LAYERS][2];
    ses_tensor *x, *target;
    bool train, failed;
} subject;

static ses_tensor *add(subject *s, const char *what, int layer, int way, int64_t rows, int64_t cols)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%d.%d", what, layer, way);
    return ses_store_add(s->store, name, SES_DIM(rows, cols), SES_INIT_FAN_IN);
}

static void declare(subject *s)
{
    const net *n = s->n;
    int64_t gates = n->type == SES_RNN_LSTM ? 4 : 3, ways = n->both ? 2 : 1, in = n->width[0];
    for (int l = 0; l < n->layers; l++) {
        int64_t H = n->width[l + 1], P = n->proj ? n->proj : H;
        for (int d = 0; d < ways; d++) {
            direction *r = &s->layer[l][d];
            r->w_in = add(s, "w_in", l, d, gates * H, in), r->b_in = add(s, "b_in", l, d, gates * H, 1);
            r->w = add(s, "w", l, d, gates * H, P), r->b = add(s, "b", l, d, gates * H, 1);
            if (n->proj) r->proj = add(s, "proj", l, d, P, H);
        }
        in = ways * P;
    }
    s->x = add(s, "x", 0, 0, s->tokens, n->width[0]);
    s->target = add(s, "target", 0, 0, s->tokens, in);
}

static void subject_free(subject *s)
{
    ses_tape_free(s->tape);
    ses_store_free(s->store);
    ses_free(s->cu);
}

static bool subject_new(subject *s, const ses_bench *b, const net *n, int batch, bool train, ses_err *e)
{
    *s = (subject){ .n = n, .dev = b->dev, .train = train, .seqs = n->batch[batch].seqs };
    s->tokens = s->seqs * n->batch[batch].len;
    s->cu = ses_alloc_array((size_t)s->seqs + 1, sizeof *s->cu, e);
    s->store = s->cu ? ses_store_new(b->dev, e) : NULL;
    if (!s->store) return false;
    for (int64_t i = 0; i <= s->seqs; i++) s->cu[i] = (int32_t)(i * n->batch[batch].len);
    declare(s);
    if (!ses_store_ok(s->store, e)) return false;
    bool ok = !train || ses_store_alloc_trainable(s->store, e);
    for (size_t i = 0; ok && !train && i < ses_store_count(s->store); i++)
        ok = ses_store_alloc_one(s->store, i, e);
    if (!ok) return false;
    ses_store_init(s->store, 0.02, 1);
    ses_store_sync_bf16(s->store);
    if (!train && !ses_store_finalize(s->store, e)) return false;
    s->target->requires_grad = false;
    s->tape = ses_tape_new(b->dev, &(ses_tape_options){ .record = train, .train = train }, e);
    return s->tape != NULL;
}

static ses_tensor *forward(subject *s)
{
    ses_tensor *x = s->x, *cu = ses_tape_ints(s->tape, s->cu, s->seqs + 1);
    for (int l = 0; l < s->n->layers; l++) {
        ses_tensor *y[2] = { NULL };
        for (int d = 0; d < (s->n->both ? 2 : 1); d++) {
            const direction *r = &s->layer[l][d];
            ses_rnn_inputs in = { .x = ses_linear(s->tape, x, r->w_in, r->b_in, SES_ACT_NONE, SES_OUT_IN),
                                  .w = r->w,
                                  .bias = r->b,
                                  .proj = r->proj,
                                  .cu_seqlens = cu,
                                  .host_cu_seqlens = s->cu };
            y[d] = ses_rnn(s->tape, &in, &(ses_rnn_options){ .type = s->n->type, .reverse = d == 1 });
        }
        x = y[1] ? ses_concat(s->tape, 2, y) : y[0];
    }
    return x;
}

/* A GPU runs asynchronously: reading a value waits until all work is done. */
static void run_pass(void *ctx, int64_t call)
{
    subject *s = ctx;
    ses_real one;
    (void)call;
    ses_tape_reset(s->tape, &(ses_tape_options){ .record = s->train, .train = s->train });
    ses_tensor *y = forward(s);
    if (s->train && y) {
        ses_store_zero_grad(s->store);
        y = ses_target_loss(s->tape, y, s->target, SES_LOSS_MSE);
        ses_backward(s->tape, y);
    }
    s->failed |= !y || !ses_device_read(s->dev, y, 0, 1, &one, NULL) || !ses_tape_ok(s->tape, NULL);
}

static bool measure(ses_bench *b, const net *n, int batch, bool train, ses_text_table *t, ses_err *e)
{
    subject s;
    const char *bench = train ? "rnn.train" : "rnn.forward";
    char shape[48];
    snprintf(shape, sizeof shape, "%s %" PRId64 "x%" PRId64, n->name, n->batch[batch].seqs,
             n->batch[batch].len);
    ses_bench_case timed = { .fn = run_pass, .ctx = &s };
    snprintf(timed.name, sizeof timed.name, "%s %s", bench, shape);
    if (b->only && !strstr(timed.name, b->only)) return true;
    bool ok = subject_new(&s, b, n, batch, train, e);
    for (int i = 0; ok && i < (b->quick || b->dev->is_host ? 1 : 10); i++) run_pass(&s, i);
    if (ok) ses_bench_time(b, &timed, 1);
    if (ok && s.failed && ses_tape_ok(s.tape, e)) ok = ses_fail(e, SES_EIO, "%s failed", timed.name);
    ok = ok && !s.failed;
    if (ok && timed.best > 0) {
        double ms = 1e3 * timed.best, rate = (double)s.tokens / timed.best;
        ses_text_table_cell(t, "%s", bench);
        ses_text_table_cell(t, "%s", shape);
        ses_text_table_cell(t, "%.2f", ms);
        ses_text_table_cell(t, "%.0f", rate);
        ok = ses_bench_row(b, bench, shape, ms, "ms", -1, e) &&
             ses_bench_row(b, bench, shape, rate, "tokens/s", -1, e);
    }
    subject_free(&s);
    return ok;
}

static bool run(ses_bench *b, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("||>ms|>tokens/s", e);
    bool ok = t != NULL, host = b->dev->is_host;
    for (size_t i = 0; ok && i < SES_LEN(nets); i++)
        for (int batch = 0; batch < MAX_BATCHES && nets[i].batch[batch].seqs; batch++)
            for (int train = 0; ok && train < 2 && !ses_bench_stopped(); train++)
                if (b->only || (host ? nets[i].cpu : nets[i].gpu))
                    ok = measure(b, &nets[i], batch, train, t, e);
    ses_progress_end(&b->progress);
    if (ok && !b->json) {
        if (host)
            ses_bench_heading(b, "rnn", "  random weights, %s, %d thread%s", ses_isa_name(b->isa), b->threads,
                              b->threads == 1 ? "" : "s");
        else
            ses_bench_heading(b, "rnn", "  random weights, %s, %s", ses_device_name(b->dev),
                              ses_dtype_name(b->dev->activation_dtype));
        ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
        putchar('\n');
    }
    ses_text_table_free(t);
    return ok;
}

const ses_bench_kind ses_bench_rnn = { .name = "rnn", .run = run };
