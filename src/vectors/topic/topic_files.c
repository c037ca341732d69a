/* Folders of topic models: see topic_model.h. */
#define _POSIX_C_SOURCE 200809L
#include "topic_model.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "io/manifest.h"
#include "io/text_reader.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODEL_TYPE "sesame-topics"
enum { MAX_CONFIG = 64 << 20, MAX_WORD = 256 << 20 };

/* ---- writing ---- */

static void put_reals(ses_json_writer *w, const char *key, const double *x, size_t n)
{
    ses_json_member_array(w, key);
    for (size_t i = 0; i < n; i++) ses_json_put_real(w, x[i]);
    ses_json_end_array(w);
}

static void put_lda(const ses_topic_model *m, ses_json_writer *w)
{
    const ses_lda_settings *s = &m->lda.s;
    ses_json_member_int(w, "chunk", s->chunk);
    ses_json_member_int(w, "iterations", s->iterations);
    ses_json_member_real(w, "decay", s->decay);
    ses_json_member_real(w, "offset", s->offset);
    ses_json_member_real(w, "threshold", s->threshold);
    ses_json_member_real(w, "alpha", s->alpha);
    ses_json_member_real(w, "eta", s->eta);
    ses_json_member_bool(w, "batch", s->batch);
    ses_json_member_uint(w, "seed", s->seed);
    ses_json_member_int(w, "passes", m->s.passes);
    ses_json_member_object(w, "state");
    ses_json_member_int(w, "pass", m->lda.pass);
    ses_json_member_int(w, "next", m->lda.next);
    ses_json_member_int(w, "updates", m->lda.updates);
    ses_json_member_real(w, "bound", m->lda.bound);
    ses_json_member_real(w, "tokens", m->lda.tokens);
    ses_json_end_object(w);
    put_reals(w, "perplexity", m->perplexity, m->n_perplexity);
}

static void put_lsa(const ses_topic_model *m, ses_json_writer *w)
{
    ses_json_member_string(w, "weights", m->s.counts ? "count" : "tf-idf");
    ses_json_member_int(w, "oversampling", m->s.lsa.oversampling);
    ses_json_member_int(w, "rounds", m->lsa.rounds);
    ses_json_member_real(w, "tolerance", m->s.lsa.tolerance);
    ses_json_member_uint(w, "seed", m->s.lsa.seed);
}

static bool write_config(const ses_topic_model *m, const char *dir, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", MODEL_TYPE);
    ses_json_member_string(w, "method", m->s.method == SES_TOPICS_LDA ? "lda" : "lsa");
    ses_json_member_int(w, "topics", ses_topic_count(m));
    ses_json_member_int(w, "words", m->vocab.words);
    ses_json_member_int(w, "texts", m->vocab.all_texts);
    ses_json_member_string(w, "texts_sha256", m->texts_sha);
    ses_json_member_string(w, "split", m->vocab.split == SES_WORDS_RUNS ? "text" : "blank");
    ses_json_member_bool(w, "stop_words", m->s.terms.stop_words);
    ses_json_member_int(w, "min_df", m->s.terms.min_texts);
    ses_json_member_real(w, "max_df", m->s.terms.max_share);
    ses_json_member_int(w, "vocabulary", m->s.terms.max_words);
    if (m->s.method == SES_TOPICS_LDA)
        put_lda(m, w);
    else
        put_lsa(m, w);
    put_reals(w, "umass", m->umass, (size_t)ses_topic_count(m));
    put_reals(w, "npmi", m->npmi, (size_t)ses_topic_count(m));
    return ses_manifest_save_config(w, dir, e);
}

/* Rows of the tensor "topics": LDA keeps its transpose. */
static bool topics_source(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    const ses_topic_model *m = ctx;
    char *to = out;
    (void)e;
    while (bytes) {
        size_t i = offset / sizeof(double), at = offset % sizeof(double), n = sizeof(double) - at;
        int64_t topic = (int64_t)i / m->vocab.words, word = (int64_t)i % m->vocab.words;
        const double *x = m->s.method == SES_TOPICS_LDA ? &m->lda.lambda[word * m->lda.s.topics + topic]
                                                        : &m->lsa.vector[i];
        if (n > bytes) n = bytes;
        memcpy(to, (const char *)x + at, n);
        to += n, offset += n, bytes -= n;
    }
    return true;
}

static bool write_tensors(const ses_topic_model *m, const char *dir, ses_err *e)
{
    int64_t dim[] = { ses_topic_count(m), m->vocab.words };
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    char *path = w ? ses_path_join(dir, "model.safetensors", e) : NULL;
    bool ok = path &&
              ses_safetensors_writer_add_source(w, "topics", SES_F64, 2, dim, topics_source, (void *)m, e) &&
              ses_safetensors_writer_add(w, "word_texts", SES_I64, 1, dim + 1, m->vocab.texts, e) &&
              ses_safetensors_writer_add(w, "word_count", SES_I64, 1, dim + 1, m->vocab.count, e) &&
              (m->s.method == SES_TOPICS_LDA ||
               ses_safetensors_writer_add(w, "singular_values", SES_F64, 1, dim, m->lsa.value, e)) &&
              ses_safetensors_save(w, path, false, e);
    ses_safetensors_writer_free(w);
    ses_free(path);
    return ok;
}

static bool write_vocab(const ses_topic_model *m, const char *dir, ses_err *e)
{
    ses_buf out = { 0 };
    char *path = ses_path_join(dir, "vocab.txt", e);
    for (size_t i = 0; i < m->vocab.ids.count; i++) {
        ses_buf_append(&out, m->vocab.ids.entry[i].key, m->vocab.ids.entry[i].len);
        ses_buf_put(&out, '\n');
    }
    bool ok = path && ses_buf_ok(&out, e) && ses_file_write(path, out.data, out.len, false, e);
    ses_free(path);
    ses_buf_free(&out);
    return ok;
}

static ses_json_doc *open_config(const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, "config.json", e);
    ses_json_doc *doc = path ? ses_json_load_object(path, MAX_CONFIG, e) : NULL;
    ses_free(path);
    const char *type = doc ? ses_json_string(ses_json_get(ses_json_root(doc), "model_type"), NULL) : NULL;
    if (doc && (!type || strcmp(type, MODEL_TYPE) != 0)) {
        ses_json_free(doc);
        ses_fail(e, SES_EARG, "%s is not a topic model: its config.json has no model_type \"" MODEL_TYPE "\"",
                 dir);
        return NULL;
    }
    return doc;
}

bool ses_topic_save(const ses_topic_model *m, const char *dir, bool overwrite, ses_err *e)
{
    char *parent = ses_path_parent(dir, e), name[64];
    if (!parent) return false;
    snprintf(name, sizeof name, ".sesame-topics-%ld", (long)getpid());
    char *stage = ses_path_join(parent, name, e);
    bool ok = stage != NULL;
    if (ok && ses_path_exists(dir)) { /* replaces topic models only */
        ses_json_doc *old = overwrite ? open_config(dir, e) : NULL;
        if (!overwrite) ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", dir);
        ok = old != NULL;
        ses_json_free(old);
    }
    if (ok) {
        ok = ses_dir_make(stage, e) && write_vocab(m, stage, e) && write_tensors(m, stage, e) &&
             write_config(m, stage, e) && ses_dir_place(stage, dir, overwrite, e);
        if (!ok) ses_dir_remove(stage, NULL);
    }
    ses_free(stage), ses_free(parent);
    return ok;
}

/* ---- reading ---- */

static bool get_int(const ses_json *o, const char *key, int64_t least, int64_t most, int64_t *out, ses_err *e)
{
    if (ses_json_int(ses_json_get(o, key), out) && *out >= least && *out <= most) return true;
    return ses_fail(e, SES_EFORMAT, "config.json: \"%s\": expected an integer from %lld to %lld", key,
                    (long long)least, (long long)most);
}

static bool get_real(const ses_json *o, const char *key, double least, double most, double *out, ses_err *e)
{
    if (ses_json_real(ses_json_get(o, key), out) && *out >= least && *out <= most) return true;
    return ses_fail(e, SES_EFORMAT, "config.json: \"%s\": expected a number from %g to %g", key, least, most);
}

static bool get_choice(const ses_json *o, const char *key, const char *first, const char *second,
                       bool *is_second, ses_err *e)
{
    const char *s = ses_json_string(ses_json_get(o, key), NULL);
    if (!s || (strcmp(s, first) != 0 && strcmp(s, second) != 0))
        return ses_fail(e, SES_EFORMAT, "config.json: \"%s\": expected \"%s\" or \"%s\"", key, first, second);
    *is_second = !strcmp(s, second);
    return true;
}

static bool get_bool(const ses_json *o, const char *key, bool *out, ses_err *e)
{
    return ses_json_bool(ses_json_get(o, key), out) ||
           ses_fail(e, SES_EFORMAT, "config.json: \"%s\": expected true or false", key);
}

/* The numbers of an array, followed by NaN up to `least` numbers; null is NaN. *n may be NULL. */
static double *get_reals(const ses_json *list, size_t least, size_t *n, ses_err *e)
{
    size_t len = ses_json_len(list), size = len > least ? len : least;
    double *x = ses_alloc_array(size + 1, sizeof *x, e);
    for (size_t i = 0; x && i < size; i++)
        if (!ses_json_real(ses_json_at(list, i), &x[i])) x[i] = NAN;
    if (n) *n = len;
    return x;
}

static bool read_lda(ses_topic_model *m, const ses_json *o, ses_err *e)
{
    ses_lda_settings *s = &m->s.lda;
    const ses_json *state = ses_json_get(o, "state");
    return get_int(o, "chunk", 1, INT64_MAX, &s->chunk, e) &&
           get_int(o, "iterations", 1, INT64_MAX, &s->iterations, e) &&
           get_real(o, "decay", 0, 1, &s->decay, e) && get_real(o, "offset", 1, 1e9, &s->offset, e) &&
           get_real(o, "threshold", 0, 1e9, &s->threshold, e) &&
           get_real(o, "alpha", 1e-300, 1e6, &s->alpha, e) && get_real(o, "eta", 1e-300, 1e6, &s->eta, e) &&
           get_bool(o, "batch", &s->batch, e) && get_int(o, "passes", 0, INT32_MAX, &m->s.passes, e) &&
           get_int(state, "pass", 0, INT32_MAX, &m->lda.pass, e) &&
           get_int(state, "next", 0, m->vocab.all_texts, &m->lda.next, e) &&
           get_int(state, "updates", 0, INT64_MAX, &m->lda.updates, e) &&
           get_real(state, "bound", -1e300, 1e300, &m->lda.bound, e) &&
           get_real(state, "tokens", 0, 1e300, &m->lda.tokens, e) &&
           (m->perplexity = get_reals(ses_json_get(o, "perplexity"), 0, &m->n_perplexity, e));
}

static bool read_config(ses_topic_model *m, const ses_json *o, int64_t *topics, int64_t *words, ses_err *e)
{
    bool lsa = false, blank = false;
    const char *sha = ses_json_string(ses_json_get(o, "texts_sha256"), NULL);
    if (sha && strlen(sha) == 64) memcpy(m->texts_sha, sha, 65);
    if (!get_choice(o, "method", "lda", "lsa", &lsa, e) ||
        !get_choice(o, "split", "text", "blank", &blank, e) ||
        !get_bool(o, "stop_words", &m->s.terms.stop_words, e) ||
        !get_int(o, "min_df", 0, INT64_MAX, &m->s.terms.min_texts, e) ||
        !get_real(o, "max_df", 0, 1, &m->s.terms.max_share, e) ||
        !get_int(o, "vocabulary", 0, INT64_MAX, &m->s.terms.max_words, e) ||
        !get_int(o, "topics", 1, 1 << 16, topics, e) || !get_int(o, "words", 1, INT32_MAX, words, e) ||
        !get_int(o, "texts", 1, INT64_MAX, &m->vocab.all_texts, e))
        return false;
    m->s.method = lsa ? SES_TOPICS_LSA : SES_TOPICS_LDA;
    m->s.terms.split = m->vocab.split = blank ? SES_WORDS_BLANK : SES_WORDS_RUNS;
    m->s.lda.topics = *topics, m->s.lsa.topics = *topics;
    ses_json_uint(ses_json_get(o, "seed"), lsa ? &m->s.lsa.seed : &m->s.lda.seed);
    m->umass = get_reals(ses_json_get(o, "umass"), (size_t)*topics, NULL, e);
    m->npmi = m->umass ? get_reals(ses_json_get(o, "npmi"), (size_t)*topics, NULL, e) : NULL;
    if (!m->npmi) return false;
    if (!lsa) {
        bool ok = read_lda(m, o, e);
        m->cap_perplexity = m->n_perplexity;
        return ok;
    }
    return get_choice(o, "weights", "tf-idf", "count", &m->s.counts, e) &&
           get_int(o, "oversampling", 0, 1 << 16, &m->s.lsa.oversampling, e) &&
           get_int(o, "rounds", 0, INT32_MAX, &m->lsa.rounds, e) &&
           get_real(o, "tolerance", 0, 1, &m->s.lsa.tolerance, e);
}

static bool read_vocab(ses_topic_model *m, const char *dir, int64_t words, ses_err *e)
{
    ses_text_reader r = { 0 };
    const char *s;
    size_t n;
    char *path = ses_path_join(dir, "vocab.txt", e);
    bool ok = path && ses_text_reader_open(&r, path, MAX_WORD, e), any = true;
    while (ok && any) {
        ok = ses_text_reader_next(&r, &s, &n, e);
        any = ok && s;
        if (any && m->vocab.words == words)
            ok = ses_fail(e, SES_EFORMAT, "vocab.txt: line %lld; expected %lld words", (long long)words + 1,
                          (long long)words);
        else if (any)
            ok = ses_term_vocab_add(&m->vocab, s, n, e) ||
                 ses_wrap(e, "vocab.txt: line %lld", (long long)m->vocab.words + 1);
    }
    if (ok && m->vocab.words != words)
        ok = ses_fail(e, SES_EFORMAT, "vocab.txt: %lld words; expected %lld", (long long)m->vocab.words,
                      (long long)words);
    ses_text_reader_free(&r);
    ses_free(path);
    return ok;
}

/* The data of a tensor of this shape (second 0: one axis). */
static const void *need(const ses_safetensors *f, const char *name, ses_dtype dtype, int64_t first,
                        int64_t second, ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(f, name);
    if (x && x->dtype == dtype && x->rank == (second ? 2 : 1) && x->dim[0] == first &&
        (!second || x->dim[1] == second))
        return x->data;
    ses_fail(e, SES_EFORMAT,
             "model.safetensors: tensor \"%s\" is missing or has another type or shape; "
             "expected %lld%s%lld numbers of 64 bits",
             name, (long long)first, second ? " x " : " + ", (long long)second);
    return NULL;
}

static bool read_lda_topics(ses_topic_model *m, const char *data, int64_t topics, int64_t words, ses_err *e)
{
    int64_t pass = m->lda.pass, next = m->lda.next, updates = m->lda.updates;
    double bound = m->lda.bound, tokens = m->lda.tokens;
    double *lambda = ses_alloc_array((size_t)words, (size_t)topics * sizeof *lambda, e);
    if (!lambda) return false;
    for (int64_t k = 0; k < topics; k++)
        for (int64_t w = 0; w < words; w++)
            memcpy(&lambda[w * topics + k], data + (k * words + w) * (int64_t)sizeof *lambda, sizeof *lambda);
    bool ok = ses_lda_new(&m->lda, &m->s.lda, words, lambda, m->pool, e);
    m->lda.pass = pass, m->lda.next = next, m->lda.updates = updates;
    m->lda.bound = bound, m->lda.tokens = tokens;
    ses_free(lambda);
    return ok;
}

static bool read_lsa_topics(ses_topic_model *m, const void *data, const void *value, int64_t topics,
                            int64_t words, ses_err *e)
{
    ses_lsa *r = &m->lsa;
    r->topics = topics, r->words = words;
    r->value = ses_alloc_array((size_t)topics, sizeof *r->value, e);
    r->vector = r->value ? ses_alloc_array((size_t)topics, (size_t)words * sizeof *r->vector, e) : NULL;
    if (!r->vector) return false;
    memcpy(r->value, value, (size_t)topics * sizeof *r->value);
    memcpy(r->vector, data, (size_t)topics * (size_t)words * sizeof *r->vector);
    for (int64_t i = 0; i < topics * words; i++)
        if (!isfinite(r->vector[i]) || !isfinite(r->value[i / words]))
            return ses_fail(e, SES_EFORMAT, "model.safetensors: topic %lld: not a finite number",
                            (long long)(i / words) + 1);
    return true;
}

static bool read_tensors(ses_topic_model *m, const char *dir, int64_t topics, int64_t words, ses_err *e)
{
    char *path = ses_path_join(dir, "model.safetensors", e);
    ses_safetensors *f = path ? ses_safetensors_open(path, e) : NULL;
    bool lsa = m->s.method == SES_TOPICS_LSA;
    const void *data = f ? need(f, "topics", SES_F64, topics, words, e) : NULL;
    const void *texts = data ? need(f, "word_texts", SES_I64, words, 0, e) : NULL;
    const void *count = texts ? need(f, "word_count", SES_I64, words, 0, e) : NULL;
    const void *value = count && lsa ? need(f, "singular_values", SES_F64, topics, 0, e) : NULL;
    bool ok = count && (!lsa || value);
    m->vocab.texts = ok ? ses_alloc_array((size_t)words, sizeof *m->vocab.texts, e) : NULL;
    m->vocab.count = m->vocab.texts ? ses_alloc_array((size_t)words, sizeof *m->vocab.count, e) : NULL;
    ok = m->vocab.count != NULL;
    if (ok) {
        memcpy(m->vocab.texts, texts, (size_t)words * sizeof *m->vocab.texts);
        memcpy(m->vocab.count, count, (size_t)words * sizeof *m->vocab.count);
        ok = lsa ? read_lsa_topics(m, data, value, topics, words, e)
                 : read_lda_topics(m, data, topics, words, e);
    }
    for (int64_t w = 0; ok && w < words; w++)
        if (m->vocab.texts[w] < 0)
            ok = ses_fail(e, SES_EFORMAT, "model.safetensors: word_texts: a negative number");
    ses_safetensors_free(f);
    ses_free(path);
    return ok;
}

bool ses_topic_open(ses_topic_model *m, const char *dir, int threads, ses_err *e)
{
    int64_t topics, words;
    ses_json_doc *doc = open_config(dir, e);
    if (!doc) return false;
    m->pool = ses_thread_pool_new(threads, e);
    bool ok = m->pool && ((ses_manifest_check_config(ses_json_root(doc), dir, e) &&
                           read_config(m, ses_json_root(doc), &topics, &words, e) &&
                           read_vocab(m, dir, words, e) && read_tensors(m, dir, topics, words, e)) ||
                          ses_wrap(e, "%s", dir));
    ses_json_free(doc);
    return ok;
}
