/* Exchanges of device memory without a GPU: a simulated device on host memory and a simulated NCCL
 * (fake_nccl.c). test_comm_cuda.c runs the same on a GPU. */
#define _DEFAULT_SOURCE
#include "base/clock.h"
#include "check.h"
#include "comm/comm_state.h"
#include "comm_cases.h"

#include <dlfcn.h>

static int (*nccl_busy)(void);

static void *open_stream(ses_device *d, ses_err *e)
{
    (void)d, (void)e;
    return malloc(1);
}
static void close_stream(ses_device *d, void *stream)
{
    (void)d;
    free(stream);
}
static void *stream_handle(void *stream) { return stream; }
static void order_streams(ses_device *d, void *stream) { (void)d, (void)stream; }
static bool stream_busy(ses_device *d, void *stream)
{
    (void)d, (void)stream;
    return nccl_busy();
}
static bool no_error(ses_device *d, ses_err *e)
{
    (void)d, (void)e;
    return true;
}

static const ses_device_streams streams = { .open = open_stream,
                                            .close = close_stream,
                                            .handle = stream_handle,
                                            .after_device = order_streams,
                                            .before_device = order_streams,
                                            .is_busy = stream_busy };

typedef struct simulated {
    ses_device device;
    ses_device_memory memory;
} simulated;

static bool open_simulated(simulated *s)
{
    ses_device *cpu = ses_device_open("cpu", NULL, NULL);
    if (!cpu) return false;
    s->device = *cpu;
    s->memory = *cpu->mem;
    s->memory.streams = &streams;
    s->memory.ok = no_error;
    s->device.mem = &s->memory;
    s->device.is_host = false;
    return true;
}

/* Memory of the device as NCCL exchanges it, or through host memory. */
static void run_rank(ses_comm *c, void *ctx)
{
    static simulated s; /* outlives the communicator */
    ses_err e = { 0 };
    CHECK(open_simulated(&s));
    if (*(bool *)ctx) CHECK_MSG(ses_comm_attach_device(c, &s.device, &e), "%s", e.msg);
    const void *gpu = c->gpu;
    if (gpu) CHECK(ses_comm_attach_device(c, &s.device, &e) && c->gpu == gpu); /* by a second caller */
    CHECK_STR(ses_comm_device_notice(c), "");
    run_exchanges(c, &s.device);
    run_gathers(c, &s.device);
    run_agreement(c);
}

/* ctx: aborting NCCL hangs. */
static void run_loss(ses_comm *c, void *ctx)
{
    static simulated s; /* outlives the communicator */
    ses_err e = { 0 };
    bool hangs = *(bool *)ctx;
    if (hangs) setenv("FAKE_NCCL_HANG", "1", 1);
    CHECK(open_simulated(&s) && ses_comm_attach_device(c, &s.device, &e));
    blocks b = make_blocks(c, 1); /* rank 1 would send to both */
    ses_comm_set_update(c, 7);
    ses_comm_barrier(c, &e); /* all are in this update; it may fail already */
    if (ses_comm_rank(c) == 1) _exit(0);
    double begin = ses_seconds();
    CHECK(!ses_comm_exchange(c, &s.device, b.send, b.recv, &e));
    CHECK_MSG(strstr(e.msg, "rank 1 on ") && strstr(e.msg, ", update 7: its process ended"), "%s", e.msg);
    CHECK(ses_seconds() - begin < (hangs ? 20 : 10));
    /* memory of a GPU could not be freed now; with hangs: unless the loss was known before the exchange */
    CHECK(hangs || !nccl_busy());
    ses_comm_free(c);
    CHECK(ses_seconds() - begin < 30);
    fflush(stdout);
    _exit(check_failed ? 1 : 0);
}

static void run_versions(ses_comm *c, void *ctx)
{
    static simulated s; /* outlives the communicator */
    ses_err e = { 0 };
    char expected[300];
    CHECK(open_simulated(&s));
    if (ses_comm_rank(c) == 1) setenv("FAKE_NCCL_VERSION", ctx, 1);
    bool old = !strcmp(ctx, "21600");
    CHECK(ses_comm_attach_device(c, &s.device, &e) == old);
    snprintf(expected, sizeof expected,
             old ? "rank 1 on %s has no NCCL (libnccl.so.2, version 2.18 or later): GPU memory is exchanged "
                   "through host memory"
                 : "the version of NCCL differs: rank 0 on %s has \"22809\", rank 1 on %s has \"22100\"",
             ses_comm_host(c, 0), ses_comm_host(c, 1));
    CHECK_STR(old ? ses_comm_device_notice(c) : e.msg, expected);
    run_exchanges(c, &s.device);
}

/* Ranks and their GPUs: pci[r] of rank r; host: as of which NCCL_HOSTID, NULL: none. */
typedef struct sharing {
    const char *pci[RANKS], *host[RANKS];
    const char *pair; /* the ranks that share a GPU; NULL: all exchange by NCCL */
} sharing;

/* Two ranks on one GPU, which NCCL would refuse, exchange through host memory; the notice names them. */
static void run_sharing(ses_comm *c, void *ctx)
{
    static simulated s; /* outlives the communicator */
    const sharing *x = ctx;
    ses_err e = { 0 };
    char expected[400] = "";
    int rank = ses_comm_rank(c);
    CHECK(open_simulated(&s));
    snprintf(s.device.pci_bus_id, sizeof s.device.pci_bus_id, "%s", x->pci[rank]);
    if (x->host[rank]) setenv("NCCL_HOSTID", x->host[rank], 1);
    CHECK_MSG(ses_comm_attach_device(c, &s.device, &e), "%s", e.msg);
    if (x->pair)
        snprintf(expected, sizeof expected,
                 "ranks %s share the GPU 0000:65:00.0 of %s, which NCCL does not support: GPU memory is "
                 "exchanged through host memory, which is slower. Start one rank per GPU with --device cuda",
                 x->pair, ses_comm_host(c, 0));
    CHECK_STR(ses_comm_device_notice(c), expected);
    CHECK(!c->gpu == (x->pair != NULL));
    run_exchanges(c, &s.device);
    run_gathers(c, &s.device);
}

static void test_sharing(void)
{
    static const sharing cases[] = {
        { .pci = { "0000:65:00.0", "0000:65:00.0" }, .pair = "0 and 1" },
        { .pci = { "0000:17:00.0", "0000:65:00.0", "0000:65:00.0" }, .pair = "1 and 2" },
        { .pci = { "0000:65:00.0", "0000:17:00.0", "0000:b3:00.0" } },
        { .pci = { "unknown", "unknown" } },
        /* ranks that NCCL takes for different machines */
        { .pci = { "0000:65:00.0", "0000:65:00.0" }, .host = { "a", "b" } },
        { .pci = { "0000:65:00.0", "0000:65:00.0", "0000:65:00.0" },
          .host = { "a", "b", "a" },
          .pair = "0 and 2" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        int n = cases[i].pci[2] ? 3 : 2;
        sharing x = cases[i];
        CHECK_MSG(!comm_ranks(n, NULL, run_sharing, &x), "case %zu", i);
    }
}

int main(void)
{
    char dir[] = "/tmp/sesame-nccl-XXXXXX", remove_all[64];
    bool nccl;
    void *library = dlopen(FAKE_NCCL, RTLD_NOW);
    CHECK_MSG(library, "%s", dlerror());
    void *symbol = library ? dlsym(library, "fake_nccl_busy") : NULL;
    CHECK(symbol && mkdtemp(dir));
    if (!symbol) return check_report();
    memcpy(&nccl_busy, &symbol, sizeof symbol);
    setenv("FAKE_NCCL_DIR", dir, 1);
    for (int n = 2; n <= 4; n++) {
        nccl = false;
        CHECK_MSG(!comm_ranks(n, NULL, run_rank, &nccl), "%d ranks through host memory", n);
        nccl = true;
        CHECK_MSG(!comm_ranks(n, NULL, run_rank, &nccl), "%d ranks by NCCL", n);
    }
    CHECK(!comm_ranks(2, NULL, run_versions, (void *)"21600"));
    CHECK(!comm_ranks(2, NULL, run_versions, (void *)"22100"));
    test_sharing();
    for (int hangs = 0; hangs < 2; hangs++) CHECK(!comm_ranks(3, NULL, run_loss, &(bool){ hangs }));
    snprintf(remove_all, sizeof remove_all, "rm -rf %s", dir);
    CHECK(!system(remove_all));
    return check_report();
}
