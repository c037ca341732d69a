/* Exchanges: the request as the handler sees it, and its answer. */
#include "http_impl.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* ---- creation ---- */

/* One block: the exchange, the headers, the head's bytes, the path. */
static ses_http_exchange *new_block(ses_http_server *s, size_t fields, size_t head, size_t path)
{
    ses_http_exchange *x;
    size_t bytes = sizeof *x + fields * sizeof(ses_http_field) + head + path + 2;
    if (!(x = ses_alloc(bytes, NULL))) return NULL;
    x->server = s;
    x->block_bytes = bytes;
    x->started_ns = x->received_ns = s->now;
    s->exchanges++;
    ses_http_account(s, bytes, 0);
    x->reply.x = x->end.x = x;
    atomic_init(&x->cancelled, false);
    atomic_init(&x->unsent, 0);
    return x;
}

static ses_string at(const ses_http_exchange *x, ses_http_span s)
{
    return (ses_string){ x->head + s.at, s.n };
}

ses_http_exchange *ses_http_exchange_new(ses_http_server *s, const ses_http_head *h, const char *p,
                                         const char **reason)
{
    ses_http_exchange *x = new_block(s, (size_t)h->fields, h->bytes, h->path.n ? h->path.n : 1);
    *reason = NULL;
    if (!x) return NULL;
    ses_http_field *field = (ses_http_field *)(x + 1);
    char *head = (char *)(field + h->fields), *path = head + h->bytes;
    memcpy(head, p, h->bytes);
    memcpy(field, h->field, (size_t)h->fields * sizeof *field);
    x->head = head;
    x->field = field;
    x->fields = h->fields;
    x->minor = h->minor;
    x->keep_alive = h->keep_alive;
    x->method = at(x, h->method);
    x->query = at(x, h->query);
    x->is_head = x->method.n == 4 && !memcmp(x->method.p, "HEAD", 4);
    size_t n = ses_http_path_decode(p + h->path.at, h->path.n, path, reason);
    if (n == SIZE_MAX) return ses_http_exchange_free(x), NULL;
    x->path = (ses_string){ path, n };
    return x;
}

static void set_type(ses_http_exchange *x, const char *type)
{
    if (!type) return;
    size_t n = strlen(type);
    if (n < sizeof x->content_type)
        memcpy(x->content_type, type, n + 1);
    else
        ses_http_add_header(x, "Content-Type", type);
}

/* Escapes a reason for JSON; reasons contain no control characters. */
static void put_escaped(ses_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') ses_buf_put(b, '\\');
        ses_buf_put(b, *s);
    }
}

ses_http_exchange *ses_http_exchange_rejection(ses_http_server *s, int status, const char *reason)
{
    ses_buf b = { 0 };
    ses_http_exchange *x = new_block(s, 0, 0, 0);
    if (!x) return NULL;
    x->is_internal = true;
    x->minor = 1;
    x->status = status;
    x->state = SES_HTTP_READY;
    set_type(x, "application/json");
    ses_buf_puts(&b, "{\"error\":{\"message\":\"");
    put_escaped(&b, reason);
    ses_buf_appendf(&b, "\",\"type\":\"%s\",\"param\":null,\"code\":null}}\n",
                    status < 500 ? "invalid_request_error" : "server_error");
    if (status == 503) ses_http_add_header(x, "Retry-After", "1");
    if (x->headers.len) ses_buf_puts(&x->headers, "\r\n");
    if (!ses_buf_ok(&b, NULL) || !ses_buf_ok(&x->headers, NULL)) {
        ses_buf_free(&b);
        ses_http_exchange_free(x);
        return NULL;
    }
    x->out = b.data;
    x->out_n = x->out_length = b.len;
    x->free_out = ses_free;
    ses_http_account(s, x->out_n, 0);
    return x;
}

bool ses_http_exchange_reserve(ses_http_exchange *x, size_t more, size_t limit)
{
    size_t need = x->body_n + more, capacity = x->body_capacity;
    ses_http_server *s = x->server;
    if (need <= capacity) return true;
    capacity = capacity * 2 > need ? capacity * 2 : need;
    if (capacity > limit) capacity = limit > need ? limit : need;
    if (atomic_load_explicit(&s->buffered, memory_order_relaxed) + (capacity - x->body_capacity) >
        s->limits.max_buffered_bytes)
        return false;
    char *p = ses_realloc_array(x->body, capacity + 1, 1, NULL);
    if (!p) return false;
    ses_http_account(s, capacity, x->body_capacity);
    x->body = p;
    x->body_capacity = capacity;
    return true;
}

void ses_http_exchange_free(ses_http_exchange *x)
{
    if (x->free_out) x->free_out((void *)(uintptr_t)x->out);
    size_t parts = 0;
    for (ses_http_part *p = x->first_part, *next; p; p = next) {
        next = p->next;
        parts += p->n;
        ses_free(p);
    }
    for (ses_http_joined *j = x->joined, *next; j; j = next) next = j->next, ses_free(j);
    ses_http_account(x->server, 0, x->block_bytes + x->body_capacity + x->out_n + parts);
    x->server->exchanges--;
    ses_free(x->body);
    ses_buf_free(&x->headers);
    ses_free(x);
}

void ses_http_exchange_finish(ses_http_exchange *x)
{
    ses_http_server *s = x->server;
    if (!x->sent) x->status = 0;
    if (!x->is_internal && s->o.on_done) {
        x->done_ns = ses_clock_ns();
        s->o.on_done(s->o.ctx, x);
    }
    ses_http_exchange_free(x);
}

/* ---- the request ---- */

ses_string ses_http_method(const ses_http_exchange *x) { return x->method; }
ses_string ses_http_path(const ses_http_exchange *x) { return x->path; }
ses_string ses_http_query(const ses_http_exchange *x) { return x->query; }
ses_string ses_http_body(const ses_http_exchange *x)
{
    return (ses_string){ x->body ? x->body : "", x->body_n };
}
ses_string ses_http_peer(const ses_http_exchange *x) { return (ses_string){ x->peer, strlen(x->peer) }; }
uint64_t ses_http_received_ns(const ses_http_exchange *x) { return x->received_ns; }
bool ses_http_is_cancelled(const ses_http_exchange *x)
{
    return atomic_load_explicit(&x->cancelled, memory_order_relaxed);
}
void ses_http_set_user(ses_http_exchange *x, void *user) { x->user = user; }
void *ses_http_user(const ses_http_exchange *x) { return x->user; }
int ses_http_status(const ses_http_exchange *x) { return x->status; }
size_t ses_http_response_bytes(const ses_http_exchange *x) { return x->body_sent; }
uint64_t ses_http_duration_ns(const ses_http_exchange *x) { return x->done_ns - x->started_ns; }

/* The next field with this name, from index *i on; false: none. */
static bool next_field(const ses_http_exchange *x, const char *name, size_t n, int *i)
{
    for (; *i < x->fields; ++*i) {
        ses_http_span s = x->field[*i].name;
        if (s.n == n && ses_http_equal_nocase(x->head + s.at, n, name)) return true;
    }
    return false;
}

/* Values of a repeated header, joined; kept with the exchange. */
static ses_string join(ses_http_exchange *x, const char *name, size_t n)
{
    size_t bytes = 0;
    for (ses_http_joined *j = x->joined; j; j = j->next)
        if (!strcmp(j->name, name)) return j->value;
    for (int i = 0; next_field(x, name, n, &i); i++) bytes += x->field[i].value.n + 2;
    ses_http_joined *j = ses_alloc(sizeof *j + bytes + n + 1, NULL);
    if (!j) return (ses_string){ 0 };
    char *text = (char *)(j + 1), *copy = text + bytes, *p = text;
    for (int i = 0; next_field(x, name, n, &i); i++) {
        if (p > text) memcpy(p, ", ", 2), p += 2;
        memcpy(p, x->head + x->field[i].value.at, x->field[i].value.n);
        p += x->field[i].value.n;
    }
    memcpy(copy, name, n + 1);
    *j = (ses_http_joined){ x->joined, copy, { text, (size_t)(p - text) } };
    x->joined = j;
    return j->value;
}

ses_string ses_http_header(const ses_http_exchange *x, const char *name)
{
    size_t n = strlen(name);
    int i = 0, again;
    if (!next_field(x, name, n, &i)) return (ses_string){ 0 };
    again = i + 1;
    if (next_field(x, name, n, &again)) return join((ses_http_exchange *)(uintptr_t)x, name, n);
    return at(x, x->field[i].value);
}

/* ---- the response ---- */

bool ses_http_add_header(ses_http_exchange *x, const char *name, const char *value)
{
    static const char *const reserved[] = { "content-length", "transfer-encoding", "connection", "date" };
    size_t n = strlen(name);
    if (!ses_http_is_token(name, n)) return false;
    for (size_t i = 0; i < SES_LEN(reserved); i++)
        if (n == strlen(reserved[i]) && ses_http_equal_nocase(name, n, reserved[i])) return false;
    for (const char *p = value; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f) return false;
    size_t len = x->headers.len;
    ses_buf_puts(&x->headers, name);
    ses_buf_puts(&x->headers, ": ");
    ses_buf_puts(&x->headers, value);
    ses_buf_puts(&x->headers, "\r\n");
    if (ses_buf_ok(&x->headers, NULL)) return true;
    x->headers.len = len;
    x->headers.wanted = 0;
    return false;
}

/* Ends the added headers with the empty line; they are dropped if memory for it is missing. */
static void end_headers(ses_http_exchange *x)
{
    if (!x->headers.len) return;
    ses_buf_puts(&x->headers, "\r\n");
    if (!ses_buf_ok(&x->headers, NULL)) ses_buf_free(&x->headers);
}

void ses_http_reply(ses_http_exchange *x, int status, const char *content_type, const void *body, size_t n,
                    void (*free_body)(void *))
{
    ses_http_server *s = x->server;
    bool has_body = status >= 200 && status != 204 && status != 304;
    char *copy = NULL;
    x->status = status;
    set_type(x, content_type);
    if (n && !free_body && has_body && !x->is_head && (copy = ses_realloc_array(NULL, n, 1, NULL)))
        body = memcpy(copy, body, n), free_body = ses_free;
    else if (n && !free_body && has_body && !x->is_head)
        x->status = 503, n = 0; /* no memory for the copy */
    end_headers(x);
    x->out = body;
    x->free_out = free_body;
    x->out_length = has_body ? n : 0;
    x->out_n = has_body && !x->is_head ? n : 0;
    ses_http_account(s, x->out_n, 0);
    x->reply.kind = SES_HTTP_REPLY;
    ses_http_push(s, &x->reply);
}

void ses_http_stream_begin(ses_http_exchange *x, int status, const char *content_type)
{
    x->status = status;
    x->is_stream = true;
    set_type(x, content_type);
    end_headers(x);
    x->reply.kind = SES_HTTP_STREAM_BEGIN;
    ses_http_push(x->server, &x->reply);
}

bool ses_http_stream_write(ses_http_exchange *x, const void *data, size_t n)
{
    enum { FRAME = 24 }; /* hexadecimal size and two CRLF */
    size_t size, unsent = atomic_load_explicit(&x->unsent, memory_order_relaxed);
    if (ses_http_is_cancelled(x) || x->broken) return false;
    if (n == 0 || x->is_head) return true;
    if (n > x->server->limits.max_stream_bytes || unsent > x->server->limits.max_stream_bytes - n ||
        !ses_add_size(n, sizeof(ses_http_part) + FRAME, &size))
        return x->broken = true, false;
    ses_http_part *p = ses_realloc_array(NULL, size, 1, NULL);
    if (!p) return x->broken = true, false;
    *p = (ses_http_part){ .message = { .x = x, .kind = SES_HTTP_STREAM_PART }, .payload = n };
    if (x->minor == 1) p->n = (size_t)snprintf(p->data, FRAME, "%zx\r\n", n);
    memcpy(p->data + p->n, data, n);
    p->n += n;
    if (x->minor == 1) memcpy(p->data + p->n, "\r\n", 2), p->n += 2;
    atomic_fetch_add_explicit(&x->unsent, p->n, memory_order_relaxed);
    ses_http_account(x->server, p->n, 0);
    ses_http_push(x->server, &p->message);
    return true;
}

void ses_http_stream_end(ses_http_exchange *x)
{
    x->end.kind = SES_HTTP_STREAM_END;
    ses_http_push(x->server, &x->end);
}
