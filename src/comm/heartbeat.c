/* Control channel: the thread and its connections. */
#define _DEFAULT_SOURCE /* clocks of conditions, signal masks */
#include "heartbeat_state.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

enum { CONNECT_SECONDS = 2, LINGER_SECONDS = 3 };

ses_control_message ses_hb_message(const ses_heartbeat *h, ses_control_kind kind)
{
    ses_watch *w = h->o.watch;
    return (ses_control_message){ .kind = kind,
                                  .rank = h->o.rank,
                                  .is_waiting = atomic_load(&w->is_waiting),
                                  .update = atomic_load(&w->update),
                                  .entered = atomic_load(&w->entered),
                                  .progress = atomic_load(&w->progress) };
}

/* ---- connections ---- */

void ses_link_close(ses_heartbeat *h, int r)
{
    ses_rank_link *l = &h->link[r];
    ses_net_close(&l->fd);
    l->is_connecting = false;
    l->in_n = l->out_n = 0;
}

static void flush_link(ses_heartbeat *h, int r)
{
    ses_rank_link *l = &h->link[r];
    while (l->fd >= 0 && !l->is_connecting && l->out_n) {
        ssize_t k = send(l->fd, l->out, l->out_n, MSG_NOSIGNAL);
        if (k <= 0) return; /* full, or lost: the reader notices */
        l->out_n -= (size_t)k;
        memmove(l->out, l->out + k, l->out_n);
    }
}

/* A message that does not fit is dropped: the rank has not read for a long time. */
void ses_link_send(ses_heartbeat *h, int r, const ses_control_message *m)
{
    ses_rank_link *l = &h->link[r];
    unsigned char out[SES_CONTROL_HEAD + SES_CONTROL_TEXT];
    size_t n = ses_control_write(m, out);
    if (l->fd < 0 || n > sizeof l->out - l->out_n) return;
    memcpy(l->out + l->out_n, out, n);
    l->out_n += n;
    flush_link(h, r);
}

/* The connection to rank r is established: sends the hello and the suspicion. */
static void established(ses_heartbeat *h, int r)
{
    ses_rank_link *l = &h->link[r];
    ses_hello mine = ses_hello_of(SES_HELLO_CONTROL, h->o.rank, h->o.size, h->o.control[0].cookie, 0);
    l->is_connecting = false;
    l->heard = ses_seconds();
    ses_hello_write(&mine, l->out);
    l->out_n = SES_HELLO_BYTES;
    ses_control_message m = ses_hb_message(h, SES_CONTROL_SUSPECT);
    m.rank = 0;
    memcpy(m.text, h->loss_of_0.msg, sizeof m.text);
    ses_link_send(h, r, &m);
}

/* Tries the addresses of rank r from l->ip on. */
static void connect_next(ses_heartbeat *h, int r)
{
    ses_rank_link *l = &h->link[r];
    const ses_hello *to = &h->o.control[r];
    for (; l->ip < to->ips; l->ip++) {
        bool pending = false;
        l->fd = ses_net_connect_begin(&to->ip[l->ip], to->port, &pending);
        if (l->fd < 0) continue;
        l->is_connecting = true;
        l->deadline = ses_seconds() + CONNECT_SECONDS;
        if (!pending) established(h, r);
        return;
    }
}

void ses_link_connect(ses_heartbeat *h, int r)
{
    h->link[r].ip = 0;
    connect_next(h, r);
}

void ses_link_retry(ses_heartbeat *h, int r)
{
    ses_link_close(h, r);
    h->link[r].ip++;
    connect_next(h, r);
    if (h->link[r].fd < 0) ses_hb_link_lost(h, r);
}

static void finish_connect(ses_heartbeat *h, int r)
{
    if (ses_net_connect_end(h->link[r].fd))
        established(h, r);
    else
        ses_link_retry(h, r);
}

static void read_link(ses_heartbeat *h, int r)
{
    ses_rank_link *l = &h->link[r];
    bool ended = false;
    while (l->fd >= 0 && !ended) {
        ssize_t k = recv(l->fd, l->in + l->in_n, sizeof l->in - l->in_n, 0);
        if (k < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (k <= 0) break;
        l->in_n += (size_t)k;
        size_t at = 0;
        int n = 0;
        ses_control_message m;
        while (l->fd >= 0 && (n = ses_control_read(&m, l->in + at, l->in_n - at)) > 0) {
            at += (size_t)n;
            ses_hb_handle(h, r, &m);
        }
        if (l->fd < 0) return;
        ended = n < 0;
        l->in_n -= at;
        memmove(l->in, l->in + at, l->in_n);
    }
    if (l->fd >= 0) ses_hb_link_lost(h, r);
}

/* A rank connects after the loss of rank 0. */
static bool admit(void *ctx, int fd, const ses_hello *hello, ses_err *e)
{
    ses_heartbeat *h = ctx;
    (void)e;
    int r = hello->rank;
    bool ours = hello->kind == SES_HELLO_CONTROL && hello->size == h->o.size && r > h->o.rank && h->o.rank &&
                hello->cookie == h->o.control[0].cookie && h->link[r].fd < 0;
    if (!ours) {
        ses_net_close(&fd);
        return true;
    }
    h->link[r].fd = fd;
    h->link[r].heard = ses_seconds();
    ses_control_message m = ses_hb_message(h, SES_CONTROL_BEAT);
    ses_link_send(h, r, &m);
    return true;
}

/* ---- thread ---- */

/* Waits for events and handles them. */
static void turn(ses_heartbeat *h, double until)
{
    int size = h->o.size;
    eventfd_t ignored;
    for (int r = 0; r < size; r++) {
        const ses_rank_link *l = &h->link[r];
        short events = l->is_connecting ? POLLOUT : (short)(POLLIN | (l->out_n ? POLLOUT : 0));
        h->p[r] = (struct pollfd){ .fd = l->fd, .events = events };
    }
    h->p[size] = (struct pollfd){ .fd = h->signal_fd, .events = POLLIN };
    int guests = ses_guests_poll(&h->guests, h->p + size + 1);
    if (poll(h->p, (nfds_t)(size + 1 + guests), ses_net_millis(until, 1000)) < 0) return;
    if (h->p[size].revents) eventfd_read(h->signal_fd, &ignored);
    for (int r = 0; r < size; r++) {
        if (!h->p[r].revents || h->link[r].fd != h->p[r].fd) continue;
        if (h->link[r].is_connecting)
            finish_connect(h, r);
        else {
            if (h->p[r].revents & POLLOUT) flush_link(h, r);
            if (h->p[r].revents & ~POLLOUT) read_link(h, r);
        }
    }
    ses_guests_serve(&h->guests, h->p + size + 1, guests, admit, h, NULL);
}

static void send_beats(ses_heartbeat *h, double now)
{
    if (now < h->next_beat || h->phase == SES_HB_ENDED) return;
    h->next_beat = now + h->interval;
    ses_control_message m = ses_hb_message(h, SES_CONTROL_BEAT);
    for (int r = 0; r < h->o.size; r++)
        if (h->link[r].fd >= 0 && !h->link[r].out_n) ses_link_send(h, r, &m);
}

/* Whether some rank has not closed its connection yet, or may still come for the error. */
static bool has_listeners(ses_heartbeat *h)
{
    if (h->phase != SES_HB_ENDED) {
        for (int r = 1; r < h->o.size; r++)
            if (!h->o.rank && h->link[r].fd >= 0) return true;
        return false;
    }
    pthread_mutex_lock(&h->lock);
    bool decided = h->reporter == h->o.rank;
    pthread_mutex_unlock(&h->lock);
    for (int r = 0; r < h->o.size; r++) {
        const ses_rank_link *l = &h->link[r];
        if (l->fd >= 0 && l->was_told && r != 0) return true;
        if (decided && h->o.rank && r > h->o.rank && !l->was_told) return true;
    }
    return false;
}

/* Ends the sending side of connections that have carried their last message. */
static void shut_down(ses_heartbeat *h)
{
    for (int r = 0; r < h->o.size; r++) {
        const ses_rank_link *l = &h->link[r];
        bool last = h->phase != SES_HB_ENDED || l->was_told;
        if (l->fd >= 0 && !l->is_connecting && !l->out_n && last) shutdown(l->fd, SHUT_WR);
    }
}

/* Stays until the other ranks have read the last messages, for a moment. Ranks that hang never do. */
static void linger(ses_heartbeat *h)
{
    double limit = 2 * h->interval + LINGER_SECONDS;
    double end = ses_seconds() + (limit < h->o.timeout ? limit : h->o.timeout);
    for (shut_down(h); has_listeners(h) && ses_seconds() < end; shut_down(h)) turn(h, end);
}

static void *run(void *arg)
{
    ses_heartbeat *h = arg;
    bool stop = false;
    h->last_turn = ses_seconds();
    while (!stop) {
        turn(h, h->next_beat);
        ses_hb_requests(h);
        double now = ses_seconds();
        send_beats(h, now);
        ses_hb_check(h, now);
        h->last_turn = now;
        if (h->phase == SES_HB_ENDED) h->next_beat = now + 1;
        pthread_mutex_lock(&h->lock);
        stop = h->stop;
        pthread_mutex_unlock(&h->lock);
    }
    linger(h);
    return NULL;
}

/* ---- joining ---- */

typedef struct arrival {
    ses_heartbeat *h;
    int joined;
} arrival;

static bool admit_first(void *ctx, int fd, const ses_hello *hello, ses_err *e)
{
    arrival *a = ctx;
    ses_heartbeat *h = a->h;
    int r = hello->rank;
    bool ours = hello->kind == SES_HELLO_CONTROL && hello->size == h->o.size && r && h->link[r].fd < 0 &&
                hello->cookie == h->o.control[0].cookie;
    if (!ours) {
        ses_net_close(&fd);
        return true;
    }
    h->link[r].fd = fd;
    a->joined++;
    ses_hello mine = ses_hello_of(SES_HELLO_CONTROL, 0, h->o.size, hello->cookie, 0);
    return ses_hello_send(fd, &mine, ses_seconds() + SES_GUEST_SECONDS, e);
}

static bool connect_all(ses_heartbeat *h, double seconds, ses_err *e)
{
    double deadline = ses_seconds() + seconds;
    arrival a = { .h = h };
    if (h->o.rank) {
        ses_hello mine = ses_hello_of(SES_HELLO_CONTROL, h->o.rank, h->o.size, h->o.control[0].cookie, 0);
        h->link[0].fd = ses_guest_connect(&h->o.control[0], &mine, deadline, e);
        return h->link[0].fd >= 0;
    }
    if (ses_guests_accept(&h->guests, &a.joined, h->o.size - 1, deadline, admit_first, &a, e)) return true;
    return ses_fail(e, SES_EIO, "%d of %d ranks could not reach the control channel of rank 0 within %.0f s",
                    h->o.size - 1 - a.joined, h->o.size, seconds);
}

static bool start_thread(ses_heartbeat *h, ses_err *e)
{
    sigset_t all, old;
    sigfillset(&all); /* signals are for the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&h->thread, NULL, run, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return !code || ses_fail(e, SES_ENOMEM, "cannot start a thread");
}

static void destroy(ses_heartbeat *h)
{
    for (int r = 0; h->link && r < h->o.size; r++) ses_net_close(&h->link[r].fd);
    ses_guests_close(&h->guests);
    ses_net_close(&h->signal_fd);
    pthread_cond_destroy(&h->change);
    pthread_mutex_destroy(&h->lock);
    ses_free(h->link);
    ses_free(h->p);
    ses_free(h);
}

static double interval_of(double timeout)
{
    double interval = timeout / 6;
    return interval > 2 ? 2 : interval;
}

ses_heartbeat *ses_heartbeat_open(const ses_heartbeat_options *o, int listener, double seconds, ses_err *e)
{
    size_t n = (size_t)o->size;
    pthread_condattr_t clock;
    ses_heartbeat *h = ses_alloc(sizeof *h, e);
    if (!h) {
        ses_net_close(&listener);
        return NULL;
    }
    h->o = *o;
    h->interval = interval_of(o->timeout);
    h->guests.listener = listener;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&h->change, &clock);
    pthread_condattr_destroy(&clock);
    h->signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->link = ses_alloc_array(n, sizeof *h->link, e);
    h->p = ses_alloc_array(n + SES_MAX_GUESTS + 2, sizeof *h->p, e);
    for (size_t r = 0; h->link && r < n; r++) h->link[r].fd = -1;
    bool ok = h->link && h->p;
    if (ok && h->signal_fd < 0) ok = ses_fail(e, SES_EIO, "eventfd: %s", strerror(errno));
    ok = ok && connect_all(h, seconds, e);
    double now = ses_seconds();
    for (size_t r = 0; ok && r < n; r++) {
        h->link[r].heard = h->link[r].moved = now;
        h->link[r].state.update = -1;
    }
    if (ok && start_thread(h, e)) return h;
    destroy(h);
    return NULL;
}

/* ---- callers ---- */

static void wake(ses_heartbeat *h) { eventfd_write(h->signal_fd, 1); }

void ses_heartbeat_suspect(ses_heartbeat *h, int rank, const ses_err *why)
{
    if (rank < 0) {
        ses_heartbeat_abort(h, why, false);
        return;
    }
    pthread_mutex_lock(&h->lock);
    h->has_suspect = true;
    h->suspect = rank;
    h->suspect_why = *why;
    pthread_mutex_unlock(&h->lock);
    wake(h);
}

void ses_heartbeat_abort(ses_heartbeat *h, const ses_err *why, bool is_complete)
{
    pthread_mutex_lock(&h->lock);
    h->has_abort = true;
    h->abort = *why;
    h->abort_is_complete = is_complete;
    pthread_mutex_unlock(&h->lock);
    wake(h);
}

bool ses_heartbeat_failure(ses_heartbeat *h, double seconds, ses_err *out)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    pthread_mutex_lock(&h->lock);
    while (seconds > 0 && !h->has_failed)
        if (pthread_cond_timedwait(&h->change, &h->lock, &until)) break;
    bool failed = h->has_failed;
    if (failed && out) *out = h->failure;
    pthread_mutex_unlock(&h->lock);
    return failed;
}

bool ses_heartbeat_is_reporter(ses_heartbeat *h)
{
    pthread_mutex_lock(&h->lock);
    bool is = h->reporter == h->o.rank;
    pthread_mutex_unlock(&h->lock);
    return is;
}

bool ses_heartbeat_leave(ses_heartbeat *h)
{
    pthread_mutex_lock(&h->lock);
    h->is_leaving = true;
    pthread_mutex_unlock(&h->lock);
    wake(h);
    pthread_mutex_lock(&h->lock);
    while (!h->all_left && !h->has_failed) pthread_cond_wait(&h->change, &h->lock);
    bool ok = h->all_left;
    pthread_mutex_unlock(&h->lock);
    return ok;
}

void ses_heartbeat_free(ses_heartbeat *h)
{
    if (!h) return;
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_mutex_unlock(&h->lock);
    wake(h);
    pthread_join(h->thread, NULL);
    destroy(h);
}
