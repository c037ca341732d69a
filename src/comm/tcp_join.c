/* Joining over TCP.
 *
 * Rank 0 listens at the meeting point. The others connect to it, send the address and port on which they
 * listen themselves, and are answered when all have come. Then rank j connects to every rank i with
 * 0 < i < j. Strangers that connect are dropped: a hello has a fixed size, must be complete after a few
 * seconds, and must be one of this run. */
#define _DEFAULT_SOURCE /* nanosleep */
#include "tcp_join.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "hello.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MAX_GUESTS = 64 }; /* connections whose hello is incomplete; the oldest is dropped for a new one */
static const double patience = 5; /* seconds for a hello */

/* A connection that has not introduced itself yet. */
typedef struct guest {
    int fd;
    double deadline;
    size_t n;
    unsigned char in[SES_HELLO_BYTES];
} guest;

typedef struct meeting {
    const ses_launch *l;
    int *fd;    /* [size] */
    int joined; /* other ranks in fd */
    int listener;
    double deadline;
    uint64_t cookie;
    ses_hello_kind kind; /* expected: JOIN or DATA */
    ses_hello *rank;     /* [size] */
    int guests;
    guest guest[MAX_GUESTS];
} meeting;

static void pause_ms(int ms) { nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL); }

/* ---- accepting ---- */

static void drop_guest(meeting *m, int i)
{
    ses_net_close(&m->guest[i].fd);
    m->guest[i] = m->guest[--m->guests];
}

static void refuse(int fd, const ses_launch *l, uint64_t cookie, const char *text)
{
    char out[SES_REFUSAL] = { 0 };
    ses_hello h = ses_hello_of(SES_HELLO_REFUSED, l->rank, l->size, cookie, 0);
    double deadline = ses_seconds() + 1;
    snprintf(out, sizeof out, "%s", text);
    if (ses_hello_send(fd, &h, deadline, NULL)) ses_net_send(fd, out, sizeof out, deadline, NULL);
}

static const char *ip_text(const ses_ip *ip, char out[64])
{
    const unsigned char *b = ip->byte;
    if (b[10] == 0xff && b[11] == 0xff && !b[0])
        snprintf(out, 64, "%d.%d.%d.%d", b[12], b[13], b[14], b[15]);
    else
        snprintf(out, 64, "%x:%x::%x:%x", b[0] << 8 | b[1], b[2] << 8 | b[3], b[12] << 8 | b[13],
                 b[14] << 8 | b[15]);
    return out;
}

/* A complete hello. False: this run cannot start. A connection that is not of this run is dropped. */
static bool admit(meeting *m, int i, const ses_hello *h, ses_err *e)
{
    char host[64];
    guest *g = &m->guest[i];
    const ses_launch *l = m->l;
    ses_ip ip = ses_net_peer(g->fd);
    if (h->kind != m->kind || h->cookie != m->cookie) {
        if (h->kind == SES_HELLO_JOIN) refuse(g->fd, l, 0, "another run waits at this address and port");
        drop_guest(m, i);
        return true;
    }
    ses_err error = { 0 };
    bool ok = ses_hello_check_version(h, ip_text(&ip, host), &error);
    if (ok && h->size != l->size)
        ok = ses_fail(&error, SES_EARG, "rank %d on %s expects %d ranks, rank %d expects %d", h->rank, host,
                      h->size, l->rank, l->size);
    if (ok && (h->rank == l->rank || m->fd[h->rank] >= 0))
        ok = ses_fail(&error, SES_EARG, "two processes are rank %d; the second one is on %s", h->rank, host);
    if (!ok) {
        if (h->kind == SES_HELLO_JOIN) refuse(g->fd, l, 0, error.msg);
        drop_guest(m, i);
        return ses_fail(e, error.code, "%s", error.msg);
    }
    m->rank[h->rank] = *h;
    /* The address that this connection shows is the first to try, unless it only shows this very machine. */
    if (h->ips < SES_MAX_IPS) m->rank[h->rank].ips++;
    memmove(m->rank[h->rank].ip + 1, h->ip, (size_t)(m->rank[h->rank].ips - 1) * sizeof *h->ip);
    m->rank[h->rank].ip[0] = ip;
    m->fd[h->rank] = g->fd;
    m->joined++;
    g->fd = -1;
    drop_guest(m, i);
    return true;
}

/* Reads the bytes that guest i has sent. */
static bool read_guest(meeting *m, int i, ses_err *e)
{
    guest *g = &m->guest[i];
    ses_hello h;
    ssize_t k = recv(g->fd, g->in + g->n, sizeof g->in - g->n, 0);
    if (k < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (k > 0) g->n += (size_t)k;
    if (k > 0 && g->n < sizeof g->in) return true;
    if (k > 0 && ses_hello_read(&h, g->in)) return admit(m, i, &h, e);
    drop_guest(m, i);
    return true;
}

static void add_guest(meeting *m, int fd)
{
    if (m->guests == MAX_GUESTS) drop_guest(m, 0);
    m->guest[m->guests++] = (guest){ .fd = fd, .deadline = ses_seconds() + patience };
}

/* Waits for news of the listener and the guests; at most 100 ms. */
static bool accept_some(meeting *m, ses_err *e)
{
    struct pollfd p[MAX_GUESTS + 1] = { { .fd = m->listener, .events = POLLIN } };
    int n = m->guests;
    for (int i = 0; i < n; i++) p[i + 1] = (struct pollfd){ .fd = m->guest[i].fd, .events = POLLIN };
    if (poll(p, (nfds_t)n + 1, 100) < 0 && errno != EINTR)
        return ses_fail(e, SES_EIO, "poll: %s", strerror(errno));
    for (int i = n; i-- > 0;) { /* from the end: dropping moves the last one */
        if (p[i + 1].revents) {
            if (!read_guest(m, i, e)) return false;
        } else if (ses_seconds() > m->guest[i].deadline) {
            drop_guest(m, i);
        }
    }
    int fd;
    if (p[0].revents)
        while ((fd = ses_net_accept(m->listener)) >= 0) add_guest(m, fd);
    return true;
}

/* "ranks 2, 5": the missing ones in [first, size). */
static void missing_text(const meeting *m, int first, char out[128])
{
    size_t n = 0;
    int count = 0;
    out[0] = 0;
    for (int r = first; r < m->l->size; r++) {
        if (m->fd[r] >= 0 || r == m->l->rank) continue;
        if (count++ < 8) n += (size_t)snprintf(out + n, 128 - n, "%s%d", count > 1 ? ", " : "", r);
    }
    if (count > 8) snprintf(out + n, 128 - n, " and %d more", count - 8);
}

/* Accepts the ranks in [first, size). */
static bool accept_ranks(meeting *m, int first, double seconds, ses_err *e)
{
    int expected = m->l->size - first;
    m->joined = 0;
    while (m->joined < expected) {
        if (!accept_some(m, e)) return false;
        if (m->joined == expected || ses_seconds() < m->deadline) continue;
        char missing[128];
        missing_text(m, first, missing);
        return ses_fail(e, SES_EIO, "of %d ranks, rank %s did not join within %.0f s", m->l->size, missing,
                        seconds);
    }
    return true;
}

/* ---- rank 0 ---- */

static bool welcome(meeting *m, ses_err *e)
{
    const ses_launch *l = m->l;
    size_t bytes = (size_t)l->size * SES_HELLO_BYTES;
    unsigned char *table = ses_alloc(bytes, e);
    if (!table) return false;
    for (int r = 0; r < l->size; r++) ses_hello_write(&m->rank[r], table + (size_t)r * SES_HELLO_BYTES);
    ses_hello_kind kind = SES_HELLO_WELCOME;
    ses_hello h = ses_hello_of(kind, 0, l->size, m->cookie, 0);
    bool ok = true;
    for (int r = 1; r < l->size && ok; r++) {
        ok = ses_hello_send(m->fd[r], &h, m->deadline, e) &&
             ses_net_send(m->fd[r], table, bytes, m->deadline, e);
        if (!ok) ses_wrap(e, "rank %d", r);
    }
    ses_free(table);
    return ok;
}

static bool host_meeting(meeting *m, double seconds, ses_err *e)
{
    const ses_launch *l = m->l;
    int bound;
    m->kind = SES_HELLO_JOIN;
    m->cookie = l->job;
    ses_err error = { 0 };
    m->listener = ses_net_listen(l->port, &bound, e);
    if (m->listener < 0) return false;
    bool ok = accept_ranks(m, 1, seconds, &error);
    m->cookie = ses_hash(ses_hash_key_new(), "ranks", 5);
    m->rank[0] = ses_hello_of(SES_HELLO_JOIN, 0, l->size, l->job, l->port);
    if (ok) return welcome(m, e);
    for (int r = 1; r < l->size; r++)
        if (m->fd[r] >= 0) refuse(m->fd[r], l, m->cookie, error.msg);
    return ses_fail(e, error.code, "%s", error.msg);
}

/* ---- other ranks ---- */

/* The answer of rank 0. *again: no answer came, so another try may help. */
static bool read_answer(meeting *m, int fd, bool *again, ses_err *e)
{
    ses_hello h;
    char text[SES_REFUSAL + 1] = { 0 };
    ses_err error = { 0 };
    double deadline = m->deadline + patience; /* rank 0 ends first and sends the reason */
    if (!ses_hello_recv(fd, &h, deadline, &error)) {
        *again = error.code == SES_EIO && ses_seconds() < m->deadline;
        return ses_fail(e, error.code, "%s", error.msg);
    }
    if (h.kind == SES_HELLO_REFUSED) {
        ses_net_recv(fd, text, SES_REFUSAL, deadline, NULL);
        return ses_fail(e, SES_EIO, "%s", ses_quoted_of(text, strlen(text)).s);
    }
    if (h.kind != SES_HELLO_WELCOME || h.size != m->l->size)
        return ses_fail(e, SES_EFORMAT, "the answer is not one of rank 0");
    m->cookie = h.cookie;
    for (int r = 0; r < m->l->size; r++)
        if (!ses_hello_recv(fd, &m->rank[r], deadline, e)) return false;
    return true;
}

/* One try to join at one address. */
static bool try_join(meeting *m, const ses_ip *ip, const ses_hello *mine, bool *again, ses_err *e)
{
    double limit = ses_seconds() + patience;
    int fd = ses_net_connect(ip, m->l->port, limit < m->deadline ? limit : m->deadline, e);
    if (fd < 0) return false;
    *again = false;
    if (!ses_hello_send(fd, mine, m->deadline, e) || !read_answer(m, fd, again, e)) {
        ses_net_close(&fd);
        return false;
    }
    m->fd[0] = fd;
    return true;
}

static bool join_meeting(meeting *m, int port, ses_err *e)
{
    const ses_launch *l = m->l;
    ses_hello mine = ses_hello_of(SES_HELLO_JOIN, l->rank, l->size, l->job, port);
    ses_err last;
    do {
        ses_ip ip[SES_MAX_IPS];
        last = (ses_err){ 0 };
        int n = ses_net_resolve(l->host, ip, &last);
        for (int i = 0; i < n; i++) {
            bool again = true;
            ses_err_clear(&last);
            if (try_join(m, &ip[i], &mine, &again, &last)) return true;
            if (!again) return ses_fail(e, last.code, "%s", last.msg);
        }
        pause_ms(50);
    } while (ses_seconds() < m->deadline);
    return ses_fail(e, last.code, "rank 0 at %s, port %d: %s", l->host, l->port, last.msg);
}

/* Connects to rank r at one of its addresses. */
static bool connect_rank(meeting *m, int r, ses_err *e)
{
    const ses_hello *h = &m->rank[r];
    ses_hello mine = ses_hello_of(SES_HELLO_DATA, m->l->rank, m->l->size, m->cookie, 0), answer;
    ses_err last = { 0 };
    do {
        for (int i = 0; i < h->ips; i++) {
            double limit = ses_seconds() + patience;
            ses_err_clear(&last);
            int fd = ses_net_connect(&h->ip[i], h->port, limit, &last);
            if (fd < 0) continue;
            /* the answer comes when rank r has connected to the ranks below it */
            if (ses_hello_send(fd, &mine, limit, &last) && ses_hello_recv(fd, &answer, m->deadline, &last) &&
                answer.kind == SES_HELLO_DATA && answer.rank == r && answer.cookie == m->cookie) {
                m->fd[r] = fd;
                return true;
            }
            ses_net_close(&fd);
        }
        pause_ms(50);
    } while (ses_seconds() < m->deadline);
    return ses_fail(e, SES_EIO, "cannot connect to rank %d: %s", r, last.msg);
}

static bool join_others(meeting *m, double seconds, ses_err *e)
{
    const ses_launch *l = m->l;
    int port;
    m->listener = ses_net_listen(0, &port, e);
    if (m->listener < 0 || !join_meeting(m, port, e)) return false;
    for (int r = 1; r < l->rank; r++)
        if (!connect_rank(m, r, e)) return false;
    m->kind = SES_HELLO_DATA;
    if (!accept_ranks(m, l->rank + 1, seconds, e)) return false;
    ses_hello mine = ses_hello_of(SES_HELLO_DATA, l->rank, l->size, m->cookie, 0);
    for (int r = l->rank + 1; r < l->size; r++)
        if (!ses_hello_send(m->fd[r], &mine, m->deadline, e)) return false;
    return true;
}

bool ses_tcp_join(const ses_launch *l, int *fd, double seconds, ses_err *e)
{
    meeting *m = ses_alloc(sizeof *m, e);
    if (!m) return false;
    *m = (meeting){ .l = l, .fd = fd, .listener = -1, .deadline = ses_seconds() + seconds };
    for (int r = 0; r < l->size; r++) fd[r] = -1;
    m->rank = ses_alloc_array((size_t)l->size, sizeof *m->rank, e);
    bool ok = m->rank && (l->rank ? join_others(m, seconds, e) : host_meeting(m, seconds, e));
    while (m->guests) drop_guest(m, 0);
    ses_net_close(&m->listener);
    ses_free(m->rank);
    ses_free(m);
    return ok;
}
