/* Load generator for HTTP servers. Open loop: requests are due at random times with a given mean rate
 * (Poisson arrivals), whether or not earlier ones have been answered, and latency counts from the time a
 * request was due, so that a slow server cannot slow down its own measurement. Closed loop (rate 0): each
 * connection sends its next request when it has received a response.
 *
 * One thread. The result is the caller's. */
#ifndef SES_CLI_LOAD_GENERATOR_H
#define SES_CLI_LOAD_GENERATOR_H

#include "sesame/base.h"

typedef struct ses_load {
    const char *host; /* with a "/": path of a Unix socket */
    int port;
    const ses_string *request; /* [n_requests]: whole HTTP requests, sent in turn */
    size_t n_requests;
    double rate; /* requests per second; 0: closed loop */
    int connections;
    double seconds, warmup; /* measured time, and time before it */
    uint64_t seed;
    bool (*stopped)(void); /* ends early; may be NULL */
} ses_load;

typedef struct ses_load_result {
    int64_t sent, ok, rejected, failed; /* 2xx; 429; other responses and broken connections */
    double seconds, rate;               /* responses with 2xx per second */
    double p50, p90, p99, max, mean;    /* latency of responses with 2xx, in seconds */
    double cpu_seconds;                 /* CPU time of this process */
    int64_t bytes_received;
    double max_late; /* largest delay between due time and sending, in seconds */
} ses_load_result;

/* Splits "http://HOST[:PORT]" or "unix:PATH"; an IPv6 address is in brackets, which host does not get. host:
 * [n]. */
bool ses_load_parse_url(const char *url, char *host, size_t n, int *port, ses_err *e);

bool ses_load_run(const ses_load *l, ses_load_result *r, ses_err *e);

#endif
