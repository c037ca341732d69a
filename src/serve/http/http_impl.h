/* Internal structures of the HTTP server. Everything belongs to the I/O thread, which runs
 * ses_http_server_run, except the inbox: other threads answer by pushing messages there. A message is
 * part of the exchange or of the data that it delivers, so answering allocates nothing and takes no lock. */
#ifndef SES_SERVE_HTTP_IMPL_H
#define SES_SERVE_HTTP_IMPL_H

#include "base/str.h"
#include "http_parser.h"
#include "http_server.h"

#include <stdatomic.h>

typedef struct ses_http_connection ses_http_connection;

/* ---- messages to the I/O thread ---- */

typedef enum {
    SES_HTTP_REPLY,
    SES_HTTP_STREAM_BEGIN,
    SES_HTTP_STREAM_PART,
    SES_HTTP_STREAM_END
} ses_http_message_kind;

typedef struct ses_http_message {
    struct ses_http_message *next;
    ses_http_exchange *x;
    ses_http_message_kind kind;
} ses_http_message;

/* Data of a stream, encoded as a chunk unless the client speaks HTTP/1.0. */
typedef struct ses_http_part {
    ses_http_message message; /* first */
    struct ses_http_part *next;
    size_t n, sent, payload;
    char data[];
} ses_http_part;

/* ---- timers: lists with one duration each, so that each list is in order of its deadlines ---- */

typedef enum {
    SES_HTTP_TIMER_HEAD,
    SES_HTTP_TIMER_BODY,
    SES_HTTP_TIMER_IDLE,
    SES_HTTP_TIMER_GRACE, /* idle connections while the server drains */
    SES_HTTP_TIMER_LINGER,
    SES_HTTP_TIMER_WRITE,
    SES_HTTP_TIMERS
} ses_http_timer_kind;

typedef struct ses_http_timer {
    struct ses_http_timer *prev, *next;
    ses_http_connection *connection;
    uint64_t deadline; /* 0: not set */
    ses_http_timer_kind kind;
} ses_http_timer;

typedef struct ses_http_timer_list {
    ses_http_timer *first, *last;
    uint64_t duration; /* ns */
} ses_http_timer_list;

/* ---- exchanges ---- */

typedef struct ses_http_joined {
    struct ses_http_joined *next;
    const char *name; /* the caller's spelling */
    ses_string value;
} ses_http_joined;

struct ses_http_exchange {
    ses_http_server *server;
    ses_http_connection *connection; /* NULL: closed */
    ses_http_exchange *next;         /* the next request of the connection */
    size_t block_bytes;              /* accounted for the exchange itself */
    /* The request: spans refer to `head`, a copy of its bytes. */
    const char *head;
    const ses_http_field *field;
    int fields, minor;
    ses_string method, path, query;
    char *body;
    size_t body_n, body_capacity;
    char peer[64];
    uint64_t started_ns, received_ns, done_ns;
    bool keep_alive, is_head, is_internal; /* internal: a rejection, which the handler does not see */
    atomic_bool cancelled;
    void *user;
    ses_http_joined *joined;
    /* The response, set by the handler. */
    int status;
    bool is_stream, broken; /* broken: data was lost, the stream cannot be completed */
    ses_buf headers;        /* added headers, and the empty line at the end */
    char content_type[96];
    const char *out;
    size_t out_n;      /* bytes of the body */
    size_t out_length; /* the Content-Length: out_n, but of a response to HEAD too */
    void (*free_out)(void *);
    atomic_size_t unsent; /* bytes of parts that have not been sent */
    ses_http_message reply, end;
    /* The response, in the I/O thread. */
    enum { SES_HTTP_WAITING, SES_HTTP_READY, SES_HTTP_STREAMING } state;
    bool ended, composed, closes;
    char prefix[384]; /* status line and the server's headers */
    size_t prefix_n, sent, end_sent, body_sent;
    ses_http_part *first_part, *last_part;
};

/* A new exchange for a parsed head at p; NULL: out of memory. */
ses_http_exchange *ses_http_exchange_new(ses_http_server *s, const ses_http_head *h, const char *p,
                                         const char **reason);
/* The response to a request that is rejected; NULL: out of memory. */
ses_http_exchange *ses_http_exchange_rejection(ses_http_server *s, int status, const char *reason);
/* Makes room for `more` bytes of the body, of at most `limit` in total. False with a status: 503. */
bool ses_http_exchange_reserve(ses_http_exchange *x, size_t more, size_t limit);
/* In the I/O thread, after the answer was sent or dropped: calls on_done and frees the exchange. */
void ses_http_exchange_finish(ses_http_exchange *x);
void ses_http_exchange_free(ses_http_exchange *x); /* without on_done */

/* ---- responses ---- */

/* Writes the status line and the server's headers; decides whether the connection is closed afterwards. */
void ses_http_response_compose(ses_http_exchange *x, const char *date, bool closes);
struct iovec;
/* The bytes that can be sent now, in at most `max` ranges; returns their number. */
int ses_http_response_gather(const ses_http_exchange *x, struct iovec *iov, int max);
/* Marks *n bytes as sent, as far as they belong to this response, and subtracts them from *n. Returns
 * whether a part or the response was completed. */
bool ses_http_response_advance(ses_http_exchange *x, size_t *n);
bool ses_http_response_is_sent(const ses_http_exchange *x);
void ses_http_date(char out[40], int64_t unix_seconds); /* "Sun, 06 Nov 1994 08:49:37 GMT" */

/* ---- connections ---- */

typedef enum { SES_HTTP_SOURCE_WAKE, SES_HTTP_SOURCE_LISTENER, SES_HTTP_SOURCE_CONNECTION } ses_http_source;

typedef struct ses_http_listener {
    ses_http_source source; /* first: the type of an epoll event's pointer */
    int fd;
    bool is_unix, is_loopback, owns_path;
    uint64_t device, inode; /* the socket file */
} ses_http_listener;

typedef enum {
    SES_HTTP_READ_HEAD,
    SES_HTTP_READ_BODY,
    SES_HTTP_READ_CHUNKS,
    SES_HTTP_READ_NOTHING, /* the connection is closed after the current response */
    SES_HTTP_READ_LINGER   /* all is sent: bytes are dropped until the client closes */
} ses_http_read_state;

struct ses_http_connection {
    ses_http_source source; /* first */
    int fd;                 /* -1: closed, freed at the end of the round */
    ses_http_server *server;
    ses_http_connection *prev, *next; /* all connections, then the closed ones by next */
    ses_http_connection *next_work;
    bool has_work, wants_flush, wants_read; /* in the work list, and the reasons */
    bool check_host, eof, client_left, wants_continue, polls_out, has_request;
    ses_http_read_state state;
    ses_http_timer read_timer, write_timer;
    bool progress;                   /* a response or part was completed since write_timer was set */
    ses_http_exchange *incoming;     /* the head was parsed, the body is arriving */
    ses_http_exchange *first, *last; /* complete requests, in order */
    int unanswered;
    uint64_t first_byte_ns;
    size_t discarded;
    char *pending; /* received bytes that are not parsed */
    size_t pending_n, pending_capacity;
    char peer[64];
    ses_http_chunks chunks;
    ses_http_head head;
};

/* Takes the socket; NULL (and the socket is closed): out of memory. */
ses_http_connection *ses_http_connection_new(ses_http_server *s, int fd, const ses_http_listener *l,
                                             const char *peer);
void ses_http_connection_close(ses_http_connection *c, bool reset);
void ses_http_connection_event(ses_http_connection *c, uint32_t events);
void ses_http_connection_read(ses_http_connection *c);
void ses_http_connection_flush(ses_http_connection *c);
void ses_http_connection_continue(ses_http_connection *c); /* sends 100 Continue, if it is due */
void ses_http_connection_expired(ses_http_connection *c, ses_http_timer_kind kind);
void ses_http_connection_set_timer(ses_http_connection *c); /* the read timer for the current state */
void ses_http_connection_cancel(ses_http_connection *c);    /* the client has closed its side */

/* ---- the server ---- */

enum { SES_HTTP_MAX_LISTENERS = 16, SES_HTTP_READ_BYTES = 65536 };

struct ses_http_server {
    ses_http_options o;
    ses_http_limits limits;
    char *unix_path;
    int epoll, wake, reserve; /* reserve: a descriptor that is given up to refuse a client if none is left */
    ses_http_source wake_source;
    ses_http_listener listener[SES_HTTP_MAX_LISTENERS];
    int listeners, port;
    bool listening, draining;
    uint64_t now, drain_deadline, drain_ns, retry_accept; /* monotonic, ns */
    char date[40];
    int64_t date_second;
    ses_http_connection *connections, *closed;
    ses_http_connection *work, *last_work;
    int open;          /* connections */
    int events_left;   /* events of the current round that are not handled yet */
    int64_t exchanges; /* that the handler has not answered, or that are not sent */
    ses_http_timer_list timer[SES_HTTP_TIMERS];
    char *scratch; /* for reading: bytes of an incomplete head, then SES_HTTP_READ_BYTES */
    size_t scratch_bytes;
    /* Shared with other threads. */
    _Atomic(ses_http_message *) inbox;
    atomic_bool sleeping, stop, drain;
    atomic_size_t buffered;
    atomic_llong connections_now, accepted_total, requests_total, rejected_total, bytes_read, bytes_written;
};

void ses_http_push(ses_http_server *s, ses_http_message *m);
void ses_http_timer_set(ses_http_timer *t, ses_http_connection *c, ses_http_timer_kind kind);
void ses_http_timer_clear(ses_http_timer *t, ses_http_server *s);
void ses_http_add_work(ses_http_connection *c); /* reads or writes the connection later in this round */

static inline void ses_http_count(atomic_llong *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void ses_http_account(ses_http_server *s, size_t added, size_t removed)
{
    atomic_fetch_add_explicit(&s->buffered, added - removed, memory_order_relaxed);
}

/* ---- listening sockets ---- */

bool ses_http_listen(ses_http_server *s, ses_err *e);
/* Accepts at most `max` waiting clients. */
void ses_http_accept(ses_http_server *s, ses_http_listener *l, int max);
void ses_http_set_listening(ses_http_server *s, bool on); /* epoll watches the listening sockets */
void ses_http_close_listeners(ses_http_server *s);
/* Whether the Host header is accepted. */
bool ses_http_host_allowed(const ses_http_server *s, const char *value, size_t n);

#endif
