/* The header lines of a server's answer that downloads use, and URLs. Values only; any thread. */
#ifndef SES_HUB_HTTP_HEADERS_H
#define SES_HUB_HTTP_HEADERS_H

#include "base/str.h"

typedef struct ses_http_headers {
    bool has_range;        /* Content-Range: bytes FIRST-LAST/TOTAL */
    uint64_t first, total; /* total: UINT64_MAX: unknown ("*") */
    bool has_length;
    uint64_t length;     /* Content-Length */
    double retry_after;  /* seconds; -1: none; dates are ignored */
    double limit_resets; /* ratelimit: "api";r=0;t=55: 55; -1: none, or requests remain */
    char error[200];     /* X-Error-Message */
    char code[40];       /* X-Error-Code: "GatedRepo", "RepoNotFound" */
} ses_http_headers;

ses_http_headers ses_http_headers_new(void);
/* Reads one header line, with or without its line end; unknown ones are ignored. A status line starts over:
 * informational answers come before the final one. */
void ses_http_headers_read(ses_http_headers *r, const char *line, size_t n);

/* Whether two URLs have the same scheme, host and port, so that a token may go to both. */
bool ses_url_same_origin(const char *a, const char *b);
/* Appends a path with everything but letters, digits and "-._~/" as %XX. */
void ses_url_put_path(ses_buf *b, const char *path);

#endif
