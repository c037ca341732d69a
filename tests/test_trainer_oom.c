/* Every allocation of a trainer fails in turn: steps, writing and reading a checkpoint. */
#define _POSIX_C_SOURCE 200809L
#include "oom.h"

#include "base/dir.h"
#include "model_fixture.h"
#include "sesame/unstable/dataset.h"
#include "sesame/unstable/trainer.h"

#include <stdlib.h>

static char folder[] = "/tmp/sesame-trainer-oom-XXXXXX";

typedef struct parts {
    ses_device *dev;
    ses_json_doc *config;
    const char *dir; /* NULL: nothing is written */
    bool resume;
} parts;

static ses_dataset *examples(ses_err *e)
{
    ses_dataset *d = ses_dataset_new(SES_TARGET_CLASS, 0, 1, e);
    for (int32_t i = 0; d && i < 3; i++) {
        const int32_t ids[] = { 2, i + 5, 3 };
        if (ses_dataset_add(d, &(ses_sequence){ .n = 3, .ids = ids, .label = i, .origin = i + 1 }, e))
            continue;
        ses_dataset_free(d);
        d = NULL;
    }
    return d;
}

/* One update of two batches, from the start or from a checkpoint between them. */
static bool train(const parts *p, ses_model *m, ses_batches *b, ses_err *e)
{
    ses_step_result step;
    ses_resume_result from = { 0 };
    ses_trainer_options o = { .model = m,
                              .source = ses_batches_source(b),
                              .accumulate = 2,
                              .updates = 1,
                              .max_grad_norm = 1,
                              .dir = p->dir,
                              .settings = "{\"lr\": 0.01}" };
    if (!ses_optim_defaults("adamw", &o.optim, e)) return false;
    ses_trainer *t = ses_trainer_new(&o, e);
    bool ok = t && (!p->resume || (ses_trainer_resume(t, &from, e) && from.found));
    ok = ok && ses_trainer_log(t, "\"step\": 1", e) && ses_trainer_step(t, &step, e);
    if (ok && p->dir && !p->resume) ok = ses_trainer_save(t, e);
    ses_trainer_free(t);
    return ok;
}

static bool scenario(void *ctx, ses_err *e)
{
    const parts *p = ctx;
    ses_model_options o = { .train = true, .seed = 4 };
    ses_dataset *d = examples(e);
    ses_batches *b = d ? ses_batches_new(d, &(ses_batching){ .max_examples = 2, .seed = 3 }, e) : NULL;
    ses_model *m = b ? ses_model_new(ses_json_root(p->config), p->dev, &o, e) : NULL;
    bool ok = m && train(p, m, b, e);
    ses_model_free(m);
    ses_batches_free(b);
    ses_dataset_free(d);
    return ok;
}

int main(void)
{
    ses_err e = { 0 };
    parts p = { .dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e),
                .config = fixture_config("BertForSequenceClassification", &e) };
    CHECK_MSG(p.dev && p.config && mkdtemp(folder), "%s", e.msg);
    oom_sweep("a step", scenario, &p);
    p.dir = folder;
    oom_sweep("a checkpoint", scenario, &p);
    p.resume = true;
    oom_sweep("resuming", scenario, &p);
    ses_dir_remove(folder, NULL);
    ses_json_free(p.config);
    ses_device_free(p.dev);
    return check_report();
}
