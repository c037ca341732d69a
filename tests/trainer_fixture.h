/* A small training run for tests of the trainer: its model, data and hooks. */
#ifndef TESTS_TRAINER_FIXTURE_H
#define TESTS_TRAINER_FIXTURE_H

#include "check.h"
#include "examples_fixture.h"
#include "model_fixture.h"
#include "sesame/unstable/trainer.h"

enum { BATCH = 3, ACCUMULATE = 2, EPOCHS = 2, BATCHES = 10, UPDATES = 6 };

typedef struct run {
    ses_device *dev;
    ses_json_doc *config;
    ses_model *model;
    ses_dataset *data;
    ses_batches *batches;
    ses_trainer *trainer;
    ses_trainer_options o;
} run;

static inline void run_free(run *r)
{
    ses_trainer_free(r->trainer);
    ses_batches_free(r->batches);
    ses_dataset_free(r->data);
    ses_model_free(r->model);
    ses_json_free(r->config);
    ses_device_free(r->dev);
}

static inline void run_prepare(run *r, int threads, const char *dir)
{
    ses_err e = { 0 };
    *r = (run){ .dev = ses_device_open("cpu", &(ses_device_options){ .threads = threads }, &e) };
    r->config = fixture_config("BertForSequenceClassification", &e);
    r->model =
        ses_model_new(ses_json_root(r->config), r->dev, &(ses_model_options){ .train = true, .seed = 4 }, &e);
    r->data = examples();
    r->batches = ses_batches_new(r->data, &(ses_batching){ .max_examples = BATCH, .seed = 3 }, &e);
    CHECK_MSG(r->model && r->batches, "%s", e.msg);
    r->o = (ses_trainer_options){ .model = r->model,
                                  .source = ses_batches_source(r->batches),
                                  .accumulate = ACCUMULATE,
                                  .epochs = EPOCHS,
                                  .max_grad_norm = 0.5,
                                  .seed = 77,
                                  .dir = dir,
                                  .eval_every = -1,
                                  .save_every = 2,
                                  .keep_checkpoints = 3,
                                  .settings = "{\"lr\": 0.01}" };
    CHECK(ses_optim_defaults("adamw", &r->o.optim, &e) &&
          ses_schedule_defaults("linear", &r->o.schedule, &e));
    r->o.optim.lr = 0.01;
    r->o.schedule.warmup = 1;
}

static inline bool run_start(run *r, ses_err *e)
{
    r->trainer = ses_trainer_new(&r->o, e);
    return r->trainer != NULL;
}

/* Every weight, and the optimizer's state. */
static inline ses_real *bits(const run *r, size_t *n)
{
    const ses_store *s = ses_model_store(r->model);
    const ses_optim *o = ses_trainer_optim(r->trainer);
    *n = 0;
    for (size_t i = 0; i < ses_optim_state_count(o); i++) *n += (size_t)ses_optim_state_at(o, i).n;
    ses_real *all = malloc(((size_t)ses_store_element_count(s) + *n) * sizeof *all), *at = all;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_tensor *t = ses_store_at(s, i)->tensor;
        memcpy(at, t->f, (size_t)ses_count(t) * sizeof *at);
        at += ses_count(t);
    }
    for (size_t i = 0; i < ses_optim_state_count(o); i++) {
        ses_optim_state x = ses_optim_state_at(o, i);
        memcpy(at, x.data, (size_t)x.n * sizeof *at);
        at += x.n;
    }
    *n = (size_t)(at - all) * sizeof *all;
    return all;
}

typedef struct watch {
    int64_t stop_at; /* batches; below 0: never */
    run *r;
    int64_t batches;
    double losses[64];
    double metric[8];
    int n_eval;
    double lr[16]; /* by update */
} watch;

static inline void stepped(void *ctx, const ses_step_result *s)
{
    watch *w = ctx;
    w->losses[ses_trainer_state(w->r->trainer)->batches - 1] = s->loss;
    if (s->updated && ses_trainer_state(w->r->trainer)->updates <= 16)
        w->lr[ses_trainer_state(w->r->trainer)->updates - 1] = s->lr;
    w->batches++;
}

static inline bool stop(void *ctx)
{
    watch *w = ctx;
    return w->stop_at >= 0 && ses_trainer_state(w->r->trainer)->batches >= w->stop_at;
}

static inline void empty(const char *dir)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command)) puts("cannot remove a folder");
}

static inline bool evaluate(void *ctx, double *metric, ses_err *e)
{
    watch *w = ctx;
    (void)e;
    *metric = w->metric[w->n_eval++];
    return true;
}

#endif
