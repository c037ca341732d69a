/* features: logistic regression on the mean of the model's last hidden states; the model is not trained. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/train/train_monitor.h"
#include "io/safetensors_impl.h"
#include "sesame/metric.h"
#include "sesame/pipeline.h"
#include "sesame/unstable/logreg.h"
#include "train/energy/energy_meter.h"

#include <string.h>

typedef struct features {
    ses_ladder *l;
    float *x;   /* [n, width] */
    int32_t *y; /* [n] */
    size_t n, done, width;
    ses_progress bar;
} features;

static void features_free(features *f)
{
    ses_free(f->x);
    ses_free(f->y);
    *f = (features){ 0 };
}

static bool take(void *ctx, const ses_result *r, ses_err *e)
{
    features *f = ctx;
    size_t width = (size_t)r->vector_size, values;
    if (ses_train_monitor_should_stop()) return ses_fail(e, SES_EARG, "stopped");
    if (!f->x) {
        if (!ses_mul_size(f->n, width, &values)) return ses_fail(e, SES_ENOMEM, "too many texts");
        f->width = width;
        f->x = ses_alloc_array(values, sizeof *f->x, e);
        if (!f->x) return false;
    }
    if (f->done < f->n) memcpy(f->x + f->done * f->width, r->vectors, f->width * sizeof *f->x);
    ses_progress_show(&f->bar, (int64_t)++f->done);
    return true;
}

static bool compute(ses_ladder *l, ses_pipeline *p, const ses_examples *rows, features *f, ses_err *e)
{
    *f = (features){ .l = l, .n = ses_examples_count(rows) };
    f->y = ses_alloc_array(f->n, sizeof *f->y, e);
    if (!f->y) return false;
    ses_pipeline_set_callback(p, take, f);
    f->bar = ses_progress_start(stderr, &l->x.c->err, l->x.c->quiet, "features", (int64_t)f->n);
    bool ok = true;
    for (size_t i = 0; ok && i < f->n; i++) {
        const ses_labeled_example *x = ses_examples_at(rows, i);
        f->y[i] = x->label;
        ok = ses_pipeline_feed(p, &(ses_item){ .text = x->text_a }, e) ||
             ses_wrap(e, "line %llu", (unsigned long long)x->line);
    }
    ok = ok && ses_pipeline_flush(p, e);
    ses_progress_end(&f->bar);
    return ok;
}

/* ---- evaluation ---- */

typedef struct result {
    ses_scores scores;
    double train_seconds, eval_seconds;
    ses_energy energy;
} result;

/* begin: when the test texts were first read. */
static bool evaluate(const ses_ladder *l, const ses_logreg *m, const features *t, double begin, result *r,
                     ses_err *e)
{
    double *p = ses_alloc_array(m->classes, sizeof *p, e);
    int32_t *pred = p ? ses_alloc_array(t->n, sizeof *pred, e) : NULL;
    const ses_ladder_args *a = l->a;
    ses_bootstrap b = { a->bootstrap, a->confidence / 100, (uint64_t)a->seed };
    bool ok = pred != NULL;
    for (size_t i = 0; ok && i < t->n; i++) {
        ses_logreg_predict(m, t->x + i * t->width, p);
        for (size_t c = 1; c < m->classes; c++)
            if (p[c] > p[pred[i]]) pred[i] = (int32_t)c;
    }
    r->eval_seconds = ses_seconds() - begin;
    ses_evaluation v = { .n = t->n, .true_labels = t->y, .pred_labels = pred, .n_labels = m->classes };
    static const char *const metrics[] = { "accuracy", "f1", "matthews" };
    for (size_t i = 0; ok && i < SES_LEN(metrics); i++)
        ok = ses_metric_run(metrics[i], &v, &b, &r->scores, e);
    ses_free(pred);
    ses_free(p);
    return ok;
}

static bool save(const ses_ladder *l, const ses_logreg *m, const result *r, const features *t,
                 const char *dir, ses_err *e)
{
    int64_t dim[] = { (int64_t)m->rows, (int64_t)m->width };
    char *path = ses_path_join(dir, "logreg.safetensors", e);
    ses_safetensors_writer *f = path ? ses_safetensors_writer_new(e) : NULL;
    bool ok = f && ses_safetensors_writer_add(f, "weight", SES_F64, 2, dim, m->weight, e) &&
              ses_safetensors_writer_add(f, "bias", SES_F64, 1, dim, m->bias, e) &&
              ses_safetensors_writer_add_checksum(f, e) && ses_safetensors_save(f, path, true, e);
    ses_json_writer *w = ok ? ses_json_writer_new(4, e) : NULL;
    ses_safetensors_writer_free(f);
    ses_free(path);
    if (!w) return false;
    ses_eval_report report = { .scores = r->scores, .n = t->n, .loss = 0, .level = l->a->confidence / 100 };
    ses_json_begin_object(w);
    ses_json_member_real(w, "train_runtime", r->train_seconds);
    ses_energy_put_results(&r->energy, &l->a->energy, r->train_seconds, w);
    ses_eval_report_put(&report, w);
    ses_json_member_real(w, "eval_predict_runtime", r->eval_seconds);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, "all_results.json", true, e);
}

/* ---- the method ---- */

static bool train(ses_ladder *l, ses_pipeline *p, ses_logreg *m, result *r, ses_err *e)
{
    ses_energy_meter meter;
    features f;
    double begin = ses_seconds();
    ses_energy_meter_start(&meter, &(ses_energy_sources){ 0 });
    ses_logreg_options o = { .device = l->dev, .tolerance = 1e-5 };
    bool ok = compute(l, p, l->train, &f, e) &&
              ses_logreg_fit(m, f.x, f.y, NULL, f.n, f.width, ses_examples_label_count(l->train), &o, e);
    r->energy = ses_energy_meter_stop(&meter, l->a->energy.core_watts);
    r->train_seconds = ses_seconds() - begin;
    features_free(&f);
    return ok;
}

/* Computes the features of the test texts, or takes the ones that are kept. */
static bool compute_test(ses_ladder *l, ses_pipeline *p, features *t, ses_err *e)
{
    struct ses_test_features *kept = l->test_features;
    if (!kept || !kept->x) {
        if (!compute(l, p, l->test, t, e)) return false;
        if (kept) *kept = (struct ses_test_features){ t->x, t->width };
        return true;
    }
    *t = (features){ .l = l, .n = ses_examples_count(l->test), .x = kept->x, .width = kept->width };
    t->y = ses_alloc_array(t->n, sizeof *t->y, e);
    for (size_t i = 0; t->y && i < t->n; i++) t->y[i] = ses_examples_at(l->test, i)->label;
    return t->y != NULL;
}

static bool run(ses_ladder *l, const ses_ladder_method *method, const char *dir, int64_t seed, ses_err *e)
{
    ses_logreg m = { 0 };
    result r = { 0 };
    features t = { 0 };
    (void)method, (void)seed;
    ses_pipeline *p = ses_pipeline_open("embed", l->a->model, l->dev, NULL, e);
    if (p && l->a->max_length) ses_pipeline_set_max_seq_len(p, l->a->max_length);
    bool ok = p && train(l, p, &m, &r, e);
    double begin = ses_seconds();
    ok = ok && compute_test(l, p, &t, e) && evaluate(l, &m, &t, begin, &r, e);
    char *model = ok ? ses_model_resolve(l->a->model, NULL, e) : NULL;
    ok = ok && model && ses_ladder_write_extra(dir, 0, 0, ses_ladder_folder_bytes(model), e) &&
         save(l, &m, &r, &t, dir, e);
    ses_free(model);
    if (l->test_features && t.x == l->test_features->x) t.x = NULL; /* kept */
    features_free(&t);
    ses_scores_free(&r.scores);
    ses_logreg_free(&m);
    ses_pipeline_free(p);
    return ok;
}

const ses_ladder_method ses_ladder_method_features = { .name = "features",
                                                       .summary =
                                                           "features of the model, logistic regression",
                                                       .check = ses_ladder_check_model,
                                                       .run = run };
