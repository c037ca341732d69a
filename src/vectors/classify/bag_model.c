/* Linear models over bags of n-grams: prediction and files. */
#include "bag_model.h"

#include "base/alloc.h"
#include "base/file.h"
#include "sesame/safetensors.h"

#include <math.h>
#include <string.h>

#define VOCAB "vocab.txt"
#define WEIGHTS "model.safetensors"

static const char *const value_names[] = { "count", "binary", "tfidf" };
static const char *const link_names[] = { "softmax", "ratio" };

/* ---- new and free ---- */

static bool allocate(ses_bag_model *m, size_t rows, ses_err *e)
{
    size_t n;
    m->rows = rows;
    if (!ses_mul_size(rows, ses_bag_vocab_size(&m->vocab), &n))
        return ses_fail(e, SES_ENOMEM, "%zu classes of %zu features", rows, ses_bag_vocab_size(&m->vocab));
    m->weight = ses_alloc_array(n, sizeof *m->weight, e);
    m->bias = ses_alloc_array(rows, sizeof *m->bias, e);
    return m->weight && m->bias;
}

ses_bag_model *ses_bag_model_new(const ses_classifier_job *job, ses_feature_value value, size_t rows,
                                 ses_bags *b, ses_err *e)
{
    const ses_classifier_settings *s = &job->settings;
    *b = (ses_bags){ 0 };
    ses_bag_model *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->value = value;
    m->n_labels = job->n_labels;
    m->vocab.rule = ses_classifier_words(s);
    m->vocab.ngrams = s->ngrams ? s->ngrams : 2;
    bool ok = ses_bags_build(&m->vocab, job->text, job->n, s->min_count ? s->min_count : 1, b, e) &&
              allocate(m, rows, e);
    for (size_t i = 0; ok && value == SES_FEATURE_BINARY && i < b->begin[b->n]; i++) b->count[i] = 1;
    if (ok) return m;
    ses_bag_model_free(m);
    return NULL;
}

void ses_bag_model_free(void *self)
{
    ses_bag_model *m = self;
    if (!m) return;
    ses_bag_vocab_free(&m->vocab);
    ses_free(m->weight);
    ses_free(m->bias);
    ses_free(m->idf);
    ses_free(m);
}

int64_t ses_bag_model_parameters(const void *self)
{
    const ses_bag_model *m = self;
    return (int64_t)(m->rows * (ses_bag_vocab_size(&m->vocab) + 1));
}

int64_t ses_bag_model_features(const void *self)
{
    return (int64_t)ses_bag_vocab_size(&((const ses_bag_model *)self)->vocab);
}

/* ---- prediction ---- */

static double log_sigmoid(double x) { return x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x)); }

void ses_scores_to_log_probabilities(ses_link link, const double *score, size_t rows, size_t n_labels,
                                     double *out)
{
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < n_labels; i++) {
        out[i] = rows == 1 ? (i ? score[0] : 0) : score[i];
        if (link == SES_LINK_RATIO && rows > 1) out[i] = log_sigmoid(out[i]);
        max = fmax(max, out[i]);
    }
    for (size_t i = 0; i < n_labels; i++) sum += exp(out[i] - max);
    for (size_t i = 0; i < n_labels; i++) out[i] -= max + log(sum);
}

/* Value of feature k of the text. */
static double value_of(const ses_bag_model *m, const ses_bags *b, size_t k, double norm)
{
    if (m->value == SES_FEATURE_BINARY) return 1;
    double x = (double)b->count[k];
    return m->value == SES_FEATURE_TFIDF ? x * m->idf[b->feature[k]] / norm : x;
}

bool ses_bag_model_log_probabilities(const void *self, ses_string text, double *out, ses_err *e)
{
    const ses_bag_model *m = self;
    ses_words w = { 0 };
    ses_bags b = { 0 };
    double norm = 0, *score = ses_alloc_array(m->rows, sizeof *score, e);
    bool ok = score && ses_bags_add(&m->vocab, text, &w, &b, e);
    size_t width = ses_bag_vocab_size(&m->vocab), n = ok ? b.begin[1] : 0;
    for (size_t k = 0; m->value == SES_FEATURE_TFIDF && k < n; k++)
        norm += pow((double)b.count[k] * m->idf[b.feature[k]], 2);
    norm = norm > 0 ? sqrt(norm) : 1;
    for (size_t r = 0; ok && r < m->rows; r++) {
        double sum = m->bias[r];
        for (size_t k = 0; k < n; k++) sum += m->weight[r * width + b.feature[k]] * value_of(m, &b, k, norm);
        score[r] = sum;
    }
    if (ok) ses_scores_to_log_probabilities(m->link, score, m->rows, m->n_labels, out);
    ses_free(score);
    ses_bags_free(&b);
    ses_words_free(&w);
    return ok;
}

/* ---- files ---- */

bool ses_bag_model_save(const void *self, const char *dir, ses_json_writer *w, ses_err *e)
{
    const ses_bag_model *m = self;
    int64_t rows = (int64_t)m->rows, width = (int64_t)ses_bag_vocab_size(&m->vocab);
    ses_json_member_string(w, "words", ses_words_rule_name(m->vocab.rule));
    ses_json_member_int(w, "ngrams", m->vocab.ngrams);
    ses_json_member_string(w, "features", value_names[m->value]);
    ses_json_member_string(w, "link", link_names[m->link]);
    char *path = ses_path_join(dir, WEIGHTS, e);
    ses_safetensors_writer *t = path ? ses_safetensors_writer_new(e) : NULL;
    bool ok = t &&
              ses_safetensors_writer_add(t, "weight", SES_F64, 2, (int64_t[]){ rows, width }, m->weight, e) &&
              ses_safetensors_writer_add(t, "bias", SES_F64, 1, &rows, m->bias, e) &&
              (!m->idf || ses_safetensors_writer_add(t, "idf", SES_F64, 1, &width, m->idf, e)) &&
              ses_safetensors_save(t, path, false, e) && ses_bag_vocab_save(&m->vocab, dir, VOCAB, e);
    ses_safetensors_writer_free(t);
    ses_free(path);
    return ok;
}

double *ses_tensor_doubles(const ses_safetensors *s, const char *name, size_t rows, size_t cols, ses_err *e)
{
    const ses_tensor_entry *t = ses_safetensors_find(s, name);
    if (!t) return ses_fail(e, SES_EFORMAT, "tensor %s is missing", name), NULL;
    bool fits = t->dtype == SES_F64 && t->rank == (rows ? 2 : 1) && t->dim[t->rank - 1] == (int64_t)cols &&
                (!rows || t->dim[0] == (int64_t)rows);
    if (!fits)
        return ses_fail(e, SES_EFORMAT, "tensor %s has another shape or type than the model", name), NULL;
    double *x = ses_alloc_array(rows ? rows * cols : cols, sizeof *x, e);
    if (!x) return NULL;
    memcpy(x, t->data, t->bytes);
    for (int64_t i = 0; i < t->count; i++)
        if (!isfinite(x[i])) {
            ses_free(x);
            return ses_fail(e, SES_EFORMAT, "tensor %s: element %lld is not a finite number", name,
                            (long long)i),
                   NULL;
        }
    return x;
}

/* Index of a config's word in a list; false: neither. */
static bool read_name(const ses_json *config, const char *key, const char *const *names, size_t n,
                      size_t *out, ses_err *e)
{
    const char *word = ses_json_string(ses_json_get(config, key), NULL);
    for (*out = 0; word && *out < n; ++*out)
        if (!strcmp(names[*out], word)) return true;
    return ses_fail(e, SES_EFORMAT, "config.json: classifier: %s: expected one of %s, %s%s%s", key, names[0],
                    names[1], n > 2 ? ", " : "", n > 2 ? names[2] : "");
}

static bool read_config(ses_bag_model *m, const ses_json *config, ses_err *e)
{
    const ses_json *own = ses_json_get(config, "classifier");
    size_t value, link;
    if (!ses_classifier_read_words(config, &m->vocab.rule, e) ||
        !read_name(own, "features", value_names, SES_LEN(value_names), &value, e) ||
        !read_name(own, "link", link_names, SES_LEN(link_names), &link, e))
        return false;
    m->value = (ses_feature_value)value;
    m->link = (ses_link)link;
    if (!ses_json_int(ses_json_get(own, "ngrams"), &m->vocab.ngrams) || m->vocab.ngrams < 1 ||
        m->vocab.ngrams > SES_BAG_MAX_NGRAMS)
        return ses_fail(e, SES_EFORMAT, "config.json: classifier: ngrams: expected an integer from 1 to %d",
                        SES_BAG_MAX_NGRAMS);
    return true;
}

static bool read_weights(ses_bag_model *m, const char *dir, size_t *width, ses_err *e)
{
    char *path = ses_path_join(dir, WEIGHTS, e);
    ses_safetensors *s = path ? ses_safetensors_open(path, e) : NULL;
    const ses_tensor_entry *w = s ? ses_safetensors_find(s, "weight") : NULL;
    bool ok = s != NULL;
    if (ok && (!w || w->rank != 2 || w->dim[1] < 1 || w->dim[1] > INT32_MAX))
        ok = ses_fail(e, SES_EFORMAT, "tensor weight [rows, features] is missing");
    if (ok) {
        bool single = w->dim[0] == 1 && m->n_labels == 2;
        m->rows = single ? 1 : m->n_labels;
        *width = (size_t)w->dim[1];
        m->weight = ses_tensor_doubles(s, "weight", m->rows, *width, e);
        m->bias = m->weight ? ses_tensor_doubles(s, "bias", 0, m->rows, e) : NULL;
        ok = m->bias != NULL;
    }
    if (ok && m->value == SES_FEATURE_TFIDF)
        ok = (m->idf = ses_tensor_doubles(s, "idf", 0, *width, e)) != NULL;
    if (!ok && s) ses_wrap(e, "%s", WEIGHTS);
    ses_safetensors_free(s);
    ses_free(path);
    return ok;
}

void *ses_bag_model_open(const char *dir, const ses_json *config, size_t n_labels, ses_err *e)
{
    size_t width;
    ses_bag_model *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->n_labels = n_labels;
    if (read_config(m, config, e) && read_weights(m, dir, &width, e) &&
        ses_bag_vocab_open(&m->vocab, dir, VOCAB, width, e))
        return m;
    ses_bag_model_free(m);
    return NULL;
}
