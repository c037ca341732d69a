/* An HTTP server in a thread of the test, with a handler whose answers the test controls, and raw
 * sockets. */
#ifndef TESTS_HTTP_FIXTURE_H
#define TESTS_HTTP_FIXTURE_H

#include "base/clock.h"
#include "check.h"
#include "http_client.h"
#include "serve/http/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MAX_HELD = 4096 };

typedef struct fixture {
    ses_http_server *server;
    ses_http_options options;
    pthread_t thread;
    bool ok;
    int port;
    pthread_mutex_t lock; /* guards held */
    pthread_cond_t change;
    ses_http_exchange *held[MAX_HELD]; /* requests to /hold, which the test answers */
    int holds;
    atomic_int requests, done, rejected, last_status, freed;
    char last_reason[128];
} fixture;

static inline void sleep_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

static inline bool is_path(const ses_http_exchange *x, const char *path)
{
    ses_string s = ses_http_path(x);
    return s.n == strlen(path) && !memcmp(s.p, path, s.n);
}

static inline void hold(fixture *f, ses_http_exchange *x)
{
    pthread_mutex_lock(&f->lock);
    f->held[f->holds++] = x;
    pthread_cond_broadcast(&f->change);
    pthread_mutex_unlock(&f->lock);
}

/* Waits until n requests are held; false after ten seconds. */
static inline bool wait_held(fixture *f, int n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    int code = 0;
    pthread_mutex_lock(&f->lock);
    while (f->holds < n && !code) code = pthread_cond_timedwait(&f->change, &f->lock, &until);
    bool ok = f->holds >= n;
    pthread_mutex_unlock(&f->lock);
    return ok;
}

static inline bool wait_until(atomic_int *counter, int n)
{
    for (int i = 0; i < 1000 && atomic_load(counter) < n; i++) sleep_ms(10);
    return atomic_load(counter) >= n;
}

static inline void count_free(void *p)
{
    fixture *f;
    memcpy(&f, p, sizeof f);
    atomic_fetch_add(&f->freed, 1);
    free(p);
}

/* A body of n bytes that the server frees: the address of the fixture, then letters. */
static inline char *big_body(fixture *f, size_t n)
{
    char *p = malloc(n);
    if (!p) abort();
    for (size_t i = 0; i < n; i++) p[i] = (char)('a' + i % 26);
    memcpy(p, &f, sizeof f);
    return p;
}

static inline void fixture_request(void *ctx, ses_http_exchange *x)
{
    fixture *f = ctx;
    ses_string body = ses_http_body(x), query = ses_http_query(x), value = ses_http_header(x, "x-a");
    atomic_fetch_add(&f->requests, 1);
    if (is_path(x, "/hold")) {
        hold(f, x);
    } else if (is_path(x, "/big")) {
        size_t n = (size_t)strtoull(query.p, NULL, 10);
        ses_http_reply(x, 200, "application/octet-stream", big_body(f, n), n, count_free);
    } else if (is_path(x, "/header")) {
        bool ok = ses_http_add_header(x, "X-A", value.p ? "present" : "absent");
        ok &= !ses_http_add_header(x, "X-B", "a\r\nX-C: d") && !ses_http_add_header(x, "X B", "a");
        ok &= !ses_http_add_header(x, "content-length", "5") && !ses_http_add_header(x, "", "5");
        if (!ok) abort();
        ses_http_reply(x, 201, "text/plain; charset=utf-8", value.p, value.n, NULL);
    } else if (is_path(x, "/empty")) {
        ses_http_reply(x, 204, NULL, NULL, 0, NULL);
    } else
        ses_http_reply(x, 200, "text/plain", body.p, body.n, NULL);
}

static inline void fixture_done(void *ctx, const ses_http_exchange *x)
{
    fixture *f = ctx;
    atomic_store(&f->last_status, ses_http_status(x));
    atomic_fetch_add(&f->done, 1);
}

static inline void fixture_rejected(void *ctx, int status, const char *reason)
{
    fixture *f = ctx;
    (void)reason;
    atomic_store(&f->last_status, status);
    atomic_fetch_add(&f->rejected, 1);
}

static inline void *fixture_run(void *arg)
{
    fixture *f = arg;
    f->ok = ses_http_server_run(f->server, NULL);
    return NULL;
}

/* o: the options that differ from the defaults, or NULL. */
static inline void fixture_start(fixture *f, const ses_http_options *o)
{
    ses_err e = { 0 };
    *f = (fixture){ .options = o ? *o : (ses_http_options){ 0 } };
    f->options.on_request = fixture_request;
    f->options.on_done = fixture_done;
    f->options.on_rejected = fixture_rejected;
    f->options.ctx = f;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->change, NULL);
    f->server = ses_http_server_new(&f->options, &e);
    if (!CHECK_MSG(f->server, "%s", e.msg)) exit(check_report());
    f->port = ses_http_server_port(f->server);
    if (pthread_create(&f->thread, NULL, fixture_run, f)) abort();
}

static inline void fixture_free(fixture *f)
{
    CHECK(f->ok);
    ses_http_server_free(f->server);
    pthread_cond_destroy(&f->change);
    pthread_mutex_destroy(&f->lock);
}

/* Stops the server; every request must have been answered. */
static inline void fixture_stop(fixture *f)
{
    ses_http_server_stop(f->server);
    pthread_join(f->thread, NULL);
    CHECK_MSG(ses_http_server_stats(f->server).connections == 0, "open connections");
    fixture_free(f);
}

/* ---- raw sockets ---- */

static inline int raw_connect(int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval t = { 10, 0 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) {
        if (fd >= 0) close(fd);
        return -1;
    }
    return fd;
}

static inline bool raw_send_n(int fd, const char *text, size_t n)
{
    return send(fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static inline bool raw_send(int fd, const char *text) { return raw_send_n(fd, text, strlen(text)); }

/* Reads until the server closes or `max` bytes are there; returns the length, or -1 if the connection was
 * reset or ten seconds passed. out gets a NUL. */
static inline long raw_read(int fd, char *out, size_t max)
{
    size_t n = 0;
    for (;;) {
        ssize_t k = n < max ? recv(fd, out + n, max - n, 0) : 0;
        if (k < 0 && errno == EINTR) continue;
        if (k > 0) n += (size_t)k;
        out[n] = 0;
        if (k < 0) return -1;
        if (k == 0) return (long)n;
    }
}

/* Sends one request and reads until the server closes. */
static inline long raw_exchange(int port, const char *text, size_t n, char *out, size_t max)
{
    int fd = raw_connect(port);
    if (fd < 0) return -1;
    raw_send_n(fd, text, n);
    long k = raw_read(fd, out, max);
    close(fd);
    return k;
}

/* Waits at most `ms` for the server to close. */
static inline bool raw_closed(int fd, int ms)
{
    char c[512];
    struct pollfd p = { fd, POLLIN, 0 };
    double end = ses_seconds() + ms / 1000.0;
    while (ses_seconds() < end)
        if (poll(&p, 1, 10) > 0 && recv(fd, c, sizeof c, MSG_DONTWAIT) <= 0) return true;
    return false;
}

#endif
