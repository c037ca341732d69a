/* Pipelines compared with transformers: a file of cases for each task, {"text", settings..., "out"}. Cases
 * of this tree (tests/pipelines, small random models) and shared ones. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include "sesame/pipeline.h"
#include "task/task.h"

#include <math.h>

static ses_device *dev;

/* ---- comparing ---- */

typedef struct gap {
    double score, vector; /* largest difference */
    char what[160];       /* first other difference */
} gap;

static void differ(gap *g, const char *what, const ses_json *got, const ses_json *want)
{
    if (!g->what[0])
        snprintf(g->what, sizeof g->what, "%s: %.60s", what,
                 ses_json_string(got, NULL) ? ses_json_string(got, NULL) : "");
    (void)want;
}

static void compare(gap *g, const ses_json *got, const ses_json *want, const char *key, double scale)
{
    double x, y;
    if (ses_json_real(want, &y) && ses_json_real(got, &x)) {
        bool exact = ses_json_type_of(want) == SES_JSON_INT;
        if (exact && x != y) differ(g, key, got, want);
        if (!strncmp(key, "score", 5))
            g->score = fmax(g->score, fabs(x - y));
        else if (!exact)
            g->vector = fmax(g->vector, fabs(x - y) / scale);
        return;
    }
    if (ses_json_type_of(got) != ses_json_type_of(want) || ses_json_len(got) != ses_json_len(want)) {
        differ(g, key, got, want);
        return;
    }
    size_t n = 0;
    const char *s = ses_json_string(want, &n);
    if (s && strcmp(ses_json_string(got, NULL), s)) differ(g, key, got, want);
    for (size_t i = 0; !s && i < ses_json_len(want); i++) {
        bool object = ses_json_type_of(want) == SES_JSON_OBJECT;
        const char *name = object ? ses_json_key(want, i, NULL) : key;
        if (object && strcmp(ses_json_key(got, i, NULL), name))
            differ(g, name, got, want); /* the order counts, too */
        compare(g, ses_json_at(got, i), ses_json_at(want, i), name, scale);
    }
}

/* The largest magnitude of a vector or a matrix. */
static double largest(const ses_json *v)
{
    double max = 1, x;
    if (ses_json_real(v, &x)) return fabs(x);
    if (ses_json_type_of(v) == SES_JSON_ARRAY)
        for (size_t i = 0; i < ses_json_len(v); i++) max = fmax(max, largest(ses_json_at(v, i)));
    return max;
}

/* ---- cases ---- */

enum { MAX_SETTINGS = 12 };

/* A JSON value as the text of an option: lists with commas. */
static void value_text(ses_buf *b, const ses_json *v)
{
    double x;
    bool yes;
    const char *s = ses_json_string(v, NULL);
    if (s)
        ses_buf_puts(b, s);
    else if (ses_json_bool(v, &yes))
        ses_buf_puts(b, yes ? "true" : "false");
    else if (ses_json_real(v, &x))
        ses_buf_appendf(b, "%.15g", x);
    else if (ses_json_type_of(v) == SES_JSON_NULL)
        ses_buf_puts(b, "all"); /* top_k None */
    for (size_t i = 0; !s && i < ses_json_len(v); i++) {
        if (i) ses_buf_put(b, ',');
        value_text(b, ses_json_at(v, i));
    }
}

static bool is_key_of(const char *names, const char *key)
{
    const char *word;
    size_t n;
    for (size_t i = 0; names && ses_list_at(names, i, &word, &n); i++)
        if (strlen(key) == n && !memcmp(key, word, n)) return true;
    return false;
}

static bool is_item(const ses_item_schema *p, const char *key)
{
    return is_key_of(p->text, key) || is_key_of(p->pair, key) || is_key_of(p->list, key);
}

static void one_case(const ses_task_entry *t, const char *dir, const ses_json *c)
{
    ses_err e = { 0 };
    ses_setting set[MAX_SETTINGS + 1] = { 0 };
    ses_buf value[MAX_SETTINGS] = { 0 };
    size_t n = 0;
    bool label = !strcmp(t->name, "text-classification") && !ses_json_get(c, "top_k");
    if (label) set[n++] = (ses_setting){ "top_k", "all" };
    for (size_t i = 0; i < ses_json_len(c) && n < MAX_SETTINGS; i++) {
        const char *key = ses_json_key(c, i, NULL);
        if (!strcmp(key, "out") || is_item(&t->task->item_schema, key)) continue;
        value_text(&value[n], ses_json_at(c, i));
        set[n] = (ses_setting){ key, value[n].data ? value[n].data : "" };
        n++;
    }
    ses_item item = { 0 };
    ses_string *list = NULL;
    ses_pipeline *p = ses_pipeline_open(t->name, dir, dev, set, &e);
    const ses_result *r =
        p && ses_pipeline_item_from_json(p, c, &item, &list, &e) ? ses_pipeline_run(p, &item, &e) : NULL;
    CHECK_MSG(r, "%s %s: %s", t->name, dir, e.msg);
    ses_json_writer *w = ses_json_writer_new(0, &e);
    if (r) ses_result_write_json(r, w);
    size_t len = 0;
    const char *text = r ? ses_json_writer_text(w, &len, &e) : NULL;
    ses_json_doc *doc = text ? ses_json_parse(text, len, &e) : NULL;
    gap g = { 0 };
    const ses_json *want = ses_json_get(c, "out");
    if (r) {
        CHECK_MSG(doc, "%s", e.msg);
        compare(&g, ses_json_root(doc), want, "", largest(want));
        CHECK_MSG(g.score < 1e-4 && g.vector < 2e-5 && !g.what[0],
                  "%s \"%.60s\": scores off by %.3g, vectors by %.3g, %s\n    got %.300s", t->name,
                  item.text.p ? item.text.p : "", g.score, g.vector, g.what, text);
    }
    ses_json_free(doc);
    ses_json_writer_free(w);
    ses_free(list);
    ses_pipeline_free(p);
    for (size_t i = 0; i < MAX_SETTINGS; i++) ses_buf_free(&value[i]);
}

static void all_cases(const char *folder)
{
    ses_err e = { 0 };
    char path[400];
    snprintf(path, sizeof path, "%s/pipelines.json", folder);
    if (!ses_path_exists(path)) {
        SKIP(path);
        return;
    }
    ses_json_doc *doc = ses_json_load(path, 1 << 26, &e);
    CHECK_MSG(doc, "%s", e.msg);
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    for (size_t i = 0; i < ses_json_len(root); i++) {
        const ses_json *set = ses_json_at(root, i);
        const ses_json *cases = ses_json_get(set, "cases");
        const char *task = ses_json_string(ses_json_get(set, "task"), NULL);
        const ses_task_entry *t = ses_task_require(task ? task : ses_json_key(root, i, NULL), NULL);
        snprintf(path, sizeof path, "%s/%s", folder, ses_json_string(ses_json_get(set, "model"), NULL));
        if (!t) {
            SKIP(ses_json_key(root, i, NULL));
            continue;
        }
        for (size_t k = 0; k < ses_json_len(cases); k++) one_case(t, path, ses_json_at(cases, k));
    }
    ses_json_free(doc);
}

/* One vector per text, by each folder's modules.json. */
static void sentences(const char *folder)
{
    ses_err e = { 0 };
    char path[400];
    snprintf(path, sizeof path, "%s/sentence-embeddings.json", folder);
    ses_json_doc *doc = ses_path_exists(path) ? ses_json_load(path, 1 << 26, &e) : NULL;
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    if (!doc) SKIP(path);
    for (size_t i = 0; i < ses_json_len(root); i++) {
        const ses_json *texts = ses_json_get(ses_json_at(root, i), "sentences");
        const ses_json *out = ses_json_get(ses_json_at(root, i), "out");
        snprintf(path, sizeof path, "%s/%s", folder, ses_json_key(root, i, NULL));
        ses_pipeline *p = ses_pipeline_open("embed", path, dev, NULL, &e);
        CHECK_MSG(p, "%s", e.msg);
        for (size_t k = 0; p && k < ses_json_len(texts); k++) {
            ses_item item = { .text = ses_str(ses_json_string(ses_json_at(texts, k), NULL)) };
            const ses_result *r = ses_pipeline_run(p, &item, &e);
            const ses_json *want = ses_json_at(out, k);
            CHECK_MSG(r && r->n_vectors == 1 && r->vector_size == (int64_t)ses_json_len(want), "%s: %s", path,
                      e.msg);
            double off = 0, x, scale = largest(want);
            for (int64_t c = 0; r && c < r->vector_size && ses_json_real(ses_json_at(want, (size_t)c), &x);
                 c++)
                off = fmax(off, fabs((double)r->vectors[c] - x));
            CHECK_MSG(off <= 2e-5 * scale, "%s: vectors off by %.3g", path, off);
        }
        ses_pipeline_free(p);
    }
    ses_json_free(doc);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    char path[300];
    snprintf(path, sizeof path, "%s/golden/e2e", check_shared());
    all_cases("tests/pipelines");
    all_cases(path);
    sentences(path);
    ses_device_free(dev);
    return check_report();
}
