/* Ranks of a training command: its options, joining, the one line that a failed job prints.
 *
 *     ses_comm *comm = ses_rank_args_join(&a->ranks, e);
 *     bool ok = comm && ...;
 *     return ses_rank_args_leave(comm, ok, e);
 *
 * The caller owns the communicator until it leaves. One thread. */
#ifndef SES_CLI_RANK_ARGS_H
#define SES_CLI_RANK_ARGS_H

#include "base/opt_table.h"
#include "cli/compute_args.h"
#include "sesame/training.h"

typedef struct ses_rank_args {
    int transport; /* index of the option's choices */
    double timeout;
} ses_rank_args;

extern const ses_opt_table ses_rank_options;

/* Joins the ranks that a launcher started; one rank without a launcher. NULL: failed. */
ses_comm *ses_rank_args_join(const ses_rank_args *a, ses_err *e);

/* Sets r's communicator and lanes. *notice: the lanes follow from the number of ranks. */
bool ses_rank_args_set(ses_comm *c, ses_training_options *r, bool *notice, ses_err *e);
/* "4 lanes, one per rank ...", on stderr. */
void ses_rank_args_notify(const ses_training_options *r);

/* Leaves the job and frees c, which may be NULL. Of several ranks one reports a failure, with the name of the
 * rank: e is then clear, and the result false. After a signal to any rank, all exit with its code. Returns
 * ok. */
bool ses_rank_args_leave(ses_comm *c, bool ok, ses_err *e);

/* Whether the launcher has started this process as a rank other than 0. */
bool ses_rank_is_other(void);

/* Fails on all ranks if dev is NULL on one of them, with e there; attaches it. Unless quiet, rank 0 prints
 * the notice of ses_comm_device_notice on stderr. */
bool ses_rank_args_open(ses_comm *c, ses_device *dev, bool quiet, ses_err *e);

/* Threads of this rank if --threads is not given: the ranks of a machine share its cores, unless the launcher
 * has bound them to cores. */
int ses_rank_threads(const ses_comm *c, const ses_compute_args *a);
ses_device_options ses_rank_device_options(const ses_comm *c, const ses_compute_args *a);

/* The device of this rank: each of several ranks on a machine takes a GPU of its own, unless the name has an
 * index. buf holds the result. */
const char *ses_rank_device(const ses_comm *c, const char *device, char buf[32]);

#endif
