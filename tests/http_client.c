/* Blocking HTTP/1.1 client. */
#define _GNU_SOURCE
#include "http_client.h"

#include "base/alloc.h"
#include "base/str.h"
#include "serve/http/http_parser.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ_BYTES = 65536, MAX_HEAD = 1 << 20, MAX_SENT = 256 };
static const uint64_t MAX_BODY = (uint64_t)1 << 31;

struct ses_http_client {
    int fd;
    char host[300];         /* for the Host header */
    ses_buf in;             /* received bytes; the current response starts at 0 */
    ses_buf out, body;      /* the request being sent; the decoded body */
    bool is_head[MAX_SENT]; /* whether each unanswered request is a HEAD, as a ring */
    size_t sent, received;  /* requests, responses */
    size_t used;            /* bytes of `in` that belong to the last response */
    bool (*on_data)(void *ctx, const char *p, size_t n);
    void *ctx;
};

/* ---- connecting ---- */

static bool fail_call(ses_err *e, const char *what)
{
    const char *why = errno == EAGAIN || errno == EWOULDBLOCK ? "timed out" : strerror(errno);
    return ses_fail(e, SES_EIO, "%s: %s", what, why);
}

static void set_timeout(int fd, double seconds)
{
    struct timeval t = { (time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6) };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static int connect_to(int family, const struct sockaddr *a, socklen_t n, double timeout)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (timeout > 0) set_timeout(fd, timeout);
    if (family != AF_UNIX) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (!connect(fd, a, n)) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

static bool connect_unix(ses_http_client *c, const char *path, double timeout, ses_err *e)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof a.sun_path) return ses_fail(e, SES_EARG, "%s: the path is too long", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    c->fd = connect_to(AF_UNIX, (struct sockaddr *)&a, sizeof a, timeout);
    snprintf(c->host, sizeof c->host, "localhost");
    return c->fd >= 0 || fail_call(e, path);
}

static bool connect_tcp(ses_http_client *c, const char *host, int port, double timeout, ses_err *e)
{
    struct addrinfo hints = { .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *list = NULL;
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    snprintf(c->host, sizeof c->host, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    int code = getaddrinfo(host, text, &hints, &list);
    if (code) return ses_fail(e, SES_EIO, "%s: %s", c->host, gai_strerror(code));
    for (const struct addrinfo *i = list; i && c->fd < 0; i = i->ai_next)
        c->fd = connect_to(i->ai_family, i->ai_addr, i->ai_addrlen, timeout);
    freeaddrinfo(list);
    return c->fd >= 0 || fail_call(e, c->host);
}

ses_http_client *ses_http_client_open(const char *host, int port, double timeout, ses_err *e)
{
    ses_http_client *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    c->fd = -1;
    if (strchr(host, '/') ? connect_unix(c, host, timeout, e) : connect_tcp(c, host, port, timeout, e))
        return c;
    ses_http_client_free(c);
    return NULL;
}

void ses_http_client_free(ses_http_client *c)
{
    if (!c) return;
    if (c->fd >= 0) close(c->fd);
    ses_buf_free(&c->in);
    ses_buf_free(&c->out);
    ses_buf_free(&c->body);
    ses_free(c);
}

int ses_http_client_fd(const ses_http_client *c) { return c->fd; }

void ses_http_client_on_data(ses_http_client *c, bool (*fn)(void *ctx, const char *p, size_t n), void *ctx)
{
    c->on_data = fn;
    c->ctx = ctx;
}

/* ---- sending ---- */

static bool send_all(ses_http_client *c, ses_err *e)
{
    for (size_t i = 0; i < c->out.len;) {
        ssize_t n = send(c->fd, c->out.data + i, c->out.len - i, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_call(e, "cannot send the request");
        i += (size_t)n;
    }
    return true;
}

bool ses_http_client_send(ses_http_client *c, const ses_http_request *r, ses_err *e)
{
    const char *method = r->method ? r->method : r->body ? "POST" : "GET";
    if (c->sent - c->received >= MAX_SENT)
        return ses_fail(e, SES_EARG, "too many requests without a response");
    c->out.len = 0;
    ses_buf_appendf(&c->out, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, r->target ? r->target : "/", c->host);
    if (r->headers) ses_buf_puts(&c->out, r->headers);
    if (r->chunked && r->body)
        ses_buf_puts(&c->out, "Transfer-Encoding: chunked\r\n");
    else if (r->body)
        ses_buf_appendf(&c->out, "Content-Length: %zu\r\n", r->n);
    ses_buf_puts(&c->out, "\r\n");
    if (r->chunked && r->n) ses_buf_appendf(&c->out, "%zx\r\n", r->n);
    if (r->body) ses_buf_append(&c->out, r->body, r->n);
    if (r->chunked && r->n) ses_buf_puts(&c->out, "\r\n");
    if (r->chunked && r->body) ses_buf_puts(&c->out, "0\r\n\r\n");
    if (!ses_buf_ok(&c->out, e) || !send_all(c, e)) return false;
    c->is_head[c->sent++ % MAX_SENT] = !strcmp(method, "HEAD");
    return true;
}

/* ---- receiving ---- */

/* Appends received bytes to c->in. *end: the server has closed. */
static bool receive_more(ses_http_client *c, bool *end, ses_err *e)
{
    if (!ses_buf_reserve(&c->in, READ_BYTES)) return ses_buf_ok(&c->in, e);
    ssize_t n;
    do n = recv(c->fd, c->in.data + c->in.len, READ_BYTES, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail_call(e, "cannot receive the response");
    c->in.len += (size_t)n;
    *end = n == 0;
    return true;
}

static bool bad(ses_err *e, const char *what)
{
    return ses_fail(e, SES_EFORMAT, "invalid response: %s", what);
}

/* The length of the head at the start of c->in. */
static bool receive_head(ses_http_client *c, size_t *head, ses_err *e)
{
    bool end = false;
    for (;;) {
        const char *p = c->in.len ? memmem(c->in.data, c->in.len, "\r\n\r\n", 4) : NULL;
        if (p) return *head = (size_t)(p - c->in.data) + 4, true;
        if (end && !c->in.len) return ses_fail(e, SES_EIO, "the server closed the connection");
        if (end) return bad(e, "it ends inside the head");
        if (c->in.len > MAX_HEAD) return bad(e, "the head is too long");
        if (!receive_more(c, &end, e)) return false;
    }
}

/* The next header line from *at on: name and value. False: the end of the head, or an invalid line (*at
 * SIZE_MAX). */
static bool next_line(ses_string head, size_t *at, ses_string *name, ses_string *value)
{
    const char *line = head.p + *at, *end = memmem(line, head.n - *at, "\r\n", 2);
    if (!end || end == line) return false;
    const char *colon = memchr(line, ':', (size_t)(end - line));
    *at = (size_t)(end - head.p) + 2;
    if (!colon || !ses_http_is_token(line, (size_t)(colon - line))) return *at = SIZE_MAX, false;
    *name = (ses_string){ line, (size_t)(colon - line) };
    const char *from = colon + 1;
    while (from < end && (*from == ' ' || *from == '\t')) from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t')) end--;
    *value = (ses_string){ from, (size_t)(end - from) };
    return true;
}

typedef struct framing {
    bool has_length, chunked, closes;
    uint64_t length;
} framing;

static bool is(ses_string s, const char *word)
{
    return s.n == strlen(word) && ses_http_equal_nocase(s.p, s.n, word);
}

static bool parse_length(ses_string value, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9' || *length > MAX_BODY) return false;
        *length = *length * 10 + (uint64_t)(value.p[i] - '0');
    }
    return value.n && *length <= MAX_BODY;
}

static bool parse_head(ses_string head, int *status, framing *f, ses_err *e)
{
    ses_string name, value;
    size_t at = 0;
    const char *p = head.p;
    if (head.n < 15 || memcmp(p, "HTTP/1.", 7) || (p[7] != '0' && p[7] != '1') || p[8] != ' ' || p[12] != ' ')
        return bad(e, "the status line");
    for (int i = 9; i < 12; i++)
        if (p[i] < '0' || p[i] > '9') return bad(e, "the status");
    *status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
    *f = (framing){ .closes = p[7] == '0' };
    at = (size_t)((const char *)memmem(p, head.n, "\r\n", 2) - p) + 2;
    while (next_line(head, &at, &name, &value)) {
        if (is(name, "content-length")) {
            if (f->has_length || !parse_length(value, &f->length)) return bad(e, "Content-Length");
            f->has_length = true;
        } else if (is(name, "transfer-encoding")) {
            if (f->chunked || !is(value, "chunked")) return bad(e, "Transfer-Encoding");
            f->chunked = true;
        } else if (is(name, "connection"))
            f->closes = is(value, "close") || (f->closes && !is(value, "keep-alive"));
    }
    if (at == SIZE_MAX) return bad(e, "a header line");
    if (f->has_length && f->chunked) return bad(e, "Content-Length with Transfer-Encoding");
    return true;
}

/* Keeps n bytes of the body, or passes them on. */
static bool take_body(ses_http_client *c, const char *p, size_t n, ses_err *e)
{
    if (!n) return true;
    if (!c->on_data) return ses_buf_append(&c->body, p, n) || ses_buf_ok(&c->body, e);
    return c->on_data(c->ctx, p, n) || ses_fail(e, SES_EIO, "the response was abandoned");
}

/* Removes n bytes from the front of what follows the head. */
static void drop(ses_http_client *c, size_t at, size_t n)
{
    if (!n) return;
    memmove(c->in.data + at, c->in.data + at + n, c->in.len - at - n);
    c->in.len -= n;
}

/* A body of known length, or one that ends with the connection (length UINT64_MAX). */
static bool receive_plain(ses_http_client *c, size_t at, uint64_t length, ses_err *e)
{
    bool end = false;
    for (;;) {
        size_t have = c->in.len - at, n = have < length ? have : (size_t)length;
        if (!take_body(c, c->in.data + at, n, e)) return false;
        drop(c, at, n);
        if (length != UINT64_MAX) length -= n;
        if (!length || (end && length == UINT64_MAX)) return true;
        if (end) return bad(e, "it ends inside the body");
        if (!receive_more(c, &end, e)) return false;
    }
}

static bool receive_chunked(ses_http_client *c, size_t at, ses_err *e)
{
    bool end = false;
    ses_http_chunks chunks;
    ses_http_chunks_begin(&chunks, MAX_BODY);
    for (;;) {
        size_t n = c->in.len - at, produced = 0;
        ses_http_result r = ses_http_chunks_decode(&chunks, c->in.data + at, &n, c->in.data + at, &produced);
        if (!take_body(c, c->in.data + at, produced, e)) return false;
        drop(c, at, n);
        if (r == SES_HTTP_COMPLETE) return true;
        if (r == SES_HTTP_INVALID) return bad(e, chunks.reason);
        if (end) return bad(e, "it ends inside a chunked body");
        if (!receive_more(c, &end, e)) return false;
    }
}

bool ses_http_client_receive(ses_http_client *c, ses_http_response *a, ses_err *e)
{
    framing f = { 0 };
    size_t head = 0;
    if (c->received == c->sent) return ses_fail(e, SES_EARG, "no request was sent");
    do {
        drop(c, 0, c->used);
        c->used = 0;
        if (!receive_head(c, &head, e) || !parse_head((ses_string){ c->in.data, head }, &a->status, &f, e))
            return false;
        c->used = head;
    } while (a->status < 200 && a->status != 101);
    bool empty = c->is_head[c->received++ % MAX_SENT] || a->status == 204 || a->status == 304;
    bool until_end = !empty && !f.chunked && !f.has_length;
    c->body.len = 0;
    if (!empty && f.chunked && !receive_chunked(c, head, e)) return false;
    if (!empty && !f.chunked && !receive_plain(c, head, until_end ? UINT64_MAX : f.length, e)) return false;
    a->head = (ses_string){ c->in.data, head };
    a->body = (ses_string){ c->body.len ? c->body.data : "", c->body.len };
    a->keep_alive = !f.closes && !until_end;
    return true;
}

bool ses_http_client_request(ses_http_client *c, const ses_http_request *r, ses_http_response *a, ses_err *e)
{
    return ses_http_client_send(c, r, e) && ses_http_client_receive(c, a, e);
}

ses_string ses_http_response_header(const ses_http_response *a, const char *name)
{
    ses_string n, value;
    const char *line = memmem(a->head.p, a->head.n, "\r\n", 2);
    size_t at = line ? (size_t)(line - a->head.p) + 2 : a->head.n;
    while (next_line(a->head, &at, &n, &value))
        if (is(n, name)) return value;
    return (ses_string){ 0 };
}
