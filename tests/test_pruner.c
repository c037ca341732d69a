/* Pruning during training: block kernels, the choice of blocks, steps against PyTorch, the same bits after
 * any interruption, which evaluations select a checkpoint, removal of empty parts, errors. */
#define _DEFAULT_SOURCE
#include "model/model_desc.h"
#include "movement_cases.h"
#include "random_batch.h"
#include "train/prune/empty_parts.h"
#include "trainer_fixture.h"

#include <unistd.h>

static char folder[64];

/* ---- kernels ---- */

enum { GRID_MOST = 64 * 80 };

/* Arrays of a test on the device. */
typedef struct grid_arrays {
    ses_real *a, *b, *y, *sum, *factor;
} grid_arrays;

static ses_real *to_device(ses_device *d, const ses_real *x)
{
    ses_real *p = d->mem->alloc(d, GRID_MOST * sizeof *x, NULL);
    d->mem->upload(d, p, x, GRID_MOST * sizeof *x);
    return p;
}

static void from_device(ses_device *d, ses_real *x, ses_real *p)
{
    d->mem->download(d, x, p, GRID_MOST * sizeof *x);
    d->mem->free(d, p);
}

static void check_grid(ses_device *d, ses_block_grid g)
{
    static ses_real a[GRID_MOST], b[GRID_MOST], y[GRID_MOST], sum[GRID_MOST], factor[GRID_MOST];
    static double want[GRID_MOST];
    int64_t across = ses_block_grid_cols(&g), n = across * ses_block_grid_rows(&g);
    for (int i = 0; i < GRID_MOST; i++) {
        a[i] = (ses_real)sin(i), b[i] = (ses_real)cos(3 * i);
        y[i] = 7, sum[i] = 2, want[i] = 2, factor[i] = (ses_real)(i % 3);
    }
    for (int64_t r = 0; r < g.rows; r++)
        for (int64_t c = 0; c < g.cols; c++)
            want[r / g.block_rows * across + c / g.block_cols] +=
                (double)a[r * g.ld + c] * (double)b[r * g.ld + c];
    grid_arrays x = { to_device(d, a), to_device(d, b), to_device(d, y), to_device(d, sum),
                      to_device(d, factor) };
    d->k_f32.block_dot(&d->exec, x.sum, x.a, x.b, g);
    d->k_f32.block_scale(&d->exec, x.y, x.a, x.factor, g);
    from_device(d, sum, x.sum), from_device(d, y, x.y);
    from_device(d, a, x.a), from_device(d, b, x.b), from_device(d, factor, x.factor);
    for (int64_t i = 0; i < GRID_MOST; i++) CHECK(fabs((double)sum[i] - (i < n ? want[i] : 2)) < 1e-4);
    for (int64_t i = 0; i < GRID_MOST; i++) {
        int64_t r = i / g.ld, c = i % g.ld;
        bool inside = r < g.rows && c < g.cols;
        CHECK(y[i] == (inside ? a[i] * factor[r / g.block_rows * across + c / g.block_cols] : 7));
    }
}

/* Kernels and steps on a device. */
static void test_device(ses_device *d)
{
    static const ses_block_grid grids[] = { { 64, 64, 64, 32, 32 }, { 33, 70, 71, 32, 32 },
                                            { 17, 5, 5, 1, 4 },     { 9, 80, 80, 1, 1 },
                                            { 40, 20, 60, 1, 20 },  { 40, 70, 70, 40, 1 },
                                            { 1, 1, 1, 1, 1 } };
    for (size_t i = 0; i < SES_LEN(grids); i++) check_grid(d, grids[i]);
    for (size_t i = 0; i < SES_LEN(movement_cases); i++) test_movement_case(d, &movement_cases[i], 1e-5);
}

/* ---- the choice ---- */

static void test_choice(void)
{
    const ses_real x[] = { -1, 3, 0, -0.0f, 3, -5, 1e-30f, 2, -2, 0 };
    static const int order[] = {
        1, 4, 7, 6, 2, 3, 9, 0, 8, 5
    }; /* the largest first, the first of equal ones */
    enum { N = SES_LEN(x) };
    for (int kept = 0; kept <= N; kept++) {
        ses_real y[N];
        memcpy(y, x, sizeof y);
        ses_keep_largest(y, N, kept);
        for (int i = 0; i < N; i++) CHECK_MSG(y[order[i]] == (i < kept), "%d of %d", i, kept);
    }
}

/* ---- runs ---- */

static void set_pruning(run *r, const char *criterion, const char *block)
{
    r->o.pruning = ses_pruning_defaults();
    r->o.pruning.criterion = criterion;
    r->o.pruning.block = block;
    r->o.pruning.keep = strcmp(criterion, "soft-movement") ? 0.4 : 0;
    r->o.pruning.threshold = 0.5;
}

/* Weights, optimizer state and scores. */
static ses_real *all_bits(const run *r, size_t *n)
{
    ses_real *a = bits(r, n);
    const ses_store *s = r->trainer->pruner->scores;
    if (!s) return a;
    ses_flat f = ses_store_flat(s);
    a = realloc(a, *n + (size_t)f.n * sizeof *a);
    memcpy((char *)a + *n, f.value, (size_t)f.n * sizeof *a);
    *n += (size_t)f.n * sizeof *a;
    return a;
}

static void train(run *r, watch *w, int64_t stop_at, ses_run_end want)
{
    ses_err e = { 0 };
    ses_run_end end;
    *w = (watch){ .stop_at = stop_at, .r = r };
    CHECK_MSG(ses_trainer_run(r->trainer,
                              &(ses_trainer_hooks){ .ctx = w, .on_step = stepped, .should_stop = stop }, &end,
                              &e),
              "%s", e.msg);
    CHECK(end == want);
}

/* Stopped before each batch in turn, also between the two batches of an update; then resumed. */
static void test_resume(const char *criterion, const char *block)
{
    size_t n, m;
    watch w;
    run r;
    ses_err e = { 0 };
    run_prepare(&r, 1, NULL);
    set_pruning(&r, criterion, block);
    CHECK_MSG(run_start(&r, &e), "%s", e.msg);
    train(&r, &w, -1, SES_RUN_COMPLETE);
    CHECK(strcmp(criterion, "soft-movement") == 0 || ses_trainer_kept(r.trainer) < 0.6);
    ses_real *want = all_bits(&r, &n);
    run_free(&r);
    for (int64_t at = 1; at < BATCHES; at += 2 + (at % 4 == 1)) {
        ses_resume_result from;
        run_prepare(&r, 1, folder);
        set_pruning(&r, criterion, block);
        CHECK_MSG(run_start(&r, &e), "%s", e.msg);
        train(&r, &w, at, SES_RUN_STOPPED);
        run_free(&r);
        run_prepare(&r, 3, folder);
        set_pruning(&r, criterion, block);
        CHECK(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e) && from.found);
        train(&r, &w, -1, SES_RUN_COMPLETE);
        ses_real *got = all_bits(&r, &m);
        CHECK_MSG(n == m && !memcmp(want, got, n), "%s %s: other bits after batch %lld", criterion, block,
                  (long long)at);
        free(got);
        run_free(&r);
        empty(folder);
    }
    free(want);
}

/* Lanes on one rank add the gradients of a batch each: as accumulated batches. */
static void test_lanes(void)
{
    double kept[2], sum[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        run r;
        ses_err e = { 0 };
        run_prepare(&r, 2, NULL);
        set_pruning(&r, "movement", "4x4");
        r.o.no_dropout = true;
        if (i) r.o.lanes = ACCUMULATE, r.o.accumulate = 1;
        CHECK_MSG(run_start(&r, &e), "%s", e.msg);
        for (ses_step_result s; !ses_trainer_done(r.trainer);)
            if (!CHECK_MSG(ses_trainer_step(r.trainer, &s, &e), "%s", e.msg)) break;
        kept[i] = ses_trainer_kept(r.trainer);
        ses_flat f = ses_store_flat(r.trainer->pruner->scores);
        for (int64_t k = 0; k < f.n; k++) sum[i] += fabs((double)f.value[k]);
        run_free(&r);
    }
    CHECK(kept[0] == kept[1] && sum[0] > 0 && fabs(sum[0] - sum[1]) < 1e-3 * sum[0]);
}

/* While the kept fraction falls, evaluations select no checkpoint and do not end the run. */
static void test_selection(void)
{
    run r;
    ses_err e = { 0 };
    ses_run_end end;
    run_prepare(&r, 1, folder);
    set_pruning(&r, "magnitude", "row");
    r.o.pruning.warmup = 0;
    r.o.pruning.cooldown = 2; /* final after 4 of 6 updates */
    r.o.eval_every = 1;
    r.o.patience = 3;
    CHECK_MSG(run_start(&r, &e), "%s", e.msg);
    watch w = { .stop_at = -1, .r = &r, .metric = { 9, 8, 7, 1, 3, 2 } };
    ses_trainer_hooks h = { .ctx = &w, .on_step = stepped, .evaluate = evaluate };
    CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
    CHECK(end == SES_RUN_COMPLETE && w.n_eval == UPDATES && ses_trainer_state(r.trainer)->best_update == 5);
    CHECK(fabs(ses_trainer_kept(r.trainer) - 0.4) < 0.05); /* the best checkpoint is restored */
    run_free(&r);
    empty(folder);
}

/* ---- empty parts ---- */

static int64_t outputs_of(const ses_model *m, const ses_batch *b, ses_real *out, int64_t most)
{
    ses_err e = { 0 };
    ses_outputs o;
    int64_t n = 0;
    ses_tape *t = ses_tape_new(m->dev, NULL, &e);
    bool ok = t && ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &o, &e);
    CHECK_MSG(ok, "%s", e.msg);
    for (size_t i = 0; ok && i < o.n; i++) {
        int64_t count = ses_count(o.item[i].tensor);
        if (CHECK(n + count <= most) && CHECK(ses_tape_read(t, o.item[i].tensor, out + n))) n += count;
    }
    ses_tape_free(t);
    return n;
}

static void zero_block(const ses_dense *d, int part, int parts, int64_t unit, int64_t units, bool by_input)
{
    bool out_first = d->layout == SES_OUT_IN;
    int64_t outs = d->w->dim[out_first ? 0 : 1], ins = d->w->dim[out_first ? 1 : 0], each = outs / parts;
    for (int64_t o = 0; o < outs; o++)
        for (int64_t i = 0; i < ins; i++) {
            int64_t at = by_input ? i / (ins / units) : o / each == part ? o % each / (each / units) : -1;
            if (at == unit) d->w->f[out_first ? o * ins + i : i * outs + o] = 0;
        }
}

/* Empties a head by its values, another by its outputs, rows by up and by down; a head without queries stays.
 * Returns how many rows of each layer must go. */
static int64_t empty_some(ses_model *m)
{
    for (int64_t i = 0; i < m->stack[0].n_unique; i++) {
        const ses_layer *l = &m->stack[0].layer[i];
        const ses_config *c = m->stack[0].c;
        int64_t heads = m->stack[0].heads, rows = l->down.w->dim[l->down.layout == SES_OUT_IN ? 1 : 0];
        bool fused = !l->self.key.w;
        zero_block(fused ? &l->self.query : &l->self.value, fused ? 2 : 0, fused ? 3 : 1, 1, heads, false);
        zero_block(&l->self.query, 0, fused ? 3 : 1, 0, heads, false); /* queries: no removal */
        if (heads > 2) zero_block(&l->self.out, 0, 1, 2, heads, true);
        zero_block(&l->up, 0, c->ffn.fused_gate ? 2 : 1, 3, rows, false);
        if (c->ffn.fused_gate) zero_block(&l->up, 1, 2, 5, rows, false);
        zero_block(&l->down, 0, 1, 4, rows, true);
    }
    return m->stack[0].c->ffn.fused_gate ? 3 : 2;
}

static void test_empty_parts(const char *dir)
{
    enum { MOST = 1 << 16 };
    static ses_real x[MOST], y[MOST];
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ .train = true }, &e);
    if (CHECK_MSG(m, "%s: %s", dir, e.msg)) {
        for (size_t i = 0; i < ses_store_count(m->store); i++) { /* biases that matter */
            const ses_param *p = ses_store_at(m->store, i);
            for (int64_t k = 0;
                 ses_rank(p->tensor) == 1 && strstr(p->name, ".bias") && k < ses_count(p->tensor); k++)
                if (p->role == SES_PARAM_TRAINED) p->tensor->f[k] += (ses_real)(0.3 * sin((double)(k + 1)));
        }
        int64_t gone = empty_some(m);
        random_batch b;
        random_batch_draw(&b, m, false, 2);
        ses_model *s = ses_model_without_empty_parts(m, &e);
        if (CHECK_MSG(s, "%s: %s", dir, e.msg)) {
            double off = 0, most = 0;
            int64_t n = outputs_of(m, &b.batch, x, MOST), k = outputs_of(s, &b.batch, y, MOST);
            for (int64_t i = 0; i < n && n == k; i++) {
                off = fmax(off, fabs((double)x[i] - (double)y[i]));
                most = fmax(most, fabs((double)x[i]));
            }
            CHECK_MSG(n == k && n && off < 1e-5 * fmax(1, most), "%s: outputs differ by %g", dir, off);
            for (int64_t l = 0; l < ses_model_part_layers(m, SES_PART_MAIN); l++) {
                int64_t heads = m->stack[0].heads;
                CHECK_MSG(ses_model_part_heads(s, SES_PART_MAIN, l) == heads - (heads > 2 ? 2 : 1),
                          "%s: %lld heads", dir, (long long)ses_model_part_heads(s, SES_PART_MAIN, l));
                CHECK(ses_model_layer_neurons(s, SES_PART_MAIN, l) ==
                      ses_model_layer_neurons(m, SES_PART_MAIN, l) - gone);
            }
        }
        ses_model_free(s);
    }
    ses_model_free(m);
    ses_device_free(dev);
}

/* ---- errors ---- */

static void refused(const char *message, ses_pruning_options o, bool lora)
{
    run r;
    ses_err e = { 0 };
    run_prepare(&r, 1, NULL);
    if (lora) {
        ses_model_free(r.model);
        const ses_adapter_options two = { .rank = 2, .alpha = 4 };
        ses_model_options with = { .train = true, .adapter_options = &two };
        r.o.model = r.model = ses_model_open("tests/golden/bert-classify", r.dev, &with, &e);
        if (!CHECK_MSG(r.model, "%s", e.msg)) return;
    }
    r.o.pruning = o;
    CHECK(!run_start(&r, &e));
    CHECK_MSG(strstr(e.msg, message), "expected \"%s\", got \"%s\"", message, e.msg);
    run_free(&r);
}

static void test_averages(void)
{
    for (int i = 0; i < 2; i++) {
        run r;
        ses_err e = { 0 };
        run_prepare(&r, 1, NULL);
        if (i)
            CHECK_MSG(ses_optim_defaults("asgd", &r.o.optim, &e), "%s", e.msg);
        else
            r.o.optim.ema_decay = 0.9;
        r.o.pruning = ses_pruning_defaults();
        r.o.pruning.criterion = "movement", r.o.pruning.keep = 0.5, r.o.pruning.block = "4x4";
        CHECK(!run_start(&r, &e));
        CHECK_MSG(strstr(e.msg, "would fill the zeros"), "%s", e.msg);
        run_free(&r);
    }
}

static void test_errors(void)
{
    ses_pruning_options o = ses_pruning_defaults(), x;
    o.criterion = "movement", o.keep = 0.5, o.block = "4x4";
    x = o, x.criterion = "moving", refused("unknown criterion of prune \"moving\"", x, false);
    x = o, x.keep = 0, refused("keep is 0", x, false);
    x = o, x.keep = 1.5, refused("keep is 1.5", x, false);
    x = o, x.keep = NAN, refused("keep is", x, false);
    x = o, x.criterion = "soft-movement", refused("penalty and threshold decide", x, false);
    static const char *const bad[] = {
        "0x4", "4x0", "4", "x4", "4x", "4x4x4", "", "-1x4", "rows", "9999999x1"
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) x = o, x.block = bad[i], refused("is neither a size", x, false);
    x = o, x.block = "32x32", refused("32x32 is larger than \"layer.0.attn.query.weight\"", x, false);
    x = o, x.warmup = 4, x.cooldown = 4, refused("lower them", x, false);
    refused("an adapter leaves", o, true);
    ses_err e = { 0 };
    CHECK(!ses_pruning_check(&(ses_pruning_options){ .keep = 0.3 }, &e) && strstr(e.msg, "set prune"));
    e = (ses_err){ 0 };
    CHECK(!ses_pruning_check(&(ses_pruning_options){ .block = "1x4" }, &e) && strstr(e.msg, "set prune"));
    CHECK(ses_pruning_check(&(ses_pruning_options){ 0 }, NULL));
}

int main(void)
{
    static const char *const models[] = { "bert-classify", "distilbert-classify", "electra-classify",
                                          "gpt2-lm",       "roberta-classify",    "modernbert-masked-lm" };
    snprintf(folder, sizeof folder, "/tmp/sesame-pruner-%d", (int)getpid());
    for (int threads = 1; threads < 4; threads++) {
        ses_device *d = ses_device_open("cpu", &(ses_device_options){ .threads = threads }, NULL);
        test_device(d);
        ses_device_free(d);
    }
    ses_device *gpu = ses_device_open("cuda", NULL, NULL);
    if (gpu)
        test_device(gpu);
    else
        SKIP("no GPU");
    ses_device_free(gpu);
    test_choice();
    test_resume("movement", "4x4");
    test_resume("magnitude", "1x4");
    test_resume("soft-movement", "row");
    test_resume("movement", "unit");
    test_lanes();
    test_selection();
    for (size_t i = 0; i < SES_LEN(models); i++) {
        char dir[128];
        snprintf(dir, sizeof dir, "tests/golden/%s", models[i]);
        test_empty_parts(dir);
    }
    test_errors();
    test_averages();
    return check_report();
}
