/* Generated text: Server-Sent Events, stop strings, several texts, clients that leave, and texts of several
 * clients at a time. */
#define _GNU_SOURCE
#include "serve_fixture.h"

static const char *const models[] = { "sesame-gpt" };

/* ---- events ---- */

enum { MAX_EVENTS = 2048 };

/* The events of a response: documents, and whether "[DONE]" ends it. */
typedef struct events {
    ses_json_doc *doc[MAX_EVENTS];
    size_t n;
    bool done;
} events;

static void events_free(events *e)
{
    for (size_t i = 0; i < e->n; i++) ses_json_free(e->doc[i]);
}

/* Splits a body; every event is "data: TEXT" and an empty line. */
static events events_of(ses_string body)
{
    events e = { 0 };
    static const char prefix[] = "data: ";
    for (size_t at = 0; at < body.n && e.n < MAX_EVENTS;) {
        const char *p = body.p + at, *end = memmem(p, body.n - at, "\n\n", 2);
        size_t skip = sizeof prefix - 1, n = end ? (size_t)(end - p) : 0;
        if (!CHECK_MSG(end && n > skip && !memcmp(p, prefix, skip) && !memchr(p, '\n', n) && !e.done,
                       "event at byte %zu", at))
            break;
        if (n == skip + 6 && !memcmp(p + skip, "[DONE]", 6))
            e.done = true;
        else
            e.doc[e.n] = ses_json_parse(p + skip, n - skip, NULL), CHECK(e.doc[e.n]), e.n++;
        at += n + 2;
    }
    return e;
}

/* Joins the texts of a choice. Free it with free. */
static char *joined(const events *e, int choice)
{
    ses_buf b = { 0 };
    ses_buf_puts(&b, "");
    for (size_t i = 0; i < e->n; i++) {
        const ses_json *v = ses_json_root(e->doc[i]);
        if (number_at(v, "choices/0/index") == choice) ses_buf_puts(&b, text_at(v, "choices/0/text"));
    }
    return b.data;
}

static char *copy_of(const char *s)
{
    char *p = strdup(s);
    if (!p) abort();
    return p;
}

static events stream(serving *s, const char *path, const char *body)
{
    post(s, path, body, 200);
    ses_string type = ses_http_response_header(&s->a, "content-type");
    CHECK(ses_equal(type.p, type.n, "text/event-stream"));
    return events_of(s->a.body);
}

/* ---- /v1/completions ---- */

#define SAMPLE "\"prompt\":\"The town\",\"max_tokens\":24,\"seed\":3,\"temperature\":0.8"

static void test_completions(serving *s)
{
    const ses_json *v = post(s, "/v1/completions", "{" SAMPLE "}", 200);
    char *whole = copy_of(text_at(v, "choices/0/text"));
    double tokens = number_at(v, "usage/completion_tokens");
    CHECK(tokens > 0 && tokens <= 24 && number_at(v, "usage/prompt_tokens") > 0);
    events e = stream(s, "/v1/completions", "{" SAMPLE ",\"stream\":true}");
    char *text = joined(&e, 0);
    CHECK_STR(text, whole);
    CHECK(e.done && e.n > 2);
    for (size_t i = 0; i < e.n; i++) {
        v = ses_json_root(e.doc[i]);
        bool last = i + 1 == e.n;
        CHECK_STR(shape_of(s, v), last ? "{id:s,object:s,created:n,model:s,choices:[{index:n,text:s,logprobs:"
                                         "0,finish_reason:s}]}"
                                       : "{id:s,object:s,created:n,model:s,choices:[{index:n,text:s,logprobs:"
                                         "0,finish_reason:0}]}");
        CHECK_STR(text_at(v, "id"), text_at(ses_json_root(e.doc[0]), "id"));
    }
    events_free(&e);
    free(text);
    e = stream(s, "/v1/completions",
               "{" SAMPLE ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    v = ses_json_root(e.n ? e.doc[e.n - 1] : NULL);
    CHECK(e.done && ses_json_len(member(v, "choices")) == 0 && member(v, "choices"));
    CHECK(number_at(v, "usage/completion_tokens") == tokens);
    events_free(&e);
    /* another seed, another text; the same seed, the same */
    v = post(s, "/v1/completions", "{" SAMPLE "}", 200);
    CHECK_STR(text_at(v, "choices/0/text"), whole);
    v = post(s, "/v1/completions",
             "{\"prompt\":\"The town\",\"max_tokens\":24,\"seed\":4,\"temperature\":0.8}", 200);
    CHECK(strcmp(text_at(v, "choices/0/text"), whole));
    free(whole);
}

static void test_choices(serving *s)
{
    const char *request = "{\"prompt\":[\"The town\",\"A bell\"],\"n\":3,\"max_tokens\":12,\"seed\":5";
    char body[256];
    snprintf(body, sizeof body, "%s}", request);
    const ses_json *v = post(s, "/v1/completions", body, 200);
    char *text[6];
    CHECK(ses_json_len(member(v, "choices")) == 6);
    for (int i = 0; i < 6; i++) {
        char path[32];
        snprintf(path, sizeof path, "choices/%d/index", i);
        CHECK(number_at(v, path) == i);
        snprintf(path, sizeof path, "choices/%d/text", i);
        text[i] = copy_of(text_at(v, path));
    }
    CHECK(strcmp(text[0], text[1]));
    snprintf(body, sizeof body, "%s,\"stream\":true}", request);
    events e = stream(s, "/v1/completions", body);
    int ends = 0;
    for (size_t i = 0; i < e.n; i++)
        ends +=
            ses_json_type_of(member(ses_json_root(e.doc[i]), "choices/0/finish_reason")) == SES_JSON_STRING;
    CHECK(ends == 6 && e.done);
    for (int i = 0; i < 6; i++) {
        char *streamed = joined(&e, i);
        CHECK_STR(streamed, text[i]);
        free(streamed);
        free(text[i]);
    }
    events_free(&e);
}

/* A stop string that begins in one token and ends in the next. */
static void test_stops(serving *s)
{
    const ses_json *v =
        post(s, "/v1/completions",
             "{\"prompt\":\"The town\",\"max_tokens\":24,\"temperature\":0,\"logprobs\":0}", 200);
    char *whole = copy_of(text_at(v, "choices/0/text"));
    const char *a = text_at(v, "choices/0/logprobs/tokens/4"), *b = text_at(v, "choices/0/logprobs/tokens/5");
    char stop[16], body[256];
    snprintf(stop, sizeof stop, "%c%c", a[strlen(a) - 1], *b);
    const char *at = strstr(whole, stop);
    CHECK_MSG(at && at > whole, "'%s' in '%s'", stop, whole);
    if (at) {
        whole[at - whole] = 0;
        snprintf(body, sizeof body,
                 "{\"prompt\":\"The town\",\"max_tokens\":24,\"temperature\":0,\"stop\":[\"zzzz\",\"%s\"]",
                 stop);
        size_t n = strlen(body);
        snprintf(body + n, sizeof body - n, "}");
        v = post(s, "/v1/completions", body, 200);
        CHECK_STR(text_at(v, "choices/0/text"), whole);
        CHECK_STR(text_at(v, "choices/0/finish_reason"), "stop");
        CHECK(number_at(v, "usage/completion_tokens") <= 7);
        snprintf(body + n, sizeof body - n, ",\"stream\":true}");
        events e = stream(s, "/v1/completions", body);
        char *text = joined(&e, 0);
        CHECK_STR(text, whole);
        CHECK_STR(text_at(ses_json_root(e.doc[e.n - 1]), "choices/0/finish_reason"), "stop");
        free(text);
        events_free(&e);
        snprintf(
            body, sizeof body,
            "{\"inputs\":\"The town\",\"parameters\":{\"max_new_tokens\":24,\"do_sample\":false,\"stop\":"
            "[\"%s\"]}}",
            stop);
        v = post(s, "/models/sesame-gpt", body, 200);
        CHECK_STR(text_at(v, "0/generated_text"), whole);
    }
    free(whole);
}

static void test_echo(serving *s)
{
    const ses_json *v = post(s, "/v1/completions",
                             "{\"prompt\":\"The town\",\"max_tokens\":0,\"echo\":true,\"logprobs\":2}", 200);
    CHECK_STR(text_at(v, "choices/0/text"), "The town");
    CHECK(ses_json_type_of(member(v, "choices/0/logprobs/token_logprobs/0")) == SES_JSON_NULL);
    CHECK(number_at(v, "choices/0/logprobs/token_logprobs/1") < 0);
    CHECK(number_at(v, "usage/completion_tokens") == 0);
    v = post(s, "/v1/completions",
             "{\"prompt\":\"The town\",\"max_tokens\":4,\"logprobs\":2,\"temperature\":0}", 200);
    CHECK(ses_json_len(member(v, "choices/0/logprobs/tokens")) == 4);
    CHECK(ses_json_len(member(v, "choices/0/logprobs/top_logprobs/0")) == 2);
    CHECK_STR(text_at(v, "choices/0/finish_reason"), "length");
}

/* ---- /models/NAME with "stream" ---- */

static void test_hub_stream(serving *s)
{
#define INPUTS "{\"inputs\":\"The town\",\"parameters\":{\"max_new_tokens\":16,\"do_sample\":false"
    const ses_json *v = post(s, "/models/sesame-gpt", INPUTS "}}", 200);
    char *whole = copy_of(text_at(v, "0/generated_text"));
    events e = stream(s, "/models/sesame-gpt", INPUTS "},\"stream\":true}");
    ses_buf b = { 0 };
    CHECK(!e.done && e.n >= 16);
    for (size_t i = 0; i < e.n; i++) {
        v = ses_json_root(e.doc[i]);
        bool last = i + 1 == e.n;
        CHECK_STR(shape_of(s, v), last ? "{index:n,token:{id:n,text:s,logprob:n,special:b},generated_text:s,"
                                         "details:{finish_reason:s,generated_tokens:n,seed:0,input_length:n}}"
                                       : "{index:n,token:{id:n,text:s,logprob:n,special:b},generated_text:0,"
                                         "details:0}");
        ses_buf_puts(&b, text_at(v, "token/text"));
        CHECK(last || number_at(v, "token/logprob") <= 0);
    }
    CHECK_STR(b.data, whole);
    CHECK_STR(text_at(v, "generated_text"), whole);
    ses_buf_free(&b);
    events_free(&e);
    /* a stop string: the pieces and the whole text end before it */
    char stop[3] = { whole[8], whole[9], 0 }, body[256];
    snprintf(body, sizeof body, INPUTS ",\"stop\":[\"%s\"]},\"stream\":true}", stop);
    e = stream(s, "/models/sesame-gpt", body);
    ses_buf part = { 0 };
    for (size_t i = 0; i < e.n; i++) ses_buf_puts(&part, text_at(ses_json_root(e.doc[i]), "token/text"));
    CHECK(!strncmp(whole, part.data, part.len) && strstr(whole, stop) == whole + part.len);
    CHECK_STR(text_at(ses_json_root(e.doc[e.n - 1]), "generated_text"), part.data);
    ses_buf_free(&part);
    events_free(&e);
    free(whole);
}

/* ---- several clients ---- */

typedef struct client {
    const serving *s;
    const char *body;
    double begun, first, last; /* seconds; of the pieces */
    size_t pieces;
    bool ok;
    ses_buf text;
    pthread_t thread;
} client;

static bool on_data(void *ctx, const char *p, size_t n)
{
    client *c = ctx;
    c->last = ses_seconds();
    if (!c->pieces++) c->first = c->last;
    return ses_buf_append(&c->text, p, n);
}

static void *run_client(void *arg)
{
    client *c = arg;
    ses_http_response a;
    ses_http_client *h = serving_connect(c->s);
    ses_http_client_on_data(h, on_data, c);
    c->begun = ses_seconds();
    bool ok = ses_http_client_request(
        h, &(ses_http_request){ .target = "/v1/completions", .body = c->body, .n = strlen(c->body) }, &a,
        NULL);
    c->ok = ok && a.status == 200;
    ses_http_client_free(h);
    return NULL;
}

/* A short text that is requested while a long one is generated ends first, and has the same bits as alone. */
static void test_continuous_batching(serving *s)
{
    static const char body[] = "{" SAMPLE ",\"stream\":true}";
    events e = stream(s, "/v1/completions", body);
    char *alone = joined(&e, 0);
    events_free(&e);
    client longer = { .s = s,
                      .body = "{\"prompt\":\"A\",\"max_tokens\":1000,\"seed\":1,\"n\":2,\"stream\":true}" },
           c[4];
    pthread_create(&longer.thread, NULL, run_client, &longer);
    for (int i = 0; i < 500 && metric(s, "sesame_admitted_inputs") == 0; i++) sleep_ms(2);
    for (int i = 0; i < 4; i++) {
        c[i] = (client){ .s = s, .body = body };
        pthread_create(&c[i].thread, NULL, run_client, &c[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(c[i].thread, NULL);
        e = events_of((ses_string){ c[i].text.data, c[i].text.len });
        char *text = joined(&e, 0);
        CHECK_STR(text, alone);
        CHECK(c[i].ok && c[i].pieces > 2 && e.done);
        free(text);
        events_free(&e);
    }
    pthread_join(longer.thread, NULL);
    CHECK(longer.ok);
    for (int i = 0; i < 4; i++)
        CHECK_MSG(c[i].last < longer.last && c[i].begun > longer.begun, "client %d: %g to %g; long: %g to %g",
                  i, c[i].first, c[i].last, longer.first, longer.last);
    for (int i = 0; i < 4; i++) ses_buf_free(&c[i].text);
    ses_buf_free(&longer.text);
    free(alone);
}

/* ---- clients that leave ---- */

static bool leave(void *ctx, const char *p, size_t n)
{
    int *pieces = ctx;
    (void)p, (void)n;
    return ++*pieces < 3;
}

static void test_disconnect(serving *s)
{
    static const char dropped[] = "te_request_failure{err=\"dropped\"}";
    double before = metric(s, dropped);
    int pieces = 0;
    ses_http_response a;
    static const char body[] = "{\"prompt\":\"A\",\"max_tokens\":1000,\"n\":16,\"seed\":1,\"stream\":true}";
    ses_http_client *h = serving_connect(s);
    ses_http_client_on_data(h, leave, &pieces);
    ses_http_request r = { .target = "/v1/completions", .body = body, .n = sizeof body - 1 };
    CHECK(!ses_http_client_request(h, &r, &a, NULL) && pieces == 3);
    ses_http_client_free(h);
    for (int i = 0; i < 1000 && metric(s, dropped) == before; i++) sleep_ms(10);
    CHECK(metric(s, dropped) == before + 1);
    CHECK(metric(s, "sesame_admitted_inputs") == 0);
    /* without a stream, too */
    h = serving_connect(s);
    static const char plain[] = "{\"prompt\":\"A\",\"max_tokens\":1000,\"n\":16,\"seed\":1}";
    r.body = plain, r.n = sizeof plain - 1;
    CHECK(ses_http_client_send(h, &r, NULL));
    for (int i = 0; i < 500 && metric(s, "sesame_admitted_inputs") == 0; i++) sleep_ms(2);
    ses_http_client_free(h);
    for (int i = 0; i < 1000 && metric(s, "sesame_admitted_inputs") > 0; i++) sleep_ms(10);
    CHECK(metric(s, dropped) == before + 2);
    /* a deadline during generation */
    post_with(s, "x-deadline-ms: 30\r\n", "/v1/completions", plain, 504);
}

/* A stream whose deadline passes ends with an error and without [DONE]. */
static void test_stream_deadline(serving *s)
{
    static const char body[] = "{\"prompt\":\"A\",\"max_tokens\":1000,\"n\":7,\"seed\":1,\"stream\":true}";
    ses_http_response a = { 0 };
    ses_http_client *h = serving_connect(s);
    for (int ms = 5; ms <= 5120; ms *= 2) {
        char header[64];
        snprintf(header, sizeof header, "x-deadline-ms: %d\r\n", ms);
        ses_http_request r = {
            .target = "/v1/completions", .headers = header, .body = body, .n = sizeof body - 1
        };
        CHECK(ses_http_client_request(h, &r, &a, NULL) && (a.status == 200 || a.status == 504));
        if (a.status == 200) break; /* else it passed before the first token */
    }
    events e = events_of(a.body);
    const ses_json *v = ses_json_root(e.n ? e.doc[e.n - 1] : NULL);
    CHECK_STR(text_at(v, "error/type"), "timeout_error");
    CHECK(!e.done && e.n > 1);
    events_free(&e);
    ses_http_client_free(h);
}

int main(void)
{
    serving s;
    serving_start(&s, &(ses_server_options){ .models = models, .n_models = 1 });
    test_completions(&s);
    test_choices(&s);
    test_stops(&s);
    test_echo(&s);
    test_hub_stream(&s);
    test_continuous_batching(&s);
    test_disconnect(&s);
    test_stream_deadline(&s);
    serving_stop(&s);
    return check_report();
}
