/* FLOPs, energy and price of training runs: every objective reports FLOPs; a language model is
 * compared with a formula; lanes, resume and recomputation. */
#define _POSIX_C_SOURCE 200809L
#include "pretrain_fixture.h"

#include <math.h>

typedef struct outcome {
    ses_run_end end;
    ses_training_stats stats;
    int64_t vocab;
    double flops, energy_wh, energy_kwh, price, seconds; /* results; NaN: missing */
} outcome;

static double number(const ses_json *x, const char *key)
{
    double v = NAN;
    ses_json_real(ses_json_get(x, key), &v);
    return v;
}

static outcome run(const ses_pretrain_options *o)
{
    ses_err e = { 0 };
    outcome r = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_pretrain *p = dev ? ses_pretrain_new(o, dev, &e) : NULL;
    bool ok = p && ses_pretrain_run(p, &r.end, &e);
    CHECK_MSG(ok, "%s: %s", o->objectives ? o->objectives : "mlm", e.msg);
    if (ok) {
        r.stats = ses_pretrain_result_of(p)->stats;
        r.vocab = ses_model_vocab_size(ses_pretrain_model(p));
        ses_json_writer *w = ses_json_writer_new(0, NULL);
        ses_json_begin_object(w);
        ses_pretrain_put_results(p, w);
        ses_json_end_object(w);
        size_t n = 0;
        const char *text = ses_json_writer_text(w, &n, NULL);
        ses_json_doc *d = ses_json_parse(text, n, NULL);
        const ses_json *x = ses_json_root(d);
        r.flops = number(x, "train_flops"), r.seconds = number(x, "train_runtime");
        r.energy_wh = number(x, "train_energy_wh"), r.energy_kwh = number(x, "train_energy_kwh");
        r.price = number(x, "train_price");
        ses_json_free(d);
        ses_json_writer_free(w);
    }
    ses_pretrain_free(p);
    ses_device_free(dev);
    return r;
}

/* A GPT-2 of one layer, one text per update. */
static ses_pretrain_options causal(const pretrain_fixture *f)
{
    static const char *const set[] = { "n_embd=8", "n_layer=1", "n_head=2", "n_positions=32" };
    ses_pretrain_options o = pretrain_options(f);
    o.preset = "gpt2", o.objectives = "clm", o.set = set, o.n_set = SES_LEN(set);
    o.run.batch_size = o.run.accumulate = 1;
    return o;
}

/* A forward pass for a text of n tokens, of which n - 1 are predicted; written out for width 8, 2 heads, a
 * feed-forward block of 32. */
static double causal_forward(double n, double vocab)
{
    double embed = 2 * 8 * vocab + 2 * 8 * n + 8 /* sum */ + 4 * 8 /* dropout */,
           products = 2 * (8 * 24 + 8 * 8 + 8 * 32 + 32 * 8), biases = 24 + 8 + 32 + 8, norms = 3 * 5 * 8,
           attention = n * (4 * 8 + 2 * (5 + 4 + 1)), blocks = 2 * (8 + 4 * 8) /* residuals, dropout */,
           activation = 8 * 32, head = 2 * 8 * vocab + 5 * vocab + 2 * vocab;
    return n * (embed + products + biases + norms + attention + blocks + activation) + (n - 1) * head;
}

typedef struct lengths {
    double n[16];
    int count;
} lengths;

static bool keep_length(void *ctx, const ses_training_event *event)
{
    lengths *l = ctx;
    if (event->kind == SES_TRAINING_STEP && l->count < 16) l->n[l->count++] = (double)event->step->tokens;
    return true;
}

static void test_formula(const pretrain_fixture *f)
{
    ses_pretrain_options o = causal(f);
    lengths l = { .count = 0 };
    o.on_event = keep_length, o.ctx = &l;
    outcome r = run(&o);
    double expected = 0;
    for (int i = 0; i < l.count; i++) expected += 2 * causal_forward(l.n[i], (double)r.vocab);
    CHECK(r.end == SES_RUN_COMPLETE && l.count == 6 && r.stats.sequences == 6);
    CHECK_MSG(r.flops == expected, "%.17g, expected %.17g", r.flops, expected);
    CHECK(r.stats.flops == r.flops);
    o.on_event = NULL, o.run.recompute = true;
    CHECK(run(&o).flops == 1.5 * expected);
    o = causal(f);
    o.run.lanes = 2, o.run.steps = 3;
    CHECK(run(&o).flops == expected);
}

static bool stop(void *ctx, const ses_training_event *event)
{
    int *left = ctx;
    return event->kind != SES_TRAINING_STEP || --*left > 0;
}

/* Stopped in the middle of an update, and resumed. */
static void test_resume(const pretrain_fixture *f)
{
    ses_pretrain_options o = pretrain_options(f);
    outcome whole = run(&o);
    int left = 3;
    o.run.output = f->output, o.on_event = stop, o.ctx = &left;
    outcome half = run(&o);
    CHECK(half.end == SES_RUN_STOPPED && half.flops > 0 && half.flops < whole.flops);
    o.on_event = NULL, o.run.resume = true;
    outcome rest = run(&o);
    CHECK_MSG(rest.end == SES_RUN_COMPLETE && rest.flops == whole.flops, "%.17g and %.17g", rest.flops,
              whole.flops);
    char path[200];
    snprintf(path, sizeof path, "%s/trainer_state.json", f->output);
    ses_json_doc *d = ses_json_load(path, 1 << 20, NULL);
    CHECK(d && number(ses_json_root(d), "total_flos") == whole.flops);
    ses_json_free(d);
    snprintf(path, sizeof path, "grep -q '^| FLOPs | ' '%s/README.md'", f->output);
    CHECK(!system(path));
}

static void test_price(const pretrain_fixture *f)
{
    ses_pretrain_options o = pretrain_options(f);
    o.run.steps = 1;
    outcome r = run(&o);
    CHECK(isnan(r.price) && isnan(r.stats.price) && r.energy_wh > 0);
    CHECK(fabs(r.energy_wh - 1000 * r.energy_kwh) < 1e-9 * r.energy_wh);
    o.run.price_per_hour = 7200;
    r = run(&o);
    CHECK_MSG(fabs(r.price - 2 * r.seconds) < 1e-9, "%g for %g s", r.price, r.seconds);
    o.run.price_per_kwh = 3e5;
    r = run(&o);
    CHECK(fabs(r.price - (2 * r.seconds + 3e5 * r.energy_kwh)) < 1e-9 && r.stats.price == r.price);
}

/* Objectives of one encoder; further ones need other models or files. */
static void test_objectives(const pretrain_fixture *f)
{
    static const char *const names[] = { "mlm", "mlm,nsp", "mlm,sbo", "clm" };
    double flops[SES_LEN(names)];
    for (size_t i = 0; i < SES_LEN(names); i++) {
        ses_pretrain_options o = strcmp(names[i], "clm") ? pretrain_options(f) : causal(f);
        o.objectives = names[i];
        flops[i] = run(&o).flops;
        CHECK_MSG(flops[i] > 0, "%s", names[i]);
    }
    CHECK_MSG(flops[2] > flops[0], "%g, with a second head %g", flops[0], flops[2]);
    static const char *const set[] = { "hidden_size=8",         "num_hidden_layers=1",
                                       "num_attention_heads=4", "embedding_size=8",
                                       "intermediate_size=16",  "max_position_embeddings=32" };
    ses_pretrain_options o = pretrain_options(f);
    o.preset = "electra-small", o.objectives = "rtd", o.set = set, o.n_set = SES_LEN(set);
    double both = run(&o).flops;
    CHECK_MSG(both > 1.5 * flops[0], "%g, with a generator %g", flops[0], both);
}

/* A frozen generator has no backward pass. */
static void test_frozen_generator(const pretrain_fixture *f)
{
    static const char *const set[] = { "hidden_size=8",         "num_hidden_layers=1",
                                       "num_attention_heads=4", "embedding_size=8",
                                       "intermediate_size=16",  "max_position_embeddings=32" };
    char dir[200];
    snprintf(dir, sizeof dir, "%s-generator", f->output);
    ses_pretrain_options o = pretrain_options(f);
    o.preset = "electra-small", o.objectives = "mlm", o.set = set, o.n_set = SES_LEN(set);
    o.run.output = dir;
    double alone = run(&o).flops;
    o.run.output = NULL, o.objectives = "rtd", o.generator = dir;
    o.objective.generator_tying = SES_TIE_NONE;
    double trained = run(&o).flops;
    o.objective.freeze_generator = true;
    double frozen = run(&o).flops;
    CHECK_MSG(alone > 0 && fabs(trained - frozen - alone / 2) < 0.01 * alone, "%g, %g, %g", alone, trained,
              frozen);
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", dir); /* it has subfolders */
    CHECK(!system(command));
}

int main(void)
{
    pretrain_fixture f;
    pretrain_begin(&f);
    test_formula(&f);
    test_resume(&f);
    test_price(&f);
    test_objectives(&f);
    test_frozen_generator(&f);
    pretrain_end(&f);
    return check_report();
}
