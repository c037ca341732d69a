/* The HTTP server: requests, responses, order, streams, and the life of the server. */
#define _GNU_SOURCE
#include "http_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define H "Host: localhost\r\n"

static ses_http_client *client_of(const fixture *f)
{
    ses_err e = { 0 };
    ses_http_client *c = ses_http_client_open("127.0.0.1", f->port, 10, &e);
    CHECK_MSG(c, "%s", e.msg);
    if (!c) exit(check_report());
    return c;
}

static bool equals(ses_string s, const char *text) { return s.n == strlen(text) && !memcmp(s.p, text, s.n); }

/* One request on a client; the body it returns. */
static ses_string ask(ses_http_client *c, const ses_http_request *r, int status)
{
    ses_err e = { 0 };
    ses_http_response a = { 0 };
    bool ok = ses_http_client_request(c, r, &a, &e);
    CHECK_MSG(ok && a.status == status, "status %d, wanted %d: %s", a.status, status, e.msg);
    return a.body;
}

/* ---- requests and responses ---- */

static void test_basics(void)
{
    fixture f;
    fixture_start(&f, NULL);
    ses_http_client *c = client_of(&f);
    for (int i = 0; i < 100; i++)
        CHECK(equals(ask(c, &(ses_http_request){ .body = "hello", .n = 5 }, 200), "hello"));
    CHECK(equals(ask(c, &(ses_http_request){ .body = "chunks", .n = 6, .chunked = true }, 200), "chunks"));
    CHECK(equals(ask(c, &(ses_http_request){ .body = "", .chunked = true }, 200), ""));
    CHECK(equals(ask(c, &(ses_http_request){ .body = "" }, 200), ""));
    CHECK(ask(c, &(ses_http_request){ .target = "/empty" }, 204).n == 0);
    CHECK(ask(c, &(ses_http_request){ .target = "/big?100000", .method = "HEAD" }, 200).n == 0);
    CHECK(ask(c, &(ses_http_request){ .target = "/big?5000000" }, 200).n == 5000000);
    CHECK(equals(
        ask(c, &(ses_http_request){ .target = "/header", .headers = "X-A: 1\r\nx-a: \r\nX-a: 3\r\n" }, 201),
        "1, , 3"));
    ses_http_response a;
    CHECK(ses_http_client_request(c, &(ses_http_request){ .target = "/header" }, &a, NULL) && a.keep_alive);
    CHECK(equals(ses_http_response_header(&a, "x-a"), "absent") && a.body.n == 0);
    CHECK(equals(ses_http_response_header(&a, "Content-Type"), "text/plain; charset=utf-8"));
    CHECK(equals(ses_http_response_header(&a, "x-content-type-options"), "nosniff"));
    CHECK(ses_http_response_header(&a, "date").n == 29 && !ses_http_response_header(&a, "x-c").p);
    CHECK(ses_http_server_stats(f.server).accepted_total == 1);
    CHECK(ses_http_server_stats(f.server).requests_total == 108);
    CHECK(wait_until(&f.done, 108) && atomic_load(&f.freed) == 2);
    CHECK_MSG(ses_http_server_stats(f.server).buffered_bytes == 0, "%zu bytes",
              ses_http_server_stats(f.server).buffered_bytes);
    ses_http_client_free(c);
    fixture_stop(&f);
}

static void test_large_bodies(void)
{
    fixture f;
    enum { N = 20000000 };
    char *body = malloc(N);
    fixture_start(&f, NULL);
    for (size_t i = 0; i < N; i++) body[i] = (char)(i * 7 + i / 1000);
    ses_http_client *c = client_of(&f);
    for (int chunked = 0; chunked < 2; chunked++) {
        ses_string s = ask(c, &(ses_http_request){ .body = body, .n = N, .chunked = chunked }, 200);
        CHECK(s.n == N && !memcmp(s.p, body, N));
    }
    free(body);
    ses_http_client_free(c);
    fixture_stop(&f);
}

static void test_http10(void)
{
    fixture f;
    char out[4096];
    fixture_start(&f, NULL);
    static const char text[] = "GET / HTTP/1.0\r\n\r\n";
    CHECK(raw_exchange(f.port, text, strlen(text), out, sizeof out - 1) > 0);
    CHECK(strstr(out, "HTTP/1.1 200 OK\r\n") == out && strstr(out, "Connection: close\r\n"));
    static const char two[] = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n";
    CHECK(raw_exchange(f.port, two, strlen(two), out, sizeof out - 1) > 0);
    CHECK(strstr(out, "Connection: keep-alive\r\n") && strstr(out, "Connection: close\r\n"));
    static const char post[] =
        "POST /x HTTP/1.1\r\n" H "Connection: close\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n";
    int requests = atomic_load(&f.requests);
    CHECK(raw_exchange(f.port, post, strlen(post), out, sizeof out - 1) > 0);
    CHECK(strstr(out, "\r\n\r\nabc") && strlen(strstr(out, "\r\n\r\nabc")) == 7);
    CHECK(atomic_load(&f.requests) == requests + 1);
    fixture_stop(&f);
}

static void test_continue(void)
{
    fixture f;
    char out[4096] = "";
    fixture_start(&f, NULL);
    int fd = raw_connect(f.port);
    raw_send(fd, "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    CHECK(raw_read(fd, out, 25) == 25 && !strcmp(out, "HTTP/1.1 100 Continue\r\n\r\n"));
    raw_send(fd, "abc");
    CHECK(raw_read(fd, out, 15) == 15 && strstr(out, "200 OK"));
    close(fd);
    /* The body is there: no interim response. */
    static const char text[] =
        "POST / HTTP/1.1\r\n" H "Connection: close\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc";
    CHECK(raw_exchange(f.port, text, strlen(text), out, sizeof out - 1) > 0 &&
          strstr(out, "HTTP/1.1 200") == out);
    /* Too large: rejected before the body is sent. */
    static const char large[] =
        "POST / HTTP/1.1\r\n" H "Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n";
    CHECK(raw_exchange(f.port, large, strlen(large), out, sizeof out - 1) > 0 &&
          strstr(out, "HTTP/1.1 413") == out);
    /* After the response to an earlier request. */
    fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.1\r\n" H "\r\nPOST / HTTP/1.1\r\n" H
                 "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    CHECK(wait_held(&f, 1));
    ses_http_reply(f.held[0], 404, NULL, NULL, 0, NULL);
    long n = raw_read(fd, out, 15);
    CHECK(n == 15 && strstr(out, "404"));
    for (n = 0; n < 2000 && !strstr(out, "100 Continue\r\n\r\n");) {
        long k = raw_read(fd, out + n, 1);
        if (k != 1) break;
        n += k;
    }
    CHECK(strstr(out, "100 Continue\r\n\r\n"));
    close(fd);
    fixture_stop(&f);
}

/* ---- order ---- */

typedef struct answerer {
    fixture *f;
    int n, step; /* answers held requests i * step mod n */
} answerer;

static void *answer(void *arg)
{
    answerer *a = arg;
    for (int i = 0; i < a->n; i++) {
        char text[32];
        int k = (int)((long)i * a->step % a->n);
        snprintf(text, sizeof text, "%.*s", (int)ses_http_query(a->f->held[k]).n,
                 ses_http_query(a->f->held[k]).p);
        ses_http_reply(a->f->held[k], 200, "text/plain", text, strlen(text), NULL);
        if (i % 7 == 0) sleep_ms(1);
    }
    return NULL;
}

static void test_pipelining(void)
{
    enum { N = 97 };
    fixture f;
    ses_http_options o = { .limits.max_pipelined = N };
    fixture_start(&f, &o);
    ses_http_client *c = client_of(&f);
    char target[32];
    for (int i = 0; i < N; i++) {
        snprintf(target, sizeof target, "/hold?%d", i);
        CHECK(ses_http_client_send(
            c, &(ses_http_request){ .target = target, .body = i % 2 ? "abc" : NULL, .n = 3 }, NULL));
    }
    CHECK(wait_held(&f, N));
    answerer a = { &f, N, 41 };
    pthread_t thread;
    pthread_create(&thread, NULL, answer, &a);
    for (int i = 0; i < N; i++) {
        ses_http_response r = { 0 };
        ses_err e = { 0 };
        CHECK_MSG(ses_http_client_receive(c, &r, &e), "%s", e.msg);
        snprintf(target, sizeof target, "%d", i);
        CHECK(equals(r.body, target));
    }
    pthread_join(thread, NULL);
    ses_http_client_free(c);
    fixture_stop(&f);
}

/* More requests than may be unanswered: the rest is read later. */
static void test_pipelining_limit(void)
{
    enum { N = 200 };
    fixture f;
    ses_http_options o = { .limits.max_pipelined = 4 };
    fixture_start(&f, &o);
    ses_http_client *c = client_of(&f);
    for (int i = 0; i < N; i++)
        CHECK(ses_http_client_send(c, &(ses_http_request){ .target = "/hold" }, NULL));
    CHECK(wait_held(&f, 4));
    sleep_ms(50);
    CHECK(atomic_load(&f.requests) == 4);
    for (int i = 0; i < N; i++) {
        ses_http_response r;
        CHECK(wait_held(&f, i + 1));
        ses_http_reply(f.held[i], 200, "text/plain", "x", 1, NULL);
        CHECK(ses_http_client_receive(c, &r, NULL));
    }
    ses_http_client_free(c);
    fixture_stop(&f);
}

/* ---- streams ---- */

static bool collect(void *ctx, const char *p, size_t n)
{
    strncat(ctx, p, n);
    return true;
}

static void test_streams(void)
{
    fixture f;
    char out[4096];
    fixture_start(&f, NULL);
    ses_http_client *c = client_of(&f);
    for (int i = 0; i < 20; i++) {
        char got[256] = "";
        ses_http_response r = { 0 };
        ses_http_client_on_data(c, collect, got);
        CHECK(ses_http_client_send(c, &(ses_http_request){ .target = "/hold" }, NULL) &&
              wait_held(&f, i + 1));
        ses_http_exchange *x = f.held[i];
        ses_http_add_header(x, "Cache-Control", "no-store");
        ses_http_stream_begin(x, 200, "text/event-stream");
        for (int k = 0; k < 5; k++) {
            CHECK(ses_http_stream_write(x, "data: 0123456789abcdef\n\n", 24) &&
                  ses_http_stream_write(x, "", 0));
            if (i % 2) sleep_ms(2);
        }
        ses_http_stream_end(x);
        CHECK(ses_http_client_receive(c, &r, NULL) && r.status == 200 && r.keep_alive);
        CHECK(strlen(got) == 120 && equals(ses_http_response_header(&r, "transfer-encoding"), "chunked"));
        CHECK(equals(ses_http_response_header(&r, "cache-control"), "no-store"));
    }
    ses_http_client_free(c);
    int fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.0\r\n\r\n");
    CHECK(wait_held(&f, 21));
    ses_http_stream_begin(f.held[20], 200, "text/plain");
    CHECK(ses_http_stream_write(f.held[20], "abc", 3) && ses_http_stream_write(f.held[20], "def", 3));
    ses_http_stream_end(f.held[20]);
    CHECK(raw_read(fd, out, sizeof out - 1) > 0 && strstr(out, "\r\n\r\nabcdef") && !strstr(out, "chunked"));
    close(fd);
    fd = raw_connect(f.port);
    raw_send(fd, "HEAD /hold HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    CHECK(wait_held(&f, 22));
    ses_http_stream_begin(f.held[21], 200, "text/plain");
    CHECK(ses_http_stream_write(f.held[21], "abc", 3));
    ses_http_stream_end(f.held[21]);
    CHECK(raw_read(fd, out, sizeof out - 1) > 0 && !strcmp(strstr(out, "\r\n\r\n"), "\r\n\r\n"));
    close(fd);
    fixture_stop(&f);
}

/* The first event arrives before the stream ends, and behind a pipelined reply. */
static void test_stream_flush(void)
{
    fixture f;
    char out[4096];
    fixture_start(&f, NULL);
    int fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.1\r\n" H "\r\nGET /hold HTTP/1.1\r\n" H "\r\n");
    CHECK(wait_held(&f, 2));
    ses_http_stream_begin(f.held[1], 200, "text/plain");
    CHECK(ses_http_stream_write(f.held[1], "second", 6));
    ses_http_reply(f.held[0], 200, "text/plain", "first", 5, NULL);
    long n = 0;
    while (n < 1000 && raw_read(fd, out + n, 1) == 1 && !strstr(out, "6\r\nsecond\r\n")) n++;
    CHECK(strstr(out, "first") && strstr(out, "6\r\nsecond\r\n"));
    ses_http_stream_end(f.held[1]);
    CHECK(raw_read(fd, out, 5) == 5 && !strcmp(out, "0\r\n\r\n"));
    close(fd);
    fixture_stop(&f);
}

/* ---- clients that leave ---- */

static bool wait_cancelled(const ses_http_exchange *x)
{
    for (int i = 0; i < 500 && !ses_http_is_cancelled(x); i++) sleep_ms(10);
    return ses_http_is_cancelled(x);
}

static void test_disconnect(void)
{
    fixture f;
    fixture_start(&f, NULL);
    for (int reset = 0; reset < 2; reset++) {
        int fd = raw_connect(f.port), at = f.holds;
        raw_send(fd, "GET /hold HTTP/1.1\r\n" H "\r\nGET /hold HTTP/1.1\r\n" H "\r\n");
        CHECK(wait_held(&f, at + 2) && !ses_http_is_cancelled(f.held[at]));
        ses_http_stream_begin(f.held[at], 200, "text/plain");
        CHECK(ses_http_stream_write(f.held[at], "a", 1));
        sleep_ms(20);
        struct linger l = { 1, 0 };
        if (reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
        close(fd);
        CHECK(wait_cancelled(f.held[at]) && wait_cancelled(f.held[at + 1]));
        CHECK(!ses_http_stream_write(f.held[at], "a", 1));
        ses_http_stream_end(f.held[at]);
        ses_http_reply(f.held[at + 1], 200, "text/plain", big_body(&f, 100), 100, count_free);
        CHECK(wait_until(&f.done, at + 2) && wait_until(&f.freed, reset + 1));
    }
    CHECK(atomic_load(&f.last_status) == 0);
    /* Half-closed: the request was complete, so an answer is still sent. */
    char out[1024];
    int fd = raw_connect(f.port);
    raw_send(fd, "POST / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhi");
    shutdown(fd, SHUT_WR);
    CHECK(raw_read(fd, out, sizeof out - 1) > 0 && strstr(out, "\r\n\r\nhi"));
    close(fd);
    fixture_stop(&f);
}

/* ---- the end of the server ---- */

static void test_drain(void)
{
    fixture f;
    char out[4096];
    fixture_start(&f, NULL);
    int idle = raw_connect(f.port), busy = raw_connect(f.port), half = raw_connect(f.port);
    raw_send(idle, "GET / HTTP/1.1\r\n" H "\r\n");
    CHECK(raw_read(idle, out, 15) == 15);
    raw_send(busy, "GET /hold HTTP/1.1\r\n" H "\r\nGET /hold HTTP/1.1\r\n" H "\r\n");
    raw_send(half, "POST / HTTP/1.1\r\n" H "Content-Length: 4\r\n\r\nab");
    CHECK(wait_held(&f, 2));
    ses_http_server_drain(f.server);
    CHECK(raw_closed(idle, 2000));
    CHECK(raw_connect(f.port) < 0);
    ses_http_reply(f.held[0], 200, "text/plain", "one", 3, NULL);
    ses_http_reply(f.held[1], 200, "text/plain", "two", 3, NULL);
    CHECK(raw_read(busy, out, sizeof out - 1) > 0 && strstr(out, "one") && strstr(out, "two"));
    CHECK(strstr(out, "Connection: close") > strstr(out, "one"));
    raw_send(half, "cd");
    CHECK(raw_read(half, out, sizeof out - 1) > 0 && strstr(out, "abcd") && strstr(out, "Connection: close"));
    close(idle), close(busy), close(half);
    pthread_join(f.thread, NULL);
    CHECK(atomic_load(&f.done) == 4);
    fixture_free(&f);
}

static void test_drain_deadline(void)
{
    fixture f;
    fixture_start(&f, NULL);
    ses_http_server_set_drain_seconds(f.server, 0.3);
    int fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    CHECK(wait_held(&f, 1));
    double start = ses_seconds();
    ses_http_server_drain(f.server);
    pthread_join(f.thread, NULL);
    double took = ses_seconds() - start;
    CHECK_MSG(took > 0.25 && took < 2, "%g s", took);
    CHECK(ses_http_is_cancelled(f.held[0]));
    ses_http_reply(f.held[0], 200, NULL, NULL, 0, NULL); /* after run has returned */
    close(fd);
    fixture_free(&f);
}

static void test_stop(void)
{
    fixture f;
    fixture_start(&f, NULL);
    int fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    CHECK(wait_held(&f, 1));
    ses_http_server_stop(f.server);
    pthread_join(f.thread, NULL);
    CHECK(raw_closed(fd, 1000));
    ses_http_stream_begin(f.held[0], 200, "text/plain");
    ses_http_stream_write(f.held[0], "abc", 3);
    ses_http_stream_end(f.held[0]);
    close(fd);
    fixture_free(&f);
}

/* ---- many threads ---- */

enum { CLIENTS = 8, REQUESTS = 300 };

static void *load(void *arg)
{
    fixture *f = arg;
    ses_http_client *c = ses_http_client_open("127.0.0.1", f->port, 10, NULL); /* CHECK is for one thread */
    long bad = 0;
    if (!c) return (void *)1;
    for (int i = 0; i < REQUESTS; i++) {
        char text[64];
        ses_http_response a = { 0 };
        snprintf(text, sizeof text, "%p %d", (void *)c, i);
        bad += !ses_http_client_request(
                   c, &(ses_http_request){ .target = "/hold", .body = text, .n = strlen(text) }, &a, NULL) ||
               !equals(a.body, text);
    }
    ses_http_client_free(c);
    return (void *)bad;
}

/* Answers held requests with their bodies; every third one as a stream. */
static void *serve(void *arg)
{
    fixture *f = arg;
    for (int i = 0; i < CLIENTS * REQUESTS; i++) {
        if (!wait_held(f, i + 1)) break;
        ses_http_exchange *x = f->held[i];
        ses_string body = ses_http_body(x);
        if (i % 3)
            ses_http_reply(x, 200, "text/plain", body.p, body.n, NULL);
        else {
            ses_http_stream_begin(x, 200, "text/plain");
            for (size_t k = 0; k < body.n; k++) ses_http_stream_write(x, body.p + k, 1);
            ses_http_stream_end(x);
        }
    }
    return NULL;
}

static void test_threads(void)
{
    fixture f;
    pthread_t client[CLIENTS], worker;
    fixture_start(&f, NULL);
    pthread_create(&worker, NULL, serve, &f);
    for (int i = 0; i < CLIENTS; i++) pthread_create(&client[i], NULL, load, &f);
    for (int i = 0; i < CLIENTS; i++) {
        void *bad;
        pthread_join(client[i], &bad);
        CHECK_MSG(!bad, "%ld wrong answers", (long)bad);
    }
    pthread_join(worker, NULL);
    CHECK(wait_until(&f.done, CLIENTS * REQUESTS));
    CHECK(ses_http_server_stats(f.server).buffered_bytes == 0);
    fixture_stop(&f);
}

int main(void)
{
    test_basics();
    test_large_bodies();
    test_http10();
    test_continue();
    test_pipelining();
    test_pipelining_limit();
    test_streams();
    test_stream_flush();
    test_disconnect();
    test_drain();
    test_drain_deadline();
    test_stop();
    test_threads();
    return check_report();
}
