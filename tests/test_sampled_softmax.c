/* Sampled softmax: its draws; loss and gradients against a direct computation in double precision. */
#include "check.h"
#include "nn/sampled_softmax.h"
#include "sesame/base.h"

#include <math.h>

enum { VOCAB = 50, COLS = 6, ROWS = 9, SAMPLES = 12 };

static ses_device *dev;

static double value(int i) { return sin(1.3 * i) + 0.2 * cos(0.7 * i * i); }

static void test_draws(void)
{
    enum { RUNS = 4000 };
    int count[VOCAB] = { 0 };
    double expected[VOCAB] = { 0 };
    ses_tape *t = ses_tape_new(dev, NULL, NULL);
    for (uint32_t run = 0; run < RUNS; run++) {
        ses_tape_reset(t, NULL);
        ses_log_uniform s = ses_log_uniform_draw(t, (ses_rng_key){ 7, run, 3 }, SAMPLES, VOCAB);
        if (!s.id) break;
        for (int i = 0; i < SAMPLES; i++) {
            count[s.id[i]]++;
            if (s.at[s.id[i]] != i + 1) CHECK(false);
        }
        for (int32_t k = 0; k < VOCAB; k++) expected[k] += ses_log_uniform_expected(&s, k);
    }
    double sum = 0;
    for (int k = 0; k < VOCAB; k++) {
        sum += expected[k] / RUNS;
        CHECK_MSG(fabs(count[k] / expected[k] - 1) < 0.15, "word %d: drawn %d times, expected %g", k,
                  count[k], expected[k]);
    }
    CHECK_MSG(fabs(sum - SAMPLES) < 0.2, "%g negatives expected", sum);
    ses_log_uniform a = ses_log_uniform_draw(t, (ses_rng_key){ 7, 1, 3 }, SAMPLES, VOCAB),
                    b = ses_log_uniform_draw(t, (ses_rng_key){ 7, 1, 3 }, SAMPLES, VOCAB),
                    c = ses_log_uniform_draw(t, (ses_rng_key){ 7, 2, 3 }, SAMPLES, VOCAB);
    CHECK(!memcmp(a.id, b.id, SAMPLES * sizeof *a.id) && a.tries == b.tries);
    CHECK(memcmp(a.id, c.id, SAMPLES * sizeof *a.id) != 0);
    ses_tape_free(t);
}

/* Loss of all rows; x, w and b as doubles. */
static double direct(const double *x, const double *w, const double *b, const int32_t *label,
                     const ses_log_uniform *s)
{
    double loss = 0;
    for (int r = 0; r < ROWS; r++) {
        double own = 0, sum = 0;
        for (int i = -1; i < SAMPLES; i++) {
            int32_t id = i < 0 ? label[r] : s->id[i];
            if (i >= 0 && id == label[r]) continue; /* accidental hit */
            double y = b[id] - log(ses_log_uniform_expected(s, id));
            for (int k = 0; k < COLS; k++) y += x[r * COLS + k] * w[id * COLS + k];
            if (i < 0) own = y;
            sum += exp(y);
        }
        loss += (log(sum) - own) / ROWS;
    }
    return loss;
}

static void test_loss(void)
{
    ses_err e = { 0 };
    double x[ROWS * COLS], w[VOCAB * COLS], b[VOCAB];
    int32_t label[ROWS];
    ses_real host[ROWS * COLS], loss = 0;
    ses_store *store = ses_store_new(dev, &e);
    ses_tensor *tw = ses_store_add(store, "w", SES_DIM(VOCAB, COLS), SES_INIT_ZERO),
               *tb = ses_store_add(store, "b", SES_DIM(VOCAB), SES_INIT_ZERO);
    if (!CHECK_MSG(ses_store_alloc_trainable(store, &e), "%s", e.msg)) return;
    for (int i = 0; i < VOCAB * COLS; i++) w[i] = (double)(tw->f[i] = (ses_real)value(i));
    for (int i = 0; i < VOCAB; i++) b[i] = (double)(tb->f[i] = (ses_real)value(1000 + i));
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (double)(host[i] = (ses_real)value(2000 + i));
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true, .train = true }, &e);
    ses_log_uniform s = ses_log_uniform_draw(t, (ses_rng_key){ 1, 2, 3 }, SAMPLES, VOCAB);
    for (int r = 0; r < ROWS; r++) label[r] = r < 4 ? s.id[3 * r % 7] : 5 * r % VOCAB; /* hits, and others */
    ses_dense out = { .w = tw, .b = tb };
    ses_tensor *l =
        ses_sampled_softmax(t, ses_tape_input(t, host, SES_DIM(ROWS, COLS)), &out, label, ROWS, &s);
    if (CHECK_MSG(l && ses_tape_read(t, l, &loss), "%s", (ses_tape_ok(t, &e), e.msg))) {
        double want = direct(x, w, b, label, &s);
        CHECK_MSG(fabs((double)loss - want) < 2e-6, "loss %.8g, expected %.8g", (double)loss, want);
        ses_backward(t, l);
        CHECK_MSG(ses_tape_ok(t, &e), "%s", e.msg);
        for (int i = 0; i < VOCAB * COLS + VOCAB; i++) {
            double *p = i < VOCAB * COLS ? &w[i] : &b[i - VOCAB * COLS], old = *p, h = 1e-6;
            *p = old + h;
            double up = direct(x, w, b, label, &s);
            *p = old - h;
            double slope = (up - direct(x, w, b, label, &s)) / (2 * h);
            *p = old;
            double got = (double)(i < VOCAB * COLS ? tw->grad[i] : tb->grad[i - VOCAB * COLS]);
            if (!(fabs(got - slope) < 2e-6)) CHECK_MSG(false, "gradient %d: %g, expected %g", i, got, slope);
        }
        CHECK(true);
    }
    ses_tape_free(t);
    ses_store_free(store);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", NULL, &e);
    if (!CHECK_MSG(dev, "%s", e.msg)) return check_report();
    test_draws();
    test_loss();
    ses_device_free(dev);
    return check_report();
}
