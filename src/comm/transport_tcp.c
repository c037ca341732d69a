/* Transport over TCP: a socket between every two ranks.
 *
 * A block is a header (number of the exchange, bytes) and the bytes. Since all ranks make the same calls in
 * the same order, a header that differs from the expected one shows a mistake in a caller. */
#include "transport.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "net.h"
#include "tcp_join.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { HEADER = 16 };

/* One direction of the connection to a rank. */
typedef struct flow {
    unsigned char header[HEADER];
    char *data;
    size_t bytes; /* size of data */
    size_t done;  /* bytes that moved, at most HEADER + bytes */
} flow;

typedef struct tcp {
    int rank, size;
    int *fd;           /* [size]; -1: the own rank */
    flow *out, *in;    /* [size] */
    struct pollfd *p;  /* [size + 1] */
    uint64_t sequence; /* number of the exchange */
} tcp;

static void close_tcp(void *self, bool failed)
{
    tcp *t = self;
    (void)failed;
    if (!t) return;
    for (int r = 0; t->fd && r < t->size; r++) ses_net_close(&t->fd[r]);
    ses_free(t->fd);
    ses_free(t->out);
    ses_free(t->in);
    ses_free(t->p);
    ses_free(t);
}

static void *open_tcp(ses_launch *l, double seconds, ses_err *e)
{
    size_t n = (size_t)l->size;
    tcp *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    *t = (tcp){ .rank = l->rank, .size = l->size };
    if (!(t->out = ses_alloc_array(n, sizeof *t->out, e)) ||
        !(t->in = ses_alloc_array(n, sizeof *t->in, e)) ||
        !(t->p = ses_alloc_array(n + 1, sizeof *t->p, e)) ||
        !(t->fd = ses_alloc_array(n, sizeof *t->fd, e)) || !ses_tcp_join(l, t->fd, seconds, e)) {
        close_tcp(t, true);
        return NULL;
    }
    return t;
}

static bool is_done(const flow *f) { return !f->bytes || f->done == HEADER + f->bytes; }

static void begin(flow *f, const ses_comm_block *b, uint64_t sequence)
{
    *f = (flow){ .data = b->data, .bytes = b->bytes };
    for (int i = 0; i < 8; i++) {
        f->header[i] = (unsigned char)(sequence >> 8 * i);
        f->header[8 + i] = (unsigned char)((uint64_t)b->bytes >> 8 * i);
    }
}

/* The rest of the header and of the data. */
static int rest_of(flow *f, struct iovec v[2])
{
    int n = 0;
    size_t data = f->done > HEADER ? f->done - HEADER : 0;
    if (f->done < HEADER) v[n++] = (struct iovec){ f->header + f->done, HEADER - f->done };
    v[n++] = (struct iovec){ f->data + data, f->bytes - data };
    return n;
}

static bool lost(int peer, int *bad, int code, ses_err *e)
{
    *bad = peer;
    return ses_fail(e, SES_EIO, "the connection was lost%s%s", code ? ": " : "", code ? strerror(code) : "");
}

static bool push(tcp *t, int r, ses_watch *w, int *peer, ses_err *e)
{
    flow *f = &t->out[r];
    while (!is_done(f)) {
        struct iovec v[2];
        struct msghdr m = { .msg_iov = v, .msg_iovlen = (size_t)rest_of(f, v) };
        ssize_t k = sendmsg(t->fd[r], &m, MSG_NOSIGNAL);
        if (k < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (k < 0) return lost(r, peer, errno, e);
        f->done += (size_t)k;
        atomic_fetch_add(&w->progress, 1);
    }
    return true;
}

static bool check_header(const tcp *t, int r, const unsigned char *got, int *peer, ses_err *e)
{
    const flow *f = &t->in[r];
    uint64_t sequence = ses_le64(got), bytes = ses_le64(got + 8);
    if (sequence == t->sequence && bytes == f->bytes) return true;
    *peer = r;
    return ses_fail(
        e, SES_EFORMAT,
        "sent %llu bytes in exchange %llu, where exchange %llu of %zu bytes was expected: the ranks do "
        "not make the same calls",
        (unsigned long long)bytes, (unsigned long long)sequence, (unsigned long long)t->sequence, f->bytes);
}

static bool pull(tcp *t, int r, ses_watch *w, int *peer, ses_err *e)
{
    flow *f = &t->in[r];
    while (!is_done(f)) {
        struct iovec v[2];
        struct msghdr m = { .msg_iov = v, .msg_iovlen = f->done < HEADER ? 1 : (size_t)rest_of(f, v) };
        if (f->done < HEADER) rest_of(f, v);
        ssize_t k = recvmsg(t->fd[r], &m, 0);
        if (k < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (k <= 0) return lost(r, peer, k ? errno : 0, e);
        bool header = f->done < HEADER;
        f->done += (size_t)k;
        atomic_fetch_add(&w->progress, 1);
        if (header && f->done >= HEADER && !check_header(t, r, f->header, peer, e)) return false;
    }
    return true;
}

/* Waits for a socket that can be used, or until the run fails. */
static bool wait_any(tcp *t, const ses_watch *w, int *peer, ses_err *e)
{
    nfds_t n = 0;
    for (int r = 0; r < t->size; r++) {
        short events = (short)((is_done(&t->out[r]) ? 0 : POLLOUT) | (is_done(&t->in[r]) ? 0 : POLLIN));
        t->p[n] = (struct pollfd){ .fd = t->fd[r], .events = events };
        n += events != 0;
    }
    t->p[n++] = (struct pollfd){ .fd = w->wake_fd, .events = POLLIN }; /* -1 is ignored */
    if (poll(t->p, n, 1000) >= 0 || errno == EINTR) return true;
    *peer = -1;
    return ses_fail(e, SES_EIO, "poll: %s", strerror(errno));
}

static bool exchange(void *self, const ses_comm_block *send, const ses_comm_block *recv, ses_watch *w,
                     int *peer, ses_err *e)
{
    tcp *t = self;
    *peer = -1;
    t->sequence++;
    for (int r = 0; r < t->size; r++) {
        begin(&t->out[r], &send[r], t->sequence);
        begin(&t->in[r], &recv[r], t->sequence);
        if (r == t->rank) t->out[r].bytes = t->in[r].bytes = 0;
    }
    for (;;) {
        bool all = true;
        for (int i = 1; i < t->size; i++) { /* every rank begins with another one */
            int to = (t->rank + i) % t->size, from = (t->rank + t->size - i) % t->size;
            if (!push(t, to, w, peer, e) || !pull(t, from, w, peer, e)) return false;
            all = all && is_done(&t->out[to]) && is_done(&t->in[from]);
        }
        if (all) return true;
        if (atomic_load(&w->failed)) return ses_fail(e, SES_EIO, "the run has failed");
        if (!wait_any(t, w, peer, e)) return false;
    }
}

static const char *version(const void *self)
{
    (void)self;
    return "";
}

const ses_transport ses_transport_tcp = {
    .name = "tcp", .open = open_tcp, .exchange = exchange, .version = version, .close = close_tcp
};
