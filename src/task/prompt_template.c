/* Fills prompt templates: zero, one or a few examples before the text.
 *
 *     { "instruction": "Is the review good or bad?\n\n",
 *       "example": "Review: {text}\nAnswer: {label}\n\n",
 *       "query": "Review: {text}\nAnswer:",
 *       "examples": [{ "text": "A joy.", "label": "good" }, ...],
 *       "stop": ["\n"] }
 *
 * In "example", {name} is replaced by the example's member of that name; in "query" and "instruction",
 * {text} and {pair} by the item's texts. */
#include "prompt_template.h"

#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

enum { FILE_MAX = 64 << 20 };

struct ses_prompt_template {
    ses_json_doc *doc;
    const ses_json *root;
    const char **stop;
    size_t n_stops;
};

/* Appends a pattern with its {names} replaced by members of values; values NULL: by the item's text and
 * pair. */
static bool fill_pattern(ses_buf *out, const ses_json *pattern, const ses_json *values,
                         const ses_string *item, ses_err *e)
{
    size_t n = 0;
    const char *s = ses_json_string(pattern, &n);
    for (size_t at = 0; s && at < n;) {
        const char *open = memchr(s + at, '{', n - at),
                   *close = open ? memchr(open, '}', n - (size_t)(open - s)) : NULL;
        size_t until = close ? (size_t)(open - s) : n, len = 0;
        ses_buf_append(out, s + at, until - at);
        if (!close) break;
        char name[64];
        size_t width = (size_t)(close - open - 1);
        memcpy(name, open + 1, width < sizeof name ? width : sizeof name - 1);
        name[width < sizeof name ? width : sizeof name - 1] = 0;
        const char *value = values ? ses_json_string(ses_json_get(values, name), &len) : NULL;
        if (!values && !strcmp(name, "text")) value = item[0].p, len = item[0].n;
        bool pair = !values && !strcmp(name, "pair");
        if (pair) value = item[1].p, len = item[1].n;
        if (!value)
            return ses_fail(e, SES_EFORMAT, "{%s}: %s", name,
                            values ? "an example has no string member of this name"
                            : pair ? "the item has no second text (key \"text_pair\")"
                                   : "unknown name, expected {text} or {pair}");
        ses_buf_append(out, value, len);
        at = (size_t)(close - s) + 1;
    }
    return true;
}

static bool check(ses_prompt_template *t, ses_err *e)
{
    const ses_json *stop = ses_json_get(t->root, "stop"), *examples = ses_json_get(t->root, "examples");
    const char *query = ses_json_string(ses_json_get(t->root, "query"), NULL);
    if (!query || !strstr(query, "{text}"))
        return ses_fail(e, SES_EFORMAT, "\"query\" must be a string with {text} in it");
    if (examples && ses_json_type_of(examples) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "\"examples\" must be an array of objects");
    if (ses_json_len(examples) && !ses_json_string(ses_json_get(t->root, "example"), NULL))
        return ses_fail(e, SES_EFORMAT, "\"examples\" need \"example\", the pattern of one example");
    t->n_stops = ses_json_len(stop);
    t->stop = ses_alloc_array(t->n_stops + 1, sizeof *t->stop, e);
    for (size_t i = 0; t->stop && i < t->n_stops; i++)
        if (!(t->stop[i] = ses_json_string(ses_json_at(stop, i), NULL)))
            return ses_fail(e, SES_EFORMAT, "\"stop\" must be an array of strings");
    return t->stop != NULL;
}

ses_prompt_template *ses_prompt_template_new(ses_json_doc *doc, ses_err *e)
{
    ses_prompt_template *t = ses_alloc(sizeof *t, e);
    if (t) {
        t->doc = doc;
        t->root = ses_json_root(doc);
        if (check(t, e)) return t;
    } else {
        ses_json_free(doc);
    }
    ses_prompt_template_free(t);
    return NULL;
}

ses_prompt_template *ses_prompt_template_open(const char *path, ses_err *e)
{
    ses_json_doc *doc = ses_json_load(path, FILE_MAX, e);
    ses_prompt_template *t = doc ? ses_prompt_template_new(doc, e) : NULL;
    if (doc && !t) ses_wrap(e, "%s", path);
    return t;
}

void ses_prompt_template_free(ses_prompt_template *t)
{
    if (!t) return;
    ses_json_free(t->doc);
    ses_free(t->stop);
    ses_free(t);
}

char *ses_prompt_template_fill(const ses_prompt_template *t, ses_string text, ses_string pair, int64_t shots,
                               size_t *n, ses_err *e)
{
    const ses_json *examples = ses_json_get(t->root, "examples");
    size_t n_examples = ses_json_len(examples);
    if (shots >= 0 && (size_t)shots < n_examples) n_examples = (size_t)shots;
    ses_buf out = { 0 };
    bool ok = fill_pattern(&out, ses_json_get(t->root, "instruction"), NULL, (ses_string[]){ text, pair }, e);
    for (size_t i = 0; ok && i < n_examples; i++)
        ok = fill_pattern(&out, ses_json_get(t->root, "example"), ses_json_at(examples, i), NULL, e);
    ok = ok && fill_pattern(&out, ses_json_get(t->root, "query"), NULL, (ses_string[]){ text, pair }, e) &&
         ses_buf_ok(&out, e);
    *n = out.len;
    if (ok) return out.data;
    ses_buf_free(&out);
    return NULL;
}

size_t ses_prompt_template_stops(const ses_prompt_template *t, const char *const **stop)
{
    *stop = t->stop;
    return t->n_stops;
}
