/* The access log: lines are formatted in the thread of the HTTP server and written by a thread of their own,
 * which may have to wait for the reader of a pipe. */
#define _POSIX_C_SOURCE 200809L
#include "access_log.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "sesame/json.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* WRITE: bytes that a pipe takes at once if it takes any. WAITING_BYTES: further lines are dropped. */
enum { WRITE = 4096, WAITING_BYTES = 1 << 20, POLL_MS = 100, END_SECONDS = 1 };

struct ses_access_log {
    int fd;
    ses_log_format format;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    pthread_t thread;
    char *waiting; /* ring of WAITING_BYTES */
    size_t begin, n;
    uint64_t dropped, reported; /* lines; reported: counted in the log */
    bool started, stopping, ended;
};

static void free_log(ses_access_log *l)
{
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    ses_free(l->waiting);
    ses_free(l);
}

/* ---- the writing thread ---- */

/* Waits until bytes can be written, or the log ends. */
static bool is_writable(ses_access_log *l)
{
    struct pollfd p = { .fd = l->fd, .events = POLLOUT };
    return poll(&p, 1, POLL_MS) > 0;
}

/* Writes n bytes from p; returns how many were written. The lock is not held. */
static size_t write_some(ses_access_log *l, const char *p, size_t n)
{
    if (!is_writable(l)) return 0;
    ssize_t k = write(l->fd, p, n < WRITE ? n : WRITE);
    if (k < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : n; /* the reader is gone: the bytes are dropped */
    return (size_t)k;
}

static void *run(void *ctx)
{
    ses_access_log *l = ctx;
    char part[WRITE];
    pthread_mutex_lock(&l->lock);
    for (uint64_t end = 0;;) {
        while (!l->n && !l->stopping) pthread_cond_wait(&l->changed, &l->lock);
        if (l->stopping && !end) end = ses_clock_ns() + END_SECONDS * (uint64_t)1000000000;
        if (!l->n || (end && ses_clock_ns() > end)) break;
        size_t n = l->n < WAITING_BYTES - l->begin ? l->n : WAITING_BYTES - l->begin;
        if (n > sizeof part) n = sizeof part;
        memcpy(part, l->waiting + l->begin, n);
        pthread_mutex_unlock(&l->lock);
        n = write_some(l, part, n);
        pthread_mutex_lock(&l->lock);
        l->begin = (l->begin + n) % WAITING_BYTES, l->n -= n;
    }
    l->ended = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the log ---- */

ses_access_log *ses_access_log_new(FILE *out, ses_log_format format, ses_err *e)
{
    ses_access_log *l = ses_alloc(sizeof *l, e);
    if (!l) return NULL;
    l->format = out ? format : SES_LOG_NONE;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (l->format == SES_LOG_NONE) return l;
    l->fd = fileno(out);
    l->waiting = ses_alloc(WAITING_BYTES, e);
    l->started = l->waiting && !pthread_create(&l->thread, NULL, run, l);
    if (l->started) return l;
    if (l->waiting) ses_fail(e, SES_ENOMEM, "cannot start a thread");
    free_log(l);
    return NULL;
}

/* A thread that is still in write, on a terminal that was stopped, is left alone with its memory. */
void ses_access_log_free(ses_access_log *l)
{
    if (!l) return;
    if (l->started) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2 * END_SECONDS;
        pthread_mutex_lock(&l->lock);
        l->stopping = true;
        pthread_cond_broadcast(&l->changed);
        while (!l->ended && !pthread_cond_timedwait(&l->changed, &l->lock, &until)) continue;
        bool ended = l->ended;
        pthread_mutex_unlock(&l->lock);
        if (!ended) {
            pthread_detach(l->thread);
            return;
        }
        pthread_join(l->thread, NULL);
    }
    free_log(l);
}

uint64_t ses_access_log_dropped(ses_access_log *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t n = l->dropped;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* The lock is held. */
static bool append(ses_access_log *l, const char *p, size_t n)
{
    if (n > WAITING_BYTES - l->n) return false;
    for (size_t k; n; p += k, n -= k) {
        size_t at = (l->begin + l->n) % WAITING_BYTES;
        k = n < WAITING_BYTES - at ? n : WAITING_BYTES - at;
        memcpy(l->waiting + at, p, k);
        l->n += k;
    }
    return true;
}

/* The lock is held. */
static void report_dropped(ses_access_log *l)
{
    char line[128];
    unsigned long long n = l->dropped - l->reported;
    if (!n) return;
    int len = snprintf(line, sizeof line,
                       l->format == SES_LOG_JSON ? "{\"dropped_lines\": %llu}\n"
                                                 : "sesame serve: %llu lines of the access log dropped\n",
                       n);
    if (append(l, line, (size_t)len)) l->reported = l->dropped;
}

void ses_access_log_add(ses_access_log *l, const char *line, size_t n)
{
    pthread_mutex_lock(&l->lock);
    report_dropped(l);
    bool ok = l->reported == l->dropped && append(l, line, n);
    l->dropped += !ok;
    pthread_mutex_unlock(&l->lock);
    if (ok) pthread_cond_signal(&l->changed);
}

/* ---- lines ---- */

static void format_time(char *buf, size_t n)
{
    struct timespec now;
    struct tm t;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &t);
    size_t len = strftime(buf, n, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(buf + len, n - len, ".%03ldZ", now.tv_nsec / 1000000);
}

static void put_json(ses_buf *b, const char *time, const ses_http_exchange *x, ses_string method,
                     const char *path, ses_string peer, double ms)
{
    ses_json_writer *w = ses_json_writer_new(-1, NULL);
    if (!w) return;
    ses_json_begin_object(w);
    ses_json_member_string(w, "time", time);
    ses_json_member_stringn(w, "peer", peer.p, peer.n);
    ses_json_member_stringn(w, "method", method.p, method.n);
    ses_json_member_string(w, "path", path);
    ses_json_member_int(w, "status", ses_http_status(x));
    ses_json_member_uint(w, "request_bytes", ses_http_body(x).n);
    ses_json_member_uint(w, "response_bytes", ses_http_response_bytes(x));
    ses_json_member_real(w, "milliseconds", ms);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, NULL);
    if (text) ses_buf_appendf(b, "%s\n", text);
    ses_json_writer_free(w);
}

void ses_access_log_write(ses_access_log *l, const ses_http_exchange *x)
{
    if (l->format == SES_LOG_NONE) return;
    char time[40];
    ses_buf b = { 0 };
    ses_string method = ses_http_method(x), path = ses_http_path(x), peer = ses_http_peer(x);
    double ms = 1e-6 * (double)ses_http_duration_ns(x);
    ses_quoted quoted = ses_quoted_of(path.p, path.n);
    format_time(time, sizeof time);
    if (l->format == SES_LOG_JSON)
        put_json(&b, time, x, method, quoted.s, peer, (double)(int64_t)(1000 * ms) / 1000);
    else
        ses_buf_appendf(&b, "%s %.*s %.*s %s %d %zu %.3f ms\n", time, (int)peer.n, peer.p, (int)method.n,
                        method.p, quoted.s, ses_http_status(x), ses_http_response_bytes(x), ms);
    if (b.len) ses_access_log_add(l, b.data, b.len);
    ses_buf_free(&b);
}
