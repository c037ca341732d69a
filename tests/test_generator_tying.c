/* Weights shared by ELECTRA's generator and model: the joint loss and the gradients of all weights against
 * transformers (fixtures/generator_tying, made by generator_tying.py); sizes that do not fit; a frozen
 * generator has no gradients and no loss; scores of All-Tokens MLM against all probabilities. */
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

static bool open_parts(parts *p, const char *objective, const ses_objective_options *o, const char *generator,
                       ses_device *dev, ses_err *e)
{
    static uint8_t special[VOCAB] = { 1, 1, 1, 1, 1 };
    static int32_t ordinary[VOCAB];
    static ses_special_tokens x = { .size = VOCAB, .special = special, .ordinary = ordinary, .mask = 4 };
    ses_objective_mix_options options = {
        .objectives = objective, .o = *o, .special_tokens = &x, .length = 24, .seed = 1
    };
    *p = (parts){ 0 };
    ses_json_doc *config = ses_model_config_open(DIR "model", NULL, e);
    p->mix = config ? ses_objective_mix_new(&options, ses_json_root(config), e) : NULL;
    ses_model_options m = { .train = true, .new_heads = true, .seed = 6 };
    if (p->mix) m.class_name = ses_objective_mix_class(p->mix, ses_json_root(config), e);
    ses_json_free(config);
    p->model = m.class_name ? ses_model_open(DIR "model", dev, &m, e) : NULL;
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
    bool ok = open_parts(&p, "rtd", &o, DIR "generator", dev, &e);
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
    bool ok = open_parts(&p, "rtd", &o, DIR "generator", dev, &e);
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

static int64_t argmax(const ses_real *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static bool read_output(ses_model *m, ses_tape *t, const ses_batch *b, const char *name, ses_real *to)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_tape_reset(t, &(ses_tape_options){ 0 });
    const ses_output *x = ses_model_forward(m, t, b, &(ses_output_request){ .logits = true }, &out, &e)
                              ? ses_outputs_find(&out, name)
                              : NULL;
    return CHECK_MSG(x && ses_tape_read(t, x->tensor, to), "%s: %s", name, e.msg);
}

/* Accuracy, restored and copied tokens of alltok, from the probability of every token. */
static void alltok_scores(ses_device *dev, double copy_bias)
{
    enum { T = 13 };
    static ses_real logits[T * VOCAB], copy[T];
    ses_err e = { 0 };
    parts p;
    ses_metric_sums sums = { 0 };
    ses_objective_options o = ses_objective_defaults;
    o.generator_tying = SES_TIE_NONE;
    o.sampling_temperature = 1e-6;
    bool ok = open_parts(&p, "alltok", &o, DIR "generator", dev, &e);
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ 0 }, &e);
    if (!CHECK_MSG(ok && t, "%s", e.msg)) return;
    *ses_store_find(ses_model_store(p.model), "copy.bias")->tensor->f = (ses_real)copy_bias;
    CHECK_MSG(ses_objective_mix_measure(p.mix, t, &batch, &sums, &e), "%s", e.msg);
    int32_t filled[T];
    ses_batch b = { .seqs = 2, .tokens = T, .cu_seqlens = cu, .ids = ids };
    if (!read_output(p.generator, t, &b, "logits", logits)) return;
    for (int i = 0; i < T; i++)
        filled[i] = labels[i] < 0 ? ids[i] : (int32_t)argmax(logits + i * VOCAB, VOCAB);
    b.ids = filled;
    if (!read_output(p.model, t, &b, "logits", logits) || !read_output(p.model, t, &b, "copy_logits", copy))
        return;
    double n = 0, correct = 0, replaced = 0, restored = 0, copied = 0, loss = 0;
    for (int i = 0; i < T; i++) {
        if (ids[i] < 4) continue; /* special, other than the mask */
        int32_t label = labels[i] < 0 ? ids[i] : labels[i];
        double sum = 0, d = 1 / (1 + exp(-(double)copy[i]));
        ses_real prob[VOCAB];
        for (int v = 0; v < VOCAB; v++) sum += exp((double)logits[i * VOCAB + v]);
        for (int v = 0; v < VOCAB; v++)
            prob[v] = (ses_real)(d * (v == filled[i]) + (1 - d) * exp((double)logits[i * VOCAB + v]) / sum);
        bool is_right = argmax(prob, VOCAB) == label;
        n++, correct += is_right, copied += d, loss -= log((double)prob[label]);
        replaced += filled[i] != label, restored += filled[i] != label && is_right;
    }
    CHECK(fabs(ses_metric_sums_mean(&sums, "alltok", "accuracy") - correct / n) < 1e-9);
    CHECK(fabs(ses_metric_sums_mean(&sums, "alltok", "restored") - restored / replaced) < 1e-9);
    CHECK(fabs(ses_metric_sums_mean(&sums, "alltok", "copied") - copied / n) < 1e-6);
    CHECK(fabs(ses_metric_sums_mean(&sums, "alltok", "loss") - loss / n) < 1e-5 * loss);
    ses_tape_free(t);
    close_parts(&p);
}

static void refuses(ses_objective_options o, const char *generator, const char *message, ses_device *dev)
{
    ses_err e = { 0 };
    parts p;
    CHECK_MSG(!open_parts(&p, "rtd", &o, generator, dev, &e) && strstr(e.msg, message), "\"%s\"", e.msg);
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
    for (int bias = -6; bias <= 2; bias += 2) alltok_scores(dev, bias);
    ses_objective_options o = ses_objective_defaults;
    refuses(o, "tests/golden/electra-generator", "the generator's vocabulary has 71 tokens, the model's 43",
            dev);
    o.freeze_generator = true, o.generator_tying = SES_TIE_ALL;
    refuses(o, DIR "generator", "a frozen generator cannot share trained weights", dev);
    ses_safetensors_free(file);
    ses_device_free(dev);
    return check_report();
}
