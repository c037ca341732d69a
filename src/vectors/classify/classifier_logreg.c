/* logreg: logistic regression on TF-IDF features of n-grams, as scikit-learn's TfidfVectorizer and
 * LogisticRegression: idf = log((1 + texts) / (1 + texts with the feature)) + 1, vectors of length 1. */
#include "bag_model.h"
#include "base/alloc.h"
#include "sparse_logreg.h"

#include <math.h>

/* Fills m->idf and replaces counts by TF-IDF. */
static bool weigh(ses_bag_model *m, ses_bags *b, ses_err *e)
{
    size_t width = ses_bag_vocab_size(&m->vocab);
    m->idf = ses_alloc_array(width, sizeof *m->idf, e);
    if (!m->idf) return false;
    for (size_t i = 0; i < b->begin[b->n]; i++) m->idf[b->feature[i]]++;
    for (size_t f = 0; f < width; f++) m->idf[f] = log((1 + (double)b->n) / (1 + m->idf[f])) + 1;
    for (size_t i = 0; i < b->n; i++) {
        double norm = 0;
        for (size_t k = b->begin[i]; k < b->begin[i + 1]; k++)
            norm += pow((double)b->count[k] * m->idf[b->feature[k]], 2);
        for (size_t k = b->begin[i]; k < b->begin[i + 1]; k++)
            b->count[k] = (float)((double)b->count[k] * m->idf[b->feature[k]] / sqrt(norm));
    }
    return true;
}

static void *train(const ses_classifier_job *job, double *loss, ses_err *e)
{
    const ses_classifier_settings *s = &job->settings;
    ses_bags b;
    ses_sparse_texts x = { 0 };
    ses_bag_model *m =
        ses_bag_model_new(job, SES_FEATURE_TFIDF, job->n_labels == 2 ? 1 : job->n_labels, &b, e);
    bool ok = m && weigh(m, &b, e) && ses_sparse_texts_open(&x, &b, ses_bag_vocab_size(&m->vocab), e);
    if (ok) {
        ses_sparse_fit f = { .x = &x,
                             .y = job->label,
                             .classes = job->n_labels,
                             .c = s->c > 0 ? s->c : 1,
                             .pool = job->pool,
                             .progress = job->progress,
                             .ctx = job->ctx,
                             .weight = m->weight,
                             .bias = m->bias };
        ok = ses_sparse_fit_run(&f, e) || ses_fail(e, SES_EARG, "training was stopped");
        *loss = f.loss;
    }
    ses_sparse_texts_free(&x);
    ses_bags_free(&b);
    if (ok) return m;
    ses_bag_model_free(m);
    return NULL;
}

const ses_classifier_kind ses_classifier_logreg = {
    .name = "logreg",
    .summary = "logistic regression on TF-IDF of n-grams",
    .settings = "words|ngrams|min-count|c",
    .train = train,
    .open = ses_bag_model_open,
    .save = ses_bag_model_save,
    .log_probabilities = ses_bag_model_log_probabilities,
    .parameters = ses_bag_model_parameters,
    .features = ses_bag_model_features,
    .free = ses_bag_model_free,
};
