/* Losses and gradients that are NaN or infinite: the message names the update and the first layer. */
#include "check.h"
#include "nn/store_impl.h"
#include "sesame/unstable/ops.h"
#include "trainer_fixture.h"

#include <math.h>
#include <string.h>

static const char lstm[] =
    "{\"architectures\": [\"LstmForSequenceClassification\"], \"model_type\": \"lstm\", \"vocab_size\": 37, "
    "\"embedding_size\": 6, \"hidden_size\": 5, \"num_hidden_layers\": 2, \"dropout\": 0.0, "
    "\"classifier_dropout\": 0.0, \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}";

/* A run of the BERT of the fixture; config not NULL: of this model. */
static void prepare(run *r, const char *config)
{
    ses_err e = { 0 };
    run_prepare(r, 1, NULL);
    if (!config) return;
    ses_model_free(r->model);
    ses_json_free(r->config);
    r->config = ses_json_parse(config, strlen(config), &e);
    r->o.model = r->model =
        ses_model_new(ses_json_root(r->config), r->dev, &(ses_model_options){ .train = true, .seed = 4 }, &e);
    CHECK_MSG(r->model, "%s", e.msg);
}

/* Steps until one fails; false: none did. */
static bool fails(run *r, ses_err *e)
{
    ses_step_result out;
    bool ok = true;
    for (int i = 0; ok && i < BATCHES; i++) ok = ses_trainer_step(r->trainer, &out, e);
    return !ok;
}

static void has(const ses_err *e, const char *part)
{
    CHECK_MSG(strstr(e->msg, part) != NULL, "\"%s\" lacks \"%s\"", e->msg, part);
}

/* After an update, an element of a parameter becomes `value`. */
static void check_weight(const char *config, const char *name, ses_real value, const char *const part[],
                         size_t n)
{
    ses_err e = { 0 };
    run r;
    ses_step_result out;
    prepare(&r, config);
    CHECK_MSG(run_start(&r, &e), "%s", e.msg);
    for (int i = 0; i < ACCUMULATE; i++) CHECK_MSG(ses_trainer_step(r.trainer, &out, &e), "%s", e.msg);
    const ses_param *p = ses_store_find(ses_model_store(r.model), name);
    CHECK_MSG(p != NULL, "no parameter %s", name);
    if (p) p->tensor->f[1] = value;
    CHECK_MSG(fails(&r, &e), "%s: no failure", name);
    has(&e, "update 2, epoch 1, batch 3");
    for (size_t i = 0; i < n; i++) has(&e, part[i]);
    run_free(&r);
}

#define CHECK_WEIGHT(config, name, value, ...)                              \
    check_weight(config, name, value, (const char *const[]){ __VA_ARGS__ }, \
                 SES_LEN(((const char *const[]){ __VA_ARGS__ })))

/* The learning rate is far too large. */
static void check_rate(const char *config, double lr, const char *part)
{
    ses_err e = { 0 };
    run r;
    prepare(&r, config);
    CHECK(ses_optim_defaults("sgd", &r.o.optim, &e) && ses_schedule_defaults("constant", &r.o.schedule, &e));
    r.o.optim.lr = lr, r.o.max_grad_norm = 0;
    CHECK_MSG(run_start(&r, &e), "%s", e.msg);
    CHECK(fails(&r, &e));
    has(&e, "update ");
    has(&e, part);
    run_free(&r);
}

/* Two factors of 1e-30 and two of 1e30: the loss is finite, the gradient of the first products is not. */
static ses_tensor *steep(void *ctx, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_outputs out = { 0 };
    if (!ses_model_forward(ctx, t, b, &(ses_output_request){ 0 }, &out, e)) return NULL;
    ses_tensor *x = ses_scale(t, ses_scale(t, out.loss, 1e-30), 1e-30);
    return ses_scale(t, ses_scale(t, x, 1e30), 1e30);
}

static void test_gradient(void)
{
    ses_err e = { 0 };
    run r;
    prepare(&r, NULL);
    r.o.loss = steep, r.o.loss_ctx = r.model;
    CHECK_MSG(run_start(&r, &e), "%s", e.msg);
    CHECK(fails(&r, &e));
    has(&e, "update 1, epoch 1, batch 2");
    has(&e, "NaN or infinity in the gradient of \"classifier.bias\"");
    has(&e, "; it arises first in the gradient of layer \"classifier\" (scale after \"classifier.");
    run_free(&r);
}

int main(void)
{
    CHECK_WEIGHT(NULL, "layer.1.attn.out.weight", NAN, "the loss is nan",
                 "NaN or infinity in the weights of \"bert.encoder.layer.1.attention.output.dense.weight\"",
                 "it arises first in the output of layer \"bert.encoder.layer.1\"",
                 "\"bert.encoder.layer.1.attention.output.dense.weight\")");
    CHECK_WEIGHT(NULL, "classify.out.bias", NAN, "in the output of layer \"classifier\" (linear with");
    CHECK_WEIGHT(lstm, "layer.1.weight_hh_l0", NAN, "the loss is nan",
                 "in the weights of \"lstm.rnn.weight_hh_l1\"",
                 "in the output of layer \"lstm.rnn.weight_hh_l1\"");
    test_gradient();
    check_rate(NULL, 1e30, "; it arises first in the output of layer \"bert.");
    check_rate(lstm, 3e38, "; it arises first in the output of layer \"lstm.");
    return check_report();
}
