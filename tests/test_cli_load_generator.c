/* The load generator against a server of known speed. */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "check.h"
#include "cli/bench/load_generator.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DELAY_MS = 10 };

/* Answers requests one after another, each after DELAY_MS; every fifth with 429, every seventh with 500. */
typedef struct slow_server {
    int fd, port;
    pthread_t thread;
    bool mixed;
} slow_server;

static const char *status_of(const slow_server *s, int i)
{
    if (s->mixed && i % 5 == 4) return "429 Too Many Requests";
    if (s->mixed && i % 7 == 6) return "500 Internal Server Error";
    return "200 OK";
}

/* A connection: requests have no body and arrive one at a time. */
static void serve(const slow_server *s, int fd)
{
    char in[4096], out[128];
    struct timespec delay = { 0, DELAY_MS * 1000000L };
    for (int i = 0; recv(fd, in, sizeof in, 0) > 0; i++) {
        nanosleep(&delay, NULL);
        int n = snprintf(out, sizeof out, "HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok", status_of(s, i));
        if (send(fd, out, (size_t)n, MSG_NOSIGNAL) != n) break;
    }
    close(fd);
}

static void *run_server(void *ctx)
{
    slow_server *s = ctx;
    int fd = accept(s->fd, NULL, NULL);
    if (fd >= 0) serve(s, fd);
    return NULL;
}

static void start(slow_server *s, bool mixed)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    *s = (slow_server){ .fd = socket(AF_INET, SOCK_STREAM, 0), .mixed = mixed };
    bool ok = s->fd >= 0 && !bind(s->fd, (struct sockaddr *)&a, n) && !listen(s->fd, 8) &&
              !getsockname(s->fd, (struct sockaddr *)&a, &n);
    if (!CHECK(ok)) exit(check_report());
    s->port = ntohs(a.sin_port);
    if (pthread_create(&s->thread, NULL, run_server, s)) abort();
}

static ses_load_result load(double rate, double seconds, bool mixed)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    ses_string request = { text, sizeof text - 1 };
    ses_load_result r = { 0 };
    ses_err e = { 0 };
    slow_server s;
    start(&s, mixed);
    ses_load l = { .host = "127.0.0.1",
                   .port = s.port,
                   .request = &request,
                   .n_requests = 1,
                   .rate = rate,
                   .connections = 1,
                   .seconds = seconds,
                   .seed = 1 };
    CHECK_MSG(ses_load_run(&l, &r, &e), "%s", e.msg);
    pthread_join(s.thread, NULL);
    close(s.fd);
    return r;
}

static void test_urls(void)
{
    static const struct {
        const char *url, *host;
        int port;
    } list[] = {
        { "http://localhost:8080", "localhost", 8080 },
        { "http://localhost:8080/", "localhost", 8080 },
        { "localhost:1", "localhost", 1 },
        { "http://example.org", "example.org", 80 },
        { "http://example.org/", "example.org", 80 },
        { "http://127.0.0.1:65535", "127.0.0.1", 65535 },
        { "http://[::1]:8080", "::1", 8080 },
        { "http://[::1]:8080/", "::1", 8080 },
        { "http://[fe80::1]", "fe80::1", 80 },
        { "unix:/run/a:b", "/run/a:b", 80 },
    };
    static const char *const bad[] = {
        "",          "http://",          "http://:80",  "http://a:0",   "http://a:65536",   "http://a:8x",
        "http://a:", "http://a:80/path", "http://[::1", "http://[]:80", "http://[::1]8080", "http://::1:8080",
        "unix:"
    };
    char host[64];
    for (size_t i = 0; i < SES_LEN(list); i++) {
        ses_err e = { 0 };
        int port = 0;
        CHECK_MSG(ses_load_parse_url(list[i].url, host, sizeof host, &port, &e), "%s", e.msg);
        CHECK_STR(host, list[i].host);
        CHECK(port == list[i].port);
    }
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        int port = 0;
        CHECK_MSG(!ses_load_parse_url(bad[i], host, sizeof host, &port, &e), "%s", bad[i]);
        CHECK(strstr(e.msg, "--url"));
    }
}

int main(void)
{
    test_urls();
    double fastest = 1000.0 / DELAY_MS;
    ses_load_result r = load(0, 0.5, false); /* closed loop */
    CHECK_MSG(r.ok > 1 && r.rate <= fastest + 2, "%g/s", r.rate);
    CHECK(r.failed == 0 && r.rejected == 0 && r.p50 >= 1e-3 * DELAY_MS && r.max >= r.p99 && r.p99 >= r.p50);

    r = load(20, 1, false); /* arrivals below what the server can do */
    CHECK_MSG(r.ok > 5 && r.ok < 50, "%lld", (long long)r.ok);

    r = load(1000, 0.2, false); /* ten times as many as it can do: they wait, and their wait counts */
    CHECK_MSG(r.rate <= fastest + 2, "%g/s of a server that answers %g/s", r.rate, fastest);
    CHECK(r.ok == r.sent && r.ok > 100 && r.ok < 400);
    CHECK_MSG(r.max > 0.5 && r.seconds > 0.8, "max %g s of %g s", r.max, r.seconds);

    r = load(0, 0.5, true);
    CHECK(r.rejected > 0 && r.failed > 0 && r.ok > r.rejected && r.ok + r.rejected + r.failed == r.sent);
    return check_report();
}
