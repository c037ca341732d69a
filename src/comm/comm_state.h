/* The state of a communicator, shared by the files of this folder. */
#ifndef SES_COMM_COMM_STATE_H
#define SES_COMM_COMM_STATE_H

#include "comm_queue.h"
#include "heartbeat.h"
#include "transport.h"

/* Sent by each rank to all others when it joins. */
typedef struct ses_rank_info {
    char host[SES_HOST_SIZE];
    int64_t pid;
    unsigned char control[SES_HELLO_BYTES]; /* a hello: version, and where its control channel listens */
} ses_rank_info;

typedef struct ses_comm_gpu ses_comm_gpu; /* NCCL: comm_nccl.c */

/* Device memory that waits in host memory: docs of comm_staging.c. */
typedef struct ses_staging ses_staging;

struct ses_comm {
    ses_launch launch;
    const ses_transport *transport; /* NULL: one rank */
    void *link;                     /* state of the transport */
    ses_watch watch;
    ses_rank_info *info;   /* [size] */
    ses_comm_block *block; /* [2 * size]: scratch of collectives */
    void *small;    /* [size] of 16 bytes: values of collectives, so that these cannot run out of memory */
    size_t *offset; /* [size + 1]: the same */
    ses_comm_queue *queue; /* NULL until something is queued */
    ses_staging *staging;  /* queued exchanges of device memory, newest first */
    ses_comm_options options;
    ses_heartbeat *heart; /* NULL while joining */
    ses_hello *control;   /* [size] */
    const char **host;    /* [size] */
    ses_comm_gpu *gpu;    /* NULL: no GPU is attached, or NCCL is missing */
    char notice[400];     /* see ses_comm_device_notice */
    ses_err common;       /* the last error of ses_comm_all_ok: it names its rank */
};

/* One exchange of host memory; every collective ends here. The caller has emptied the queue, or is it. */
bool ses_comm_transfer(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e);
/* Around every transfer: begin fails if the run has failed; end turns an error into the run's. peer: the rank
 * whose fault it is, -1 if the cause is local or unknown. */
bool ses_comm_begin(ses_comm *c, ses_err *e);
bool ses_comm_end(ses_comm *c, bool ok, int peer, const ses_err *error, ses_err *e);
/* The same behind the queued ones. */
bool ses_comm_enqueue(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, ses_err *e);

/* Exchanges device memory through host memory: downloads, exchanges or queues, and uploads. */
bool ses_staging_exchange(ses_comm *c, ses_device *dev, const ses_comm_block *send,
                          const ses_comm_block *recv, bool queued, ses_err *e);
/* Uploads what queued exchanges received (ok), and forgets them. */
void ses_staging_finish(ses_comm *c, bool ok);

/* NCCL. All ranks call open; it leaves c->gpu NULL, with a notice, if a rank has no NCCL or two ranks share a
 * GPU. */
bool ses_comm_gpu_open(ses_comm *c, ses_device *dev, ses_err *e);
bool ses_comm_gpu_has(const ses_comm *c, const ses_device *dev);
bool ses_comm_gpu_exchange(ses_comm *c, const ses_comm_block *send, const ses_comm_block *recv, bool queued,
                           ses_err *e);
bool ses_comm_gpu_flush(ses_comm *c, ses_err *e);
void ses_comm_gpu_close(ses_comm *c, bool failed);
/* Ends queued transfers once the run has failed: they may wait for a lost rank, and no memory of the GPU can
 * be freed while they do. */
void ses_comm_gpu_stop(ses_comm *c);

#endif
