/* The HTTP server among bad clients and without resources: malformed requests, deadlines, limits,
 * sockets. */
#define _GNU_SOURCE
#include "http_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define H "Host: localhost\r\n"
static const char simple[] = "GET / HTTP/1.1\r\n" H "\r\n";
static const char closing[] = "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n";

/* A good client is served at once. */
static bool serves(int port)
{
    char out[1024];
    double start = ses_seconds();
    return raw_exchange(port, closing, strlen(closing), out, sizeof out - 1) > 0 &&
           strstr(out, "HTTP/1.1 200 OK") && ses_seconds() - start < 5;
}

/* ---- malformed requests ---- */

static void test_malformed(void)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        { 400, "GET / HTTP/1.1\n\n" },
        { 400, "\x16\x03\x01\x02\x00" },
        { 400, "GET /%2e%2e/etc HTTP/1.1\r\n" H "\r\n" },
        { 400, "GET /%ff HTTP/1.1\r\n" H "\r\n" },
        { 400, "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" },
        { 400, "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
        { 400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n" },
        { 403, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n" },
        { 403, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n" },
        { 411, "POST / HTTP/1.0\r\n\r\n" },
        { 413, "POST / HTTP/1.1\r\n" H "Content-Length: 100001\r\n\r\n" },
        { 413, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n186a1\r\n" },
        { 417, "POST / HTTP/1.1\r\n" H "Expect: x\r\n\r\n" },
        { 501, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n" },
        { 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
    };
    fixture f;
    ses_http_options o = { .limits.max_body_bytes = 100000 };
    fixture_start(&f, &o);
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char out[4096] = "", want[32], text[1024];
        snprintf(want, sizeof want, "HTTP/1.1 %d ", cases[i].status);
        int requests = atomic_load(&f.requests);
        /* It follows a valid request, and precedes one that must not be answered. */
        snprintf(text, sizeof text, "%s%s%s", simple, cases[i].text, simple);
        long n = raw_exchange(f.port, text, strlen(text), out, sizeof out - 1);
        char *second = n > 0 ? strstr(out + 1, "HTTP/1.1 ") : NULL;
        CHECK_MSG(second && strstr(second, want) == second, "case %zu: %s", i, out);
        CHECK_MSG(second && strstr(second, "Connection: close\r\n") &&
                      strstr(second, "\r\n\r\n{\"error\":{\"message\":\""),
                  "case %zu: %s", i, out);
        CHECK_MSG(second && !strstr(second + 1, "HTTP/1.1 2") && atomic_load(&f.requests) == requests + 1,
                  "case %zu", i);
    }
    CHECK(atomic_load(&f.rejected) == (int)SES_LEN(cases) && serves(f.port));
    char big[20000];
    memset(big, 'a', sizeof big);
    memcpy(big, "GET /", 5);
    char out[4096];
    CHECK(raw_exchange(f.port, big, sizeof big, out, sizeof out - 1) > 0 &&
          strstr(out, "HTTP/1.1 414 ") == out);
    memcpy(big, "GET / HTTP/1.1\r\nX: ", 19);
    CHECK(raw_exchange(f.port, big, sizeof big, out, sizeof out - 1) > 0 &&
          strstr(out, "HTTP/1.1 431 ") == out);
    CHECK(serves(f.port));
    CHECK_MSG(ses_http_server_stats(f.server).buffered_bytes == 0, "%zu",
              ses_http_server_stats(f.server).buffered_bytes);
    fixture_stop(&f);
}

/* A client that sends a large body without reading gets the whole rejection. */
static void test_early_rejection(void)
{
    enum { N = 8000000 };
    fixture f;
    char out[4096], *body = calloc(1, N);
    fixture_start(&f, NULL);
    int fd = raw_connect(f.port);
    raw_send(fd, "POST / HTTP/1.1\r\n" H "Content-Length: 80000000\r\n\r\n");
    for (size_t i = 0; i < N;) {
        ssize_t n = send(fd, body + i, N - i, MSG_NOSIGNAL);
        if (!CHECK_MSG(n > 0, "%s", strerror(errno))) break;
        i += (size_t)n;
    }
    CHECK(raw_read(fd, out, sizeof out - 1) > 0 && strstr(out, "HTTP/1.1 413 ") == out);
    close(fd);
    free(body);
    fixture_stop(&f);
}

static void test_hosts(void)
{
    static const char *const allowed[] = { "models.example", NULL };
    fixture f;
    ses_http_options o = { .allowed_hosts = allowed };
    fixture_start(&f, &o);
    static const struct {
        const char *host;
        bool ok;
    } cases[] = {
        { "models.example", true }, { "Models.Example:8080", true }, { "localhost:1", true },
        { "127.0.0.1", true },      { "127.1.2.3:80", true },        { "[::1]", true },
        { "evil.example", false },  { "localhost.evil", false },     { "127.0.0.1.evil", false },
        { "10.0.0.1", false },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char text[256], out[2048] = "";
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", cases[i].host);
        raw_exchange(f.port, text, strlen(text), out, sizeof out - 1);
        CHECK_MSG(strstr(out, cases[i].ok ? "HTTP/1.1 200" : "HTTP/1.1 403") == out, "%s", cases[i].host);
    }
    fixture_stop(&f);
}

/* ---- deadlines ---- */

/* Sends text[0, n) byte by byte, every 20 ms, until the server closes. The seconds it takes, and the
 * answer. */
static double drip(int port, const char *start, char *out, size_t max)
{
    int fd = raw_connect(port);
    double begin = ses_seconds();
    raw_send(fd, start);
    struct pollfd p = { fd, POLLIN, 0 };
    while (ses_seconds() < begin + 5 && poll(&p, 1, 20) == 0) raw_send(fd, "a");
    raw_read(fd, out, max);
    close(fd);
    return ses_seconds() - begin;
}

static void test_slow_senders(void)
{
    fixture f;
    char out[4096];
    ses_http_options o = { .limits = { .head_seconds = 0.4, .body_seconds = 0.6, .idle_seconds = 0.8 } };
    fixture_start(&f, &o);
    int silent = raw_connect(f.port), idle = raw_connect(f.port);
    raw_send(idle, simple);
    CHECK(raw_read(idle, out, 15) == 15);
    double start = ses_seconds(), took = drip(f.port, "GET /", out, sizeof out - 1);
    CHECK_MSG(took > 0.35 && took < 3 && strstr(out, "HTTP/1.1 408 ") == out, "%g s: %s", took, out);
    CHECK(raw_closed(silent, 2000));
    took = drip(f.port, "POST / HTTP/1.1\r\n" H "Content-Length: 9999\r\n\r\n", out, sizeof out - 1);
    CHECK_MSG(took > 0.55 && took < 3 && strstr(out, "HTTP/1.1 408 ") == out, "%g s: %s", took, out);
    took = drip(f.port, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nffff\r\n", out,
                sizeof out - 1);
    CHECK_MSG(took > 0.55 && took < 3 && strstr(out, "HTTP/1.1 408 ") == out, "%g s: %s", took, out);
    CHECK(raw_closed(idle, 2000));
    CHECK_MSG(ses_seconds() - start > 0.8, "%g", ses_seconds() - start);
    /* A slow answer is not the client's fault. */
    int fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    CHECK(wait_held(&f, 1));
    sleep_ms(1000);
    ses_http_reply(f.held[0], 200, "text/plain", "late", 4, NULL);
    CHECK(raw_read(fd, out, sizeof out - 1) > 0 && strstr(out, "late"));
    close(silent), close(idle), close(fd);
    CHECK(serves(f.port));
    fixture_stop(&f);
}

static void test_slow_readers(void)
{
    fixture f;
    ses_http_options o = { .limits = { .write_seconds = 0.5, .max_stream_bytes = 30 << 20 } };
    fixture_start(&f, &o);
    int never = raw_connect(f.port), stream = raw_connect(f.port);
    raw_send(never, "GET /big?50000000 HTTP/1.1\r\n" H "\r\n");
    raw_send(stream, "GET /hold HTTP/1.1\r\n" H "\r\n");
    CHECK(wait_held(&f, 1));
    static char part[1 << 16];
    double start = ses_seconds();
    ses_http_stream_begin(f.held[0], 200, "text/plain");
    long parts = 0;
    while (ses_http_stream_write(f.held[0], part, sizeof part) && ses_seconds() < start + 5)
        parts++, sleep_ms(2);
    double took = ses_seconds() - start;
    CHECK_MSG(took > 0.4 && took < 4, "%g s, %ld parts", took, parts);
    CHECK(ses_http_is_cancelled(f.held[0]));
    ses_http_stream_end(f.held[0]);
    CHECK(wait_until(&f.done, 2) && wait_until(&f.freed, 1));
    close(never), close(stream);
    CHECK(serves(f.port) && ses_http_server_stats(f.server).buffered_bytes == 0);
    fixture_stop(&f);
}

/* A stream that is written faster than it is read ends at its limit, and the client notices. */
static void test_stream_limit(void)
{
    fixture f;
    static char part[1 << 16];
    ses_http_options o = { .limits = { .max_stream_bytes = 1 << 20 } };
    fixture_start(&f, &o);
    int fd = raw_connect(f.port);
    raw_send(fd, "GET /hold HTTP/1.1\r\n" H "\r\n");
    CHECK(wait_held(&f, 1));
    ses_http_stream_begin(f.held[0], 200, "text/plain");
    long parts = 0;
    while (ses_http_stream_write(f.held[0], part, sizeof part) && parts < 100000) parts++;
    CHECK_MSG(parts < 1000, "%ld", parts);
    CHECK(ses_http_server_stats(f.server).buffered_bytes < 2 << 20);
    ses_http_stream_end(f.held[0]);
    char *out = malloc(100 << 20);
    long n = raw_read(fd, out, (100 << 20) - 1);
    CHECK(n < 5 || memcmp(out + n - 5, "0\r\n\r\n", 5) != 0);
    free(out);
    close(fd);
    fixture_stop(&f);
}

/* ---- limits ---- */

static void test_connection_limit(void)
{
    fixture f;
    char out[64];
    int fd[8];
    ses_http_options o = { .limits = { .max_connections = 4 } };
    fixture_start(&f, &o);
    for (int i = 0; i < 4; i++) {
        fd[i] = raw_connect(f.port);
        raw_send(fd[i], "GET /hold HTTP/1.1\r\n" H "\r\n");
    }
    CHECK(wait_held(&f, 4));
    for (int i = 4; i < 8; i++)
        fd[i] = raw_connect(f.port), raw_send(fd[i], simple); /* in the listen queue */
    sleep_ms(300);
    CHECK(ses_http_server_stats(f.server).connections == 4 && atomic_load(&f.requests) == 4);
    for (int i = 0; i < 4; i++) ses_http_reply(f.held[i], 200, NULL, NULL, 0, NULL);
    for (int i = 0; i < 4; i++) CHECK(raw_read(fd[i], out, 15) == 15);
    /* They are idle now and make room after a second, the oldest first. */
    double start = ses_seconds();
    for (int i = 4; i < 8; i++) CHECK(raw_read(fd[i], out, 15) == 15);
    CHECK_MSG(ses_seconds() - start < 8, "%g", ses_seconds() - start);
    for (int i = 0; i < 8; i++) close(fd[i]);
    fixture_stop(&f);
}

/* Clients that never finish a request fill all connections: good clients are served nevertheless. */
static void test_slowloris(void)
{
    enum { N = 60 };
    fixture f;
    int fd[N];
    ses_http_options o = { .limits = { .max_connections = 50, .head_seconds = 30 } };
    fixture_start(&f, &o);
    for (int i = 0; i < N; i++) fd[i] = raw_connect(f.port), raw_send(fd[i], "GET / HTTP/1.1\r\nX: ");
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < N; k++) send(fd[k], "a", 1, MSG_NOSIGNAL);
        sleep_ms(100);
    }
    double start = ses_seconds();
    for (int i = 0; i < 5; i++) CHECK(serves(f.port));
    CHECK_MSG(ses_seconds() - start < 8, "%g s", ses_seconds() - start);
    for (int i = 0; i < N; i++) close(fd[i]);
    fixture_stop(&f);
}

/* Responses that are not read, and larger than the buffers of the system, use up the memory: other
 * requests are rejected, and served later. */
static void test_unread_responses(void)
{
    enum { N = 12 };
    fixture f;
    int fd[N];
    char out[64];
    ses_http_options o = { .limits = { .max_buffered_bytes = 24 << 20 } };
    fixture_start(&f, &o);
    for (int i = 0; i < N; i++)
        fd[i] = raw_connect(f.port), raw_send(fd[i], "GET /big?24000000 HTTP/1.1\r\n" H "\r\n");
    for (int i = 0; i < 1000 && atomic_load(&f.requests) + atomic_load(&f.rejected) < N; i++) sleep_ms(10);
    CHECK_MSG(ses_http_server_stats(f.server).buffered_bytes < 50 << 20, "%zu",
              ses_http_server_stats(f.server).buffered_bytes);
    int refused = 0;
    for (int i = 0; i < N; i++) {
        CHECK(raw_read(fd[i], out, 15) == 15);
        refused += !!strstr(out, " 503 ");
        close(fd[i]);
    }
    CHECK_MSG(refused >= N - 3, "%d", refused);
    for (int i = 0; i < 100 && !serves(f.port); i++) sleep_ms(10);
    CHECK(serves(f.port));
    fixture_stop(&f);
}

static void test_memory_limit(void)
{
    enum { CLIENTS = 20, N = 1 << 20 };
    fixture f;
    char out[4096], head[128], *body = calloc(1, N);
    int fd[CLIENTS], rejected = 0;
    ses_http_options o = { .limits = { .max_buffered_bytes = 6 << 20 } };
    fixture_start(&f, &o);
    snprintf(head, sizeof head, "POST / HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n", N + 1);
    for (int i = 0; i < CLIENTS; i++) { /* all but the last byte */
        fd[i] = raw_connect(f.port);
        raw_send(fd[i], head);
        for (size_t k = 0; k < N;) {
            ssize_t n = send(fd[i], body + k, N - k, MSG_NOSIGNAL);
            if (n < 0) break;
            k += (size_t)n;
        }
        CHECK(ses_http_server_stats(f.server).buffered_bytes < 7 << 20);
    }
    for (int i = 0; i < CLIENTS; i++) {
        raw_send(fd[i], "x");
        long n = raw_read(fd[i], out, 15);
        CHECK(n == 15);
        rejected += !!strstr(out, " 503 ");
        close(fd[i]);
    }
    CHECK_MSG(rejected > 5 && rejected < CLIENTS, "%d of %d", rejected, CLIENTS);
    free(body);
    fixture_stop(&f);
}

static void test_many_connections(void)
{
    struct rlimit old, raised;
    getrlimit(RLIMIT_NOFILE, &old);
    raised = old;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
    int n = raised.rlim_cur > 5000 ? 2000 : (int)raised.rlim_cur / 2 - 50, good = 0;
    int *fd = malloc((size_t)n * sizeof *fd);
    fixture f;
    char out[64];
    ses_http_options o = { .limits.max_connections = n };
    fixture_start(&f, &o);
    for (int i = 0; i < n; i++) fd[i] = raw_connect(f.port);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < n; i++) raw_send(fd[i], simple);
    for (int i = 0; i < n; i++) good += fd[i] >= 0 && raw_read(fd[i], out, 15) == 15;
    CHECK_MSG(good == n, "%d of %d", good, n);
    CHECK(wait_until(&f.requests, 3 * n) && ses_http_server_stats(f.server).connections == n);
    for (int i = 0; i < n; i++) close(fd[i]);
    for (int i = 0; i < 500 && ses_http_server_stats(f.server).connections; i++) sleep_ms(10);
    CHECK(ses_http_server_stats(f.server).connections == 0);
    free(fd);
    fixture_stop(&f);
    setrlimit(RLIMIT_NOFILE, &old);
}

/* ---- sockets ---- */

/* Runs the server in a child; prepare may change the process before. Returns its pid and port. */
static pid_t spawn(ses_http_options o, int *port, bool (*prepare)(void *ctx), void *ctx)
{
    int out[2];
    if (pipe(out)) abort();
    pid_t pid = fork();
    if (pid) {
        if (read(out[0], port, sizeof *port) != sizeof *port) *port = -1;
        close(out[0]), close(out[1]);
        return pid;
    }
    fixture f = { 0 };
    o.on_request = fixture_request;
    o.ctx = &f;
    if (!prepare(ctx)) _exit(3);
    ses_http_server *s = ses_http_server_new(&o, NULL);
    int p = s ? ses_http_server_port(s) : -1;
    if (write(out[1], &p, sizeof p) != sizeof p) _exit(2);
    close(out[0]), close(out[1]);
    if (s) ses_http_server_run(s, NULL);
    _exit(0);
}

static bool lower_limit(void *ctx)
{
    struct rlimit r = { 24, 24 };
    (void)ctx;
    return !setrlimit(RLIMIT_NOFILE, &r);
}

/* No descriptors: new clients are refused, connected ones are served, and later all are. */
static void test_descriptors(void)
{
    enum { N = 60 };
    int port, fd[N], served = 0, refused = 0;
    char out[256];
    pid_t pid = spawn((ses_http_options){ 0 }, &port, lower_limit, NULL);
    CHECK(port > 0);
    for (int i = 0; i < N; i++) fd[i] = raw_connect(port);
    for (int i = 0; i < N; i++) {
        if (fd[i] < 0) continue;
        raw_send(fd[i], simple);
        long n = raw_read(fd[i], out, 15);
        served += n == 15 && strstr(out, "200 OK");
        refused += n <= 0 || strstr(out, " 503 ");
        if (i == 40) /* more room for the rest */
            for (int k = 0; k < 40; k++) close(fd[k]), fd[k] = -1;
    }
    CHECK_MSG(served >= 10 && refused >= 5, "%d served, %d refused", served, refused);
    for (int i = 0; i < N; i++)
        if (fd[i] >= 0) close(fd[i]);
    sleep_ms(200);
    CHECK(serves(port));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool pass_socket(void *ctx)
{
    int fd = *(int *)ctx;
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    return dup2(fd, 3) == 3 && !setenv("LISTEN_FDS", "1", 1) && !setenv("LISTEN_PID", pid, 1);
}

static void test_activation(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t n = sizeof a;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), port;
    CHECK(!bind(fd, (struct sockaddr *)&a, n) && !listen(fd, 10) &&
          !getsockname(fd, (struct sockaddr *)&a, &n));
    pid_t pid = spawn((ses_http_options){ .socket_activation = true }, &port, pass_socket, &fd);
    CHECK_MSG(port == ntohs(a.sin_port), "%d, not %d", port, ntohs(a.sin_port));
    CHECK(serves(port));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int file = open("/dev/null", O_RDONLY); /* not a socket */
    pid = spawn((ses_http_options){ .socket_activation = true }, &port, pass_socket, &file);
    CHECK(port == -1);
    waitpid(pid, NULL, 0);
    close(file), close(fd);
}

static void test_unix(void)
{
    char dir[] = "/tmp/sesame-http-XXXXXX", path[64];
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    fixture f;
    struct stat st;
    ses_err e = { 0 };
    ses_http_response r = { 0 };
    ses_http_options o = { .port = -1, .unix_socket = path };
    for (int round = 0; round < 3; round++) {
        if (round == 1) { /* a file that a killed server left */
            struct sockaddr_un a = { .sun_family = AF_UNIX };
            snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            CHECK(!bind(fd, (struct sockaddr *)&a, sizeof a));
            close(fd);
        }
        o.unix_mode = round == 2 ? 0660 : 0;
        fixture_start(&f, &o);
        CHECK(!stat(path, &st) && (st.st_mode & 0777) == (round == 2 ? 0660 : 0600));
        ses_http_client *c = ses_http_client_open(path, 0, 5, NULL);
        CHECK(c && ses_http_client_request(c, &(ses_http_request){ .body = "hi", .n = 2 }, &r, NULL) &&
              r.body.n == 2);
        CHECK(c && ses_http_client_request(c, &(ses_http_request){ .target = "/big?3000000" }, &r, NULL) &&
              r.body.n == 3000000);
        ses_http_client_free(c);
        o.on_request = fixture_request;
        CHECK(!ses_http_server_new(&o, &e) && strstr(e.msg, "another program"));
        ses_err_clear(&e);
        fixture_stop(&f);
        CHECK(access(path, F_OK) != 0);
    }
    close(open(path, O_CREAT | O_WRONLY, 0600));
    CHECK(!ses_http_server_new(&o, &e) && strstr(e.msg, "not a socket") && access(path, F_OK) == 0);
    unlink(path);
    rmdir(dir);
}

static void test_addresses(void)
{
    fixture f;
    ses_err e = { 0 };
    fixture_start(&f, NULL);
    ses_http_options o = { .port = f.port, .on_request = fixture_request };
    CHECK(!ses_http_server_new(&o, &e) && strstr(e.msg, "another program uses this port"));
    fixture_stop(&f);
    ses_err_clear(&e);
    o = (ses_http_options){ .host = "256.1.1.1.", .on_request = fixture_request };
    CHECK(!ses_http_server_new(&o, &e) && strstr(e.msg, "256.1.1.1."));
    ses_err_clear(&e);
    o = (ses_http_options){ .port = 70000, .on_request = fixture_request };
    CHECK(!ses_http_server_new(&o, &e) && strstr(e.msg, "70000"));
    ses_err_clear(&e);
    o = (ses_http_options){ .port = -1, .on_request = fixture_request };
    CHECK(!ses_http_server_new(&o, &e) && e.msg[0]);
    ses_err_clear(&e);
    o = (ses_http_options){ .host = "::1", .on_request = fixture_request };
    ses_http_server *s = ses_http_server_new(&o, &e);
    if (!s) {
        SKIP("IPv6 is not available");
        return;
    }
    ses_http_server_free(s);
    fixture_start(&f, &o);
    ses_http_client *c = ses_http_client_open("::1", f.port, 5, &e);
    ses_http_response r;
    CHECK_MSG(c && ses_http_client_request(c, &(ses_http_request){ .body = "six", .n = 3 }, &r, &e) &&
                  r.status == 200,
              "%s", e.msg);
    ses_http_client_free(c);
    fixture_stop(&f);
}

int main(void)
{
    test_activation(); /* before other threads exist */
    test_descriptors();
    test_malformed();
    test_early_rejection();
    test_hosts();
    test_slow_senders();
    test_slow_readers();
    test_stream_limit();
    test_connection_limit();
    test_slowloris();
    test_unread_responses();
    test_memory_limit();
    test_many_connections();
    test_unix();
    test_addresses();
    return check_report();
}
