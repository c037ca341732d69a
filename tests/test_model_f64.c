/* The gradient of every class's loss along a random direction against a central difference, in double. */
#include "base/rng.h"
#include "check.h"
#include "model_fixture.h"
#include "sesame/tape.h"

#include <math.h>

static double loss(ses_model *m, ses_tape *t, const ses_batch *b, bool backward)
{
    ses_err e = { 0 };
    ses_outputs out;
    ses_real y = NAN;
    /* dropout on: the same draws each time make it a function like any other */
    ses_tape_reset(t, &(ses_tape_options){ .record = true, .train = true, .seed = 4 });
    CHECK_MSG(ses_model_forward(m, t, b, &(ses_want){ 0 }, &out, &e), "%s", e.msg);
    if (backward) ses_backward(t, out.loss);
    ses_tape_read(t, out.loss, &y);
    return (double)y;
}

/* Move all parameters by h along the direction. */
static void move(ses_store *s, double h)
{
    for (size_t i = 0; i < ses_store_count(s); i++) {
        ses_tensor *p = ses_store_at(s, i)->tensor;
        for (int64_t j = 0; j < ses_count(p); j++)
            p->f[j] +=
                (ses_real)(h * ses_rand_normal((ses_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j));
    }
}

static double slope(const ses_store *s)
{
    double sum = 0;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_tensor *p = ses_store_at(s, i)->tensor;
        for (int64_t j = 0; j < ses_count(p); j++)
            sum += (double)p->grad[j] *
                   ses_rand_normal((ses_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j);
    }
    return sum;
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    for (size_t i = 0; i < SES_LEN(fixture_classes); i++) {
        ses_json_doc *doc = fixture_config(fixture_classes[i].name, &e);
        ses_model *m =
            ses_model_new(ses_json_root(doc), dev, &(ses_model_options){ .train = true, .seed = 6 }, &e);
        CHECK_MSG(m, "%s", e.msg);
        ses_batch b = fixture_batch(fixture_classes[i].per_token);
        ses_store *s = ses_model_store(m);
        loss(m, t, &b, true);
        double given = slope(s), h = 1e-5;
        /* the token of id pad passes no gradient by design, and no id of the batch is pad */
        move(s, h);
        double up = loss(m, t, &b, false);
        move(s, -2 * h);
        double down = loss(m, t, &b, false), seen = (up - down) / (2 * h);
        CHECK_MSG(fabs(seen - given) <= 1e-6 * fmax(1, fabs(seen)), "%s: %.12g, by differences %.12g",
                  fixture_classes[i].name, given, seen);
        for (size_t p = 0; p < ses_store_count(s); p++) { /* the loss reaches every parameter */
            const ses_tensor *x = ses_store_at(s, p)->tensor;
            double most = 0;
            for (int64_t j = 0; j < ses_count(x); j++) most = fmax(most, fabs((double)x->grad[j]));
            CHECK_MSG(most > 0, "%s: no gradient for %s", fixture_classes[i].name, ses_store_at(s, p)->name);
        }
        ses_model_free(m);
        ses_json_free(doc);
    }
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
