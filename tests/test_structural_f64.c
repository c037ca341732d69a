/* Gradients of structural probes against finite differences. */
#include "structural_fixture.h"

#include <math.h>

static void check_gradient(ses_device *dev, toy *t, ses_structural_kind kind)
{
    ses_err e = { 0 };
    ses_real b[TOY_RANK * TOY_WIDTH], grad[TOY_RANK * TOY_WIDTH];
    ses_structural_probe p = { .o = toy_options(kind), .b = b };
    for (size_t i = 0; i < SES_LEN(b); i++) b[i] = ses_rand_unit((ses_rng_key){ 3, 0, 0 }, i) - 0.5;
    double loss, up, down, worst = 0, h = 1e-6;
    if (!CHECK(ses_structural_loss(&p, dev, &t->train, &loss, grad, &e))) return;
    for (size_t i = 0; i < SES_LEN(b); i++) {
        ses_real kept = b[i];
        b[i] = kept + h;
        CHECK(ses_structural_loss(&p, dev, &t->train, &up, NULL, &e));
        b[i] = kept - h;
        CHECK(ses_structural_loss(&p, dev, &t->train, &down, NULL, &e));
        b[i] = kept;
        double diff = fabs((up - down) / (2 * h) - grad[i]);
        worst = diff > worst ? diff : worst;
    }
    CHECK_MSG(worst < 1e-7 && loss > 0.1, "kind %d: worst difference %g, loss %g", (int)kind, worst, loss);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    toy t;
    if (CHECK(dev && toy_new(&t, &e))) {
        check_gradient(dev, &t, SES_STRUCTURAL_DISTANCE);
        check_gradient(dev, &t, SES_STRUCTURAL_DEPTH);
        toy_free(&t);
    }
    ses_device_free(dev);
    return check_report();
}
