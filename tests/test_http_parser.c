/* The HTTP parser: accepted and rejected heads, chunked bodies, paths, host names; the portions in which
 * bytes arrive do not matter. */
#include "check.h"
#include "serve/http/http_parser.h"

#define H "Host: a\r\n"

/* ---- heads ---- */

typedef struct bad_case {
    int status;
    const char *reason; /* part of it */
    const char *text;
    size_t n; /* 0: the length of text */
} bad_case;

#define WITH_NUL(text) text, sizeof(text) - 1

static const bad_case bad[] = {
    /* the request line */
    { 400, "method", "GET\r\n" H "\r\n" },
    { 400, "version", "GET /\r\n\r\n" }, /* HTTP/0.9 */
    { 400, "method", " GET / HTTP/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / \r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/1.1 \r\n" H "\r\n" },
    { 400, "empty request target", "GET  / HTTP/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET /  HTTP/1.1\r\n" H "\r\n" },
    { 400, "method", "GET\t/ HTTP/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / http/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/1.11\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/11.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTPS/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / x HTTP/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTQ/1.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/1,1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/x.1\r\n" H "\r\n" },
    { 400, "HTTP/1.1", "GET / HTTP/1.x\r\n" H "\r\n" },
    { 505, "HTTP/1.1", "GET / HTTP/1.2\r\n" H "\r\n" },
    { 505, "HTTP/1.1", "GET / HTTP/0.9\r\n" H "\r\n" },
    { 505, "HTTP/1.1", "GET / HTTP/2.0\r\n" H "\r\n" },
    { 505, "HTTP/1.1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" }, /* the preface of HTTP/2 */
    { 400, "method", "G(ET / HTTP/1.1\r\n" H "\r\n" },
    { 400, "method", "G\xc3\x89T / HTTP/1.1\r\n" H "\r\n" },
    { 400, "method", "\x16\x03\x01\x02" }, /* TLS */
    { 400, "method", WITH_NUL("\0GET / HTTP/1.1\r\n") },
    { 400, "empty lines", "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n" },
    { 400, "method", "\nGET / HTTP/1.1\r\n" H "\r\n" },
    { 501, "CONNECT", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n" },
    /* the target */
    { 400, "target", "OPTIONS *a HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET a HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET * HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET https://a/ HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET http:// HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET http:///x HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET http://u@a/ HTTP/1.1\r\n" H "\r\n" },
    { 400, "differs", "GET http://b/ HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /a\x01 HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /a\x7f HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /a#b HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /a\\b HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /\"a HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", "GET /a?<b> HTTP/1.1\r\n" H "\r\n" },
    { 400, "target", WITH_NUL("GET /a\0b HTTP/1.1\r\n" H "\r\n") },
    { 400, "NUL", "GET /a%00b HTTP/1.1\r\n" H "\r\n" },
    { 400, "NUL", "GET /a?b%00 HTTP/1.1\r\n" H "\r\n" },
    { 400, "hexadecimal", "GET /a% HTTP/1.1\r\n" H "\r\n" },
    { 400, "hexadecimal", "GET /a%4 HTTP/1.1\r\n" H "\r\n" },
    { 400, "hexadecimal", "GET /a%g4 HTTP/1.1\r\n" H "\r\n" },
    { 400, "hexadecimal", "GET /a%4g HTTP/1.1\r\n" H "\r\n" },
    { 400, "hexadecimal", "GET /?a%zz HTTP/1.1\r\n" H "\r\n" },
    /* lines */
    { 400, "LF", "GET / HTTP/1.1\n" H "\r\n" },
    { 400, "LF", "GET / HTTP/1.1\r\nHost: a\n\r\n" },
    { 400, "LF", "GET / HTTP/1.1\r\n" H "\n" },
    { 400, "HTTP/1.1", "GET / HTTP/1.1\r\r\n" H "\r\n" },
    { 400, "control", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n" },
    { 400, "control", "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n" },
    { 400, "control", "GET / HTTP/1.1\r\n" H "X: a\x01\r\n\r\n" },
    { 400, "control", "GET / HTTP/1.1\r\n" H "X: a\x7f\r\n\r\n" },
    { 400, "control", WITH_NUL("GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n") },
    { 400, "folded", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n" },
    { 400, "folded", "GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n" },
    { 400, "folded", "GET / HTTP/1.1\r\n Host: a\r\n\r\n" },
    { 400, "before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n" },
    { 400, "before the colon", "GET / HTTP/1.1\r\n" H "Content-Length\t: 5\r\n\r\n" },
    { 400, "empty header name", "GET / HTTP/1.1\r\n" H ": a\r\n\r\n" },
    { 400, "colon", "GET / HTTP/1.1\r\n" H "X\r\n\r\n" },
    { 400, "header name", "GET / HTTP/1.1\r\n" H "X[]: a\r\n\r\n" },
    { 400, "header name", "GET / HTTP/1.1\r\n" H "X\xc3\xa9: a\r\n\r\n" },
    { 400, "header name", WITH_NUL("GET / HTTP/1.1\r\n" H "X\0: a\r\n\r\n") },
    { 400, "header name", "GET / HTTP/1.1\r\n" H "\x0bTransfer-Encoding: chunked\r\n\r\n" },
    /* framing */
    { 400, "repeated Content-Length",
      "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" },
    { 400, "repeated Content-Length",
      "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\ncontent-length: 5\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: 5.0\r\n\r\n" },
    { 400, "not a number", "POST / HTTP/1.1\r\n" H "Content-Length: \"5\"\r\n\r\n" },
    { 400, "empty Content-Length", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n" },
    { 413, "too large", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551616\r\n\r\n" },
    { 413, "too large", "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999\r\n\r\n" },
    { 400, "with Transfer-Encoding",
      "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" },
    { 400, "with Transfer-Encoding",
      "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" },
    { 400, "with Transfer-Encoding",
      "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" },
    { 400, "repeated Transfer-Encoding",
      "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" },
    { 501, "chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n" },
    { 501, "chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n" },
    { 501, "chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n" },
    { 501, "chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n" },
    { 501, "chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n" },
    { 501, "chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n" },
    { 400, "empty Transfer", "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n" },
    { 400, "HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" },
    { 411, "Content-Length", "POST / HTTP/1.0\r\n\r\n" },
    { 411, "Content-Length", "PUT / HTTP/1.0\r\n\r\n" },
    { 411, "Content-Length", "PATCH / HTTP/1.0\r\n\r\n" },
    /* other headers */
    { 400, "missing Host", "GET / HTTP/1.1\r\n\r\n" },
    { 400, "repeated Host", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n" },
    { 400, "repeated Host", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n" },
    { 400, "invalid Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n" },
    { 400, "invalid Host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" },
    { 400, "invalid Host", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n" },
    { 400, "invalid Host", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n" },
    { 400, "invalid Host", "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n" },
    { 417, "Expect", "POST / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n" },
    { 400, "repeated Expect",
      "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n" },
    { 400, "Connection", "GET / HTTP/1.1\r\n" H "Connection: cl@se\r\n\r\n" },
    { 400, "Authorization", "GET / HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: b\r\n\r\n" },
    { 400, "Content-Type", "GET / HTTP/1.1\r\n" H "Content-Type: a/b\r\nContent-type: a/c\r\n\r\n" },
};

static size_t length_of(const bad_case *c) { return c->n ? c->n : strlen(c->text); }

/* Parses text in portions of `step` bytes. Like a socket, it may stop reading once the result is known. */
static ses_http_result parse(ses_http_head *h, const char *text, size_t n, size_t step, size_t max)
{
    ses_http_result r = SES_HTTP_MORE;
    ses_http_head_begin(h, max);
    for (size_t have = 0; have < n && r == SES_HTTP_MORE;) {
        have = n - have < step ? n : have + step;
        char *exact = malloc(have); /* a read past the bytes is detected by ASan */
        memcpy(exact, text, have);
        r = ses_http_head_parse(h, exact, have);
        free(exact);
    }
    return r;
}

static void test_bad(void)
{
    static ses_http_head h;
    for (size_t i = 0; i < SES_LEN(bad); i++)
        for (size_t step = 1; step <= 1024; step = step < 3     ? step + 1
                                                   : step == 3  ? 17
                                                   : step == 17 ? 1024
                                                                : 2048) {
            ses_http_result r = parse(&h, bad[i].text, length_of(&bad[i]), step, 16384);
            CHECK_MSG(r == SES_HTTP_INVALID && h.status == bad[i].status && strstr(h.reason, bad[i].reason),
                      "case %zu, portions of %zu: result %d, %d \"%s\", wanted %d \"%s\": %s", i, step, r,
                      h.status, r == SES_HTTP_INVALID ? h.reason : "", bad[i].status, bad[i].reason,
                      bad[i].text);
        }
}

static const char *text_of(const char *p, ses_http_span s)
{
    static char buffer[4][256];
    static int next;
    char *out = buffer[next++ % 4];
    snprintf(out, 256, "%.*s", (int)s.n, p + s.at);
    return out;
}

static void test_good(void)
{
    static ses_http_head h;
    static const char text[] =
        "POST /v1/a%20b?x={1}|2 HTTP/1.1\r\nhOST: [::1]:80\r\nX-Empty:\r\nX-Tab:\t a\tb \t\r\n"
        "X-High: \xc3\xa9\r\nContent-Length: 005\r\nExpect: 100-Continue\r\n\r\nhello";
    for (size_t step = 1; step < sizeof text; step++) {
        ses_http_result r = parse(&h, text, sizeof text - 1, step, 16384);
        CHECK_MSG(r == SES_HTTP_COMPLETE, "%zu: %s", step, h.reason ? h.reason : "");
        CHECK(h.bytes == sizeof text - 1 - 5 && h.minor == 1 && h.keep_alive && h.expects_continue);
        CHECK(h.has_length && h.content_length == 5 && !h.chunked && h.fields == 6);
    }
    CHECK_STR(text_of(text, h.method), "POST");
    CHECK_STR(text_of(text, h.path), "/v1/a%20b");
    CHECK_STR(text_of(text, h.query), "x={1}|2");
    CHECK_STR(text_of(text, h.host), "[::1]:80");
    CHECK_STR(text_of(text, h.field[1].name), "X-Empty");
    CHECK_STR(text_of(text, h.field[1].value), "");
    CHECK_STR(text_of(text, h.field[2].value), "a\tb");
    CHECK_STR(text_of(text, h.field[3].value), "\xc3\xa9");
}

/* text: accepted; the flags that follow from it. */
static const struct {
    const char *text;
    bool keep_alive, chunked, expects;
    const char *path, *host;
} good[] = {
    { "GET / HTTP/1.1\r\nHost:\r\n\r\n", true, false, false, "/", "" },
    { "\r\nGET / HTTP/1.1\r\n" H "\r\n", true, false, false, "/", "a" },
    { "GET / HTTP/1.0\r\n\r\n", false, false, false, "/", "" },
    { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false, false, "/", "" },
    { "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false, false, false, "/", "" },
    { "GET / HTTP/1.1\r\n" H "Connection: x\r\nConnection: Close\r\n\r\n", false, false, false, "/", "a" },
    { "GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", true, false, false, "/", "a" },
    { "POST / HTTP/1.1\r\n" H "\r\n", true, false, false, "/", "a" },
    { "POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", true, true, false, "/", "a" },
    { "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", false, false, false, "/", "" },
    { "GET http://A.b:80?q HTTP/1.1\r\nHost: a.B:80\r\n\r\n", true, false, false, "", "A.b:80" },
    { "GET HTTP://a/x/y?z HTTP/1.1\r\n" H "\r\n", true, false, false, "/x/y", "a" },
    { "GET http://b HTTP/1.1\r\nHost: b\r\n\r\n", true, false, false, "", "b" },
    { "OPTIONS * HTTP/1.1\r\n" H "\r\n", true, false, false, "*", "a" },
    { "M-SEARCH //x/?a?b\\c HTTP/1.1\r\n" H "\r\n", true, false, false, "//x/", "a" },
};

static void test_flags(void)
{
    static ses_http_head h;
    for (size_t i = 0; i < SES_LEN(good); i++) {
        size_t n = strlen(good[i].text);
        ses_http_result r = parse(&h, good[i].text, n, n, 16384);
        CHECK_MSG(r == SES_HTTP_COMPLETE && h.bytes == n, "case %zu: %s", i, h.reason ? h.reason : "");
        CHECK_MSG(h.keep_alive == good[i].keep_alive && h.chunked == good[i].chunked &&
                      h.expects_continue == good[i].expects,
                  "case %zu", i);
        CHECK_STR(text_of(good[i].text, h.path), good[i].path);
        CHECK_STR(text_of(good[i].text, h.host), good[i].host);
    }
}

/* A head with this many headers. */
static size_t put_fields(char *out, int fields)
{
    size_t n = (size_t)snprintf(out, 64, "GET / HTTP/1.1\r\n" H);
    for (int i = 1; i < fields; i++) n += (size_t)snprintf(out + n, 64, "X: a\r\n");
    return n + (size_t)snprintf(out + n, 64, "\r\n");
}

/* Each byte in each part of a request, against lists of the accepted characters. */
static void test_characters(void)
{
    static ses_http_head h;
    static const char token[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const struct {
        const char *before, *after, *rejected; /* printable ASCII characters; NULL: all but tokens */
        bool high, tab;                        /* bytes above 127 are accepted; tab is */
    } parts[] = {
        { "G", "T / HTTP/1.1\r\n" H "\r\n", NULL, false, false },
        { "GET / HTTP/1.1\r\n" H "X", "Y: a\r\n\r\n", NULL, false, false },
        { "GET / HTTP/1.1\r\n" H "X: a", "b\r\n\r\n", "", true, true },
        { "GET /", "41 HTTP/1.1\r\n" H "\r\n", "\"<>#\\ ", false, false },
        { "GET /?", "41 HTTP/1.1\r\n" H "\r\n", "\"<># ", false, false },
    };
    for (size_t i = 0; i < SES_LEN(parts); i++)
        for (int c = 0; c < 256; c++) {
            char text[128];
            size_t n = strlen(parts[i].before), m = strlen(parts[i].after);
            memcpy(text, parts[i].before, n);
            text[n] = (char)c;
            memcpy(text + n + 1, parts[i].after, m);
            bool printable = c >= 0x20 && c < 0x7f;
            bool want = c >= 0x80           ? parts[i].high
                        : c == '\t'         ? parts[i].tab
                        : !printable        ? false
                        : parts[i].rejected ? !strchr(parts[i].rejected, c)
                                            : !!strchr(token, c);
            /* "X:Y: a" is a header with another value, and "G" and a space end the method. */
            if (i == 1 && c == ':') want = true;
            ses_http_result r = parse(&h, text, n + m + 1, n + m + 1, 16384);
            CHECK_MSG((r == SES_HTTP_COMPLETE) == want, "part %zu, byte %d: %d", i, c, r);
        }
}

static void test_limits(void)
{
    static ses_http_head h;
    static char text[70000];
    for (size_t step = 1; step < 70000; step = step * 7 + 1) {
        memset(text, 'a', sizeof text);
        memcpy(text, "GET /", 5);
        CHECK(parse(&h, text, sizeof text, step, 65536) == SES_HTTP_INVALID && h.status == 414);
        memcpy(text, "GET / HTTP/1.1\r\nX: ", 19);
        CHECK(parse(&h, text, sizeof text, step, 16384) == SES_HTTP_INVALID && h.status == 431);
        CHECK(parse(&h, text, 999, step, 1000) == SES_HTTP_MORE);
        CHECK(parse(&h, text, 1000, step, 1000) == SES_HTTP_INVALID && h.status == 431);
        memcpy(text + 1000, "\r\n\r\n", 4); /* complete, but longer than the limit */
        CHECK(parse(&h, text, 1004, step, 1003) == SES_HTTP_INVALID && h.status == 431);
        memcpy(text + 16, H, 9);
        text[25] = 'X', text[26] = ':';
        CHECK(parse(&h, text, 1004, step, 1004) == SES_HTTP_COMPLETE);
    }
    for (int fields = 99; fields <= 101; fields++) {
        size_t n = put_fields(text, fields);
        ses_http_result r = parse(&h, text, n, n, 65536);
        CHECK(fields <= 100 ? r == SES_HTTP_COMPLETE && h.fields == fields
                            : r == SES_HTTP_INVALID && h.status == 431);
    }
}

/* ---- chunked bodies ---- */

/* want: the body, or NULL if the status is expected. */
static const struct {
    const char *text, *want;
    int status;
} chunked[] = {
    { "0\r\n\r\n", "", 0 },
    { "5\r\nhello\r\n0\r\n\r\n", "hello", 0 },
    { "1\r\na\r\n002\r\nbc\r\n0\r\n\r\n", "abc", 0 },
    { "a;x=y\r\n0123456789\r\n0;z\r\n\r\n", "0123456789", 0 },
    { "A ;x\r\n0123456789\r\n0\r\n\r\n", NULL, 400 },
    { "1;\"a;b\"\r\na\r\n0\r\nX-Trailer: 1\r\nY:\r\n\r\n", "a", 0 },
    { "\r\n", NULL, 400 },
    { "5\nhello\r\n0\r\n\r\n", NULL, 400 },
    { "5\rhello\r\n0\r\n\r\n", NULL, 400 },
    { "5\r\r\nhello\r\n0\r\n\r\n", NULL, 400 },
    { "5\r\nhello0\r\n\r\n", NULL, 400 },
    { "5\r\nhello\n0\r\n\r\n", NULL, 400 },
    { "5\r\nhello!\r\n0\r\n\r\n", NULL, 400 },
    { "5\r\nhello\r\n0\r\n\n", NULL, 400 },
    { "5\r\nhello\r\n0\n\n", NULL, 400 },
    { "-1\r\n", NULL, 400 },
    { "+1\r\na\r\n", NULL, 400 },
    { " 1\r\na\r\n", NULL, 400 },
    { "1 \r\na\r\n", NULL, 400 },
    { "0x1\r\na\r\n", NULL, 400 },
    { "g\r\n", NULL, 400 },
    { "1;a\x01\r\n", NULL, 400 },
    { "1;a\n\r\n", NULL, 400 },
    { "00000000000000001\r\n", NULL, 400 },
    { "FFFFFFFFFFFFFFFF\r\n", NULL, 413 },
    { "65\r\n", NULL, 413 }, /* 101 bytes; the limit is 100 */
    { "64\r\n", NULL, -1 },
    { "2\r\nab\r\n63\r\n", NULL, 413 },
    { "5\x0b\r\nhello\r\n", NULL, 400 },
    { "1\r\na\rb", NULL, 400 },
    { "5x\nhello\r\n0\r\n\r\n", NULL, 400 },
    { "0\r\nX: a\rb", NULL, 400 },
    { "0\r\nX: a\x7f\r\n\r\n", NULL, 400 },
    { "0\r\n\rx", NULL, 400 },
    { "a\r\n0123456789012", NULL, 400 },
    { "60\r\n", NULL, -1 }, /* 96 bytes: fits, but does not arrive */
    { "0\r\n X: a\r\n\r\n", NULL, 400 },
    { "0\r\nX : a\r\n\r\n", NULL, 400 },
    { "0\r\nX: a\n\r\n", NULL, 400 },
    { "0\r\n: a\r\n\r\n", NULL, 400 },
};

/* The decoded body, its length, and the bytes used. */
static ses_http_result decode(ses_http_chunks *c, const char *text, size_t n, size_t step, char *out,
                              size_t *len, size_t *used)
{
    ses_http_result r = SES_HTTP_MORE;
    *len = *used = 0;
    ses_http_chunks_begin(c, 100);
    while (*used < n && r == SES_HTTP_MORE) {
        size_t k = n - *used < step ? n - *used : step, produced;
        r = ses_http_chunks_decode(c, text + *used, &k, out + *len, &produced);
        *used += k, *len += produced;
    }
    return r;
}

static void test_chunks(void)
{
    ses_http_chunks c;
    char out[16384], text[16384];
    size_t len, used;
    for (size_t i = 0; i < SES_LEN(chunked); i++)
        for (size_t step = 1; step < 200; step += step < 8 ? 1 : 180) {
            size_t n = (size_t)snprintf(text, sizeof text, "%sGET /", chunked[i].text); /* the next request */
            ses_http_result r = decode(&c, text, n, step, out, &len, &used);
            if (chunked[i].want)
                CHECK_MSG(r == SES_HTTP_COMPLETE && used == n - 5 && len == strlen(chunked[i].want) &&
                              !memcmp(out, chunked[i].want, len),
                          "case %zu, portions of %zu", i, step);
            else if (chunked[i].status < 0)
                CHECK_MSG(r == SES_HTTP_MORE, "case %zu", i);
            else
                CHECK_MSG(r == SES_HTTP_INVALID && c.status == chunked[i].status,
                          "case %zu, portions of %zu: %d", i, step, c.status);
        }
    memset(text, 'x', sizeof text);
    memcpy(text, "1;", 2);
    CHECK(decode(&c, text, 200, 1, out, &len, &used) == SES_HTTP_MORE);
    CHECK(decode(&c, text, sizeof text, 1, out, &len, &used) == SES_HTTP_INVALID && c.status == 400 &&
          used < 300);
    memcpy(text + 256, "\r\n", 2); /* a line of 256 bytes: the limit */
    CHECK(decode(&c, text, 258, 1, out, &len, &used) == SES_HTTP_MORE);
    memcpy(text + 256, "x\r\n", 3);
    CHECK(decode(&c, text, 259, 1, out, &len, &used) == SES_HTTP_INVALID);
    memcpy(text, "0\r\nX:", 5);
    memcpy(text + 256, "xxx", 3);
    memcpy(text + 3 + SES_HTTP_MAX_TRAILERS - 4, "\r\n\r\n", 4);
    CHECK(decode(&c, text, sizeof text, 1, out, &len, &used) == SES_HTTP_COMPLETE);
    memcpy(text + 3 + SES_HTTP_MAX_TRAILERS - 4, "x\r\n\r\n", 5);
    CHECK(decode(&c, text, sizeof text, 1, out, &len, &used) == SES_HTTP_INVALID && c.status == 431);
    memset(text + 3, 'x', sizeof text - 3);
    memcpy(text, "0\r\nX:", 5);
    CHECK(decode(&c, text, sizeof text, 1, out, &len, &used) == SES_HTTP_INVALID && c.status == 431);
    size_t n = 0; /* short extensions in many chunks */
    while (n < sizeof text - 300) n += (size_t)snprintf(text + n, 300, "1;%0200d\r\na\r\n", 0);
    CHECK(decode(&c, text, n, n, out, &len, &used) == SES_HTTP_INVALID && c.status == 400 && used < 6000);
}

/* ---- paths and hosts ---- */

static void test_paths(void)
{
    static const char *const paths[][2] = {
        { "/", "/" },
        { "", "/" },
        { "/a/b", "/a/b" },
        { "/a%2Fb", "/a/b" },
        { "/%41%c3%A9", "/A\xc3\xa9" },
        { "/a/./b", "/a/b" },
        { "/a/../b", "/b" },
        { "/a/b/..", "/a/" },
        { "/a/.", "/a/" },
        { "/.", "/" },
        { "/a/..", "/" },
        { "/%2e%2E/", NULL },
        { "/..", NULL },
        { "/a/../../b", NULL },
        { "/a/%2e%2e/b", "/b" },
        { "/...", "/..." },
        { "/.a", "/.a" },
        { "/a..", "/a.." },
        { "//a", "//a" },
        { "//..", "/" },
        { "/%1f", NULL },
        { "/%20", "/ " },
        { "/%0a", NULL },
        { "/%7f", NULL },
        { "/%ff", NULL },
        { "/%c0%80", NULL },
        { "*", "*" },
        { "/%252e", "/%2e" },
    };
    for (size_t i = 0; i < SES_LEN(paths); i++) {
        char out[64] = "";
        const char *reason = NULL;
        size_t n = ses_http_path_decode(paths[i][0], strlen(paths[i][0]), out, &reason);
        CHECK_MSG(paths[i][1] ? n == strlen(paths[i][1]) && !strcmp(out, paths[i][1])
                              : n == SIZE_MAX && reason,
                  "%s: %s", paths[i][0], out);
    }
}

static void test_hosts(void)
{
    static const char *const hosts[][2] = {
        { "a", "a" },
        { "a.b-c_d:80", "a.b-c_d" },
        { "127.0.0.1:65535", "127.0.0.1" },
        { "[::1]", "::1" },
        { "[::1]:80", "::1" },
        { "", NULL },
        { ":80", NULL },
        { "a:", NULL },
        { "a:65536", NULL },
        { "a:123456", NULL },
        { "a:8 ", NULL },
        { "a:b", NULL },
        { "[::1", NULL },
        { "[]", NULL },
        { "[::1]80", NULL },
        { "[::g]", NULL },
        { "a%2eb", NULL },
        { "a b", NULL },
    };
    char text[300];
    memset(text, 'a', sizeof text);
    CHECK(ses_http_host_name(text, 255, NULL) && !ses_http_host_name(text, 256, NULL));
    for (int c = 0; c < 256; c++) { /* as a name, and as a port */
        char one[4] = { 'a', ':', (char)c, 0 };
        bool digit = c >= '0' && c <= '9', letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        CHECK_MSG(ses_http_host_name(one + 2, 1, NULL) ==
                      (digit || letter || c == '.' || c == '-' || c == '_'),
                  "%d", c);
        CHECK_MSG(ses_http_host_name(one, 3, NULL) == digit, "%d", c);
    }
    for (size_t i = 0; i < SES_LEN(hosts); i++) {
        ses_string name = { 0 };
        bool ok = ses_http_host_name(hosts[i][0], strlen(hosts[i][0]), &name);
        CHECK_MSG(ok == !!hosts[i][1], "%s", hosts[i][0]);
        if (ok) CHECK(name.n == strlen(hosts[i][1]) && !memcmp(name.p, hosts[i][1], name.n));
    }
}

int main(void)
{
    test_bad();
    test_good();
    test_flags();
    test_characters();
    test_limits();
    test_chunks();
    test_paths();
    test_hosts();
    return check_report();
}
