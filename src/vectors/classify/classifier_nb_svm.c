/* nb-svm: a linear model on n-grams weighted by their log-count ratios (Wang and Manning 2012):
 *
 *     r = log((p / |p|) / (q / |q|))        p, q: alpha + texts of the class and of the others with a feature
 *     w, b = linear model on r * x          x: 1 if the text has the feature
 *     w' = (1 - beta) mean |w| + beta w     score = w' . (r * x) + beta b
 *
 * The linear model is logistic regression, whose scores have probabilities; two classes have one model, more
 * have one each against the rest. beta interpolates between Naive Bayes and the linear model, so it scales
 * the intercept of the linear model too. */
#include "bag_model.h"
#include "base/alloc.h"
#include "sparse_logreg.h"

#include <math.h>

static const double NEVER = -1e6; /* intercept of a class without training texts */

typedef struct training {
    const ses_classifier_job *job;
    ses_bag_model *m;
    ses_sparse_texts x;
    int32_t *is_class; /* [n] */
    double *ratio;     /* [features] */
    double loss;
} training;

/* Log-count ratios of the class with is_class 1. */
static void set_ratios(training *t, double alpha)
{
    double sum[2] = { 0 };
    for (size_t f = 0; f < t->x.width; f++) {
        double n[2] = { alpha, alpha };
        for (size_t k = t->x.column[f]; k < t->x.column[f + 1]; k++) n[t->is_class[t->x.text[k]]]++;
        sum[0] += n[0];
        sum[1] += n[1];
        t->ratio[f] = log(n[1]) - log(n[0]);
    }
    for (size_t f = 0; f < t->x.width; f++) t->ratio[f] -= log(sum[1]) - log(sum[0]);
}

static bool fit_row(training *t, size_t row, int32_t class, ses_err *e)
{
    const ses_classifier_settings *s = &t->job->settings;
    double beta = s->beta > 0 ? s->beta : 0.25, mean = 0;
    double *w = t->m->weight + row * t->x.width;
    size_t n = 0;
    for (size_t i = 0; i < t->job->n; i++) n += (size_t)(t->is_class[i] = t->job->label[i] == class);
    if (!n) return t->m->bias[row] = NEVER, true;
    set_ratios(t, s->alpha > 0 ? s->alpha : 1);
    ses_sparse_fit f = { .x = &t->x,
                         .y = t->is_class,
                         .classes = 2,
                         .scale = t->ratio,
                         .c = s->c > 0 ? s->c : 1,
                         .pool = t->job->pool,
                         .progress = t->job->progress,
                         .ctx = t->job->ctx,
                         .weight = w,
                         .bias = &t->m->bias[row] };
    if (!ses_sparse_fit_run(&f, e)) return ses_fail(e, SES_EARG, "training was stopped");
    for (size_t k = 0; k < t->x.width; k++) mean += fabs(w[k]) / (double)t->x.width;
    for (size_t k = 0; k < t->x.width; k++) w[k] = ((1 - beta) * mean + beta * w[k]) * t->ratio[k];
    t->m->bias[row] *= beta;
    t->loss += f.loss / (double)t->m->rows;
    return true;
}

static void *train(const ses_classifier_job *job, double *loss, ses_err *e)
{
    ses_bags b;
    training t = { .job = job };
    t.m = ses_bag_model_new(job, SES_FEATURE_BINARY, job->n_labels == 2 ? 1 : job->n_labels, &b, e);
    bool ok = t.m && ses_sparse_texts_open(&t.x, &b, ses_bag_vocab_size(&t.m->vocab), e);
    t.is_class = ok ? ses_alloc_array(job->n, sizeof *t.is_class, e) : NULL;
    t.ratio = t.is_class ? ses_alloc_array(t.x.width, sizeof *t.ratio, e) : NULL;
    ok = t.ratio != NULL;
    if (ok) t.m->link = SES_LINK_RATIO;
    for (size_t r = 0; ok && r < t.m->rows; r++) ok = fit_row(&t, r, t.m->rows == 1 ? 1 : (int32_t)r, e);
    *loss = t.loss;
    ses_free(t.is_class);
    ses_free(t.ratio);
    ses_sparse_texts_free(&t.x);
    ses_bags_free(&b);
    if (ok) return t.m;
    ses_bag_model_free(t.m);
    return NULL;
}

const ses_classifier_kind ses_classifier_nb_svm = {
    .name = "nb-svm",
    .summary = "linear model on log-count ratios of n-grams (Wang and Manning 2012)",
    .settings = "words|ngrams|min-count|alpha|beta|c",
    .train = train,
    .open = ses_bag_model_open,
    .save = ses_bag_model_save,
    .log_probabilities = ses_bag_model_log_probabilities,
    .parameters = ses_bag_model_parameters,
    .features = ses_bag_model_features,
    .free = ses_bag_model_free,
};
