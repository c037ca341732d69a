/* Parallel GET requests by libcurl with retries, resumed ranges and redirects. The token goes to the origin
 * of the endpoint only.
 *
 * Ownership: the caller owns a ses_fetcher and its fetches. Threads: all of it belongs to one thread. */
#ifndef SES_HUB_FETCH_H
#define SES_HUB_FETCH_H

#include "curl_library.h"
#include "http_headers.h"

typedef enum { SES_FETCH_GO, SES_FETCH_LATER, SES_FETCH_DONE, SES_FETCH_FAILED } ses_fetch_begin;
typedef enum { SES_FETCH_COMPLETE, SES_FETCH_SHORT, SES_FETCH_WRONG, SES_FETCH_LOST } ses_fetch_end;

typedef struct ses_fetch ses_fetch;

/* Receiver of one resource. */
typedef struct ses_fetch_sink {
    /* Before each attempt: *offset: bytes that have already arrived. LATER: ask again soon (a lock). */
    ses_fetch_begin (*begin)(void *ctx, uint64_t *offset, ses_err *e);
    bool (*restart)(void *ctx, ses_err *e);                       /* forget the bytes so far */
    bool (*take)(void *ctx, const void *p, size_t n, ses_err *e); /* the next bytes */
    ses_fetch_end (*end)(void *ctx, ses_err *e);                  /* the answer has ended */
    void (*explain)(void *ctx, long status, const ses_http_headers *r, ses_err *e); /* why: a refusal */
} ses_fetch_sink;

struct ses_fetch {
    const char *url, *name; /* name: for messages */
    const ses_fetch_sink *sink;
    void *ctx;
    /* private */
    int state, tries, redirects, wrong;
    double not_before, active; /* times: of the next attempt, of the last data */
    char *now_at;              /* the URL after redirects; NULL: url */
    void *easy, *headers;
    uint64_t offset, taken, best; /* bytes before this attempt, bytes of this attempt, most bytes so far */
    bool begun, no_range, bad_range;
    ses_http_headers reply;
    ses_err e;
    char why[SES_CURL_ERROR_SIZE];
    struct ses_fetcher *fetcher;
};

typedef struct ses_fetcher {
    ses_curl curl;
    const char *endpoint, *token, *agent; /* token: NULL: none */
    const char *authorities;              /* a file or a folder of certificates; NULL: libcurl's */
    int parallel, timeout;                /* requests at a time; seconds without data */
    double backoff;                       /* seconds before the first retry; doubles */
    /* Called several times a second; false: stop. note: a retry, or NULL. */
    bool (*on_tick)(void *ctx, const char *note);
    void *ctx;
    bool stopped; /* by on_tick; not an error */
    void *multi;
} ses_fetcher;

/* Runs n requests to their ends; false after the first failure, or if stopped. */
bool ses_fetcher_run(ses_fetcher *r, ses_fetch *fetch, size_t n, ses_err *e);

#endif
