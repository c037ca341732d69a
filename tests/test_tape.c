/* Tapes: memory limits at every allocation, sticky errors, rewinding, graph replay, recomputation, misuse. */
#include "check.h"
#include "model_fixture.h"
#include "op/op.h"
#include "tensor/device_impl.h"

/* A step of a small model under a memory limit succeeds or reports an error. */
static bool step(ses_device *dev, ses_model *m, size_t limit, bool record, bool recompute)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_batch b = fixture_batch(true);
    ses_tape_options o = { .record = record, .recompute = recompute, .max_bytes = limit };
    ses_tape *t = ses_tape_new(dev, &o, &e);
    bool ok = ses_model_forward(m, t, &b, &(ses_output_request){ .logits = !record }, &out, &e);
    if (ok && record) ses_backward(t, out.loss);
    bool fine = ses_tape_ok(t, &e);
    CHECK(fine == (e.code == SES_OK));
    if (!fine) CHECK_MSG(e.code == SES_ENOMEM && strstr(e.msg, "limit"), "%s", e.msg);
    /* activations, recomputed activations and scratch each have the limit */
    CHECK(ses_tape_bytes(t) <= limit * 3);
    ses_tape_free(t);
    return fine;
}

static void test_exhaustion(bool record, bool recompute)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_json_doc *doc = fixture_config("BertForPreTraining", &e);
    ses_model *m = ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .train = record }, &e);
    CHECK_MSG(m, "%s", e.msg);
    size_t limit = 256;
    int failures = 0;
    while (m && !step(dev, m, limit, record, recompute) && limit < 64 << 20)
        limit += limit / 16 + 64, failures++;
    CHECK(failures > 20 && limit < 64 << 20);
    ses_model_free(m);
    ses_json_free(doc);
    ses_device_free(dev);
}

static void test_errors(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_REF }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    const ses_real x[6] = { 1, 2, 3, 4, 5, 6 };
    ses_tensor *a = ses_tape_input(t, x, SES_DIM(2, 3)), *b = ses_tape_input(t, x, SES_DIM(3, 2));
    CHECK(!ses_add(t, a, b) && !ses_tape_ok(t, &e));
    CHECK_STR(e.msg, "add: a and b must have the same shape");
    /* nothing runs after the first error */
    CHECK(!ses_scale(t, a, 2) && !ses_tape_tensor(t, SES_DIM(2)));
    ses_backward(t, a);
    ses_err_clear(&e);
    ses_tape_ok(t, &e);
    CHECK_STR(e.msg, "add: a and b must have the same shape");
    ses_tape_reset(t, NULL);
    ses_err_clear(&e);
    a = ses_tape_input(t, x, SES_DIM(2, 3));
    ses_backward(t, a);
    CHECK(!ses_tape_ok(t, &e) && strstr(e.msg, "backward"));
    ses_tape_reset(t, NULL);
    ses_err_clear(&e);
    CHECK(!ses_linear(t, NULL, NULL, NULL, SES_ACT_NONE, SES_OUT_IN) &&
          !ses_tape_ok(t, &e)); /* a NULL input is an error */
    static const int32_t labels[] = { 1, 3 };
    ses_tape_reset(t, NULL);
    ses_err_clear(&e);
    a = ses_tape_input(t, x, SES_DIM(2, 3));
    CHECK(!ses_cross_entropy(t, a, ses_tape_ints(t, labels, 2)) && !ses_tape_ok(t, &e));
    CHECK_STR(e.msg, "cross_entropy: label 3 at index 1, expected 0 to 2");
    ses_tape_reset(t, NULL);
    ses_err_clear(&e);
    a = ses_tape_input(t, x, SES_DIM(2, 3));
    CHECK(!ses_gather(t, a, ses_tape_ints(t, labels, 2)) && !ses_tape_ok(t, &e));
    CHECK_STR(e.msg, "gather: row 3 at index 1, expected 0 to 1");
    ses_tape_reset(t, NULL);
    ses_err_clear(&e);
    CHECK(!ses_tape_tensor(t, SES_DIM(INT64_MAX, 4)) && !ses_tape_ok(t, &e)); /* sizes that overflow */
    ses_tape_free(t);
    ses_device_free(dev);
}

/* Rewinding keeps the requested tensor, and memory stays bounded. */
static void test_rewind(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_REF }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    enum { N = 1000 };
    ses_real x[N], y[N];
    for (int i = 0; i < N; i++) x[i] = (ses_real)i;
    ses_tape_mark m = ses_tape_get_mark(t);
    ses_tensor *a = ses_tape_input(t, x, SES_DIM(N));
    size_t early = 0;
    for (int i = 0; i < 100; i++) {
        a = ses_tape_rewind(t, m, ses_add(t, a, ses_scale(t, a, 0.5)));
        if (i == 10) early = ses_tape_bytes(t);
    }
    CHECK(ses_tape_bytes(t) == early && ses_tape_read(t, a, y));
    CHECK(y[0] == 0 && y[1] > 1e17 && y[2] > y[1]);
    ses_tape_free(t);
    ses_device_free(dev);
}

/* Fake graphs on the CPU: they replay the work below from its start to its end. */
enum { CAPTURES, LATER, BUSY, FAILS, INVALID, GRAPHS }; /* LATER: the second capture succeeds */
enum { GROWN = 100 };
static int graphs_do, graphs_tried, graphs_kept, graphs_freed;
static ses_real *grows_from, *grows_to, grows_x[GROWN];
static bool graph_begin(ses_device *d)
{
    (void)d;
    return graphs_do != BUSY;
}

static void *graph_end(ses_device *d)
{
    memcpy(grows_from, grows_x, sizeof grows_x); /* undo the captured work */
    bool cannot = graphs_do == FAILS || (graphs_do == LATER && !graphs_tried);
    graphs_tried++;
    graphs_kept += !cannot;
    return cannot ? NULL : d;
}

static bool graph_run(ses_device *d, void *graph, uint64_t moves)
{
    ses_real y[GROWN];
    if (graph != d || moves != 7 || graphs_do == INVALID) return false;
    for (int i = 0; i < GROWN; i++) y[i] = (ses_real)3.375 * grows_from[i];
    memcpy(grows_to, y, sizeof y);
    return true;
}

static void graph_free(ses_device *d, void *graph)
{
    CHECK(graph == d);
    graphs_freed++;
}

static uint64_t graph_moves(ses_device *d)
{
    (void)d;
    return 7;
}

typedef struct growing {
    ses_tape *t;
    ses_tape_mark start;
    int calls;
} growing;

static ses_tensor *grow(void *ctx, ses_tensor *x) /* 1.5^3 x, layer by layer */
{
    growing *g = ctx;
    g->calls++;
    memcpy(grows_x, grows_from = x->f, sizeof grows_x);
    for (int i = 0; i < 3; i++) {
        ses_tensor *twice = ses_add(g->t, x, x);
        x = ses_tape_rewind(g->t, g->start, ses_scale(g->t, twice, 0.75));
    }
    grows_to = x->f;
    return x;
}

/* Replayed work does not call f again; if capture fails, f runs, and the result is the same. */
static void test_replay(int kind)
{
    static const ses_device_graphs graphs = { graph_begin, graph_end, graph_run, graph_free, graph_moves };
    enum { N = GROWN, ROUNDS = 9 };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_REF }, &e);
    const ses_device_memory *real = dev->mem;
    ses_device_memory mem = *real;
    mem.graphs = &graphs;
    dev->mem = &mem;
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    growing g = { .t = t };
    graphs_do = kind, graphs_tried = graphs_kept = graphs_freed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ses_real x[N], y[N] = { 0 };
        for (int i = 0; i < N; i++) x[i] = (ses_real)i;
        ses_tape_reset(t, NULL);
        ses_tensor *a = ses_tape_input(t, x, SES_DIM(1, N));
        g.start = ses_tape_get_mark(t);
        a = ses_tape_rewind(t, g.start, ses_scale(t, a, 1));
        a = ses_graph_replay(t, grow, &g, a, &kind, sizeof kind);
        CHECK(a && ses_count(a) == N && ses_tape_read(t, a, y) && ses_tape_ok(t, &e));
        for (int i = 0; i < N; i++) CHECK(y[i] == (ses_real)(3.375 * i));
        ses_tensor *more = ses_scale(t, a, 2); /* uses other memory than the first run */
        CHECK(more && ses_tape_read(t, a, y) && y[8] == 27);
    }
    CHECK(kind == CAPTURES ? g.calls < ROUNDS - 3 : kind == LATER ? g.calls < ROUNDS - 1 : g.calls >= ROUNDS);
    CHECK(graphs_kept == (kind == CAPTURES || kind == LATER || kind == INVALID));
    CHECK(graphs_tried < 5); /* failing captures are not retried forever */
    ses_tape_free(t);
    CHECK(graphs_freed == graphs_kept);
    dev->mem = real;
    ses_device_free(dev);
}

enum { PART = 1000, WIDTH = 10 };

/* Dropout and scaling, repeated. */
static ses_tensor *segment(void *tape, ses_tensor *x)
{
    ses_tape *t = tape;
    for (int i = 0; i < WIDTH; i++) x = ses_scale(t, ses_dropout(t, x, 0.1), 0.99);
    return x;
}

/* Recomputed segments keep only their results, and draw the same random numbers. */
static void test_recompute(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_real x[PART], got[2][PART];
    size_t bytes[2];
    for (int i = 0; i < PART; i++) x[i] = (ses_real)(i % 7 - 3);
    for (int again = 0; again < 2; again++) {
        ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true, .train = true, .seed = 5 }, &e);
        ses_tensor *a = ses_tape_input(t, x, SES_DIM(1, PART)), *y = a;
        a->requires_grad = true;
        for (int i = 0; i < 100; i++) y = again ? ses_recompute(t, segment, t, y) : segment(t, y);
        ses_tensor *by = ses_tape_input(t, x, SES_DIM(1, PART));
        ses_backward(t, ses_linear(t, ses_dropout(t, y, 0.1), by, NULL, SES_ACT_NONE, SES_OUT_IN));
        CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
        memcpy(got[again], a->grad, sizeof got[again]);
        bytes[again] = ses_tape_bytes(t);
        ses_tape_free(t);
    }
    CHECK(!memcmp(got[0], got[1], sizeof got[0]));
    CHECK_MSG(bytes[1] * 5 < bytes[0], "%zu bytes, %zu with recomputing", bytes[0], bytes[1]);
    ses_device_free(dev);
}

/* Donated gradient buffers: sums of a tensor with itself, views, rotation that overwrites its input. */
static void test_donated_grads(void)
{
    enum { T = 5, C = 12, N = T * C };
    static const int32_t position[T] = { 0, 3, 1, 40, 7 };
    static const ses_rotary_options inplace = { .cols = 8, .dim = 4, .inplace = true, .rope.theta = 10 };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_real x[N], w[N], got[2][N];
    for (int i = 0; i < N; i++) x[i] = (ses_real)(i % 7 - 3), w[i] = (ses_real)(i % 5 - 1);
    for (int over = 0; over < 2; over++) {
        ses_tape_reset(t, NULL);
        ses_tensor *a = ses_tape_input(t, x, SES_DIM(T, C)), *by = ses_tape_input(t, w, SES_DIM(1, N));
        a->requires_grad = true;
        ses_tensor *h = ses_scale(t, a, 3), *positions = ses_tape_ints(t, position, T),
                   *q = ses_scale(t, h, 1);
        q = over ? ses_rotary_scaled(t, q, positions, &inplace) : ses_rotary(t, q, positions, 8, 4, 10);
        /* one gradient for all three */
        ses_tensor *sum = ses_add(t, ses_add(t, q, h), ses_add(t, h, h));
        sum = ses_add(t, ses_reshape(t, sum, SES_DIM(1, N)), ses_reshape(t, sum, SES_DIM(1, N)));
        ses_backward(t, ses_linear(t, sum, by, NULL, SES_ACT_NONE, SES_OUT_IN));
        CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
        CHECK(a->has_grad);
        memcpy(got[over], a->grad, sizeof got[over]);
    }
    CHECK(!memcmp(got[0], got[1], sizeof got[0]));
    for (int i = 0; i < N;
         i++) /* 2 * 3 * (the rotated one + 3) in columns without rotation and at position 0 */
        if (i < C || i % C >= 8) CHECK_MSG(got[0][i] == 24 * w[i], "%d: %g", i, (double)got[0][i]);
    ses_tape_free(t);
    ses_device_free(dev);
}

/* Options that are not set select the best kernels; the reference kernels must be asked for. */
static void test_device_options(void)
{
    static const ses_isa isa[][2] = { { SES_ISA_REF, SES_ISA_REF },
                                      { SES_ISA_BEST, 0 },
                                      { SES_ISA_COUNT, 0 } };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ 0 }, NULL);
    CHECK(dev && ses_device_isa(dev) == ses_isa_best() && ses_device_isa(dev) != SES_ISA_BEST);
    ses_device_free(dev);
    for (size_t i = 0; i < SES_LEN(isa); i++) {
        dev = ses_device_open("cpu", &(ses_device_options){ .isa = isa[i][0] }, NULL);
        CHECK(dev && ses_device_isa(dev) == (isa[i][1] ? isa[i][1] : ses_isa_best()));
        ses_device_free(dev);
    }
}

int main(void)
{
    test_device_options();
    test_donated_grads();
    test_exhaustion(false, false);
    test_exhaustion(true, false);
    test_exhaustion(true, true);
    test_recompute();
    test_errors();
    test_rewind();
    for (int kind = 0; kind < GRAPHS; kind++) test_replay(kind);
    return check_report();
}
