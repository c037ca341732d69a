/* Connections that arrive at a listening socket and have not introduced themselves yet. Strangers are
 * dropped: a hello has a fixed size, must be complete after a few seconds, and there is a limit on guests. */
#ifndef SES_COMM_GUESTS_H
#define SES_COMM_GUESTS_H

#include "hello.h"

#include <poll.h>

enum { SES_MAX_GUESTS = 64, SES_GUEST_SECONDS = 5 };

typedef struct ses_guest {
    int fd;
    double deadline;
    size_t n;
    unsigned char in[SES_HELLO_BYTES];
} ses_guest;

typedef struct ses_guests {
    int listener;
    int n;
    ses_guest guest[SES_MAX_GUESTS];
} ses_guests;

/* Takes a connection and its hello; owns fd. False ends ses_guests_serve. */
typedef bool ses_guest_fn(void *ctx, int fd, const ses_hello *h, ses_err *e);

/* Fills p with what to poll for; returns the number of entries, at most SES_MAX_GUESTS + 1. */
int ses_guests_poll(const ses_guests *g, struct pollfd *p);
/* Handles the events in these n entries. Calls fn for each complete hello. */
bool ses_guests_serve(ses_guests *g, const struct pollfd *p, int n, ses_guest_fn *fn, void *ctx, ses_err *e);
void ses_guests_close(ses_guests *g); /* the listener too */

/* Accepts `count` ranks: waits and serves until fn has increased *joined to count. False: the deadline has
 * passed (with no error), or fn failed. */
bool ses_guests_accept(ses_guests *g, const int *joined, int count, double deadline, ses_guest_fn *fn,
                       void *ctx, ses_err *e);

/* Connects to one of the addresses in `to`, sends mine and receives the answer, which is of the same kind and
 * cookie, and from the rank of `to`. Tries until the deadline. Returns the socket, or -1. */
int ses_guest_connect(const ses_hello *to, const ses_hello *mine, double deadline, ses_err *e);

#endif
