/* Communicators: joining, and collective operations on top of a transport's exchange. */
#define _GNU_SOURCE /* gethostname */
#include "comm_state.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const ses_transport *const transports[] = {
#define SES_TRANSPORT(name) &ses_transport_##name,
#include "transports.def"
#undef SES_TRANSPORT
};

static const double default_timeout = 30, default_stall = 1800;
enum {
    JOIN_FACTOR = 10,    /* ranks may take this many timeouts to join */
    CAUSE_SECONDS = 1,   /* a library that fails without a cause may have noticed the loss of a rank first */
    SMALL_BYTES = 16,    /* size of a rank's value in all_ok, agree and barrier */
    DECISION_SECONDS = 5 /* for the ranks to agree on the error of the run */
};

static bool find_transport(ses_comm *c, ses_err *e)
{
    const char *name = c->launch.transport;
    if (!strcmp(name, "none")) return true;
    for (size_t i = 0; i < SES_LEN(transports); i++)
        if (!strcmp(name, transports[i]->name)) c->transport = transports[i];
    return c->transport ||
           ses_fail(e, SES_EARG, "unknown transport \"%s\": expected auto, none, tcp or mpi", name);
}

static void fill_info(const ses_comm *c, int port, ses_rank_info *info)
{
    uint64_t cookie = ses_hash(ses_hash_key_new(), "control", 7); /* that of rank 0 counts */
    ses_hello h = ses_hello_of(SES_HELLO_CONTROL, c->launch.rank, c->launch.size, cookie, port);
    *info = (ses_rank_info){ .pid = getpid() };
    if (gethostname(info->host, sizeof info->host - 1) || !*info->host)
        snprintf(info->host, sizeof info->host, "unknown");
    ses_hello_write(&h, info->control);
}

/* Reads the records of all ranks; the versions are equal. */
static bool read_info(ses_comm *c, ses_err *e)
{
    for (int r = 0; r < c->launch.size; r++) {
        c->info[r].host[SES_HOST_SIZE - 1] = 0;
        c->host[r] = c->info[r].host;
        if (!ses_hello_read(&c->control[r], c->info[r].control) || c->control[r].rank != r)
            return ses_fail(e, SES_EFORMAT,
                            "rank %d on %s sent an invalid record: use the same build everywhere", r,
                            c->host[r]);
        if (!ses_hello_check_version(&c->control[r], c->host[r], e)) return false;
    }
    return true;
}

/* Tells the other ranks about this one. */
static bool introduce(ses_comm *c, int port, ses_err *e)
{
    ses_rank_info mine;
    size_t n = (size_t)c->launch.size;
    if (!(c->info = ses_alloc_array(n, sizeof *c->info, e)) ||
        !(c->host = ses_alloc_array(n, sizeof *c->host, e)) ||
        !(c->control = ses_alloc_array(n, sizeof *c->control, e)) ||
        !(c->block = ses_alloc_array(2 * n, sizeof *c->block, e)) ||
        !(c->small = ses_alloc_array(n, SMALL_BYTES, e)) ||
        !(c->offset = ses_alloc_array(n + 1, sizeof *c->offset, e)))
        return false;
    fill_info(c, port, &mine);
    return ses_comm_allgather_equal(c, &mine, sizeof mine, c->info, e) && read_info(c, e);
}

/* Connects the ranks of a transport, and their control channel. */
static bool join(ses_comm *c, ses_err *e)
{
    int port = 0, listener = -1;
    double seconds = JOIN_FACTOR * c->options.timeout;
    if (!c->transport) return introduce(c, 0, e);
    c->link = c->transport->open(&c->launch, seconds, e);
    if (!c->link) return false;
    c->watch.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->watch.wake_fd < 0) return ses_fail(e, SES_EIO, "eventfd: %s", strerror(errno));
    listener = ses_net_listen(0, &port, e);
    if (listener < 0 || !introduce(c, port, e)) {
        ses_net_close(&listener);
        return false;
    }
    ses_heartbeat_options o = { .rank = c->launch.rank,
                                .size = c->launch.size,
                                .control = c->control,
                                .host = c->host,
                                .watch = &c->watch,
                                .timeout = c->options.timeout,
                                .stall_timeout = c->options.stall_timeout };
    c->heart = ses_heartbeat_open(&o, listener, seconds, e);
    return c->heart != NULL;
}

ses_comm *ses_comm_open(const ses_comm_options *o, ses_err *e)
{
    ses_comm *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    if (o) c->options = *o;
    if (!c->options.timeout) c->options.timeout = default_timeout;
    if (!c->options.stall_timeout) c->options.stall_timeout = default_stall;
    c->watch.wake_fd = -1;
    atomic_store(&c->watch.update, -1);
    bool ok = ses_launch_read(&c->launch, c->options.transport, NULL, NULL, e) && find_transport(c, e);
    c->options.transport = c->transport ? c->transport->name : "none";
    if (ok && join(c, e)) return c;
    if (ok && c->transport) ses_wrap(e, "joining the other ranks by %s", c->transport->name);
    if (!c->heart) atomic_store(&c->watch.failed, true);
    ses_comm_free(c);
    return NULL;
}

void ses_comm_free(ses_comm *c)
{
    if (!c) return;
    ses_comm_queue_free(c->queue);
    ses_staging_finish(c, false);
    ses_comm_gpu_close(c, atomic_load(&c->watch.failed));
    bool ok = !atomic_load(&c->watch.failed) && (!c->heart || ses_heartbeat_leave(c->heart));
    ses_heartbeat_free(c->heart);
    if (c->link) c->transport->close(c->link, !ok);
    ses_net_close(&c->watch.wake_fd);
    ses_free(c->info);
    ses_free(c->host);
    ses_free(c->control);
    ses_free(c->block);
    ses_free(c->small);
    ses_free(c->offset);
    ses_free(c);
}

int ses_comm_rank(const ses_comm *c) { return c ? c->launch.rank : 0; }
int ses_comm_size(const ses_comm *c) { return c ? c->launch.size : 1; }
int ses_comm_local_rank(const ses_comm *c) { return c ? c->launch.local_rank : -1; }
const char *ses_comm_transport(const ses_comm *c) { return c ? c->options.transport : "none"; }

const char *ses_comm_host(const ses_comm *c, int rank)
{
    return c && rank >= 0 && rank < c->launch.size ? c->info[rank].host : "localhost";
}

/* ---- exchanges ---- */

static void name_rank(const ses_comm *c, int rank, int64_t update, ses_err *e);

/* The transfer with `peer` failed: all ranks end with one error. */
static void end_run(ses_comm *c, int peer, const ses_err *why, ses_err *e)
{
    ses_err error = *why;
    if (!c->heart) {
        if (peer >= 0 && c->info && *c->info[peer].host) name_rank(c, peer, -1, &error);
    } else if (peer >= 0 || !ses_heartbeat_failure(c->heart, CAUSE_SECONDS, &error)) {
        ses_heartbeat_suspect(c->heart, peer, why);
        if (!ses_heartbeat_failure(c->heart, c->options.timeout + DECISION_SECONDS, &error)) {
            name_rank(c, peer < 0 ? c->launch.rank : peer, -1, &error);
            ses_heartbeat_abort(c->heart, &error, true);
            ses_heartbeat_failure(c->heart, 1, &error);
        }
    }
    atomic_store(&c->watch.failed, true);
    ses_comm_gpu_stop(c);
    ses_err_clear(e);
    ses_fail(e, error.code, "%s", error.msg);
}

/* The error of the run, once it has failed. */
static bool run_error(ses_comm *c, ses_err *e)
{
    ses_err error = { 0 };
    ses_comm_gpu_stop(c);
    ses_err_clear(e);
    if (!c->heart || !ses_heartbeat_failure(c->heart, 0, &error))
        ses_fail(&error, SES_EIO, "the run has failed");
    return ses_fail(e, error.code, "%s", error.msg);
}

/* A collective that failed on this rank alone, out of memory for example, ends the run: the others wait. */
static bool share_failure(ses_comm *c, bool ok, ses_err *e)
{
    if (ok || atomic_load(&c->watch.failed)) return ok;
    ses_err why = { .msg = "out of memory", .code = SES_ENOMEM };
    if (e && e->code) why = *e;
    end_run(c, -1, &why, e);
    return false;
}

bool ses_comm_begin(ses_comm *c, ses_err *e)
{
    ses_watch *w = &c->watch;
    if (atomic_load(&w->failed)) return run_error(c, e);
    atomic_fetch_add(&w->entered, 1);
    atomic_fetch_add(&w->progress, 1);
    atomic_store(&w->is_waiting, true);
    return true;
}

bool ses_comm_end(ses_comm *c, bool ok, int peer, const ses_err *error, ses_err *e)
{
    atomic_store(&c->watch.is_waiting, false);
    if (ok) return true;
    if (atomic_load(&c->watch.failed)) return run_error(c, e);
    end_run(c, peer, error, e);
    return false;
}

bool ses_comm_transfer(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e)
{
    int peer = -1;
    ses_err error = { 0 };
    if (!c->link) return true;
    if (!ses_comm_begin(c, e)) return false;
    bool ok = c->transport->exchange(c->link, send, recv, &c->watch, &peer, &error);
    return ses_comm_end(c, ok, peer, &error, e);
}

static bool run_queued(void *ctx, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e)
{
    return ses_comm_transfer(ctx, send, recv, e);
}

bool ses_comm_enqueue(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e)
{
    if (!c->queue) c->queue = ses_comm_queue_new(c->launch.size, run_queued, c, e);
    return c->queue && ses_comm_queue_add(c->queue, send, recv, e);
}

/* Host memory, behind the queued exchanges. */
static bool transfer_now(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e)
{
    return (!c->queue || ses_comm_queue_wait(c->queue, e)) && ses_comm_transfer(c, send, recv, e);
}

static void copy_own(ses_device *dev, const ses_comm_block *send, const ses_comm_block *recv)
{
    if (!send->bytes || send->data == recv->data) return;
    if (dev)
        dev->mem->move(dev, recv->data, send->data, send->bytes);
    else
        memmove(recv->data, send->data, send->bytes);
}

bool ses_comm_exchange(ses_comm *c, ses_device *dev, const ses_comm_block *send, const ses_comm_block *recv,
                       ses_err *e)
{
    int rank = ses_comm_rank(c);
    copy_own(dev, &send[rank], &recv[rank]);
    if (!c || !c->link) return true;
    if (!dev || dev->is_host) return transfer_now(c, send, recv, e);
    if (c->queue && !ses_comm_queue_wait(c->queue, e)) return false;
    if (ses_comm_gpu_has(c, dev)) return ses_comm_gpu_exchange(c, send, recv, false, e);
    return share_failure(c, ses_staging_exchange(c, dev, send, recv, false, e), e);
}

bool ses_comm_exchange_begin(ses_comm *c, ses_device *dev, const ses_comm_block *send,
                             const ses_comm_block *recv, ses_err *e)
{
    int rank = ses_comm_rank(c);
    copy_own(dev, &send[rank], &recv[rank]);
    if (!c || !c->link) return true;
    if (!dev || dev->is_host) return share_failure(c, ses_comm_enqueue(c, send, recv, e), e);
    if (ses_comm_gpu_has(c, dev)) return ses_comm_gpu_exchange(c, send, recv, true, e);
    return share_failure(c, ses_staging_exchange(c, dev, send, recv, true, e), e);
}

bool ses_comm_flush(ses_comm *c, ses_err *e)
{
    if (!c || !c->link) return true;
    bool ok = !c->queue || ses_comm_queue_wait(c->queue, e);
    ses_staging_finish(c, ok);
    return ok && (!c->gpu || ses_comm_gpu_flush(c, e));
}

/* ---- collectives ---- */

bool ses_comm_allgather(ses_comm *c, ses_device *dev, void *data, const size_t *offset, ses_err *e)
{
    if (!c || !c->link) return true;
    int n = c->launch.size, rank = c->launch.rank;
    ses_comm_block *send = c->block, *recv = c->block + n;
    for (int r = 0; r < n; r++) {
        send[r] = (ses_comm_block){ (char *)data + offset[rank], offset[rank + 1] - offset[rank] };
        recv[r] = (ses_comm_block){ (char *)data + offset[r], offset[r + 1] - offset[r] };
    }
    return ses_comm_exchange(c, dev, send, recv, e);
}

bool ses_comm_allgather_equal(ses_comm *c, const void *mine, size_t bytes, void *all, ses_err *e)
{
    int n = ses_comm_size(c), rank = ses_comm_rank(c);
    char *to = all;
    if (bytes && mine != to + (size_t)rank * bytes) memmove(to + (size_t)rank * bytes, mine, bytes);
    if (n == 1) return true;
    for (int r = 0; r < n; r++) {
        c->block[r] = (ses_comm_block){ to + (size_t)rank * bytes, bytes };
        c->block[n + r] = (ses_comm_block){ to + (size_t)r * bytes, bytes };
    }
    return transfer_now(c, c->block, c->block + n, e);
}

/* The root sends all of it to every rank. */
static bool bcast_direct(ses_comm *c, void *data, size_t bytes, int root, ses_err *e)
{
    int n = c->launch.size;
    for (int r = 0; r < n; r++) {
        c->block[r] = (ses_comm_block){ data, c->launch.rank == root ? bytes : 0 };
        c->block[n + r] = (ses_comm_block){ data, r == root && c->launch.rank != root ? bytes : 0 };
    }
    if (c->launch.rank == root) c->block[root].bytes = 0;
    return transfer_now(c, c->block, c->block + n, e);
}

/* The root sends a part to every rank, then all ranks send their parts to all: the root's link carries twice
 * the data, not once per rank. */
static bool bcast_parts(ses_comm *c, char *data, size_t bytes, int root, ses_err *e)
{
    size_t n = (size_t)c->launch.size, part = (bytes + n - 1) / n, rank = (size_t)c->launch.rank;
    size_t *offset = c->offset;
    for (size_t r = 0; r <= n; r++) offset[r] = r * part < bytes ? r * part : bytes;
    for (size_t r = 0; r < n; r++) {
        bool from = rank == (size_t)root && r != rank, to = r == (size_t)root && r != rank;
        c->block[r] = (ses_comm_block){ data + offset[r], from ? offset[r + 1] - offset[r] : 0 };
        c->block[n + r] = (ses_comm_block){ data + offset[rank], to ? offset[rank + 1] - offset[rank] : 0 };
    }
    return transfer_now(c, c->block, c->block + n, e) && ses_comm_allgather(c, NULL, data, offset, e);
}

bool ses_comm_bcast(ses_comm *c, void *data, size_t bytes, int root, ses_err *e)
{
    enum { DIRECT = 64 << 10 };
    if (!c || !c->link || !bytes) return true;
    return bytes <= DIRECT ? bcast_direct(c, data, bytes, root, e) : bcast_parts(c, data, bytes, root, e);
}

bool ses_comm_barrier(ses_comm *c, ses_err *e)
{
    if (!c || !c->link) return true;
    char *all = c->small;
    return ses_comm_allgather_equal(c, all + c->launch.rank, 1, all, e);
}

/* ---- agreement ---- */

typedef struct verdict {
    int32_t failed, code;
    uint64_t hash;
} verdict;

static uint64_t text_hash(const char *s) { return ses_hash((ses_hash_key){ 1, 2 }, s, strlen(s)); }

/* "rank 2 on node7, update 57: ", before a message. */
static void name_rank(const ses_comm *c, int rank, int64_t update, ses_err *e)
{
    if (update < 0)
        ses_wrap(e, "rank %d on %s", rank, c->info[rank].host);
    else
        ses_wrap(e, "rank %d on %s, update %lld", rank, c->info[rank].host, (long long)update);
}

/* All ranks take the error of rank `from`. An error that all ranks have is not one of a rank. */
static bool take_error(ses_comm *c, int from, bool common, ses_err *e)
{
    ses_err error = { 0 };
    if (from == c->launch.rank) {
        error = e && e->code ? *e : (ses_err){ .msg = "failed", .code = SES_EIO };
        if (!common) name_rank(c, from, atomic_load(&c->watch.update), &error);
    }
    if (!ses_comm_bcast(c, &error, sizeof error, from, e)) return false;
    error.msg[sizeof error.msg - 1] = 0;
    c->common = error;
    ses_err_clear(e);
    return ses_fail(e, error.code ? error.code : SES_EIO, "%s", error.msg);
}

bool ses_comm_all_ok(ses_comm *c, bool ok, ses_err *e)
{
    if (!c || !c->link) return ok;
    int n = c->launch.size, first = -1;
    verdict mine = { !ok, !ok && e ? e->code : 0, !ok && e ? text_hash(e->msg) : 0 };
    verdict *all = c->small;
    ses_err error = { 0 };
    bool done = ses_comm_allgather_equal(c, &mine, sizeof mine, all, &error), common = true;
    for (int r = n; r-- > 0;) {
        if (all[r].failed) first = r;
        common = common && all[r].failed && all[r].hash == all[0].hash;
    }
    if (!done) {
        ses_err_clear(e);
        return ses_fail(e, error.code, "%s", error.msg);
    }
    return first < 0 || take_error(c, first, common, e);
}

enum { AGREE_TEXT = 160 };

static bool report_difference(ses_comm *c, const char *what, const char *text, ses_err *e)
{
    char mine[AGREE_TEXT] = { 0 };
    size_t n = (size_t)c->launch.size;
    char *all = ses_alloc_array(n, AGREE_TEXT, e);
    if (!all) return share_failure(c, false, e);
    snprintf(mine, sizeof mine, "%s", text);
    bool ok = ses_comm_allgather_equal(c, mine, sizeof mine, all, e);
    size_t other = 1;
    while (ok && other < n - 1 && !memcmp(all, all + other * AGREE_TEXT, AGREE_TEXT)) other++;
    if (ok) {
        all[AGREE_TEXT - 1] = all[other * AGREE_TEXT + AGREE_TEXT - 1] = 0;
        ses_fail(e, SES_EARG, "%s differs: rank 0 on %s has \"%s\", rank %zu on %s has \"%s\"", what,
                 c->info[0].host, all, other, c->info[other].host, all + other * AGREE_TEXT);
    }
    ses_free(all);
    return false;
}

bool ses_comm_agree(ses_comm *c, const char *what, const char *text, ses_err *e)
{
    if (!c || !c->link) return true;
    size_t n = (size_t)c->launch.size;
    uint64_t mine = text_hash(text), *all = c->small;
    bool equal = true;
    bool ok = ses_comm_allgather_equal(c, &mine, sizeof mine, all, e);
    for (size_t r = 0; r < n; r++) equal = equal && all[r] == all[0];
    return ok && (equal || report_difference(c, what, text, e));
}

/* ---- state ---- */

bool ses_comm_attach_device(ses_comm *c, ses_device *dev, ses_err *e)
{
    if (!c || !c->link || !dev || dev->is_host || ses_comm_gpu_has(c, dev)) return true;
    ses_comm_gpu_close(c, false); /* it may have another device */
    return ses_comm_gpu_open(c, dev, e);
}

const char *ses_comm_device_notice(const ses_comm *c) { return c ? c->notice : ""; }
const char *ses_comm_library(const ses_comm *c) { return c && c->link ? c->transport->version(c->link) : ""; }

void ses_comm_set_update(ses_comm *c, int64_t update)
{
    if (!c) return;
    atomic_store(&c->watch.update, update);
    atomic_fetch_add(&c->watch.progress, 1);
}

void ses_comm_abort(ses_comm *c, const ses_err *why)
{
    if (!c || !c->heart) return;
    bool complete = *c->common.msg && strstr(why->msg, c->common.msg);
    ses_heartbeat_abort(c->heart, why, complete);
    ses_heartbeat_failure(c->heart, DECISION_SECONDS, NULL);
    atomic_store(&c->watch.failed, true);
    if (c->queue) ses_comm_queue_wait(c->queue, NULL); /* the caller frees the memory of queued transfers */
    ses_comm_gpu_stop(c);
}

bool ses_comm_should_report(const ses_comm *c)
{
    if (!c || !c->heart || !ses_heartbeat_failure(c->heart, 0, NULL)) return !ses_comm_rank(c);
    return ses_heartbeat_is_reporter(c->heart);
}
