/* The first bytes on every connection between ranks. They give the rank that connects, its version of Sesame
 * and of the protocol; the layout is the same in all versions, so that different ones can tell each other.
 *
 * A connection whose first bytes are not a hello of this run is closed. The cookie protects from accidents
 * (another run, a port scanner), not from attackers: docs/SCALE.md. */
#ifndef SES_COMM_HELLO_H
#define SES_COMM_HELLO_H

#include "launch.h"
#include "net.h"

typedef enum {
    SES_HELLO_JOIN = 1, /* to rank 0, which answers when all ranks have joined */
    SES_HELLO_WELCOME,  /* its answer; the hellos of all ranks follow, in rank order */
    SES_HELLO_REFUSED,  /* its answer; SES_REFUSAL bytes of text follow */
    SES_HELLO_DATA,     /* a connection for exchanges; answered by the same */
    SES_HELLO_CONTROL,  /* a connection for heartbeats */
} ses_hello_kind;

enum { SES_HELLO_BYTES = 256, SES_REFUSAL = 1024, SES_COMM_PROTOCOL = 1, SES_HELLO_VERSION = 24 };

typedef struct ses_hello {
    ses_hello_kind kind;
    uint32_t protocol;
    int rank, size;
    uint64_t cookie; /* JOIN: the job of ses_launch; else a random number of rank 0 */
    int port;        /* where this rank listens for others */
    int ips;
    ses_ip ip[SES_MAX_IPS];
    char version[SES_HELLO_VERSION]; /* Sesame's */
} ses_hello;

/* Contains this version and protocol, and the addresses of this machine. */
ses_hello ses_hello_of(ses_hello_kind kind, int rank, int size, uint64_t cookie, int port);
void ses_hello_write(const ses_hello *h, unsigned char out[SES_HELLO_BYTES]);
/* False: not a hello. Every field is in its range afterwards. */
bool ses_hello_read(ses_hello *h, const unsigned char in[SES_HELLO_BYTES]);
/* Fails if the other rank has another version or protocol. host: of the other rank. */
bool ses_hello_check_version(const ses_hello *h, const char *host, ses_err *e);

bool ses_hello_send(int fd, const ses_hello *h, double deadline, ses_err *e);
bool ses_hello_recv(int fd, ses_hello *h, double deadline, ses_err *e);

#endif
