/* Pruning during training against PyTorch (fixtures/movement.py): 50 updates of a small BERT classifier.
 * Losses, kept fractions, scores, masks and masked weights; in single and in double precision. */
#ifndef TESTS_MOVEMENT_CASES_H
#define TESTS_MOVEMENT_CASES_H

#include "base/alloc.h"
#include "check.h"
#include "sesame/safetensors.h"
#include "train/prune/pruner.h"
#include "train/trainer_impl.h"

#include <math.h>
#include <string.h>

enum { STEPS = 50, STEP_BATCHES = 2, STEP_SEQS = 4, STEP_TOKENS = 6 };

typedef struct movement_case {
    const char *name, *block;
} movement_case;

static const movement_case movement_cases[] = { { "movement", "5x8" },
                                                { "soft-movement", "4x4" },
                                                { "magnitude", "1x4" } };

typedef struct step_batches {
    const int32_t *ids, *labels;
    int32_t cu[STEP_SEQS + 1];
} step_batches;

static inline int64_t step_count(void *ctx, int64_t epoch)
{
    (void)ctx, (void)epoch;
    return STEPS * STEP_BATCHES;
}

static inline bool step_batch(void *ctx, int64_t epoch, int64_t index, ses_batch *b, ses_err *e)
{
    step_batches *s = ctx;
    (void)epoch, (void)e;
    for (int32_t i = 0; i <= STEP_SEQS; i++) s->cu[i] = i * STEP_TOKENS;
    *b = (ses_batch){ .seqs = STEP_SEQS,
                      .tokens = STEP_SEQS * STEP_TOKENS,
                      .cu_seqlens = s->cu,
                      .ids = s->ids + index * STEP_SEQS * STEP_TOKENS,
                      .labels = s->labels + index * STEP_SEQS };
    return true;
}

/* The largest difference of x [n] from a tensor of the fixture. dev: the device of x; NULL: the host. */
static inline double difference(const ses_safetensors *s, ses_device *dev, const char *test, const char *what,
                                const char *name, const ses_real *x, int64_t n)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s%s%s", test, what, *name ? "/" : "", name);
    const ses_tensor_entry *t = ses_safetensors_find(s, full);
    if (!CHECK_MSG(t && t->count == n, "%s: %lld elements", full, (long long)n)) return HUGE_VAL;
    float *want = ses_alloc_array((size_t)n, sizeof *want, NULL);
    ses_real *host = ses_alloc_array((size_t)n, sizeof *host, NULL);
    double off = 0;
    CHECK(ses_tensor_entry_to_f32(t, want, NULL));
    if (dev)
        dev->mem->download(dev, host, x, (size_t)n * sizeof *x);
    else
        memcpy(host, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) off = fmax(off, fabs((double)host[i] - (double)want[i]));
    ses_free(want);
    ses_free(host);
    return off;
}

static inline void check_weights_of(const ses_trainer *t, const ses_safetensors *s, const char *test,
                                    double within)
{
    const ses_store *store = t->store[0];
    for (size_t i = 0; i < ses_store_count(store); i++) {
        char name[200];
        const ses_tensor *x = ses_store_at(store, i)->tensor;
        if (!ses_model_saved_name(t->o.model, i, name, sizeof name)) continue;
        /* softmax ignores the keys' bias: its gradient is rounding noise, which Adam makes large */
        bool noise = within > 1e-6 && strstr(name, "key.bias");
        double off = difference(s, t->dev, test, "weight", name, ses_master_data(x), ses_count(x));
        CHECK_MSG(noise || off < within, "%s: %s differs by %g", test, name, off);
        for (size_t g = 0; g < t->pruner->n_groups; g++) {
            const ses_prune_group *p = &t->pruner->group[g];
            if (strcmp(p->name, ses_store_at(store, i)->name)) continue;
            off = difference(s, t->dev, test, "mask", name, p->factor, p->n_blocks);
            CHECK_MSG(off == 0, "%s: another mask of %s", test, name);
            if (!p->score) continue;
            off = difference(s, t->dev, test, "score", name, ses_master_data(p->score), p->n_blocks);
            CHECK_MSG(off < within, "%s: scores of %s differ by %g", test, name, off);
        }
    }
}

static inline void test_movement_case(ses_device *dev, const movement_case *c, double within)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_safetensors_open("tests/fixtures/movement/steps.safetensors", &e);
    ses_model *m = ses_model_open("tests/fixtures/movement", dev, &(ses_model_options){ .train = true }, &e);
    if (!CHECK_MSG(s && m, "%s", e.msg)) {
        ses_model_free(m), ses_safetensors_free(s);
        return;
    }
    step_batches batches = { .ids = ses_safetensors_find(s, "ids")->data,
                             .labels = ses_safetensors_find(s, "labels")->data };
    ses_trainer_options o = { .model = m,
                              .source = { .ctx = &batches, .count = step_count, .batch = step_batch },
                              .accumulate = STEP_BATCHES,
                              .updates = STEPS,
                              .max_grad_norm = 0.7,
                              .no_dropout = true,
                              .pruning = { .criterion = c->name,
                                           .block = c->block,
                                           .keep = strcmp(c->name, "soft-movement") ? 0.4 : 0,
                                           .warmup = 5,
                                           .cooldown = 15,
                                           .score_lr = 0.02,
                                           .threshold = 0.45,
                                           .penalty = 3 } };
    ses_real loss[STEPS], kept[STEPS];
    CHECK(ses_optim_defaults("adamw", &o.optim, &e) && ses_schedule_defaults("linear", &o.schedule, &e));
    o.optim.lr = 2e-3;
    o.optim.group[0] = (ses_param_group){ 1, 0.01 };
    o.optim.group[1] = (ses_param_group){ 1, 0 };
    o.optim.group_of = ses_group_by_decay;
    ses_trainer *t = m ? ses_trainer_new(&o, &e) : NULL;
    CHECK_MSG(t, "%s", e.msg);
    for (int i = 0; t && i < STEPS; i++) {
        ses_step_result r = { 0 };
        while (!r.updated && CHECK_MSG(ses_trainer_step(t, &r, &e), "%s", e.msg)) continue;
        loss[i] = (ses_real)r.loss;
        kept[i] = (ses_real)ses_trainer_kept(t);
    }
    if (t) {
        double off = difference(s, NULL, c->name, "loss", "", loss, STEPS);
        CHECK_MSG(off < within, "%s: losses differ by %g", c->name, off);
        off = difference(s, NULL, c->name, "kept", "", kept, STEPS);
        CHECK_MSG(off < 1e-6, "%s: kept fractions differ by %g", c->name, off);
        check_weights_of(t, s, c->name, within);
    }
    ses_trainer_free(t);
    ses_model_free(m);
    ses_safetensors_free(s);
}

#endif
