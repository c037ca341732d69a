/* Items in a stream: the same answers in the same order from any budget, whether a batch's are taken at once
 * or, as with several threads or a device that computes by itself, after the next items have come; after an
 * error nothing half done stays; items beside one whose batch fails are answered. What a device has in memory
 * of its own is read in few pieces. */
#include "check.h"
#include "task/task.h"
#include "tensor/device_impl.h"

enum { ITEMS = 40, ROOM = 1 << 20 };

typedef struct record {
    char text[ROOM];
    size_t n;
    int64_t stop; /* the item whose answer ends the work; 0: none */
} record;

static void note(record *l, const ses_item *item, ses_string what, double x)
{
    l->n += (size_t)snprintf(l->text + l->n, ROOM - l->n, "%d %.*s %.9g\n", (int)item->number, (int)what.n,
                             what.p, x);
}

static bool put(void *ctx, const ses_result *r, ses_err *e)
{
    record *l = ctx;
    if (l->stop == r->item->number) return ses_fail(e, SES_EIO, "nobody listens");
    for (size_t i = 0; i < r->n; i++) note(l, r->item, r->row[i].label, r->row[i].score);
    for (int64_t i = 0; i < r->n_vectors * r->vector_size; i++)
        note(l, r->item, ses_str("x"), (double)r->vectors[i]);
    return true;
}

static bool told(void *ctx, const ses_item *item, ses_err *bad, ses_err *e)
{
    (void)e;
    note(ctx, item, ses_str(bad->msg), 0);
    return true;
}

static bool feed(ses_pipeline *p, int64_t i, ses_err *e)
{
    static const char words[] =
        "The bell rings and nobody counts the hours at sea; the keeper eats alone again";
    size_t n = 3 + (size_t)(i * 7 % (int64_t)(sizeof words - 4));
    return ses_pipeline_feed(p, &(ses_item){ .text = { words, n }, .number = i }, e);
}

static void run(ses_pipeline *p, record *l, int64_t budget, int64_t stop)
{
    ses_err e = { 0 };
    *l = (record){ .stop = stop };
    ses_pipeline_set_callback(p, put, l);
    p->refuse = told;
    ses_pipeline_set_batch_tokens(p, budget);
    bool ok = true;
    for (int64_t i = 1; i <= ITEMS && ok; i++) ok = feed(p, i, &e);
    ok = ok && ses_pipeline_flush(p, &e);
    CHECK_MSG(ok == !stop, "%s", e.msg);
}

/* as: dev, to the runner. first: what all are to say, filled by who comes first. */
static void test(const char *task, const char *dir, ses_device *dev, ses_device *as, record *first)
{
    static record again;
    ses_err e = { 0 };
    ses_pipeline *p = ses_pipeline_open(task, dir, dev, NULL, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    p->dev = as;
    if (!first->n) run(p, first, 1, 0);
    CHECK(first->n > ITEMS * 4);
    for (int64_t budget = 1; budget < 2000; budget = 3 * budget + 1) {
        run(p, &again, budget, 0);
        CHECK_MSG(!strcmp(first->text, again.text), "%s: budget %d", task, (int)budget);
        run(p, &again, budget, ITEMS / 2);
        CHECK(again.n < first->n && !memcmp(first->text, again.text, again.n));
    }
    run(p, &again, ROOM, 0);
    CHECK(feed(p, 1, &e) && feed(p, 2, &e));
    again.n = 0;
    const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = ses_str("at sea"), .number = 3 }, &e);
    CHECK(r && r->item->number == 3); /* the others are answered before it, and not by it */
    CHECK(again.n && !memcmp(first->text, again.text, again.n) && p->items >= 3);
    ses_pipeline_set_batch_tokens(p, 1);
    CHECK(feed(p, 1, &e)); /* of the last one nothing was taken: nobody waits for it */
    ses_pipeline_free(p);
}

static void test_devices(const char *task, const char *dir, ses_device *one, ses_device *several)
{
    static record first;
    first.n = 0;
    ses_device away = *several;
    away.is_host = false;
    test(task, dir, one, one, &first);
    test(task, dir, several, several, &first);
    test(task, dir, several, &away, &first);
}

enum { ODD = 9 }; /* tokens of a sequence that no batch can have */

static bool pass(ses_pipeline *p, const ses_batch *b, const ses_output_request *want, ses_outputs *out,
                 ses_err *e)
{
    for (int64_t s = 0; s < b->seqs; s++)
        if (b->cu_seqlens[s + 1] - b->cu_seqlens[s] == ODD)
            return ses_fail(e, SES_EARG, "%d tokens in %d", ODD, p->refuse ? 0 : (int)p->budget);
    return ses_model_forward(p->model, p->tape, b, want, out, e);
}

/* A batch that cannot be computed, by a thread beside this one or not: its other items are answered, each in
 * its place; or, where nobody is told of one, the work ends with what was wrong, and can begin again. */
static void test_failing(ses_device *one, ses_device *several)
{
    static record first, again;
    for (int threads = 1; threads <= 2; threads++) {
        ses_err e = { 0 };
        ses_pipeline *p = ses_pipeline_open("text-classification", "tests/pipelines/bert-label",
                                            threads == 1 ? one : several, NULL, &e);
        if (!CHECK_MSG(p, "%s", e.msg)) return;
        ses_task odd = *p->task;
        odd.pass = pass;
        p->task = &odd;
        if (!first.n) run(p, &first, 1, 0);
        CHECK(strstr(first.text, " 9 tokens in 0 0\n") && strstr(first.text, " neutral "));
        for (int64_t budget = 5; budget < 2000; budget = 3 * budget + 1) {
            run(p, &again, budget, 0);
            CHECK_MSG(!strcmp(first.text, again.text), "%d threads, budget %d", threads, (int)budget);
            p->refuse = NULL;
            bool ok = true;
            for (int64_t i = 1; i <= ITEMS && ok; i++) ok = feed(p, i, &e);
            char want[64];
            snprintf(want, sizeof want, "9 tokens in %d", (int)budget);
            CHECK(!(ok && ses_pipeline_flush(p, &e)));
            CHECK_STR(e.msg, want);
            CHECK(!p->first && !p->next_job && !p->waiting && !p->flies);
            e = (ses_err){ 0 };
        }
        ses_pipeline_free(p);
    }
}

static int64_t downloads, downloaded; /* how many, bytes */
static void download(ses_device *d, void *host, const void *from, size_t size)
{
    (void)d;
    memcpy(host, from, size);
    downloads++, downloaded += (int64_t)size;
}

/* Outputs come to the host by downloads: of the first that is asked for one a batch, of others, here a second
 * layer, a sequence's rows. */
static void test_reads(ses_device *dev, const char *layers, int64_t most, int64_t times)
{
    static record host, away;
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
    int64_t was = p->read;
    downloads = downloaded = 0;
    run(p, &away, 200, 0);
    CHECK(host.n > ITEMS * 4 && !strcmp(host.text, away.text));
    int64_t numbers = times * (p->read - was) * p->model->c.hidden;
    CHECK_MSG(downloads <= most && downloaded == numbers * (int64_t)sizeof(ses_real), "%d reads, %d of %d",
              (int)downloads, (int)downloaded, (int)numbers);
    p->dev = dev;
    ses_pipeline_free(p);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2, .isa = SES_ISA_COUNT }, &e);
    ses_device *one = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_COUNT }, &e);
    if (CHECK(dev && one)) {
        test_devices("text-classification", "tests/pipelines/bert-label", one, dev);
        test_devices("token-classification", "tests/pipelines/bert-tag", one, dev);
        test_failing(one, dev);
        test_reads(dev, "-1", ITEMS / 2, 1);
        test_reads(dev, "0,-1", ITEMS + ITEMS / 2, 2);
    }
    ses_device_free(dev);
    ses_device_free(one);
    return check_report();
}
