/* nb: multinomial Naive Bayes on n-grams, as scikit-learn's MultinomialNB. A feature counts once per text, if
 * --counts all is not set (Wang and Manning 2012). */
#include "bag_model.h"
#include "base/alloc.h"

#include <math.h>

/* Log of the prior of a class without training texts: it is never predicted. */
static const double NEVER = -1e6;

/* weight[c, f] = log((N_cf + alpha) / (N_c + alpha V)), bias[c] = log(texts of c / texts) */
static void set_weights(ses_bag_model *m, const ses_bags *b, const ses_classifier_job *job, double alpha)
{
    size_t width = ses_bag_vocab_size(&m->vocab);
    for (size_t i = 0; i < b->n; i++) {
        double *row = m->weight + (size_t)job->label[i] * width;
        m->bias[job->label[i]]++;
        for (size_t k = b->begin[i]; k < b->begin[i + 1]; k++) row[b->feature[k]] += (double)b->count[k];
    }
    for (size_t c = 0; c < m->rows; c++) {
        double sum = 0, *row = m->weight + c * width;
        for (size_t f = 0; f < width; f++) sum += row[f] += alpha;
        for (size_t f = 0; f < width; f++) row[f] = log(row[f]) - log(sum);
        m->bias[c] = m->bias[c] > 0 ? log(m->bias[c] / (double)b->n) : NEVER;
    }
}

static void *train(const ses_classifier_job *job, double *loss, ses_err *e)
{
    const ses_classifier_settings *s = &job->settings;
    ses_bags b;
    (void)loss;
    ses_bag_model *m = ses_bag_model_new(
        job, s->counts == SES_COUNT_ALL ? SES_FEATURE_COUNT : SES_FEATURE_BINARY, job->n_labels, &b, e);
    if (m) set_weights(m, &b, job, s->alpha > 0 ? s->alpha : 1);
    ses_bags_free(&b);
    return m;
}

const ses_classifier_kind ses_classifier_nb = {
    .name = "nb",
    .summary = "multinomial Naive Bayes on n-grams",
    .settings = "words|ngrams|min-count|counts|alpha",
    .train = train,
    .open = ses_bag_model_open,
    .save = ses_bag_model_save,
    .log_probabilities = ses_bag_model_log_probabilities,
    .parameters = ses_bag_model_parameters,
    .features = ses_bag_model_features,
    .free = ses_bag_model_free,
};
