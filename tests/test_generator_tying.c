/* Weights shared by ELECTRA's generator and model: the joint loss and the gradients of all weights against
 * transformers (fixtures/generator_tying, made by generator_tying.py); sizes that do not fit; a frozen
 * generator has no gradients and no loss. */
#include "gradient_file.h"
#include "model/model_desc.h"
#include "train/objective/objective_mix.h"

#include <string.h>

#define DIR "tests/fixtures/generator_tying/"

enum { VOCAB = 43 };

/* Position 2 and 4 of the first text, 1, 3 and 4 of the second are chosen; the second of each stays. */
static const int32_t cu[] = { 0, 7, 13 };
static const int32_t ids[] = { 2, 9, 4, 36, 13, 8, 3, 2, 4, 17, 11, 4, 3 };
static const int32_t labels[] = { -100, -100, 14, -100, 13, -100, -100, -100, 7, -100, 11, 30, -100 };
static const ses_batch batch = { .seqs = 2, .tokens = 13, .cu_seqlens = cu, .ids = ids, .labels = labels };

typedef struct parts {
    ses_objective_mix *mix;
    ses_model *model, *generator;
} parts;

static bool open_parts(parts *p, const ses_objective_options *o, const char *generator, ses_device *dev,
                       ses_err *e)
{
    static uint8_t special[VOCAB] = { 1, 1, 1, 1, 1 };
    static int32_t ordinary[VOCAB];
    static ses_special_tokens x = { .size = VOCAB, .special = special, .ordinary = ordinary, .mask = 4 };
    ses_objective_mix_options options = {
        .objectives = "rtd", .o = *o, .special_tokens = &x, .length = 24, .seed = 1
    };
    *p = (parts){ 0 };
    ses_json_doc *config = ses_model_config_open(DIR "model", NULL, e);
    p->mix = config ? ses_objective_mix_new(&options, ses_json_root(config), e) : NULL;
    ses_json_free(config);
    p->model = ses_model_open(DIR "model", dev, &(ses_model_options){ .train = true }, e);
    p->generator = ses_model_open(generator, dev, &(ses_model_options){ .train = !o->freeze_generator }, e);
    return p->mix && p->model && p->generator &&
           ses_objective_mix_set_models(p->mix, p->model, p->generator, e);
}

static void close_parts(parts *p)
{
    ses_objective_mix_free(p->mix);
    ses_model_free(p->generator);
    ses_model_free(p->model);
}

/* Every trained weight that the file has; shared ones are the model's. */
static int compare(const ses_model *m, const ses_safetensors *file, const char *name, const char *part)
{
    int checked = 0;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
        char key[256], text[300];
        const ses_param *p = ses_store_at(ses_model_store(m), i);
        if (p->role != SES_PARAM_TRAINED || !ses_model_tensor_name(m, i, key, sizeof key)) continue;
        snprintf(text, sizeof text, "%s.%s.%s", name, part, key);
        if (strstr(key, "key.bias")) continue; /* changes no softmax: its gradient is rounding error */
        double d = gradient_distance(p->tensor, file, text);
        CHECK_MSG(d < 1e-5, "%s: %g", text, d);
        checked++;
    }
    return checked;
}

static void run(const char *name, ses_generator_tying tying, int trained, ses_device *dev,
                const ses_safetensors *file)
{
    ses_err e = { 0 };
    parts p;
    char key[64];
    ses_real loss = 0;
    ses_objective_options o = ses_objective_defaults;
    o.generator_tying = tying;
    o.sampling_temperature = 1e-6; /* the most likely token */
    bool ok = open_parts(&p, &o, DIR "generator", dev, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    if (ok) ses_store_zero_grad(ses_model_store(p.model)), ses_store_zero_grad(ses_model_store(p.generator));
    ses_tensor *l = ok && t ? ses_objective_mix_loss(p.mix, t, &batch, &e) : NULL;
    if (l) ses_backward(t, l);
    CHECK_MSG(l && ses_tape_ok(t, &e) && ses_tape_read(t, l, &loss), "%s: %s", name, e.msg);
    snprintf(key, sizeof key, "%s.loss", name);
    check_loss((double)loss, file, key);
    if (l) {
        int of_model = compare(p.model, file, name, "model"),
            own = compare(p.generator, file, name, "generator");
        CHECK_MSG(of_model == 41 && own == trained, "%s: %d and %d weights", name, of_model, own);
    }
    ses_tape_free(t);
    close_parts(&p);
}

/* The loss is 50 times the model's; the generator's weights are read, not trained. */
static void frozen(ses_device *dev)
{
    ses_err e = { 0 };
    parts p;
    ses_real loss = 0;
    ses_metric_sums sums = { 0 };
    ses_objective_options o = ses_objective_defaults;
    o.freeze_generator = true;
    o.sampling_temperature = 1e-6;
    bool ok = open_parts(&p, &o, DIR "generator", dev, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    ses_tensor *l = ok && t ? ses_objective_mix_loss(p.mix, t, &batch, &e) : NULL;
    if (l) ses_backward(t, l);
    CHECK_MSG(l && ses_tape_ok(t, &e) && ses_tape_read(t, l, &loss), "%s", e.msg);
    for (size_t i = 0; l && i < ses_store_count(ses_model_store(p.generator)); i++)
        CHECK(!ses_store_at(ses_model_store(p.generator), i)->tensor->grad);
    if (t) ses_tape_reset(t, &(ses_tape_options){ 0 });
    CHECK_MSG(l && ses_objective_mix_measure(p.mix, t, &batch, &sums, &e), "%s", e.msg);
    double model = 50 * ses_metric_sums_mean(&sums, "rtd", "loss");
    CHECK(ses_metric_sums_mean(&sums, "generator", "loss") > 0);
    CHECK_MSG(fabs((double)loss - model) < 1e-5 * model, "%g, %g", (double)loss, model);
    if (ok) CHECK(fabs(ses_objective_mix_total_loss(p.mix, &sums) - model) < 1e-9 * model);
    ses_tape_free(t);
    close_parts(&p);
}

static void refuses(ses_objective_options o, const char *generator, const char *message, ses_device *dev)
{
    ses_err e = { 0 };
    parts p;
    CHECK_MSG(!open_parts(&p, &o, generator, dev, &e) && strstr(e.msg, message), "\"%s\"", e.msg);
    close_parts(&p);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_safetensors *file = ses_safetensors_open(DIR "expected.safetensors", &e);
    CHECK_MSG(dev && file, "%s", e.msg);
    if (!dev || !file) return check_report();
    run("none", SES_TIE_NONE, 42, dev, file);
    run("embeddings", SES_TIE_EMBEDDINGS, 37, dev, file);
    run("all", SES_TIE_ALL, 5, dev, file);
    frozen(dev);
    ses_objective_options o = ses_objective_defaults;
    refuses(o, "tests/golden/electra-generator", "the generator's vocabulary has 71 tokens, the model's 43",
            dev);
    o.freeze_generator = true, o.generator_tying = SES_TIE_ALL;
    refuses(o, DIR "generator", "a frozen generator cannot share trained weights", dev);
    ses_safetensors_free(file);
    ses_device_free(dev);
    return check_report();
}
