/* The gradient of a sentence encoder through modules, pooling and model, along a random direction against a
 * central difference, in double. */
#include "base/rng.h"
#include "check.h"
#include "sesame/sentence.h"
#include "sesame/unstable/ops.h"

#include <math.h>

static const int32_t cu[] = { 0, 5, 6, 13 }, ids[] = { 2, 9, 4, 36, 3, 2, 2, 7, 7, 11, 30, 8, 3 };
static const int32_t prompt[] = { 2, 0, 3 };

/* A number that depends on every vector: the cross entropy of one of its columns. */
static double loss(const ses_sentence *s, ses_tape *t, bool backward)
{
    static const int32_t labels[] = { 1, 0, 2 };
    ses_err e = { 0 };
    ses_real y = NAN;
    ses_batch b = { .seqs = 3, .tokens = 13, .cu_seqlens = cu, .ids = ids };
    ses_tape_reset(t, &(ses_tape_options){ .record = true, .train = true, .seed = 4 });
    ses_tensor *x = ses_sentence_embed(s, t, &b, prompt, &e);
    ses_tensor *z = ses_cross_entropy(t, ses_scale(t, x, 4), ses_tape_ints(t, labels, 3));
    CHECK_MSG(x && z, "%s", e.msg);
    if (backward) ses_backward(t, z);
    ses_tape_read(t, z, &y);
    return (double)y;
}

static double draw(size_t i, int64_t j)
{
    return ses_rand_normal((ses_rng_key){ .seed = 8, .site = (uint32_t)i }, (uint64_t)j);
}

static void move(ses_store *s, double h)
{
    for (size_t i = 0; i < ses_store_count(s); i++) {
        ses_tensor *p = ses_store_at(s, i)->tensor;
        for (int64_t j = 0; j < ses_count(p); j++) p->f[j] += (ses_real)(h * draw(i, j));
    }
}

static double slope(const ses_store *s, const char *dir)
{
    double sum = 0;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_tensor *p = ses_store_at(s, i)->tensor;
        double most = 0;
        for (int64_t j = 0; j < ses_count(p); j++) {
            sum += (double)p->grad[j] * draw(i, j);
            most = fmax(most, fabs((double)p->grad[j]));
        }
        CHECK_MSG(most > 0, "%s: no gradient reaches %s", dir, ses_store_at(s, i)->name);
    }
    return sum;
}

static void check(const char *dir, const char *pooling, int64_t layer, ses_device *dev, ses_tape *t)
{
    ses_err e = { 0 };
    ses_sentence_options o = { .pooling = pooling, .layer = layer, .train = true };
    ses_sentence *s = ses_sentence_open(dir, dev, &o, &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    ses_store *of[] = { ses_model_store(ses_sentence_model(s)), ses_sentence_store(s) };
    double given = 0, h = 1e-6, seen = 0;
    loss(s, t, true);
    for (int i = 0; i < 2; i++) given += slope(of[i], dir);
    for (int i = 0; i < 2; i++) move(of[i], h);
    seen += loss(s, t, false);
    for (int i = 0; i < 2; i++) move(of[i], -2 * h);
    seen = (seen - loss(s, t, false)) / (2 * h);
    CHECK_MSG(fabs(seen - given) <= 1e-6 * fmax(1, fabs(seen)), "%s: %.12g, by differences %.12g", dir, given,
              seen);
    ses_sentence_free(s);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    CHECK(t);
    check("tests/sentence/all-pools", NULL, 0, dev, t);
    check("tests/sentence/all-pools", "max,mean", 0, dev, t);
    check("tests/sentence/old-bin", NULL, 0, dev, t);
    check("tests/sentence/prompt-norm", NULL, 0, dev, t);
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
