/* Sockets of the ranks: addresses, listening, connecting, sending and receiving with a deadline. All sockets
 * are non-blocking. Deadlines are values of ses_seconds. */
#ifndef SES_COMM_NET_H
#define SES_COMM_NET_H

#include "sesame/base.h"

/* IPv6, or IPv4 in its mapped form (::ffff:a.b.c.d). */
typedef struct ses_ip {
    unsigned char byte[16];
} ses_ip;

enum { SES_MAX_IPS = 8 };

/* Listens on all addresses. port 0: any; *bound receives it. Returns the socket, or -1. */
int ses_net_listen(int port, int *bound, ses_err *e);
/* Addresses of this machine, by which others may reach it; loopback comes last. Returns their number. */
int ses_net_local(ses_ip ip[SES_MAX_IPS]);
/* Addresses of a host name. Returns their number, 0 on failure. */
int ses_net_resolve(const char *host, ses_ip ip[SES_MAX_IPS], ses_err *e);
/* The address at the other end. */
ses_ip ses_net_peer(int fd);

/* Returns a connected socket without Nagle's delay, or -1. */
int ses_net_connect(const ses_ip *ip, int port, double deadline, ses_err *e);
/* The same in two steps: begins (-1: failed at once; *pending: it is not established yet), and checks a
 * pending one once it is writable. */
int ses_net_connect_begin(const ses_ip *ip, int port, bool *pending);
bool ses_net_connect_end(int fd);
/* Accepts a connection; -1: none is waiting. */
int ses_net_accept(int listener);
bool ses_net_send(int fd, const void *p, size_t n, double deadline, ses_err *e);
bool ses_net_recv(int fd, void *p, size_t n, double deadline, ses_err *e);
/* Waits until fd is readable (or writable), at most until the deadline; false: it is not. */
bool ses_net_wait(int fd, bool write, double deadline);
void ses_net_close(int *fd); /* -1: nothing; sets it to -1 */

/* Milliseconds for poll until the deadline, at most `limit`. */
int ses_net_millis(double deadline, int limit);

#endif
