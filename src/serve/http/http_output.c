/* Connections: responses become sent bytes. */
#define _GNU_SOURCE
#include "http_impl.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { MAX_RANGES = 64, MAX_WRITES = 16 };

/* Whether the connection is closed after this response. If the server drains, after the last one. */
static bool closes(const ses_http_connection *c, const ses_http_exchange *x)
{
    if (x->is_internal || !x->keep_alive || c->eof) return !x->next;
    return c->server->draining && !x->next && !c->incoming;
}

/* The next bytes to send, from all answered exchanges up to the first that is not complete. */
static int gather(ses_http_connection *c, struct iovec *iov)
{
    int n = 0;
    for (ses_http_exchange *x = c->first; x && x->state != SES_HTTP_WAITING && n < MAX_RANGES; x = x->next) {
        if (!x->composed) {
            ses_http_response_compose(x, c->server->date, closes(c, x));
            if (x->closes) c->state = SES_HTTP_READ_NOTHING;
        }
        n += ses_http_response_gather(x, iov + n, MAX_RANGES - n);
        if (x->closes || (x->is_stream && !x->ended)) break;
    }
    return n;
}

/* All responses are sent. The client may still send: closing now would reset the connection, and the
 * client might lose the response. So only the sending side is closed, until the client closes its side. */
static void linger(ses_http_connection *c)
{
    if (c->eof || c->first || shutdown(c->fd, SHUT_WR)) {
        ses_http_connection_close(c, false);
        return;
    }
    c->state = SES_HTTP_READ_LINGER;
    c->wants_read = true;
    ses_http_add_work(c);
    ses_http_connection_set_timer(c);
}

/* Removes exchanges that are sent. False: the connection ends. */
static bool remove_sent(ses_http_connection *c)
{
    ses_http_exchange *x;
    while ((x = c->first) && ses_http_response_is_sent(x)) {
        bool last = x->closes, broken = x->broken;
        c->first = x->next;
        if (!c->first) c->last = NULL;
        c->unanswered--;
        ses_http_exchange_finish(x);
        if (broken) {
            ses_http_connection_close(c, true);
            return false;
        }
        if (last) {
            linger(c);
            return false;
        }
    }
    return true;
}

static void advance(ses_http_connection *c, size_t n)
{
    for (ses_http_exchange *x = c->first; x && n; x = x->next)
        if (ses_http_response_advance(x, &n)) c->progress = true;
}

/* The socket accepts no more: wait, at most until the deadline of the response (or of the part of a
 * stream). */
static void wait_writable(ses_http_connection *c)
{
    if (!c->polls_out) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c };
        if (epoll_ctl(c->server->epoll, EPOLL_CTL_MOD, c->fd, &event)) {
            ses_http_connection_close(c, true);
            return;
        }
        c->polls_out = true;
    }
    if (!c->write_timer.deadline || c->progress) ses_http_timer_set(&c->write_timer, c, SES_HTTP_TIMER_WRITE);
    c->progress = false;
}

/* Sends what can be sent. True: everything was. */
static bool send_ready(ses_http_connection *c)
{
    struct iovec iov[MAX_RANGES];
    for (int i = 0; i < MAX_WRITES; i++) {
        struct msghdr m = { .msg_iov = iov };
        int ranges = gather(c, iov);
        m.msg_iovlen = (size_t)ranges;
        ssize_t n = ranges ? sendmsg(c->fd, &m, MSG_NOSIGNAL) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_writable(c), false;
        if (n < 0) return ses_http_connection_close(c, false), false;
        ses_http_count(&c->server->bytes_written, n);
        advance(c, (size_t)n);
        if (!remove_sent(c)) return false;
        if (!ranges || !c->first || c->first->state == SES_HTTP_WAITING) return true;
        if (c->first->is_stream && !gather(c, iov)) return true;
    }
    c->wants_flush = true;
    ses_http_add_work(c);
    return false;
}

void ses_http_connection_flush(ses_http_connection *c)
{
    if (c->fd < 0 || c->state == SES_HTTP_READ_LINGER || !send_ready(c) || c->fd < 0) return;
    c->progress = false;
    ses_http_timer_clear(&c->write_timer, c->server);
    if (!c->first && c->eof) {
        ses_http_connection_close(c, false);
        return;
    }
    ses_http_connection_continue(c);
    if (c->wants_read || c->pending_n) ses_http_add_work(c);
    ses_http_connection_set_timer(c);
}
