/* Connections that have not introduced themselves yet, and the other side: connecting to a rank. */
#define _DEFAULT_SOURCE /* nanosleep */
#include "guests.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static void drop(ses_guests *g, int i)
{
    ses_net_close(&g->guest[i].fd);
    g->guest[i] = g->guest[--g->n];
}

void ses_guests_close(ses_guests *g)
{
    while (g->n) drop(g, 0);
    ses_net_close(&g->listener);
}

/* Reads the bytes that guest i has sent. */
static bool read_guest(ses_guests *g, int i, ses_guest_fn *fn, void *ctx, ses_err *e)
{
    ses_guest *x = &g->guest[i];
    ses_hello h;
    ssize_t k = recv(x->fd, x->in + x->n, sizeof x->in - x->n, 0);
    if (k < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (k > 0) x->n += (size_t)k;
    if (k > 0 && x->n < sizeof x->in) return true;
    int fd = k > 0 && ses_hello_read(&h, x->in) ? x->fd : -1;
    if (fd >= 0) x->fd = -1;
    drop(g, i);
    return fd < 0 || fn(ctx, fd, &h, e);
}

int ses_guests_poll(const ses_guests *g, struct pollfd *p)
{
    p[0] = (struct pollfd){ .fd = g->listener, .events = POLLIN };
    for (int i = 0; i < g->n; i++) p[i + 1] = (struct pollfd){ .fd = g->guest[i].fd, .events = POLLIN };
    return g->n + 1;
}

bool ses_guests_serve(ses_guests *g, const struct pollfd *p, int n, ses_guest_fn *fn, void *ctx, ses_err *e)
{
    double now = ses_seconds();
    for (int i = n - 1; i-- > 0;) { /* from the end: dropping moves the last one */
        if (p[i + 1].revents) {
            if (!read_guest(g, i, fn, ctx, e)) return false;
        } else if (now > g->guest[i].deadline) {
            drop(g, i);
        }
    }
    int fd;
    while (p[0].revents && (fd = ses_net_accept(g->listener)) >= 0) {
        if (g->n == SES_MAX_GUESTS) drop(g, 0);
        g->guest[g->n++] = (ses_guest){ .fd = fd, .deadline = now + SES_GUEST_SECONDS };
    }
    return true;
}

bool ses_guests_accept(ses_guests *g, const int *joined, int count, double deadline, ses_guest_fn *fn,
                       void *ctx, ses_err *e)
{
    while (*joined < count) {
        struct pollfd p[SES_MAX_GUESTS + 1];
        int n = ses_guests_poll(g, p);
        if (poll(p, (nfds_t)n, ses_net_millis(deadline, 100)) < 0) {
            if (errno != EINTR) return ses_fail(e, SES_EIO, "poll: %s", strerror(errno));
            continue;
        }
        if (!ses_guests_serve(g, p, n, fn, ctx, e)) return false;
        if (*joined < count && ses_seconds() >= deadline) return false;
    }
    return true;
}

/* One try at one address. */
static int try_connect(const ses_ip *ip, const ses_hello *to, const ses_hello *mine, double deadline,
                       ses_err *e)
{
    ses_hello answer;
    double limit = ses_seconds() + SES_GUEST_SECONDS;
    int fd = ses_net_connect(ip, to->port, limit < deadline ? limit : deadline, e);
    if (fd < 0) return -1;
    /* the answer comes when that rank is ready for it */
    if (ses_hello_send(fd, mine, limit, e) && ses_hello_recv(fd, &answer, deadline, e)) {
        if (answer.kind == mine->kind && answer.rank == to->rank && answer.cookie == mine->cookie) return fd;
        ses_fail(e, SES_EFORMAT, "another process answers at its address");
    }
    ses_net_close(&fd);
    return -1;
}

int ses_guest_connect(const ses_hello *to, const ses_hello *mine, double deadline, ses_err *e)
{
    ses_err last = { 0 };
    do {
        for (int i = 0; i < to->ips; i++) {
            ses_err_clear(&last);
            int fd = try_connect(&to->ip[i], to, mine, deadline, &last);
            if (fd >= 0) return fd;
        }
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    } while (ses_seconds() < deadline);
    ses_fail(e, SES_EIO, "cannot connect to rank %d: %s", to->rank, last.msg);
    return -1;
}
