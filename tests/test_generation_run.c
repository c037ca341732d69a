/* Generation requests of several clients on one generator: encoded in another thread, streamed, cancelled,
 * finished by another pipeline; results are the pipeline's. Items that fail in a batch fail alone. */
#include "check.h"

#include "base/str.h"
#include "sesame/sesame.h"
#include "task/generation_task.h"
#include "task/prepared.h"

#include <math.h>
#include <pthread.h>

enum { WORDS = 71, CLIENTS = 24, SPECIAL = 22 };

/* A tokenizer with the words w0 ... w70; w22 is special. */
static ses_tokenizer *word_tokenizer(int words)
{
    char text[8192];
    ses_err e = { 0 };
    size_t n =
        (size_t)snprintf(text, sizeof text,
                         "{\"added_tokens\": [{\"id\": 22, \"content\": \"w22\", \"special\": true, "
                         "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": "
                         "false}], \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"model\": "
                         "{\"type\": \"WordLevel\", \"unk_token\": \"w0\", \"vocab\": {");
    for (int i = 0; i < words; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"w%d\": %d", i ? ", " : "", i, i);
    n += (size_t)snprintf(text + n, sizeof text - n, "}}}");
    ses_tokenizer *t = ses_tokenizer_from_json(text, n, &e);
    CHECK_MSG(t, "%s", e.msg);
    return t;
}

static void result_text(const ses_result *r, ses_buf *b)
{
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    size_t n = 0;
    ses_result_write_json(r, w);
    const char *text = ses_json_writer_text(w, &n, NULL);
    ses_buf_append(b, text ? text : "", n);
    ses_json_writer_free(w);
}

/* ---- clients ---- */

typedef struct client {
    ses_item item;
    char text[64];
    ses_request *r; /* NULL: not encoded yet */
    ses_buf stream[4];
    int tokens, specials, cancel_at, finished;
    bool streams;
} client;

/* The requests that the encoding thread has prepared. */
typedef struct queue {
    pthread_mutex_t lock;
    ses_pipeline *p;
    client *c;
    int n;
} queue;

static const ses_setting many[][4] = {
    { { "max_new_tokens", "9" }, { 0 } },
    { { "max_new_tokens", "6" }, { "num_beams", "3" }, { "num_return_sequences", "2" }, { 0 } },
    { { "do_sample", "true" }, { "seed", "3" }, { "num_return_sequences", "3" }, { 0 } },
    { { "logprobs", NULL }, { "top_logprobs", "3" }, { "max_new_tokens", "4" }, { 0 } },
    { { "prompt_logprobs", NULL }, { "max_new_tokens", "1" }, { "return_full_text", "false" }, { 0 } },
};

static void make_clients(client *c)
{
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = (client){ 0 };
        snprintf(c[i].text, sizeof c[i].text, "w%d w%d w%d", 7 + i, 60 - 2 * i, 9);
        c[i].item = (ses_item){ .text = ses_str(c[i].text), .number = i };
        if (i % 6) c[i].item.settings = many[i % 6 - 1];
        c[i].streams = i % 6 != 2;
    }
    c[6].cancel_at = 3;
}

static bool on_token(void *ctx, ses_request *r, const ses_generation_token *t)
{
    client *c = ctx;
    CHECK(c->r == r && t->token.n && t->token.p[0] == 'w');
    if (t->special) CHECK(t->id == SPECIAL && !t->text.n);
    c->specials += t->special;
    ses_buf_append(&c->stream[t->event->sequence], t->text.p, t->text.n);
    return ++c->tokens != c->cancel_at;
}

static void on_finish(void *ctx, ses_request *r)
{
    client *c = ctx;
    CHECK(c->r == r && !r->error);
    c->finished++;
}

static void *encode_all(void *ctx)
{
    queue *q = ctx;
    for (int i = 0; i < CLIENTS; i++) {
        ses_err e = { 0 };
        ses_request *r = ses_request_prepare(q->p, &q->c[i].item, &e);
        pthread_mutex_lock(&q->lock);
        q->c[i].r = r, q->n++;
        pthread_mutex_unlock(&q->lock);
    }
    return NULL;
}

/* Starts requests as they arrive; returns when all have finished. */
static void serve(ses_pipeline *p, queue *q)
{
    ses_err e = { 0 };
    int started = 0;
    ses_generator *g = ses_generator_new(ses_pipeline_model(p), 150, 7, &e);
    if (!CHECK_MSG(g, "%s", e.msg)) return;
    for (bool busy = true; busy || started < CLIENTS;) {
        pthread_mutex_lock(&q->lock);
        int ready = q->n;
        pthread_mutex_unlock(&q->lock);
        for (; started < ready; started++) {
            client *c = &q->c[started];
            ses_generation_callbacks callbacks = { c->streams ? on_token : NULL, on_finish, c };
            if (!CHECK(c->r)) exit(1);
            CHECK_MSG(ses_generation_task_start(p, c->r, g, &callbacks, &e), "%s", e.msg);
            if (started == 12) CHECK(ses_generation_task_cancel(c->r));
        }
        busy = ses_generator_step(g);
    }
    ses_generator_free(g);
}

/* The pieces of a text add up to it; of a cancelled one, to its beginning. */
static void check_stream(const client *c, const ses_result *r, bool cancelled)
{
    for (size_t i = 0; c->streams && i < r->n; i++) {
        const ses_buf *s = &c->stream[i];
        ses_string text = r->row[i].text;
        size_t prompt = strncmp(text.p, c->text, strlen(c->text)) ? 0 : strlen(c->text);
        CHECK_MSG(s->len <= text.n - prompt && !memcmp(text.p + prompt, s->data ? s->data : "", s->len),
                  "client %d: \"%s\"", (int)c->item.number, text.p);
        CHECK(cancelled ? c->tokens == c->cancel_at : s->len == text.n - prompt);
    }
}

static void check_client(ses_pipeline *p, client *c)
{
    ses_err e = { 0 };
    ses_result ours;
    ses_buf got = { 0 }, want = { 0 };
    const ses_generation_request *s = c->r->state;
    bool cancelled = c->cancel_at || c->item.number == 12;
    CHECK(c->finished == 1 && s->cancelled == cancelled && !ses_generation_task_cancel(c->r));
    if (CHECK_MSG(ses_request_finish(p, c->r, &ours, &e), "%s", e.msg)) {
        check_stream(c, &ours, cancelled);
        result_text(&ours, &got);
        for (size_t i = 0; i < s->n; i++)
            CHECK(s->end[i].tokens == (c->cancel_at ? 3
                                       : cancelled  ? 0
                                                    : s->end[i].tokens) &&
                  (s->end[i].finish == SES_FINISH_CANCELLED) == cancelled);
    }
    const ses_result *theirs = ses_pipeline_run(p, &c->item, &e);
    if (CHECK_MSG(theirs, "%s", e.msg)) result_text(theirs, &want);
    if (!cancelled) CHECK_STR(got.data, want.data);
    ses_buf_free(&got), ses_buf_free(&want);
    for (int i = 0; i < 4; i++) ses_buf_free(&c->stream[i]);
    ses_request_free(c->r);
}

static void test_clients(ses_device *dev)
{
    ses_err e = { 0 };
    static client c[CLIENTS];
    ses_tokenizer *t = word_tokenizer(WORDS);
    const ses_setting settings[] = { { "max_new_tokens", "12" }, { "eos_token_id", "2" }, { 0 } };
    ses_pipeline_options o = { .settings = settings, .tokenizer = t };
    ses_pipeline *p = ses_pipeline_open_with("text-generation", "tests/golden/gpt2-lm", dev, &o, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    ses_pipeline *compute = ses_pipeline_clone(p, &e);
    queue q = { .lock = PTHREAD_MUTEX_INITIALIZER, .p = p, .c = c };
    pthread_t thread;
    make_clients(c);
    CHECK(compute && !pthread_create(&thread, NULL, encode_all, &q));
    serve(compute, &q);
    pthread_join(thread, NULL);
    int specials = 0;
    for (int i = 0; i < CLIENTS; i++) specials += c[i].specials, check_client(p, &c[i]);
    CHECK_MSG(specials > 0, "no special token was generated");
    ses_pipeline_free(compute), ses_pipeline_free(p), ses_tokenizer_free(t);
}

/* A request that needs more than the generator has is refused. */
static void test_refused(ses_device *dev)
{
    ses_err e = { 0 };
    ses_tokenizer *t = word_tokenizer(WORDS);
    const ses_setting settings[] = { { "num_beams", "4" }, { 0 } };
    ses_pipeline_options o = { .settings = settings, .tokenizer = t };
    ses_pipeline *p = ses_pipeline_open_with("text-generation", "tests/golden/gpt2-lm", dev, &o, &e);
    ses_generator *g = p ? ses_generator_new(ses_pipeline_model(p), 0, 3, &e) : NULL;
    ses_request *r = g ? ses_request_prepare(p, &(ses_item){ .text = ses_str("w7 w8") }, &e) : NULL;
    client c = { .r = r };
    ses_generation_callbacks callbacks = { NULL, on_finish, &c };
    CHECK(r && !ses_generation_task_start(p, r, g, &callbacks, &e) && strstr(e.msg, "4 sequences"));
    CHECK(!ses_generator_step(g) && !c.finished && !ses_generation_task_cancel(r));
    ses_request_free(r), ses_generator_free(g), ses_pipeline_free(p), ses_tokenizer_free(t);
}

/* ---- settings of a request ---- */

static void run_one(ses_pipeline *p, client *c)
{
    ses_err e = { 0 };
    ses_generator *g = ses_generator_new(ses_pipeline_model(p), 0, 0, &e);
    ses_generation_callbacks callbacks = { on_token, on_finish, c };
    CHECK_MSG(c->r && ses_generation_task_start(p, c->r, g, &callbacks, &e), "%s", e.msg);
    while (ses_generator_step(g)) continue;
    ses_generator_free(g);
}

/* Ends a request: its text without the prompt must be the stream, and `want` with its spaces removed. */
static void check_text(ses_pipeline *p, client *c, size_t prompt, const char *want)
{
    ses_result r;
    char text[256] = "";
    size_t n = 0;
    CHECK(ses_request_finish(p, c->r, &r, NULL) && r.row->text.n - prompt == c->stream->len);
    CHECK(!memcmp(r.row->text.p + prompt, c->stream->data ? c->stream->data : "", c->stream->len));
    for (size_t i = 0; i < c->stream->len && n < sizeof text - 1; i++)
        if (c->stream->data[i] != ' ') text[n++] = c->stream->data[i];
    CHECK_STR(text, want);
    ses_buf_free(c->stream);
    ses_request_free(c->r);
    *c = (client){ 0 };
}

static void test_request_settings(ses_device *dev)
{
    ses_err e = { 0 };
    ses_tokenizer *t = word_tokenizer(WORDS);
    const ses_setting settings[] = { { "max_new_tokens", "6" }, { "eos_token_id", "2" }, { 0 } };
    ses_pipeline_options o = { .settings = settings, .tokenizer = t };
    ses_pipeline *p = ses_pipeline_open_with("text-generation", "tests/golden/gpt2-lm", dev, &o, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    const ses_item item = { .text = ses_str("w13 w48 w9") };
    const int32_t id[] = { 13, 48, 9 }, bad[] = { 13, 71 };
    const char *whole = "w19w7w7w19w19";
    size_t prompt = item.text.n;
    client c = { .r = ses_request_prepare(p, &item, &e) };
    run_one(p, &c), check_text(p, &c, prompt, whole);
    c.r = ses_generation_request_from_ids(p, &(ses_item){ 0 }, id, 3, &e);
    run_one(p, &c), check_text(p, &c, prompt, whole);
    CHECK(!ses_generation_request_from_ids(p, &item, bad, 2, &e) && strstr(e.msg, "token id 71 at index 1"));
    e = (ses_err){ 0 };
    for (int hides = 0; hides < 2; hides++) { /* "w7 w" may begin the first stop string */
        c.r = ses_request_prepare(p, &item, &e);
        ((ses_generation_request *)c.r->state)->hides_stop = hides;
        CHECK(ses_generation_request_add_stop(c.r, ses_str("w7 w8"), &e) &&
              ses_generation_request_add_stop(c.r, ses_str("7 w7 w1"), &e) &&
              !ses_generation_request_add_stop(c.r, ses_str(""), &e));
        e = (ses_err){ 0 };
        run_one(p, &c), check_text(p, &c, prompt, hides ? "w19w" : "w19w7w7w19");
    }
    c.r = ses_request_prepare(p, &item, &e);
    CHECK(ses_generation_request_add_bias(c.r, 30, 100, &e) &&
          ses_generation_request_add_bias(c.r, 31, 90, &e));
    run_one(p, &c), check_text(p, &c, prompt, "w30w30w30w30w30w30");
    c.r = ses_request_prepare(p, &item, &e);
    run_one(p, &c), check_text(p, &c, prompt, whole); /* the pipeline's options are unchanged */
    ses_pipeline_free(p), ses_tokenizer_free(t);
}

/* A byte-level tokenizer with first and second bytes of characters, and ASCII words: random tokens make
 * characters of two tokens, and invalid ones. */
static ses_tokenizer *byte_tokenizer(void)
{
    char text[8192];
    ses_err e = { 0 };
    size_t n =
        (size_t)snprintf(text, sizeof text,
                         "{\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                         "\"trim_offsets\": true, \"use_regex\": true}, \"model\": {\"type\": \"BPE\", "
                         "\"merges\": [], \"vocab\": {\"a\": 0");
    for (int i = 1; i < WORDS; i++) {
        char word[16];
        bool first = i % 3 == 1, second = i % 3 == 2 && i / 3 < 18;
        snprintf(word, sizeof word, first || second ? "\\u%04x" : "W%d",
                 first    ? 0xC2 + i / 3
                 : second ? 0xAE + i / 3
                          : i);
        n += (size_t)snprintf(text + n, sizeof text - n, ", \"%s\": %d", word, i);
    }
    snprintf(text + n, sizeof text - n, "}}}");
    ses_tokenizer *t = ses_tokenizer_from_json(text, strlen(text), &e);
    CHECK_MSG(t && ses_tokenizer_traits_of(t).decodes_bytes, "%s", e.msg);
    return t;
}

/* Characters of several tokens: pieces are complete characters and add up to the text. */
static bool on_byte_token(void *ctx, ses_request *r, const ses_generation_token *t)
{
    client *c = ctx;
    (void)r;
    c->tokens++, c->specials += !t->text.n;
    ses_buf_append(c->stream, t->text.p, t->text.n);
    CHECK(!t->text.n || ((unsigned char)t->text.p[0] & 0xC0) != 0x80);
    return true;
}

static void test_bytes(ses_device *dev)
{
    ses_err e = { 0 };
    ses_tokenizer *t = byte_tokenizer();
    const ses_setting settings[] = {
        { "do_sample", "true" }, { "temperature", "9" }, { "top_k", "all" }, { 0 }
    };
    ses_pipeline_options o = { .settings = settings, .tokenizer = t };
    ses_pipeline *p = ses_pipeline_open_with("text-generation", "tests/golden/gpt2-lm", dev, &o, &e);
    ses_generator *g = p ? ses_generator_new(ses_pipeline_model(p), 0, 0, &e) : NULL;
    if (!CHECK_MSG(g, "%s", e.msg)) return;
    int held_back = 0;
    for (int seed = 0; seed < 40; seed++) {
        client c = { .r = ses_generation_request_from_ids(p, &(ses_item){ 0 }, (const int32_t[]){ 3, 4 }, 2,
                                                          &e) };
        ses_generation_callbacks callbacks = { on_byte_token, on_finish, &c };
        ses_result r;
        ses_generation_request_own_options(c.r, &e)->seed = (uint64_t)seed;
        CHECK_MSG(ses_generation_task_start(p, c.r, g, &callbacks, &e), "%s", e.msg);
        while (ses_generator_step(g)) continue;
        CHECK(ses_request_finish(p, c.r, &r, &e) && r.row->text.n >= c.stream->len);
        CHECK(!memcmp(r.row->text.p + r.item->text.n, c.stream->data, c.stream->len) &&
              r.row->text.n == r.item->text.n + c.stream->len);
        held_back += c.specials;
        ses_buf_free(c.stream), ses_request_free(c.r);
    }
    CHECK_MSG(held_back > 50, "%d", held_back);
    ses_generator_free(g), ses_pipeline_free(p), ses_tokenizer_free(t);
}

/* ---- failing items ---- */

typedef struct outcome {
    int results, failed;
    int64_t last;
    char why[1024];
} outcome;

static bool on_result(void *ctx, const ses_result *r, ses_err *e)
{
    outcome *x = ctx;
    (void)e;
    CHECK(r->item->number == x->last + 1 && r->n == 1);
    x->results++, x->last = r->item->number;
    return true;
}

static bool on_item_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    outcome *x = ctx;
    (void)e;
    CHECK(item->number == x->last + 1);
    x->failed++, x->last = item->number;
    snprintf(x->why, sizeof x->why, "%s", why->msg);
    return true;
}

/* The embedding of w9 is NaN. */
static void test_failing_items(ses_device *dev)
{
    ses_err e = { 0 };
    ses_tokenizer *t = word_tokenizer(41);
    ses_model *m = ses_model_open("tests/golden/bart-untied", dev, &(ses_model_options){ .train = true }, &e);
    const ses_param *x = ses_store_find(ses_model_store(m), "embed.token");
    x->tensor->f[9 * x->tensor->dim[1]] = (ses_real)NAN;
    const ses_setting settings[] = { { "max_new_tokens", "5" }, { "min_new_tokens", "5" }, { 0 } },
                      own[] = { { "num_beams", "2" }, { 0 } };
    ses_pipeline_options o = { .settings = settings, .tokenizer = t, .model = m };
    ses_pipeline *p = ses_pipeline_open_with("text2text-generation", NULL, NULL, &o, &e);
    if (!CHECK_MSG(p, "%s", e.msg)) return;
    outcome out = { .last = -1 };
    ses_pipeline_set_callback(p, on_result, &out);
    for (int keep_going = 1; keep_going >= 0; keep_going--) {
        ses_pipeline_set_error_callback(p, keep_going ? on_item_error : NULL, &out);
        out = (outcome){ .last = -1 };
        bool ok = true;
        for (int i = 0; ok && i < 9; i++) {
            char text[64];
            snprintf(text, sizeof text, "w%d w%d", 20 + i, i % 4 == 2 ? 9 : 30);
            ok = ses_pipeline_feed(
                p, &(ses_item){ .text = ses_str(text), .number = i, .settings = i % 3 == 1 ? own : NULL },
                &e);
        }
        ok = ok && ses_pipeline_flush(p, &e);
        CHECK_MSG(ok == keep_going, "%s", e.msg);
        CHECK_MSG(strstr(keep_going ? out.why : e.msg, "NaN"), "%s", keep_going ? out.why : e.msg);
        if (!keep_going) continue;
        CHECK(out.results == 7 && out.failed == 2);
        ses_pipeline_stats s = ses_pipeline_get_stats(p); /* no text was generated twice */
        CHECK_MSG(s.tokens_generated == 7 * 5, "%d tokens", (int)s.tokens_generated);
    }
    ses_pipeline_free(p), ses_model_free(m), ses_tokenizer_free(t);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    test_clients(dev);
    test_refused(dev);
    test_request_settings(dev);
    test_bytes(dev);
    test_failing_items(dev);
    ses_device_free(dev);
    return check_report();
}
