/* HTTP/1.1 server: one I/O thread runs an event loop over all connections. A strict subset of RFC 9112:
 * see http_parser.h. The program that uses it receives complete requests as exchanges and answers them
 * later, from any thread.
 *
 * An exchange is one request and its response. The server calls on_request in the I/O thread when head
 * and body have arrived; the handler must return quickly (queue the exchange for a worker). Responses on
 * one connection are sent in the order of their requests, whatever the order of the answers.
 *
 * Ownership: an exchange belongs to the handler from on_request until ses_http_reply or
 * ses_http_stream_end; exactly one of them must be called for every exchange, also if the client has
 * disconnected (then the response is dropped). Everything the exchange refers to is valid until then.
 *
 * Threads: functions with a ses_http_exchange may be called from any thread, one thread at a time for
 * each exchange; ses_http_is_cancelled from any thread at any time before the reply. ses_http_server_stop
 * and _drain are async-signal-safe. */
#ifndef SES_SERVE_HTTP_SERVER_H
#define SES_SERVE_HTTP_SERVER_H

#include "sesame/base.h"
#include "sesame/tokenizer.h" /* ses_string */

typedef struct ses_http_server ses_http_server;
typedef struct ses_http_exchange ses_http_exchange;

/* ---- configuration ---- */

typedef struct ses_http_limits {
    size_t max_head_bytes;     /* request line and headers; 0: 16 KiB; more: 431 */
    size_t max_body_bytes;     /* 0: 32 MiB; more: 413, before the body is read if it has a Content-Length */
    int max_connections;       /* 0: 1024; more wait in the listen queue */
    int max_pipelined;         /* unanswered requests of one connection; 0: 16; more are not read */
    size_t max_buffered_bytes; /* requests and responses of all connections; 0: 256 MiB; more: 503 */
    double head_seconds;       /* absolute: first byte of a request to the end of its head; 0: 10 */
    double body_seconds;       /* absolute, for the body; 0: 60 */
    double write_seconds; /* absolute, for a response that the client must read; streams: per chunk; 0: 60 */
    double idle_seconds;  /* between requests; 0: 75 */
    size_t max_stream_bytes; /* bytes of one stream that the client has not read; 0: 4 MiB; more: it ends */
} ses_http_limits;

typedef struct ses_http_options {
    const char *host;        /* NULL: 127.0.0.1 */
    int port;                /* 0: any free port, see ses_http_server_port; -1: no TCP */
    const char *unix_socket; /* path; NULL: none. A stale socket file is replaced, another file is an error */
    int unix_mode;           /* permissions of the Unix socket; 0: 0600 */
    bool socket_activation;  /* use the sockets systemd passed (LISTEN_FDS), if there are any, instead */
    /* Accepted names in Host headers besides loopback names and host, ended by NULL (against DNS
     * rebinding). NULL: the Host header is checked on loopback addresses only. Never on Unix sockets. */
    const char *const *allowed_hosts;
    ses_http_limits limits;
    void (*on_request)(void *ctx, ses_http_exchange *x);
    /* After the response has been sent or dropped; in the I/O thread; x is freed afterwards. NULL: none. */
    void (*on_done)(void *ctx, const ses_http_exchange *x);
    /* A request that was rejected before on_request (malformed, too large, too slow, no such host), for
     * the access log and metrics. The server answers it with {"error":{"message":reason,...}} and closes.
     * In the I/O thread. NULL: none. */
    void (*on_rejected)(void *ctx, int status, const char *reason);
    /* All data that had arrived has been read, and on_request has been called for the complete requests.
     * True: it may have answered some. In the I/O thread. NULL: none. */
    bool (*on_round)(void *ctx);
    void *ctx;
} ses_http_options;

/* Binds and listens; clients are accepted by run. Strings in *o must stay valid. */
ses_http_server *ses_http_server_new(const ses_http_options *o, ses_err *e);
int ses_http_server_port(const ses_http_server *s);
/* Runs the event loop in the calling thread until stopped or drained. */
bool ses_http_server_run(ses_http_server *s, ses_err *e);
/* Stops accepting, answers received requests, closes idle connections, then run returns. At most
 * `drain_seconds` (set in advance). Async-signal-safe. */
void ses_http_server_drain(ses_http_server *s);
void ses_http_server_set_drain_seconds(ses_http_server *s, double seconds);
void ses_http_server_stop(ses_http_server *s); /* run returns at once. Async-signal-safe */
/* After run has returned, all exchanges have been answered, and the threads that answered them have ended
 * or will not touch the server again. s may be NULL. */
void ses_http_server_free(ses_http_server *s);

typedef struct ses_http_stats {
    int64_t connections, accepted_total, requests_total, rejected_total;
    int64_t bytes_read, bytes_written;
    size_t buffered_bytes, max_buffered_bytes; /* the second: the limit in use */
} ses_http_stats;
ses_http_stats ses_http_server_stats(const ses_http_server *s); /* any thread */

/* Other connections have sent data that has not been read. In the I/O thread. */
bool ses_http_server_is_busy(const ses_http_server *s);

/* ---- the request ---- */

ses_string ses_http_method(const ses_http_exchange *x);
/* Percent-decoded, normalized: no "." or ".." segments; UTF-8 without control characters. */
ses_string ses_http_path(const ses_http_exchange *x);
ses_string ses_http_query(const ses_http_exchange *x); /* after "?", not decoded */
/* The value of a header, without spaces around it; name in lower case. p NULL: absent. Repeated list
 * headers are joined by ", ". */
ses_string ses_http_header(const ses_http_exchange *x, const char *name);
ses_string ses_http_body(const ses_http_exchange *x);      /* decoded (chunked); NUL-terminated */
ses_string ses_http_peer(const ses_http_exchange *x);      /* "127.0.0.1:51234" or "unix" */
uint64_t ses_http_received_ns(const ses_http_exchange *x); /* monotonic clock: the request was complete */
/* The client has closed the connection: work for it can be dropped. */
bool ses_http_is_cancelled(const ses_http_exchange *x);
/* A pointer of the handler, NULL at first. */
void ses_http_set_user(ses_http_exchange *x, void *user);
void *ses_http_user(const ses_http_exchange *x);

/* ---- the response ---- */

/* Adds a response header before the reply. Values with control characters, and headers that the server
 * writes (Content-Length, Transfer-Encoding, Connection, Date), are refused (false). Copied. */
bool ses_http_add_header(ses_http_exchange *x, const char *name, const char *value);

/* Sends a response. content_type may be NULL if n is 0. The body is copied unless free_body is given:
 * then the server takes it and calls free_body(body) when it has been sent or dropped. HEAD requests get
 * the head only. */
void ses_http_reply(ses_http_exchange *x, int status, const char *content_type, const void *body, size_t n,
                    void (*free_body)(void *));

/* Streams a response: chunked, flushed after each write (Server-Sent Events). write never waits; it
 * returns false if the client is gone, does not read for write_seconds, or has more than max_stream_bytes
 * to read: generation can stop; end must still be called. */
void ses_http_stream_begin(ses_http_exchange *x, int status, const char *content_type);
bool ses_http_stream_write(ses_http_exchange *x, const void *data, size_t n);
void ses_http_stream_end(ses_http_exchange *x);

/* For on_done and the access log: status (0: the client left before a response), bytes of the body,
 * duration from the first byte of the request to the last of the response. */
int ses_http_status(const ses_http_exchange *x);
size_t ses_http_response_bytes(const ses_http_exchange *x);
uint64_t ses_http_duration_ns(const ses_http_exchange *x);

/* The name is localhost or an address that only this machine reaches: 127.*, ::1. */
bool ses_http_is_loopback(ses_string name);

#endif
