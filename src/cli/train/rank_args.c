/* Ranks of a training command: see rank_args.h. */
#define _DEFAULT_SOURCE
#include "rank_args.h"

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "cli/ui/term.h"
#include "comm/comm_impl.h"
#include "comm/launch.h"
#include "train/ranks.h"
#include "train_monitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        ses_rank_args, transport, "transport", "auto", "auto|none|mpi|tcp",
        "how the ranks that mpirun, srun or torchrun started exchange data; none: ignore the launcher",
        .of_call = true),
    SES_OPT_REAL(ses_rank_args, timeout, "rank-timeout", "30", 1, 86400,
                 "a rank that is silent for so long is lost: the others end", .value = "SECONDS",
                 .of_call = true),
};
const ses_opt_table ses_rank_options = { opt, SES_LEN(opt), "ranks" };

ses_comm *ses_rank_args_join(const ses_rank_args *a, ses_err *e)
{
    static const char *const transport[] = { "auto", "none", "mpi", "tcp" }; /* in the option's order */
    return ses_comm_open(&(ses_comm_options){ .transport = transport[a->transport], .timeout = a->timeout },
                         e);
}

bool ses_rank_args_set(ses_comm *c, ses_training_options *r, bool *notice, ses_err *e)
{
    *notice = !r->lanes && ses_comm_size(c) > 1;
    r->comm = c;
    if (!ses_ranks_set_lanes(r, e)) return false;
    *notice = *notice && r->lanes == ses_comm_size(c);
    return true;
}

void ses_rank_args_notify(const ses_training_options *r)
{
    fprintf(stderr,
            "%" PRId64 " lanes, one per rank; --lanes %" PRId64 " gives the same result with fewer ranks\n",
            r->lanes, r->lanes);
}

bool ses_rank_is_other(void)
{
    ses_launch l;
    return ses_launch_read(&l, NULL, NULL, NULL, NULL) && l.rank > 0;
}

int ses_rank_threads(const ses_comm *c, const ses_compute_args *a)
{
    int ranks = 0, cores = ses_cpu_count();
    for (int r = 0; r < ses_comm_size(c); r++)
        ranks += !strcmp(ses_comm_host(c, r), ses_comm_host(c, ses_comm_rank(c)));
    bool bound = cores < (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (a->threads > 0 || ranks <= 1 || bound) return ses_compute_threads(a);
    return cores > ranks ? cores / ranks : 1;
}

ses_device_options ses_rank_device_options(const ses_comm *c, const ses_compute_args *a)
{
    ses_device_options o = ses_compute_device_options(a);
    if (ses_comm_size(c) > 1) o.threads = ses_rank_threads(c, a);
    return o;
}

const char *ses_rank_device(const ses_comm *c, const char *device, char buf[32])
{
    int local = ses_comm_local_rank(c);
    if (ses_comm_size(c) == 1 || local < 0 || strcmp(device, "cuda")) return device;
    snprintf(buf, 32, "cuda:%d", local);
    return buf;
}

bool ses_rank_args_open(ses_comm *c, ses_device *dev, bool quiet, ses_err *e)
{
    if (!ses_comm_all_ok(c, dev != NULL, e) || !ses_comm_attach_device(c, dev, e)) return false;
    const char *notice = ses_comm_device_notice(c);
    if (*notice && !quiet && !ses_comm_rank(c)) fprintf(stderr, "%s\n", notice);
    return true;
}

/* All ranks exit with the code of a signal that one of them received. */
static bool share_signal(ses_comm *c, ses_err *e)
{
    int n = ses_comm_size(c), mine = ses_train_monitor_signal();
    int *all = ses_alloc_array((size_t)n, sizeof *all, e);
    bool ok = all && ses_comm_allgather_equal(c, &mine, sizeof mine, all, e);
    for (int r = 0; ok && !mine && r < n; r++) mine = all[r];
    if (ok) ses_train_monitor_set_signal(mine);
    ses_free(all);
    return ok;
}

bool ses_rank_args_leave(ses_comm *c, bool ok, ses_err *e)
{
    if (ses_comm_size(c) > 1) {
        bool stopped = !ok && e->code == SES_OK; /* by a signal: all ranks return so */
        if (ok || stopped) ok = share_signal(c, e) && ok;
        if (e->code) {
            ses_comm_abort(c, e);
            if (ses_comm_should_report(c)) {
                fputs("sesame: ", stderr);
                ses_put_escaped(stderr, e->msg);
                putc('\n', stderr);
            }
            ses_train_monitor_set_signal(0);
            ses_err_clear(e);
        }
    }
    ses_comm_free(c);
    return ok;
}
