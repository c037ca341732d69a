/* The public pipeline API: errors per item, statistics, maximum length, settings per item, and one loaded
 * model shared by pipelines of different tasks in two threads. Only the public headers are used. */
#include "check.h"
#include "sesame/sesame.h"

#include <pthread.h>
#include <stdarg.h>

static ses_device *dev;

/* Did it fail with this message? */
static bool failed_with(ses_err *e, bool ok, const char *message)
{
    bool expected = !ok && strstr(e->msg, message);
    if (!expected) printf("    got: %s\n", ok ? "no error" : e->msg);
    *e = (ses_err){ 0 };
    return expected;
}

static ses_pipeline *open_pipeline(const char *task, const char *dir, const ses_setting *settings)
{
    ses_err e = { 0 };
    ses_pipeline *p = ses_pipeline_open(task, dir, dev, settings, &e);
    CHECK_MSG(p, "%s: %s", task, e.msg);
    return p;
}

/* ---- keep going ---- */

typedef struct log {
    char text[1 << 16];
    size_t n;
    bool stop_at_error;
} log;

SES_PRINTF(2, 3) static void add(log *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    l->n += (size_t)vsnprintf(l->text + l->n, sizeof l->text - l->n, fmt, ap);
    va_end(ap);
}

static bool on_result(void *ctx, const ses_result *r, ses_err *e)
{
    (void)e;
    add(ctx, "%d ok %zu\n", (int)r->item->number, r->n);
    return true;
}

static bool on_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    log *l = ctx;
    add(l, "%d %.16s\n", (int)item->number, why->msg);
    return !l->stop_at_error || ses_fail(e, why->code, "%s", why->msg);
}

static bool feed_all(ses_pipeline *p, const char *const *text, ses_err *e)
{
    for (int64_t i = 0; text[i]; i++)
        if (!ses_pipeline_feed(p, &(ses_item){ .text = ses_str(text[i]), .number = i }, e)) return false;
    return ses_pipeline_flush(p, e);
}

static void test_keep_going(void)
{
    static const char *const text[] = { "The [MASK] rings.", "no mask", "A [MASK] and a [MASK].", "", NULL };
    static log l;
    ses_err e = { 0 };
    ses_pipeline *p = open_pipeline("fill-mask", "tests/pipelines/bert-mask", NULL);
    if (!p) return;
    ses_pipeline_set_callback(p, on_result, &l);
    CHECK(!feed_all(p, text, &e)); /* without an error callback the first error stops */
    CHECK(failed_with(&e, false, "no mask") && ses_pipeline_flush(p, &e));
    CHECK_STR(l.text, "0 ok 5\n");
    l.n = 0;
    ses_pipeline_set_error_callback(p, on_error, &l);
    CHECK(feed_all(p, text, &e));
    CHECK_STR(l.text, "0 ok 5\n1 no mask in the t\n2 ok 10\n3 no mask in the t\n");
    ses_pipeline_stats s = ses_pipeline_get_stats(p);
    CHECK(s.items == 3 && s.failed == 2 && s.sequences == 3 && s.batches >= 2 && s.tokens_read > 10);
    l = (log){ .stop_at_error = true };
    CHECK(failed_with(&e, feed_all(p, text, &e), "no mask"));
    CHECK_STR(l.text, "0 ok 5\n1 no mask in the t\n");
    CHECK(
        !ses_pipeline_run(p, &(ses_item){ .text = ses_str("none") }, &e)); /* not reported to the callback */
    CHECK(ses_pipeline_get_stats(p).failed == 3);
    CHECK(ses_pipeline_run(p, &(ses_item){ .text = ses_str("a [MASK]") }, NULL));
    ses_pipeline_free(p);
}

/* Results are dropped if no callback is set; items in the queue are dropped with the pipeline. */
static void test_no_callback(void)
{
    ses_err e = { 0 };
    ses_pipeline *p = open_pipeline("fill-mask", "tests/pipelines/bert-mask", NULL);
    if (!p) return;
    ses_pipeline_set_batch_tokens(p, 1 << 20);
    for (int i = 0; i < 3; i++)
        CHECK(ses_pipeline_feed(p, &(ses_item){ .text = ses_str("a [MASK]"), .number = i }, &e));
    CHECK(ses_pipeline_flush(p, &e) && ses_pipeline_get_stats(p).items == 3);
    CHECK(ses_pipeline_feed(p, &(ses_item){ .text = ses_str("a [MASK]") }, &e));
    ses_pipeline_free(p);
}

/* ---- limits and settings ---- */

static void test_max_seq_len(void)
{
    ses_err e = { 0 };
    ses_item item = { .text = ses_str("The bell rings and no one counts the hours at sea") };
    ses_pipeline *p = open_pipeline("text-classification", "tests/pipelines/bert-label", NULL);
    if (!p) return;
    int64_t max = ses_pipeline_max_seq_len(p);
    CHECK(max == ses_model_max_tokens(ses_pipeline_model(p)));
    const ses_result *r = ses_pipeline_run(p, &item, &e);
    CHECK(r && r->truncated == 0);
    int64_t whole = r ? r->tokens : 0;
    CHECK(ses_pipeline_set_max_seq_len(p, 6) && ses_pipeline_max_seq_len(p) == 6);
    r = ses_pipeline_run(p, &item, &e);
    CHECK(r && r->tokens == 6 && r->truncated == whole - 6 && ses_pipeline_get_stats(p).truncated == 1);
    CHECK(ses_pipeline_set_max_seq_len(p, max + 100) && ses_pipeline_max_seq_len(p) == max);
    ses_pipeline_free(p);
    p = open_pipeline("prefer", "tests/pipelines/bert-mask", NULL); /* reads texts whole */
    if (p) CHECK(!ses_pipeline_set_max_seq_len(p, 6));
    ses_pipeline_free(p);
}

static void test_item_settings(void)
{
    ses_err e = { 0 };
    ses_setting one[] = { { "top_k", "2" }, { 0 } }, wrong[] = { { "top_q", "2" }, { 0 } },
                range[] = { { "top-k", "-1" }, { 0 } };
    ses_item item = { .text = ses_str("The bell rings") };
    ses_pipeline *p = open_pipeline("text-classification", "tests/pipelines/bert-label", NULL);
    if (!p) return;
    const ses_result *r = ses_pipeline_run(p, &item, &e);
    CHECK(r && r->n == 1);
    item.settings = one;
    r = ses_pipeline_run(p, &item, &e);
    CHECK(r && r->n == 2);
    item.settings = wrong;
    CHECK(failed_with(&e, ses_pipeline_run(p, &item, &e), "has no option \"top_q\""));
    item.settings = range;
    CHECK(failed_with(&e, ses_pipeline_run(p, &item, &e), "out of range"));
    item.settings = NULL;
    r = ses_pipeline_run(p, &item, &e);
    CHECK(r && r->n == 1);
    ses_pipeline_free(p);
    p = open_pipeline("features", "tests/pipelines/bert-label", NULL);
    item.settings = (ses_setting[]){ { "layer", "0" }, { 0 } };
    if (p) CHECK(failed_with(&e, ses_pipeline_run(p, &item, &e), "setting of the whole pipeline"));
    ses_pipeline_free(p);
}

/* A word-level tokenizer of w1 .. w39 with these ids. */
static ses_tokenizer *words(ses_err *e)
{
    char text[4096];
    int n =
        snprintf(text, sizeof text,
                 "{\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"model\": {\"type\": \"WordLevel\", "
                 "\"unk_token\": \"[UNK]\", \"vocab\": {\"[UNK]\": 0");
    for (int i = 1; i < 40; i++) n += snprintf(text + n, sizeof text - (size_t)n, ", \"w%d\": %d", i, i);
    n += snprintf(text + n, sizeof text - (size_t)n, "}}}");
    return ses_tokenizer_from_json(text, (size_t)n, e);
}

static bool log_texts(void *ctx, const ses_result *r, ses_err *e)
{
    (void)e;
    for (size_t i = 0; i < r->n; i++) add(ctx, "%d %s\n", (int)r->item->number, r->row[i].text.p);
    return true;
}

/* Items with settings of their own in one batch with others give the texts of pipelines with these
 * settings. */
static void test_generation_settings(void)
{
    static const ses_setting settings[][4] = {
        { { "max_new_tokens", "3" }, { 0 } },
        { { "max_new_tokens", "6" }, { "do_sample", "true" }, { "seed", "7" }, { 0 } },
        { { "max_new_tokens", "4" }, { "num_beams", "3" }, { "num_return_sequences", "2" }, { 0 } },
    };
    static log alone, together;
    ses_err e = { 0 };
    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_tokenizer *t = words(&e);
    ses_pipeline_options o = { .model = m, .tokenizer = t };
    ses_item item = { .text = ses_str("w5 w9 w17") };
    ses_pipeline *p = m && t ? ses_pipeline_open_with("text-generation", NULL, NULL, &o, &e) : NULL;
    if (!CHECK_MSG(p, "%s", e.msg)) goto done;
    ses_pipeline_set_callback(p, log_texts, &together);
    for (int64_t i = 0; i < 6; i++) {
        o.settings = item.settings = settings[i % 3];
        item.number = i;
        ses_pipeline *one = ses_pipeline_open_with("text-generation", NULL, NULL, &o, &e);
        if (!CHECK_MSG(one, "%s", e.msg)) break;
        ses_item plain = { .text = item.text, .number = i };
        const ses_result *r = ses_pipeline_run(one, &plain, &e);
        if (CHECK_MSG(r, "%s", e.msg)) log_texts(&alone, r, &e);
        ses_pipeline_free(one);
        CHECK_MSG(ses_pipeline_feed(p, &item, &e), "%s", e.msg);
    }
    CHECK(ses_pipeline_flush(p, &e) && ses_pipeline_get_stats(p).batches == 1);
    CHECK_STR(together.text, alone.text);
    CHECK(ses_pipeline_get_stats(p).tokens_generated > 20);
done:
    ses_pipeline_free(p);
    ses_tokenizer_free(t);
    ses_model_free(m);
}

/* ---- stopping ---- */

static bool stop_at_third(void *ctx) { return ++*(int *)ctx >= 3; }

/* The callback stops the work before a batch or a token; the pipeline can be used afterwards. */
static void test_stop(void)
{
    static const char *const text[] = { "A [MASK].", "The [MASK].", "My [MASK].", "Our [MASK].", NULL };
    static log l;
    ses_err e = { 0 };
    int asked = 0;
    ses_pipeline *p = open_pipeline("fill-mask", "tests/pipelines/bert-mask", NULL);
    if (!p) return;
    ses_pipeline_set_batch_tokens(p, 1);
    ses_pipeline_set_callback(p, on_result, &l);
    ses_pipeline_set_error_callback(p, on_error, &l);
    ses_pipeline_set_stop(p, stop_at_third, &asked);
    CHECK(failed_with(&e, feed_all(p, text, &e), "stopped by the caller"));
    CHECK(asked == 3 && ses_pipeline_get_stats(p).items <= 2 && ses_pipeline_get_stats(p).failed == 0);
    ses_pipeline_set_stop(p, NULL, NULL);
    CHECK(feed_all(p, text, &e));
    ses_pipeline_free(p);

    ses_model *m = ses_model_open("tests/golden/gpt2-lm", dev, NULL, &e);
    ses_tokenizer *t = words(&e);
    static const ses_setting settings[] = { { "min_new_tokens", "6" }, { "max_new_tokens", "6" }, { 0 } };
    ses_pipeline_options o = { .settings = settings, .model = m, .tokenizer = t };
    p = m && t ? ses_pipeline_open_with("text-generation", NULL, NULL, &o, &e) : NULL;
    if (CHECK_MSG(p, "%s", e.msg)) {
        ses_item item = { .text = ses_str("w5 w9 w17") };
        ses_pipeline_set_stop(p, stop_at_third, &(int){ 0 });
        CHECK(failed_with(&e, ses_pipeline_run(p, &item, &e) != NULL, "stopped by the caller"));
        ses_pipeline_set_stop(p, NULL, NULL);
        CHECK(ses_pipeline_run(p, &item, &e) && ses_pipeline_get_stats(p).items == 1);
    }
    ses_pipeline_free(p);
    ses_tokenizer_free(t);
    ses_model_free(m);
}

/* ---- one model, several pipelines ---- */

typedef struct worker {
    ses_pipeline *p;
    log log;
    bool ok;
} worker;

static bool log_rows(void *ctx, const ses_result *r, ses_err *e)
{
    (void)e;
    for (size_t i = 0; i < r->n; i++)
        add(ctx, "%d %s %.9g\n", (int)r->item->number, r->row[i].label.p, r->row[i].score);
    return true;
}

enum { ITEMS = 60 };

static void *work(void *ctx)
{
    worker *w = ctx;
    static const char words[] = "The bell rings and no one counts the hours at sea; the keeper eats alone";
    ses_err e = { 0 };
    w->log.n = 0;
    w->ok = true;
    ses_pipeline_set_callback(w->p, log_rows, &w->log);
    ses_pipeline_set_batch_tokens(w->p, 40);
    for (int64_t i = 0; i < ITEMS && w->ok; i++) {
        size_t n = 3 + (size_t)(i * 7) % (sizeof words - 4);
        w->ok = ses_pipeline_feed(w->p, &(ses_item){ .text = { words, n }, .number = i }, &e);
    }
    w->ok = w->ok && ses_pipeline_flush(w->p, &e);
    return NULL;
}

static void test_shared_model(void)
{
    static const char *const task[] = { "text-classification", "zero-shot-classification" };
    static const ses_setting labels[] = { { "candidate_labels", "sea,land" }, { 0 } };
    static worker alone[2], shared[2];
    const char *dir = "tests/pipelines/bert-label";
    ses_err e = { 0 };
    ses_model *m = ses_model_open(dir, dev, NULL, &e);
    ses_tokenizer *t = ses_tokenizer_open(dir, &e);
    if (!CHECK_MSG(m && t, "%s", e.msg)) goto done;
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        ses_pipeline_options o = { .settings = i ? labels : NULL, .model = m, .tokenizer = t };
        alone[i].p = open_pipeline(task[i], dir, o.settings);
        shared[i].p = ses_pipeline_open_with(task[i], NULL, NULL, &o, &e);
        if (!CHECK_MSG(alone[i].p && shared[i].p, "%s", e.msg)) goto done;
        CHECK(ses_pipeline_model(shared[i].p) == m && ses_pipeline_tokenizer(shared[i].p) == t);
        work(&alone[i]);
    }
    for (int i = 0; i < 2; i++) CHECK(!pthread_create(&thread[i], NULL, work, &shared[i]));
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        CHECK(alone[i].ok && shared[i].ok && shared[i].log.n > ITEMS * 8);
        CHECK_MSG(!strcmp(alone[i].log.text, shared[i].log.text), "%s differs with a shared model", task[i]);
    }
    ses_pipeline_options o = { .model = m };
    CHECK(failed_with(&e, ses_pipeline_open_with("fill-mask", NULL, NULL, &o, &e),
                      "does not support fill-mask"));
done:
    for (int i = 0; i < 2; i++) ses_pipeline_free(alone[i].p), ses_pipeline_free(shared[i].p);
    ses_tokenizer_free(t);
    ses_model_free(m); /* the pipelines have left it open */
}

/* Tasks without a head share a model that has one: same vectors as with a model of their own. Clones, too. */
static void test_shared_without_head(void)
{
    static const char *const task[] = { "feature-extraction", "embed" };
    ses_err e = { 0 };
    ses_item item = { .text = ses_str("The bell rings at noon.") };
    ses_model *m = ses_model_open("tests/pipelines/bert-mask", dev, NULL, &e);
    ses_pipeline_options o = { .model = m };
    for (int i = 0; m && i < 2; i++) {
        ses_pipeline *alone = open_pipeline(task[i], "tests/pipelines/bert-mask", NULL);
        ses_pipeline *shared = ses_pipeline_open_with(task[i], NULL, NULL, &o, &e);
        ses_pipeline *clone = shared ? ses_pipeline_clone(shared, &e) : NULL;
        if (!alone || !CHECK_MSG(clone, "%s: %s", task[i], e.msg)) break;
        CHECK(ses_model_store(ses_pipeline_model(clone)) == ses_model_store(m));
        const ses_result *a = ses_pipeline_run(alone, &item, &e), *b = ses_pipeline_run(shared, &item, &e),
                         *c = ses_pipeline_run(clone, &item, &e);
        if (CHECK_MSG(a && b && c, "%s", e.msg)) {
            size_t n = (size_t)(a->n_vectors * a->vector_size);
            CHECK(n && a->n_vectors == b->n_vectors && a->vector_size == b->vector_size);
            CHECK(!memcmp(a->vectors, b->vectors, n * sizeof(float)));
            CHECK(!memcmp(a->vectors, c->vectors, n * sizeof(float)));
        }
        ses_pipeline_free(clone);
        ses_pipeline_free(shared);
        ses_pipeline_free(alone);
    }
    CHECK_MSG(m, "%s", e.msg);
    ses_model_free(m);
}

static void test_shared_encoder(void)
{
    ses_err e = { 0 };
    ses_item item = { .text = ses_str("the bell rings"), .list = &(ses_string){ "at sea", 6 }, .n_list = 1 };
    ses_pipeline *embed = open_pipeline("embed", "tests/pipelines/bert-mask", NULL);
    ses_pipeline *alone = open_pipeline("similarity", "tests/pipelines/bert-mask", NULL);
    if (!embed || !alone) return;
    ses_pipeline_options o = { .encoder = ses_pipeline_encoder(embed) };
    ses_pipeline *shared = ses_pipeline_open_with("similarity", NULL, NULL, &o, &e);
    if (CHECK_MSG(shared, "%s", e.msg)) {
        const ses_result *a = ses_pipeline_run(alone, &item, &e), *b = ses_pipeline_run(shared, &item, &e);
        CHECK(a && b && a->row[0].score == b->row[0].score);
        CHECK(ses_pipeline_model(shared) == ses_pipeline_model(embed));
    }
    o.settings = (ses_setting[]){ { "pooling", "cls" }, { 0 } };
    CHECK(failed_with(&e, ses_pipeline_open_with("similarity", NULL, NULL, &o, &e), "shared encoder"));
    ses_pipeline_free(shared);
    ses_pipeline_free(alone);
    ses_pipeline_free(embed);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    if (CHECK(dev)) {
        test_keep_going();
        test_no_callback();
        test_max_seq_len();
        test_item_settings();
        test_generation_settings();
        test_stop();
        test_shared_model();
        test_shared_without_head();
        test_shared_encoder();
    }
    ses_device_free(dev);
    return check_report();
}
