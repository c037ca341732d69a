/* Collective operations of a communicator, for the training layers.
 *
 * All ranks make the same calls in the same order. A call that fails on one rank fails on all of them, within
 * the time limits of ses_comm_options: the error names the rank, its host, its update and the reason. After a
 * failure every later call fails with the same error; the run ends and is resumed from its last checkpoint.
 *
 * No operation does arithmetic: the ranks exchange bytes, and the caller adds in a fixed order, so results do
 * not depend on the transport or on the number of ranks.
 *
 * c may be NULL everywhere: one rank. dev: the device whose memory the pointers are in; NULL: host memory. */
#ifndef SES_COMM_COMM_IMPL_H
#define SES_COMM_COMM_IMPL_H

#include "sesame/unstable/comm.h"
#include "tensor/device_impl.h"

/* Bytes to or from one rank. */
typedef struct ses_comm_block {
    void *data;
    size_t bytes; /* 0: none */
} ses_comm_block;

/* Index among the ranks of this machine, to choose a GPU ("cuda:LOCAL"); -1: unknown. */
int ses_comm_local_rank(const ses_comm *c);

/* Sends send[r] to rank r and receives recv[r] from it, for every r (MPI_Alltoallv). The sizes of a pair of
 * ranks agree. The block of the own rank is copied, unless both addresses are equal. Arrays of `size`. */
bool ses_comm_exchange(ses_comm *c, ses_device *dev, const ses_comm_block *send, const ses_comm_block *recv,
                       ses_err *e);

/* The same, queued: returns at once and copies the arrays; the memory they name must not be touched until
 * ses_comm_flush. On a GPU the transfer waits for the work queued so far, and work queued after
 * ses_comm_flush waits for the transfer. */
bool ses_comm_exchange_begin(ses_comm *c, ses_device *dev, const ses_comm_block *send,
                             const ses_comm_block *recv, ses_err *e);
bool ses_comm_flush(ses_comm *c, ses_err *e); /* waits for all queued transfers */

/* Rank r contributes bytes offset[r] .. offset[r + 1] - 1 of data; afterwards all ranks have all of it
 * (MPI_Allgatherv in place). offset: [size + 1]. */
bool ses_comm_allgather(ses_comm *c, ses_device *dev, void *data, const size_t *offset, ses_err *e);

/* Small host values: every rank contributes `bytes` bytes, all receive [size][bytes] in rank order. */
bool ses_comm_allgather_equal(ses_comm *c, const void *mine, size_t bytes, void *all, ses_err *e);

bool ses_comm_bcast(ses_comm *c, void *data, size_t bytes, int root, ses_err *e); /* host memory */
bool ses_comm_barrier(ses_comm *c, ses_err *e);

/* Succeeds on all ranks, or fails on all of them with the error of the lowest rank where ok is false: *e, the
 * local error, is sent to the others. Call it after work that may fail on some ranks only. */
bool ses_comm_all_ok(ses_comm *c, bool ok, ses_err *e);

/* Fails on all ranks if the text differs between them. what: for the error, e.g. "instruction set". */
bool ses_comm_agree(ses_comm *c, const char *what, const char *text, ses_err *e);

/* Attaches a GPU: exchange and allgather of its memory go through NCCL if all ranks have it and each has a
 * GPU of its own, else through host memory. All ranks call it. Does nothing for a CPU, or a GPU that is
 * attached already. The device must outlive the communicator. */
bool ses_comm_attach_device(ses_comm *c, ses_device *dev, ses_err *e);

/* Why GPU memory goes through host memory; "" if it does not, or no GPU is attached. */
const char *ses_comm_device_notice(const ses_comm *c);
int ses_comm_nccl_version(const ses_comm *c); /* 22809: 2.28.9; 0: NCCL is not installed */
/* The version of the transport's library, "Open MPI v4.1.4"; "" if it uses none. */
const char *ses_comm_library(const ses_comm *c);

/* The update that is being computed, for errors and heartbeats. */
void ses_comm_set_update(ses_comm *c, int64_t update);

/* Tells the other ranks why this one ends; their pending and later calls fail. Does not block for long. Safe
 * after another failure, whose error it leaves in place. */
void ses_comm_abort(ses_comm *c, const ses_err *why);

/* Whether this rank reports errors for the whole run: true on one of the ranks that are left, rank 0 unless
 * it is lost. */
bool ses_comm_should_report(const ses_comm *c);

#endif
