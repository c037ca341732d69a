/* The HTTP server among clients that do random things: valid and invalid requests in random portions,
 * pipelined, read slowly or not at all, closed, half-closed or reset at any time; handlers that answer at
 * once, later, in another order or as streams. Each request is done exactly once, nothing is left over,
 * and the server still serves. */
#define _GNU_SOURCE
#include "base/rng.h"
#include "http_fixture.h"

#define H "Host: localhost\r\n"
enum { CLIENTS = 4, WORKERS = 2, MAX_QUEUE = 1 << 16 };

/* ---- random numbers: a sequence for each thread ---- */

typedef struct dice {
    uint64_t thread, next;
} dice;

static uint32_t roll(dice *d, uint32_t below)
{
    ses_rng_key key = { d->thread, 0, 0 };
    return ses_rand32(key, d->next++) % below;
}

/* ---- the handler and its workers ---- */

static struct {
    fixture f;
    pthread_mutex_t lock;
    pthread_cond_t change;
    ses_http_exchange *queue[MAX_QUEUE];
    int n;
    bool end;
    uint64_t rounds;
    atomic_llong connected; /* connections of all clients */
    dice io;
} chaos;

static char filler[1 << 20];

static void answer(ses_http_exchange *x, dice *d)
{
    size_t n = roll(d, 8) ? roll(d, 300) : roll(d, sizeof filler);
    if (roll(d, 3) == 0) {
        ses_http_stream_begin(x, 200, "text/event-stream");
        for (uint32_t i = roll(d, 5); i > 0; i--) {
            if (!ses_http_stream_write(x, filler, n)) break;
            if (roll(d, 4) == 0) sleep_ms(1);
        }
        ses_http_stream_end(x);
        return;
    }
    if (roll(d, 3) == 0) ses_http_add_header(x, "X-Random", "value");
    if (roll(d, 2) || n < sizeof(void *))
        ses_http_reply(x, 200, "text/plain", filler, n, NULL);
    else
        ses_http_reply(x, 200, "text/plain", big_body(&chaos.f, n), n, count_free);
}

static void on_request(void *ctx, ses_http_exchange *x)
{
    (void)ctx;
    atomic_fetch_add(&chaos.f.requests, 1);
    if (roll(&chaos.io, 3) == 0) {
        answer(x, &chaos.io);
        return;
    }
    pthread_mutex_lock(&chaos.lock);
    if (chaos.n < MAX_QUEUE) chaos.queue[chaos.n++] = x;
    pthread_cond_signal(&chaos.change);
    pthread_mutex_unlock(&chaos.lock);
}

static void *work(void *arg)
{
    dice d = { 1000 + (uint64_t)(uintptr_t)arg, 0 };
    for (;;) {
        pthread_mutex_lock(&chaos.lock);
        while (!chaos.n && !chaos.end) pthread_cond_wait(&chaos.change, &chaos.lock);
        ses_http_exchange *x = NULL;
        if (chaos.n) { /* any of them */
            int i = (int)roll(&d, (uint32_t)chaos.n);
            x = chaos.queue[i];
            chaos.queue[i] = chaos.queue[--chaos.n];
        }
        pthread_mutex_unlock(&chaos.lock);
        if (!x) return NULL;
        if (roll(&d, 20) == 0) sleep_ms(3);
        answer(x, &d);
    }
}

/* ---- clients ---- */

static const char *const pieces[] = {
    "GET / HTTP/1.1\r\n" H "\r\n",
    "GET /a/b?c HTTP/1.1\r\n" H "X-A: 1\r\nX-A: 2\r\n\r\n",
    "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "HEAD / HTTP/1.1\r\n" H "\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n",
    "POST / HTTP/1.1\r\n" H "Content-Length: 100000\r\n\r\nbegin",
    "GET / HTTP/1.1\n\n",
    "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "\r\n",
    "GE",
};

static void leave(int fd, dice *d)
{
    struct linger l = { 1, 0 };
    char out[4096];
    uint32_t how = roll(d, 4);
    if (how == 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    if (how == 1) {
        shutdown(fd, SHUT_WR);
        while (recv(fd, out, sizeof out, 0) > 0) {}
    }
    close(fd);
}

static void *visit(void *arg)
{
    dice d = { (uint64_t)(uintptr_t)arg, 0 };
    char out[65536];
    for (uint64_t i = 0; i < chaos.rounds; i++) {
        int fd = raw_connect(chaos.f.port);
        struct timeval t = { 0, 200000 };
        if (fd < 0) continue;
        atomic_fetch_add(&chaos.connected, 1);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
        for (uint32_t k = 1 + roll(&d, 12); k > 0; k--) {
            const char *text = pieces[roll(&d, roll(&d, 4) ? 6 : SES_LEN(pieces))];
            size_t n = strlen(text), at = 0;
            while (at < n) {
                size_t take = roll(&d, 3) ? n - at : 1 + roll(&d, (uint32_t)(n - at));
                if (!raw_send_n(fd, text + at, take)) break;
                at += take;
                if (roll(&d, 50) == 0) sleep_ms(1);
            }
            if (roll(&d, 3) == 0) (void)!recv(fd, out, roll(&d, 10) ? sizeof out : 1, MSG_DONTWAIT);
            if (roll(&d, 40) == 0) break;
        }
        leave(fd, &d);
    }
    return NULL;
}

static void start(void)
{
    chaos.f.options = (ses_http_options){
        .limits = { .max_pipelined = 3,
                    .max_connections = 40,
                    .head_seconds = 0.2,
                    .body_seconds = 0.2,
                    .write_seconds = 0.3,
                    .idle_seconds = 0.2,
                    .max_buffered_bytes = 32 << 20 },
        .on_request = on_request,
        .on_done = fixture_done,
        .on_rejected = fixture_rejected,
        .ctx = &chaos.f,
    };
    chaos.io = (dice){ 77, 0 };
    pthread_mutex_init(&chaos.lock, NULL);
    pthread_cond_init(&chaos.change, NULL);
    chaos.f.server = ses_http_server_new(&chaos.f.options, NULL);
    if (!CHECK(chaos.f.server)) exit(check_report());
    chaos.f.port = ses_http_server_port(chaos.f.server);
    pthread_create(&chaos.f.thread, NULL, fixture_run, &chaos.f);
}

/* The server has accepted and answered every connection, also one that its client left in the backlog. */
static bool is_idle(void)
{
    ses_http_stats s = ses_http_server_stats(chaos.f.server);
    return s.accepted_total >= atomic_load(&chaos.connected) && !s.connections &&
           atomic_load(&chaos.f.requests) == atomic_load(&chaos.f.done);
}

int main(int argc, char **argv)
{
    pthread_t client[CLIENTS], worker[WORKERS];
    chaos.rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 300; /* connections of each client */
    start();
    for (uintptr_t i = 0; i < WORKERS; i++) pthread_create(&worker[i], NULL, work, (void *)i);
    for (uintptr_t i = 0; i < CLIENTS; i++) pthread_create(&client[i], NULL, visit, (void *)i);
    for (int i = 0; i < CLIENTS; i++) pthread_join(client[i], NULL);
    for (int i = 0; i < 1000 && !is_idle(); i++) sleep_ms(10);
    pthread_mutex_lock(&chaos.lock);
    chaos.end = true;
    pthread_cond_broadcast(&chaos.change);
    pthread_mutex_unlock(&chaos.lock);
    for (int i = 0; i < WORKERS; i++) pthread_join(worker[i], NULL);
    char out[1024];
    ses_http_stats s = ses_http_server_stats(chaos.f.server);
    CHECK_MSG(s.connections == 0, "%lld connections are left", (long long)s.connections);
    CHECK_MSG(s.buffered_bytes == 0, "%zu bytes are left", s.buffered_bytes);
    CHECK(atomic_load(&chaos.f.requests) == atomic_load(&chaos.f.done));
    CHECK(s.requests_total == atomic_load(&chaos.f.done) && s.requests_total > 100 && s.rejected_total > 10);
    static const char bad[] = "GET / HTTP/1.1\n\n";
    CHECK(raw_exchange(chaos.f.port, bad, strlen(bad), out, sizeof out - 1) > 0 && strstr(out, " 400 "));
    fixture_stop(&chaos.f);
    printf("%lld requests, %lld rejected, %lld connections\n", (long long)s.requests_total,
           (long long)s.rejected_total, (long long)s.accepted_total);
    return check_report();
}
