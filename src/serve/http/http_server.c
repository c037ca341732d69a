/* The server: event loop, timers, and the inbox through which other threads answer. */
#define _GNU_SOURCE
#include "http_impl.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_EVENTS = 256, MAX_ACCEPTS = 64, MAX_TIMEOUT = 60000 };
static const uint64_t SECOND = 1000000000;

static uint64_t to_ns(double seconds) { return (uint64_t)(seconds * 1e9); }

/* ---- timers ---- */

void ses_http_timer_clear(ses_http_timer *t, ses_http_server *s)
{
    if (!t->deadline) return;
    ses_http_timer_list *l = &s->timer[t->kind];
    if (t->prev)
        t->prev->next = t->next;
    else
        l->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        l->last = t->prev;
    t->prev = t->next = NULL;
    t->deadline = 0;
}

void ses_http_timer_set(ses_http_timer *t, ses_http_connection *c, ses_http_timer_kind kind)
{
    ses_http_server *s = c->server;
    ses_http_timer_list *l = &s->timer[kind];
    ses_http_timer_clear(t, s);
    *t = (ses_http_timer){ .prev = l->last, .connection = c, .deadline = s->now + l->duration, .kind = kind };
    if (l->last)
        l->last->next = t;
    else
        l->first = t;
    l->last = t;
}

static void run_timers(ses_http_server *s)
{
    for (int k = 0; k < SES_HTTP_TIMERS; k++) {
        ses_http_timer *t;
        while ((t = s->timer[k].first) && t->deadline <= s->now) {
            ses_http_timer_clear(t, s);
            ses_http_connection_expired(t->connection, (ses_http_timer_kind)k);
        }
    }
}

/* ---- the inbox ---- */

static void wake(ses_http_server *s)
{
    int saved = errno;
    while (write(s->wake, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0 && errno == EINTR) {}
    errno = saved;
}

void ses_http_push(ses_http_server *s, ses_http_message *m)
{
    ses_http_message *old = atomic_load_explicit(&s->inbox, memory_order_relaxed);
    do m->next = old;
    while (!atomic_compare_exchange_weak(&s->inbox, &old, m));
    /* The message may be freed from here on. The I/O thread sets `sleeping` and then looks at the inbox:
     * one of the two sees the other's write. */
    if (atomic_load(&s->sleeping) && atomic_exchange(&s->sleeping, false)) wake(s);
}

static void deliver(ses_http_server *s, ses_http_message *m)
{
    ses_http_exchange *x = m->x;
    ses_http_part *part = (ses_http_part *)m;
    switch (m->kind) {
    case SES_HTTP_REPLY: x->state = SES_HTTP_READY; break;
    case SES_HTTP_STREAM_BEGIN: x->state = SES_HTTP_STREAMING; break;
    case SES_HTTP_STREAM_END: x->ended = true; break;
    case SES_HTTP_STREAM_PART:
        if (!x->connection) {
            ses_http_account(s, 0, part->n);
            ses_free(part);
        } else if (x->last_part)
            x->last_part = x->last_part->next = part;
        else
            x->first_part = x->last_part = part;
        break;
    }
    if (x->connection) {
        x->connection->wants_flush = true;
        ses_http_add_work(x->connection);
    } else if (x->state == SES_HTTP_READY || x->ended)
        ses_http_exchange_finish(x);
}

/* Takes all messages, in the order in which they were pushed. */
static void read_inbox(ses_http_server *s)
{
    if (!atomic_load_explicit(&s->inbox, memory_order_relaxed)) return;
    ses_http_message *m = atomic_exchange(&s->inbox, NULL), *ordered = NULL;
    while (m) {
        ses_http_message *next = m->next;
        m->next = ordered;
        ordered = m;
        m = next;
    }
    while (ordered) {
        ses_http_message *next = ordered->next; /* deliver may free the message */
        deliver(s, ordered);
        ordered = next;
    }
}

/* ---- work that is not caused by an event ---- */

void ses_http_add_work(ses_http_connection *c)
{
    ses_http_server *s = c->server;
    if (c->has_work || c->fd < 0) return;
    c->has_work = true;
    c->next_work = NULL;
    if (s->last_work)
        s->last_work->next_work = c;
    else
        s->work = c;
    s->last_work = c;
}

/* Work that is added meanwhile is left for the next round, so that no connection keeps the others
 * waiting. */
static void do_work(ses_http_server *s)
{
    ses_http_connection *c = s->work;
    s->work = s->last_work = NULL;
    while (c) {
        ses_http_connection *next = c->next_work;
        bool flush = c->wants_flush;
        c->has_work = c->wants_flush = false;
        if (flush) ses_http_connection_flush(c);
        if (c->fd >= 0 && (c->wants_read || c->pending_n)) ses_http_connection_read(c);
        c = next;
    }
}

/* Frees closed connections at the end of a round, when no event refers to them, unless they are in the
 * work list. */
static void free_closed(ses_http_server *s)
{
    ses_http_connection *kept = NULL;
    for (ses_http_connection *c = s->closed, *next; c; c = next) {
        next = c->next;
        if (c->has_work)
            c->next = kept, kept = c;
        else
            ses_free(c);
    }
    s->closed = kept;
}

/* ---- limits of connections ---- */

/* Closes the oldest connection that waits for a request, if it has waited for a second. */
static bool evict(ses_http_server *s)
{
    static const ses_http_timer_kind kinds[] = { SES_HTTP_TIMER_LINGER, SES_HTTP_TIMER_IDLE,
                                                 SES_HTTP_TIMER_HEAD };
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        ses_http_timer_list *l = &s->timer[kinds[i]];
        ses_http_timer *t = l->first;
        if (!t || t->deadline + SECOND > s->now + l->duration || t->connection->first) continue;
        ses_http_connection_close(t->connection, false);
        return true;
    }
    return false;
}

/* Watches the listening sockets again once there is room. */
static void resume_listening(ses_http_server *s)
{
    if (s->listening || s->draining || s->now < s->retry_accept) return;
    if (s->open < s->limits.max_connections || evict(s)) ses_http_set_listening(s, true);
}

/* ---- the loop ---- */

static void begin_drain(ses_http_server *s)
{
    s->draining = true;
    s->drain_deadline = s->now + s->drain_ns;
    for (int i = 0; i < s->listeners; i++) /* clients that are connected already are not turned away */
        ses_http_accept(s, &s->listener[i], s->limits.max_connections);
    ses_http_close_listeners(s);
    for (ses_http_connection *c = s->connections; c; c = c->next) ses_http_connection_set_timer(c);
}

/* Milliseconds until the next deadline; -1: none. */
static int timeout_ms(const ses_http_server *s)
{
    uint64_t next = UINT64_MAX, pause = s->now + SECOND / 10;
    if (s->work) return 0;
    for (int k = 0; k < SES_HTTP_TIMERS; k++) {
        const ses_http_timer *t = s->timer[k].first;
        if (t && t->deadline < next) next = t->deadline;
    }
    if (s->draining && s->drain_deadline < next) next = s->drain_deadline;
    if (!s->draining && !s->listening && pause < next) next = pause;
    if (next == UINT64_MAX) return -1;
    uint64_t ms = next <= s->now ? 0 : (next - s->now + 999999) / 1000000;
    return ms < MAX_TIMEOUT ? (int)ms : MAX_TIMEOUT;
}

static void update_clock(ses_http_server *s)
{
    s->now = ses_clock_ns();
    int64_t second = (int64_t)time(NULL);
    if (second == s->date_second) return;
    s->date_second = second;
    ses_http_date(s->date, second);
}

/* Answers of on_round are sent at once. Returns whether there may be more to do without an event. */
static bool end_round(ses_http_server *s)
{
    if (!s->o.on_round || !s->o.on_round(s->o.ctx)) return false;
    read_inbox(s);
    do_work(s);
    return true;
}

static bool wait_events(ses_http_server *s, bool may_sleep, ses_err *e)
{
    struct epoll_event event[MAX_EVENTS];
    int timeout = may_sleep ? timeout_ms(s) : 0;
    if (timeout) {
        atomic_store(&s->sleeping, true);
        if (atomic_load(&s->inbox) || atomic_load(&s->stop) || (atomic_load(&s->drain) && !s->draining))
            timeout = 0;
    }
    int n = epoll_wait(s->epoll, event, MAX_EVENTS, timeout);
    atomic_store_explicit(&s->sleeping, false, memory_order_relaxed);
    if (n < 0 && errno != EINTR) return ses_fail(e, SES_EIO, "epoll_wait: %s", strerror(errno));
    update_clock(s);
    for (int i = 0; i < n; i++) {
        ses_http_source *source = event[i].data.ptr;
        s->events_left = n - i - 1;
        if (*source == SES_HTTP_SOURCE_CONNECTION)
            ses_http_connection_event((ses_http_connection *)source, event[i].events);
        else if (*source == SES_HTTP_SOURCE_LISTENER)
            ses_http_accept(s, (ses_http_listener *)source, MAX_ACCEPTS);
    }
    return true;
}

/* Events are edge-triggered: poll does not consume them. */
bool ses_http_server_is_busy(const ses_http_server *s)
{
    struct pollfd p = { .fd = s->epoll, .events = POLLIN };
    return s->work || s->events_left || poll(&p, 1, 0) > 0;
}

static bool is_drained(const ses_http_server *s)
{
    if (!s->draining) return false;
    return s->now >= s->drain_deadline || (!s->open && !s->exchanges);
}

bool ses_http_server_run(ses_http_server *s, ses_err *e)
{
    bool ok = true;
    update_clock(s);
    ses_http_set_listening(s, true);
    while (ok && !atomic_load(&s->stop)) {
        if (atomic_load(&s->drain) && !s->draining) begin_drain(s);
        read_inbox(s);
        do_work(s);
        bool more = end_round(s);
        free_closed(s);
        if (is_drained(s)) break;
        ok = wait_events(s, !more, e);
        run_timers(s);
        resume_listening(s);
    }
    ses_http_close_listeners(s);
    while (s->connections) ses_http_connection_close(s->connections, false);
    while (s->work) do_work(s);
    end_round(s); /* requests of the last round */
    free_closed(s);
    return ok;
}

/* ---- opening and closing ---- */

static void set_limits(ses_http_server *s)
{
    ses_http_limits *l = &s->limits;
    *l = s->o.limits;
    if (!l->max_head_bytes) l->max_head_bytes = 16384;
    if (l->max_head_bytes > SES_HTTP_MAX_HEAD_BYTES) l->max_head_bytes = SES_HTTP_MAX_HEAD_BYTES;
    if (!l->max_body_bytes) l->max_body_bytes = 32 << 20;
    if (l->max_connections <= 0) l->max_connections = 1024;
    if (l->max_pipelined <= 0) l->max_pipelined = 16;
    if (!l->max_buffered_bytes) l->max_buffered_bytes = 256 << 20;
    if (!l->max_stream_bytes) l->max_stream_bytes = 4 << 20;
    s->timer[SES_HTTP_TIMER_HEAD].duration = to_ns(l->head_seconds > 0 ? l->head_seconds : 10);
    s->timer[SES_HTTP_TIMER_BODY].duration = to_ns(l->body_seconds > 0 ? l->body_seconds : 60);
    s->timer[SES_HTTP_TIMER_WRITE].duration = to_ns(l->write_seconds > 0 ? l->write_seconds : 60);
    s->timer[SES_HTTP_TIMER_IDLE].duration = to_ns(l->idle_seconds > 0 ? l->idle_seconds : 75);
    s->timer[SES_HTTP_TIMER_GRACE].duration = SECOND / 10;
    s->timer[SES_HTTP_TIMER_LINGER].duration = 2 * SECOND;
}

static bool open_descriptors(ses_http_server *s, ses_err *e)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = &s->wake_source };
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->epoll >= 0 && s->wake >= 0 && !epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &event)) return true;
    return ses_fail(e, SES_EIO, "cannot create the event loop: %s", strerror(errno));
}

ses_http_server *ses_http_server_new(const ses_http_options *o, ses_err *e)
{
    ses_http_server *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->o = *o;
    s->epoll = s->wake = s->reserve = -1;
    s->wake_source = SES_HTTP_SOURCE_WAKE;
    s->drain_ns = 30 * SECOND;
    set_limits(s);
    /* Kept bytes are an incomplete head, or at most one reading and a head. */
    s->scratch_bytes = s->limits.max_head_bytes + 2 * SES_HTTP_READ_BYTES;
    s->scratch = ses_realloc_array(NULL, s->scratch_bytes, 1, e);
    s->now = ses_clock_ns();
    if (s->scratch && open_descriptors(s, e) && ses_http_listen(s, e)) return s;
    ses_http_server_free(s);
    return NULL;
}

int ses_http_server_port(const ses_http_server *s) { return s->port; }

void ses_http_server_set_drain_seconds(ses_http_server *s, double seconds) { s->drain_ns = to_ns(seconds); }

void ses_http_server_drain(ses_http_server *s)
{
    atomic_store(&s->drain, true);
    wake(s);
}

void ses_http_server_stop(ses_http_server *s)
{
    atomic_store(&s->stop, true);
    wake(s);
}

void ses_http_server_free(ses_http_server *s)
{
    if (!s) return;
    read_inbox(s);
    ses_http_close_listeners(s);
    if (s->epoll >= 0) close(s->epoll);
    if (s->wake >= 0) close(s->wake);
    if (s->reserve >= 0) close(s->reserve);
    ses_free(s->unix_path);
    ses_free(s->scratch);
    ses_free(s);
}

ses_http_stats ses_http_server_stats(const ses_http_server *s)
{
    return (ses_http_stats){
        .connections = atomic_load_explicit(&s->connections_now, memory_order_relaxed),
        .accepted_total = atomic_load_explicit(&s->accepted_total, memory_order_relaxed),
        .requests_total = atomic_load_explicit(&s->requests_total, memory_order_relaxed),
        .rejected_total = atomic_load_explicit(&s->rejected_total, memory_order_relaxed),
        .bytes_read = atomic_load_explicit(&s->bytes_read, memory_order_relaxed),
        .bytes_written = atomic_load_explicit(&s->bytes_written, memory_order_relaxed),
        .buffered_bytes = atomic_load_explicit(&s->buffered, memory_order_relaxed),
        .max_buffered_bytes = s->limits.max_buffered_bytes,
    };
}
