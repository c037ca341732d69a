/* Checks the fields of a model card by the rules of the hub. */
#include "card.h"
#include "folder/model_folder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct checker {
    const ses_card *card;
    const ses_json *meta;
    ses_card_problem *report;
    void *ctx;
    bool stopped;
} checker;

static void problem(checker *k, ses_card_level level, const char *fmt, ...) SES_PRINTF(3, 4);
static void problem(checker *k, ses_card_level level, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!k->stopped) k->stopped = !k->report(k->ctx, level, text);
}

static const ses_json *get(const checker *k, const char *key)
{
    const ses_json *v = ses_json_get(k->meta, key);
    return ses_json_type_of(v) == SES_JSON_NULL ? NULL : v;
}

/* ---- words ---- */

/* Letters, digits and some of "-.+_", not empty. */
static bool is_word(const char *s, const char *also)
{
    const char *at = s;
    while ((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || (*at && strchr(also, *at))) at++;
    return at > s && !*at;
}

/* ISO 639: "en", "deu", "zh-Hant"; or one of two words. */
static bool is_language(const char *s)
{
    size_t n = strcspn(s, "-_");
    if (!strcmp(s, "multilingual") || !strcmp(s, "code")) return true;
    for (size_t i = 0; i < n; i++)
        if (s[i] < 'a' || s[i] > 'z') return false;
    return n == 2 || n == 3;
}

static bool is_license(const char *s) { return is_word(s, "-.+"); }

static const char *const tasks[] = {
    "fill-mask",
    "text-classification",
    "token-classification",
    "question-answering",
    "zero-shot-classification",
    "text-generation",
    "text2text-generation",
    "summarization",
    "translation",
    "feature-extraction",
    "sentence-similarity",
    "text-ranking",
    "multiple-choice",
    "table-question-answering",
    "text-to-image",
    "image-text-to-text",
    "image-classification",
    "automatic-speech-recognition",
    "audio-classification",
    "any-to-any",
};

static bool is_task(const char *s)
{
    for (size_t i = 0; i < SES_LEN(tasks); i++)
        if (!strcmp(s, tasks[i])) return true;
    return false;
}

/* ---- fields ---- */

/* A string or a list of strings, each valid. */
static void check_strings(checker *k, const char *key, bool list, bool (*valid)(const char *),
                          const char *expected)
{
    const ses_json *v = get(k, key);
    bool is_list = ses_json_type_of(v) == SES_JSON_ARRAY;
    if (!v) return;
    if (is_list && !list) problem(k, SES_CARD_ERROR, "%s: one value expected, not a list", key);
    if (!is_list && !ses_json_string(v, NULL)) problem(k, SES_CARD_ERROR, "%s: %s expected", key, expected);
    for (size_t i = 0, n = is_list ? ses_json_len(v) : 1; i < n; i++) {
        const char *s = ses_json_string(is_list ? ses_json_at(v, i) : v, NULL);
        if (!s && is_list)
            problem(k, SES_CARD_ERROR, "%s[%zu]: %s expected", key, i, expected);
        else if (s && valid && !valid(s))
            problem(k, SES_CARD_ERROR, "%s: \"%s\" is not valid; %s expected", key,
                    ses_quoted_of(s, strlen(s)).s, expected);
    }
}

static void check_license(checker *k)
{
    check_strings(k, "license", true, is_license, "an identifier such as apache-2.0 or mit");
    if (!get(k, "license"))
        problem(k, SES_CARD_ERROR, "license: missing; an identifier such as apache-2.0 or mit expected");
    if (ses_card_has(k->card, "license", "other") && !get(k, "license_name"))
        problem(k, SES_CARD_HINT, "license_name, license_link: missing; \"license: other\" needs them");
}

/* model-index: [{name, results: [{task: {type}, dataset: {type, name}, metrics: [{type, value}]}]}] */
static void check_result(checker *k, const ses_json *r, size_t i)
{
    const ses_json *task = ses_json_get(r, "task"), *data = ses_json_get(r, "dataset"),
                   *metrics = ses_json_get(r, "metrics");
    if (!ses_json_string(ses_json_get(task, "type"), NULL))
        problem(k, SES_CARD_ERROR, "model-index: results[%zu].task.type: missing", i);
    if (!ses_json_string(ses_json_get(data, "name"), NULL) ||
        !ses_json_string(ses_json_get(data, "type"), NULL))
        problem(k, SES_CARD_ERROR, "model-index: results[%zu].dataset: name and type expected", i);
    for (size_t m = 0; m < ses_json_len(metrics); m++)
        if (!ses_json_string(ses_json_get(ses_json_at(metrics, m), "type"), NULL) ||
            !ses_json_get(ses_json_at(metrics, m), "value"))
            problem(k, SES_CARD_ERROR, "model-index: results[%zu].metrics[%zu]: type and value expected", i,
                    m);
    if (!ses_json_len(metrics)) problem(k, SES_CARD_ERROR, "model-index: results[%zu].metrics: missing", i);
}

static void check_index(checker *k)
{
    const ses_json *index = get(k, "model-index");
    if (!index) return;
    if (ses_json_type_of(index) != SES_JSON_ARRAY) {
        problem(k, SES_CARD_ERROR, "model-index: a list expected");
        return;
    }
    for (size_t i = 0; i < ses_json_len(index); i++) {
        const ses_json *x = ses_json_at(index, i), *results = ses_json_get(x, "results");
        if (!ses_json_string(ses_json_get(x, "name"), NULL))
            problem(k, SES_CARD_ERROR, "model-index[%zu].name: missing", i);
        for (size_t r = 0; r < ses_json_len(results); r++) check_result(k, ses_json_at(results, r), r);
    }
}

/* The text has a title and at least one line besides it. */
static void check_body(checker *k)
{
    const char *at = k->card->text + k->card->body, *end = k->card->text + k->card->n;
    size_t titles = 0, lines = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        ses_string s = ses_trim((ses_string){ at, (size_t)((stop ? stop : end) - at) });
        if (s.n > 2 && s.p[0] == '#' && s.p[1] == ' ')
            titles++;
        else
            lines += s.n > 0;
        at = stop ? stop + 1 : end;
    }
    if (!titles) problem(k, SES_CARD_HINT, "the text has no title (# NAME)");
    if (!lines)
        problem(k, SES_CARD_HINT, "the text is empty: describe training data, scores and limitations");
}

static void hint_missing(checker *k, const char *key, const char *what)
{
    if (!get(k, key)) problem(k, SES_CARD_HINT, "%s: missing; %s", key, what);
}

bool ses_card_check(const ses_card *c, const char *dir, ses_card_problem *report, void *ctx)
{
    checker k = { .card = c, .meta = ses_json_root(c->meta), .report = report, .ctx = ctx };
    if (!c->meta) {
        problem(&k, SES_CARD_ERROR, "no front matter: README.md must begin with a line \"---\"");
        return !k.stopped;
    }
    check_license(&k);
    check_strings(&k, "language", true, is_language, "an ISO 639 code such as en");
    check_strings(&k, "pipeline_tag", false, is_task, "a task of the hub such as text-classification");
    check_strings(&k, "library_name", false, NULL, "a name");
    check_strings(&k, "tags", true, NULL, "a list of words");
    check_strings(&k, "datasets", true, NULL, "a list of names");
    check_strings(&k, "metrics", true, NULL, "a list of names");
    check_strings(&k, "base_model", true, NULL, "the name of a model");
    check_index(&k);
    hint_missing(&k, "language", "ISO 639 codes such as en");
    hint_missing(&k, "pipeline_tag", "the task, such as text-classification");
    hint_missing(&k, "library_name", "transformers, sentence-transformers or sesame");
    hint_missing(&k, "datasets", "names of the training data");
    if (dir && ses_adapter_folder_is(dir))
        hint_missing(&k, "base_model", "the model that the adapter changes");
    check_body(&k);
    return !k.stopped;
}
