/* fasttext: the mean of trained vectors of words and n-grams predicts the label. The folder has model.bin,
 * a file of fastText whose label N is __label__N, the N-th label of config.json; or its quantized form,
 * model.ftz. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "classifier.h"
#include "fasttext_config.h"
#include "vectors/fasttext/fasttext_trainer.h"
#include "vectors/word_split.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 50, EPOCHS = 10, BUCKETS = 200000 };
#define RATE 0.5

typedef struct fasttext {
    ses_fasttext_model *model;
    ses_words_rule rule;
    size_t n_labels;
    int32_t *label; /* [labels of the model]: label of the classifier */
} fasttext;

static void fasttext_free(void *self)
{
    fasttext *f = self;
    if (!f) return;
    ses_fasttext_free(f->model);
    ses_free(f->label);
    ses_free(f);
}

/* original: labels with names of their own, in the order of id2label. */
static bool map_labels(fasttext *f, bool original, ses_err *e)
{
    size_t n = ses_fasttext_n_labels(f->model);
    f->label = ses_alloc_array(n, sizeof *f->label, e);
    for (size_t i = 0; f->label && i < n; i++) {
        ses_string s = ses_fasttext_label_at(f->model, i);
        unsigned long long id = original ? i : f->n_labels;
        if (!original && s.n > 9 && s.n < 30 && !memcmp(s.p, "__label__", 9))
            id = strtoull(s.p + 9, NULL, 10);
        if (id >= f->n_labels)
            return ses_fail(e, SES_EFORMAT, "label %zu of the model is not __label__N with N below %zu", i,
                            f->n_labels);
        f->label[i] = (int32_t)id;
    }
    return f->label;
}

/* ---- training ---- */

/* All texts as words with blanks between, in one buffer. */
static bool split_texts(const ses_classifier_job *job, ses_words_rule rule, ses_buf *all, ses_string *text,
                        ses_err *e)
{
    ses_words w = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < job->n; i++) {
        ok = ses_words_split(&w, job->text[i], rule, e);
        size_t n = ok && w.n ? w.end[w.n - 1] : 0;
        ok = ok && (!n || ses_buf_append(all, w.text.data, n) || ses_buf_ok(all, e));
        text[i].n = n;
    }
    for (size_t i = 0, at = 0; ok && i < job->n; at += text[i].n, i++)
        text[i].p = all->data ? all->data + at : "";
    ses_words_free(&w);
    return ok;
}

/* Fails for a setting that has no effect beside the others. */
static bool check_options(const ses_classifier_settings *s, const ses_fasttext_options *o, ses_err *e)
{
    if (s->given.negatives && o->set.loss != SES_FASTTEXT_NEGATIVE)
        return ses_fail(e, SES_EUSAGE, "--negatives has no effect with --loss %s; use --loss ns",
                        ses_fasttext_loss_name(o->set.loss));
    if (s->given.min_chars && !s->max_chars)
        return ses_fail(e, SES_EUSAGE, "--min-chars has no effect without --max-chars");
    if (s->given.buckets && !s->max_chars && o->set.word_ngrams < 2)
        return ses_fail(e, SES_EUSAGE, "--buckets has no effect without n-grams: --ngrams 2 or --max-chars");
    return true;
}

static bool set_options(const ses_classifier_job *job, ses_fasttext_options *o, ses_err *e)
{
    const ses_classifier_settings *s = &job->settings;
    *o = ses_fasttext_defaults();
    o->set.dim = (int32_t)(s->dim ? s->dim : DIM);
    o->set.epoch = (int32_t)(s->epochs > 0 ? ceil(s->epochs) : EPOCHS);
    o->lr = s->lr > 0 ? s->lr : RATE;
    o->set.word_ngrams = (int32_t)(s->ngrams ? s->ngrams : 1);
    o->set.min_count = (int32_t)(s->min_count ? s->min_count : 1);
    o->set.bucket = (int32_t)(s->buckets ? s->buckets : BUCKETS);
    o->set.minn = (int32_t)s->min_chars;
    o->set.maxn = (int32_t)s->max_chars;
    o->set.neg = (int32_t)(s->negatives ? s->negatives : o->set.neg);
    o->pretrained = s->vectors;
    o->seed = (int64_t)(job->seed & INT64_MAX);
    return (!s->loss || ses_fasttext_loss_of(s->loss, &o->set.loss, e)) && check_options(s, o, e) &&
           ses_fasttext_check(o, e);
}

static bool show(void *ctx, int64_t done, int64_t total)
{
    const ses_classifier_job *job = ctx;
    return !job->progress || job->progress(job->ctx, done, total, (double)NAN);
}

static bool fit(fasttext *f, const ses_classifier_job *job, double *loss, ses_err *e)
{
    ses_fasttext_options o;
    ses_buf all = { 0 };
    char(*number)[24] = ses_alloc_array(job->n_labels, sizeof *number, e);
    ses_string *text = ses_alloc_array(job->n, sizeof *text, e),
               *name = ses_alloc_array(job->n_labels, sizeof *name, e);
    ses_fasttext_run run = { .pool = job->pool };
    f->model = ses_alloc(sizeof *f->model, e);
    bool ok = number && text && name && f->model && set_options(job, &o, e) &&
              split_texts(job, f->rule, &all, text, e);
    for (size_t i = 0; ok && i < job->n_labels; i++) {
        int n = snprintf(number[i], sizeof number[i], "%zu", i);
        name[i] = (ses_string){ number[i], (size_t)n };
    }
    if (ok) {
        o.progress = show;
        o.ctx = (void *)job;
        ses_fasttext_texts t = { .text = text,
                                 .n = job->n,
                                 .label = job->label,
                                 .label_name = name,
                                 .n_labels = job->n_labels,
                                 .name = "training texts",
                                 .first_line = 1 };
        ok = ses_fasttext_train(&o, &t, &run, f->model, e) && map_labels(f, false, e);
        *loss = run.loss;
    }
    ses_buf_free(&all);
    ses_free(number);
    ses_free(text);
    ses_free(name);
    return ok;
}

static void *train(const ses_classifier_job *job, double *loss, ses_err *e)
{
    fasttext *f = ses_alloc(sizeof *f, e);
    if (!f) return NULL;
    f->n_labels = job->n_labels;
    f->rule = ses_classifier_words(&job->settings);
    if (fit(f, job, loss, e)) return f;
    fasttext_free(f);
    return NULL;
}

/* ---- files ---- */

static bool save(const void *self, const char *dir, ses_json_writer *w, ses_err *e)
{
    const fasttext *f = self;
    bool quantized = ses_fasttext_matrix_is_quantized(&f->model->in);
    char *path = ses_path_join(dir, quantized ? "model.ftz" : "model.bin", e);
    ses_json_member_string(w, "words", ses_words_rule_name(f->rule));
    bool ok = path && ses_fasttext_save(f->model, path, false, e);
    ses_free(path);
    return ok;
}

static void *open(const char *dir, const ses_json *config, size_t n_labels, ses_err *e)
{
    bool original = ses_fasttext_is_file(dir);
    char *path = original ? ses_strdup(dir, e) : ses_path_join(dir, "model.ftz", e);
    fasttext *f = path ? ses_alloc(sizeof *f, e) : NULL;
    bool ok = f && ses_classifier_read_words(config, &f->rule, e);
    if (ok && !ses_path_exists(path)) {
        ses_free(path);
        path = ses_path_join(dir, "model.bin", e);
        ok = path;
    }
    if (ok) {
        f->n_labels = n_labels;
        f->model = ses_fasttext_open(path, e);
        ok = f->model && (f->model->set.model == SES_FASTTEXT_SUPERVISED ||
                          ses_fail(e, SES_EFORMAT, "%s: the model has no labels", path));
        if (ok && !map_labels(f, original, e)) ok = ses_wrap(e, "%s", path);
    }
    ses_free(path);
    if (ok) return f;
    fasttext_free(f);
    return NULL;
}

/* ---- probabilities ---- */

static bool log_probabilities(const void *self, ses_string text, double *out, ses_err *e)
{
    const fasttext *f = self;
    size_t n = ses_fasttext_n_labels(f->model);
    ses_words w = { 0 };
    ses_fasttext_line line = { 0 };
    float *p = ses_alloc_array(n, sizeof *p, e);
    double sum = 0;
    bool ok = p && ses_words_split(&w, text, f->rule, e) &&
              ses_fasttext_line_of(f->model, w.n ? w.text.data : "", w.n ? w.end[w.n - 1] : 0, &line, e) &&
              ses_fasttext_probabilities(f->model, &line, p, e);
    for (size_t i = 0; i < f->n_labels; i++) out[i] = 0;
    for (size_t i = 0; ok && i < n; i++) out[f->label[i]] = p[i];
    for (size_t i = 0; i < f->n_labels; i++) sum += out[i];
    for (size_t i = 0; i < f->n_labels; i++)
        out[i] = sum > 0 ? log(fmax(out[i] / sum, 1e-300)) : -log((double)f->n_labels);
    ses_fasttext_line_free(&line);
    ses_words_free(&w);
    ses_free(p);
    return ok;
}

static int64_t parameters(const void *self)
{
    const fasttext *f = self;
    return (f->model->in.rows + f->model->out.rows) * f->model->set.dim;
}

static int64_t features(const void *self) { return ((const fasttext *)self)->model->in.rows; }

const ses_classifier_kind ses_classifier_fasttext = {
    .name = "fasttext",
    .summary = "fastText: mean of trained vectors of words and n-grams",
    .settings = "words|ngrams|min-count|vectors|dim|buckets|min-chars|max-chars|negatives|loss|epochs|lr",
    .train = train,
    .open = open,
    .save = save,
    .log_probabilities = log_probabilities,
    .parameters = parameters,
    .features = features,
    .free = fasttext_free,
};
