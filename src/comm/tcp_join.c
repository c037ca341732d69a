/* Joining over TCP.
 *
 * Rank 0 listens at the meeting point. The others connect to it, send the address and port on which they
 * listen themselves, and are answered when all have come. Then rank j connects to every rank i with
 * 0 < i < j. */
#define _DEFAULT_SOURCE /* nanosleep */
#include "tcp_join.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "guests.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct meeting {
    const ses_launch *l;
    int *fd;    /* [size] */
    int joined; /* ranks accepted */
    double deadline, seconds;
    uint64_t cookie;
    ses_hello_kind kind; /* expected: JOIN or DATA */
    ses_hello *rank;     /* [size] */
    ses_guests guests;
} meeting;

/* ---- accepting ---- */

static void refuse(int fd, const ses_launch *l, const char *text)
{
    char out[SES_REFUSAL] = { 0 };
    ses_hello h = ses_hello_of(SES_HELLO_REFUSED, l->rank, l->size, 0, 0);
    double deadline = ses_seconds() + 1;
    snprintf(out, sizeof out, "%s", text);
    if (ses_hello_send(fd, &h, deadline, NULL)) ses_net_send(fd, out, sizeof out, deadline, NULL);
}

static const char *ip_text(const ses_ip *ip, char out[INET6_ADDRSTRLEN])
{
    const char *s = inet_ntop(AF_INET6, ip->byte, out, INET6_ADDRSTRLEN);
    if (!s) return "an unknown host";
    return strncmp(s, "::ffff:", 7) ? s : s + 7; /* IPv4 */
}

static bool check_hello(const meeting *m, const ses_hello *h, const char *host, ses_err *e)
{
    const ses_launch *l = m->l;
    if (!ses_hello_check_version(h, host, e)) return false;
    if (h->size != l->size)
        return ses_fail(e, SES_EARG, "rank %d on %s expects %d ranks, rank %d expects %d", h->rank, host,
                        h->size, l->rank, l->size);
    if (h->rank == l->rank || m->fd[h->rank] >= 0)
        return ses_fail(e, SES_EARG, "two processes are rank %d; the second one is on %s", h->rank, host);
    return true;
}

/* A complete hello. False: this run cannot start. A connection that is not of this run is closed. */
static bool admit(void *ctx, int fd, const ses_hello *h, ses_err *e)
{
    meeting *m = ctx;
    char text[INET6_ADDRSTRLEN];
    ses_ip ip = ses_net_peer(fd);
    ses_err error = { 0 };
    bool ours = h->kind == m->kind && h->cookie == m->cookie;
    if (!ours && h->kind == SES_HELLO_JOIN) refuse(fd, m->l, "another run waits at this address and port");
    if (ours && !check_hello(m, h, ip_text(&ip, text), &error)) {
        if (h->kind == SES_HELLO_JOIN) refuse(fd, m->l, error.msg);
        ses_fail(e, error.code, "%s", error.msg);
    }
    if (!ours || error.code) {
        ses_net_close(&fd);
        return !error.code;
    }
    ses_hello *x = &m->rank[h->rank];
    *x = *h;
    if (x->ips < SES_MAX_IPS) x->ips++; /* the address that the connection shows is the first to try */
    memmove(x->ip + 1, h->ip, (size_t)(x->ips - 1) * sizeof *h->ip);
    x->ip[0] = ip;
    m->fd[h->rank] = fd;
    m->joined++;
    return true;
}

/* "2, 5": the missing ones in [first, size). */
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
static bool accept_ranks(meeting *m, int first, ses_err *e)
{
    char missing[128];
    ses_err error = { 0 };
    m->joined = 0;
    if (ses_guests_accept(&m->guests, &m->joined, m->l->size - first, m->deadline, admit, m, &error))
        return true;
    if (error.code) return ses_fail(e, error.code, "%s", error.msg);
    missing_text(m, first, missing);
    return ses_fail(e, SES_EIO, "of %d ranks, rank %s did not join within %.0f s", m->l->size, missing,
                    m->seconds);
}

/* ---- rank 0 ---- */

static bool welcome(meeting *m, ses_err *e)
{
    const ses_launch *l = m->l;
    size_t bytes = (size_t)l->size * SES_HELLO_BYTES;
    double deadline = ses_seconds() + SES_GUEST_SECONDS;
    unsigned char *table = ses_alloc(bytes, e);
    if (!table) return false;
    for (int r = 0; r < l->size; r++) ses_hello_write(&m->rank[r], table + (size_t)r * SES_HELLO_BYTES);
    ses_hello h = ses_hello_of(SES_HELLO_WELCOME, 0, l->size, m->cookie, 0);
    bool ok = true;
    for (int r = 1; r < l->size && ok; r++) {
        ok = ses_hello_send(m->fd[r], &h, deadline, e) && ses_net_send(m->fd[r], table, bytes, deadline, e);
        if (!ok) ses_wrap(e, "rank %d", r);
    }
    ses_free(table);
    return ok;
}

/* An earlier run that is just ending may still have the port. */
static bool listen_at(meeting *m, int port, ses_err *e)
{
    double end = ses_seconds() + SES_GUEST_SECONDS;
    ses_err error;
    int bound;
    for (;;) {
        ses_err_clear(&error);
        m->guests.listener = ses_net_listen(port, &bound, &error);
        if (m->guests.listener >= 0) return true;
        if (ses_seconds() > end || ses_seconds() > m->deadline)
            return ses_fail(e, error.code, "%s", error.msg);
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    }
}

static bool host_meeting(meeting *m, ses_err *e)
{
    const ses_launch *l = m->l;
    ses_err error = { 0 };
    m->kind = SES_HELLO_JOIN;
    m->cookie = l->job;
    if (!listen_at(m, l->port, e)) return false;
    m->rank[0] = ses_hello_of(SES_HELLO_JOIN, 0, l->size, l->job, l->port);
    if (accept_ranks(m, 1, &error)) {
        m->cookie = ses_hash(ses_hash_key_new(), "ranks", 5);
        return welcome(m, e);
    }
    for (int r = 1; r < l->size; r++)
        if (m->fd[r] >= 0) refuse(m->fd[r], l, error.msg);
    return ses_fail(e, error.code, "%s", error.msg);
}

/* ---- other ranks ---- */

/* The answer of rank 0. *again: no answer came, so another try may help. */
static bool read_answer(meeting *m, int fd, bool *again, ses_err *e)
{
    ses_hello h;
    char text[SES_REFUSAL + 1] = { 0 }, quoted[SES_REFUSAL];
    ses_err error = { 0 };
    double deadline = m->deadline + SES_GUEST_SECONDS; /* rank 0 ends first and sends the reason */
    if (!ses_hello_recv(fd, &h, deadline, &error)) {
        *again = error.code == SES_EIO && ses_seconds() < m->deadline;
        return ses_fail(e, error.code, "%s", error.msg);
    }
    if (h.kind == SES_HELLO_REFUSED) {
        ses_net_recv(fd, text, SES_REFUSAL, deadline, NULL);
        return ses_fail(e, SES_EIO, "%s", ses_quote(quoted, sizeof quoted, text, strlen(text)));
    }
    if (h.kind != SES_HELLO_WELCOME || h.size != m->l->size)
        return ses_fail(e, SES_EFORMAT, "the answer is not one of rank 0");
    m->cookie = h.cookie;
    for (int r = 0; r < m->l->size; r++) {
        if (!ses_hello_recv(fd, &m->rank[r], deadline, e)) return false;
        if (m->rank[r].rank != r) return ses_fail(e, SES_EFORMAT, "the table of ranks is out of order");
    }
    return true;
}

/* One try to join at one address. */
static bool try_join(meeting *m, const ses_ip *ip, const ses_hello *mine, bool *again, ses_err *e)
{
    double limit = ses_seconds() + SES_GUEST_SECONDS;
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
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    } while (ses_seconds() < m->deadline);
    return ses_fail(e, last.code, "rank 0 at %s, port %d, did not answer within %.0f s: %s", l->host, l->port,
                    m->seconds, last.msg);
}

static bool join_others(meeting *m, ses_err *e)
{
    const ses_launch *l = m->l;
    int port;
    m->guests.listener = ses_net_listen(0, &port, e);
    if (m->guests.listener < 0 || !join_meeting(m, port, e)) return false;
    ses_hello mine = ses_hello_of(SES_HELLO_DATA, l->rank, l->size, m->cookie, 0);
    for (int r = 1; r < l->rank; r++)
        if ((m->fd[r] = ses_guest_connect(&m->rank[r], &mine, m->deadline, e)) < 0) return false;
    m->kind = SES_HELLO_DATA;
    if (!accept_ranks(m, l->rank + 1, e)) return false;
    for (int r = l->rank + 1; r < l->size; r++)
        if (!ses_hello_send(m->fd[r], &mine, m->deadline, e)) return false;
    return true;
}

bool ses_tcp_join(const ses_launch *l, int *fd, double seconds, ses_err *e)
{
    meeting *m = ses_alloc(sizeof *m, e);
    if (!m) return false;
    *m = (meeting){ .l = l, .fd = fd, .seconds = seconds, .deadline = ses_seconds() + seconds };
    m->guests.listener = -1;
    for (int r = 0; r < l->size; r++) fd[r] = -1;
    m->rank = ses_alloc_array((size_t)l->size, sizeof *m->rank, e);
    bool ok = m->rank && (l->rank ? join_others(m, e) : host_meeting(m, e));
    ses_guests_close(&m->guests);
    ses_free(m->rank);
    ses_free(m);
    return ok;
}
