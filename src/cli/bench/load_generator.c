/* The event loop of the load generator. */
#define _GNU_SOURCE /* TCP_NODELAY, accept4 */
#include "load_generator.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, MAX_RESPONSE = 256 << 20 };

typedef struct conn {
    int fd;
    bool busy;
    double due; /* time at which its request was due */
    char *in;
    size_t n, capacity;
} conn;

typedef struct loop {
    const ses_load *l;
    ses_load_result *r;
    conn *conn; /* [connections] */
    int *idle;  /* [n_idle] numbers of connections */
    int n_idle;
    int epoll, timer;
    double start, measure_from, end; /* seconds */
    double *due;                     /* times of requests that wait for a connection: [first, n) */
    size_t first, n, due_capacity;
    double next_due;      /* time of the next arrival */
    double last_response; /* time of the last successful one */
    uint64_t arrivals, next_request;
    double *latency;
    size_t n_latencies, latency_capacity;
} loop;

/* ---- connections ---- */

static int connect_unix(const char *path, ses_err *e)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof a.sun_path) return ses_fail(e, SES_EARG, "%s: the path is too long", path), -1;
    memcpy(a.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof a)) return fd;
    ses_fail(e, SES_EIO, "cannot connect to %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

static int connect_to(const ses_load *l, ses_err *e)
{
    if (strchr(l->host, '/')) return connect_unix(l->host, e);
    char port[16];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    snprintf(port, sizeof port, "%d", l->port);
    int fd = -1, rc = getaddrinfo(l->host, port, &hints, &list);
    if (rc) return ses_fail(e, SES_EIO, "%s: %s", l->host, gai_strerror(rc)), -1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    if (fd < 0)
        return ses_fail(e, SES_EIO, "cannot connect to %s:%d: %s", l->host, l->port, strerror(errno)), -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    return fd;
}

static bool open_connection(loop *p, int i, ses_err *e)
{
    conn *c = &p->conn[i];
    c->fd = connect_to(p->l, e);
    c->busy = false;
    c->n = 0;
    if (c->fd < 0) return false;
    struct epoll_event ev = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
    if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, c->fd, &ev))
        return ses_fail(e, SES_EIO, "epoll: %s", strerror(errno));
    p->idle[p->n_idle++] = i;
    return true;
}

/* ---- sending ---- */

static bool send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k, n -= (size_t)k;
    }
    return true;
}

static bool reopen(loop *p, int i, ses_err *e)
{
    if (p->conn[i].busy) p->r->failed++;
    for (int k = 0; k < p->n_idle; k++) /* the server may close a connection that waits */
        if (p->idle[k] == i) p->idle[k] = p->idle[--p->n_idle];
    close(p->conn[i].fd);
    return open_connection(p, i, e);
}

static bool send_next(loop *p, double due, ses_err *e)
{
    int i = p->idle[--p->n_idle];
    conn *c = &p->conn[i];
    const ses_string *q = &p->l->request[p->next_request++ % p->l->n_requests];
    double now = ses_seconds();
    if (now >= p->measure_from) p->r->sent++;
    if (now - due > p->r->max_late) p->r->max_late = now - due;
    c->busy = true;
    c->due = due;
    c->n = 0;
    return send_all(c->fd, q->p, q->n) || reopen(p, i, e);
}

/* Time to the next arrival, exponentially distributed. */
static double draw_gap(loop *p)
{
    uint32_t x[4];
    ses_philox(x, (ses_rng_key){ .seed = p->l->seed }, p->arrivals++);
    double u = ((double)x[0] + 1) / 4294967297.0;
    return -log(u) / p->l->rate;
}

/* Requests that have become due wait for a free connection. */
static bool send_due(loop *p, double now, ses_err *e)
{
    while (p->l->rate > 0 && p->next_due <= now && p->next_due < p->end) {
        if (!ses_array_reserve(&p->due, &p->due_capacity, p->n + 1, sizeof *p->due, e)) return false;
        p->due[p->n++] = p->next_due;
        p->next_due += draw_gap(p);
    }
    while (p->n_idle && (p->l->rate > 0 ? p->first < p->n : now < p->end))
        if (!send_next(p, p->l->rate > 0 ? p->due[p->first++] : now, e)) return false;
    if (p->first == p->n) p->first = p->n = 0;
    return true;
}

/* ---- receiving ---- */

/* Length of the response at the beginning of the buffer; 0: incomplete. */
static size_t response_length(const char *p, size_t n)
{
    const char *end = memmem(p, n, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - p) + 4;
    for (const char *line = p; line < end;
         line = (const char *)memchr(line, '\n', (size_t)(end + 2 - line)) + 1) {
        if (!strncasecmp(line, "content-length:", 15)) {
            size_t body = strtoull(line + 15, NULL, 10);
            return n >= head + body ? head + body : 0;
        }
        if (!strncasecmp(line, "transfer-encoding:", 18))
            return n >= 5 && !memcmp(p + n - 5, "0\r\n\r\n", 5) ? n : 0;
    }
    return head;
}

static bool count_response(loop *p, const conn *c, ses_err *e)
{
    double now = ses_seconds();
    int status = c->n > 12 ? (int)strtol(c->in + 9, NULL, 10) : 0;
    if (c->due < p->measure_from) return true;
    p->r->bytes_received += (int64_t)c->n;
    if (status == 429) p->r->rejected++;
    if (status == 429) return true;
    if (status < 200 || status > 299) {
        p->r->failed++;
        return true;
    }
    if (!ses_array_reserve(&p->latency, &p->latency_capacity, p->n_latencies + 1, sizeof *p->latency, e))
        return false;
    p->latency[p->n_latencies++] = now - c->due;
    p->last_response = now;
    p->r->ok++;
    return true;
}

static bool receive(loop *p, int i, ses_err *e)
{
    conn *c = &p->conn[i];
    for (;;) {
        if (c->n > MAX_RESPONSE) return ses_fail(e, SES_EFORMAT, "a response is larger than 256 MiB");
        if (!ses_array_reserve(&c->in, &c->capacity, c->n + READ_BYTES, 1, e)) return false;
        ssize_t k = recv(c->fd, c->in + c->n, READ_BYTES, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (k <= 0) return reopen(p, i, e);
        c->n += (size_t)k;
        if (!response_length(c->in, c->n)) continue;
        if (!count_response(p, c, e)) return false;
        c->busy = false;
        c->n = 0;
        p->idle[p->n_idle++] = i;
        return true;
    }
}

/* ---- the loop ---- */

static void set_timer(const loop *p, double at)
{
    struct itimerspec t = { 0 };
    if (at < 0) at = 0;
    t.it_value.tv_sec = (time_t)at;
    t.it_value.tv_nsec = (long)((at - (double)t.it_value.tv_sec) * 1e9) + 1;
    if (t.it_value.tv_nsec > 999999999) t.it_value.tv_nsec = 999999999;
    timerfd_settime(p->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static int busy_connections(const loop *p) { return p->l->connections - p->n_idle; }

static bool run_loop(loop *p, ses_err *e)
{
    struct epoll_event ev[256];
    double give_up = p->end + 30; /* responses that never come */
    for (;;) {
        double now = ses_seconds();
        if (!send_due(p, now, e)) return false;
        bool over = now >= p->end && p->first == p->n && !busy_connections(p);
        if (over || now > give_up || (p->l->stopped && p->l->stopped())) break;
        bool waits = p->l->rate > 0 && p->next_due < p->end;
        set_timer(p, waits ? p->next_due : now < p->end ? p->end : give_up);
        int n = epoll_wait(p->epoll, ev, SES_LEN(ev), 1000);
        for (int i = 0; i < n; i++) {
            if (ev[i].data.u32 == UINT32_MAX) {
                uint64_t ticks;
                if (read(p->timer, &ticks, sizeof ticks) < 0) continue;
            } else if (!receive(p, (int)ev[i].data.u32, e)) {
                return false;
            }
        }
    }
    /* an overloaded server answers after the end: its rate is that of the responses */
    p->r->seconds = fmax(p->last_response, fmin(ses_seconds(), p->end)) - p->measure_from;
    return true;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(loop *p)
{
    ses_load_result *r = p->r;
    size_t n = p->n_latencies;
    if (r->seconds > 0) r->rate = (double)r->ok / r->seconds;
    if (!n) return;
    qsort(p->latency, n, sizeof *p->latency, compare);
    r->p50 = p->latency[n / 2], r->p90 = p->latency[n * 9 / 10], r->p99 = p->latency[n * 99 / 100];
    r->max = p->latency[n - 1];
    for (size_t i = 0; i < n; i++) r->mean += p->latency[i] / (double)n;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static bool open_loop(loop *p, ses_err *e)
{
    size_t n = (size_t)p->l->connections;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event ev = { .events = EPOLLIN, .data.u32 = UINT32_MAX };
    if (p->epoll < 0 || p->timer < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->timer, &ev))
        return ses_fail(e, SES_EIO, "epoll: %s", strerror(errno));
    p->conn = ses_alloc_array(n, sizeof *p->conn, e);
    p->idle = ses_alloc_array(n, sizeof *p->idle, e);
    for (size_t i = 0; p->conn && i < n; i++) p->conn[i].fd = -1;
    for (size_t i = 0; p->conn && p->idle && i < n; i++)
        if (!open_connection(p, (int)i, e)) return false;
    return p->conn && p->idle;
}

static void close_loop(loop *p)
{
    for (int i = 0; p->conn && i < p->l->connections; i++) {
        if (p->conn[i].fd >= 0) close(p->conn[i].fd);
        ses_free(p->conn[i].in);
    }
    if (p->epoll >= 0) close(p->epoll);
    if (p->timer >= 0) close(p->timer);
    ses_free(p->conn);
    ses_free(p->idle);
    ses_free(p->due);
    ses_free(p->latency);
}

bool ses_load_parse_url(const char *url, char *host, size_t n, int *port, ses_err *e)
{
    bool is_unix = !strncmp(url, "unix:", 5);
    const char *s = is_unix ? url + 5 : strncmp(url, "http://", 7) ? url : url + 7;
    bool bracket = !is_unix && *s == '[';
    s += bracket;
    size_t len = is_unix ? strlen(s) : strcspn(s, bracket ? "]" : ":/");
    const char *rest = s + len + (bracket && s[len] == ']');
    bool ok = len && len < n && (!bracket || s[len] == ']') && !memchr(s, '[', len);
    char *end = (char *)(uintptr_t)rest;
    long x = 80;
    if (!is_unix && *rest == ':') x = strtol(rest + 1, &end, 10);
    if (!is_unix) end += *end == '/';
    if (!ok || *end || x < 1 || x > 65535)
        return ses_fail(e, SES_EUSAGE,
                        "--url: '%s' is not http://HOST:PORT, http://[ADDRESS]:PORT or unix:PATH", url);
    memcpy(host, s, len);
    host[len] = 0;
    *port = (int)x;
    return true;
}

bool ses_load_run(const ses_load *l, ses_load_result *r, ses_err *e)
{
    loop p = { .l = l, .r = r, .epoll = -1, .timer = -1 };
    *r = (ses_load_result){ 0 };
    bool ok = open_loop(&p, e);
    double cpu = cpu_seconds();
    p.start = ses_seconds();
    p.measure_from = p.start + l->warmup;
    p.end = p.measure_from + l->seconds;
    if (l->rate > 0) p.next_due = p.start + draw_gap(&p);
    ok = ok && run_loop(&p, e);
    r->cpu_seconds = cpu_seconds() - cpu;
    summarize(&p);
    close_loop(&p);
    return ok;
}
