/* An MLP probe on the ops and optimizers of the engine. */
#include "probe_mlp.h"

#include "base/alloc.h"
#include "probe_examples.h"
#include "sesame/unstable/ops.h"
#include "sesame/unstable/optim.h"
#include "sesame/unstable/store.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

enum { BATCH = 256, PREDICT = 2048, MAX_EPOCHS = 50, PATIENCE = 3, SITE_ORDER = 0x6d6c7031 };

struct ses_probe_mlp {
    ses_store *store;
    ses_tensor *up, *up_bias, *down, *down_bias;
    ses_tape *tape;
    size_t width, classes;
    ses_real *x;    /* [PREDICT, width]: rows of a batch */
    int32_t *y;     /* [PREDICT] */
    int32_t *order; /* [n] */
    ses_real *best; /* values of the best epoch, parameter after parameter */
};

void ses_probe_mlp_free(ses_probe_mlp *m)
{
    if (!m) return;
    ses_tape_free(m->tape);
    ses_store_free(m->store);
    ses_free(m->x);
    ses_free(m->y);
    ses_free(m->order);
    ses_free(m->best);
    ses_free(m);
}

static ses_tensor *logits_of(ses_probe_mlp *m, size_t n)
{
    ses_tensor *x = ses_tape_input(m->tape, m->x, (int64_t[SES_MAX_DIM]){ (int64_t)n, (int64_t)m->width });
    x = ses_linear(m->tape, x, m->up, m->up_bias, SES_ACT_RELU, SES_OUT_IN);
    return ses_linear(m->tape, x, m->down, m->down_bias, SES_ACT_NONE, SES_OUT_IN);
}

static void copy_row(ses_probe_mlp *m, size_t at, const float *x)
{
    for (size_t k = 0; k < m->width; k++) m->x[at * m->width + k] = (ses_real)x[k];
}

static bool open_mlp(ses_probe_mlp *m, const ses_probe_fit_options *o, size_t n, ses_err *e)
{
    int64_t width = (int64_t)m->width, classes = (int64_t)m->classes, hidden = o->hidden;
    m->store = ses_store_new(o->dev, e);
    if (!m->store) return false;
    m->up = ses_store_add(m->store, "up.weight", (int64_t[SES_MAX_DIM]){ hidden, width }, SES_INIT_FAN_IN);
    m->up_bias = ses_store_add(m->store, "up.bias", (int64_t[SES_MAX_DIM]){ hidden }, SES_INIT_ZERO);
    m->down =
        ses_store_add(m->store, "down.weight", (int64_t[SES_MAX_DIM]){ classes, hidden }, SES_INIT_FAN_IN);
    m->down_bias = ses_store_add(m->store, "down.bias", (int64_t[SES_MAX_DIM]){ classes }, SES_INIT_ZERO);
    if (!ses_store_ok(m->store, e) || !ses_store_alloc_trainable(m->store, e)) return false;
    ses_store_init(m->store, 0.02, o->seed);
    m->tape = ses_tape_new(o->dev, NULL, e);
    m->x = ses_alloc_array(PREDICT * m->width, sizeof *m->x, e);
    m->y = ses_alloc_array(PREDICT, sizeof *m->y, e);
    m->order = ses_alloc_array(n, sizeof *m->order, e);
    m->best = ses_alloc_array((size_t)ses_store_element_count(m->store), sizeof *m->best, e);
    return m->tape && m->x && m->y && m->order && m->best;
}

void ses_probe_copy_values(const ses_store *s, ses_real *best, bool restore)
{
    for (size_t i = 0; i < ses_store_count(s); i++) {
        ses_tensor *t = ses_store_at(s, i)->tensor;
        size_t n = (size_t)ses_count(t);
        memcpy(restore ? t->data : best, restore ? best : t->data, n * sizeof *best);
        best += n;
    }
}

static bool run_epoch(ses_probe_mlp *m, ses_optim *optim, const ses_probe_set *train, size_t n, ses_err *e)
{
    for (size_t first = 0; first < n; first += BATCH) {
        size_t rows = n - first < BATCH ? n - first : BATCH;
        for (size_t i = 0; i < rows; i++) {
            copy_row(m, i, train->x + (size_t)m->order[first + i] * m->width);
            m->y[i] = train->y[m->order[first + i]];
        }
        ses_tape_reset(m->tape, &(ses_tape_options){ .record = true, .train = true });
        ses_store_zero_grad(m->store);
        ses_tensor *labels = ses_tape_ints(m->tape, m->y, (int64_t)rows);
        ses_backward(m->tape, ses_cross_entropy(m->tape, logits_of(m, rows), labels));
        if (!ses_tape_ok(m->tape, e)) return false;
        ses_optim_step(optim, -1, 1);
    }
    return true;
}

/* Mean loss on dev; labels unknown to training are not counted. */
static bool dev_loss(ses_probe_mlp *m, const ses_probe_set *dev, double *loss, ses_err *e)
{
    double sum = 0, count = 0;
    for (size_t first = 0; first < dev->n; first += PREDICT) {
        size_t rows = dev->n - first < PREDICT ? dev->n - first : PREDICT, known = 0;
        for (size_t i = 0; i < rows; i++) {
            copy_row(m, i, dev->x + (first + i) * m->width);
            m->y[i] = dev->y[first + i] < 0 ? SES_IGNORE_INDEX : dev->y[first + i];
            known += m->y[i] >= 0;
        }
        ses_real value = 0;
        ses_tape_reset(m->tape, &(ses_tape_options){ 0 });
        ses_tensor *labels = ses_tape_ints(m->tape, m->y, (int64_t)rows);
        ses_tape_read(m->tape, ses_cross_entropy(m->tape, logits_of(m, rows), labels), &value);
        if (!ses_tape_ok(m->tape, e)) return false;
        sum += (double)value * (double)known, count += (double)known;
    }
    *loss = count > 0 ? sum / count : 0;
    return true;
}

static bool train(ses_probe_mlp *m, const ses_probe_fit_options *o, const ses_probe_set *data, size_t n,
                  const ses_probe_set *dev, ses_err *e)
{
    ses_optim_options adam;
    if (!ses_optim_defaults("adamw", &adam, e)) return false;
    ses_optim *optim = ses_optim_new(m->store, &adam, e);
    double best = INFINITY, loss = 0;
    bool ok = optim != NULL;
    for (uint32_t epoch = 0, since = 0; ok && epoch < MAX_EPOCHS && since < PATIENCE; epoch++) {
        ses_probe_shuffle(m->order, n, o->seed, epoch, SITE_ORDER);
        ok = run_epoch(m, optim, data, n, e) && dev_loss(m, dev, &loss, e);
        since++;
        if (ok && loss < best) best = loss, since = 0, ses_probe_copy_values(m->store, m->best, false);
    }
    ses_optim_free(optim);
    if (ok && isfinite(best)) ses_probe_copy_values(m->store, m->best, true);
    return ok && (isfinite(best) || ses_fail(e, SES_EARG, "the loss is not a finite number"));
}

ses_probe_mlp *ses_probe_mlp_train(const ses_probe_fit_options *o, const ses_probe_set *data, size_t n,
                                   const ses_probe_set *dev, size_t width, size_t classes, ses_err *e)
{
    ses_probe_mlp *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->width = width, m->classes = classes;
    if (open_mlp(m, o, n, e) && train(m, o, data, n, dev, e)) return m;
    ses_probe_mlp_free(m);
    return NULL;
}

bool ses_probe_mlp_predict(ses_probe_mlp *m, const float *x, size_t n, float *probability, ses_err *e)
{
    ses_real *out = ses_alloc_array(PREDICT * m->classes, sizeof *out, e);
    bool ok = out != NULL;
    for (size_t first = 0; ok && first < n; first += PREDICT) {
        size_t rows = n - first < PREDICT ? n - first : PREDICT;
        for (size_t i = 0; i < rows; i++) copy_row(m, i, x + (first + i) * m->width);
        ses_tape_reset(m->tape, &(ses_tape_options){ 0 });
        ses_tape_read(m->tape, ses_softmax(m->tape, logits_of(m, rows)), out);
        ok = ses_tape_ok(m->tape, e);
        for (size_t i = 0; ok && i < rows * m->classes; i++)
            probability[first * m->classes + i] = (float)out[i];
    }
    ses_free(out);
    return ok;
}
