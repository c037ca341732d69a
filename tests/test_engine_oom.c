/* Every allocation of the engine fails in turn: opening a model, a training step, saving, embedding. */
#define _GNU_SOURCE
#include "model_fixture.h"
#include "oom.h"
#include "sesame/sentence.h"
#include "sesame/unstable/optim.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct scene {
    ses_device *dev;
    const ses_json *config;
    const char *dir;
} scene;

/* A model, a tape, an optimizer; one step. */
static bool train(void *ctx, ses_err *e)
{
    static const ses_optim_options adamw = {
        .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .group = { { 1, 0.01 } }
    };
    scene *s = ctx;
    ses_outputs out;
    bool ok = false;
    ses_batch b = fixture_batch(true);
    ses_tape *t = NULL;
    ses_optim *o = NULL;
    ses_model *m = ses_model_new(s->config, s->dev, &(ses_model_options){ .train = true }, e);
    if (!m || !(t = ses_tape_new(s->dev, &(ses_tape_options){ .record = true, .train = true }, e)) ||
        !(o = ses_optim_new(ses_model_store(m), &adamw, e)) ||
        !ses_model_forward(m, t, &b, &(ses_output_request){ .logits = true }, &out, e))
        goto done;
    ses_backward(t, out.loss);
    ok = ses_tape_ok(t, e);
    if (ok) ses_optim_step(o, -1, 1);
done:
    ses_optim_free(o);
    ses_tape_free(t);
    ses_model_free(m);
    return ok;
}

static bool open_folder(void *ctx, ses_err *e)
{
    scene *s = ctx;
    ses_model *m = ses_model_open(s->dir, s->dev, NULL, e);
    ses_model_free(m);
    return m != NULL;
}

/* A sentence encoder with every kind of module, run once. */
static bool embed(void *ctx, ses_err *e)
{
    static const int32_t prompt[] = { 1, 0, 9 };
    scene *s = ctx;
    ses_batch b = fixture_batch(true);
    /* without training weights are packed, which may skip on lack of memory */
    ses_sentence_options o = { .train = true };
    ses_sentence *x = ses_sentence_open("tests/sentence/prompt-norm", s->dev, &o, e);
    ses_tape *t = x ? ses_tape_new(s->dev, NULL, e) : NULL;
    bool ok = t && ses_sentence_embed(x, t, &b, prompt, e);
    ses_tape_free(t);
    ses_sentence_free(x);
    return ok;
}

static bool open_device(void *ctx, ses_err *e)
{
    (void)ctx;
    ses_device *d = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, e);
    ses_device_free(d);
    return d != NULL;
}

static bool save(void *ctx, ses_err *e)
{
    scene *s = ctx;
    char dir[] = "/tmp/sesame-oom-XXXXXX", cmd[64];
    if (!mkdtemp(dir)) return ses_fail(e, SES_EIO, "no temporary folder");
    ses_model *m = ses_model_new(s->config, s->dev, NULL, e);
    bool ok = m && ses_model_save(m, dir, NULL, e);
    ses_model_free(m);
    long from = oom.fail_from;
    oom.fail_from = 0; /* memory of the shell is not under test */
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    CHECK(system(cmd) == 0);
    oom.fail_from = from;
    return ok;
}

int main(void)
{
    ses_err e = { 0 };
    ses_json_doc *doc = fixture_config("BertForPreTraining", &e);
    scene s = { ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e), ses_json_root(doc),
                "tests/golden/bert-tag" };
    CHECK(doc && s.dev);
    oom_sweep("device", open_device, NULL);
    oom_sweep("training step", train, &s);
    oom_sweep("open", open_folder, &s);
    oom_sweep("save", save, &s);
    oom_sweep("sentence encoder", embed, &s);
    ses_device_free(s.dev);
    ses_json_free(doc);
    return check_report();
}
