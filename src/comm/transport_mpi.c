/* Transport over Open MPI.
 *
 * Blocks are split into parts of a few megabytes: counts of MPI are ints, and finished parts show that data
 * moves. Waiting ranks sleep between tests, longer the longer nothing happens, since MPI itself would keep a
 * core busy. */
#define _DEFAULT_SOURCE /* nanosleep */
#include "transport.h"

#include "base/alloc.h"
#include "mpi_library.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    PART = 4 << 20,
    WINDOW = 4, /* parts of a rank and direction that are under way at once */
    TAG = 77,
    /* Tests without a result before other threads are let in, and before the first sleep; nanoseconds of the
     * shortest and longest sleep. */
    BUSY_TESTS = 200,
    TESTS = 1000,
    MIN_SLEEP = 20000,
    MAX_SLEEP = 500000
};

/* One direction of the transfer with a rank. */
typedef struct flow {
    char *data;
    size_t bytes, begun, done;
} flow;

/* The request in a slot; slots of a flow are consecutive. */
typedef struct part {
    int flow; /* index into flow[] */
    int bytes;
} part;

typedef struct mpi {
    ses_mpi m;
    int rank, size;
    bool is_owner;  /* this object initialized MPI */
    flow *flow;     /* [2 * size]: sends, then receives */
    void **request; /* [2 * size * WINDOW]; the first `slots` are in use */
    part *part;     /* [slots] */
    int slots;      /* requests in use */
    int *index;     /* [2 * size * WINDOW] */
    ses_mpi_status *status;
    char version[SES_MPI_TEXT];
} mpi;

static void free_mpi(mpi *t)
{
    ses_free(t->flow);
    ses_free(t->request);
    ses_free(t->part);
    ses_free(t->index);
    ses_free(t->status);
    ses_free(t);
}

static void close_mpi(void *self, bool failed)
{
    mpi *t = self;
    if (!t) return;
    if (t->is_owner && !failed) t->m.finalize();
    free_mpi(t);
}

/* Initializes MPI, unless the program has done it. */
static bool start(mpi *t, ses_err *e)
{
    const ses_mpi *m = &t->m;
    int flag = 0, provided = 0;
    if (!ses_mpi_ok(m, m->finalized(&flag), "MPI_Finalized", e)) return false;
    if (flag) return ses_fail(e, SES_EARG, "MPI was finalized in this process and cannot start again");
    if (!ses_mpi_ok(m, m->initialized(&flag), "MPI_Initialized", e)) return false;
    if (!flag) {
        if (!ses_mpi_ok(m, m->init_thread(NULL, NULL, SES_MPI_THREAD_SERIALIZED, &provided),
                        "MPI_Init_thread", e))
            return false;
        t->is_owner = true;
        if (provided < SES_MPI_THREAD_SERIALIZED)
            return ses_fail(e, SES_EUNSUPPORTED,
                            "this build of Open MPI does not support threads (MPI_THREAD_SERIALIZED)");
    }
    t->m.is_running = true;
    return ses_mpi_ok(m, m->comm_set_errhandler(m->world, m->errors_return), "MPI_Comm_set_errhandler", e) &&
           ses_mpi_ok(m, m->comm_rank(m->world, &t->rank), "MPI_Comm_rank", e) &&
           ses_mpi_ok(m, m->comm_size(m->world, &t->size), "MPI_Comm_size", e);
}

static void read_version(mpi *t)
{
    char text[16 * SES_MPI_TEXT] = ""; /* more than any implementation writes */
    int n = 0;
    if (t->m.library_version(text, &n) != SES_MPI_SUCCESS) return;
    text[strcspn(text, ",\n")] = 0; /* "Open MPI v4.1.4, package: ..." */
    snprintf(t->version, sizeof t->version, "%.100s", text);
}

static bool allocate(mpi *t, ses_err *e)
{
    size_t flows = 2 * (size_t)t->size, slots = flows * WINDOW;
    return (t->flow = ses_alloc_array(flows, sizeof *t->flow, e)) &&
           (t->request = ses_alloc_array(slots, sizeof *t->request, e)) &&
           (t->part = ses_alloc_array(slots, sizeof *t->part, e)) &&
           (t->index = ses_alloc_array(slots, sizeof *t->index, e)) &&
           (t->status = ses_alloc_array(slots, sizeof *t->status, e));
}

/* The launcher and MPI see the same ranks. */
static bool check_ranks(const mpi *t, ses_launch *l, ses_err *e)
{
    if (l->size && (t->size != l->size || t->rank != l->rank))
        return ses_fail(
            e, SES_EARG,
            "%s gives rank %d of %d, MPI gives rank %d of %d: the launcher and the MPI library do "
            "not fit (srun: try --mpi=pmix, or the transport tcp)",
            l->launcher, l->rank, l->size, t->rank, t->size);
    l->rank = t->rank;
    l->size = t->size;
    return true;
}

static void *open_mpi(ses_launch *l, double seconds, ses_err *e)
{
    (void)seconds; /* MPI_Init has limits of its own */
    mpi *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    if (ses_mpi_load(&t->m, e) && start(t, e) && check_ranks(t, l, e) && allocate(t, e)) {
        read_version(t);
        return t;
    }
    close_mpi(t, true);
    return NULL;
}

/* ---- exchange ---- */

static int peer_of(const mpi *t, int f) { return f < t->size ? f : f - t->size; }

/* Begins the next part of flow f in a new slot. */
static bool begin_part(mpi *t, int f, ses_err *e)
{
    const ses_mpi *m = &t->m;
    flow *x = &t->flow[f];
    size_t rest = x->bytes - x->begun;
    int n = rest < PART ? (int)rest : PART, peer = peer_of(t, f);
    char *p = x->data + x->begun;
    bool ok = f < t->size ? ses_mpi_ok(m, m->isend(p, n, m->byte, peer, TAG, m->world, &t->request[t->slots]),
                                       "MPI_Isend", e)
                          : ses_mpi_ok(m, m->irecv(p, n, m->byte, peer, TAG, m->world, &t->request[t->slots]),
                                       "MPI_Irecv", e);
    if (!ok) return false;
    t->part[t->slots++] = (part){ f, n };
    x->begun += (size_t)n;
    return true;
}

/* A finished request: its size is the expected one. */
static bool finish_part(mpi *t, const part *p, ses_mpi_status *s, bool has_error, int *peer, ses_err *e)
{
    int n = p->bytes;
    *peer = peer_of(t, p->flow);
    if (has_error && !ses_mpi_ok(&t->m, s->error, "MPI_Testsome", e)) return false;
    if (p->flow >= t->size && !ses_mpi_ok(&t->m, t->m.get_count(s, t->m.byte, &n), "MPI_Get_count", e))
        return false;
    if (n != p->bytes)
        return ses_fail(e, SES_EFORMAT,
                        "sent %d bytes where %d were expected: the ranks do not make the same calls", n,
                        p->bytes);
    t->flow[p->flow].done += (size_t)n;
    *peer = -1;
    return true;
}

/* Tests the requests under way; *finished: the number of requests that are done; they leave the slots. */
static bool test(mpi *t, int *finished, int *peer, ses_err *e)
{
    *finished = 0;
    if (!t->slots) return true;
    int n = 0, code = t->m.testsome(t->slots, t->request, &n, t->index, t->status);
    bool in_status = code == SES_MPI_ERR_IN_STATUS;
    if (!in_status && !ses_mpi_ok(&t->m, code, "MPI_Testsome", e)) return false;
    if (n == SES_MPI_UNDEFINED) return ses_fail(e, SES_EIO, "MPI_Testsome lost the requests");
    for (int i = 0; i < n; i++) {
        part *p = &t->part[t->index[i]];
        if (!finish_part(t, p, &t->status[i], in_status, peer, e)) return false;
        p->flow = -1;
    }
    if (!n) return true;
    int kept = 0;
    for (int i = 0; i < t->slots; i++) {
        if (t->part[i].flow < 0) continue;
        t->part[kept] = t->part[i];
        t->request[kept++] = t->request[i];
    }
    t->slots = kept;
    *finished = n;
    return true;
}

/* Begins parts while the window of their flow has room. *all: nothing is left to begin or to wait for. */
static bool begin_parts(mpi *t, bool *all, int *peer, ses_err *e)
{
    *all = true;
    for (int i = 0; i < 2 * t->size; i++) {
        int f = i < t->size ? t->size + i : i - t->size; /* receives first */
        flow *x = &t->flow[f];
        while (x->begun < x->bytes && x->begun - x->done < (size_t)WINDOW * PART)
            if (!begin_part(t, f, e)) {
                *peer = peer_of(t, f);
                return false;
            }
        *all = *all && x->done == x->bytes;
    }
    return true;
}

static bool exchange(void *self, const ses_comm_block *send, const ses_comm_block *recv, ses_watch *w,
                     int *peer, ses_err *e)
{
    mpi *t = self;
    bool all = false;
    int finished = 1, idle = 0;
    long sleep = MIN_SLEEP;
    *peer = -1;
    t->slots = 0;
    for (int r = 0; r < t->size; r++) {
        size_t mine = r != t->rank;
        t->flow[r] = (flow){ .data = send[r].data, .bytes = mine * send[r].bytes };
        t->flow[t->size + r] = (flow){ .data = recv[r].data, .bytes = mine * recv[r].bytes };
    }
    for (;;) {
        if (finished && !begin_parts(t, &all, peer, e)) return false;
        if (all) return true;
        if (!test(t, &finished, peer, e)) return false;
        if (finished) {
            atomic_fetch_add(&w->progress, 1);
            idle = 0;
            sleep = MIN_SLEEP;
            continue;
        }
        if (atomic_load(&w->failed)) return ses_fail(e, SES_EIO, "the run has failed");
        if (++idle < BUSY_TESTS) continue;
        if (idle < TESTS) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){ 0, sleep }, NULL);
        if (sleep < MAX_SLEEP) sleep += sleep / 4;
    }
}

static const char *version(const void *self) { return ((const mpi *)self)->version; }

const ses_transport ses_transport_mpi = {
    .name = "mpi", .open = open_mpi, .exchange = exchange, .version = version, .close = close_mpi
};
