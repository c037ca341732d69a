/* Similarity losses and their gradients against sentence-transformers in double; tests/fixtures/similarity.py
 * prints these values. */
#include "check.h"
#include "op/op.h"
#include "sesame/unstable/store.h"
#include "train/similarity_loss.h"

#include <math.h>

enum { N = 4, W = 7, LABELS = 3 };

static void make(ses_tensor *x, double a, double b, double c)
{
    int64_t cols = ses_cols(x);
    for (int64_t k = 0; k < ses_count(x); k++)
        x->f[k] = (ses_real)sin(a * (double)(k / cols) + b * (double)(k % cols) + c);
}

/* The gradient along a direction. */
static double along(const ses_tensor *x)
{
    double sum = 0;
    int64_t cols = ses_cols(x);
    for (int64_t k = 0; k < ses_count(x); k++)
        sum += (double)x->grad[k] * sin(0.3 * (double)(k / cols) - 0.9 * (double)(k % cols) + 0.2);
    return sum;
}

typedef struct parts {
    ses_store *store;
    ses_tensor *x, *w, *b;
} parts;

static ses_tensor *cosine(ses_tape *t, const parts *p)
{
    static const ses_real target[] = { 0.1, 0.9, 0.5, 1.0 };
    return ses_loss_cosine(t, p->x, target, N);
}

static ses_tensor *contrastive(ses_tape *t, const parts *p)
{
    static const ses_real same[] = { 0, 1, 0, 1 };
    return ses_loss_contrastive(t, p->x, same, N, 0.9);
}

static ses_tensor *triplet(ses_tape *t, const parts *p) { return ses_loss_triplet(t, p->x, N, 2); }
static ses_tensor *pairs(ses_tape *t, const parts *p)
{
    return ses_loss_in_batch_negatives(t, p->x, N, 2, 20);
}
static ses_tensor *triplets(ses_tape *t, const parts *p)
{
    return ses_loss_in_batch_negatives(t, p->x, N, 3, 20);
}

static ses_tensor *softmax(ses_tape *t, const parts *p)
{
    static const int32_t label[] = { 2, 0, 1, 2 };
    return ses_loss_softmax(t, p->x, p->w, p->b, label, N);
}

static const struct {
    const char *name;
    int64_t group;
    ses_tensor *(*loss)(ses_tape *t, const parts *p);
    double value, x, w, b;
    int64_t parts; /* vectors that the classifier reads */
} cases[] = {
    { "cosine", 2, cosine, 0.181738816725913, -0.476837102939917, 0, 0, 3 },
    { "contrastive", 2, contrastive, 0.108189440166205, -0.390124524343856, 0, 0, 3 },
    { "triplet", 3, triplet, 0.482620823261082, 0.0776990840219882, 0, 0, 3 },
    { "negatives", 2, pairs, 4.0456478750689, -2.16900318766021, 0, 0, 3 },
    { "negatives of triplets", 3, triplets, 4.06963197486433, 4.38105323931358, 0, 0, 3 },
    { "softmax", 2, softmax, 1.32275900381722, 0.153954381788242, -0.68234629696708, -0.0246997133304203, 3 },
    { "softmax-product", 2, softmax, 1.3468540586458, 0.473186871612581, -0.607680236908172,
      -0.0112397765771913, 4 },
};

static void check_case(size_t c, ses_device *dev, ses_tape *t)
{
    ses_err e = { 0 };
    ses_real loss = 0;
    parts p = { .store = ses_store_new(dev, &e) };
    p.x = ses_store_add(p.store, "x", SES_DIM(N * cases[c].group, W), SES_INIT_ZERO);
    p.w = ses_store_add(p.store, "w", SES_DIM(LABELS, cases[c].parts * W), SES_INIT_ZERO);
    p.b = ses_store_add(p.store, "b", SES_DIM(1, LABELS), SES_INIT_ZERO);
    CHECK(ses_store_ok(p.store, &e) && ses_store_alloc_trainable(p.store, &e));
    make(p.x, 1.1, 0.7, 0.4);
    make(p.w, 0.5, 1.9, 0.1);
    make(p.b, 1, 1, 0);
    ses_store_zero_grad(p.store);
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    ses_tensor *y = cases[c].loss(t, &p);
    if (y) ses_backward(t, y);
    CHECK_MSG(ses_tape_ok(t, &e) && ses_tape_read(t, y, &loss), "%s: %s", cases[c].name, e.msg);
    const double got[] = { (double)loss, along(p.x), along(p.w), along(p.b) },
                 want[] = { cases[c].value, cases[c].x, cases[c].w, cases[c].b };
    for (size_t i = 0; i < SES_LEN(got); i++)
        CHECK_MSG(fabs(got[i] - want[i]) < 1e-9, "%s, number %zu: %.15g, not %.15g", cases[c].name, i, got[i],
                  want[i]);
    ses_store_free(p.store);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    for (size_t c = 0; c < SES_LEN(cases); c++) check_case(c, dev, t);
    ses_tape_free(t);
    ses_device_free(dev);
    return check_report();
}
