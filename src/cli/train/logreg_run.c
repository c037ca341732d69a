/* Work of the logreg command: read, split, cross-validate, fit, test. */
#include "logreg_run.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE = 0x6c6f6772 };

/* ---- reading ---- */

static bool read_integers(ses_logreg_data *d, const char *path, const ses_logreg_data *like, ses_err *e)
{
    ses_matrix m;
    if (!ses_matrix_read(&m, path, NULL, e)) return false;
    bool ok = m.cols == 1 || ses_fail(e, SES_EFORMAT, "%s: %zu columns, expected one", path, m.cols);
    if (ok && m.rows != d->x.rows)
        ok = ses_fail(e, SES_EFORMAT, "%s: %zu labels, but %zu rows of features", path, m.rows, d->x.rows);
    d->y = ok ? ses_alloc_array(m.rows, sizeof *d->y, e) : NULL;
    for (size_t i = 0; d->y && ok && i < m.rows; i++) {
        ok = m.x[i] >= 0 && m.x[i] < 65536 && m.x[i] == floorf(m.x[i]);
        if (!ok)
            ses_fail(e, SES_EFORMAT, "%s: row %zu: label %g, expected an integer from 0 to 65535", path,
                     i + 1, m.x[i]);
        if (ok) d->y[i] = (int32_t)m.x[i];
        if (ok && (size_t)d->y[i] >= d->classes) d->classes = (size_t)d->y[i] + 1;
    }
    ok = ok && d->y;
    if (ok && like && d->classes > like->classes)
        ok = ses_fail(e, SES_EARG, "%s: label %zu does not occur in the training data", path, d->classes - 1);
    if (ok && like) d->classes = like->classes;
    ses_matrix_free(&m);
    return ok;
}

static bool read_names(ses_logreg_data *d, const char *path, const ses_data_spec *spec,
                       const ses_logreg_data *like, ses_err *e)
{
    d->labels = ses_examples_open(path, spec, like ? like->labels : NULL, e);
    if (!d->labels) return false;
    size_t n = ses_examples_count(d->labels);
    if (n != d->x.rows)
        return ses_fail(e, SES_EFORMAT, "%s: %zu labels, but %zu rows of features", path, n, d->x.rows);
    d->y = ses_alloc_array(n, sizeof *d->y, e);
    for (size_t i = 0; d->y && i < n; i++) d->y[i] = ses_examples_at(d->labels, i)->label;
    d->classes = ses_examples_label_count(d->labels);
    return d->y != NULL;
}

bool ses_logreg_data_read(ses_logreg_data *d, const char *features, const char *labels,
                          const ses_data_spec *spec, const ses_logreg_data *like, ses_err *e)
{
    size_t n = strlen(labels);
    bool numbers = n > 4 && !strcmp(labels + n - 4, ".npy");
    if (!ses_matrix_read(&d->x, features, &(ses_records_options){ .no_header = true }, e)) return false;
    if (like && d->x.cols != like->x.cols)
        return ses_fail(e, SES_EFORMAT, "%s: %zu features, the training data have %zu", features, d->x.cols,
                        like->x.cols);
    if (like && !like->labels != numbers)
        return ses_fail(e, SES_EARG, "%s: label names and integer labels are mixed", labels);
    return numbers ? read_integers(d, labels, like, e) : read_names(d, labels, spec, like, e);
}

void ses_logreg_data_free(ses_logreg_data *d)
{
    ses_matrix_free(&d->x);
    ses_examples_free(d->labels);
    ses_free(d->y);
    *d = (ses_logreg_data){ 0 };
}

const char *ses_logreg_label(const ses_logreg_data *d, size_t i, char buf[24])
{
    if (d->labels) return ses_examples_label_name(d->labels, i);
    snprintf(buf, 24, "%zu", i);
    return buf;
}

/* ---- splitting ---- */

/* Row and its sort key. Rows are shuffled by the seed with classes evenly mixed: the k-th of n rows of a
 * class gets the key (k + 1/2) / n, so any range of rows has about the class fractions of the whole. */
typedef struct keyed_row {
    double key;
    size_t row;
} keyed_row;

static int by_key(const void *a, const void *b)
{
    const keyed_row *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static bool shuffle(const ses_logreg_data *d, uint64_t seed, size_t *order, ses_err *e)
{
    size_t n = d->x.rows;
    keyed_row *p = ses_alloc_array(n, sizeof *p, e);
    size_t *count = p ? ses_alloc_array(2 * d->classes, sizeof *count, e) : NULL;
    if (!count) return ses_free(p), false;
    for (size_t i = 0; i < n; i++) order[i] = i, count[d->classes + (size_t)d->y[i]]++;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(((uint64_t)ses_rand32((ses_rng_key){ seed, 0, SITE }, i) * i) >> 32),
               t = order[i - 1];
        order[i - 1] = order[j], order[j] = t;
    }
    for (size_t i = 0; i < n; i++) {
        size_t c = (size_t)d->y[order[i]];
        p[i] = (keyed_row){ ((double)count[c]++ + 0.5) / (double)count[d->classes + c], order[i] };
    }
    qsort(p, n, sizeof *p, by_key);
    for (size_t i = 0; i < n; i++) order[i] = p[i].row;
    ses_free(count);
    ses_free(p);
    return true;
}

/* ---- fitting ---- */

static int32_t predict(const ses_logreg *m, const float *x, double *scores)
{
    size_t best = 0;
    ses_logreg_predict(m, x, scores);
    for (size_t c = 1; c < m->classes; c++)
        if (scores[c] > scores[best]) best = c;
    return (int32_t)best;
}

static double accuracy(const ses_logreg *m, const ses_logreg_data *d, const size_t *rows, size_t n,
                       double *scores)
{
    size_t correct = 0;
    for (size_t i = 0; i < n; i++)
        correct += predict(m, d->x.x + rows[i] * d->x.cols, scores) == d->y[rows[i]];
    return n ? (double)correct / (double)n : 0;
}

/* Fold k is every folds-th row of the order, from the k-th: stratified like the order. */
static bool run_fold(const ses_logreg_data *d, ses_logreg_plan *p, const size_t *order, size_t n, size_t k,
                     size_t *rows, double *scores, double *score, ses_err *e)
{
    size_t folds = (size_t)p->folds, n_train = 0, test = n;
    ses_logreg m = { 0 };
    for (size_t i = 0; i < n; i++) rows[i % folds == k ? --test : n_train++] = order[i];
    bool ok = true;
    for (size_t t = 0; ok && t < p->n_tried; t++) {
        ses_logreg_options o = p->options;
        o.c = p->tried[t].c;
        ok = ses_logreg_fit(&m, d->x.x, d->y, rows, n_train, d->x.cols, d->classes, &o, e);
        p->tried[t].n_unconverged += ok && !m.converged;
        if (ok) score[t * folds + k] = accuracy(&m, d, rows + n_train, n - n_train, scores);
    }
    ses_logreg_free(&m);
    return ok || ses_wrap(e, "fold %zu", k + 1);
}

static bool cross_validate(const ses_logreg_data *d, ses_logreg_plan *p, ses_logreg_result *r, double *scores,
                           ses_err *e)
{
    size_t folds = (size_t)p->folds;
    size_t *rows = ses_alloc_array(r->n_train, sizeof *rows, e);
    double *score = rows ? ses_alloc_array(p->n_tried * folds, sizeof *score, e) : NULL;
    bool ok = score != NULL;
    if (ok && r->n_train < 2 * folds)
        ok = ses_fail(e, SES_EARG, "%zu examples are too few for %zu folds", r->n_train, folds);
    for (size_t k = 0; ok && k < folds; k++)
        ok = run_fold(d, p, r->order, r->n_train, k, rows, scores, score, e);
    for (size_t t = 0; ok && t < p->n_tried; t++) {
        ses_logreg_try *x = &p->tried[t];
        double square = 0;
        for (size_t k = 0; k < folds; k++) x->mean += score[t * folds + k] / (double)folds;
        for (size_t k = 0; k < folds; k++) square += pow(score[t * folds + k] - x->mean, 2) / (double)folds;
        x->deviation = sqrt(square);
        if (x->mean > p->tried[r->best].mean) r->best = t;
    }
    ses_free(score);
    ses_free(rows);
    return ok;
}

static bool test_model(const ses_logreg_data *t, const size_t *rows, size_t n, ses_logreg_result *r,
                       uint64_t seed, double *scores, ses_err *e)
{
    size_t classes = r->model.classes;
    int32_t *true_labels = ses_alloc_array(2 * n, sizeof *true_labels, e),
            *pred = true_labels ? true_labels + n : NULL;
    r->confusion = true_labels ? ses_alloc_array(classes * classes, sizeof *r->confusion, e) : NULL;
    if (!r->confusion) return ses_free(true_labels), false;
    for (size_t i = 0; i < n; i++) {
        size_t row = rows ? rows[i] : i;
        true_labels[i] = t->y[row];
        pred[i] = predict(&r->model, t->x.x + row * t->x.cols, scores);
    }
    ses_evaluation v = { .n = n, .true_labels = true_labels, .pred_labels = pred, .n_labels = classes };
    ses_bootstrap b = { .resamples = 1000, .level = 0.95, .seed = seed };
    bool ok = ses_metric_run("accuracy", &v, &b, &r->scores, e) &&
              ses_metric_run("f1", &v, &b, &r->scores, e) &&
              ses_metric_run("matthews", &v, &b, &r->scores, e) && ses_confusion_matrix(&v, r->confusion, e);
    for (size_t c = 0; ok && c < classes; c++) {
        int64_t sum = 0;
        for (size_t k = 0; k < classes; k++) sum += r->confusion[c * classes + k];
        if ((double)sum / (double)n > r->baseline) r->baseline = (double)sum / (double)n;
    }
    ses_free(true_labels);
    return ok;
}

bool ses_logreg_plan_run(const ses_logreg_data *d, const ses_logreg_data *test, ses_logreg_plan *p,
                         ses_logreg_result *r, ses_err *e)
{
    size_t n = d->x.rows;
    r->order = ses_alloc_array(n, sizeof *r->order, e);
    double *scores = r->order ? ses_alloc_array(d->classes, sizeof *scores, e) : NULL;
    if (!scores || !shuffle(d, p->seed, r->order, e)) return ses_free(scores), false;
    r->n_test = test ? test->x.rows : (size_t)(p->test_size * (double)n + 0.5);
    r->n_train = test ? n : n - r->n_test;
    /* evenly spaced rows of the order: stratified, unlike its last rows */
    size_t *rows = test ? NULL : ses_alloc_array(n, sizeof *rows, e);
    bool ok = test || rows;
    if (ok && !r->n_train) ok = ses_fail(e, SES_EARG, "%zu examples: no training examples are left", n);
    for (size_t i = 0, n_train = 0, n_out = 0; ok && !test && i < n; i++) {
        bool is_test = (size_t)((double)(i + 1) * (double)r->n_test / (double)n) > n_out && n_out < r->n_test;
        rows[is_test ? r->n_train + n_out++ : n_train++] = r->order[i];
    }
    if (ok && !test) memcpy(r->order, rows, n * sizeof *rows);
    ses_free(rows);
    if (ok && p->folds) ok = cross_validate(d, p, r, scores, e);
    p->options.c = p->tried[r->best].c;
    ok = ok &&
         ses_logreg_fit(&r->model, d->x.x, d->y, r->order, r->n_train, d->x.cols, d->classes, &p->options, e);
    if (ok) r->train_accuracy = accuracy(&r->model, d, r->order, r->n_train, scores);
    if (ok && r->n_test)
        ok = test_model(test ? test : d, test ? NULL : r->order + r->n_train, r->n_test, r, p->seed, scores,
                        e);
    ses_free(scores);
    return ok;
}

void ses_logreg_result_free(ses_logreg_result *r)
{
    ses_free(r->order);
    ses_free(r->confusion);
    ses_logreg_free(&r->model);
    ses_scores_free(&r->scores);
    *r = (ses_logreg_result){ 0 };
}
