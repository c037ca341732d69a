/* Communicators: launch variables, node lists, and collectives of forked ranks over TCP on this machine. */
#define _DEFAULT_SOURCE
#include "check.h"
#include "comm/launch.h"
#include "comm_cases.h"

/* ---- launchers ---- */

typedef struct environment {
    const char *pair[24]; /* name, value, ..., NULL */
} environment;

static const char *value_of(void *ctx, const char *name)
{
    const environment *v = ctx;
    for (int i = 0; v->pair[i]; i += 2)
        if (!strcmp(v->pair[i], name)) return v->pair[i + 1];
    return NULL;
}

static void check_launch(const environment *v, const char *transport, const char *expected)
{
    char got[SES_HOST_SIZE + 200];
    ses_launch l;
    ses_err e = { 0 };
    if (ses_launch_read(&l, transport, value_of, (void *)v, &e))
        snprintf(got, sizeof got, "%s %s %d/%d local %d at %s:%d", l.launcher, l.transport, l.rank, l.size,
                 l.local_rank, l.host, l.port);
    else
        snprintf(got, sizeof got, "%.400s", e.msg);
    CHECK_STR(got, expected);
}

#define ENV(...) (&(const environment){ { __VA_ARGS__, NULL } })
#define OMPI(rank, size) "OMPI_COMM_WORLD_RANK", rank, "OMPI_COMM_WORLD_SIZE", size
#define TORCH(rank, size) "RANK", rank, "WORLD_SIZE", size, "MASTER_ADDR", "h", "MASTER_PORT", "29500"
#define SLURM(rank, size) \
    "SLURM_PROCID", rank, "SLURM_STEP_NUM_TASKS", size, "SLURM_JOB_ID", "17", "SLURM_STEP_ID", "3"

static void test_launchers(void)
{
    check_launch(ENV("HOME", "/"), NULL, "none none 0/1 local -1 at :0");
    check_launch(ENV(OMPI("1", "4"), "OMPI_COMM_WORLD_LOCAL_RANK", "1"), NULL,
                 "mpirun mpi 1/4 local 1 at :0");
    check_launch(ENV(OMPI("0", "1")), NULL, "mpirun none 0/1 local -1 at :0");
    check_launch(ENV(OMPI("1", "4")), "none", "none none 0/1 local -1 at :0");
    check_launch(ENV(OMPI("4", "4")), NULL, "environment of mpirun: OMPI_COMM_WORLD_RANK=4: expected 0 to 3");
    check_launch(ENV("OMPI_COMM_WORLD_SIZE", "4"), NULL,
                 "environment of mpirun: the variable OMPI_COMM_WORLD_RANK is not set: expected 0 to 3");
    check_launch(ENV(OMPI("1", "4"), "OMPI_COMM_WORLD_LOCAL_SIZE", "4", "MASTER_PORT", "900"), "tcp",
                 "mpirun tcp 1/4 local -1 at 127.0.0.1:900");
    check_launch(ENV(OMPI("1", "4"), "OMPI_COMM_WORLD_LOCAL_SIZE", "2"), "tcp",
                 "environment of mpirun: the variable MASTER_ADDR is not set: expected the host of rank 0");

    check_launch(ENV(TORCH("2", "3"), "LOCAL_RANK", "0"), NULL, "torchrun tcp 2/3 local 0 at h:29500");
    check_launch(ENV(TORCH("2", "3"), "TORCHELASTIC_RUN_ID", "x"), NULL,
                 "torchrun tcp 2/3 local -1 at h:29501");
    check_launch(ENV(TORCH("2", "3"), "TORCHELASTIC_USE_AGENT_STORE", "True"), "auto",
                 "torchrun tcp 2/3 local -1 at h:29501");
    check_launch(ENV(TORCH("2", "3"), "TORCHELASTIC_RUN_ID", "x", "TORCHELASTIC_USE_AGENT_STORE", "False"),
                 NULL, "torchrun tcp 2/3 local -1 at h:29500");
    check_launch(ENV("RANK", "0", "WORLD_SIZE", "1"), NULL, "torchrun none 0/1 local -1 at :0");
    check_launch(ENV("WORLD_SIZE", "4"), NULL, "none none 0/1 local -1 at :0");
    check_launch(ENV("RANK", "0", "WORLD_SIZE", "two"), NULL,
                 "environment of torchrun: WORLD_SIZE=two: expected 1 to 65536");
    check_launch(ENV("RANK", "-1", "WORLD_SIZE", "2"), NULL,
                 "environment of torchrun: RANK=-1: expected 0 to 1");
    check_launch(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "70000"), NULL,
                 "environment of torchrun: MASTER_PORT=70000: expected 1 to 65534");
    check_launch(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_PORT", "7000"), NULL,
                 "environment of torchrun: the variable MASTER_ADDR is not set: expected the host of rank 0");
}

static void test_slurm(void)
{
    /* a batch script without srun */
    check_launch(ENV("SLURM_JOB_ID", "17", "SLURM_PROCID", "0", "SLURM_NTASKS", "8"), NULL,
                 "none none 0/1 local -1 at :0");
    check_launch(ENV(SLURM("3", "8"), "SLURM_LOCALID", "1", "SLURM_STEP_NODELIST", "node[07-09,11]",
                     "MASTER_PORT", "4000"),
                 NULL, "srun tcp 3/8 local 1 at node07:4000");
    check_launch(ENV(SLURM("3", "8"), "PMIX_RANK", "3"), NULL, "srun mpi 3/8 local -1 at :0");
    check_launch(ENV(SLURM("3", "8"), "PMI_RANK", "3"), NULL, "srun mpi 3/8 local -1 at :0");
    check_launch(ENV(SLURM("3", "8"), "SLURM_STEP_NODELIST", "node[07-"), NULL,
                 "environment of srun: SLURM_STEP_NODELIST=node[07-: expected a list as in node[01-04,7]");
    check_launch(ENV(SLURM("0", "1")), NULL, "srun none 0/1 local -1 at :0");
    check_launch(ENV("HOME", "/"), "tcp",
                 "no launcher is found: start the ranks with mpirun, srun or torchrun");
    check_launch(ENV("HOME", "/"), "mpi", "MPI mpi 0/0 local -1 at :0");

    /* the port is that of the job and the step */
    ses_launch a, b;
    environment v = *ENV(SLURM("3", "8"), "SLURM_STEP_NODELIST", "n1"), w = v;
    w.pair[7] = "4";
    CHECK(ses_launch_read(&a, NULL, value_of, &v, NULL) && ses_launch_read(&b, NULL, value_of, &w, NULL));
    CHECK(a.port != b.port && a.port >= 20000 && a.port < 32000 && b.port >= 20000 && b.port < 32000);
}

static void check_node(const char *list, int i, const char *expected)
{
    char host[16] = "";
    bool ok = ses_nodelist_at(list, i, host, sizeof host);
    CHECK_STR(ok ? host : "", expected);
}

static void test_nodelists(void)
{
    check_node("a", 0, "a");
    check_node("a", 1, "");
    check_node("a,b", 1, "b");
    check_node("node[01-04,7],login", 0, "node01");
    check_node("node[01-04,7],login", 3, "node04");
    check_node("node[01-04,7],login", 4, "node7");
    check_node("node[01-04,7],login", 5, "login");
    check_node("node[01-04,7],login", 6, "");
    check_node("x,rack[8-11]-ib,y[2]", 4, "rack11-ib");
    check_node("x,rack[8-11]-ib,y[2]", 5, "y2");
    check_node("n[0099-0101]", 2, "n0101");
    check_node("", 0, "");
    check_node("[1-2]", 0, "1");
    check_node("a[", 0, "");
    check_node("a[1", 0, "");
    check_node("a[]", 0, "");
    check_node("a[1-]", 0, "");
    check_node("a[2-1]", 0, "");
    check_node("a[1-2][3-4]", 0, "");
    check_node("a[9999999999]", 0, "");
    check_node("a[x]", 0, "");
    check_node("a-name-that-is-too-long", 0, "");
    check_node("a-name-that-is-long[1-3]", 0, "");
    check_node("n[0-999999998],m[0-999999998],o[0-999999998],p", 5, "n5");
}

/* ---- ranks ---- */

static void run_rank(ses_comm *c, void *ctx)
{
    CHECK(ses_comm_size(c) == *(int *)ctx);
    CHECK_STR(ses_comm_transport(c), ses_comm_size(c) > 1 ? "tcp" : "none");
    CHECK(ses_comm_local_rank(c) == ses_comm_rank(c));
    run_exchanges(c, NULL);
    run_gathers(c, NULL);
    run_agreement(c);
}

static void test_ranks(void)
{
    for (int n = 1; n <= RANKS; n++) {
        int failed = comm_ranks(n, NULL, run_rank, &n);
        CHECK_MSG(!failed, "%d of %d ranks failed", failed, n);
    }
    run_exchanges(NULL, NULL); /* no communicator: one rank */
    run_gathers(NULL, NULL);
}

int main(void)
{
    test_launchers();
    test_slurm();
    test_nodelists();
    test_ranks();
    return check_report();
}
