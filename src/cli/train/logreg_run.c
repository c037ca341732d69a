#include "logreg_run.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE = 0x6c6f6772 };

/* ---- reading ---- */

static bool take_numbers(ses_logreg_data *d, const char *path, const ses_logreg_data *like, ses_err *e)
{
    ses_matrix m;
    if (!ses_matrix_read(&m, path, NULL, e)) return false;
    bool ok = m.cols == 1 || ses_fail(e, SES_EFORMAT, "%s: %zu columns, labels are one", path, m.cols);
    if (ok && m.rows != d->x.rows)
        ok = ses_fail(e, SES_EFORMAT, "%s: %zu labels for %zu rows of features", path, m.rows, d->x.rows);
    d->y = ok ? ses_alloc_array(m.rows, sizeof *d->y, e) : NULL;
    for (size_t i = 0; d->y && ok && i < m.rows; i++) {
        ok = m.x[i] >= 0 && m.x[i] < 65536 && m.x[i] == floorf(m.x[i]);
        if (!ok)
            ses_fail(e, SES_EFORMAT, "%s: row %zu: %g is no label: whole numbers from 0 are", path, i + 1,
                     m.x[i]);
        if (ok) d->y[i] = (int32_t)m.x[i];
        if (ok && (size_t)d->y[i] >= d->classes) d->classes = (size_t)d->y[i] + 1;
    }
    ok = ok && d->y;
    if (ok && like && d->classes > like->classes)
        ok = ses_fail(e, SES_EARG, "%s: label %zu is not among those learned", path, d->classes - 1);
    if (ok && like) d->classes = like->classes;
    ses_matrix_free(&m);
    return ok;
}

static bool take_names(ses_logreg_data *d, const char *path, const ses_data_spec *spec,
                       const ses_logreg_data *like, ses_err *e)
{
    d->labels = ses_examples_open(path, spec, like ? like->labels : NULL, e);
    if (!d->labels) return false;
    size_t n = ses_examples_count(d->labels);
    if (n != d->x.rows)
        return ses_fail(e, SES_EFORMAT, "%s: %zu labels for %zu rows of features", path, n, d->x.rows);
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
        return ses_fail(e, SES_EFORMAT, "%s: %zu numbers a row, %zu were learned from", features, d->x.cols,
                        like->x.cols);
    if (like && !like->labels != numbers)
        return ses_fail(e, SES_EARG, "%s: labels as names here and as numbers there", labels);
    return numbers ? take_numbers(d, labels, like, e) : take_names(d, labels, spec, like, e);
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

/* Rows in an order drawn from the seed, classes evenly mixed: the k-th of n rows of a class comes at (k
 * + 1/2) / n, so any stretch has about the classes' shares. */
typedef struct placed {
    double at;
    size_t row;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static bool shuffle(const ses_logreg_data *d, uint64_t seed, size_t *order, ses_err *e)
{
    size_t n = d->x.rows;
    placed *p = ses_alloc_array(n, sizeof *p, e);
    size_t *seen = p ? ses_alloc_array(2 * d->classes, sizeof *seen, e) : NULL;
    if (!seen) return ses_free(p), false;
    for (size_t i = 0; i < n; i++) order[i] = i, seen[d->classes + (size_t)d->y[i]]++;
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(((uint64_t)ses_rand32((ses_rng_key){ seed, 0, SITE }, i) * i) >> 32),
               t = order[i - 1];
        order[i - 1] = order[j], order[j] = t;
    }
    for (size_t i = 0; i < n; i++) {
        size_t c = (size_t)d->y[order[i]];
        p[i] = (placed){ ((double)seen[c]++ + 0.5) / (double)seen[d->classes + c], order[i] };
    }
    qsort(p, n, sizeof *p, by_place);
    for (size_t i = 0; i < n; i++) order[i] = p[i].row;
    ses_free(seen);
    ses_free(p);
    return true;
}

/* ---- fitting ---- */

static int32_t answer(const ses_logreg *m, const float *x, double *room)
{
    size_t best = 0;
    ses_logreg_predict(m, x, room);
    for (size_t c = 1; c < m->classes; c++)
        if (room[c] > room[best]) best = c;
    return (int32_t)best;
}

static double accuracy(const ses_logreg *m, const ses_logreg_data *d, const size_t *rows, size_t n,
                       double *room)
{
    size_t right = 0;
    for (size_t i = 0; i < n; i++) right += answer(m, d->x.x + rows[i] * d->x.cols, room) == d->y[rows[i]];
    return n ? (double)right / (double)n : 0;
}

/* Fold k is every folds-th row of the order, from the k-th: class by class as even as the order. */
static bool one_fold(const ses_logreg_data *d, ses_logreg_plan *p, const size_t *order, size_t n, size_t k,
                     size_t *rows, double *room, double *score, ses_err *e)
{
    size_t folds = (size_t)p->folds, learn = 0, test = n;
    ses_logreg m = { 0 };
    for (size_t i = 0; i < n; i++) rows[i % folds == k ? --test : learn++] = order[i];
    bool ok = true;
    for (size_t t = 0; ok && t < p->n_tried; t++) {
        ses_logreg_options o = p->options;
        o.c = p->tried[t].c;
        ok = ses_logreg_fit(&m, d->x.x, d->y, rows, learn, d->x.cols, d->classes, &o, e);
        p->tried[t].unfinished += ok && !m.converged;
        if (ok) score[t * folds + k] = accuracy(&m, d, rows + learn, n - learn, room);
    }
    ses_logreg_free(&m);
    return ok || ses_wrap(e, "fold %zu", k + 1);
}

static bool cross_validate(const ses_logreg_data *d, ses_logreg_plan *p, ses_logreg_result *r, double *room,
                           ses_err *e)
{
    size_t folds = (size_t)p->folds;
    size_t *rows = ses_alloc_array(r->n_learn, sizeof *rows, e);
    double *score = rows ? ses_alloc_array(p->n_tried * folds, sizeof *score, e) : NULL;
    bool ok = score != NULL;
    if (ok && r->n_learn < 2 * folds)
        ok = ses_fail(e, SES_EARG, "%zu examples are too few for %zu folds", r->n_learn, folds);
    for (size_t k = 0; ok && k < folds; k++)
        ok = one_fold(d, p, r->order, r->n_learn, k, rows, room, score, e);
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

static bool measure(const ses_logreg_data *t, const size_t *rows, size_t n, ses_logreg_result *r,
                    uint64_t seed, double *room, ses_err *e)
{
    size_t classes = r->model.classes;
    int32_t *gold = ses_alloc_array(2 * n, sizeof *gold, e), *pred = gold ? gold + n : NULL;
    r->confusion = gold ? ses_alloc_array(classes * classes, sizeof *r->confusion, e) : NULL;
    if (!r->confusion) return ses_free(gold), false;
    for (size_t i = 0; i < n; i++) {
        size_t row = rows ? rows[i] : i;
        gold[i] = t->y[row];
        pred[i] = answer(&r->model, t->x.x + row * t->x.cols, room);
    }
    ses_evaluation v = { .n = n, .gold = gold, .pred = pred, .n_labels = classes };
    ses_bootstrap b = { .resamples = 1000, .level = 0.95, .seed = seed };
    bool ok = ses_metric_run("accuracy", &v, &b, &r->scores, e) &&
              ses_metric_run("f1", &v, &b, &r->scores, e) &&
              ses_metric_run("matthews", &v, &b, &r->scores, e) && ses_confusion_matrix(&v, r->confusion, e);
    for (size_t c = 0; ok && c < classes; c++) {
        int64_t sum = 0;
        for (size_t k = 0; k < classes; k++) sum += r->confusion[c * classes + k];
        if ((double)sum / (double)n > r->common) r->common = (double)sum / (double)n;
    }
    ses_free(gold);
    return ok;
}

bool ses_logreg_plan_run(const ses_logreg_data *d, const ses_logreg_data *test, ses_logreg_plan *p,
                         ses_logreg_result *r, ses_err *e)
{
    size_t n = d->x.rows;
    r->order = ses_alloc_array(n, sizeof *r->order, e);
    double *room = r->order ? ses_alloc_array(d->classes, sizeof *room, e) : NULL;
    if (!room || !shuffle(d, p->seed, r->order, e)) return ses_free(room), false;
    r->n_test = test ? test->x.rows : (size_t)(p->test_size * (double)n + 0.5);
    r->n_learn = test ? n : n - r->n_test;
    /* the last of the order would be the last of each class alike: every so-many-th is taken instead */
    size_t *rows = test ? NULL : ses_alloc_array(n, sizeof *rows, e);
    bool ok = test || rows;
    if (ok && !r->n_learn) ok = ses_fail(e, SES_EARG, "%zu examples: nothing is left to learn from", n);
    for (size_t i = 0, learn = 0, taken = 0; ok && !test && i < n; i++) {
        bool out = (size_t)((double)(i + 1) * (double)r->n_test / (double)n) > taken && taken < r->n_test;
        rows[out ? r->n_learn + taken++ : learn++] = r->order[i];
    }
    if (ok && !test) memcpy(r->order, rows, n * sizeof *rows);
    ses_free(rows);
    if (ok && p->folds) ok = cross_validate(d, p, r, room, e);
    p->options.c = p->tried[r->best].c;
    ok = ok &&
         ses_logreg_fit(&r->model, d->x.x, d->y, r->order, r->n_learn, d->x.cols, d->classes, &p->options, e);
    if (ok) r->learned = accuracy(&r->model, d, r->order, r->n_learn, room);
    if (ok && r->n_test)
        ok = measure(test ? test : d, test ? NULL : r->order + r->n_learn, r->n_test, r, p->seed, room, e);
    ses_free(room);
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
