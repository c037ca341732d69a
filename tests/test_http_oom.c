/* Allocation failures in the HTTP server: the client gets an answer or the connection is closed, nothing
 * leaks, and the server serves the next client. */
#define _GNU_SOURCE
#include "http_fixture.h"
#include "oom.h"

#define H "Host: localhost\r\n"

/* Echoes bodies; /stream as a stream; /header the repeated header. */
static void on_request(void *ctx, ses_http_exchange *x)
{
    ses_string body = ses_http_body(x), value = ses_http_header(x, "x-a");
    (void)ctx;
    if (is_path(x, "/stream")) {
        ses_http_stream_begin(x, 200, "text/plain");
        for (int i = 0; i < 3 && ses_http_stream_write(x, "part", 4);) i++;
        ses_http_stream_end(x);
        return;
    }
    ses_http_add_header(x, "X-Long",
                        "0123456789012345678901234567890123456789012345678901234567890123456789");
    ses_http_reply(x, 200, "text/plain", value.p ? value.p : body.p, value.p ? value.n : body.n, NULL);
}

static const char *const texts[] = {
    "POST / HTTP/1.1\r\n" H "Connection: close\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\n" H "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET /a HTTP/1.1\r\n" H "X-A: b\r\nX-A: c\r\n\r\nGET /stream HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
    "GET / HTTP/1.1\r\n" H "X: ", /* incomplete, then the rest */
    "GET / HTTP/1.1\nHost: a\n\n",
};
static const char rest[] = "a\r\nConnection: close\r\n\r\n";

/* One client per text. The number of clients that neither get an answer nor are closed. */
static int visit(int port)
{
    char out[4096];
    int hanging = 0;
    for (size_t i = 0; i < SES_LEN(texts); i++) {
        int fd = raw_connect(port);
        raw_send(fd, texts[i]);
        if (i == 3) sleep_ms(2), raw_send(fd, rest);
        if (raw_read(fd, out, sizeof out - 1) < 0 && errno != ECONNRESET) hanging++;
        close(fd);
    }
    return hanging;
}

static bool is_served(int port)
{
    char out[1024];
    return raw_exchange(port, texts[0], strlen(texts[0]), out, sizeof out - 1) > 0 &&
           strstr(out, "\r\n\r\nhello");
}

/* False: no allocation failed. */
static bool run_once(long n, bool persistent)
{
    ses_err e = { 0 };
    fixture f = { .options = { .on_request = on_request } };
    long live = oom.live;
    oom.calls = oom.failed = 0;
    oom.fail_to = persistent ? 1L << 62 : n;
    oom.fail_from = n;
    f.server = ses_http_server_new(&f.options, &e);
    if (!f.server) {
        oom.fail_from = 0;
        CHECK(e.code == SES_ENOMEM && oom.failed && oom.live == live);
        return true;
    }
    f.port = ses_http_server_port(f.server);
    pthread_create(&f.thread, NULL, fixture_run, &f);
    int hanging = visit(f.port);
    oom.fail_from = 0;
    bool failed = oom.failed;
    CHECK_MSG(!hanging, "allocation %ld: %d clients wait", n, hanging);
    CHECK_MSG(is_served(f.port), "allocation %ld: the next client is not served", n);
    ses_http_server_stop(f.server);
    pthread_join(f.thread, NULL);
    ses_http_server_free(f.server);
    CHECK_MSG(oom.live == live, "allocation %ld: %ld blocks left", n, oom.live - live);
    return failed;
}

int main(void)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        long n = 1;
        while (n < 1000 && run_once(n, persistent)) n++;
        CHECK_MSG(n > 15 && n < 1000, "%ld", n);
    }
    return check_report();
}
