/* Finds rank, number of ranks and meeting point from the environment. */
#include "launch.h"

#include "base/hash.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ports of runs that name none: below the range of outgoing connections. */
enum { FIRST_PORT = 20000, PORTS = 12000 };

typedef struct variables {
    ses_env_fn *get;
    void *ctx;
} variables;

static const char *from_process(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

/* A variable that is set and not empty; NULL: neither. */
static const char *text_of(const variables *v, const char *name)
{
    const char *s = v->get(v->ctx, name);
    return s && *s ? s : NULL;
}

static bool number_of(const variables *v, const char *name, long min, long max, int *out, ses_err *e)
{
    const char *s = text_of(v, name);
    if (!s) return ses_fail(e, SES_EARG, "the variable %s is not set: expected %ld to %ld", name, min, max);
    char *end;
    long x = strtol(s, &end, 10);
    if (*end || s[0] == ' ' || x < min || x > max)
        return ses_fail(e, SES_EARG, "%s=%s: expected %ld to %ld", name, ses_quoted_of(s, strlen(s)).s, min,
                        max);
    *out = (int)x;
    return true;
}

/* Rank and size from two variables. */
static bool ranks_of(ses_launch *l, const variables *v, const char *rank, const char *size, ses_err *e)
{
    return number_of(v, size, 1, SES_MAX_RANKS, &l->size, e) &&
           number_of(v, rank, 0, l->size - 1, &l->rank, e);
}

/* The first of these variables that is set; none: -1. */
static bool local_rank_of(ses_launch *l, const variables *v, const char *name, ses_err *e)
{
    l->local_rank = -1;
    return !text_of(v, name) || number_of(v, name, 0, SES_MAX_RANKS - 1, &l->local_rank, e);
}

/* A number that the ranks of one run share, and other runs most likely do not. */
static uint64_t job_of(const variables *v)
{
    static const char *const names[] = { "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID",
                                         "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid" };
    uint64_t job = 0;
    for (size_t i = 0; i < SES_LEN(names); i++) {
        const char *s = text_of(v, names[i]);
        if (s) job = ses_hash((ses_hash_key){ job, i }, s, strlen(s));
    }
    return job;
}

static bool set_host(ses_launch *l, const char *name, const char *host, ses_err *e)
{
    if (strlen(host) >= sizeof l->host)
        return ses_fail(e, SES_EARG, "%s: longer than %zu bytes", name, sizeof l->host - 1);
    memcpy(l->host, host, strlen(host) + 1);
    return true;
}

/* The agent of torchrun itself listens on MASTER_PORT, unless a variable denies it. */
static bool agent_has_port(const variables *v)
{
    const char *agent = text_of(v, "TORCHELASTIC_USE_AGENT_STORE");
    return agent ? !strcmp(agent, "True") : text_of(v, "TORCHELASTIC_RUN_ID") != NULL;
}

/* The address of rank 0: MASTER_ADDR and MASTER_PORT, else the given host (NULL: none is known) and a port
 * made of the job's number. */
static bool meeting_point(ses_launch *l, const variables *v, const char *host, ses_err *e)
{
    const char *address = text_of(v, "MASTER_ADDR");
    if (!address && !host)
        return ses_fail(e, SES_EARG, "the variable MASTER_ADDR is not set: expected the host of rank 0");
    if (!set_host(l, "MASTER_ADDR", address ? address : host, e)) return false;
    if (!text_of(v, "MASTER_PORT")) {
        l->port = FIRST_PORT + (int)(l->job % PORTS);
        return true;
    }
    if (!number_of(v, "MASTER_PORT", 1, 65534, &l->port, e)) return false;
    if (agent_has_port(v)) l->port++;
    return true;
}

/* ---- launchers ---- */

static bool read_mpirun(ses_launch *l, const variables *v, ses_err *e)
{
    int local = 0;
    if (!ranks_of(l, v, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", e) ||
        !local_rank_of(l, v, "OMPI_COMM_WORLD_LOCAL_RANK", e))
        return false;
    if (strcmp(l->transport, "tcp")) return true;
    if (text_of(v, "OMPI_COMM_WORLD_LOCAL_SIZE") &&
        !number_of(v, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, SES_MAX_RANKS, &local, e))
        return false;
    return meeting_point(l, v, local == l->size ? "127.0.0.1" : NULL, e);
}

static bool read_torchrun(ses_launch *l, const variables *v, ses_err *e)
{
    if (!ranks_of(l, v, "RANK", "WORLD_SIZE", e) || !local_rank_of(l, v, "LOCAL_RANK", e)) return false;
    if (l->size == 1) return true;
    int port;
    return number_of(v, "MASTER_PORT", 1, 65534, &port, e) && meeting_point(l, v, NULL, e);
}

static bool read_srun(ses_launch *l, const variables *v, ses_err *e)
{
    const char *nodes = text_of(v, "SLURM_STEP_NODELIST");
    char host[SES_HOST_SIZE];
    if (!ranks_of(l, v, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", e) ||
        !local_rank_of(l, v, "SLURM_LOCALID", e))
        return false;
    if (l->size == 1 || !strcmp(l->transport, "mpi")) return true;
    bool found = nodes && ses_nodelist_at(nodes, 0, host, sizeof host);
    if (nodes && !found)
        return ses_fail(e, SES_EARG, "SLURM_STEP_NODELIST=%s: expected a list as in node[01-04,7]",
                        ses_quoted_of(nodes, strlen(nodes)).s);
    return meeting_point(l, v, found ? host : NULL, e);
}

typedef struct launcher {
    const char *name, *transport;
    const char *present[2]; /* it started this process if these variables are set */
    bool (*read)(ses_launch *l, const variables *v, ses_err *e);
} launcher;

/* In this order: mpirun and torchrun may themselves run below srun. */
static const launcher launchers[] = {
    { "mpirun", "mpi", { "OMPI_COMM_WORLD_SIZE" }, read_mpirun },
    { "torchrun", "tcp", { "WORLD_SIZE", "RANK" }, read_torchrun },
    { "srun", "mpi", { "SLURM_STEP_NUM_TASKS", "PMIX_RANK" }, read_srun },
    { "srun", "mpi", { "SLURM_STEP_NUM_TASKS", "PMI_RANK" }, read_srun },
    { "srun", "tcp", { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" }, read_srun },
};

static const launcher *find_launcher(const variables *v)
{
    for (size_t i = 0; i < SES_LEN(launchers); i++) {
        const launcher *x = &launchers[i];
        if (text_of(v, x->present[0]) && (!x->present[1] || text_of(v, x->present[1]))) return x;
    }
    return NULL;
}

bool ses_launch_read(ses_launch *l, const char *transport, ses_env_fn *env, void *ctx, ses_err *e)
{
    const variables v = { env ? env : from_process, ctx };
    bool automatic = !transport || !strcmp(transport, "auto");
    *l = (ses_launch){ .transport = "none", .launcher = "none", .size = 1, .local_rank = -1 };
    if (!automatic && !strcmp(transport, "none")) return true;
    const launcher *x = find_launcher(&v);
    if (!x && automatic) return true;
    if (!x && !strcmp(transport, "mpi")) {
        *l = (ses_launch){ .transport = "mpi", .launcher = "MPI", .local_rank = -1 };
        return true;
    }
    if (!x)
        return ses_fail(e, SES_EARG, "no launcher is found: start the ranks with mpirun, srun or torchrun");
    l->transport = automatic ? x->transport : transport;
    l->launcher = x->name;
    l->job = job_of(&v);
    if (!x->read(l, &v, e)) return ses_wrap(e, "environment of %s", x->name);
    if (l->size == 1) l->transport = "none";
    return true;
}

/* ---- node lists ---- */

typedef struct range {
    const char *first; /* digits */
    int width;
    long from, to;
} range;

/* Reads "01-04" or "7" up to ',' or ']'. */
static const char *read_range(const char *s, range *r)
{
    enum { MAX_DIGITS = 9 };
    r->first = s;
    r->width = (int)strspn(s, "0123456789");
    if (!r->width || r->width > MAX_DIGITS) return NULL;
    r->from = r->to = strtol(s, NULL, 10);
    s += r->width;
    if (*s == '-') {
        int width = (int)strspn(++s, "0123456789");
        if (!width || width > MAX_DIGITS) return NULL;
        r->to = strtol(s, NULL, 10);
        s += width;
    }
    return r->to >= r->from && (*s == ',' || *s == ']') ? s : NULL;
}

/* Host i of "name[ranges]suffix"; the brackets are at `open`. *i is reduced by the hosts before it. Returns
 * the end of the entry; NULL: malformed. */
static const char *bracketed(const char *name, const char *open, int *i, char *host, size_t size, bool *found)
{
    const char *close = strchr(open, ']'), *s = open + 1;
    if (!close) return NULL;
    const char *end = close + 1 + strcspn(close + 1, ",");
    if (memchr(close, '[', (size_t)(end - close))) return NULL; /* two brackets in a name */
    while (s <= close) {
        range r;
        const char *next = read_range(s, &r);
        if (!next) return NULL;
        long n = r.to - r.from + 1;
        if (*i < n) {
            int len = snprintf(host, size, "%.*s%0*ld%.*s", (int)(open - name), name, r.width, r.from + *i,
                               (int)(end - close - 1), close + 1);
            *found = len > 0 && (size_t)len < size;
            return end;
        }
        *i -= (int)n;
        s = next + 1;
    }
    return end;
}

bool ses_nodelist_at(const char *list, int i, char *host, size_t size)
{
    bool found = false;
    while (*list) {
        size_t n = strcspn(list, ",[");
        const char *end = list + n;
        if (*end == '[') {
            end = bracketed(list, end, &i, host, size, &found);
            if (!end) return false;
            if (found) return true;
            if (i < 0) return false;
        } else if (i-- == 0) {
            if (!n || n >= size) return false;
            memcpy(host, list, n);
            host[n] = 0;
            return true;
        }
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

void ses_launch_nccl_host(const char *host, char out[SES_HOST_SIZE])
{
    const char *id = getenv("NCCL_HOSTID");
    char boot[64] = "";
    FILE *f = id && *id ? NULL : fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f && !fgets(boot, sizeof boot, f)) *boot = 0;
    if (f) fclose(f);
    boot[strcspn(boot, "\n")] = 0;
    if (id && *id)
        snprintf(out, SES_HOST_SIZE, "id %.200s", id);
    else
        snprintf(out, SES_HOST_SIZE, "host %.150s %s", host, boot);
}
