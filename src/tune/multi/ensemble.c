/* Ensembles of tasks with scores: means of probabilities and of numbers. */
#include "ensemble.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

/* ---- labels ---- */

static void list_labels(ses_buf *b, const char *const *label, size_t n)
{
    enum { SHOWN = 12 };
    for (size_t i = 0; i < n && i < SHOWN; i++) ses_buf_appendf(b, "%s%s", i ? ", " : "", label[i]);
    if (n > SHOWN) ses_buf_appendf(b, ", ... (%zu)", n);
}

bool ses_ensemble_match_labels(const char *const *label, size_t n, const char *const *other, size_t n_other,
                               const char *name, const char *other_name, int32_t *map, ses_err *e)
{
    bool same = n == n_other;
    for (size_t i = 0; same && i < n; i++) {
        size_t k = 0;
        while (k < n_other && strcmp(label[i], other[k])) k++;
        same = k < n_other;
        map[i] = (int32_t)k;
    }
    if (same) return true;
    ses_buf text = { 0 };
    ses_buf_appendf(&text, "%s has the labels ", name);
    list_labels(&text, label, n);
    ses_buf_appendf(&text, "; %s has ", other_name);
    list_labels(&text, other, n_other);
    if (ses_buf_ok(&text, e))
        ses_fail(e, SES_EARG, "ensemble: %s: the models of an ensemble need the same labels", text.data);
    ses_buf_free(&text);
    return false;
}

/* ---- means ---- */

/* The first member's scores of a row, which the mean replaces. */
static float *row_scores(const ses_ensemble_member *m, size_t row) { return m->o->score + row * m->o->cols; }

static bool check_columns(const ses_ensemble_member *m, size_t n, ses_err *e)
{
    for (size_t i = 1; i < n; i++)
        if (m[i].o->cols != m[0].o->cols)
            return ses_fail(e, SES_EARG, "ensemble: %s has %zu scores per example, %s has %zu", m[0].name,
                            m[0].o->cols, m[i].name, m[i].o->cols);
    return true;
}

/* The label of a row; -1: unknown. */
static int32_t true_label(const ses_ensemble_member *m, size_t row)
{
    int32_t label = m->t->unlabeled ? -1 : ses_examples_at(m->s->rows, row)->label;
    return label < 0 || (size_t)label >= m->o->cols ? -1 : label;
}

/* Logarithm of a probability that may have underflowed. */
static double log_of(double p) { return log(p > 1e-300 ? p : 1e-300); }

bool ses_ensemble_combine_classes(const ses_ensemble_member *m, size_t n, ses_err *e)
{
    size_t cols = m->o->cols;
    double *mean = ses_arena_array(&m->o->mem, cols, sizeof *mean, e), loss = 0;
    if (!mean || !check_columns(m, n, e)) return false;
    for (size_t row = 0; row < m->s->n_rows; row++) {
        memset(mean, 0, cols * sizeof *mean);
        for (size_t i = 0; i < n; i++) {
            const float *x = row_scores(&m[i], row);
            double p;
            int64_t best = ses_finetuner_softmax(x, cols, &p);
            for (size_t k = 0; k < cols; k++) {
                double shifted = (double)x[ses_ensemble_label(&m[i], k)] - (double)x[best];
                mean[k] += exp(shifted) * p / (double)n;
            }
        }
        for (size_t k = 0; k < cols; k++) row_scores(m, row)[k] = (float)log_of(mean[k]);
        int32_t label = true_label(m, row);
        loss += label < 0 ? NAN : -log_of(mean[label]);
    }
    m->o->loss = loss / (double)m->s->n_rows;
    return true;
}

bool ses_ensemble_combine_sets(const ses_ensemble_member *m, size_t n, ses_err *e)
{
    size_t cols = m->o->cols;
    double *mean = ses_arena_array(&m->o->mem, cols, sizeof *mean, e), loss = 0;
    if (!mean || !check_columns(m, n, e)) return false;
    for (size_t row = 0; row < m->s->n_rows; row++) {
        const ses_labeled_example *r = ses_examples_at(m->s->rows, row);
        memset(mean, 0, cols * sizeof *mean);
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < cols; k++)
                mean[k] +=
                    1 / (1 + exp(-(double)row_scores(&m[i], row)[ses_ensemble_label(&m[i], k)])) / (double)n;
        for (size_t k = 0; k < cols; k++) {
            row_scores(m, row)[k] = (float)(log_of(mean[k]) - log_of(1 - mean[k]));
            loss -= log_of(1 - mean[k]) / (double)cols;
        }
        for (size_t k = 0; k < r->n_labels; k++) {
            double p = mean[r->labels[k]];
            loss -= (log_of(p) - log_of(1 - p)) / (double)cols;
        }
    }
    m->o->loss = m->t->unlabeled ? NAN : loss / (double)m->s->n_rows;
    return true;
}

bool ses_ensemble_combine_reals(const ses_ensemble_member *m, size_t n, ses_err *e)
{
    double loss = 0;
    if (!check_columns(m, n, e)) return false;
    for (size_t row = 0; row < m->s->n_rows; row++) {
        double mean = 0;
        for (size_t i = 0; i < n; i++) mean += (double)row_scores(&m[i], row)[0] / (double)n;
        row_scores(m, row)[0] = (float)mean;
        double off = mean - ses_examples_at(m->s->rows, row)->target;
        loss += off * off;
    }
    m->o->loss = m->t->unlabeled ? NAN : loss / (double)m->s->n_rows;
    return true;
}
