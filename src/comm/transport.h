/* Transports: how the bytes of one exchange move between ranks. One file per transport, one line in
 * transports.def.
 *
 * A transport has one operation, the exchange of blocks between all ranks; everything else is built on it
 * (comm.c). It is used by one thread at a time. */
#ifndef SES_COMM_TRANSPORT_H
#define SES_COMM_TRANSPORT_H

#include "comm_impl.h"
#include "launch.h"

#include <stdatomic.h>

/* Shared by the thread that exchanges and the one that watches the other ranks (heartbeat.h). */
typedef struct ses_watch {
    atomic_bool failed;     /* the run has failed: exchanges end */
    int wake_fd;            /* readable once `failed` is set; -1: none */
    atomic_llong progress;  /* grows with every event that is progress */
    atomic_llong entered;   /* transfers begun */
    atomic_bool is_waiting; /* in a transfer */
    atomic_llong update;    /* ses_comm_set_update; -1: none yet */
} ses_watch;

typedef struct ses_transport {
    const char *name;
    /* Joins the other ranks within `seconds`. Fills l->rank and l->size if the launcher did not give them. */
    void *(*open)(ses_launch *l, double seconds, ses_err *e);
    /* Blocks of the own rank and empty ones are ignored. Returns false with the reason if `failed` of the
     * watch is set, or if a rank cannot be reached: *peer is that rank, -1 if the cause is local. */
    bool (*exchange)(void *self, const ses_comm_block *send, const ses_comm_block *recv, ses_watch *w,
                     int *peer, ses_err *e);
    /* The version of the library it uses; "" if none. Borrowed. */
    const char *(*version)(const void *self);
    /* failed: the ranks are not in step, so nothing may wait for them. */
    void (*close)(void *self, bool failed);
} ses_transport;

#define SES_TRANSPORT(name) extern const ses_transport ses_transport_##name;
#include "transports.def"
#undef SES_TRANSPORT

#endif
