/* Communicators: the processes (ranks) of one distributed training run.
 *
 * Every rank runs the same program with the same settings on the same data; see docs/SCALE.md. A communicator
 * of one rank is the same as none (NULL) everywhere.
 *
 * Ownership: the caller frees the communicator after everything that uses it. Threads: one thread calls it;
 * it has threads of its own for heartbeats and queued transfers. */
#ifndef SESAME_COMM_H
#define SESAME_COMM_H

#include "sesame/base.h"

SES_BEGIN_DECLS

typedef struct ses_comm ses_comm;

typedef struct ses_comm_options {
    /* "auto": from the environment (mpirun, srun, torchrun), "none": one rank, "mpi", "tcp". NULL: auto */
    const char *transport;
    /* Seconds without a heartbeat after which a rank counts as lost; 0: 30. Ranks have ten
     * times as long to join. */
    double timeout;
    /* Seconds that a rank may make no progress while others wait for it, heartbeats or not; 0: 1800. */
    double stall_timeout;
} ses_comm_options;

/* Joins the ranks that a launcher started: blocks until all have joined. No launcher: one rank. Fails
 * with SES_EIO if they do not all join in time, with SES_EUNSUPPORTED if a library is missing. */
ses_comm *ses_comm_open(const ses_comm_options *o, ses_err *e);
void ses_comm_free(ses_comm *c); /* c may be NULL */

int ses_comm_rank(const ses_comm *c); /* 0 for NULL */
int ses_comm_size(const ses_comm *c); /* 1 for NULL */
const char *ses_comm_transport(const ses_comm *c);
const char *ses_comm_host(const ses_comm *c, int rank); /* host name of a rank */

SES_END_DECLS

#endif
