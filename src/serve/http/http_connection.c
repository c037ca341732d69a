/* Connections: received bytes become exchanges. */
#define _GNU_SOURCE
#include "http_impl.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_READS = 16, MAX_DISCARDED = 64 << 20, FIRST_BODY = 65536 };

/* ---- opening and closing ---- */

ses_http_connection *ses_http_connection_new(ses_http_server *s, int fd, const ses_http_listener *l,
                                             const char *peer)
{
    ses_http_connection *c = ses_alloc(sizeof *c, NULL);
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = c };
    if (!c || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event)) {
        close(fd);
        ses_free(c);
        return NULL;
    }
    c->source = SES_HTTP_SOURCE_CONNECTION;
    c->fd = fd;
    c->server = s;
    c->check_host = !l->is_unix && (l->is_loopback || s->o.allowed_hosts);
    memcpy(c->peer, peer, strlen(peer) + 1);
    ses_http_head_begin(&c->head, s->limits.max_head_bytes);
    c->next = s->connections;
    if (c->next) c->next->prev = c;
    s->connections = c;
    s->open++;
    ses_http_count(&s->connections_now, 1);
    ses_http_count(&s->accepted_total, 1);
    ses_http_connection_set_timer(c);
    return c;
}

/* No response can be sent any more: answered exchanges end, others are left to their handlers. */
static void drop_exchanges(ses_http_connection *c)
{
    for (ses_http_exchange *x = c->first, *next; x; x = next) {
        next = x->next;
        x->connection = NULL;
        atomic_store_explicit(&x->cancelled, true, memory_order_relaxed);
        if (x->state == SES_HTTP_READY || x->ended) ses_http_exchange_finish(x);
    }
    c->first = c->last = NULL;
    c->unanswered = 0;
}

static void drop_pending(ses_http_connection *c)
{
    ses_http_account(c->server, 0, c->pending_capacity);
    ses_free(c->pending);
    c->pending = NULL;
    c->pending_n = c->pending_capacity = 0;
}

static void drop_incoming(ses_http_connection *c)
{
    if (c->incoming) ses_http_exchange_free(c->incoming);
    c->incoming = NULL;
}

void ses_http_connection_close(ses_http_connection *c, bool reset)
{
    ses_http_server *s = c->server;
    if (c->fd < 0) return;
    /* Otherwise the kernel keeps the bytes that the client does not read for minutes. */
    if (reset) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    close(c->fd);
    c->fd = -1;
    drop_exchanges(c);
    drop_incoming(c);
    drop_pending(c);
    ses_http_timer_clear(&c->read_timer, s);
    ses_http_timer_clear(&c->write_timer, s);
    if (c->prev) c->prev->next = c->next;
    if (c->next) c->next->prev = c->prev;
    if (s->connections == c) s->connections = c->next;
    c->next = s->closed;
    s->closed = c;
    s->open--;
    ses_http_count(&s->connections_now, -1);
}

void ses_http_connection_cancel(ses_http_connection *c)
{
    c->client_left = true;
    for (ses_http_exchange *x = c->first; x; x = x->next)
        atomic_store_explicit(&x->cancelled, true, memory_order_relaxed);
}

/* ---- timers ---- */

static bool is_paused(const ses_http_connection *c)
{
    return c->state == SES_HTTP_READ_HEAD && c->unanswered >= c->server->limits.max_pipelined;
}

/* A timer that already runs for the same purpose is not extended: deadlines are absolute. */
void ses_http_connection_set_timer(ses_http_connection *c)
{
    ses_http_server *s = c->server;
    int kind = -1;
    if (c->fd < 0) return;
    switch (c->state) {
    case SES_HTTP_READ_HEAD:
        if (is_paused(c))
            kind = -1;
        else if (c->pending_n)
            kind = SES_HTTP_TIMER_HEAD;
        else if (!c->first)
            kind = s->draining      ? SES_HTTP_TIMER_GRACE
                   : c->has_request ? SES_HTTP_TIMER_IDLE
                                    : SES_HTTP_TIMER_HEAD;
        break;
    case SES_HTTP_READ_BODY:
    case SES_HTTP_READ_CHUNKS: kind = SES_HTTP_TIMER_BODY; break;
    case SES_HTTP_READ_LINGER: kind = SES_HTTP_TIMER_LINGER; break;
    default: break;
    }
    ses_http_timer *t = &c->read_timer;
    if (kind < 0)
        ses_http_timer_clear(t, s);
    else if (!t->deadline || (int)t->kind != kind)
        ses_http_timer_set(t, c, (ses_http_timer_kind)kind);
}

/* ---- requests ---- */

static void append_exchange(ses_http_connection *c, ses_http_exchange *x)
{
    x->connection = c;
    if (c->last)
        c->last->next = x;
    else
        c->first = x;
    c->last = x;
    c->unanswered++;
}

/* Answers with an error after the responses to earlier requests; nothing more is read. */
static void reject(ses_http_connection *c, int status, const char *reason)
{
    ses_http_server *s = c->server;
    drop_incoming(c);
    drop_pending(c);
    c->state = SES_HTTP_READ_NOTHING;
    ses_http_count(&s->rejected_total, 1);
    if (s->o.on_rejected) s->o.on_rejected(s->o.ctx, status, reason);
    ses_http_exchange *x = ses_http_exchange_rejection(s, status, reason);
    if (!x) {
        ses_http_connection_close(c, false);
        return;
    }
    append_exchange(c, x);
    c->wants_flush = true;
    ses_http_add_work(c);
}

static void dispatch(ses_http_connection *c)
{
    ses_http_server *s = c->server;
    ses_http_exchange *x = c->incoming;
    c->incoming = NULL;
    c->wants_continue = false;
    if (x->body) x->body[x->body_n] = 0;
    x->received_ns = ses_clock_ns();
    memcpy(x->peer, c->peer, sizeof x->peer);
    if (c->client_left) atomic_store_explicit(&x->cancelled, true, memory_order_relaxed);
    c->state = x->keep_alive ? SES_HTTP_READ_HEAD : SES_HTTP_READ_NOTHING;
    c->has_request = true;
    c->first_byte_ns = 0;
    ses_http_head_begin(&c->head, s->limits.max_head_bytes);
    ses_http_timer_clear(&c->read_timer, s);
    append_exchange(c, x);
    ses_http_count(&s->requests_total, 1);
    s->o.on_request(s->o.ctx, x);
}

/* "100 Continue", once all earlier responses are sent. A client that does not get it sends the body
 * anyway. */
void ses_http_connection_continue(ses_http_connection *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!c->wants_continue || c->first || c->fd < 0) return;
    c->wants_continue = false;
    ssize_t n = send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL);
    if (n >= 0 && n < (ssize_t)sizeof text - 1) ses_http_connection_close(c, true);
}

/* The head is complete: the exchange, and how its body arrives. */
static void begin_request(ses_http_connection *c, const char *p)
{
    ses_http_server *s = c->server;
    const ses_http_head *h = &c->head;
    const char *reason;
    if (c->check_host && h->host.n && !ses_http_host_allowed(s, p + h->host.at, h->host.n)) {
        reject(c, 403, "the name in the Host header is not allowed on this server");
        return;
    }
    if (h->content_length > s->limits.max_body_bytes) {
        reject(c, 413, "the body is too large");
        return;
    }
    if (atomic_load_explicit(&s->buffered, memory_order_relaxed) >
        s->limits.max_buffered_bytes +
            s->limits.max_buffered_bytes / 4) { /* bodies leave a quarter for others */
        reject(c, 503, "the server has no memory left for requests");
        return;
    }
    c->incoming = ses_http_exchange_new(s, h, p, &reason);
    if (!c->incoming) {
        reject(c, reason ? 400 : 503, reason ? reason : "out of memory");
        return;
    }
    if (c->first_byte_ns) c->incoming->started_ns = c->first_byte_ns;
    c->wants_continue = h->expects_continue;
    if (h->chunked) ses_http_chunks_begin(&c->chunks, s->limits.max_body_bytes);
    c->state = h->chunked ? SES_HTTP_READ_CHUNKS : SES_HTTP_READ_BODY;
    ses_http_connection_set_timer(c);
}

static bool reserve_body(ses_http_connection *c, size_t more)
{
    size_t limit = c->head.chunked ? c->server->limits.max_body_bytes : (size_t)c->head.content_length;
    if (ses_http_exchange_reserve(c->incoming, more, limit)) return true;
    reject(c, 503, "the server has no memory left for request bodies");
    return false;
}

static size_t body_left(const ses_http_connection *c)
{
    return (size_t)c->head.content_length - c->incoming->body_n;
}

/* Returns the bytes used. */
static size_t consume_body(ses_http_connection *c, const char *p, size_t n)
{
    ses_http_exchange *x = c->incoming;
    size_t left = body_left(c), take = n < left ? n : left;
    if (take && !reserve_body(c, take)) return 0;
    if (take) memcpy(x->body + x->body_n, p, take);
    x->body_n += take;
    if (take == left) dispatch(c);
    return take;
}

static size_t consume_chunks(ses_http_connection *c, const char *p, size_t n)
{
    ses_http_exchange *x = c->incoming;
    size_t used = n, produced = 0;
    if (!reserve_body(c, n)) return 0;
    ses_http_result r = ses_http_chunks_decode(&c->chunks, p, &used, x->body + x->body_n, &produced);
    x->body_n += produced;
    if (r == SES_HTTP_INVALID)
        reject(c, c->chunks.status, c->chunks.reason);
    else if (r == SES_HTTP_COMPLETE)
        dispatch(c);
    return used;
}

static size_t consume_head(ses_http_connection *c, const char *p, size_t n, bool *more)
{
    if (!c->first_byte_ns) c->first_byte_ns = c->server->now;
    switch (ses_http_head_parse(&c->head, p, n)) {
    case SES_HTTP_MORE: *more = true; return 0;
    case SES_HTTP_INVALID: reject(c, c->head.status, c->head.reason); return 0;
    default: begin_request(c, p); return c->head.bytes;
    }
}

/* Keeps bytes for later: an incomplete head, or requests above the limit of pipelining. */
static void keep(ses_http_connection *c, const char *p, size_t n)
{
    if (n > c->pending_capacity) {
        size_t old = c->pending_capacity, capacity = n + n / 2 + 256;
        char *q = ses_realloc_array(c->pending, capacity, 1, NULL);
        if (!q) {
            ses_http_connection_close(c, true);
            return;
        }
        c->pending = q;
        c->pending_capacity = capacity;
        ses_http_account(c->server, capacity, old);
    }
    memmove(c->pending, p, n);
    c->pending_n = n;
}

/* Uses received bytes: everything since the end of the last request. */
static void consume(ses_http_connection *c, const char *p, size_t n)
{
    bool more = false;
    for (;;) {
        size_t used = 0;
        if (c->fd < 0 || more || is_paused(c)) break;
        if (c->state == SES_HTTP_READ_BODY && (n || !body_left(c)))
            used = consume_body(c, p, n);
        else if (c->state == SES_HTTP_READ_CHUNKS && n)
            used = consume_chunks(c, p, n);
        else if (c->state == SES_HTTP_READ_HEAD && n)
            used = consume_head(c, p, n, &more);
        else
            break;
        p += used, n -= used;
    }
    if (c->fd < 0) return;
    if (n && c->state == SES_HTTP_READ_HEAD)
        keep(c, p, n);
    else if (c->pending)
        drop_pending(c);
    ses_http_connection_continue(c);
}

/* ---- reading ---- */

/* Large bodies are read without a copy. Returns the result of recv, and the size it was asked for. */
static ssize_t read_body(ses_http_connection *c, size_t *asked)
{
    ses_http_exchange *x = c->incoming;
    size_t room = x->body_capacity - x->body_n, left = body_left(c);
    if (!room && !reserve_body(c, left < FIRST_BODY ? left : FIRST_BODY)) return errno = 0, -1;
    room = x->body_capacity - x->body_n;
    *asked = room < left ? room : left;
    ssize_t n = recv(c->fd, x->body + x->body_n, *asked, 0);
    if (n <= 0) return n;
    x->body_n += (size_t)n;
    if (!body_left(c)) dispatch(c);
    return n;
}

static ssize_t read_bytes(ses_http_connection *c, size_t *asked)
{
    ses_http_server *s = c->server;
    size_t kept = c->pending_n;
    *asked = s->scratch_bytes - kept < SES_HTTP_READ_BYTES ? s->scratch_bytes - kept : SES_HTTP_READ_BYTES;
    ssize_t n = recv(c->fd, s->scratch + kept, *asked, 0);
    if (n <= 0) return n;
    if (c->state == SES_HTTP_READ_LINGER) {
        c->discarded += (size_t)n;
        if (c->discarded > MAX_DISCARDED) ses_http_connection_close(c, true);
        return n;
    }
    if (kept) memcpy(s->scratch, c->pending, kept);
    c->pending_n = 0;
    consume(c, s->scratch, kept + (size_t)n);
    return n;
}

/* The client has closed its side: an incomplete request is dropped, complete ones are still answered. */
static void end_of_input(ses_http_connection *c)
{
    c->eof = true;
    ses_http_connection_cancel(c);
    drop_incoming(c);
    drop_pending(c);
    if (!c->first || c->state == SES_HTTP_READ_LINGER) {
        ses_http_connection_close(c, false);
        return;
    }
    c->state = SES_HTTP_READ_NOTHING;
    ses_http_timer_clear(&c->read_timer, c->server);
}

/* Requests that waited while too many were unanswered. */
static void resume(ses_http_connection *c)
{
    ses_http_server *s = c->server;
    size_t n = c->pending_n;
    if (!n || c->state != SES_HTTP_READ_HEAD || is_paused(c)) return;
    memcpy(s->scratch, c->pending, n);
    c->pending_n = 0;
    consume(c, s->scratch, n);
}

static bool can_read(const ses_http_connection *c)
{
    return c->fd >= 0 && !c->eof && c->state != SES_HTTP_READ_NOTHING && !is_paused(c);
}

/* Reads until no more bytes are there. The event is edge-triggered: if reading stops earlier, wants_read
 * stays set. */
void ses_http_connection_read(ses_http_connection *c)
{
    resume(c);
    for (int i = 0; c->wants_read && can_read(c); i++) {
        if (i == MAX_READS) {
            ses_http_add_work(c);
            break;
        }
        size_t asked = 0;
        bool direct = c->state == SES_HTTP_READ_BODY && !c->pending_n;
        ssize_t n = direct ? read_body(c, &asked) : read_bytes(c, &asked);
        if (n > 0) ses_http_count(&c->server->bytes_read, n);
        if (n > 0 && (size_t)n < asked && !c->client_left)
            c->wants_read = false;
        else if (n == 0)
            end_of_input(c);
        else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            c->wants_read = false;
        else if (n < 0 && errno != EINTR && errno != 0)
            ses_http_connection_close(c, true);
    }
    ses_http_connection_set_timer(c);
}

void ses_http_connection_event(ses_http_connection *c, uint32_t events)
{
    if (c->fd < 0) return;
    if (events & (EPOLLHUP | EPOLLERR)) {
        ses_http_connection_close(c, false);
        return;
    }
    if (events & EPOLLRDHUP) ses_http_connection_cancel(c);
    if (events & (EPOLLIN | EPOLLRDHUP)) {
        c->wants_read = true;
        ses_http_connection_read(c);
    }
    if (events & EPOLLOUT) ses_http_connection_flush(c);
}

void ses_http_connection_expired(ses_http_connection *c, ses_http_timer_kind kind)
{
    bool head = kind == SES_HTTP_TIMER_HEAD && c->pending_n;
    if (head)
        reject(c, 408, "the headers did not arrive in time");
    else if (kind == SES_HTTP_TIMER_BODY)
        reject(c, 408, "the body did not arrive in time");
    else
        ses_http_connection_close(c, kind == SES_HTTP_TIMER_WRITE || kind == SES_HTTP_TIMER_LINGER);
}
