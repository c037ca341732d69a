/* Blocking HTTP/1.1 client: one connection, kept alive. For tests of the server and load generators; as
 * strict as the server about framing. No TLS, redirects or proxies.
 *
 * Ownership: the caller frees the client; responses are borrowed until the next call on it. One thread. */
#ifndef TESTS_HTTP_CLIENT_H
#define TESTS_HTTP_CLIENT_H

#include "sesame/base.h"

typedef struct ses_http_client ses_http_client;

typedef struct ses_http_request {
    const char *method;  /* NULL: GET, or POST if there is a body */
    const char *target;  /* path and query; NULL: "/" */
    const char *headers; /* lines, each ended by CR LF; NULL: none. Host and Content-Length are added */
    const char *body;    /* NULL: none */
    size_t n;
    bool chunked; /* sends the body in chunks */
} ses_http_request;

typedef struct ses_http_response {
    int status;
    ses_string head; /* status line and headers */
    ses_string body; /* decoded; empty if it was passed to on_data */
    bool keep_alive; /* another request may follow */
} ses_http_response;

/* Connects. host: a name or address; with a "/": the path of a Unix socket, and port is ignored. timeout:
 * seconds for each system call; 0: none. */
ses_http_client *ses_http_client_open(const char *host, int port, double timeout, ses_err *e);
void ses_http_client_free(ses_http_client *c); /* closes; c may be NULL */

/* Passes the body to fn as it arrives, instead of keeping it, until it returns false: then receive fails.
 * NULL: off. */
void ses_http_client_on_data(ses_http_client *c, bool (*fn)(void *ctx, const char *p, size_t n), void *ctx);

/* Sends a request without waiting for its response: several may be sent, then received in order. */
bool ses_http_client_send(ses_http_client *c, const ses_http_request *r, ses_err *e);
/* Receives the next response; interim ones (100 Continue) are skipped. */
bool ses_http_client_receive(ses_http_client *c, ses_http_response *a, ses_err *e);
/* Both. */
bool ses_http_client_request(ses_http_client *c, const ses_http_request *r, ses_http_response *a, ses_err *e);

int ses_http_client_fd(const ses_http_client *c);
/* The value of a header; name in any case. p NULL: absent. */
ses_string ses_http_response_header(const ses_http_response *a, const char *name);

#endif
