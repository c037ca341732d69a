/* The gradient of every class's loss along a random direction against a central difference, in double. */
#include "base/rng.h"
#include "check.h"
#include "families.h"
#include "model_fixture.h"
#include "sesame/unstable/tape.h"

#include <math.h>

static double loss(ses_model *m, ses_tape *t, const ses_batch *b, bool backward)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_real y = NAN;
    /* dropout on: with fixed random numbers the loss is a deterministic function */
    ses_tape_reset(t, &(ses_tape_options){ .record = true, .train = true, .seed = 4 });
    CHECK_MSG(ses_model_forward(m, t, b, &(ses_output_request){ 0 }, &out, &e), "%s", e.msg);
    if (backward) ses_backward(t, out.loss);
    ses_tape_read(t, out.loss, &y);
    return (double)y;
}

/* Moves all trained parameters by h along the direction. */
static void move(ses_store *s, double h)
{
    for (size_t i = 0; i < ses_store_count(s); i++) {
        ses_tensor *p = ses_store_at(s, i)->tensor;
        if (ses_store_at(s, i)->role != SES_PARAM_TRAINED) continue;
        for (int64_t j = 0; j < ses_count(p); j++)
            p->f[j] +=
                (ses_real)(h * ses_rand_normal((ses_rng_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j));
    }
}

static double slope(const ses_store *s)
{
    double sum = 0;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_tensor *p = ses_store_at(s, i)->tensor;
        for (int64_t j = 0; j < ses_count(p); j++)
            sum += (double)p->grad[j] *
                   ses_rand_normal((ses_rng_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j);
    }
    return sum;
}

/* Every parameter receives a gradient, except names that contain `idle`. */
static void check_all_have_grads(const ses_store *s, const char *what, const char *idle)
{
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *p = ses_store_at(s, i);
        double most = 0;
        if (!strcmp(p->name, "choice.out.bias"))
            continue;                               /* shifts all choices equally: only rounding remains */
        if (strstr(p->name, ".running_")) continue; /* statistics of a batch norm are not trained */
        for (int64_t j = 0; j < ses_count(p->tensor); j++)
            most = fmax(most, fabs((double)p->tensor->grad[j]));
        bool none = idle && strstr(p->name, idle);
        CHECK_MSG(none ? most == 0 : most > 0, "%s: the gradient of %s is %g", what, p->name, most);
    }
}

static void check_model(ses_device *dev, ses_tape *t, ses_json_doc *doc, const ses_batch *b, const char *what,
                        const char *idle)
{
    ses_err e = { 0 };
    ses_model *m =
        doc ? ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .train = true, .seed = 6 }, &e)
            : NULL;
    if (!CHECK_MSG(m, "%s: %s", what, e.msg)) return;
    ses_store *s = ses_model_store(m);
    loss(m, t, b, true);
    double given = slope(s), h = 1e-6;
    /* the padding token receives no gradient by design, and the batch contains none */
    move(s, h);
    double up = loss(m, t, b, false);
    move(s, -2 * h);
    double down = loss(m, t, b, false), seen = (up - down) / (2 * h);
    CHECK_MSG(fabs(seen - given) <= 1e-6 * fmax(1, fabs(seen)), "%s: %.12g, by differences %.12g", what,
              given, seen);
    check_all_have_grads(s, what, idle);
    ses_model_free(m);
    ses_json_free(doc);
}

/* Custom heads, with the scalar mix below them. */
static void check_custom_heads(ses_device *dev, ses_tape *t)
{
    static const char *const kind[] = { "linear", "mlp", "lstm", "gru" };
    static const char *const classes[] = { "BertForSequenceClassification", "BertForTokenClassification" };
    for (size_t i = 0; i < 2 * SES_LEN(kind); i++) {
        ses_err e = { 0 };
        const char *head = kind[i / 2], *class = classes[i % 2];
        ses_json_doc *base = fixture_config(class, &e);
        ses_config_patch c = SES_CONFIG_PATCH_NONE;
        c.dropout = c.attention_dropout = 0.1;
        c.head = head;
        c.scalar_mix = i % 3 != 1;
        if (!c.scalar_mix) c.layers[1] = -1, c.n_layers = 2, c.combine = i % 2 ? "concat" : "mix";
        c.sizes[0] = 5, c.sizes[1] = 3;
        c.n_sizes = i / 2 ? 2 : 0;
        ses_batch b = fixture_batch(i % 2);
        char what[64];
        snprintf(what, sizeof what, "%s, %s", class, head);
        check_model(dev, t, ses_model_config_patch(ses_json_root(base), &c, &e), &b, what, NULL);
        ses_json_free(base);
    }
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    for (size_t i = 0; i < SES_LEN(fixture_classes); i++) {
        ses_batch b = fixture_batch(fixture_classes[i].per_token);
        check_model(dev, t, fixture_config(fixture_classes[i].name, &e), &b, fixture_classes[i].name, NULL);
    }
    for (size_t i = 0; i < SES_LEN(families); i++) {
        uint8_t mask[FIXTURE_PAIRS];
        ses_real mems[FIXTURE_MEMS];
        ses_batch b =
            families[i].permutation ? fixture_permutation(mask, mems) : fixture_batch(families[i].per_token);
        check_model(dev, t, family_config(&families[i], &e), &b, families[i].class_name, families[i].idle);
    }
    for (size_t i = 0; i < SES_LEN(heads_of_families); i++) {
        const family *f = &heads_of_families[i];
        ses_batch b = fixture_batch(f->per_token);
        b.choices = strstr(f->class_name, "Choice") || strstr(f->class_name, "Double") ? b.seqs : 0;
        check_model(dev, t, family_config(f, &e), &b, f->class_name, f->idle);
    }
    check_custom_heads(dev, t);
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
