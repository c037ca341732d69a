/* A wrapper of libmpi whose n-th call fails on one rank: FAIL_CALL and FAIL_RANK. test_comm_mpi.sh builds it
 * and puts it before the real library in the search path. It forwards to the profiling interface (PMPI). */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MPI_ERR_OTHER = 16 };

static atomic_long calls;

/* Whether this call fails. */
static int fails(void)
{
    const char *call = getenv("FAIL_CALL"), *rank = getenv("FAIL_RANK"),
               *mine = getenv("OMPI_COMM_WORLD_RANK");
    if (!call || !rank || !mine || strcmp(rank, mine)) return 0;
    return atomic_fetch_add(&calls, 1) + 1 == strtol(call, NULL, 10);
}

#define WRAP(name, parameters, arguments) \
    int P##name parameters;               \
    int name parameters;                  \
    int name parameters { return fails() ? MPI_ERR_OTHER : P##name arguments; }

WRAP(MPI_Init_thread, (int *c, char ***v, int required, int *provided), (c, v, required, provided))
WRAP(MPI_Finalize, (void), ())
WRAP(MPI_Initialized, (int *flag), (flag))
WRAP(MPI_Finalized, (int *flag), (flag))
WRAP(MPI_Comm_rank, (void *comm, int *rank), (comm, rank))
WRAP(MPI_Comm_size, (void *comm, int *size), (comm, size))
WRAP(MPI_Comm_set_errhandler, (void *comm, void *handler), (comm, handler))
WRAP(MPI_Isend, (const void *p, int n, void *type, int to, int tag, void *comm, void **request),
     (p, n, type, to, tag, comm, request))
WRAP(MPI_Irecv, (void *p, int n, void *type, int from, int tag, void *comm, void **request),
     (p, n, type, from, tag, comm, request))
WRAP(MPI_Testsome, (int n, void **request, int *done, int *index, void *status),
     (n, request, done, index, status))
WRAP(MPI_Get_count, (const void *status, void *type, int *n), (status, type, n))
