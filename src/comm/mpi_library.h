/* The part of Open MPI that Sesame uses, loaded at run time. Types and constants follow Open MPI's
 * ABI (libmpi.so.40: versions 3 to 5). */
#ifndef SES_COMM_MPI_LIBRARY_H
#define SES_COMM_MPI_LIBRARY_H

#include "sesame/base.h"

enum {
    SES_MPI_SUCCESS = 0,
    SES_MPI_ERR_IN_STATUS = 18,
    SES_MPI_THREAD_SERIALIZED = 2,
    SES_MPI_UNDEFINED = -32766,
    SES_MPI_TEXT = 256 /* MPI_MAX_LIBRARY_VERSION_STRING and MPI_MAX_ERROR_STRING */
};

/* An array of them is passed, so the size matters. */
typedef struct ses_mpi_status {
    int source, tag, error;
    int cancelled;
    size_t count; /* read it with get_count */
} ses_mpi_status;

/* Handles are pointers to objects of the library. */
typedef struct ses_mpi {
    bool is_running; /* initialized: error_string aborts the process before that */
    void *world, *byte, *errors_return;
    int (*init_thread)(int *argc, char ***argv, int required, int *provided);
    int (*initialized)(int *flag);
    int (*finalized)(int *flag);
    int (*finalize)(void);
    int (*comm_rank)(void *comm, int *rank);
    int (*comm_size)(void *comm, int *size);
    int (*comm_set_errhandler)(void *comm, void *handler);
    int (*isend)(const void *data, int n, void *type, int to, int tag, void *comm, void **request);
    int (*irecv)(void *data, int n, void *type, int from, int tag, void *comm, void **request);
    int (*testsome)(int n, void **requests, int *done, int *index, void *statuses);
    int (*get_count)(const void *status, void *type, int *n);
    int (*error_string)(int code, char *text, int *n);
    int (*library_version)(char *text, int *n);
} ses_mpi;

/* The library stays loaded. */
bool ses_mpi_load(ses_mpi *m, ses_err *e);
/* Fails with the name of the call and MPI's text, if code is not SES_MPI_SUCCESS. */
bool ses_mpi_ok(const ses_mpi *m, int code, const char *call, ses_err *e);

#endif
