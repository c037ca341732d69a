/* Joining over TCP: the ranks meet at rank 0 and connect to each other. */
#ifndef SES_COMM_TCP_JOIN_H
#define SES_COMM_TCP_JOIN_H

#include "launch.h"

/* fd: [size], one connected socket per other rank, -1 for the own. On failure the caller closes the
 * connections made so far. */
bool ses_tcp_join(const ses_launch *l, int *fd, double seconds, ses_err *e);

#endif
