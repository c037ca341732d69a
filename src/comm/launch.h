/* The environment of a rank, as mpirun, srun and torchrun set it.
 *
 * The variables are read by the functions of this file alone; docs/SCALE.md lists them. */
#ifndef SES_COMM_LAUNCH_H
#define SES_COMM_LAUNCH_H

#include "sesame/base.h"

enum { SES_HOST_SIZE = 256, SES_MAX_RANKS = 65536 };

typedef struct ses_launch {
    const char *transport;    /* "none", "tcp", "mpi" */
    const char *launcher;     /* "none", "mpirun", "srun", "torchrun"; "MPI": unknown, MPI knows the ranks */
    int rank, size;           /* size 0: MPI knows them */
    int local_rank;           /* among the ranks of this machine; -1: unknown */
    char host[SES_HOST_SIZE]; /* where rank 0 waits for the others (tcp) */
    int port;
    uint64_t job; /* distinguishes runs that use the same port by mistake */
} ses_launch;

/* The value of a variable; NULL: not set. */
typedef const char *ses_env_fn(void *ctx, const char *name);

/* transport: of ses_comm_options. env NULL: the environment of the process. */
bool ses_launch_read(ses_launch *l, const char *transport, ses_env_fn *env, void *ctx, ses_err *e);

/* The machine as NCCL identifies it: the variable NCCL_HOSTID, else the name `host` of the machine and the id
 * of its boot. Only processes of one machine have the same text. */
void ses_launch_nccl_host(const char *host, char out[SES_HOST_SIZE]);

/* Host i (0: the first) of a node list of Slurm, "node[01-04,7],login". False: the list is shorter or
 * malformed, or the name does not fit. */
bool ses_nodelist_at(const char *list, int i, char *host, size_t size);

#endif
