/* Logistic regression: the loss and its gradient for L-BFGS. */
#include "base/alloc.h"
#include "logreg_impl.h"
#include "math/lbfgs.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef ses_logreg_problem problem;

/* Eight partial sums, which the compiler may vectorize without reordering. */
static double product(const double *w, const float *x, size_t n)
{
    double sum[8] = { 0 }, rest = 0;
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t j = 0; j < 8; j++) sum[j] += w[k + j] * (double)x[k + j];
    for (; k < n; k++) rest += w[k] * (double)x[k];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])) + rest;
}

/* out[r] = b[r] + w[r] . x */
static void scores(const float *x, const double *w, const double *b, size_t rows, size_t width, double *out)
{
    for (size_t r = 0; r < rows; r++) out[r] = b[r] + product(w + r * width, x, width);
}

/* Returns the loss of one example; score becomes d loss / d score. */
static double loss_of(double *score, size_t rows, int32_t y)
{
    if (rows == 1) { /* log(1 + exp(-s)), s = +-score by the label */
        double s = y ? score[0] : -score[0], small = exp(-fabs(s)),
               p = s > 0 ? small / (1 + small) : 1 / (1 + small);
        score[0] = y ? -p : p;
        return log1p(small) + (s > 0 ? 0 : -s);
    }
    double max = score[0], sum = 0, right = score[y];
    for (size_t r = 1; r < rows; r++)
        if (score[r] > max) max = score[r];
    for (size_t r = 0; r < rows; r++) sum += exp(score[r] - max);
    double log_sum = max + log(sum);
    for (size_t r = 0; r < rows; r++) score[r] = exp(score[r] - log_sum);
    score[y] -= 1;
    return log_sum - right;
}

/* Mean loss plus penalty at w (rows of weights, then biases), gradient in g. */
static double value(void *ctx, const double *w, double *g)
{
    const problem *p = ctx;
    size_t weights = p->rows * p->width;
    double loss = 0, square = 0;
    memset(g, 0, (weights + p->rows) * sizeof *g);
    for (size_t i = 0; i < p->n; i++) {
        size_t at = p->pick ? p->pick[i] : i;
        const float *x = p->x + at * p->width;
        double weight = p->class_weight[p->y[at]] / p->total;
        scores(x, w, w + weights, p->rows, p->width, p->score);
        loss += weight * loss_of(p->score, p->rows, p->y[at]);
        for (size_t r = 0; r < p->rows; r++) {
            double d = weight * p->score[r], *row = g + r * p->width;
            for (size_t k = 0; k < p->width; k++) row[k] += d * (double)x[k];
            if (p->bias) g[weights + r] += d;
        }
    }
    for (size_t k = 0; k < weights; k++) {
        square += w[k] * w[k];
        g[k] += p->penalty * w[k];
    }
    return loss + 0.5 * p->penalty * square;
}

static bool check(const problem *p, ses_err *e)
{
    size_t first = p->pick ? p->pick[0] : 0;
    bool two = false;
    if (!p->n || !p->width || p->classes < 2)
        return ses_fail(e, SES_EARG,
                        "%zu examples of %zu features in %zu classes; expected at least two classes", p->n,
                        p->width, p->classes);
    for (size_t i = 0; i < p->n; i++) {
        size_t at = p->pick ? p->pick[i] : i;
        if (p->y[at] < 0 || (size_t)p->y[at] >= p->classes)
            return ses_fail(e, SES_EARG, "row %zu: label %d of %zu", at + 1, (int)p->y[at], p->classes);
        const float *x = p->x + at * p->width;
        bool bad = false;
        for (size_t k = 0; k < p->width; k++) bad |= !(fabsf(x[k]) <= FLT_MAX); /* vectorizes */
        for (size_t k = 0; bad && k < p->width; k++)
            if (!isfinite(x[k]))
                return ses_fail(e, SES_EARG, "row %zu, column %zu: not a finite number", at + 1, k + 1);
        two = two || p->y[at] != p->y[first];
    }
    return two ||
           ses_fail(e, SES_EARG, "all %zu examples have the same class; expected at least two classes", p->n);
}

/* Class weight n / (classes that occur * examples of the class): scikit-learn's "balanced". */
static void weigh(problem *p, bool balanced)
{
    double occur = 0;
    for (size_t i = 0; i < p->n; i++) p->class_weight[p->y[p->pick ? p->pick[i] : i]]++;
    for (size_t c = 0; c < p->classes; c++) occur += p->class_weight[c] > 0;
    for (size_t c = 0; c < p->classes; c++) {
        double n = p->class_weight[c];
        p->class_weight[c] = balanced && n > 0 ? (double)p->n / (occur * n) : 1;
    }
    p->total = (double)p->n;
}

static bool shape(ses_logreg *m, size_t width, size_t classes, ses_err *e)
{
    size_t rows = classes == 2 ? 1 : classes, count, all;
    if (m->weight && m->width == width && m->classes == classes) return true;
    ses_logreg_free(m);
    if (!ses_mul_size(rows, width, &count) || !ses_add_size(count, rows, &all))
        return ses_fail(e, SES_ENOMEM, "%zu classes of %zu features", classes, width);
    m->weight = ses_alloc_array(all, sizeof *m->weight, e); /* one block: weights, then biases */
    if (!m->weight) return false;
    m->bias = m->weight + count;
    m->classes = classes, m->width = width, m->rows = rows;
    return true;
}

/* Equal biases added to all classes change nothing. Their sum stays 0 without a preconditioner. */
static void center_biases(ses_logreg *m)
{
    double mean = 0;
    for (size_t r = 0; r < m->rows; r++) mean += m->bias[r] / (double)m->rows;
    for (size_t r = 0; m->rows > 1 && r < m->rows; r++) m->bias[r] -= mean;
}

static bool minimize(ses_logreg *m, const problem *p, const ses_logreg_options *o, bool fresh, ses_err *e)
{
    ses_logreg_device *d = NULL;
    ses_lbfgs_problem f = { .value = value, .ctx = (void *)(uintptr_t)p };
    ses_lbfgs_result r;
    if (o->device && !o->balanced) {
        d = ses_logreg_device_new(p, o->device, e);
        if (!d) return false;
        if (fresh && p->bias) ses_logreg_device_start(d, m->bias), center_biases(m);
        f = (ses_lbfgs_problem){ ses_logreg_device_value, ses_logreg_device_precondition, 1e-7, d };
    }
    bool ok =
        (!d || ses_logreg_device_prepare(d, e)) &&
        ses_lbfgs_minimize(m->weight, m->rows * (m->width + 1), &f, o->tolerance > 0 ? o->tolerance : 1e-7,
                           o->iterations > 0 ? o->iterations : 1000, &r, e) &&
        (!d || ses_logreg_device_ok(d, e));
    if (ok) m->iterations = r.iterations, m->converged = r.converged;
    if (ok && d) center_biases(m);
    ses_logreg_device_free(d);
    return ok;
}

bool ses_logreg_fit(ses_logreg *m, const float *x, const int32_t *y, const size_t *pick, size_t n,
                    size_t width, size_t classes, const ses_logreg_options *o, ses_err *e)
{
    static const ses_logreg_options none;
    if (!o) o = &none;
    double c = o->c != 0 ? o->c : 1;
    problem p = {
        .x = x, .y = y, .pick = pick, .n = n, .width = width, .classes = classes, .bias = !o->no_bias
    };
    if (!(c > 0) || !isfinite(c))
        return ses_fail(e, SES_EARG, "C is %g; expected a finite number above 0", c);
    bool fresh = !m->weight || m->width != width || m->classes != classes;
    if (!check(&p, e) || !shape(m, width, classes, e)) return false;
    p.rows = m->rows;
    p.class_weight = ses_alloc_array(classes + m->rows, sizeof *p.class_weight, e);
    if (!p.class_weight) return false;
    p.score = p.class_weight + classes;
    weigh(&p, o->balanced);
    p.penalty = 1 / (c * p.total);
    bool ok = minimize(m, &p, o, fresh, e);
    ses_free(p.class_weight);
    return ok;
}

void ses_logreg_predict(const ses_logreg *m, const float *x, double *probability)
{
    double max, sum = 0;
    scores(x, m->weight, m->bias, m->rows, m->width, probability);
    if (m->rows == 1) {
        probability[1] = 1 / (1 + exp(-probability[0]));
        probability[0] = 1 - probability[1];
        return;
    }
    max = probability[0];
    for (size_t r = 1; r < m->rows; r++)
        if (probability[r] > max) max = probability[r];
    for (size_t r = 0; r < m->rows; r++) sum += probability[r] = exp(probability[r] - max);
    for (size_t r = 0; r < m->rows; r++) probability[r] /= sum;
}

void ses_logreg_free(ses_logreg *m)
{
    ses_free(m->weight);
    *m = (ses_logreg){ 0 };
}
