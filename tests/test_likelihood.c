/* Likelihoods and scores of task files against the lm-evaluation-harness (tests/fixtures/likelihood.py), and
 * the same bits in passes of any size, with and without shared contexts. */
#include "check.h"

#include "base/alloc.h"
#include "tune/eval/eval_likelihood.h"

#include "sesame/base.h"

#include <math.h>
#include <string.h>

#define DATA "tests/fixtures/likelihood/"
enum { MAX_REQUESTS = 64 };

/* Log-likelihoods and texts of an evaluation, from its log. */
typedef struct logged {
    double logprob[MAX_REQUESTS];
    bool greedy[MAX_REQUESTS];
    char text[MAX_REQUESTS][80];
    size_t n;
} logged;

static bool take_line(void *ctx, const char *line, size_t n, ses_err *e)
{
    logged *l = ctx;
    if (n == 1) return true; /* the line end */
    ses_json_doc *doc = ses_json_parse(line, n, e);
    if (!CHECK(doc && l->n < MAX_REQUESTS)) return false;
    const ses_json *v = ses_json_root(doc);
    const char *text = ses_json_string(ses_json_get(v, "generated"), NULL);
    snprintf(l->text[l->n], sizeof l->text[0], "%s", text ? text : "");
    ses_json_real(ses_json_get(v, "logprob"), &l->logprob[l->n]);
    ses_json_bool(ses_json_get(v, "is_greedy"), &l->greedy[l->n]);
    l->n++;
    ses_json_free(doc);
    return true;
}

typedef struct model {
    const char *name, *golden;
    ses_model *m;
    ses_tokenizer *t;
    char dir[80];
} model;

static const struct {
    const char *name, *golden;
} models[] = { { "gpt", "tests/golden/gpt2-lm" },
               { "opt", "tests/golden/opt-lm" },
               { "bart", "tests/golden/bart-lm" },
               { "t5", "tests/golden/t5-v1.1" },
               { "bert", "tests/golden/bert-masked-lm" } };

static const char *data_of(const char *task)
{
    return !strcmp(task, "rolling")                              ? DATA "texts.jsonl"
           : !strcmp(task, "words") || !strcmp(task, "generate") ? DATA "words.txt"
                                                                 : DATA "choice.tsv";
}

static bool evaluate(const model *x, const char *task, int64_t shots, const ses_likelihood_options *how,
                     logged *l, ses_eval_likelihood_result *r, ses_err *e)
{
    char path[128];
    snprintf(path, sizeof path, DATA "%s.json", task);
    ses_eval_task *t = ses_eval_task_open(path, e);
    ses_eval_likelihood_options o = { .prompts = { .file = data_of(task), .shots = shots },
                                      .likelihood = *how,
                                      .log = take_line,
                                      .log_ctx = l };
    memset(l, 0, sizeof *l);
    bool ok = t && ses_eval_likelihood_run(x->m, x->t, x->dir, t, &o, r, e);
    ses_eval_task_free(t);
    return ok;
}

/* ---- against the harness ---- */

static void check_scores(const ses_json *expected, const ses_eval_likelihood_result *r, const char *what)
{
    for (size_t i = 0; i < ses_json_len(expected); i++) {
        double want = 0, got = NAN;
        const char *name = ses_json_key(expected, i, NULL);
        ses_json_real(ses_json_at(expected, i), &want);
        for (size_t k = 0; k < r->n_scores; k++)
            if (!strcmp(ses_eval_metric_name[r->score[k].metric], name)) got = r->score[k].value;
        double tolerance =
            !strncmp(name, "acc", 3) || !strcmp(name, "exact_match") ? 0 : 1e-5 * fmax(1, want);
        CHECK_MSG(fabs(got - want) <= tolerance, "%s: %s is %.9g, expected %.9g", what, name, got, want);
    }
}

static void check_case(const model *x, const char *key, const ses_json *expected)
{
    ses_err e = { 0 };
    char task[32], what[64];
    logged l;
    ses_eval_likelihood_result r;
    const char *dash = strrchr(key, '-');
    snprintf(task, sizeof task, "%.*s", (int)(dash - key), key);
    snprintf(what, sizeof what, "%s %s", x->name, key);
    if (!CHECK_MSG(evaluate(x, task, dash[1] - '0', &(ses_likelihood_options){ 0 }, &l, &r, &e), "%s: %s",
                   what, e.msg))
        return;
    const ses_json *logprobs = ses_json_get(expected, "logprobs"), *greedy = ses_json_get(expected, "greedy"),
                   *texts = ses_json_get(expected, "texts");
    double worst = 0;
    CHECK_MSG(l.n == ses_json_len(logprobs) + ses_json_len(texts), "%s: %zu requests", what, l.n);
    for (size_t i = 0; i < ses_json_len(logprobs) && i < l.n; i++) {
        double want = 0;
        bool is_greedy = l.greedy[i];
        ses_json_real(ses_json_at(logprobs, i), &want);
        worst = fmax(worst, fabs(l.logprob[i] - want));
        if (greedy) ses_json_bool(ses_json_at(greedy, i), &is_greedy);
        CHECK_MSG(is_greedy == l.greedy[i], "%s: request %zu is_greedy", what, i);
    }
    CHECK_MSG(worst < 1e-3, "%s: differs by %g nat", what, worst);
    for (size_t i = 0; i < ses_json_len(texts) && i < l.n; i++)
        CHECK_MSG(!strcmp(l.text[i], ses_json_string(ses_json_at(texts, i), NULL)), "%s: text %zu is \"%s\"",
                  what, i, l.text[i]);
    check_scores(ses_json_get(expected, "scores"), &r, what);
}

/* ---- the same bits ---- */

static void check_bits(const model *x, const char *task, int64_t shots)
{
    static const ses_likelihood_options how[] = { { .no_sharing = true, .pass_tokens = 1 },
                                                  { .pass_tokens = 1 },
                                                  { .pass_tokens = 37 },
                                                  { .pass_tokens = 100 },
                                                  { .no_sharing = true } };
    ses_err e = { 0 };
    logged all, l;
    ses_eval_likelihood_result r, s;
    if (!CHECK_MSG(evaluate(x, task, shots, &(ses_likelihood_options){ 0 }, &all, &r, &e), "%s", e.msg))
        return;
    for (size_t i = 0; i < SES_LEN(how); i++) {
        if (!CHECK_MSG(evaluate(x, task, shots, &how[i], &l, &s, &e), "%s", e.msg)) return;
        bool same = l.n == all.n && !memcmp(l.logprob, all.logprob, sizeof l.logprob) &&
                    !memcmp(l.greedy, all.greedy, sizeof l.greedy);
        CHECK_MSG(same, "%s %s: other bits with setting %zu", x->name, task, i);
        CHECK(s.n_scores == r.n_scores && s.stats.truncated == r.stats.truncated);
        CHECK_MSG(r.stats.tokens_read <= s.stats.tokens_read, "%s %s: sharing reads more tokens", x->name,
                  task);
    }
}

static void check_model(const ses_json *expected, ses_device *dev, size_t i)
{
    ses_err e = { 0 };
    model x = { .name = models[i].name, .golden = models[i].golden };
    snprintf(x.dir, sizeof x.dir, DATA "%s", x.name);
    x.m = ses_model_open(x.golden, dev, NULL, &e);
    x.t = x.m ? ses_tokenizer_open(x.dir, &e) : NULL;
    if (CHECK_MSG(x.t, "%s", e.msg)) {
        for (size_t k = 0; k < ses_json_len(expected); k++)
            check_case(&x, ses_json_key(expected, k, NULL), ses_json_at(expected, k));
        check_bits(&x, "choice", 0);
        check_bits(&x, "choice", 2);
        check_bits(&x, "rolling", 0);
        if (i < 4) check_bits(&x, "empty", 0);
    }
    ses_tokenizer_free(x.t);
    ses_model_free(x.m);
}

/* A masked model does not generate text, and has no token for an empty context to begin with. */
static void test_masked(ses_device *dev)
{
    ses_err e = { 0 };
    logged l;
    ses_eval_likelihood_result r;
    model x = { .name = "bert", .dir = DATA "bert" };
    x.m = ses_model_open(models[4].golden, dev, NULL, &e);
    x.t = ses_tokenizer_open(x.dir, &e);
    if (CHECK_MSG(x.m && x.t, "%s", e.msg)) {
        CHECK(!evaluate(&x, "generate", 0, &(ses_likelihood_options){ 0 }, &l, &r, &e) &&
              e.code == SES_EUNSUPPORTED && strstr(e.msg, "cannot generate text"));
        e = (ses_err){ 0 };
        CHECK_MSG(evaluate(&x, "empty", 0, &(ses_likelihood_options){ 0 }, &l, &r, &e) && l.n == 42, "%s",
                  e.msg);
    }
    ses_tokenizer_free(x.t);
    ses_model_free(x.m);
}

/* ---- requests ---- */

static void test_requests(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(models[0].golden, dev, NULL, &e);
    ses_tokenizer *t = ses_tokenizer_open(DATA "gpt", &e);
    ses_likelihood *l = m && t ? ses_likelihood_new(m, t, DATA "gpt", NULL, &e) : NULL;
    if (!CHECK_MSG(l, "%s", e.msg)) return;
    ses_string context = { "the dog ", 8 }, dog = { "sat", 3 };
    CHECK(ses_likelihood_max_length(l) == 24 && ses_likelihood_kind_of(l) == SES_LIKELIHOOD_CAUSAL);
    CHECK(ses_likelihood_add(l, context, dog, &e) &&
          ses_likelihood_add(l, (ses_string){ "the dog", 7 }, (ses_string){ " sat", 4 }, &e));
    CHECK(ses_likelihood_add_text(l, (ses_string){ "", 0 }, &e));
    CHECK(ses_likelihood_run(l, &e));
    double first = ses_likelihood_at(l, 0)->logprob;
    CHECK(first < 0 && first == ses_likelihood_at(l, 1)->logprob); /* blanks move to the continuation */
    CHECK(ses_likelihood_at(l, 2)->tokens == 0 && ses_likelihood_at(l, 2)->logprob == 0);
    CHECK(ses_likelihood_add(l, context, dog, &e) && ses_likelihood_run(l, &e));
    CHECK(ses_likelihood_at(l, 3)->logprob == first && ses_likelihood_get_stats(l).requests == 4);
    e = (ses_err){ 0 };
    CHECK(!ses_likelihood_add(l, (ses_string){ "the dog", 7 }, (ses_string){ "", 0 }, &e) &&
          strstr(e.msg, "has no tokens"));
    char longer[400];
    memset(longer, 'x', sizeof longer);
    for (size_t i = 1; i < sizeof longer; i += 2) longer[i] = ' ';
    e = (ses_err){ 0 };
    CHECK(!ses_likelihood_add(l, (ses_string){ "the dog", 7 }, (ses_string){ longer, sizeof longer }, &e) &&
          strstr(e.msg, "more than the model accepts (24)"));
    CHECK(ses_likelihood_rstrip((ses_string){ "a \t\xC2\xA0", 5 }) == 1 &&
          ses_likelihood_rstrip(context) == 7 && ses_likelihood_rstrip((ses_string){ "  ", 2 }) == 0);
    ses_likelihood_free(l);
    ses_tokenizer_free(t);
    ses_model_free(m);
}

int main(void)
{
    ses_err e = { 0 };
    for (int threads = 1; threads <= 2; threads++) {
        ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = threads }, &e);
        ses_json_doc *doc = ses_json_load(DATA "expected.json", 1 << 20, &e);
        if (!CHECK_MSG(dev && doc, "%s", e.msg)) return check_report();
        for (size_t i = 0; i < SES_LEN(models); i++)
            check_model(ses_json_get(ses_json_root(doc), models[i].name), dev, i);
        test_masked(dev);
        test_requests(dev);
        ses_json_free(doc);
        ses_device_free(dev);
    }
    return check_report();
}
