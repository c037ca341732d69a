/* For serve_faults.c: clients that misbehave, each in a thread of its own until `stop`. */
#ifndef TESTS_SERVE_ATTACKS_H
#define TESTS_SERVE_ATTACKS_H

#include "faults_client.h"

enum { DRIPPING = 24 };

typedef struct attack {
    const char *name;
    void (*run)(const process *p, struct attack *a);
    const process *server;
    atomic_bool *stop;
    pthread_t thread;
    int connections, wrong; /* wrong: responses other than expected */
} attack;

static const char embed_head[] = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: ";

static inline bool goes_on(const attack *a) { return !atomic_load(a->stop); }

/* Sends `text` on many connections, one byte at a time; the server ends them. */
static inline void drip(const process *p, attack *a, const char *text, size_t first)
{
    int fd[DRIPPING];
    size_t at = first, n = strlen(text);
    for (int i = 0; i < DRIPPING; i++) {
        fd[i] = raw_connect(p);
        if (fd[i] >= 0) raw_send(fd[i], text, first), a->connections++;
    }
    for (; goes_on(a) && at < n; at++, sleep_ms(50))
        for (int i = 0; i < DRIPPING; i++)
            if (fd[i] >= 0 && !raw_send(fd[i], text + at, 1)) close(fd[i]), fd[i] = -1;
    for (int i = 0; i < DRIPPING; i++)
        if (fd[i] >= 0) close(fd[i]);
}

static inline void slow_headers(const process *p, attack *a)
{
    while (goes_on(a))
        drip(
            p, a,
            "GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: bcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr\r\n",
            5);
}

static inline void slow_bodies(const process *p, attack *a)
{
    char text[256];
    snprintf(text, sizeof text,
             "%s80\r\n\r\n{\"inputs\": \"a text that arrives slowly, byte by byte, and never ends",
             embed_head);
    while (goes_on(a)) drip(p, a, text, 70);
}

static inline void half_open(const process *p, attack *a)
{
    while (goes_on(a)) {
        int fd[DRIPPING];
        for (int i = 0; i < DRIPPING; i++) fd[i] = raw_connect(p), a->connections++;
        for (int i = 0; i < 20 && goes_on(a); i++) sleep_ms(50);
        for (int i = 0; i < DRIPPING; i++)
            if (fd[i] >= 0) close(fd[i]);
    }
}

static inline void reset_clients(const process *p, attack *a)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s17\r\n\r\n{\"inputs\": \"abc\"}", embed_head);
    for (int i = 0; goes_on(a); i++, sleep_ms(2)) {
        int fd = raw_connect(p);
        if (fd < 0) continue;
        a->connections++;
        raw_send(fd, text, (size_t)(i % n)); /* at every byte */
        raw_reset(fd);
    }
}

/* Many requests with large responses; nothing is read. */
static inline void never_read(const process *p, attack *a)
{
    char body[8192], head[256];
    size_t n = (size_t)snprintf(body, sizeof body, "{\"inputs\": [\"a\"");
    while (n < 4000) n += (size_t)snprintf(body + n, sizeof body - n, ", \"word\"");
    n += (size_t)snprintf(body + n, sizeof body - n, "]}");
    snprintf(head, sizeof head, "%s%zu\r\n\r\n", embed_head, n);
    while (goes_on(a)) {
        int fd = raw_connect(p);
        if (fd < 0) continue;
        a->connections++;
        fcntl(fd, F_SETFL, O_NONBLOCK);
        for (int i = 0; i < 40 && goes_on(a); i++, sleep_ms(25))
            (void)(raw_send(fd, head, strlen(head)) && raw_send(fd, body, n));
        raw_reset(fd);
    }
}

static inline void unread_streams(const process *p, attack *a)
{
    static const char body[] =
        "{\"model\": \"gpt\", \"prompt\": \"The\", \"max_tokens\": 200, \"stream\": true}";
    char text[512];
    int n = snprintf(text, sizeof text,
                     "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
    while (goes_on(a)) {
        int fd = raw_connect(p);
        if (fd < 0) continue;
        a->connections++;
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ 1024 }, sizeof(int));
        raw_send(fd, text, (size_t)n);
        for (int i = 0; i < 10 && goes_on(a); i++) sleep_ms(50);
        close(fd);
    }
}

/* Requests the server must reject, with the status; 0: it may close without a response. */
static const struct {
    const char *text;
    int status;
} malformed[] = {
    { "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400 },
    { "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      400 },
    { "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413 },
    { "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400 },
    { "POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400 },
    { "GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n", 400 },
    { "GET /health HTTP/1.1\r\n\r\n", 400 },
    { "GET /health HTTP/1.1\nHost: localhost\n\n", 400 },
    { "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403 },
    { "GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", 505 },
    { "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello \r\n\r\n", 400 },
    { "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{\"a\":", 422 },
    { "PUT /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405 },
};

static inline void malformed_requests(const process *p, attack *a)
{
    enum { KINDS = sizeof malformed / sizeof *malformed };
    char large[40000];
    memset(large, 'a', sizeof large);
    memcpy(large, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", 42);
    for (int i = 0; goes_on(a); i++, sleep_ms(5)) {
        int k = i % (KINDS + 1), want = k < KINDS ? malformed[k].status : 431;
        int fd = raw_connect(p);
        if (fd < 0) continue;
        a->connections++;
        if (k < KINDS)
            raw_send(fd, malformed[k].text, strlen(malformed[k].text));
        else
            raw_send(fd, large, sizeof large);
        int got = raw_status(fd);
        if (got != want) {
            if (!a->wrong++) printf("  malformed request %d: status %d, expected %d\n", k, got, want);
        }
        close(fd);
    }
}

static inline void random_bytes(const process *p, attack *a)
{
    unsigned x = 12345;
    while (goes_on(a)) {
        char b[512];
        int fd = raw_connect(p);
        if (fd < 0) continue;
        a->connections++;
        for (size_t i = 0; i < sizeof b; i++) b[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
        if (x & 64) memcpy(b, "POST / HTTP/1.1\r\n", 17);
        raw_send(fd, b, sizeof b);
        sleep_ms(5);
        close(fd);
    }
}

static inline void *run_attack(void *ctx)
{
    attack *a = ctx;
    a->run(a->server, a);
    return NULL;
}

#endif
