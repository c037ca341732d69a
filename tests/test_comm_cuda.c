/* Exchanges of GPU memory: 2 and 4 ranks on one GPU, by NCCL and through host memory. Skipped if there is
 * no GPU or no NCCL.
 *
 * NCCL refuses two ranks on one GPU unless they seem to be on different hosts: each has a NCCL_HOSTID of its
 * own. Processes are started before anything touches CUDA, which does not survive fork. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "comm/nccl_library.h"
#include "comm_fixture.h"
#include "sesame/base.h"

enum { SKIPPED = 77 };

static unsigned char pattern(int from, int to, size_t i, int round)
{
    return (unsigned char)(from * 31 + to * 7 + (int)(i % 251) * 13 + round * 101);
}

/* Sizes that differ between pairs, zero and large ones included. */
static size_t pair_bytes(int from, int to, int round)
{
    static const size_t sizes[] = { 4, 0, 17, 4096, 70001, 0, 9000001, 5 };
    return sizes[(from * 5 + to * 3 + round) % 8];
}

typedef struct buffers {
    ses_comm_block send[RANKS], recv[RANKS];
} buffers;

static void make_buffers(ses_comm *c, ses_device *d, int round, buffers *b)
{
    int me = ses_comm_rank(c);
    ses_err e = { 0 };
    for (int r = 0; r < ses_comm_size(c); r++) {
        size_t n = b->send[r].bytes = pair_bytes(me, r, round);
        b->recv[r].bytes = pair_bytes(r, me, round);
        b->send[r].data = d->mem->alloc(d, n, &e);
        b->recv[r].data = d->mem->alloc(d, b->recv[r].bytes, &e);
        unsigned char *host = malloc(n + 1);
        for (size_t i = 0; i < n; i++) host[i] = pattern(me, r, i, round);
        if (n) d->mem->upload(d, b->send[r].data, host, n);
        if (b->recv[r].bytes) d->mem->zero(d, b->recv[r].data, b->recv[r].bytes);
        free(host);
    }
}

static void check_buffers(ses_comm *c, ses_device *d, int round, buffers *b)
{
    int me = ses_comm_rank(c);
    for (int r = 0; r < ses_comm_size(c); r++) {
        size_t n = b->recv[r].bytes, wrong = 0;
        unsigned char *host = calloc(n + 1, 1);
        if (n) d->mem->download(d, host, b->recv[r].data, n);
        for (size_t i = 0; i < n; i++) wrong += host[i] != pattern(r, me, i, round);
        CHECK_MSG(!wrong, "rank %d from %d, round %d: %zu wrong bytes", me, r, round, wrong);
        free(host);
        d->mem->free(d, b->send[r].data);
        d->mem->free(d, b->recv[r].data);
    }
}

static void run_exchanges(ses_comm *c, ses_device *d)
{
    enum { ROUNDS = 4 };
    ses_err e = { 0 };
    buffers b[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        make_buffers(c, d, round, &b[0]);
        CHECK_MSG(ses_comm_exchange(c, d, b[0].send, b[0].recv, &e), "%s", e.msg);
        check_buffers(c, d, round, &b[0]);
    }
    for (int round = 0; round < ROUNDS; round++) make_buffers(c, d, 10 + round, &b[round]);
    for (int round = 0; round < ROUNDS; round++)
        CHECK_MSG(ses_comm_exchange_begin(c, d, b[round].send, b[round].recv, &e), "%s", e.msg);
    CHECK_MSG(ses_comm_flush(c, &e), "%s", e.msg);
    for (int round = 0; round < ROUNDS; round++) check_buffers(c, d, 10 + round, &b[round]);
}

static void run_allgather(ses_comm *c, ses_device *d)
{
    static const size_t part[] = { 1000003, 0, 64, 7 };
    int n = ses_comm_size(c), me = ses_comm_rank(c);
    size_t offset[RANKS + 1] = { 0 }, wrong = 0;
    ses_err e = { 0 };
    for (int r = 0; r < n; r++) offset[r + 1] = offset[r] + part[r % 4];
    unsigned char *host = calloc(offset[n] + 1, 1), *gpu = d->mem->alloc(d, offset[n], &e);
    for (size_t i = offset[me]; i < offset[me + 1]; i++) host[i] = pattern(me, 0, i, 1);
    d->mem->upload(d, gpu, host, offset[n]);
    CHECK_MSG(ses_comm_allgather(c, d, gpu, offset, &e), "%s", e.msg);
    d->mem->download(d, host, gpu, offset[n]);
    for (int r = 0; r < n; r++)
        for (size_t i = offset[r]; i < offset[r + 1]; i++) wrong += host[i] != pattern(r, 0, i, 1);
    CHECK(!wrong);
    d->mem->free(d, gpu);
    free(host);
}

/* attach: by NCCL, else through host memory. */
static void run_rank(ses_comm *c, void *ctx)
{
    bool attach = *(bool *)ctx;
    ses_err e = { 0 };
    ses_device *d = ses_device_open("cuda", NULL, &e);
    CHECK_MSG(d, "%s", e.msg);
    if (!d) return;
    if (attach) CHECK_MSG(ses_comm_attach_device(c, d, &e), "%s", e.msg);
    CHECK_STR(ses_comm_device_notice(c), "");
    run_exchanges(c, d);
    run_allgather(c, d);
    CHECK(ses_comm_all_ok(c, !d->mem->ok || d->mem->ok(d, &e), &e));
    ses_comm_free(c); /* before its device */
    ses_device_free(d);
    fflush(stdout);
    _exit(check_failed ? 1 : 0);
}

/* One rank is lost while the others wait on the GPU. */
static void run_loss(ses_comm *c, void *ctx)
{
    (void)ctx;
    ses_err e = { 0 };
    buffers b;
    ses_device *d = ses_device_open("cuda", NULL, &e);
    CHECK(d && ses_comm_attach_device(c, d, &e));
    ses_comm_set_update(c, 7);
    make_buffers(c, d, 6, &b);
    ses_comm_barrier(c, &e); /* all are in this update; it may fail already */
    if (ses_comm_rank(c) == 1) _exit(0);
    CHECK(!ses_comm_exchange(c, d, b.send, b.recv, &e));
    CHECK_MSG(strstr(e.msg, "update 7: its process ended without a message"), "%s", e.msg);
    ses_comm_free(c);
    fflush(stdout);
    _exit(check_failed ? 1 : 0);
}

/* Runs fn on each rank, as on hosts of their own. Returns the number of ranks that failed. */
static int gpu_ranks(int size, rank_fn *fn, void *ctx)
{
    pid_t pid[RANKS];
    int failed = 0, status, port = comm_free_port();
    fflush(stdout);
    for (int r = 0; r < size; r++) {
        pid[r] = fork();
        if (pid[r]) continue;
        char id[32];
        snprintf(id, sizeof id, "host-%d", r);
        setenv("NCCL_HOSTID", id, 1);
        setenv("NCCL_SOCKET_IFNAME", "lo", 0);
        alarm(120);
        _exit(comm_rank_main(r, size, port, NULL, fn, ctx));
    }
    for (int r = 0; r < size; r++)
        failed += waitpid(pid[r], &status, 0) != pid[r] || !WIFEXITED(status) || WEXITSTATUS(status);
    return failed;
}

/* In a process of its own: the parent must not touch CUDA. */
static bool has_gpu(void)
{
    int status = 0;
    pid_t pid = fork();
    if (!pid) {
        ses_device *d = ses_device_open("cuda", NULL, NULL);
        ses_device_free(d);
        _exit(d ? 0 : SKIPPED);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(void)
{
    ses_nccl n;
    if (!has_gpu()) {
        SKIP("no GPU");
        return check_report();
    }
    for (int size = 2; size <= 4; size += 2) {
        bool attach = false;
        CHECK_MSG(!gpu_ranks(size, run_rank, &attach), "%d ranks through host memory", size);
        if (!ses_nccl_load(&n, NULL)) {
            SKIP("no NCCL");
            continue;
        }
        attach = true;
        CHECK_MSG(!gpu_ranks(size, run_rank, &attach), "%d ranks by NCCL", size);
        CHECK_MSG(!gpu_ranks(size, run_loss, NULL), "%d ranks by NCCL, one is lost", size);
    }
    return check_report();
}
