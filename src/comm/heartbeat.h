/* The control channel: a thread of each rank that exchanges signs of life with rank 0 and spreads failures.
 *
 * Rank 0 watches the others and they watch rank 0. A rank is lost if its connection ends, if nothing comes
 * from it for `timeout`, or if it makes no progress for `stall_timeout` while others wait. Rank 0 then
 * decides on one error and sends it to all. If rank 0 itself is lost, the lowest rank that is left decides:
 * the others connect to the ranks below them and wait for the error.
 *
 * Once the error is known, `failed` of the watch is set and its wake_fd becomes readable. */
#ifndef SES_COMM_HEARTBEAT_H
#define SES_COMM_HEARTBEAT_H

#include "guests.h"
#include "transport.h"

typedef struct ses_heartbeat ses_heartbeat;

typedef struct ses_heartbeat_options {
    int rank, size;
    const ses_hello *control; /* [size]: where each rank listens, and the cookie of the run; borrowed */
    const char *const *host;  /* [size]: names; borrowed */
    ses_watch *watch;         /* borrowed */
    double timeout, stall_timeout;
} ses_heartbeat_options;

/* Connects the ranks within `seconds` and starts the thread. Takes the listener, which o->control[rank]
 * describes. */
ses_heartbeat *ses_heartbeat_open(const ses_heartbeat_options *o, int listener, double seconds, ses_err *e);

/* A transfer with a rank failed (rank -1: the cause is local). Returns at once. */
void ses_heartbeat_suspect(ses_heartbeat *h, int rank, const ses_err *why);
/* This rank ends. is_complete: the text names rank and host already. Returns at once. */
void ses_heartbeat_abort(ses_heartbeat *h, const ses_err *why, bool is_complete);
/* Waits for the error of the run, at most `seconds`; false: there is none. */
bool ses_heartbeat_failure(ses_heartbeat *h, double seconds, ses_err *out);
bool ses_heartbeat_is_reporter(ses_heartbeat *h); /* after a failure */
/* This rank has finished: waits until all have. False: the run failed instead. */
bool ses_heartbeat_leave(ses_heartbeat *h);
/* After a failure, waits a moment until the others have the error. h may be NULL. */
void ses_heartbeat_free(ses_heartbeat *h);

#endif
