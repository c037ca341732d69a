/* Parser of HTTP/1.1 requests: a strict subset of RFC 9112, because two programs that disagree about the
 * end of a request can be made to disagree about who sent it (request smuggling). A head is rejected if
 * it contains any form that a lenient parser may read differently: a line that ends with LF alone, CR
 * inside a line, control characters, folded lines, a space before the colon, a repeated Content-Length
 * (even an equal one), Content-Length with Transfer-Encoding, a transfer coding other than "chunked", a
 * repeated or missing Host.
 *
 * The functions only read bytes: no memory, no sockets. Bytes may arrive in any portions; the result does
 * not depend on them. */
#ifndef SES_SERVE_HTTP_PARSER_H
#define SES_SERVE_HTTP_PARSER_H

#include "sesame/base.h"

enum {
    SES_HTTP_MAX_FIELDS = 100,         /* headers of a request; more: 431 */
    SES_HTTP_MAX_REQUEST_LINE = 8192,  /* bytes; more: 414 */
    SES_HTTP_MAX_CHUNK_LINE = 256,     /* bytes of a chunk size with its extensions */
    SES_HTTP_MAX_EXTENSIONS = 4096,    /* bytes of chunk extensions in a body */
    SES_HTTP_MAX_TRAILERS = 8192,      /* bytes after the last chunk */
    SES_HTTP_MAX_HEAD_BYTES = 1 << 20, /* largest limit for a head */
};

typedef enum {
    SES_HTTP_MORE,     /* incomplete: more bytes are needed */
    SES_HTTP_COMPLETE, /* complete and valid */
    SES_HTTP_INVALID   /* see status and reason */
} ses_http_result;

/* Range of bytes in the head. */
typedef struct ses_http_span {
    uint32_t at, n;
} ses_http_span;

typedef struct ses_http_field {
    ses_http_span name, value; /* value: without spaces and tabs around it */
} ses_http_field;

/* A request line and its headers. Spans refer to the bytes given to ses_http_head_parse. */
typedef struct ses_http_head {
    /* The result, if complete. */
    size_t bytes; /* length of the head, with the empty line at its end */
    ses_http_span method;
    ses_http_span path;  /* as sent; n 0: "/" */
    ses_http_span query; /* after "?" */
    ses_http_span host;  /* value of the Host header, or host of an absolute target; n 0: none */
    int minor;           /* HTTP/1.minor: 0 or 1 */
    bool has_length;     /* a Content-Length was sent */
    bool chunked;        /* the body is chunked. Neither: no body */
    bool keep_alive;
    bool expects_continue;
    uint64_t content_length;
    /* The result, if invalid. */
    int status;
    const char *reason;
    /* State of the parser. */
    size_t max_bytes, line, scanned;
    unsigned seen; /* headers that may not be repeated */
    bool has_request_line, has_authority, says_close, says_keep_alive;
    int fields;
    ses_http_field field[SES_HTTP_MAX_FIELDS];
} ses_http_head;

/* Prepares for a head of at most max_bytes. */
void ses_http_head_begin(ses_http_head *h, size_t max_bytes);
/* p[0, n): all bytes received since the beginning of the head, also bytes of earlier calls. Bytes
 * after the head are not read. */
ses_http_result ses_http_head_parse(ses_http_head *h, const char *p, size_t n);

/* The path in decoded form: percent-decoded, without "." and ".." segments. out has room for n + 1 bytes
 * and gets a NUL. Returns the length, or SIZE_MAX with a reason: the path leaves the root, contains a
 * control character or is not UTF-8. */
size_t ses_http_path_decode(const char *p, size_t n, char *out, const char **reason);

/* The name in the value of a Host header, "name[:port]"; without the brackets of an IPv6 address. False:
 * invalid. */
bool ses_http_host_name(const char *p, size_t n, ses_string *name);

bool ses_http_is_token(const char *p, size_t n); /* a valid method or header name */
/* Whether a and b are equal, without regard to the case of ASCII letters. */
bool ses_http_equal_nocase(const char *a, size_t n, const char *b);

/* ---- chunked bodies ---- */

typedef struct ses_http_chunks {
    uint64_t total;     /* bytes of the body so far, with all of the current chunk */
    uint64_t max_total; /* more: 413 */
    int status;         /* if invalid */
    const char *reason;
    /* State of the parser. */
    int state;
    uint64_t left; /* bytes of the current chunk that have not arrived */
    size_t line, extensions, trailers;
} ses_http_chunks;

void ses_http_chunks_begin(ses_http_chunks *c, uint64_t max_total);
/* Decodes the next *n bytes: *n becomes the bytes read, which is less than before only after the end of
 * the body or an error; *produced the bytes of the body, which are written to out. out has room for *n
 * bytes and may be `in`. */
ses_http_result ses_http_chunks_decode(ses_http_chunks *c, const char *in, size_t *n, char *out,
                                       size_t *produced);

#endif
