/* The server under load: the same bits as alone and as the library gives, lanes, full queues, clients that
 * leave, models that are exchanged, and the end. */
#define _GNU_SOURCE
#include "serve/serve_impl.h"
#include "serve_fixture.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/socket.h>

static char encoder_spec[300];

/* ---- the same bits ---- */

static const struct {
    const char *path, *body;
    /* The same for the library; task NULL: not compared. */
    const char *task, *dir, *text, *pair, *settings[4];
    const char *before, *after; /* around the JSON of the result */
} cases[] = {
    { "/models/mask",
      "{\"inputs\":\"The [MASK] rings.\"}",
      "fill-mask",
      "tests/pipelines/bert-mask",
      "The [MASK] rings.",
      NULL,
      { NULL },
      "",
      "" },
    { "/models/tag",
      "{\"inputs\":\"The bell rings in the lighthouse.\"}",
      "token-classification",
      "tests/pipelines/bert-tag",
      "The bell rings in the lighthouse.",
      NULL,
      { "aggregation_strategy", "simple" },
      "",
      "" },
    { "/models/qa",
      "{\"inputs\":{\"question\":\"Who eats?\",\"context\":\"The keeper eats plums.\"}}",
      "question-answering",
      "tests/pipelines/bert-qa",
      "Who eats?",
      "The keeper eats plums.",
      { NULL },
      "",
      "" },
    { "/models/label",
      "{\"inputs\":\"Nobody counts.\"}",
      "text-classification",
      "tests/pipelines/bert-label",
      "Nobody counts.",
      NULL,
      { "top_k", "all" },
      "[",
      "]" },
    { "/embed",
      "{\"inputs\":\"The keeper eats plums.\",\"normalize\":false}",
      "embed",
      "encoder",
      "The keeper eats plums.",
      NULL,
      { NULL },
      "[",
      "]" },
    { "/models/sesame-gpt",
      "{\"inputs\":\"The town\",\"parameters\":{\"max_new_tokens\":12,\"do_sample\":true,\"seed\":7}}",
      "text-generation",
      "sesame-gpt",
      "The town",
      NULL,
      { "max_new_tokens", "12", "seed", "7" },
      "",
      "" },
    { "/models/label/pipeline/zero-shot-classification",
      "{\"inputs\":\"plums\",\"parameters\":{\"candidate_labels\":[\"a\",\"bell\"]}}",
      NULL,
      NULL,
      NULL,
      NULL,
      { NULL },
      "",
      "" },
    { "/rerank",
      "{\"query\":\"plums\",\"texts\":[\"It rains.\",\"He sells plums.\",\"a\"]}",
      NULL,
      NULL,
      NULL,
      NULL,
      { NULL },
      "",
      "" },
    { "/v1/embeddings",
      "{\"input\":[\"a\",\"The keeper\",\"plums plums plums\"],\"encoding_format\":\"base64\"}",
      NULL,
      NULL,
      NULL,
      NULL,
      { NULL },
      "",
      "" },
    { "/predict", "{\"inputs\":[[\"a\",\"b\"],[\"plums\"]]}", NULL, NULL, NULL, NULL, { NULL }, "", "" },
    { "/embed_sparse", "{\"inputs\":\"plums\"}", NULL, NULL, NULL, NULL, { NULL }, "", "" },
    { "/embed_all", "{\"inputs\":[\"plums\",\"a bell\"]}", NULL, NULL, NULL, NULL, { NULL }, "", "" },
    { "/similarity",
      "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"a\",\"bell\"]}}",
      NULL,
      NULL,
      NULL,
      NULL,
      { NULL },
      "",
      "" },
    { "/attention",
      "{\"inputs\":\"The bell rings.\",\"model\":\"mask\"}",
      NULL,
      NULL,
      NULL,
      NULL,
      { NULL },
      "",
      "" },
    { "/tokenize", "{\"inputs\":\"The bell rings.\"}", NULL, NULL, NULL, NULL, { NULL }, "", "" },
};
enum { CASES = SES_LEN(cases), CLIENTS = 32, ROUNDS = 24 };

static char *expected[CASES]; /* responses of an idle server */

/* The response that the library's result corresponds to. Free it with free. */
static char *by_library(serving *s, size_t i)
{
    ses_err e = { 0 };
    ses_setting settings[4] = { { 0 } };
    const char *dir = strcmp(cases[i].dir, "encoder") ? cases[i].dir : tmp_path("encoder");
    size_t n = 0;
    for (; n < 2 && cases[i].settings[2 * n]; n++)
        settings[n] = (ses_setting){ cases[i].settings[2 * n], cases[i].settings[2 * n + 1] };
    if (!strcmp(cases[i].task, "text-generation")) {
        settings[n++] = (ses_setting){ "return_full_text", "false" };
    }
    ses_pipeline *p = ses_pipeline_open(cases[i].task, dir, s->dev, settings, &e);
    ses_item item = { .text = ses_str(cases[i].text), .pair = ses_str(cases[i].pair) };
    const ses_result *r = p ? ses_pipeline_run(p, &item, &e) : NULL;
    CHECK_MSG(r, "%s: %s", cases[i].task, e.msg);
    ses_json_writer *w = ses_json_writer_new(-1, NULL);
    ses_buf b = { 0 };
    if (r) ses_result_write_json(r, w);
    ses_buf_appendf(&b, "%s%s%s", cases[i].before, r ? ses_json_writer_text(w, NULL, NULL) : "",
                    cases[i].after);
    ses_json_writer_free(w);
    ses_pipeline_free(p);
    return b.data;
}

static void test_library(serving *s)
{
    for (size_t i = 0; i < CASES; i++) {
        post(s, cases[i].path, cases[i].body, 200);
        expected[i] = strndup(s->a.body.p, s->a.body.n);
        if (!cases[i].task) continue;
        char *want = by_library(s, i);
        CHECK_STR(expected[i], want);
        free(want);
    }
}

typedef struct client {
    const serving *s;
    int number;
    int wrong, failed;
    pthread_t thread;
} client;

static void *run_client(void *arg)
{
    client *c = arg;
    ses_http_client *h = serving_connect(c->s);
    static const char *const headers[] = { NULL, "x-priority: bulk\r\n", "x-priority: interactive\r\n" };
    for (int i = 0; i < ROUNDS; i++) {
        size_t k = (size_t)(c->number * 7 + i * 5) % CASES;
        ses_http_response a = { 0 };
        ses_http_request r = { .target = cases[k].path,
                               .headers = headers[(c->number + i) % 3],
                               .body = cases[k].body,
                               .n = strlen(cases[k].body) };
        bool ok = ses_http_client_request(h, &r, &a, NULL) && a.status == 200;
        c->failed += !ok;
        c->wrong += ok && (a.body.n != strlen(expected[k]) || memcmp(a.body.p, expected[k], a.body.n));
        if (!ok) break;
    }
    ses_http_client_free(h);
    return NULL;
}

static void test_same_bits(serving *s)
{
    client c[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = (client){ .s = s, .number = i };
        pthread_create(&c[i].thread, NULL, run_client, &c[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(c[i].thread, NULL);
        CHECK_MSG(!c[i].wrong && !c[i].failed, "client %d: %d wrong, %d failed", i, c[i].wrong, c[i].failed);
    }
}

/* ---- one request in another thread ---- */

typedef struct call {
    const serving *s;
    const char *path, *body, *headers;
    int status;
    char *text;
    double ended;
    atomic_bool done;
    pthread_t thread;
} call;

static void *run_call(void *arg)
{
    call *c = arg;
    ses_http_client *h = serving_connect(c->s);
    ses_http_response a = { 0 };
    ses_http_request r = { .target = c->path, .headers = c->headers, .body = c->body, .n = strlen(c->body) };
    if (ses_http_client_request(h, &r, &a, NULL)) {
        c->status = a.status;
        c->text = strndup(a.body.p ? a.body.p : "", a.body.n);
    }
    c->ended = ses_seconds();
    atomic_store(&c->done, true);
    ses_http_client_free(h);
    return NULL;
}

static void begin_call(call *c, const serving *s, const char *path, const char *headers, const char *body)
{
    c->s = s, c->path = path, c->headers = headers, c->body = body;
    c->status = 0, c->text = NULL;
    atomic_init(&c->done, false);
    pthread_create(&c->thread, NULL, run_call, c);
}

static int end_call(call *c)
{
    pthread_join(c->thread, NULL);
    return c->status;
}

static ses_scheduler_stats queue_of(const serving *s)
{
    return ses_scheduler_get_stats(ses_server_scheduler(s->server));
}

/* Waits until the server computes `inputs` inputs or more. */
static bool wait_admitted(const serving *s, int64_t inputs)
{
    for (int i = 0; i < 5000 && queue_of(s).admitted_inputs < inputs; i++) sleep_ms(1);
    return queue_of(s).admitted_inputs >= inputs;
}

static bool wait_idle(const serving *s)
{
    for (int i = 0; i < 5000 && queue_of(s).admitted_inputs; i++) sleep_ms(2);
    return !queue_of(s).admitted_inputs;
}

/* Texts that keep a server with small batches busy. */
static char *bulk_body(const char *before, const char *after)
{
    return body_of(before, 2048, "The keeper of the lighthouse eats plums at noon and counts them.", "\"",
                   after);
}

/* ---- lanes, queue, clients that leave ---- */

static void test_lanes(serving *s)
{
    char *body = bulk_body("{\"inputs\":[", "]}");
    call bulk, quick;
    begin_call(&bulk, s, "/embed", NULL, body);
    CHECK(wait_admitted(s, 2048));
    begin_call(&quick, s, "/embed", NULL, "{\"inputs\":\"a\"}");
    CHECK(end_call(&quick) == 200);
    bool before = !atomic_load(&bulk.done);
    CHECK_MSG(before, "the interactive request waited for the bulk request");
    CHECK(end_call(&bulk) == 200 && bulk.ended > quick.ended);
    free(quick.text);
    free(bulk.text);
    free(body);
}

/* While interactive requests come, bulk batches are short. */
static void test_short_bulk(void)
{
    serving s;
    const char *list[] = { encoder_spec };
    serving_start(&s, &(ses_server_options){ .models = list, .n_models = 1, .batch_tokens = 256 });
    char *body = bulk_body("{\"inputs\":[", "]}");
    call bulk;
    begin_call(&bulk, &s, "/embed", NULL, body);
    CHECK(wait_admitted(&s, 2048));
    for (int i = 0; i < 5000 && queue_of(&s).last_tokens < 128 && !atomic_load(&bulk.done); i++) sleep_ms(1);
    int64_t before = queue_of(&s).last_tokens;
    post(&s, "/embed", "{\"inputs\":\"a\",\"normalize\":true}", 200);
    int64_t tokens = queue_of(&s).last_tokens;
    for (int i = 0; i < 100 && !atomic_load(&bulk.done); i++) { /* the batch that ran meanwhile may be long */
        sleep_ms(1);
        if (!atomic_load(&bulk.done)) tokens = queue_of(&s).last_tokens;
    }
    CHECK_MSG(before >= 128 && before <= 256 && tokens <= 64, "%lld tokens before, %lld after",
              (long long)before, (long long)tokens);
    CHECK(end_call(&bulk) == 200);
    free(bulk.text);
    free(body);
    serving_stop(&s);
}

/* Small requests that arrive together at an idle server become one batch. */
static void test_burst(serving *s)
{
    enum { N = 6 };
    static const char body[] = "{\"inputs\":\"The keeper eats plums.\",\"normalize\":false}";
    ses_http_request r = { .target = "/embed", .body = body, .n = sizeof body - 1 };
    int together = 0;
    for (int k = 0; k < 20; k++) {
        double before = metric(s, "sesame_batch_sequences_count");
        ses_http_client *h = serving_connect(s);
        int fd = ses_http_client_fd(h);
        setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){ 1 }, sizeof(int)); /* sends all in one segment */
        for (int i = 0; i < N; i++) CHECK(ses_http_client_send(h, &r, NULL));
        setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){ 0 }, sizeof(int));
        for (int i = 0; i < N; i++) {
            ses_http_response a = { 0 };
            CHECK(ses_http_client_receive(h, &a, NULL) && a.status == 200 &&
                  a.body.n == strlen(expected[4]) && !memcmp(a.body.p, expected[4], a.body.n));
        }
        ses_http_client_free(h);
        together += metric(s, "sesame_batch_sequences_count") == before + 1;
    }
    CHECK_MSG(together > 10, "%d of 20 bursts were computed in one batch", together);
}

static void test_disconnect(serving *s)
{
    static const char dropped[] = "te_request_failure{err=\"dropped\"}";
    double before = metric(s, dropped), tokens = metric(s, "sesame_tokens_total");
    char *body = bulk_body("{\"inputs\":[", "]}");
    ses_http_client *h = serving_connect(s);
    ses_http_request r = { .target = "/embed", .body = body, .n = strlen(body) };
    CHECK(ses_http_client_send(h, &r, NULL) && wait_admitted(s, 2048));
    int64_t all = queue_of(s).admitted_tokens;
    ses_http_client_free(h);
    CHECK(wait_idle(s));
    for (int i = 0; i < 1000 && metric(s, dropped) == before; i++) sleep_ms(5);
    CHECK(metric(s, dropped) == before + 1);
    CHECK_MSG(metric(s, "sesame_tokens_total") - tokens < (double)all, "all %lld tokens were computed",
              (long long)all);
    free(body);
}

/* A request is admitted whole or rejected. A request above the limits is admitted to an empty queue. */
static void test_full_queue(void)
{
    serving s;
    const char *list[] = { encoder_spec };
    serving_start(&s,
                  &(ses_server_options){
                      .models = list, .n_models = 1, .queue_inputs = 8, .batch_tokens = 16, .workers = 3 });
    char *body = bulk_body("{\"inputs\":[", "]}");
    call bulk;
    begin_call(&bulk, &s, "/embed", NULL, body);
    CHECK(wait_admitted(&s, 2048));
    const ses_json *v = post(&s, "/embed", "{\"inputs\":\"a\"}", 429);
    CHECK_STR(text_at(v, "error_type"), "Overloaded");
    CHECK(header_number(&s, "retry-after") >= 1 && header_number(&s, "retry-after") <= 60);
    v = post(&s, "/v1/embeddings", "{\"input\":[\"a\",\"b\"]}", 429);
    CHECK_STR(text_at(v, "error/type"), "rate_limit_error");
    get(&s, "/health", 200);
    get(&s, "/health/ready", 200);
    CHECK(queue_of(&s).admitted_inputs == 2048);
    CHECK(end_call(&bulk) == 200);
    CHECK(wait_idle(&s));
    post(&s, "/embed", "{\"inputs\":\"a\"}", 200);
    CHECK(metric(&s, "te_request_failure{err=\"overloaded\"}") == 2);
    CHECK(number_at(get(&s, "/stats", 200), "rejected_total") == 2);
    free(bulk.text);
    free(body);
    serving_stop(&s);
}

/* ---- models that are exchanged ---- */

static atomic_bool hammer_ends;

static void *hammer(void *arg)
{
    client *c = arg;
    ses_http_client *h = serving_connect(c->s);
    static const size_t kinds[] = { 0, 3, 5 }; /* fill-mask, classification, generation */
    for (int i = 0; !atomic_load(&hammer_ends) && !c->failed; i++) {
        size_t k = kinds[(size_t)(i + c->number) % SES_LEN(kinds)];
        ses_http_response a = { 0 };
        ses_http_request r = { .target = cases[k].path, .body = cases[k].body, .n = strlen(cases[k].body) };
        bool ok = ses_http_client_request(h, &r, &a, NULL) && a.status == 200;
        c->failed += !ok;
        c->wrong += ok && (a.body.n != strlen(expected[k]) || memcmp(a.body.p, expected[k], a.body.n));
        c->number++;
    }
    ses_http_client_free(h);
    return NULL;
}

static bool wait_status(serving *s, const char *path, int status)
{
    for (int i = 0; i < 1000; i++) {
        ses_http_response a = { 0 };
        ses_http_client *h = serving_connect(s);
        bool same =
            ses_http_client_request(h, &(ses_http_request){ .target = path }, &a, NULL) && a.status == status;
        ses_http_client_free(h);
        if (same) return true;
        sleep_ms(5);
    }
    return false;
}

static void test_reload(void)
{
    serving s;
    client c[8];
    char file[300];
    snprintf(file, sizeof file, "%s", tmp_path("models.txt"));
#define BASE "# models\nmask=tests/pipelines/bert-mask\nlabel=tests/pipelines/bert-label\n\nsesame-gpt\n"
    write_string(file, BASE "extra=tests/pipelines/bert-tag\n");
    serving_start(&s, &(ses_server_options){ .models_file = file, .admin = true, .batch_tokens = 64 });
    for (int i = 0; i < 8; i++) {
        c[i] = (client){ .s = &s, .number = i };
        pthread_create(&c[i].thread, NULL, hammer, &c[i]);
    }
    for (int round = 0; round < 3; round++) {
        write_string(file, BASE "new=tests/pipelines/bert-qa\n");
        ses_server_reload(s.server);
        CHECK(wait_status(&s, "/v1/models/new", 200) && wait_status(&s, "/v1/models/extra", 404));
        write_string(file, BASE "extra=tests/pipelines/bert-tag\r\n");
        ses_server_reload(s.server);
        CHECK(wait_status(&s, "/v1/models/extra", 200) && wait_status(&s, "/v1/models/new", 404));
    }
    /* a broken list: the models stay */
    write_string(file, "mask=tests/pipelines/none\n");
    ses_server_reload(s.server);
    sleep_ms(50);
    get(&s, "/v1/models/extra", 200);
    atomic_store(&hammer_ends, true);
    for (int i = 0; i < 8; i++) {
        pthread_join(c[i].thread, NULL);
        CHECK_MSG(!c[i].failed && !c[i].wrong && c[i].number > i, "client %d: %d failed, %d wrong", i,
                  c[i].failed, c[i].wrong);
    }
    /* a request in progress keeps its model */
    char *body = bulk_body("{\"input\":[", "],\"model\":\"extra\"}");
    call bulk;
    begin_call(&bulk, &s, "/v1/embeddings", NULL, body);
    CHECK(wait_admitted(&s, 2048));
    post(&s, "/admin/models/extra/unload", "", 200);
    get(&s, "/v1/models/extra", 404);
    CHECK(end_call(&bulk) == 200);
    free(bulk.text);
    free(body);
    serving_stop(&s);
}

/* ---- the end ---- */

/* Requests that have been received are answered. */
static void test_drain(void)
{
    serving s;
    const char *list[] = { encoder_spec, "sesame-gpt" };
    enum { N = 16 };
    call c[N];
    serving_start(&s, &(ses_server_options){
                          .models = list, .n_models = 2, .batch_tokens = 32, .queue_inputs = 1 << 20 });
    char *body = body_of("{\"inputs\":[", 512, "The keeper of the lighthouse eats plums.", "\"", "]}");
    for (int i = 0; i < N; i++)
        begin_call(&c[i], &s, i % 4 ? "/embed" : "/models/sesame-gpt", NULL,
                   i % 4 ? body : "{\"inputs\":\"The\",\"parameters\":{\"max_new_tokens\":60,\"seed\":1}}");
    for (int i = 0; i < 5000 && ses_http_server_stats(ses_server_http(s.server)).requests_total < N; i++)
        sleep_ms(1);
    int busy = 0;
    for (int i = 0; i < N; i++) busy += !atomic_load(&c[i].done);
    serving_stop(&s);
    CHECK(busy > 0);
    for (int i = 0; i < N; i++) {
        CHECK_MSG(end_call(&c[i]) == 200, "request %d: status %d", i, c[i].status);
        if (i > 1 && i % 4) CHECK(c[i].text && c[1].text && !strcmp(c[i].text, c[1].text));
    }
    for (int i = 0; i < N; i++) free(c[i].text);
    free(body);
}

/* The server stops while it computes: run returns, nothing is used after it is freed. */
static void test_stop(void)
{
    serving s;
    const char *list[] = { encoder_spec, "sesame-gpt" };
    call c[2];
    serving_start(&s, &(ses_server_options){ .models = list, .n_models = 2, .batch_tokens = 32 });
    char *body = bulk_body("{\"inputs\":[", "]}");
    begin_call(&c[0], &s, "/embed", NULL, body);
    begin_call(&c[1], &s, "/v1/completions", NULL,
               "{\"prompt\":\"A\",\"max_tokens\":1000,\"n\":4,\"seed\":1,\"stream\":true}");
    CHECK(wait_admitted(&s, 2049));
    double begin = ses_seconds();
    ses_server_stop(s.server);
    serving_stop(&s);
    CHECK_MSG(ses_seconds() - begin < 10, "%g seconds", ses_seconds() - begin);
    for (int i = 0; i < 2; i++) end_call(&c[i]), free(c[i].text);
    free(body);
}

static void test_unix_socket(void)
{
    ses_err e = { 0 };
    serving s = { .dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e) };
    const char *list[] = { encoder_spec };
    char path[300];
    struct stat st;
    snprintf(path, sizeof path, "%s", tmp_path("socket"));
    ses_server_options o = { .models = list, .n_models = 1, .dev = s.dev };
    o.http.port = -1, o.http.unix_socket = path;
    s.server = ses_server_new(&o, &e);
    if (!CHECK_MSG(s.server, "%s", e.msg)) return;
    pthread_create(&s.thread, NULL, serving_run, &s);
    CHECK(!stat(path, &st) && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
    s.client = ses_http_client_open(path, 0, 10, &e);
    CHECK(s.client && ses_json_len(post(&s, "/embed", "{\"inputs\":\"a\"}", 200)) == 1);
    serving_stop(&s);
    CHECK(stat(path, &st));
}

int main(void)
{
    serving s;
    make_models();
    snprintf(encoder_spec, sizeof encoder_spec, "encoder=%s", tmp_path("encoder"));
    const char *list[] = { encoder_spec,
                           "mask=tests/pipelines/bert-mask",
                           "tag=tests/pipelines/bert-tag",
                           "qa=tests/pipelines/bert-qa",
                           "label=tests/pipelines/bert-label",
                           "score=tests/pipelines/bert-score",
                           "sesame-gpt" };
    serve_threads = 2;
    serving_start(&s, &(ses_server_options){ .models = list, .n_models = SES_LEN(list), .batch_tokens = 64 });
    serve_threads = 1;
    test_library(&s);
    test_same_bits(&s);
    test_burst(&s);
    test_lanes(&s);
    test_disconnect(&s);
    serving_stop(&s);
    test_short_bulk();
    test_full_queue();
    test_reload();
    test_drain();
    test_stop();
    test_unix_socket();
    for (size_t i = 0; i < CASES; i++) free(expected[i]);
    remove_models();
    return check_report();
}
