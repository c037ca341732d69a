/* The curriculum of a pretraining run: stages and batches, equal in any order of requests; EMA of weights. */
#define _POSIX_C_SOURCE 200809L
#include "corpus_fixture.h"

#include "sesame/base.h"
#include "sesame/unstable/trainer.h"
#include "train/curriculum.h"

#include <math.h>

static const char config[] =
    "{\"model_type\": \"bert\", \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 16, \"max_position_embeddings\": 64, \"type_vocab_size\": 2, \"vocab_size\": 16, "
    "\"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1, "
    "\"initializer_range\": 0.02, \"layer_norm_eps\": 1e-12, \"pad_token_id\": 0}";

typedef struct parts {
    ses_corpus *corpus;
    ses_mixture_part part;
    ses_special_tokens *special_tokens;
    ses_json_doc *config;
    ses_objective_mix *mix;
} parts;

static bool open_parts(parts *p, const corpus_fixture *f, const char *objectives)
{
    ses_err e = { 0 };
    ses_buf b = { 0 };
    corpus_text(&b, 30000, 3);
    *p = (parts){ .corpus =
                      corpus_of(f, "course", b.data, (ses_corpus_options){ .held_out_fraction = 0.2 }, &e) };
    ses_buf_free(&b);
    p->part = (ses_mixture_part){ p->corpus, 1 };
    p->config = ses_json_parse(config, strlen(config), &e);
    p->special_tokens = ses_special_tokens_new(f->tokenizer, 16, &e);
    if (!CHECK_MSG(p->corpus && p->config && p->special_tokens, "%s", e.msg)) return false;
    p->mix = ses_objective_mix_new(&(ses_objective_mix_options){ .objectives = objectives,
                                                                 .o = ses_objective_defaults,
                                                                 .special_tokens = p->special_tokens,
                                                                 .length = 32,
                                                                 .seed = 5 },
                                   ses_json_root(p->config), &e);
    return CHECK_MSG(p->mix, "%s", e.msg);
}

static void close_parts(parts *p)
{
    ses_objective_mix_free(p->mix);
    ses_special_tokens_free(p->special_tokens);
    ses_json_free(p->config);
    ses_corpus_free(p->corpus);
}

static ses_curriculum_options options_of(const parts *p)
{
    return (ses_curriculum_options){ .objectives = p->mix,
                                     .passages = { .parts = &p->part,
                                                   .n_parts = 1,
                                                   .exponent = 1,
                                                   .packing = SES_PACK_FULL_SENTENCES,
                                                   .seed = 5 },
                                     .stage = { { 16, 0.75 }, { 64, 0.25 } },
                                     .n_stages = 2,
                                     .tokens = 500,
                                     .batch_ramp = 0.5,
                                     .ramp_from = 0.2,
                                     .update_batches = 2,
                                     .updates = 200 };
}

static uint64_t sum_of(const ses_batch *b)
{
    uint64_t h = 1469598103934665603u;
    for (int64_t i = 0; i < b->tokens; i++)
        h = (h ^ (uint64_t)(uint32_t)(b->ids[i] * 131 + b->labels[i])) * 1099511628211u;
    return h;
}

/* Every batch of a run of 200 updates of two batches. */
static void whole_run(parts *p)
{
    ses_err e = { 0 };
    ses_curriculum_options o = options_of(p);
    ses_curriculum *c = ses_curriculum_new(&o, &e), *d = ses_curriculum_new(&o, &e);
    if (!CHECK_MSG(c && d, "%s", e.msg)) return;
    ses_batch_source s = ses_curriculum_source(c), again = ses_curriculum_source(d);
    int64_t batches = 0, bad = 0, tokens_first = 0, tokens_last = 0, switched = -1;
    uint64_t sum[400];
    struct {
        int64_t epoch, index;
    } at[400];
    for (int64_t epoch = 0; batches < 400; epoch++)
        for (int64_t i = 0, n = s.count(s.ctx, epoch); i < n && batches < 400; i++, batches++) {
            ses_batch b;
            if (!CHECK_MSG(s.batch(s.ctx, epoch, i, &b, &e), "%s", e.msg)) return;
            int64_t longest = 0;
            for (int64_t k = 0; k < b.seqs; k++)
                if (b.cu_seqlens[k + 1] - b.cu_seqlens[k] > longest)
                    longest = b.cu_seqlens[k + 1] - b.cu_seqlens[k];
            if (longest > 16 && switched < 0) switched = batches;
            bad += longest > (batches < 300 ? 16 : 64) || b.tokens > 560;
            if (batches < 10) tokens_first += b.tokens;
            if (batches >= 390) tokens_last += b.tokens;
            sum[batches] = sum_of(&b);
            at[batches].epoch = epoch;
            at[batches].index = i;
        }
    CHECK_MSG(!bad && switched >= 300 && switched < 303, "%lld bad, long ones from %lld on", (long long)bad,
              (long long)switched);
    CHECK_MSG(tokens_first < tokens_last / 3, "%lld, %lld", (long long)tokens_first, (long long)tokens_last);
    int64_t same = 0, differ = 0, kept = 0;
    for (int64_t k = 0; k < 400; k++) {
        ses_batch b;
        int64_t j = (k * 149) % 400, next = (j + (k % 3 ? 149 : 7)) % 400; /* often the prefetched one */
        CHECK(again.batch(again.ctx, at[j].epoch, at[j].index, &b, &e));
        same += sum_of(&b) == sum[j];
        again.prefetch(again.ctx, at[next].epoch, at[next].index);
        kept += sum_of(&b) == sum[j];
        differ += j > 0 && sum[j] != sum[j - 1];
    }
    CHECK_MSG(same == 400 && kept == 400 && differ == 399, "%lld the same, %lld kept", (long long)same,
              (long long)kept);
    CHECK(s.hash(s.ctx) == again.hash(again.ctx));
    ses_curriculum_free(c);
    ses_curriculum_free(d);
}

/* A pass: its sequences with their masks as a set, and in order. */
typedef struct pass_sums {
    uint64_t set, in_order;
} pass_sums;

static pass_sums sums_of_pass(const ses_batch_source *s, int64_t pass)
{
    ses_err e = { 0 };
    pass_sums sum = { 0 };
    for (int64_t i = 0; i < s->count(s->ctx, pass); i++) {
        ses_batch b, one;
        if (!CHECK_MSG(s->batch(s->ctx, pass, i, &b, &e), "%s", e.msg)) break;
        for (int64_t k = 0; k < b.seqs; k++) {
            one = b;
            one.ids += b.cu_seqlens[k], one.labels += b.cu_seqlens[k];
            one.tokens = b.cu_seqlens[k + 1] - b.cu_seqlens[k];
            uint64_t h = sum_of(&one);
            sum.set += h;
            sum.in_order = (sum.in_order ^ h) * 1099511628211u;
        }
    }
    return sum;
}

/* Static masking: a mask is a function of text and copy. After mask_copies passes the same masks come again,
 * in another order; the batch size does not matter. */
static void static_masks(parts *p)
{
    enum { PASSES = 4, MIXED = 4 };
    ses_err e = { 0 };
    ses_curriculum_options o = options_of(p);
    ses_objective_options saved = p->mix->build.o;
    o.n_stages = 1, o.stage[0] = (ses_curriculum_stage){ 32, 1 }, o.batch_ramp = 0;
    for (int64_t copies = 0; copies < 3; copies++)
        for (int unit = 0; unit <= MIXED; unit++) {
            pass_sums sum[2][PASSES] = { 0 };
            p->mix->build.o.mask_copies = copies;
            p->mix->build.o.mask_unit = unit < MIXED ? unit : -1;
            for (int i = 0; i < 4; i++) p->mix->build.unit_weight[i] = unit == MIXED;
            for (int size = 0; size < 2; size++) {
                o.tokens = size ? 500 : 170;
                ses_curriculum *c = ses_curriculum_new(&o, &e);
                if (!CHECK_MSG(c, "%s", e.msg)) continue;
                ses_batch_source s = ses_curriculum_source(c);
                for (int64_t pass = 0; pass < PASSES; pass++) sum[size][pass] = sums_of_pass(&s, pass);
                ses_curriculum_free(c);
            }
            for (int a = 0; a < PASSES; a++)
                for (int b = a + 1; b < PASSES; b++) {
                    bool same = sum[0][a].set == sum[0][b].set;
                    CHECK_MSG(same == (copies > 0 && a % copies == b % copies), "unit %d, copies %d: %d, %d",
                              unit, (int)copies, a, b);
                    CHECK(sum[0][a].in_order != sum[0][b].in_order);
                }
            bool per_batch = unit == MIXED && !copies; /* only then batches draw the unit */
            for (int a = 0; a < PASSES; a++)
                CHECK((sum[0][a].set == sum[1][a].set) != per_batch &&
                      (sum[0][a].in_order == sum[1][a].in_order) != per_batch);
        }
    memset(p->mix->build.unit_weight, 0, sizeof p->mix->build.unit_weight);
    p->mix->build.o = saved;
}

static void refusals(parts *p)
{
    ses_err e = { 0 };
    ses_curriculum_options o = options_of(p);
    o.stage[1].fraction = 0.3;
    CHECK(!ses_curriculum_new(&o, &e) && strstr(e.msg, "add up to 1.05"));
    e = (ses_err){ 0 };
    o = options_of(p);
    o.sequences = 5;
    CHECK(!ses_curriculum_new(&o, &e) && strstr(e.msg, "set either sequences or tokens per batch"));
    e = (ses_err){ 0 };
    o = options_of(p);
    o.stage[0].length = 3;
    CHECK(!ses_curriculum_new(&o, &e) && strstr(e.msg, "are too short for text"));
}

/* A batch source that counts prefetched and requested batches. */
typedef struct counted {
    ses_batch_source of;
    int64_t prefetched, requested, matched;
    int64_t epoch, index; /* prefetched last */
} counted;

static int64_t count(void *ctx, int64_t epoch)
{
    counted *c = ctx;
    return c->of.count(c->of.ctx, epoch);
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    counted *c = ctx;
    c->requested++;
    c->matched += c->prefetched && c->epoch == epoch && c->index == index;
    return c->of.batch(c->of.ctx, epoch, index, out, e);
}

static void ahead(void *ctx, int64_t epoch, int64_t index)
{
    counted *c = ctx;
    c->prefetched++;
    c->epoch = epoch, c->index = index;
    c->of.prefetch(c->of.ctx, epoch, index);
}

/* The trainer prefetches every batch but the first, and none after the last. */
static void asked_for(parts *p, ses_model *m, ses_batch_source s)
{
    ses_err e = { 0 };
    counted c = { .of = s };
    ses_step_result step;
    ses_trainer_options o = { .model = m,
                              .source = { .ctx = &c, .count = count, .batch = batch, .prefetch = ahead },
                              .loss = ses_objective_mix_loss,
                              .loss_ctx = p->mix,
                              .accumulate = 2,
                              .updates = 3 };
    CHECK(ses_optim_defaults("adamw", &o.optim, &e));
    ses_trainer *t = ses_trainer_new(&o, &e);
    CHECK_MSG(t, "%s", e.msg);
    while (t && !ses_trainer_done(t) && CHECK_MSG(ses_trainer_step(t, &step, &e), "%s", e.msg)) {}
    CHECK_MSG(c.requested == 6 && c.prefetched == 5 && c.matched == 5,
              "%lld requested, %lld prefetched, %lld matched", (long long)c.requested,
              (long long)c.prefetched, (long long)c.matched);
    ses_trainer_free(t);
}

/* Evaluations are repeatable and do not change the run's batches. */
static void evaluations(parts *p)
{
    ses_err e = { 0 };
    ses_device *dev =
        ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_COUNT - 1 }, &e);
    ses_model *m = dev ? ses_model_new(ses_json_root(p->config), dev,
                                       &(ses_model_options){ .class_name = ses_objective_mix_class(
                                                                 p->mix, ses_json_root(p->config), &e),
                                                             .train = true,
                                                             .random_init = true },
                                       &e)
                       : NULL;
    ses_curriculum_options o = options_of(p);
    o.eval_part = &p->part;
    o.n_eval_parts = 1;
    o.eval_held_out = true;
    ses_curriculum *c = ses_curriculum_new(&o, &e);
    ses_metric_sums t[2];
    if (CHECK_MSG(m && c && ses_objective_mix_set_models(p->mix, m, NULL, &e), "%s", e.msg)) {
        ses_batch_source s = ses_curriculum_source(c);
        ses_batch b;
        CHECK(s.batch(s.ctx, 0, 3, &b, &e));
        uint64_t before = sum_of(&b);
        for (int i = 0; i < 2; i++) CHECK(ses_curriculum_evaluate(c, 2000, NULL, NULL, &t[i], NULL, &e));
        CHECK(t[0].n == t[1].n && t[0].n >= 2);
        for (size_t i = 0; i < t[0].n; i++)
            CHECK(t[0].item[i].sum == t[1].item[i].sum && t[0].item[i].count == t[1].item[i].count);
        double loss = t[0].item[0].sum / t[0].item[0].count; /* untrained, 16 tokens */
        CHECK_MSG(!strcmp(t[0].item[0].name, "mlm_loss") && fabs(loss - log(16)) < 0.2, "%s %g",
                  t[0].item[0].name, loss);
        CHECK(t[0].item[0].count > 150 && s.batch(s.ctx, 0, 3, &b, &e) && sum_of(&b) == before);
        CHECK(s.batch(s.ctx, 0, 2, &b, &e));
        s.prefetch(s.ctx, 0, 3);
        CHECK(ses_curriculum_evaluate(c, 2000, NULL, NULL, &t[1], NULL, &e));
        CHECK(s.batch(s.ctx, 0, 3, &b, &e) && sum_of(&b) == before);
        asked_for(p, m, s);
    }
    ses_curriculum_free(c);
    ses_model_free(m);
    ses_device_free(dev);
}

int main(void)
{
    corpus_fixture f = corpus_begin();
    parts p;
    if (open_parts(&p, &f, "mlm")) {
        whole_run(&p);
        static_masks(&p);
        refusals(&p);
        evaluations(&p);
    }
    close_parts(&p);
    corpus_end(&f);
    return check_report();
}
