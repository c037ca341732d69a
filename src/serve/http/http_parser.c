/* Request heads. The parser works on whole lines, so that its result does not depend on the portions in
 * which bytes arrive. */
#include "http_parser.h"

#include "base/str.h"

#include <string.h>

/* Character classes: TOKEN of methods and header names, VALUE of header values (also bytes above 127),
 * PATH and QUERY of targets. Browsers send ^`{|} in queries unencoded; they are accepted, unlike in RFC
 * 3986. */
enum { TOKEN = 1, VALUE = 2, PATH = 4, QUERY = 8 };

/* clang-format off */
static const unsigned char classes[128] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, /* HTAB is part of a value */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
/*    !   "   #   $   %   &   '   (   )   *   +   ,   -   .   / */
  2, 15,  2,  3, 15, 15, 15, 15, 14, 14, 15, 15, 14, 15, 15, 14,
/* 0  1   2   3   4   5   6   7   8   9   :   ;   <   =   >   ? */
 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14, 14,  2, 14,  2, 10,
/* @  A   B   C   D   E   F   G   H   I   J   K   L   M   N   O */
 14, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
/* P  Q   R   S   T   U   V   W   X   Y   Z   [   \   ]   ^   _ */
 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14, 10, 14, 15, 15,
/* `  a   b   c   d   e   f   g   h   i   j   k   l   m   n   o */
 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
/* p  q   r   s   t   u   v   w   x   y   z   {   |   }   ~ DEL */
 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14, 15, 14, 15, 0,
};
/* clang-format on */

static bool is(char c, int class) { return !((unsigned char)c & 0x80) && classes[(unsigned char)c] & class; }

static bool is_value(char c) { return (unsigned char)c & 0x80 || classes[(unsigned char)c] & VALUE; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static size_t count(const char *p, size_t n, int class)
{
    size_t i = 0;
    while (i < n && is(p[i], class)) i++;
    return i;
}

bool ses_http_is_token(const char *p, size_t n) { return n && count(p, n, TOKEN) == n; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c; }

bool ses_http_equal_nocase(const char *a, size_t n, const char *b)
{
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

/* Whether p[0, n) is `word`, which is in lower case. */
static bool equal(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && ses_http_equal_nocase(p, n, word);
}

static bool reject(ses_http_head *h, int status, const char *reason)
{
    h->status = status;
    h->reason = reason;
    return false;
}

void ses_http_head_begin(ses_http_head *h, size_t max_bytes)
{
    memset(h, 0, offsetof(ses_http_head, field)); /* the array is large and written before it is read */
    h->max_bytes = max_bytes < SES_HTTP_MAX_HEAD_BYTES ? max_bytes : SES_HTTP_MAX_HEAD_BYTES;
}

/* ---- the request line ---- */

static bool parse_version(ses_http_head *h, const char *p, size_t n)
{
    if (n != 8 || memcmp(p, "HTTP/", 5) || !is_digit(p[5]) || p[6] != '.' || !is_digit(p[7]))
        return reject(h, 400, "the request line does not end with \"HTTP/1.1\"");
    if (p[5] != '1' || p[7] > '1') return reject(h, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    h->minor = p[7] - '0';
    return true;
}

/* Characters and percent-encoding of p[0, n). */
static bool check_encoding(ses_http_head *h, const char *p, size_t n, int class)
{
    for (size_t i = 0; i < n; i++) {
        if (!is(p[i], class)) return reject(h, 400, "invalid character in the request target");
        if (p[i] != '%') continue;
        if (n - i < 3 || ses_hex_digit(p[i + 1]) < 0 || ses_hex_digit(p[i + 2]) < 0)
            return reject(h, 400, "\"%\" without two hexadecimal digits in the request target");
        if (p[i + 1] == '0' && p[i + 2] == '0') return reject(h, 400, "NUL in the request target");
    }
    return true;
}

/* The part of a target after the authority: a path, and perhaps a query. */
static bool parse_path(ses_http_head *h, const char *p, size_t at, size_t n)
{
    const char *mark = memchr(p + at, '?', n);
    size_t path = mark ? (size_t)(mark - (p + at)) : n, query = n - path - !!mark;
    h->path = (ses_http_span){ (uint32_t)at, (uint32_t)path };
    h->query = (ses_http_span){ (uint32_t)(at + path + !!mark), (uint32_t)query };
    return check_encoding(h, p + at, path, PATH) && check_encoding(h, p + h->query.at, query, QUERY);
}

/* "http://host:port/path": servers must accept it, though only proxies receive it in practice. */
static bool parse_absolute(ses_http_head *h, const char *p, size_t at, size_t n)
{
    enum { SCHEME = 7 }; /* "http://" */
    size_t host = 0;
    at += SCHEME, n -= SCHEME;
    while (host < n && p[at + host] != '/' && p[at + host] != '?') host++;
    if (!host || !ses_http_host_name(p + at, host, NULL))
        return reject(h, 400, "invalid host in the request target");
    h->host = (ses_http_span){ (uint32_t)at, (uint32_t)host };
    h->has_authority = true;
    return parse_path(h, p, at + host, n - host);
}

static bool parse_target(ses_http_head *h, const char *p, size_t at, size_t n)
{
    bool options = equal(p + h->method.at, h->method.n, "options"), is_star = n == 1 && p[at] == '*';
    if (p[at] == '/') return parse_path(h, p, at, n);
    if (is_star && options) {
        h->path = (ses_http_span){ (uint32_t)at, 1 };
        return true;
    }
    if (n > 7 && ses_http_equal_nocase(p + at, 7, "http://")) return parse_absolute(h, p, at, n);
    return reject(h, 400, "the request target does not start with \"/\"");
}

static bool parse_request_line(ses_http_head *h, const char *p, size_t at, size_t n)
{
    size_t method = count(p + at, n, TOKEN), target = 0;
    if (!method || method == n || p[at + method] != ' ')
        return reject(h, 400, "invalid method in the request line");
    h->method = (ses_http_span){ (uint32_t)at, (uint32_t)method };
    if (equal(p + at, method, "connect")) return reject(h, 501, "CONNECT is not supported");
    at += method + 1, n -= method + 1;
    while (target < n && p[at + target] != ' ') target++;
    if (!target) return reject(h, 400, "empty request target");
    if (target == n) return reject(h, 400, "no HTTP version in the request line");
    if (!parse_version(h, p + at + target + 1, n - target - 1)) return false;
    h->has_request_line = true;
    return parse_target(h, p, at, target);
}

/* ---- headers with a meaning for the connection ---- */

static bool parse_length(ses_http_head *h, const char *p, size_t n)
{
    if (!n) return reject(h, 400, "empty Content-Length");
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(p[i])) return reject(h, 400, "Content-Length is not a number");
        if (h->content_length > (UINT64_MAX >> 1) / 10) return reject(h, 413, "Content-Length is too large");
        h->content_length = h->content_length * 10 + (uint64_t)(p[i] - '0');
    }
    h->has_length = true;
    return true;
}

static bool parse_coding(ses_http_head *h, const char *p, size_t n)
{
    if (!n) return reject(h, 400, "empty Transfer-Encoding");
    if (!equal(p, n, "chunked")) return reject(h, 501, "the only supported Transfer-Encoding is \"chunked\"");
    h->chunked = true;
    return true;
}

static bool parse_expect(ses_http_head *h, const char *p, size_t n)
{
    if (!equal(p, n, "100-continue")) return reject(h, 417, "the only supported Expect is \"100-continue\"");
    h->expects_continue = true;
    return true;
}

static bool parse_host(ses_http_head *h, const char *p, ses_http_span value)
{
    if (value.n && !ses_http_host_name(p + value.at, value.n, NULL))
        return reject(h, 400, "invalid Host header");
    if (!h->has_authority) return h->host = value, true;
    if (h->host.n == value.n && ses_http_equal_nocase(p + h->host.at, value.n, p + value.at)) return true;
    return reject(h, 400, "the Host header differs from the host in the request target");
}

/* A list of tokens; unknown ones are ignored. */
static bool parse_connection(ses_http_head *h, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = count(p + i, n - i, TOKEN);
        if (equal(p + i, len, "close")) h->says_close = true;
        if (equal(p + i, len, "keep-alive")) h->says_keep_alive = true;
        i += len;
        if (i < n && p[i] != ',' && p[i] != ' ' && p[i] != '\t')
            return reject(h, 400, "invalid Connection header");
        if (i < n) i++;
    }
    return true;
}

/* The headers that the parser reads, or that may not be repeated. */
static const struct {
    const char *name;
    const char *repeated; /* the reason if it is; NULL: may be repeated */
} known[] = {
    { "host", "repeated Host header" },
    { "expect", "repeated Expect header" },
    { "connection", NULL },
    { "content-type", "repeated Content-Type header" },
    { "authorization", "repeated Authorization header" },
    { "content-length", "repeated Content-Length header" },
    { "transfer-encoding", "repeated Transfer-Encoding header" },
};
enum { HOST, EXPECT, CONNECTION, CONTENT_TYPE, AUTHORIZATION, CONTENT_LENGTH, TRANSFER_ENCODING, KNOWN };

static int find_known(const char *p, size_t n)
{
    static const signed char by_length[] = { -1,
                                             -1,
                                             -1,
                                             -1,
                                             HOST,
                                             -1,
                                             EXPECT,
                                             -1,
                                             -1,
                                             -1,
                                             CONNECTION,
                                             -1,
                                             CONTENT_TYPE,
                                             AUTHORIZATION,
                                             CONTENT_LENGTH,
                                             -1,
                                             -1,
                                             TRANSFER_ENCODING };
    int i = n < SES_LEN(by_length) ? by_length[n] : -1;
    return i >= 0 && ses_http_equal_nocase(p, n, known[i].name) ? i : -1;
}

static bool use_field(ses_http_head *h, const char *p, ses_http_field f)
{
    const char *value = p + f.value.at;
    int i = find_known(p + f.name.at, f.name.n);
    if (i < 0) return true;
    if (h->seen >> i & 1 && known[i].repeated) return reject(h, 400, known[i].repeated);
    h->seen |= 1u << i;
    switch (i) {
    case HOST: return parse_host(h, p, f.value);
    case EXPECT: return parse_expect(h, value, f.value.n);
    case CONNECTION: return parse_connection(h, value, f.value.n);
    case CONTENT_LENGTH: return parse_length(h, value, f.value.n);
    case TRANSFER_ENCODING: return parse_coding(h, value, f.value.n);
    default: return true;
    }
}

/* ---- lines ---- */

static bool reject_name(ses_http_head *h, char c, size_t at)
{
    if (at == 0 && (c == ' ' || c == '\t')) return reject(h, 400, "folded header line");
    if (at == 0 && c == ':') return reject(h, 400, "empty header name");
    if (c == ' ' || c == '\t') return reject(h, 400, "space before the colon of a header");
    return reject(h, 400, "invalid character in a header name");
}

static bool parse_field(ses_http_head *h, const char *p, size_t at, size_t n)
{
    size_t name = count(p + at, n, TOKEN);
    if (name == n) return reject(h, 400, "header line without a colon");
    if (!name || p[at + name] != ':') return reject_name(h, p[at + name], name);
    size_t from = at + name + 1, end = at + n;
    for (size_t i = from; i < end; i++)
        if (!is_value(p[i])) return reject(h, 400, "control character in a header");
    while (from < end && (p[from] == ' ' || p[from] == '\t')) from++;
    while (end > from && (p[end - 1] == ' ' || p[end - 1] == '\t')) end--;
    if (h->fields == SES_HTTP_MAX_FIELDS) return reject(h, 431, "more than 100 headers");
    ses_http_field f = { { (uint32_t)at, (uint32_t)name }, { (uint32_t)from, (uint32_t)(end - from) } };
    h->field[h->fields++] = f;
    return use_field(h, p, f);
}

/* Checks after the last header. */
static bool finish(ses_http_head *h, const char *p)
{
    const char *method = p + h->method.at;
    size_t n = h->method.n;
    bool has_body = equal(method, n, "post") || equal(method, n, "put") || equal(method, n, "patch");
    if (h->has_length && h->chunked) return reject(h, 400, "Content-Length with Transfer-Encoding");
    if (h->minor == 0 && h->chunked) return reject(h, 400, "Transfer-Encoding in an HTTP/1.0 request");
    if (h->minor == 0 && has_body && !h->has_length)
        return reject(h, 411, "HTTP/1.0 request without Content-Length");
    if (h->minor == 1 && !(h->seen >> HOST & 1)) return reject(h, 400, "missing Host header");
    h->keep_alive = !h->says_close && (h->minor == 1 || h->says_keep_alive);
    if (h->minor == 0) h->expects_continue = false;
    return true;
}

static bool too_long(ses_http_head *h)
{
    if (h->has_request_line) return reject(h, 431, "the headers are too long");
    return reject(h, 414, "the request line is too long");
}

/* A line without its CRLF. */
static bool parse_line(ses_http_head *h, const char *p, size_t at, size_t n, bool *end)
{
    if (h->has_request_line) {
        *end = n == 0;
        return *end ? finish(h, p) : parse_field(h, p, at, n);
    }
    if (n == 0 && at == 0) return true; /* one empty line before a request is ignored (RFC 9112, 2.2) */
    if (n == 0) return reject(h, 400, "empty lines before the request");
    return parse_request_line(h, p, at, n);
}

ses_http_result ses_http_head_parse(ses_http_head *h, const char *p, size_t n)
{
    bool end = false;
    if (h->status) return SES_HTTP_INVALID;
    if (h->scanned == 0 && n && !is(p[0], TOKEN) && p[0] != '\r') { /* for example a TLS client */
        reject(h, 400, "the request does not start with a method");
        return SES_HTTP_INVALID;
    }
    while (!end) {
        size_t limit = h->has_request_line || h->max_bytes < SES_HTTP_MAX_REQUEST_LINE
                           ? h->max_bytes
                           : SES_HTTP_MAX_REQUEST_LINE;
        const char *lf = n > h->scanned ? memchr(p + h->scanned, '\n', n - h->scanned) : NULL;
        size_t next = lf ? (size_t)(lf - p) + 1 : n;
        if (lf ? next > limit : n >= limit) return too_long(h), SES_HTTP_INVALID;
        if (!lf) return h->scanned = n, SES_HTTP_MORE;
        if (next - h->line < 2 || lf[-1] != '\r') {
            reject(h, 400, "line that ends with LF instead of CR LF");
            return SES_HTTP_INVALID;
        }
        if (!parse_line(h, p, h->line, next - h->line - 2, &end)) return SES_HTTP_INVALID;
        h->line = h->scanned = next;
    }
    h->bytes = h->line;
    return SES_HTTP_COMPLETE;
}
