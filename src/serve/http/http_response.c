/* Responses: status line and headers, and the ranges of bytes to send. */
#define _POSIX_C_SOURCE 200809L
#include "http_impl.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

static const char last_chunk[] = "0\r\n\r\n";

static const struct {
    int status;
    const char *phrase;
} phrases[] = {
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 206, "Partial Content" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 411, "Length Required" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 417, "Expectation Failed" },
    { 422, "Unprocessable Content" },
    { 424, "Failed Dependency" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 499, "Client Closed Request" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
};

static const char *phrase_of(int status)
{
    for (size_t i = 0; i < SES_LEN(phrases); i++)
        if (phrases[i].status == status) return phrases[i].phrase;
    return "Unknown";
}

void ses_http_date(char out[40], int64_t unix_seconds)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t t = (time_t)unix_seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm)) memset(&tm, 0, sizeof tm);
    snprintf(out, 40, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * (tm.tm_wday % 7),
             tm.tm_mday % 100, months + 3 * (tm.tm_mon % 12), (tm.tm_year + 1900) % 10000, tm.tm_hour % 100,
             tm.tm_min % 100, tm.tm_sec % 100);
}

static void put(ses_http_exchange *x, const char *s, size_t n)
{
    memcpy(x->prefix + x->prefix_n, s, n);
    x->prefix_n += n;
}

static void put_text(ses_http_exchange *x, const char *s) { put(x, s, strlen(s)); }

static void put_number(ses_http_exchange *x, size_t n)
{
    char digits[24];
    size_t i = sizeof digits;
    do digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    put(x, digits + i, sizeof digits - i);
}

/* The longest possible text fits into prefix: 31 bytes of phrase, 95 of type, 20 digits and 180 of fixed
 * text. */
void ses_http_response_compose(ses_http_exchange *x, const char *date, bool closes)
{
    bool no_length = x->status == 204 || x->status == 304 || x->status < 200;
    x->closes = closes || (x->is_stream && x->minor == 0);
    put_text(x, "HTTP/1.1 ");
    put_number(x, (size_t)(x->status >= 100 && x->status <= 999 ? x->status : 500));
    put_text(x, " ");
    put_text(x, phrase_of(x->status));
    put_text(x, "\r\nDate: ");
    put_text(x, date);
    if (x->content_type[0]) put_text(x, "\r\nContent-Type: "), put_text(x, x->content_type);
    if (x->is_stream && x->minor == 1)
        put_text(x, "\r\nTransfer-Encoding: chunked");
    else if (!x->is_stream && !no_length)
        put_text(x, "\r\nContent-Length: "), put_number(x, x->out_length);
    put_text(x, "\r\nX-Content-Type-Options: nosniff\r\n");
    if (x->closes)
        put_text(x, "Connection: close\r\n");
    else if (x->minor == 0)
        put_text(x, "Connection: keep-alive\r\n");
    if (!x->headers.len) put_text(x, "\r\n");
    x->composed = true;
}

/* Bytes at the start of every response: prefix, added headers and the body of a reply. */
static size_t base_bytes(const ses_http_exchange *x) { return x->prefix_n + x->headers.len + x->out_n; }

/* Bytes after the parts of a stream. */
static size_t end_bytes(const ses_http_exchange *x)
{
    return x->ended && x->minor == 1 && !x->broken && !x->is_head ? sizeof last_chunk - 1 : 0;
}

/* Adds s[0, n) without the first *skip bytes. */
static int add(struct iovec *iov, int i, int max, const char *s, size_t n, size_t *skip)
{
    size_t drop = *skip < n ? *skip : n;
    *skip -= drop;
    if (drop == n || i == max) return i;
    iov[i] = (struct iovec){ (void *)(uintptr_t)(s + drop), n - drop };
    return i + 1;
}

int ses_http_response_gather(const ses_http_exchange *x, struct iovec *iov, int max)
{
    size_t skip = x->sent;
    int i = 0;
    i = add(iov, i, max, x->prefix, x->prefix_n, &skip);
    i = add(iov, i, max, x->headers.data, x->headers.len, &skip);
    i = add(iov, i, max, x->out, x->out_n, &skip);
    const ses_http_part *p = x->first_part;
    for (; p && i < max; p = p->next) skip = p->sent, i = add(iov, i, max, p->data, p->n, &skip);
    skip = x->end_sent;
    return p ? i : add(iov, i, max, last_chunk, end_bytes(x), &skip);
}

static size_t take(size_t *n, size_t most)
{
    size_t k = *n < most ? *n : most;
    *n -= k;
    return k;
}

bool ses_http_response_advance(ses_http_exchange *x, size_t *n)
{
    bool progress = false;
    x->sent += take(n, base_bytes(x) - x->sent);
    if (x->sent > base_bytes(x) - x->out_n) x->body_sent = x->sent - (base_bytes(x) - x->out_n);
    for (ses_http_part *p; (p = x->first_part) && *n;) {
        p->sent += take(n, p->n - p->sent);
        if (p->sent < p->n) break;
        x->first_part = p->next;
        if (!x->first_part) x->last_part = NULL;
        x->body_sent += p->payload;
        atomic_fetch_sub_explicit(&x->unsent, p->n, memory_order_relaxed);
        ses_http_account(x->server, 0, p->n);
        ses_free(p);
        progress = true;
    }
    x->end_sent += take(n, end_bytes(x) - x->end_sent);
    return progress || ses_http_response_is_sent(x);
}

bool ses_http_response_is_sent(const ses_http_exchange *x)
{
    if (!x->composed || x->sent < base_bytes(x)) return false;
    return !x->is_stream || (x->ended && !x->first_part && x->end_sent == end_bytes(x));
}
