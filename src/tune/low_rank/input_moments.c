/* Sums of x' x over the inputs that dense layers read while a model predicts. */
#include "input_moments.h"

#include "base/alloc.h"
#include "data/examples_sample.h"
#include "tensor/device_impl.h"
#include "tune/finetune_impl.h"

#include <stdio.h>
#include <string.h>

struct ses_input_moment {
    char name[128]; /* "layer.0.attn.query.weight" */
    int64_t in, rows;
    ses_real *sum; /* [in, in] */
    ses_device *dev;
    ses_dense *dense; /* the layer, while it is watched */
    ses_dense_watch watch;
    bool is_int8; /* an input was not in reals */
};

static void see(void *ctx, const ses_tensor *x)
{
    ses_input_moment *m = ctx;
    if (x->i8_rows || !x->f) {
        m->is_int8 = true;
        return;
    }
    ses_gemm g = ses_gemm_tn(m->sum, x->f, x->f, m->in, m->in, ses_rows(x));
    g.accumulate = true;
    m->dev->k_f32.gemm(&m->dev->exec, &g);
    m->rows += ses_rows(x);
}

static const char *name_of(const ses_store *s, const ses_tensor *t)
{
    for (size_t i = 0; i < ses_store_count(s); i++)
        if (ses_store_at(s, i)->tensor == t) return ses_store_at(s, i)->name;
    return "";
}

static bool watch_dense(ses_input_moments *x, const ses_model *m, ses_dense *d, ses_err *e)
{
    if (!d->w) return true;
    ses_input_moment *k = &x->item[x->n];
    *k = (ses_input_moment){ .in = d->w->dim[d->layout != SES_IN_OUT], .dev = m->dev, .dense = d };
    snprintf(k->name, sizeof k->name, "%s", name_of(m->store, d->w));
    k->sum = ses_alloc_array((size_t)k->in * (size_t)k->in, sizeof *k->sum, e);
    if (!k->sum) return false;
    k->watch = (ses_dense_watch){ see, k };
    d->watch = &k->watch;
    x->n++;
    return true;
}

static bool watch_layers(ses_input_moments *x, ses_model *m, ses_err *e)
{
    enum { PER_LAYER = 11 };
    size_t layers = 0;
    for (size_t k = 0; k < SES_LEN(m->stack); k++) layers += (size_t)m->stack[k].n_unique;
    x->item = ses_alloc_array(layers, PER_LAYER * sizeof *x->item, e);
    if (!x->item) return false;
    for (size_t k = 0; k < SES_LEN(m->stack); k++)
        for (int64_t i = 0; m->stack[k].layer && i < m->stack[k].n_unique; i++) {
            ses_layer *l = &m->stack[k].layer[i];
            ses_dense *const d[PER_LAYER] = { &l->self.query,  &l->self.key,  &l->self.value,  &l->self.out,
                                              &l->cross.query, &l->cross.key, &l->cross.value, &l->cross.out,
                                              &l->up,          &l->gate,      &l->down };
            for (size_t j = 0; j < PER_LAYER; j++)
                if (!watch_dense(x, m, d[j], e)) return false;
        }
    return true;
}

static bool predict(ses_predictor *p, const ses_examples *rows, int64_t most, int64_t *n, ses_err *e)
{
    int64_t all = (int64_t)ses_examples_count(rows);
    *n = all < most ? all : most;
    ses_examples *some = ses_examples_sample(rows, &(ses_sample){ .size = *n, .seed = 1 }, e);
    ses_predictions *r = some ? ses_predictor_predict_examples(p, some, e) : NULL;
    ses_predictions_free(r);
    ses_examples_free(some);
    return r != NULL;
}

static bool check_model(const ses_predictor *p, ses_err *e)
{
    const ses_model *m = p->tuner->model;
    if (!m) return ses_fail(e, SES_EUNSUPPORTED, "%s has no layers whose inputs can be read", p->dir);
    if (m->dev->is_host && m->dev->activation_dtype == SES_REAL) return true;
    return ses_fail(e, SES_EARG, "inputs of layers are read on a CPU in f32");
}

bool ses_input_moments_collect(ses_input_moments *x, ses_predictor *p, const char *path, int64_t most,
                               ses_err *e)
{
    *x = (ses_input_moments){ 0 };
    ses_examples *rows = ses_predictor_prepare(p, path, e);
    bool ok = rows && check_model(p, e) && watch_layers(x, p->tuner->model, e) &&
              predict(p, rows, most, &x->examples, e);
    ses_examples_free(rows);
    for (size_t i = 0; i < x->n; i++) {
        x->item[i].dense->watch = NULL;
        if (ok && x->item[i].is_int8)
            ok = ses_fail(e, SES_EUNSUPPORTED,
                          "%s has int8 weights, whose inputs are rounded: convert it first (sesame convert "
                          "--dtype f32)",
                          p->dir);
    }
    return ok;
}

void ses_input_moments_free(ses_input_moments *x)
{
    for (size_t i = 0; i < x->n; i++) ses_free(x->item[i].sum);
    ses_free(x->item);
    *x = (ses_input_moments){ 0 };
}

double *ses_input_moments_of(const ses_input_moments *x, const char *weight, int64_t in, ses_err *e)
{
    static const double shrinkage = 0.01;
    size_t i = 0;
    while (i < x->n && strcmp(x->item[i].name, weight)) i++;
    if (i == x->n || x->item[i].in != in || !x->item[i].rows) {
        ses_fail(e, SES_EUNSUPPORTED, "no inputs of %s were read", weight);
        return NULL;
    }
    const ses_input_moment *m = &x->item[i];
    double *s = ses_alloc_array((size_t)in * (size_t)in, sizeof *s, e), trace = 0;
    if (!s) return NULL;
    for (int64_t k = 0; k < in * in; k++) s[k] = (double)m->sum[k] / (double)m->rows;
    for (int64_t k = 0; k < in; k++) trace += s[k * in + k];
    for (int64_t k = 0; k < in; k++) s[k * in + k] += shrinkage * trace / (double)in;
    return s;
}
