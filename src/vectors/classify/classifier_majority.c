/* majority: every text gets the probabilities of the classes in the training data, with one more text in each
 * class, so that none is 0. */
#include "base/alloc.h"
#include "classifier.h"

#include <math.h>

typedef struct majority {
    size_t n_labels;
    int64_t count[]; /* training texts of each class */
} majority;

static majority *new_counts(size_t n_labels, ses_err *e)
{
    majority *m = ses_alloc(sizeof *m + n_labels * sizeof *m->count, e);
    if (m) m->n_labels = n_labels;
    return m;
}

static void *train(const ses_classifier_job *job, double *loss, ses_err *e)
{
    majority *m = new_counts(job->n_labels, e);
    (void)loss;
    for (size_t i = 0; m && i < job->n; i++) m->count[job->label[i]]++;
    return m;
}

static void *open(const char *dir, const ses_json *config, size_t n_labels, ses_err *e)
{
    const ses_json *counts = ses_json_get(ses_json_get(config, "classifier"), "counts");
    majority *m = new_counts(n_labels, e);
    (void)dir;
    bool ok = m && ses_json_len(counts) == n_labels;
    for (size_t i = 0; ok && i < n_labels; i++)
        ok = ses_json_int(ses_json_at(counts, i), &m->count[i]) && m->count[i] >= 0 && m->count[i] < INT32_MAX;
    if (ok) return m;
    if (m) ses_fail(e, SES_EFORMAT, "config.json: classifier: counts: expected a number of texts per label");
    ses_free(m);
    return NULL;
}

static bool save(const void *self, const char *dir, ses_json_writer *w, ses_err *e)
{
    const majority *m = self;
    (void)dir, (void)e;
    ses_json_member_array(w, "counts");
    for (size_t i = 0; i < m->n_labels; i++) ses_json_put_int(w, m->count[i]);
    ses_json_end_array(w);
    return true;
}

static bool log_probabilities(const void *self, ses_string text, double *out, ses_err *e)
{
    const majority *m = self;
    double sum = 0;
    (void)text, (void)e;
    for (size_t i = 0; i < m->n_labels; i++) sum += (double)m->count[i] + 1;
    for (size_t i = 0; i < m->n_labels; i++) out[i] = log(((double)m->count[i] + 1) / sum);
    return true;
}

const ses_classifier_kind ses_classifier_majority = {
    .name = "majority",
    .summary = "the most frequent class",
    .settings = "",
    .train = train,
    .one_class = true,
    .open = open,
    .save = save,
    .log_probabilities = log_probabilities,
    .free = ses_free,
};
