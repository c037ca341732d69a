/* Lanes: the tree, updates against a plain sum in its order, and equal bits on several ranks. */
#define _DEFAULT_SOURCE
#include "comm_fixture.h"
#include "nn/store_impl.h"
#include "sesame/unstable/ops.h"
#include "train/optim/optim_kind.h"
#include "train/trainer_impl.h"
#include "trainer_fixture.h"

#include <math.h>

/* ---- the tree ---- */

static void test_tree(void)
{
    CHECK(ses_lane_split((ses_lane_node){ 0, 8 }) == 4 && ses_lane_split((ses_lane_node){ 0, 7 }) == 4 &&
          ses_lane_split((ses_lane_node){ 4, 7 }) == 6 && ses_lane_split((ses_lane_node){ 2, 4 }) == 3);
    CHECK(ses_lane_is_node(7, (ses_lane_node){ 4, 7 }) && ses_lane_is_node(7, (ses_lane_node){ 6, 7 }));
    CHECK(!ses_lane_is_node(8, (ses_lane_node){ 4, 7 }) && !ses_lane_is_node(8, (ses_lane_node){ 2, 5 }));
    for (int64_t n = 1; n < 40; n++)
        for (int size = 1; size <= n && size < 9; size++) {
            int64_t at = 0;
            for (int r = 0; r < size; r++) { /* the covers of the ranks are all lanes, in order */
                ses_lane_node x = ses_lanes_of_rank(n, r, size), node[SES_MAX_LANE_NODES];
                size_t k = ses_lane_cover(n, x.begin, x.end, node);
                CHECK(x.begin == at && x.end > x.begin && k >= 1 && k <= 10);
                for (size_t i = 0; i < k; i++) {
                    CHECK(node[i].begin == at && ses_lane_is_node(n, node[i]));
                    at = node[i].end;
                }
            }
            CHECK(at == n);
        }
}

/* ---- shards ---- */

/* Shards are consecutive, nearly equal (5 %) or of whole tensors, and their cells do not depend on the number
 * of ranks. */
static void test_shards(void)
{
    enum { TENSORS = 40, ROWS = 500, COLS = 250 };
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_store *store = ses_store_new(dev, &e);
    for (int i = 0; i < TENSORS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        ses_store_add(store, name, (const int64_t[SES_MAX_DIM]){ ROWS, COLS }, SES_INIT_ZERO);
    }
    CHECK_MSG(ses_store_alloc_trainable(store, &e), "%s", e.msg);
    int64_t n = ses_store_flat(store).n, cells[2] = { 0 };
    for (int whole = 0; whole < 2; whole++)
        for (int size = 1; size <= 8; size++) {
            ses_shards x;
            CHECK(ses_shards_init(&x, store, whole, 0, size, &e) && x.border[0] == 0 && x.border[size] == n);
            CHECK(ses_shards_first_cell(&x, 0) == 0 && ses_shards_first_cell(&x, size) == x.n_cells);
            if (size == 1) cells[whole] = x.n_cells;
            CHECK(x.n_cells == cells[whole] && (whole || x.n_cells <= 256));
            for (int r = 0; r < size; r++) {
                int64_t here = x.border[r + 1] - x.border[r];
                CHECK_MSG(here >= 0 && (double)here <= (double)n / size * (whole ? 1.21 : 1.05),
                          "%d of %d: %lld", r, size, (long long)here);
                CHECK(!whole || x.border[r] % (n / TENSORS) == 0);
            }
            ses_shards_free(&x);
        }
    ses_store_free(store);
    ses_device_free(dev);
}

/* ---- runs ---- */

typedef struct setting {
    const char *optim;
    int64_t lanes, accumulate;
    double ema, momentum;
    bool recompute, no_overlap, unfreeze, weighted, extra;
    int64_t bucket;
} setting;

enum { EXTRA = 40000 };

typedef struct lane_run {
    run r;
    ses_layer_groups groups;
    ses_store *extra;
    ses_real *target;
} lane_run;

enum { COLUMNS = 4 };

/* Batch norm of numbers made of the ids, whose running statistics the batch changes. */
static ses_tensor *normalized(const lane_run *x, ses_tape *t, const ses_batch *b)
{
    ses_real *host = malloc((size_t)b->tokens * COLUMNS * sizeof *host), zero[COLUMNS] = { 0 };
    for (int64_t i = 0; i < b->tokens * COLUMNS; i++)
        host[i] = (ses_real)((b->ids[i / COLUMNS] * (i + 3)) % 17);
    ses_tensor *in = ses_tape_input(t, host, (const int64_t[SES_MAX_DIM]){ b->tokens, COLUMNS }), *p[4];
    for (size_t i = 0; i < 4; i++) p[i] = ses_store_at(x->extra, 1 + i)->tensor;
    ses_tensor *y = ses_batch_norm(t, in, p[0], p[1], p[2], p[3], 1e-5, 0.1);
    ses_tensor *first = ses_gather(t, y, ses_tape_ints(t, (const int32_t[]){ 0 }, 1));
    free(host);
    return ses_target_loss(t, first, ses_tape_input(t, zero, first->dim), SES_LOSS_MSE);
}

/* The model's loss, the mean square of the extra parameters minus 1, and that of the normalized numbers. */
static ses_tensor *extra_loss(void *ctx, ses_tape *t, const ses_batch *b, ses_err *e)
{
    lane_run *x = ctx;
    ses_outputs out;
    if (!ses_model_forward(x->r.model, t, b, &(ses_output_request){ 0 }, &out, e)) return NULL;
    ses_tensor *w = ses_store_at(x->extra, 0)->tensor;
    ses_tensor *l = ses_target_loss(t, w, ses_tape_input(t, x->target, w->dim), SES_LOSS_MSE);
    l = ses_add(t, l, ses_scale(t, normalized(x, t, b), 0.01));
    return ses_add(t, out.loss, ses_scale(t, l, 0.1 * (double)b->tokens));
}

static int64_t count_sequences(void *ctx, const ses_batch *b)
{
    (void)ctx;
    return b->seqs;
}

static void add_extra(lane_run *x, ses_err *e)
{
    x->extra = ses_store_new(x->r.dev, e);
    ses_store_add(x->extra, "extra", (const int64_t[SES_MAX_DIM]){ EXTRA, 1 }, SES_INIT_NORMAL);
    static const char *const vector[] = { "gain", "bias", "mean", "var" };
    for (size_t i = 0; i < 4; i++) {
        ses_tensor *v = ses_store_add(x->extra, vector[i], (const int64_t[SES_MAX_DIM]){ COLUMNS },
                                      i % 3 ? SES_INIT_ZERO : SES_INIT_ONE);
        if (i > 1) ses_store_set_role(x->extra, v, SES_PARAM_BUFFER);
    }
    CHECK(ses_store_alloc_trainable(x->extra, e));
    ses_store_init(x->extra, 1, 9);
    x->target = malloc(EXTRA * sizeof *x->target);
    for (int i = 0; i < EXTRA; i++) x->target[i] = 1;
    x->r.o.extra_params[0] = x->extra;
    x->r.o.loss = extra_loss;
    x->r.o.loss_ctx = x;
    x->r.o.predictions = count_sequences;
}

static void prepare(lane_run *x, const setting *s, ses_comm *comm, int threads)
{
    ses_err e = { 0 };
    *x = (lane_run){ .extra = NULL };
    run_prepare(&x->r, threads, NULL);
    ses_trainer_options *o = &x->r.o;
    CHECK(ses_optim_defaults(s->optim, &o->optim, &e));
    o->optim.lr = 0.01;
    o->optim.ema_decay = s->ema;
    o->optim.momentum = s->momentum;
    o->comm = comm;
    o->lanes = s->lanes;
    o->accumulate = s->accumulate;
    o->recompute = s->recompute;
    o->no_overlap = s->no_overlap;
    o->bucket = s->bucket;
    o->weight_by_tokens = s->weighted;
    if (s->extra) add_extra(x, &e);
    if (s->unfreeze) {
        x->groups = (ses_layer_groups){ .layers = 2 };
        CHECK(ses_optim_set_layer_groups(&o->optim, &x->groups, 0.01, 0.9, &e));
        o->unfreezing = &x->groups;
    }
    CHECK_MSG(run_start(&x->r, &e), "%s", e.msg);
}

static void lane_run_free(lane_run *x)
{
    ses_trainer_free(x->r.trainer);
    x->r.trainer = NULL;
    ses_store_free(x->extra);
    free(x->target);
    run_free(&x->r);
}

enum { MAX_STEPS = 40 };

typedef struct trace {
    double loss[MAX_STEPS], norm[MAX_STEPS];
    int64_t tokens[MAX_STEPS];
    size_t n;
} trace;

static void train(lane_run *x, trace *out)
{
    ses_err e = { 0 };
    *out = (trace){ .n = 0 };
    while (x->r.trainer && !ses_trainer_done(x->r.trainer) && out->n < MAX_STEPS) {
        ses_step_result s;
        bool ok = ses_trainer_step(x->r.trainer, &s, &e);
        CHECK_MSG(ok, "%s", e.msg);
        if (!ok) return;
        out->loss[out->n] = s.loss, out->norm[out->n] = s.grad_norm, out->tokens[out->n++] = s.tokens;
    }
}

/* One lane is the run without lanes: steps, positions and bits. */
static void test_one_lane(void)
{
    setting plain = { .optim = "adamw", .accumulate = 2 },
            one = { .optim = "adamw", .accumulate = 2, .lanes = 1 };
    lane_run a, b;
    trace x, y;
    size_t n, m;
    prepare(&a, &plain, NULL, 2), prepare(&b, &one, NULL, 1);
    train(&a, &x), train(&b, &y);
    ses_real *p = bits(&a.r, &n), *q = bits(&b.r, &m);
    CHECK(n == m && !memcmp(p, q, n));
    CHECK(x.n == BATCHES && !memcmp(&x, &y, sizeof x));
    free(p), free(q);
    lane_run_free(&a), lane_run_free(&b);
}

/* ---- against a plain sum ---- */

/* grad[begin] += ... by the tree's definition; every entry has n elements. */
static void tree_sum(ses_real **grad, int64_t begin, int64_t end, int64_t n)
{
    if (end - begin < 2) return;
    int64_t p = 1;
    while (2 * p < end - begin) p *= 2;
    tree_sum(grad, begin, begin + p, n);
    tree_sum(grad, begin + p, end, n);
    for (int64_t i = 0; i < n; i++) grad[begin][i] += grad[begin + p][i];
}

/* An update by hand: model, batches, optimizer and tape without the trainer. */
static double update_by_hand(run *r, ses_tape *t, ses_optim *o, int64_t epoch, int64_t *index,
                             int64_t *number, int64_t update, const setting *x)
{
    ses_err e = { 0 };
    ses_store *s = ses_model_store(r->model);
    ses_flat f = ses_store_flat(s);
    ses_real *grad[16] = { NULL };
    int64_t lanes = 0, batches = 0, left = r->o.source.count(r->o.source.ctx, epoch) - *index;
    double loss = 0, weight = 0;
    for (; lanes < x->lanes && left > 0; lanes++) {
        ses_store_zero_grad(s);
        for (int64_t a = 0; a < x->accumulate && left > 0; a++, left--, batches++) {
            ses_batch b;
            ses_outputs out;
            ses_real value;
            CHECK(r->o.source.batch(r->o.source.ctx, epoch, (*index)++, &b, &e));
            ses_tape_reset(
                t, &(ses_tape_options){
                       .record = true, .train = true, .seed = r->o.seed, .step = (uint32_t)(*number)++ });
            CHECK(ses_model_forward(r->model, t, &b, NULL, &out, &e));
            double n = x->weighted ? (double)b.seqs : 1;
            ses_backward(t, x->weighted ? ses_scale(t, out.loss, n) : out.loss);
            CHECK(ses_tape_read(t, out.loss, &value));
            loss += (double)value * n, weight += n;
        }
        grad[lanes] = malloc((size_t)f.n * sizeof **grad);
        memcpy(grad[lanes], f.grad, (size_t)f.n * sizeof **grad);
    }
    tree_sum(grad, 0, lanes, f.n);
    memcpy(f.grad, grad[0], (size_t)f.n * sizeof **grad);
    double norm = ses_store_grad_norm(s) / weight;
    ses_optim_step(o, r->o.optim.lr * ses_schedule_at(&r->o.schedule, update),
                   1 / weight * ses_clip_scale(norm, r->o.max_grad_norm));
    for (int64_t i = 0; i < lanes; i++) free(grad[i]);
    return loss / weight;
}

static void test_sum(const setting *x)
{
    ses_err e = { 0 };
    lane_run a;
    trace got;
    run r;
    prepare(&a, x, NULL, 2);
    train(&a, &got);
    run_prepare(&r, 2, NULL);
    r.o.optim = a.r.o.optim;
    r.o.schedule.total = ses_trainer_total_updates(a.r.trainer);
    ses_optim *o = ses_optim_new(ses_model_store(r.model), &r.o.optim, &e);
    ses_tape *t = ses_tape_new(r.dev, NULL, &e);
    int64_t number = 0, update = 0;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t index = 0; index < r.o.source.count(r.o.source.ctx, epoch); update++) {
            double loss = update_by_hand(&r, t, o, epoch, &index, &number, update, x);
            CHECK_MSG(fabs(loss - got.loss[update]) <= 1e-12 * fabs(loss), "%.17g %.17g", loss,
                      got.loss[update]);
        }
    CHECK(update == (int64_t)got.n && ses_trainer_state(a.r.trainer)->accumulated == 0 &&
          ses_trainer_state(a.r.trainer)->batches == BATCHES);
    size_t n, m;
    r.trainer = a.r.trainer; /* bits() also wants a trainer: compare the weights alone */
    ses_real *p = bits(&a.r, &n), *q = bits(&r, &m);
    CHECK_MSG(!memcmp(p, q, (size_t)ses_store_element_count(ses_model_store(r.model)) * sizeof *p),
              "%lld lanes of %lld batches", (long long)x->lanes, (long long)x->accumulate);
    free(p), free(q);
    r.trainer = NULL;
    ses_optim_free(o);
    ses_tape_free(t);
    run_free(&r);
    lane_run_free(&a);
}

/* ---- several ranks ---- */

typedef struct expected {
    setting s;
    ses_real *weights[2], *state[2], *averages; /* model, extra parameters */
    trace t;
} expected;

/* All values, padding included. */
static ses_real *weights_of(const ses_store *s)
{
    ses_flat f = ses_store_flat(s);
    ses_real *p = malloc((size_t)f.n * sizeof *p);
    memcpy(p, f.value, (size_t)f.n * sizeof *p);
    return p;
}

static ses_real *state_of(const ses_optim *o)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < ses_optim_state_count(o); i++) n += (size_t)ses_optim_state_at(o, i).total;
    ses_real *p = malloc((n + 1) * sizeof *p);
    for (size_t i = 0; i < ses_optim_state_count(o); i++) {
        ses_optim_state x = ses_optim_state_at(o, i);
        memcpy(p + at, x.data, (size_t)x.n * sizeof *p);
        at += (size_t)x.n;
    }
    return p;
}

static void compare_state(const ses_optim *o, const ses_real *all, bool split)
{
    size_t at = 0, here = 0;
    for (size_t i = 0; i < ses_optim_state_count(o); i++) {
        ses_optim_state x = ses_optim_state_at(o, i);
        CHECK(!x.n || !memcmp(x.data, all + at + x.offset, (size_t)x.n * sizeof *all));
        at += (size_t)x.total;
        here += (size_t)x.n;
    }
    CHECK(!split || !at || here < at);
}

static void run_rank(ses_comm *c, void *ctx)
{
    const expected *want = ctx;
    lane_run x;
    trace t;
    prepare(&x, &want->s, c, 1 + ses_comm_rank(c) % 2);
    if (!x.r.trainer) return;
    train(&x, &t);
    CHECK_MSG(t.n == want->t.n && !memcmp(&t, &want->t, sizeof t), "%s: other losses or norms",
              want->s.optim);
    ses_store *s = ses_model_store(x.r.model);
    CHECK_MSG(
        !memcmp(ses_store_flat(s).value, want->weights[0], (size_t)ses_store_flat(s).n * sizeof(ses_real)),
        "%s: other weights", want->s.optim);
    CHECK(!x.extra || !memcmp(ses_store_flat(x.extra).value, want->weights[1],
                              (size_t)ses_store_flat(x.extra).n * sizeof(ses_real)));
    compare_state(x.r.trainer->optim[0], want->state[0], false);
    if (x.extra)
        compare_state(x.r.trainer->optim[1], want->state[1],
                      ses_comm_size(c) > 1 && !ses_optim_find(want->s.optim)->whole_tensors);
    ses_err e = { 0 };
    CHECK(ses_trainer_swap_average(x.r.trainer, &e) && ses_trainer_gather_weights(x.r.trainer, &e));
    CHECK(!memcmp(ses_store_flat(s).value, want->averages, (size_t)ses_store_flat(s).n * sizeof(ses_real)));
    lane_run_free(&x);
}

static void test_ranks(const setting *s)
{
    expected want = { .s = *s };
    ses_err e = { 0 };
    lane_run x;
    prepare(&x, s, NULL, 2);
    train(&x, &want.t);
    want.weights[0] = weights_of(ses_model_store(x.r.model));
    if (x.extra) want.weights[1] = weights_of(x.extra);
    CHECK(!x.extra || ses_store_at(x.extra, 3)->tensor->f[0] != 0); /* a running mean */
    for (size_t i = 0; i < x.r.trainer->n_stores; i++) want.state[i] = state_of(x.r.trainer->optim[i]);
    CHECK(ses_trainer_swap_average(x.r.trainer, &e));
    want.averages = weights_of(ses_model_store(x.r.model));
    lane_run_free(&x);
    for (int size = 1; size <= 3 && size <= s->lanes; size++)
        CHECK_MSG(!comm_ranks(size, &(ses_comm_options){ .transport = "tcp" }, run_rank, &want),
                  "%s, %lld lanes, %d ranks", s->optim, (long long)s->lanes, size);
    for (int i = 0; i < 2; i++) free(want.weights[i]), free(want.state[i]);
    free(want.averages);
}

/* Gradients sent in bf16: the ranks have equal weights, close to the weights of f32. */
static void run_bf16(ses_comm *c, void *ctx)
{
    const expected *want = ctx;
    ses_err e = { 0 };
    lane_run x;
    trace t;
    prepare(&x, &want->s, c, 1);
    ses_trainer_free(x.r.trainer);
    x.r.o.comm_bf16 = true;
    CHECK_MSG(run_start(&x.r, &e), "%s", e.msg);
    train(&x, &t);
    ses_flat f = ses_store_flat(ses_model_store(x.r.model));
    double largest = 0, sum[3] = { 0 }, mine = 0;
    for (int64_t i = 0; i < f.n; i++) {
        largest = fmax(largest, fabs((double)f.value[i] - (double)want->weights[0][i]));
        mine += (double)f.value[i] * (double)(i % 977);
    }
    CHECK_MSG(largest > 0 && largest < 1e-3, "%g", largest);
    CHECK(ses_comm_allgather_equal(c, &mine, sizeof mine, sum, &e) && sum[0] == sum[1] && sum[1] == sum[2]);
    lane_run_free(&x);
}

static void test_bf16(void)
{
    expected want = { .s = { .optim = "sgd", .lanes = 4, .accumulate = 1, .bucket = 1000 } };
    lane_run x;
    prepare(&x, &want.s, NULL, 1);
    train(&x, &want.t);
    want.weights[0] = weights_of(ses_model_store(x.r.model));
    lane_run_free(&x);
    CHECK(!comm_ranks(3, &(ses_comm_options){ .transport = "tcp" }, run_bf16, &want));
    free(want.weights[0]);
}

/* After an update with bf16 copies, ranks have the owner's copy of everything and its f32 values of what ops
 * read in f32: all but dense weights and embeddings, of any shape. */
static void run_copies(ses_comm *c, void *ctx)
{
    enum { PARAMS = 6 };
    static const struct declared {
        const char *name;
        int64_t dim[SES_MAX_DIM];
        bool dense, embedding;
    } declared[PARAMS] = { { "table", { 40, 4 }, .embedding = true },
                           { "attn.bias", { 3, 8 } }, /* as XLNet's: [heads, D] */
                           { "dense.weight", { 24, 16 }, .dense = true },
                           { "dense.bias", { 24 } },
                           { "crf.transitions", { 9, 9 } },
                           { "norm.gain", { 16 } } };
    (void)ctx;
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    if (!CHECK(dev)) return;
    dev->activation_dtype = SES_BF16; /* gathering moves memory and computes nothing */
    ses_store *s = ses_store_new(dev, &e);
    for (int i = 0; i < PARAMS; i++) {
        ses_tensor *t = ses_store_add(s, declared[i].name, declared[i].dim, SES_INIT_ZERO);
        if (declared[i].dense) ses_store_set_dense(s, t, SES_OUT_IN);
        if (declared[i].embedding) ses_store_set_embedding(s, t);
    }
    CHECK_MSG(ses_store_alloc_trainable(s, &e), "%s", e.msg);
    ses_lanes_options o = { .comm = c, .dev = dev, .store = &s, .n_stores = 1, .lanes = 4 };
    ses_lanes *l = ses_lanes_new(&o, &e);
    ses_shards owner;
    if (!CHECK_MSG(l, "%s", e.msg) || !CHECK(ses_shards_init(&owner, s, false, 0, ses_comm_size(c), &e)))
        return;
    ses_flat f = ses_store_flat(s);
    uint16_t *copy = (uint16_t *)(void *)f.copy;
    int rank = ses_comm_rank(c);
    for (int64_t i = 0; i < f.n; i++) {
        bool own = i >= owner.border[rank] && i < owner.border[rank + 1];
        f.value[i] = own ? (ses_real)(i + 1) : -1;
        copy[i] = own ? (uint16_t)i : 0xffff;
    }
    CHECK_MSG(ses_lanes_gather_values(l, 0, true, &e), "%s", e.msg);
    for (int64_t i = 0; i < f.n; i++) CHECK_MSG(copy[i] == (uint16_t)i, "copy %lld", (long long)i);
    for (size_t p = 0; p < PARAMS; p++) {
        int64_t at = ses_store_flat_offset(s, p), n = ses_count(ses_store_at(s, p)->tensor), outdated = 0;
        for (int64_t i = at; i < at + n; i++) outdated += f.value[i] != (ses_real)(i + 1);
        if (!declared[p].dense && !declared[p].embedding)
            CHECK_MSG(!outdated, "rank %d: %lld outdated values of %s", rank, (long long)outdated,
                      declared[p].name);
    }
    ses_shards_free(&owner);
    ses_lanes_free(l);
    ses_store_free(s);
    ses_device_free(dev);
}

/* Fewer lanes than ranks, and a NaN on one rank: all of them fail with one message. */
static void run_failing(ses_comm *c, void *ctx)
{
    (void)ctx;
    ses_err e = { 0 };
    lane_run x;
    run_prepare(&x.r, 1, NULL);
    x.r.o.comm = c;
    x.r.o.lanes = 1;
    CHECK(!run_start(&x.r, &e) && strstr(e.msg, "1 lanes are too few for 2 ranks"));
    run_free(&x.r);
}

static void run_nan(ses_comm *c, void *ctx)
{
    (void)ctx;
    ses_err e = { 0 };
    setting s = { .optim = "adamw", .lanes = 2, .accumulate = 1 };
    lane_run x;
    ses_step_result out;
    prepare(&x, &s, c, 1);
    CHECK(ses_trainer_step(x.r.trainer, &out, &e));
    const ses_store *w = ses_model_store(x.r.model);
    ses_store_at(w, ses_store_count(w) - 1)->tensor->f[0] = NAN;
    bool ok = true;
    for (int i = 0; ok && i < 3; i++) ok = ses_trainer_step(x.r.trainer, &out, &e);
    CHECK_MSG(!ok && strstr(e.msg, "update 2, epoch 1, batch 3") &&
                  strstr(e.msg,
                         "NaN or infinity in the weights of \"classifier.bias\"; it arises first in the "
                         "output of layer \"classifier\""),
              "%s", e.msg);
    lane_run_free(&x);
}

int main(void)
{
    static const setting sums[] = { { .optim = "adamw", .lanes = 8, .accumulate = 1 },
                                    { .optim = "adamw", .lanes = 3, .accumulate = 2 },
                                    { .optim = "sgd", .lanes = 7, .accumulate = 1 },
                                    { .optim = "lamb", .lanes = 2, .accumulate = 5 },
                                    { .optim = "adamw", .lanes = 3, .accumulate = 1, .weighted = true } };
    static const setting ranked[] = {
        { .optim = "adamw", .lanes = 8, .accumulate = 1, .ema = 0.9, .bucket = 1000, .extra = true },
        { .optim = "bert_adam",
          .lanes = 5,
          .accumulate = 1,
          .bucket = 3000,
          .recompute = true,
          .extra = true },
        { .optim = "sgd", .lanes = 3, .accumulate = 2, .momentum = 0.9, .extra = true, .bucket = 5000 },
        { .optim = "adagrad",
          .lanes = 8,
          .accumulate = 1,
          .no_overlap = true,
          .extra = true,
          .weighted = true },
        { .optim = "asgd", .lanes = 4, .accumulate = 1, .extra = true },
        { .optim = "lamb", .lanes = 8, .accumulate = 1, .bucket = 1000, .ema = 0.5 },
        { .optim = "adafactor", .lanes = 6, .accumulate = 1, .extra = true },
        { .optim = "muon",
          .lanes = 6,
          .accumulate = 1,
          .momentum = 0.95,
          .bucket = 1000,
          .ema = 0.9,
          .extra = true },
        { .optim = "adamw", .lanes = 4, .accumulate = 1, .unfreeze = true, .bucket = 2000 },
    };
    test_tree();
    test_shards();
    test_one_lane();
    for (size_t i = 0; i < SES_LEN(sums); i++) test_sum(&sums[i]);
    for (size_t i = 0; i < SES_LEN(ranked); i++) test_ranks(&ranked[i]);
    test_bf16();
    for (int n = 2; n <= 4; n++)
        CHECK(!comm_ranks(n, &(ses_comm_options){ .transport = "tcp" }, run_copies, NULL));
    CHECK(!comm_ranks(2, &(ses_comm_options){ .transport = "tcp" }, run_failing, NULL));
    CHECK(!comm_ranks(2, &(ses_comm_options){ .transport = "tcp" }, run_nan, NULL));
    return check_report();
}
