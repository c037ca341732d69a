/* Exchanges of GPU memory by NCCL, on a stream of their own.
 *
 * An exchange is a group of sends and receives. The host waits for it by polling, so that it notices the loss
 * of a rank: a GPU that waits for data of a lost rank would wait forever. The communicator is non-blocking
 * for the same reason. Aborting it may hang as well (nccl#863, nccl#1013) and runs in a thread that is
 * abandoned after a few seconds. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "comm_state.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "nccl_library.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { END_SECONDS = 5 }; /* for ending the communicator */

struct ses_comm_gpu {
    ses_nccl nccl;
    ses_device *dev;
    void *comm, *stream;
    bool is_stopped, hangs; /* hangs: a thread that ends the communicator still uses this */
};

/* A non-blocking communicator may still be working on an accepted call. */
static bool is_accepted(int result) { return result == SES_NCCL_SUCCESS || result == SES_NCCL_IN_PROGRESS; }

static bool nccl_fail(const ses_comm_gpu *g, int result, const char *call, ses_err *e)
{
    return ses_fail(e, SES_EIO, "%s: %s", call, g->nccl.error_string(result));
}

/* Lets other threads run between two polls. */
static void nap(int *polls)
{
    enum { BUSY_POLLS = 100, NAP_NANOSECONDS = 20000 };
    if (++*polls > BUSY_POLLS) nanosleep(&(struct timespec){ 0, NAP_NANOSECONDS }, NULL);
}

/* Waits until a call that may be in progress is done. */
static bool settle(ses_comm *c, ses_comm_gpu *g, int result, const char *call, ses_err *e)
{
    int polls = 0;
    while (result == SES_NCCL_IN_PROGRESS) {
        if (atomic_load(&c->watch.failed)) return ses_fail(e, SES_EIO, "the run has failed");
        int code = g->nccl.async_error(g->comm, &result);
        if (code != SES_NCCL_SUCCESS) return nccl_fail(g, code, "ncclCommGetAsyncError", e);
        nap(&polls);
    }
    return result == SES_NCCL_SUCCESS || nccl_fail(g, result, call, e);
}

/* Waits until the queued exchanges are done. */
static bool wait_done(ses_comm *c, ses_comm_gpu *g, ses_err *e)
{
    int polls = 0, result = SES_NCCL_SUCCESS;
    while (g->dev->mem->streams->is_busy(g->dev, g->stream)) {
        if (atomic_load(&c->watch.failed)) return ses_fail(e, SES_EIO, "the run has failed");
        int code = g->nccl.async_error(g->comm, &result);
        if (code != SES_NCCL_SUCCESS) return nccl_fail(g, code, "ncclCommGetAsyncError", e);
        if (!is_accepted(result)) return nccl_fail(g, result, "NCCL", e);
        nap(&polls);
    }
    return g->dev->mem->ok(g->dev, e);
}

/* ---- exchange ---- */

static int add_blocks(const ses_comm *c, const ses_comm_gpu *g, const ses_comm_block *send,
                      const ses_comm_block *recv)
{
    void *stream = g->dev->mem->streams->handle(g->stream);
    int result = SES_NCCL_SUCCESS;
    for (int i = 1; i < c->launch.size; i++) {
        int to = (c->launch.rank + i) % c->launch.size;
        int from = (c->launch.rank + c->launch.size - i) % c->launch.size;
        if (is_accepted(result) && send[to].bytes)
            result = g->nccl.send(send[to].data, send[to].bytes, SES_NCCL_INT8, to, g->comm, stream);
        if (is_accepted(result) && recv[from].bytes)
            result = g->nccl.recv(recv[from].data, recv[from].bytes, SES_NCCL_INT8, from, g->comm, stream);
    }
    return result;
}

static bool queue_exchange(ses_comm *c, ses_comm_gpu *g, const ses_comm_block *send,
                           const ses_comm_block *recv, ses_err *e)
{
    g->dev->mem->streams->after_device(g->dev, g->stream);
    int result = g->nccl.group_start();
    if (!is_accepted(result)) return nccl_fail(g, result, "ncclGroupStart", e);
    int added = add_blocks(c, g, send, recv);
    result = g->nccl.group_end();
    if (!is_accepted(added)) return nccl_fail(g, added, "ncclSend or ncclRecv", e);
    return settle(c, g, result, "ncclGroupEnd", e);
}

bool ses_comm_gpu_exchange(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, bool queued,
                           ses_err *e)
{
    ses_comm_gpu *g = c->gpu;
    ses_err error = { 0 };
    if (!ses_comm_begin(c, e)) return false;
    bool ok = queue_exchange(c, g, send, recv, &error);
    if (ok && !queued) {
        ok = wait_done(c, g, &error);
        g->dev->mem->streams->before_device(g->dev, g->stream);
    }
    return ses_comm_end(c, ok, -1, &error, e);
}

bool ses_comm_gpu_flush(ses_comm *c, ses_err *e)
{
    ses_comm_gpu *g = c->gpu;
    ses_err error = { 0 };
    if (!ses_comm_begin(c, e)) return false;
    bool ok = wait_done(c, g, &error);
    g->dev->mem->streams->before_device(g->dev, g->stream);
    return ses_comm_end(c, ok, -1, &error, e);
}

/* ---- opening and closing ---- */

static void *abort_comm(void *ctx)
{
    const ses_comm_gpu *g = ctx;
    g->nccl.abort(g->comm);
    return NULL;
}

/* False: it hangs, and its thread still uses g. */
static bool abort_in_time(ses_comm_gpu *g)
{
    pthread_t thread;
    struct timespec until;
    if (pthread_create(&thread, NULL, abort_comm, g)) return false;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_SECONDS;
    if (!pthread_timedjoin_np(thread, NULL, &until)) return true;
    pthread_detach(thread);
    return false;
}

static void finish_comm(ses_comm_gpu *g)
{
    int polls = 0, result = g->nccl.finalize(g->comm);
    double end = ses_seconds() + END_SECONDS;
    while (result == SES_NCCL_IN_PROGRESS && ses_seconds() < end) {
        if (g->nccl.async_error(g->comm, &result) != SES_NCCL_SUCCESS) break;
        nap(&polls);
    }
    if (result == SES_NCCL_SUCCESS)
        g->nccl.destroy(g->comm);
    else
        g->hangs = !abort_in_time(g);
}

void ses_comm_gpu_stop(ses_comm *c)
{
    ses_comm_gpu *g = c->gpu;
    if (!g || !g->comm || g->is_stopped) return;
    g->is_stopped = true;
    g->hangs = !abort_in_time(g);
}

void ses_comm_gpu_close(ses_comm *c, bool failed)
{
    ses_comm_gpu *g = c->gpu;
    if (!g) return;
    if (failed) ses_comm_gpu_stop(c);
    if (g->comm && !g->is_stopped) finish_comm(g);
    c->gpu = NULL;
    if (g->hangs) return; /* the process ends soon: its memory is not freed */
    if (g->stream) g->dev->mem->streams->close(g->dev, g->stream);
    ses_free(g);
}

static bool connect_gpus(ses_comm *c, ses_comm_gpu *g, ses_err *e)
{
    ses_nccl_id id = { { 0 } };
    ses_nccl_config config = ses_nccl_nonblocking();
    ses_err error = { 0 };
    int result = c->launch.rank ? SES_NCCL_SUCCESS : g->nccl.get_id(&id);
    bool ok = result == SES_NCCL_SUCCESS || nccl_fail(g, result, "ncclGetUniqueId", &error);
    if (ok) g->stream = g->dev->mem->streams->open(g->dev, &error); /* makes the GPU current, too */
    ok = ok && g->stream;
    if (!ses_comm_all_ok(c, ok, &error)) return ses_fail(e, error.code, "%s", error.msg);
    if (!ses_comm_bcast(c, &id, sizeof id, 0, e) || !ses_comm_begin(c, e)) return false;
    result = g->nccl.init(&g->comm, c->launch.size, id, c->launch.rank, &config);
    ok = settle(c, g, result, "ncclCommInitRankConfig", &error);
    return ses_comm_end(c, ok, -1, &error, e);
}

/* Versions of NCCL on all ranks, 0: none. False with a notice if some rank has none. */
static bool versions_equal(ses_comm *c, int mine, bool *all_have, ses_err *e)
{
    int n = c->launch.size;
    int32_t value = mine, *all = ses_alloc_array((size_t)n, sizeof *all, e);
    char text[32];
    if (!all) return false;
    bool ok = ses_comm_allgather_equal(c, &value, sizeof value, all, e);
    *all_have = true;
    for (int r = n; ok && r-- > 0;) {
        if (all[r]) continue;
        *all_have = false;
        snprintf(c->notice, sizeof c->notice,
                 "rank %d on %s has no NCCL (libnccl.so.2, version 2.18 or later): GPU memory is exchanged "
                 "through host memory",
                 r, c->host[r]);
    }
    ses_free(all);
    snprintf(text, sizeof text, "%d", mine);
    return ok && (!*all_have || ses_comm_agree(c, "the version of NCCL", text, e));
}

/* Which GPU a rank uses, and how NCCL names its machine; gpu "": not known. */
typedef struct gpu_place {
    char machine[SES_HOST_SIZE], gpu[32];
} gpu_place;

/* Do two ranks use one GPU? NCCL refuses that ("invalid usage"), and ranks that have a GPU of their own would
 * wait forever. All ranks find the same pair, and have a notice then. */
static bool shares_gpu(ses_comm *c, const ses_device *dev, bool *shared, ses_err *e)
{
    int n = c->launch.size;
    gpu_place mine = { 0 }, *all = ses_alloc_array((size_t)n, sizeof *all, e);
    if (!all) return false;
    ses_launch_nccl_host(c->host[c->launch.rank], mine.machine);
    if (strcmp(dev->pci_bus_id, "unknown")) snprintf(mine.gpu, sizeof mine.gpu, "%s", dev->pci_bus_id);
    bool ok = ses_comm_allgather_equal(c, &mine, sizeof mine, all, e);
    *shared = false;
    for (int r = 1; ok && r < n && !*shared; r++)
        for (int s = 0; s < r && !*shared; s++) {
            *shared = *all[r].gpu && !memcmp(&all[r], &all[s], sizeof *all);
            if (*shared)
                snprintf(
                    c->notice, sizeof c->notice,
                    "ranks %d and %d share the GPU %s of %.100s, which NCCL does not support: GPU memory is "
                    "exchanged through host memory, which is slower. Start one rank per GPU with --device "
                    "cuda",
                    s, r, all[r].gpu, c->host[r]);
        }
    ses_free(all);
    return ok;
}

bool ses_comm_gpu_open(ses_comm *c, ses_device *dev, ses_err *e)
{
    bool all_have = false, shared = false;
    ses_comm_gpu *g = ses_alloc(sizeof *g, e);
    if (!g) return false;
    g->dev = dev;
    bool found = dev->mem->streams && ses_nccl_load(&g->nccl, NULL);
    c->gpu = g;
    bool ok = versions_equal(c, found ? g->nccl.version : 0, &all_have, e);
    ok = ok && (!all_have || shares_gpu(c, dev, &shared, e));
    bool by_nccl = ok && all_have && !shared;
    if (by_nccl) ok = connect_gpus(c, g, e);
    if (!ok || !by_nccl) ses_comm_gpu_close(c, !ok);
    return ok;
}

int ses_comm_nccl_version(const ses_comm *c)
{
    ses_nccl n;
    if (c && c->gpu) return c->gpu->nccl.version;
    return ses_nccl_load(&n, NULL) ? n.version : 0;
}

bool ses_comm_gpu_has(const ses_comm *c, const ses_device *dev) { return c->gpu && c->gpu->dev == dev; }
