/* The list of classifiers, their settings, and the folder of a trained one. */
#include "classifier.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "base/suggest.h"
#include "fasttext_config.h"
#include "io/manifest.h"
#include "sparse_logreg.h"
#include "vectors/word_split.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT = 1, MAX_LABELS = 1 << 20, CONFIG_MAX = 1 << 28 };

/* ---- methods ---- */

static const ses_classifier_kind *const kinds[] = {
#define SES_CLASSIFIER(name) &ses_classifier_##name,
#include "classifiers.def"
#undef SES_CLASSIFIER
};

const ses_classifier_kind *ses_classifier_at(size_t i) { return i < SES_LEN(kinds) ? kinds[i] : NULL; }

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < SES_LEN(kinds) ? kinds[i]->name : NULL;
}

const ses_classifier_kind *ses_classifier_find(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    ses_fail_unknown(e, SES_EUSAGE, "method", (ses_string){ name, strlen(name) }, name_at, NULL);
    return NULL;
}

/* ---- settings ---- */

ses_words_rule ses_classifier_words(const ses_classifier_settings *s)
{
    return s->words ? SES_WORDS_BLANK : SES_WORDS_TEXT;
}

bool ses_classifier_read_words(const ses_json *config, ses_words_rule *rule, ses_err *e)
{
    const char *name = ses_json_string(ses_json_get(ses_json_get(config, "classifier"), "words"), NULL);
    return ses_words_rule_of(name, rule) ||
           ses_fail(e, SES_EFORMAT, "config.json: classifier: words: expected one of %s",
                    SES_WORDS_RULE_NAMES);
}

#define GIVEN(field) .was_set = offsetof(ses_classifier_settings, given.field)

static const ses_opt opt[] = {
    SES_OPT_CHOICE(ses_classifier_settings, words, "words", "text", "text|blank",
                   "text: lower case, punctuation marks are words; blank: words between blanks, as written",
                   GIVEN(words)),
    SES_OPT_INT(ses_classifier_settings, ngrams, "ngrams", NULL, 0, 16,
                "features are n-grams of 1 to N words; 0: 2, fasttext: 1", GIVEN(ngrams)),
    SES_OPT_INT(ses_classifier_settings, min_count, "min-count", NULL, 0, 1e9,
                "drop features with fewer occurrences in the training texts; 0: 1", GIVEN(min_count)),
    SES_OPT_CHOICE(ses_classifier_settings, counts, "counts", "default", "default|once|all",
                   "nb: count a feature once per text (default) or as often as it occurs", GIVEN(counts)),
    SES_OPT_REAL(ses_classifier_settings, alpha, "alpha", NULL, 0, 1e6,
                 "nb, nb-svm: added to the counts of features; 0: 1", GIVEN(alpha)),
    SES_OPT_REAL(ses_classifier_settings, beta, "beta", NULL, 0, 1,
                 "nb-svm: share of the linear model, the rest is Naive Bayes; 0: 0.25", GIVEN(beta)),
    SES_OPT_REAL(ses_classifier_settings, c, "c", NULL, 0, 1e9,
                 "nb-svm, logreg, cbow: inverse regularization strength; 0: 1", GIVEN(c)),
    SES_OPT_TEXT(ses_classifier_settings, vectors, "vectors", "FILE",
                 "cbow: word vectors; fasttext and --config: word vectors to start with", GIVEN(vectors),
                 .is_path = true),
    SES_OPT_INT(ses_classifier_settings, dim, "dim", NULL, 0, 65536, "fasttext: columns of vectors; 0: 50",
                GIVEN(dim)),
    SES_OPT_INT(ses_classifier_settings, buckets, "buckets", NULL, 0, 1e9,
                "fasttext: rows for n-grams; 0: 200,000", GIVEN(buckets)),
    SES_OPT_INT(ses_classifier_settings, min_chars, "min-chars", NULL, 0, 64,
                "fasttext: least length of a character n-gram", GIVEN(min_chars)),
    SES_OPT_INT(ses_classifier_settings, max_chars, "max-chars", NULL, 0, 64,
                "fasttext: largest length of a character n-gram; 0: none", GIVEN(max_chars)),
    SES_OPT_INT(ses_classifier_settings, negatives, "negatives", NULL, 0, 65536,
                "fasttext: negative samples of the loss ns; 0: 5", GIVEN(negatives)),
};
const ses_opt_table ses_classifier_option_table = { opt, SES_LEN(opt), "method" };

static bool reads(const ses_classifier_kind *k, const char *name)
{
    const char *item;
    size_t n;
    for (size_t i = 0; ses_list_at(k->settings, i, &item, &n); i++)
        if (ses_equal(item, n, name)) return true;
    return false;
}

static bool fail_unread(const ses_classifier_kind *k, const char *name, ses_err *e)
{
    char list[200];
    snprintf(list, sizeof list, "%s", k->settings);
    for (char *c = list; *c; c++)
        if (*c == '|') *c = ' ';
    return ses_fail(e, SES_EUSAGE, "--%s has no effect on method %s; its settings: %s", name, k->name,
                    *list ? list : "none");
}

bool ses_classifier_check_settings(const ses_classifier_kind *k, const ses_classifier_settings *s, ses_err *e)
{
    const struct {
        const char *name;
        bool given;
    } others[] = { { "loss", s->given.loss }, { "epochs", s->given.epochs }, { "lr", s->given.lr } };
    for (size_t i = 0; i < SES_LEN(opt); i++)
        if (*((const bool *)s + opt[i].was_set) && !reads(k, opt[i].name))
            return fail_unread(k, opt[i].name, e);
    for (size_t i = 0; i < SES_LEN(others); i++)
        if (others[i].given && !reads(k, others[i].name)) return fail_unread(k, others[i].name, e);
    return true;
}

/* ---- training ---- */

static bool check_job(const ses_classifier_kind *k, const ses_classifier_job *job, ses_err *e)
{
    bool several = false;
    if (!job->n) return ses_fail(e, SES_EARG, "no training texts");
    for (size_t i = 0; i < job->n; i++) {
        if (job->label[i] < 0 || (size_t)job->label[i] >= job->n_labels)
            return ses_fail(e, SES_EARG, "text %zu has no label", i + 1);
        several |= job->label[i] != job->label[0];
    }
    return several || k->one_class ||
           ses_fail(e, SES_EARG, "all %zu texts have the same label; expected at least two labels", job->n);
}

ses_classifier *ses_classifier_train(const ses_classifier_kind *k, const ses_classifier_job *job, ses_err *e)
{
    if (!ses_classifier_check_settings(k, &job->settings, e) || !check_job(k, job, e)) return NULL;
    ses_classifier *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    *c = (ses_classifier){ .kind = k, .n_labels = job->n_labels, .train_loss = NAN };
    c->self = k->train(job, &c->train_loss, e);
    if (c->self) return c;
    ses_classifier_free(c);
    return NULL;
}

void ses_classifier_free(ses_classifier *c)
{
    if (!c) return;
    if (c->self) c->kind->free(c->self);
    ses_free(c);
}

/* ---- the folder ---- */

bool ses_classifier_is_config(const ses_json *config)
{
    const char *type = ses_json_string(ses_json_get(config, "model_type"), NULL);
    return type && !strcmp(type, SES_CLASSIFIER_MODEL_TYPE);
}

bool ses_classifier_is_dir(const char *dir)
{
    if (ses_fasttext_is_file(dir)) return true;
    char *path = ses_path_join(dir, "config.json", NULL);
    ses_json_doc *config = path && ses_path_exists(path) ? ses_json_load(path, CONFIG_MAX, NULL) : NULL;
    bool is = config && ses_classifier_is_config(ses_json_root(config));
    ses_json_free(config);
    ses_free(path);
    return is;
}

ses_json_doc *ses_classifier_config_open(const char *path, ses_err *e)
{
    if (ses_fasttext_is_file(path)) return ses_fasttext_config(path, FORMAT, e);
    char *file = ses_path_join(path, "config.json", e);
    ses_json_doc *d = file ? ses_json_load_object(file, CONFIG_MAX, e) : NULL;
    ses_free(file);
    return d;
}

static void put_labels(const ses_classifier *c, const char *const *labels, ses_json_writer *w)
{
    char id[24];
    ses_json_member_object(w, "id2label");
    for (size_t i = 0; i < c->n_labels; i++) {
        snprintf(id, sizeof id, "%zu", i);
        ses_json_member_string(w, id, labels[i]);
    }
    ses_json_end_object(w);
    ses_json_member_object(w, "label2id");
    for (size_t i = 0; i < c->n_labels; i++) ses_json_member_int(w, labels[i], (int64_t)i);
    ses_json_end_object(w);
}

bool ses_classifier_save(const ses_classifier *c, const char *dir, const char *const *labels, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "model_type", SES_CLASSIFIER_MODEL_TYPE);
    ses_json_member_int(w, "format", FORMAT);
    ses_json_member_string(w, "method", c->kind->name);
    put_labels(c, labels, w);
    ses_json_member_object(w, "classifier");
    if (!c->kind->save(c->self, dir, w, e)) return ses_json_writer_free(w), false;
    ses_json_end_object(w);
    return ses_manifest_save_config(w, dir, e);
}

static bool check_config(const ses_json *config, const ses_classifier_kind **kind, size_t *n_labels,
                         ses_err *e)
{
    int64_t format = 0;
    const char *method = ses_json_string(ses_json_get(config, "method"), NULL);
    *n_labels = ses_json_len(ses_json_get(config, "id2label"));
    if (!ses_json_int(ses_json_get(config, "format"), &format) || format != FORMAT)
        return ses_fail(e, SES_EUNSUPPORTED, "format %lld of the classifier; this version reads format %d",
                        (long long)format, FORMAT);
    if (!method) return ses_fail(e, SES_EFORMAT, "the method is missing");
    if (!*n_labels || *n_labels > MAX_LABELS)
        return ses_fail(e, SES_EFORMAT, "id2label has %zu labels; expected 1 to %d", *n_labels, MAX_LABELS);
    ses_err unknown = { 0 };
    *kind = ses_classifier_find(method, &unknown);
    return *kind || ses_fail(e, SES_EUNSUPPORTED, "%s", unknown.msg);
}

ses_classifier *ses_classifier_open(const char *dir, const ses_json *config, ses_err *e)
{
    const ses_classifier_kind *kind;
    size_t n_labels;
    if (!check_config(config, &kind, &n_labels, e)) return ses_wrap(e, "%s: config.json", dir), NULL;
    if (!ses_fasttext_is_file(dir) && !ses_manifest_check_config(config, dir, e))
        return ses_wrap(e, "%s", dir), NULL;
    ses_classifier *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    *c = (ses_classifier){ .kind = kind, .n_labels = n_labels, .train_loss = NAN };
    c->self = kind->open(dir, config, n_labels, e);
    if (c->self) return c;
    ses_wrap(e, "%s", dir);
    ses_classifier_free(c);
    return NULL;
}

/* ---- prediction ---- */

enum { CHUNK = 64 };

typedef struct prediction {
    const ses_classifier *c;
    const ses_string *text;
    size_t n;
    double *out;
    ses_err *err; /* [chunks] */
} prediction;

static void run_chunk(void *ctx, int64_t chunk, void *scratch)
{
    prediction *p = ctx;
    size_t begin = (size_t)chunk * CHUNK, end = begin + CHUNK < p->n ? begin + CHUNK : p->n;
    (void)scratch;
    for (size_t i = begin; i < end; i++)
        if (!p->c->kind->log_probabilities(p->c->self, p->text[i], p->out + i * p->c->n_labels,
                                           &p->err[chunk]))
            return;
}

bool ses_classifier_run(const ses_classifier *c, const ses_string *text, size_t n, ses_thread_pool *pool,
                        double *out, ses_err *e)
{
    size_t chunks = (n + CHUNK - 1) / CHUNK;
    prediction p = { c, text, n, out, ses_alloc_array(chunks + 1, sizeof(ses_err), e) };
    if (!p.err) return false;
    ses_parallel_for(pool, (int64_t)chunks, run_chunk, &p);
    bool ok = true;
    for (size_t i = 0; ok && i < chunks; i++)
        ok = p.err[i].code == SES_OK || ses_fail(e, p.err[i].code, "%s", p.err[i].msg);
    ses_free(p.err);
    return ok;
}

bool ses_classifier_count_unknown(const ses_classifier *c, const ses_string *text, size_t n, size_t *unknown,
                                  ses_err *e)
{
    size_t bytes = c->n_labels * sizeof(double);
    ses_string nothing = { "", 0 };
    *unknown = 0;
    if (!c->kind->features) return true;
    double *x = ses_alloc_array(c->n_labels, 2 * sizeof *x, e);
    bool ok = x && ses_classifier_run(c, &nothing, 1, NULL, x, e);
    for (size_t i = 0; ok && i < n; i++) {
        ok = ses_classifier_run(c, &text[i], 1, NULL, x + c->n_labels, e);
        *unknown += ok && ses_trim(text[i]).n && !memcmp(x, x + c->n_labels, bytes);
    }
    ses_free(x);
    return ok;
}
