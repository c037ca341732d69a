/* Control channel: which rank is lost, and which error the run ends with. */
#include "heartbeat_state.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

enum {
    SUCCESSORS = 16,  /* the ranks below this one that may decide if rank 0 is lost */
    GRACE_SECONDS = 2 /* before a lost data connection counts, if the rank shows signs of life */
};

static const char ended_text[] = "its process ended without a message (killed, crashed or out of memory)";

/* ---- the error of the run ---- */

static void tell(ses_heartbeat *h, int r)
{
    ses_rank_link *l = &h->link[r];
    if (l->fd < 0 || l->is_connecting || l->was_told) return;
    ses_control_message m = ses_hb_message(h, SES_CONTROL_FAILURE);
    pthread_mutex_lock(&h->lock);
    m.code = h->failure.code;
    m.rank = h->reporter;
    memcpy(m.text, h->failure.msg, sizeof m.text);
    pthread_mutex_unlock(&h->lock);
    ses_link_send(h, r, &m);
    l->was_told = true;
}

/* reporter: the rank that reports it. */
static void end_with(ses_heartbeat *h, const ses_err *error, int reporter)
{
    if (h->phase == SES_HB_ENDED) return;
    h->phase = SES_HB_ENDED;
    pthread_mutex_lock(&h->lock);
    h->failure = *error;
    h->has_failed = true;
    h->reporter = reporter;
    atomic_store(&h->o.watch->failed, true);
    eventfd_write(h->o.watch->wake_fd, 1);
    pthread_cond_broadcast(&h->change);
    pthread_mutex_unlock(&h->lock);
    for (int r = 0; r < h->o.size; r++) tell(h, r);
}

/* The update of rank r: that of its last sign of life, or of this rank, which cannot be ahead of it by more
 * than one. */
static int64_t update_of(const ses_heartbeat *h, int r)
{
    int64_t own = atomic_load(&h->o.watch->update), other = h->link[r].state.update;
    return r == h->o.rank || own > other ? own : other;
}

/* This rank decides: rank r is the cause. */
static void decide_for(ses_heartbeat *h, int r, const ses_err *why, int reporter)
{
    ses_err error = *why;
    long long update = (long long)update_of(h, r);
    if (!error.code) error.code = SES_EIO;
    if (update >= 0)
        ses_wrap(&error, "rank %d on %s, update %lld", r, h->o.host[r], update);
    else
        ses_wrap(&error, "rank %d on %s", r, h->o.host[r]);
    end_with(h, &error, reporter);
}

static void decide(ses_heartbeat *h, int r, const ses_err *why) { decide_for(h, r, why, h->o.rank); }

/* Rank r, which may be this one, does not answer: the lowest of the others reports. */
static void decide_text(ses_heartbeat *h, int r, const char *text)
{
    ses_err why = { 0 };
    ses_fail(&why, SES_EIO, "%s", text);
    decide_for(h, r, &why, r != h->o.rank ? h->o.rank : !h->o.rank);
}

/* ---- loss of rank 0 ---- */

static bool has_lower_link(const ses_heartbeat *h)
{
    for (int r = 1; r < h->o.rank; r++)
        if (h->link[r].fd >= 0) return true;
    return false;
}

static void lose_rank_0(ses_heartbeat *h, const char *text)
{
    if (h->phase != SES_HB_NORMAL) return;
    h->phase = SES_HB_SUCCESSION;
    h->succession_end = ses_seconds() + 2 * h->o.timeout + SES_GUEST_SECONDS;
    ses_err_clear(&h->loss_of_0);
    ses_fail(&h->loss_of_0, SES_EIO, "%s", text);
    for (int r = 1; r < h->o.rank && r <= SUCCESSORS; r++)
        if (h->link[r].fd < 0) ses_link_connect(h, r);
    if (!has_lower_link(h)) decide(h, 0, &h->loss_of_0);
}

void ses_hb_link_lost(ses_heartbeat *h, int r)
{
    bool left = h->link[r].left;
    ses_link_close(h, r);
    if (h->phase == SES_HB_ENDED || left) return;
    if (!h->o.rank) {
        decide_text(h, r, ended_text);
    } else if (!r) {
        pthread_mutex_lock(&h->lock);
        left = h->all_left;
        pthread_mutex_unlock(&h->lock);
        if (!left) lose_rank_0(h, ended_text);
    } else if (h->phase == SES_HB_SUCCESSION && !has_lower_link(h)) {
        decide(h, 0, &h->loss_of_0);
    }
}

/* ---- messages ---- */

static void suspect(ses_heartbeat *h, int r, const ses_err *why)
{
    if (h->suspicion.is_set || r < 0 || r >= h->o.size || r == h->o.rank) return;
    double grace = h->o.timeout < GRACE_SECONDS ? h->o.timeout : GRACE_SECONDS;
    h->suspicion = (ses_suspicion){ true, r, ses_seconds() + grace, *why };
}

/* Rank r reports an error of its own. */
static void handle_abort(ses_heartbeat *h, int r, const ses_control_message *m)
{
    ses_err why = { 0 };
    ses_fail(&why, m->code ? m->code : SES_EIO, "%s", m->text);
    h->link[r].state.update = m->update;
    if (m->is_complete)
        end_with(h, &why, h->o.rank);
    else
        decide(h, r, &why);
}

/* Rank r lost another rank. If that is this one, which is well, the cause is taken to be at r. */
static void handle_suspect(ses_heartbeat *h, int r, const ses_control_message *m)
{
    ses_err why = { 0 };
    bool is_self = m->rank == h->o.rank;
    ses_fail(&why, SES_EIO, "its connection to rank %d failed: %s", is_self ? h->o.rank : r, m->text);
    suspect(h, is_self ? r : m->rank, &why);
}

static void handle_failure(ses_heartbeat *h, int r, const ses_control_message *m)
{
    ses_err error = { 0 };
    ses_fail(&error, m->code ? m->code : SES_EIO, "%s", m->text);
    h->link[r].was_told = true;
    end_with(h, &error, m->rank);
    ses_link_close(h, r); /* shows the sender that the error has arrived */
}

void ses_hb_handle(ses_heartbeat *h, int r, const ses_control_message *m)
{
    ses_rank_link *l = &h->link[r];
    l->heard = ses_seconds();
    if (m->kind == SES_CONTROL_BEAT || m->kind == SES_CONTROL_LEAVE) {
        if (m->progress != l->state.progress || m->entered != l->state.entered) l->moved = l->heard;
        l->state = *m;
    }
    switch (m->kind) {
    case SES_CONTROL_BEAT: break;
    case SES_CONTROL_LEAVE: l->left = true; break;
    case SES_CONTROL_ABORT:
        if (!h->o.rank) handle_abort(h, r, m);
        break;
    case SES_CONTROL_SUSPECT:
        if (!h->o.rank) handle_suspect(h, r, m);
        break;
    case SES_CONTROL_FAILURE: handle_failure(h, r, m); break;
    case SES_CONTROL_ALL_LEFT:
        pthread_mutex_lock(&h->lock);
        h->all_left = true;
        pthread_cond_broadcast(&h->change);
        pthread_mutex_unlock(&h->lock);
        break;
    }
    if (h->phase == SES_HB_ENDED) tell(h, r);
}

/* ---- requests of the callers ---- */

static void request_abort(ses_heartbeat *h, const ses_err *why, bool is_complete)
{
    if (h->phase == SES_HB_ENDED) return;
    if (!h->o.rank || h->link[0].fd < 0) { /* rank 0 is lost: its loss is not the first error */
        if (is_complete)
            end_with(h, why, h->o.rank);
        else
            decide(h, h->o.rank, why);
        return;
    }
    ses_control_message m = ses_hb_message(h, SES_CONTROL_ABORT);
    m.code = why->code;
    m.is_complete = is_complete;
    memcpy(m.text, why->msg, sizeof m.text);
    ses_link_send(h, 0, &m);
}

static void request_suspect(ses_heartbeat *h, int r, const ses_err *why)
{
    if (h->phase == SES_HB_ENDED) return;
    if (!h->o.rank) {
        ses_err error = { 0 };
        ses_fail(&error, why->code, "its connection to rank 0 failed: %s", why->msg);
        suspect(h, r, &error);
    } else if (h->link[0].fd >= 0) {
        ses_control_message m = ses_hb_message(h, SES_CONTROL_SUSPECT);
        m.rank = r;
        memcpy(m.text, why->msg, sizeof m.text);
        ses_link_send(h, 0, &m);
    }
}

static void send_leave(ses_heartbeat *h)
{
    h->sent_leave = true;
    if (!h->o.rank || h->link[0].fd < 0) return;
    ses_control_message m = ses_hb_message(h, SES_CONTROL_LEAVE);
    ses_link_send(h, 0, &m);
}

void ses_hb_requests(ses_heartbeat *h)
{
    ses_err abort, why;
    pthread_mutex_lock(&h->lock);
    bool has_abort = h->has_abort, complete = h->abort_is_complete, has_suspect = h->has_suspect;
    bool leaves = h->is_leaving && !h->sent_leave;
    int rank = h->suspect;
    abort = h->abort;
    why = h->suspect_why;
    h->has_abort = h->has_suspect = false;
    pthread_mutex_unlock(&h->lock);
    if (has_suspect) request_suspect(h, rank, &why);
    if (has_abort) request_abort(h, &abort, complete);
    if (leaves) send_leave(h);
}

/* ---- checks ---- */

/* Rank 0: all ranks have finished. */
static void check_leaving(ses_heartbeat *h)
{
    bool all = h->sent_leave;
    for (int r = 1; r < h->o.size; r++) all = all && h->link[r].left;
    pthread_mutex_lock(&h->lock);
    all = all && !h->all_left;
    if (all) {
        h->all_left = true;
        pthread_cond_broadcast(&h->change);
    }
    pthread_mutex_unlock(&h->lock);
    if (!all) return;
    ses_control_message m = ses_hb_message(h, SES_CONTROL_ALL_LEFT);
    for (int r = 1; r < h->o.size; r++)
        if (h->link[r].fd >= 0) ses_link_send(h, r, &m);
}

/* Rank 0: a rank has finished while another one waits for a transfer with it. */
static void check_left_behind(ses_heartbeat *h)
{
    for (int r = 0; r < h->o.size; r++)
        for (int other = 0; h->link[r].left && other < h->o.size; other++)
            if (h->link[other].state.is_waiting && h->link[other].state.entered > h->link[r].state.entered) {
                decide_text(h, r, "it ended before the other ranks");
                return;
            }
}

/* Whether a has done less than b: fewer transfers, or as many and it does not wait. */
static bool is_behind(const ses_rank_link *a, const ses_rank_link *b)
{
    if (a->state.entered != b->state.entered) return a->state.entered < b->state.entered;
    return !(a->state.is_waiting || a->left) && (b->state.is_waiting || b->left);
}

/* Rank 0: a rank waits for too long; the one that has done the least is the cause. */
static void check_stall(ses_heartbeat *h, double now)
{
    double limit = h->o.stall_timeout;
    int slowest = 0;
    bool waits = false;
    for (int r = 0; r < h->o.size; r++) {
        const ses_rank_link *l = &h->link[r];
        waits = waits || ((l->state.is_waiting || l->left) && now - l->moved > limit);
        if (is_behind(l, &h->link[slowest])) slowest = r;
    }
    const ses_rank_link *l = &h->link[slowest];
    if (!waits || now - l->moved <= limit) return;
    char text[160];
    snprintf(text, sizeof text,
             l->state.is_waiting ? "its transfer did not move for %.0f s"
                                 : "it made no progress for %.0f s while other ranks waited",
             limit);
    decide_text(h, slowest, text);
}

/* The state of rank 0 itself, where the rules look for it. */
static void watch_self(ses_heartbeat *h, double now)
{
    ses_control_message m = ses_hb_message(h, SES_CONTROL_BEAT);
    ses_rank_link *l = &h->link[h->o.rank];
    if (m.progress != l->state.progress || m.entered != l->state.entered) l->moved = now;
    l->state = m;
    l->left = h->sent_leave;
}

static void check_silence(ses_heartbeat *h, double now)
{
    char text[160];
    snprintf(text, sizeof text,
             "no sign of life for %.3g s: the process or its machine hangs, or the network is down",
             h->o.timeout);
    for (int r = 0; r < h->o.size; r++) {
        const ses_rank_link *l = &h->link[r];
        if (r == h->o.rank || l->fd < 0 || l->is_connecting || l->left || now - l->heard <= h->o.timeout)
            continue;
        if (!h->o.rank) {
            decide_text(h, r, text);
            ses_link_close(h, r);
            return;
        }
        if (!r) lose_rank_0(h, text);
    }
}

/* Ranks below this one that hang as well do not decide. */
static void check_succession(ses_heartbeat *h, double now)
{
    double limit = 3 * h->interval > GRACE_SECONDS ? 3 * h->interval : GRACE_SECONDS;
    for (int r = 1; r < h->o.rank; r++) {
        const ses_rank_link *l = &h->link[r];
        if (l->fd < 0) continue;
        if (l->is_connecting && now > l->deadline)
            ses_link_retry(h, r);
        else if (!l->is_connecting && now - l->heard > limit)
            ses_link_close(h, r);
        if (h->phase == SES_HB_ENDED) return;
    }
    if (!has_lower_link(h) || now > h->succession_end) decide(h, 0, &h->loss_of_0);
}

void ses_hb_check(ses_heartbeat *h, double now)
{
    if (h->phase == SES_HB_ENDED) return;
    /* This process itself was stopped: the others may be well, so they get time to show it. */
    bool stopped = now - h->last_turn > h->o.timeout / 2;
    for (int r = 0; stopped && r < h->o.size; r++) h->link[r].heard = h->link[r].moved = now;
    if (h->phase == SES_HB_SUCCESSION) {
        check_succession(h, now);
        return;
    }
    check_silence(h, now);
    if (h->o.rank || h->phase != SES_HB_NORMAL) return;
    watch_self(h, now);
    if (h->suspicion.is_set && now > h->suspicion.decide_at) decide(h, h->suspicion.rank, &h->suspicion.why);
    check_leaving(h);
    check_left_behind(h);
    check_stall(h, now);
}
