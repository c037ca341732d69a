/* cbow: logistic regression on the mean of the vectors of a text's words. Words without a vector are left
 * out; a text without any has the zero vector. The folder has the vectors: words.txt, model.safetensors with
 * vectors [words, columns] in f32, weight [rows, columns] and bias [rows] in f64. */
#include "bag_model.h"
#include "base/alloc.h"
#include "base/file.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/logreg.h"
#include "sesame/vectors.h"
#include "sparse_logreg.h"

#include <math.h>
#include <string.h>

#define WORDS "words.txt"
#define WEIGHTS "model.safetensors"

typedef struct cbow {
    ses_bag_vocab vocab; /* words only */
    size_t width, n_labels;
    float *own;          /* [words, width]; NULL: vectors are in `file` */
    const char *vectors; /* the same, possibly unaligned */
    ses_safetensors *file;
    ses_logreg model;
} cbow;

static void cbow_free(void *self)
{
    cbow *m = self;
    if (!m) return;
    ses_bag_vocab_free(&m->vocab);
    ses_free(m->own);
    ses_safetensors_free(m->file);
    ses_logreg_free(&m->model);
    ses_free(m);
}

/* ---- vectors of texts ---- */

/* x [width] = mean of the vectors of the text's words. */
static bool embed(const cbow *m, ses_string text, ses_words *w, float *x, ses_err *e)
{
    int64_t at, found = 0;
    if (!ses_words_split(w, text, m->vocab.rule, e)) return false;
    memset(x, 0, m->width * sizeof *x);
    for (size_t i = 0; i < w->n; i++) {
        const char *s = w->text.data + w->begin[i];
        if (!ses_strmap_find(&m->vocab.index, s, w->end[i] - w->begin[i], &at)) continue;
        const char *row = m->vectors + (size_t)at * m->width * sizeof *x;
        for (size_t k = 0; k < m->width; k++) {
            float v;
            memcpy(&v, row + k * sizeof v, sizeof v);
            x[k] += v;
        }
        found++;
    }
    for (size_t k = 0; found && k < m->width; k++) x[k] /= (float)found;
    return true;
}

enum { CHUNK = 64 };

typedef struct embedding {
    const cbow *m;
    const ses_string *text;
    size_t n;
    float *x;
    ses_err *err; /* [chunks] */
} embedding;

static void embed_chunk(void *ctx, int64_t chunk, void *scratch)
{
    embedding *t = ctx;
    ses_words w = { 0 };
    (void)scratch;
    for (size_t i = (size_t)chunk * CHUNK; i < t->n && i < (size_t)(chunk + 1) * CHUNK; i++)
        if (!embed(t->m, t->text[i], &w, t->x + i * t->m->width, &t->err[chunk])) break;
    ses_words_free(&w);
}

static bool embed_all(const cbow *m, const ses_classifier_job *job, float *x, ses_err *e)
{
    size_t chunks = (job->n + CHUNK - 1) / CHUNK;
    embedding t = { m, job->text, job->n, x, ses_alloc_array(chunks, sizeof(ses_err), e) };
    if (!t.err) return false;
    ses_parallel_for(job->pool, (int64_t)chunks, embed_chunk, &t);
    bool ok = true;
    for (size_t i = 0; ok && i < chunks; i++)
        ok = t.err[i].code == SES_OK || ses_fail(e, t.err[i].code, "%s", t.err[i].msg);
    ses_free(t.err);
    return ok;
}

/* ---- training ---- */

/* Words that words.txt cannot store are left out; binary files may have them. */
static bool copy_vectors(cbow *m, const ses_vectors *v, ses_err *e)
{
    int64_t n = ses_vectors_count(v);
    size_t values;
    bool fresh;
    if (!n) return ses_fail(e, SES_EFORMAT, "no vectors");
    m->width = (size_t)ses_vectors_dim(v);
    if (!ses_mul_size((size_t)n, m->width, &values)) return ses_fail(e, SES_ENOMEM, "too many vectors");
    m->own = ses_alloc_huge(values, sizeof *m->own, e);
    m->vectors = (const char *)m->own;
    for (int64_t i = 0; m->own && i < n; i++) {
        ses_string w = ses_vectors_word(v, i);
        size_t row = ses_bag_vocab_size(&m->vocab);
        if (!ses_bag_vocab_can_store(w.p, w.n)) continue;
        char *word = ses_arena_strndup(&m->vocab.names, w.p, w.n, e);
        if (!word || !ses_strmap_insert(&m->vocab.index, word, w.n, (int64_t)row, &fresh, e) ||
            !ses_vectors_get(v, i, m->own + row * m->width, e))
            return false;
    }
    if (m->own && !ses_bag_vocab_size(&m->vocab))
        return ses_fail(e, SES_EFORMAT, "no word is valid UTF-8 without line feeds");
    return m->own != NULL;
}

static bool read_vectors(cbow *m, const char *path, ses_err *e)
{
    ses_vectors *v = ses_vectors_open(path, e);
    bool ok = v && ses_vectors_read_words(v, 0, e) && copy_vectors(m, v, e);
    ses_vectors_free(v);
    return ok;
}

static bool fit(cbow *m, const ses_classifier_job *job, ses_err *e)
{
    size_t values;
    if (!ses_mul_size(job->n, m->width, &values)) return ses_fail(e, SES_ENOMEM, "too many texts");
    float *x = ses_alloc_array(values, sizeof *x, e);
    ses_logreg_options o = { .c = job->settings.c > 0 ? job->settings.c : 0, .tolerance = 1e-5 };
    bool ok = x && embed_all(m, job, x, e) &&
              ses_logreg_fit(&m->model, x, job->label, NULL, job->n, m->width, job->n_labels, &o, e);
    ses_free(x);
    return ok;
}

static void *train(const ses_classifier_job *job, double *loss, ses_err *e)
{
    const ses_classifier_settings *s = &job->settings;
    (void)loss;
    if (!s->vectors) {
        ses_fail(e, SES_EUSAGE,
                 "method cbow needs word vectors: --vectors FILE; 'sesame vectors train' makes "
                 "them");
        return NULL;
    }
    cbow *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->n_labels = job->n_labels;
    m->vocab.rule = ses_classifier_words(s);
    m->vocab.ngrams = 1;
    if (read_vectors(m, s->vectors, e) && fit(m, job, e)) return m;
    cbow_free(m);
    return NULL;
}

/* ---- files ---- */

static bool save(const void *self, const char *dir, ses_json_writer *w, ses_err *e)
{
    const cbow *m = self;
    int64_t words = (int64_t)ses_bag_vocab_size(&m->vocab), width = (int64_t)m->width,
            rows = (int64_t)m->model.rows;
    ses_json_member_string(w, "words", ses_words_rule_name(m->vocab.rule));
    char *path = ses_path_join(dir, WEIGHTS, e);
    ses_safetensors_writer *t = path ? ses_safetensors_writer_new(e) : NULL;
    bool ok =
        t &&
        ses_safetensors_writer_add(t, "vectors", SES_F32, 2, (int64_t[]){ words, width }, m->vectors, e) &&
        ses_safetensors_writer_add(t, "weight", SES_F64, 2, (int64_t[]){ rows, width }, m->model.weight, e) &&
        ses_safetensors_writer_add(t, "bias", SES_F64, 1, &rows, m->model.bias, e) &&
        ses_safetensors_save(t, path, false, e) && ses_bag_vocab_save(&m->vocab, dir, WORDS, e);
    ses_safetensors_writer_free(t);
    ses_free(path);
    return ok;
}

/* The vectors stay in the mapped file. */
static bool read_weights(cbow *m, const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, WEIGHTS, e);
    m->file = path ? ses_safetensors_open(path, e) : NULL;
    ses_free(path);
    if (!m->file) return false;
    const ses_tensor_entry *v = ses_safetensors_find(m->file, "vectors");
    if (!v || v->rank != 2 || v->dtype != SES_F32 || v->dim[0] < 1 || v->dim[1] < 1 || v->dim[0] > INT32_MAX)
        return ses_fail(e, SES_EFORMAT, "tensor vectors [words, columns] is missing");
    m->vectors = v->data;
    m->width = (size_t)v->dim[1];
    size_t rows = m->n_labels == 2 ? 1 : m->n_labels;
    m->model = (ses_logreg){ .classes = m->n_labels, .width = m->width, .rows = rows };
    double *w = ses_tensor_doubles(m->file, "weight", rows, m->width, e);
    double *b = w ? ses_tensor_doubles(m->file, "bias", 0, rows, e) : NULL;
    /* one block, as ses_logreg_fit: weights, then biases */
    m->model.weight = b ? ses_alloc_array(rows * (m->width + 1), sizeof *w, e) : NULL;
    if (m->model.weight) {
        m->model.bias = m->model.weight + rows * m->width;
        memcpy(m->model.weight, w, rows * m->width * sizeof *w);
        memcpy(m->model.bias, b, rows * sizeof *b);
    }
    ses_free(w);
    ses_free(b);
    return m->model.weight != NULL;
}

static void *open(const char *dir, const ses_json *config, size_t n_labels, ses_err *e)
{
    cbow *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->n_labels = n_labels;
    m->vocab.ngrams = 1;
    bool ok = ses_classifier_read_words(config, &m->vocab.rule, e);
    if (ok && !read_weights(m, dir, e)) ok = ses_wrap(e, "%s", WEIGHTS);
    const ses_tensor_entry *v = ok ? ses_safetensors_find(m->file, "vectors") : NULL;
    if (ok && ses_bag_vocab_open(&m->vocab, dir, WORDS, (size_t)v->dim[0], e)) return m;
    cbow_free(m);
    return NULL;
}

static bool log_probabilities(const void *self, ses_string text, double *out, ses_err *e)
{
    const cbow *m = self;
    ses_words w = { 0 };
    float *x = ses_alloc_array(m->width, sizeof *x, e);
    bool ok = x && embed(m, text, &w, x, e);
    if (ok) ses_logreg_predict(&m->model, x, out);
    for (size_t i = 0; ok && i < m->n_labels; i++) out[i] = log(fmax(out[i], 1e-300));
    ses_words_free(&w);
    ses_free(x);
    return ok;
}

static int64_t parameters(const void *self)
{
    const cbow *m = self;
    return (int64_t)(ses_bag_vocab_size(&m->vocab) * m->width + m->model.rows * (m->width + 1));
}

static int64_t features(const void *self)
{
    return (int64_t)ses_bag_vocab_size(&((const cbow *)self)->vocab);
}

const ses_classifier_kind ses_classifier_cbow = {
    .name = "cbow",
    .summary = "logistic regression on the mean of word vectors",
    .settings = "words|vectors|c",
    .train = train,
    .open = open,
    .save = save,
    .log_probabilities = log_probabilities,
    .parameters = parameters,
    .features = features,
    .free = cbow_free,
};
