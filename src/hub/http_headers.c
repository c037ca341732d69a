/* Header lines of answers, and URLs. */
#include "http_headers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const double LONGEST_WAIT = 1e6;

ses_http_headers ses_http_headers_new(void)
{
    return (ses_http_headers){ .retry_after = -1, .limit_resets = -1 };
}

/* Digits at *p, at most up to `end`; advances *p. False: none, or the number does not fit. */
static bool read_digits(const char **p, const char *end, uint64_t *out)
{
    const char *s = *p;
    for (*out = 0; s < end && *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(*out, (uint64_t)10, out) ||
            __builtin_add_overflow(*out, (uint64_t)(*s - '0'), out))
            return false;
    bool any = s > *p;
    *p = s;
    return any;
}

/* The whole value is one number. */
static bool read_number(ses_string v, uint64_t *out)
{
    const char *p = v.p;
    return read_digits(&p, v.p + v.n, out) && p == v.p + v.n;
}

static double read_seconds(ses_string v)
{
    uint64_t n;
    if (!read_number(v, &n)) return -1;
    return (double)n < LONGEST_WAIT ? (double)n : LONGEST_WAIT;
}

static void read_range(ses_http_headers *r, ses_string v)
{
    const char *p = v.p, *end = v.p + v.n;
    uint64_t first, last;
    if (v.n < 6 || strncasecmp(p, "bytes ", 6)) return;
    p += 6;
    if (!read_digits(&p, end, &first) || p == end || *p++ != '-' || !read_digits(&p, end, &last) ||
        last < first || p == end || *p++ != '/')
        return;
    r->total = UINT64_MAX;
    if ((size_t)(end - p) == 1 && *p == '*')
        r->has_range = true;
    else
        r->has_range = read_digits(&p, end, &r->total) && p == end && last < r->total;
    r->first = first;
}

/* Parameters r (remaining requests) and t (seconds until the limit is reset) of "NAME";r=0;t=55. */
static void read_limit(ses_http_headers *r, ses_string v)
{
    uint64_t value, remaining = 1, reset = 0;
    bool has_reset = false;
    for (size_t at = 0; at < v.n;) {
        const char *semicolon = memchr(v.p + at, ';', v.n - at);
        size_t n = semicolon ? (size_t)(semicolon - (v.p + at)) : v.n - at;
        ses_string part = ses_trim((ses_string){ v.p + at, n });
        bool number =
            part.n > 2 && part.p[1] == '=' && read_number((ses_string){ part.p + 2, part.n - 2 }, &value);
        if (number && part.p[0] == 'r') remaining = value;
        if (number && part.p[0] == 't') reset = value, has_reset = true;
        at += n + 1;
    }
    if (has_reset && !remaining)
        r->limit_resets = (double)reset < LONGEST_WAIT ? (double)reset : LONGEST_WAIT;
}

void ses_http_headers_read(ses_http_headers *r, const char *line, size_t n)
{
    if (n >= 5 && !memcmp(line, "HTTP/", 5)) {
        *r = ses_http_headers_new();
        return;
    }
    const char *colon = memchr(line, ':', n);
    if (!colon) return;
    ses_string name = { line, (size_t)(colon - line) };
    ses_string v = ses_trim((ses_string){ colon + 1, n - name.n - 1 });
    static const char *const names[] = { "content-range", "content-length",  "retry-after",
                                         "ratelimit",     "x-error-message", "x-error-code" };
    size_t i = 0;
    while (i < SES_LEN(names) && (strlen(names[i]) != name.n || strncasecmp(names[i], name.p, name.n))) i++;
    switch (i) {
    case 0: read_range(r, v); break;
    case 1: r->has_length = read_number(v, &r->length); break;
    case 2: r->retry_after = read_seconds(v); break;
    case 3: read_limit(r, v); break;
    case 4: ses_quote(r->error, sizeof r->error, v.p, v.n); break;
    case 5: ses_quote(r->code, sizeof r->code, v.p, v.n); break;
    default: break;
    }
}

/* ---- URLs ---- */

/* "scheme://host:port" without user info; the length of the part before the path. False: not http(s). */
static bool split(const char *url, ses_string *scheme, ses_string *host, ses_string *port)
{
    const char *colon = strstr(url, "://");
    if (!colon) return false;
    *scheme = (ses_string){ url, (size_t)(colon - url) };
    bool tls = scheme->n == 5 && !strncasecmp(url, "https", 5);
    if (!tls && (scheme->n != 4 || strncasecmp(url, "http", 4))) return false;
    const char *p = colon + 3;
    size_t n = strcspn(p, "/?#\\");
    if (memchr(p, '@', n)) return false; /* user info: never the hub's */
    const char *bracket = n && *p == '[' ? memchr(p, ']', n) : NULL;
    const char *from = bracket ? bracket : p;
    const char *at = memchr(from, ':', n - (size_t)(from - p));
    *host = (ses_string){ p, at ? (size_t)(at - p) : n };
    *port = at ? (ses_string){ at + 1, n - host->n - 1 } : (ses_string){ tls ? "443" : "80", tls ? 3 : 2 };
    return host->n > 0;
}

static bool same(ses_string a, ses_string b) { return a.n == b.n && !strncasecmp(a.p, b.p, a.n); }

bool ses_url_same_origin(const char *a, const char *b)
{
    ses_string as, ah, ap, bs, bh, bp;
    return split(a, &as, &ah, &ap) && split(b, &bs, &bh, &bp) && same(as, bs) && same(ah, bh) && same(ap, bp);
}

void ses_url_put_path(ses_buf *b, const char *path)
{
    for (; *path; path++) {
        bool plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
                     (*path >= '0' && *path <= '9') || strchr("-._~/", *path);
        if (plain)
            ses_buf_put(b, *path);
        else
            ses_buf_appendf(b, "%%%02X", (unsigned)(unsigned char)*path);
    }
}
