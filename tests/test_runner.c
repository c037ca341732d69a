/* The runner: results do not depend on the batch size, the number of threads, or on whether a batch is
 * collected at once or while the next items are fed. After an error nothing stays half done. Items beside
 * a failing one get their results. Outputs on a GPU are read in few copies. */
#include "check.h"
#include "task/pipeline_impl.h"
#include "tensor/device_impl.h"

enum { ITEMS = 40, CAPACITY = 1 << 20 };

typedef struct record {
    char text[CAPACITY];
    size_t n;
    int64_t stop; /* number of the item whose result stops the work; 0: none */
} record;

static void add(record *l, const ses_item *item, ses_string what, double x)
{
    l->n += (size_t)snprintf(l->text + l->n, CAPACITY - l->n, "%d %.*s %.9g\n", (int)item->number,
                             (int)what.n, what.p, x);
}

static bool on_result(void *ctx, const ses_result *r, ses_err *e)
{
    record *l = ctx;
    if (l->stop == r->item->number) return ses_fail(e, SES_EIO, "stopped");
    for (size_t i = 0; i < r->n; i++) add(l, r->item, r->row[i].label, r->row[i].score);
    for (int64_t i = 0; i < r->n_vectors * r->vector_size; i++)
        add(l, r->item, ses_str("x"), (double)r->vectors[i]);
    return true;
}

static bool on_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    (void)e;
    add(ctx, item, ses_str(why->msg), 0);
    return true;
}

static bool feed(ses_pipeline *p, int64_t i, ses_err *e)
{
    static const char words[] =
        "The bell rings and no one counts the hours at sea; the keeper eats alone again";
    size_t n = 3 + (size_t)(i * 7 % (int64_t)(sizeof words - 4));
    return ses_pipeline_feed(p, &(ses_item){ .text = { words, n }, .number = i }, e);
}

static void run(ses_pipeline *p, record *l, int64_t batch_tokens, int64_t stop)
{
    ses_err e = { 0 };
    *l = (record){ .stop = stop };
    ses_pipeline_set_callback(p, on_result, l);
    ses_pipeline_set_error_callback(p, on_error, l);
    ses_pipeline_set_batch_tokens(p, batch_tokens);
    bool ok = true;
    for (int64_t i = 1; i <= ITEMS && ok; i++) ok = feed(p, i, &e);
    ok = ok && ses_pipeline_flush(p, &e);
    CHECK_MSG(ok == !stop, "%s", e.msg);
}

/* The runner treats dev as `as`. first: the expected results, filled by the first call. */
static void test(const char *task, const char *dir, ses_device *dev, ses_device *as, record *first)
{
    static record again;
    ses_err e = { 0 };
    ses_pipeline *p = ses_pipeline_open(task, dir, dev, NULL, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    p->dev = as;
    if (!first->n) run(p, first, 1, 0);
    CHECK(first->n > ITEMS * 4);
    for (int64_t tokens = 1; tokens < 2000; tokens = 3 * tokens + 1) {
        run(p, &again, tokens, 0);
        CHECK_MSG(!strcmp(first->text, again.text), "%s: batches of %d tokens", task, (int)tokens);
        run(p, &again, tokens, ITEMS / 2);
        CHECK(again.n < first->n && !memcmp(first->text, again.text, again.n));
    }
    run(p, &again, CAPACITY, 0);
    CHECK(feed(p, 1, &e) && feed(p, 2, &e));
    again.n = 0;
    const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = ses_str("at sea"), .number = 3 }, &e);
    CHECK(r && r->item->number == 3); /* the other two are reported to the callback first */
    CHECK(again.n && !memcmp(first->text, again.text, again.n) && ses_pipeline_get_stats(p).items >= 3);
    ses_pipeline_set_batch_tokens(p, 1);
    CHECK(feed(p, 1, &e)); /* freed while its batch is in flight */
    ses_pipeline_free(p);
}

static void test_devices(const char *task, const char *dir, ses_device *one, ses_device *several)
{
    static record first;
    first.n = 0;
    ses_device gpu = *several; /* computes by itself, as far as the runner knows */
    gpu.is_host = false;
    test(task, dir, one, one, &first);
    test(task, dir, several, several, &first);
    test(task, dir, several, &gpu, &first);
}

enum { FAILING = 9 }; /* length of sequences that fail */

static bool failing_forward(ses_pipeline *p, const ses_batch *b, const ses_output_request *request,
                            ses_outputs *out, ses_err *e)
{
    for (int64_t s = 0; s < b->seqs; s++)
        if (b->cu_seqlens[s + 1] - b->cu_seqlens[s] == FAILING)
            return ses_fail(e, SES_EARG, "%d tokens in %d", FAILING,
                            p->settings.on_item_error ? 0 : (int)p->settings.batch_tokens);
    return ses_model_forward(p->model, p->runner.pass.tape, b, request, out, e);
}

/* A batch whose forward pass fails, in this thread or another: with an error callback its other items get
 * their results, in order; without one the work stops with the error, and the pipeline can be used again. */
static void test_failing_batch(ses_device *one, ses_device *several)
{
    static record first, again;
    for (int threads = 1; threads <= 2; threads++) {
        ses_err e = { 0 };
        ses_pipeline *p = ses_pipeline_open("text-classification", "tests/pipelines/bert-label",
                                            threads == 1 ? one : several, NULL, &e);
        if (!CHECK_MSG(p, "%s", e.msg)) return;
        ses_task failing = *p->task;
        failing.forward = failing_forward;
        p->task = &failing;
        if (!first.n) run(p, &first, 1, 0);
        CHECK(strstr(first.text, " 9 tokens in 0 0\n") && strstr(first.text, " neutral "));
        for (int64_t tokens = 5; tokens < 2000; tokens = 3 * tokens + 1) {
            run(p, &again, tokens, 0);
            CHECK_MSG(!strcmp(first.text, again.text), "%d threads, %d tokens", threads, (int)tokens);
            CHECK(ses_pipeline_get_stats(p).failed > 0);
            ses_pipeline_set_error_callback(p, NULL, NULL);
            bool ok = true;
            for (int64_t i = 1; i <= ITEMS && ok; i++) ok = feed(p, i, &e);
            char want[64];
            snprintf(want, sizeof want, "9 tokens in %d", (int)tokens);
            CHECK(!(ok && ses_pipeline_flush(p, &e)));
            CHECK_STR(e.msg, want);
            const ses_pipeline_runner *n = &p->runner;
            CHECK(!n->first && !n->next_request && !n->waiting_tokens && !n->in_flight);
            e = (ses_err){ 0 };
        }
        ses_pipeline_set_callback(p, NULL,
                                  NULL); /* the last result is kept; a later batch fails; freed once */
        ses_pipeline_set_batch_tokens(p, CAPACITY);
        for (int64_t i = 1; i <= ITEMS; i++) CHECK(feed(p, i, &e));
        ses_pipeline_set_batch_tokens(p, 1);
        CHECK(!ses_pipeline_flush(p, &e) && p->runner.result_request);
        ses_pipeline_free(p);
    }
}

static int calls[ITEMS + 1]; /* how often each item has been run */

/* Items run one after the other; the fifth fails. */
static bool counting_run(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n,
                         ses_err *e)
{
    (void)p, (void)seq;
    for (size_t i = 0; i < n; i++) {
        calls[request[i]->item.number]++;
        if (request[i]->item.number == 5) return ses_fail(e, SES_EARG, "item 5 fails");
        request[i]->has_outputs = true;
    }
    return true;
}

static bool no_rows(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    (void)p, (void)r, (void)out, (void)e;
    return true;
}

/* A task that runs whole batches, such as generation: an item that is finished when another one fails is not
 * run again; a failing item that is alone in its batch is run once. */
static void test_repeated_runs(ses_device *dev, int64_t batch_tokens)
{
    static record results;
    ses_err e = { 0 };
    ses_pipeline *p = ses_pipeline_open("text-classification", "tests/pipelines/bert-label", dev, NULL, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    ses_task counting = *p->task;
    counting.run_batch = counting_run, counting.finish = no_rows;
    p->task = &counting;
    memset(calls, 0, sizeof calls);
    run(p, &results, batch_tokens, 0);
    CHECK(strstr(results.text, "5 item 5 fails 0\n"));
    for (int i = 1; i <= ITEMS; i++)
        CHECK_MSG(calls[i] == 1 || (i == 5 && batch_tokens > 1 && calls[i] == 2), "item %d: %d runs", i,
                  calls[i]);
    CHECK(ses_pipeline_get_stats(p).failed == 1);
    ses_pipeline_free(p);
}

static int64_t downloads, downloaded; /* how many, bytes */
static void download(ses_device *d, void *host, const void *from, size_t size)
{
    (void)d;
    memcpy(host, from, size);
    downloads++, downloaded += (int64_t)size;
}

/* Outputs come to the host by downloads: one per batch for the first output requested, one per sequence for
 * others (here a second layer). */
static void test_reads(ses_device *dev, const char *layers, int64_t max_downloads, int64_t times)
{
    static record host, gpu;
    ses_err e = { 0 };
    const ses_setting set[] = { { "layer", layers }, { "pool", "tokens" }, { 0 } };
    ses_pipeline *p = ses_pipeline_open("features", "tests/pipelines/bert-label", dev, set, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    run(p, &host, 200, 0);
    ses_device_memory mem = *dev->mem;
    ses_device other = *dev;
    mem.download = download;
    other.mem = &mem, other.is_host = false;
    p->dev = &other;
    int64_t before = ses_pipeline_get_stats(p).tokens_read;
    downloads = downloaded = 0;
    run(p, &gpu, 200, 0);
    CHECK(host.n > ITEMS * 4 && !strcmp(host.text, gpu.text));
    int64_t numbers = times * (ses_pipeline_get_stats(p).tokens_read - before) * p->model->c.hidden;
    CHECK_MSG(downloads <= max_downloads && downloaded == numbers * (int64_t)sizeof(ses_real),
              "%d reads, %d of %d", (int)downloads, (int)downloaded, (int)numbers);
    p->dev = dev;
    ses_pipeline_free(p);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    ses_device *one = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    if (CHECK(dev && one)) {
        test_devices("text-classification", "tests/pipelines/bert-label", one, dev);
        test_devices("token-classification", "tests/pipelines/bert-tag", one, dev);
        test_failing_batch(one, dev);
        test_repeated_runs(dev, 1);
        test_repeated_runs(dev, 200);
        test_repeated_runs(dev, CAPACITY);
        test_reads(dev, "-1", ITEMS / 2, 1);
        test_reads(dev, "0,-1", ITEMS + ITEMS / 2, 2);
    }
    ses_device_free(dev);
    ses_device_free(one);
    return check_report();
}
