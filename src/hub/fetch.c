/* Parallel requests: starts, redirects, retries. */
#include "fetch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { MAX_TRIES = 5, MAX_REDIRECTS = 8, MAX_WRONG = 2, TICK_MS = 100, LOCK_MS = 200 };
enum { PENDING, RUNNING, FINISHED };

static const double LONGEST_WAIT = 300; /* seconds that a server may ask for */

/* Results of libcurl: CURLE_ */
enum { CURL_OK = 0, CURL_NO_HOST = 6, CURL_NO_CONNECTION = 7 };
enum { CURL_BAD_CERTIFICATE = 60, CURL_BAD_AUTHORITIES = 77 };

/* ---- callbacks of libcurl ---- */

static size_t on_header(char *line, size_t size, size_t n, void *ctx)
{
    ses_fetch *f = ctx;
    ses_http_headers_read(&f->reply, line, size * n);
    f->active = ses_seconds();
    return size * n;
}

static long status_of(const ses_fetch *f)
{
    long status = 0;
    f->fetcher->curl.easy_get(f->easy, SES_CURL_INFO_RESPONSE_CODE, &status);
    return status;
}

/* The first bytes of a body: does it continue where the last attempt ended? */
static bool begin_body(ses_fetch *f)
{
    long status = status_of(f);
    f->begun = true;
    if (status == 200) {
        bool ok = !f->offset || f->sink->restart(f->ctx, &f->e);
        f->offset = 0;
        return ok;
    }
    f->bad_range = !f->reply.has_range || f->reply.first != f->offset;
    return !f->bad_range;
}

static size_t on_bytes(char *p, size_t size, size_t n, void *ctx)
{
    ses_fetch *f = ctx;
    long status = status_of(f);
    f->active = ses_seconds();
    if (status != 200 && status != 206) return size * n; /* the body of an error or a redirect */
    if (!f->begun && !begin_body(f)) return 0;
    if (!f->sink->take(f->ctx, p, size * n, &f->e)) return 0;
    f->taken += size * n;
    return size * n;
}

/* ---- one request ---- */

static void close_request(ses_fetch *f)
{
    const ses_curl *c = &f->fetcher->curl;
    if (f->easy) {
        c->multi_remove(f->fetcher->multi, f->easy);
        c->easy_free(f->easy);
    }
    if (f->headers) c->list_free(f->headers);
    f->easy = f->headers = NULL;
}

/* These authorities alone, instead of the ones that libcurl was built with. */
static bool set_authorities(const ses_fetch *f)
{
    const ses_curl *c = &f->fetcher->curl;
    const char *path = f->fetcher->authorities;
    if (!path) return true;
    bool folder = ses_path_is_dir(path);
    c->easy_set(f->easy, folder ? SES_CURL_OPT_CAINFO : SES_CURL_OPT_CAPATH, (char *)NULL);
    return !c->easy_set(f->easy, folder ? SES_CURL_OPT_CAPATH : SES_CURL_OPT_CAINFO, path);
}

static bool set_options(ses_fetch *f, const char *url)
{
    const ses_fetcher *r = f->fetcher;
    const ses_curl *c = &r->curl;
    char range[40];
    snprintf(range, sizeof range, "%llu-", (unsigned long long)f->offset);
    return set_authorities(f) && !c->easy_set(f->easy, SES_CURL_OPT_URL, url) &&
           !c->easy_set(f->easy, SES_CURL_OPT_PRIVATE, (void *)f) &&
           !c->easy_set(f->easy, SES_CURL_OPT_WRITEFUNCTION, on_bytes) &&
           !c->easy_set(f->easy, SES_CURL_OPT_WRITEDATA, (void *)f) &&
           !c->easy_set(f->easy, SES_CURL_OPT_HEADERFUNCTION, on_header) &&
           !c->easy_set(f->easy, SES_CURL_OPT_HEADERDATA, (void *)f) &&
           !c->easy_set(f->easy, SES_CURL_OPT_ERRORBUFFER, f->why) &&
           !c->easy_set(f->easy, SES_CURL_OPT_USERAGENT, r->agent) &&
           !c->easy_set(f->easy, SES_CURL_OPT_NOSIGNAL, 1L) &&
           !c->easy_set(f->easy, SES_CURL_OPT_FOLLOWLOCATION, 0L) &&
           !c->easy_set(f->easy, SES_CURL_OPT_PROTOCOLS, (long)(SES_CURL_HTTP | SES_CURL_HTTPS)) &&
           !c->easy_set(f->easy, SES_CURL_OPT_CONNECTTIMEOUT, (long)r->timeout) &&
           (!f->offset || !c->easy_set(f->easy, SES_CURL_OPT_RANGE, range)) &&
           (!f->headers || !c->easy_set(f->easy, SES_CURL_OPT_HTTPHEADER, f->headers));
}

static bool set_token(ses_fetch *f, const char *url, ses_err *e)
{
    const ses_fetcher *r = f->fetcher;
    if (!r->token || !ses_url_same_origin(url, r->endpoint)) return true;
    ses_buf line = { 0 };
    ses_buf_appendf(&line, "Authorization: Bearer %s", r->token);
    if (ses_buf_ok(&line, e)) f->headers = r->curl.list_add(NULL, line.data);
    if (line.data) memset(line.data, 0, line.len);
    ses_buf_free(&line);
    return f->headers || ses_fail(e, SES_ENOMEM, "out of memory");
}

static bool start(ses_fetch *f, ses_err *e)
{
    ses_fetcher *r = f->fetcher;
    const char *url = f->now_at ? f->now_at : f->url;
    f->begun = f->bad_range = false;
    f->taken = 0;
    f->why[0] = 0;
    f->active = ses_seconds();
    f->reply = ses_http_headers_new();
    f->easy = r->curl.easy_new();
    if (!f->easy) return ses_fail(e, SES_ENOMEM, "out of memory");
    if (!set_token(f, url, e)) return false;
    if (!set_options(f, url) || r->curl.multi_add(r->multi, f->easy))
        return ses_fail(e, SES_EIO, "%s: libcurl does not accept the request", f->name);
    f->state = RUNNING;
    return true;
}

/* Starts a pending request unless its receiver has to wait or has everything. */
static bool try_start(ses_fetch *f, ses_err *e)
{
    uint64_t offset = 0;
    if (!f->now_at) { /* not after a redirect, which continues the same attempt */
        switch (f->sink->begin(f->ctx, &offset, e)) {
        case SES_FETCH_GO: break;
        case SES_FETCH_LATER: f->not_before = ses_seconds() + LOCK_MS / 1000.0; return true;
        case SES_FETCH_DONE: f->state = FINISHED; return true;
        case SES_FETCH_FAILED: return false;
        }
        if (offset && f->no_range) {
            if (!f->sink->restart(f->ctx, e)) return false;
            offset = 0;
        }
        f->offset = offset;
    }
    return start(f, e);
}

/* ---- ends of requests ---- */

static void forget_redirect(ses_fetch *f)
{
    ses_free(f->now_at);
    f->now_at = NULL;
    f->redirects = 0;
}

/* Tries again after a delay, or fails. at_least: seconds that the server asked for. */
static bool retry(ses_fetch *f, const char *why, double at_least, int max_tries, ses_err *e)
{
    if (f->offset + f->taken > f->best) f->tries = 0; /* it comes nearer to the end */
    if (f->offset + f->taken > f->best) f->best = f->offset + f->taken;
    double wait = f->fetcher->backoff * (double)(1 << f->tries);
    if (wait < at_least) wait = at_least;
    if (at_least > LONGEST_WAIT)
        return ses_fail(e, SES_EIO, "%s: %s; the server asks to wait %.0f s: run the command again then",
                        f->name, why, at_least);
    if (++f->tries >= max_tries) return ses_fail(e, SES_EIO, "%s: %s, %d times", f->name, why, f->tries);
    forget_redirect(f);
    f->state = PENDING;
    f->not_before = ses_seconds() + wait;
    char note[SES_CURL_ERROR_SIZE + 400];
    snprintf(note, sizeof note, "%s: %s; trying again in %.0f s", f->name, why, wait);
    f->fetcher->stopped = !f->fetcher->on_tick(f->fetcher->ctx, note);
    return true;
}

static bool redirect(ses_fetch *f, const char *to, ses_err *e)
{
    const char *from = f->now_at ? f->now_at : f->url;
    if (++f->redirects > MAX_REDIRECTS)
        return ses_fail(e, SES_EIO, "%s: more than %d redirects", f->name, MAX_REDIRECTS);
    bool tls = !strncmp(to, "https://", 8);
    if (!tls && strncmp(to, "http://", 7))
        return ses_fail(e, SES_EIO, "%s: redirected to \"%s\", expected a URL with https", f->name,
                        ses_quoted_of(to, strlen(to)).s);
    if (!tls && !strncmp(from, "https://", 8))
        return ses_fail(e, SES_EIO, "%s: redirected from https to http, which is not followed: \"%s\"",
                        f->name, ses_quoted_of(to, strlen(to)).s);
    char *copy = ses_strdup(to, e);
    if (!copy) return false;
    close_request(f);
    ses_free(f->now_at);
    f->now_at = copy;
    f->state = PENDING;
    f->not_before = 0;
    return true;
}

/* All bytes of an answer have arrived. */
static bool complete(ses_fetch *f, ses_err *e)
{
    switch (f->sink->end(f->ctx, e)) {
    case SES_FETCH_COMPLETE: f->state = FINISHED; return true;
    case SES_FETCH_SHORT: return retry(f, "the answer ended early", 0, MAX_TRIES, e);
    case SES_FETCH_LOST: return false;
    case SES_FETCH_WRONG: break;
    }
    if (!f->sink->restart(f->ctx, e)) return false;
    if (++f->wrong < MAX_WRONG) return retry(f, "the bytes do not have the expected hash", 0, MAX_TRIES, e);
    return ses_fail(e, SES_EIO, "%s: the bytes do not have the expected hash, %d times; nothing was kept",
                    f->name, f->wrong);
}

static bool is_temporary(long status)
{
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

static bool start_over(ses_fetch *f, ses_err *e)
{
    f->no_range = true;
    return retry(f, "the server sent another part than requested", 0, MAX_TRIES, e);
}

static bool answered(ses_fetch *f, long status, ses_err *e)
{
    char *to = NULL, why[80];
    if (status == 200 || status == 206) {
        if (f->begun || begin_body(f)) return complete(f, e);
        if (f->e.code) return ses_fail(e, f->e.code, "%s", f->e.msg);
        return start_over(f, e);
    }
    f->fetcher->curl.easy_get(f->easy, SES_CURL_INFO_REDIRECT_URL, &to);
    if (status >= 300 && status < 400 && to) return redirect(f, to, e);
    if (status == 416 && f->offset) { /* the part is not a part of this file */
        f->no_range = true;
        return retry(f, "the server does not have the rest", 0, MAX_TRIES, e);
    }
    snprintf(why, sizeof why, "the server answered %ld", status);
    if (!is_temporary(status)) {
        f->sink->explain(f->ctx, status, &f->reply, e);
        return ses_fail(e, SES_EIO, "%s: %s%s%s", f->name, why, *f->reply.error ? ": " : "", f->reply.error);
    }
    double wait = f->reply.retry_after;
    if (status == 429 && f->reply.limit_resets >= 0 && wait < f->reply.limit_resets)
        wait = f->reply.limit_resets + 1;
    return retry(f, why, wait, MAX_TRIES, e);
}

/* Errors that another attempt does not change. */
static bool is_final(int code)
{
    static const int final[] = { 1, 3, 4, 58, 59, 83, 90, 91 }; /* URLs and certificates */
    for (size_t i = 0; i < SES_LEN(final); i++)
        if (code == final[i]) return true;
    return code == CURL_BAD_CERTIFICATE || code == CURL_BAD_AUTHORITIES;
}

static bool fail_finally(const ses_fetch *f, int code, const char *why, ses_err *e)
{
    const char *path = f->fetcher->authorities;
    if (code == CURL_BAD_AUTHORITIES && path)
        return ses_fail(e, SES_EIO, "%s: no certificates of authorities can be read from %s: %s", f->name,
                        path, why);
    if (code == CURL_BAD_CERTIFICATE && path)
        return ses_fail(e, SES_EIO, "%s: the certificate of the server is not valid by %s: %s", f->name, path,
                        why);
    if (code == CURL_BAD_CERTIFICATE)
        return ses_fail(
            e, SES_EIO,
            "%s: the certificate of the server is not valid: %s; if the server or a proxy has its "
            "own authority, set SSL_CERT_FILE to the file of its certificate",
            f->name, why);
    return ses_fail(e, SES_EIO, "%s: %s", f->name, why);
}

static bool ended(ses_fetch *f, int code, ses_err *e)
{
    char why[SES_CURL_ERROR_SIZE + 40];
    long status = status_of(f);
    f->state = PENDING;
    if (f->e.code) {
        ses_fail(e, f->e.code, "%s", f->e.msg);
        return ses_wrap(e, "%s", f->name);
    }
    if (f->bad_range) return start_over(f, e);
    if (code == CURL_OK) return answered(f, status, e);
    snprintf(why, sizeof why, "%s", *f->why ? f->why : f->fetcher->curl.error_text(code));
    if (is_final(code)) return fail_finally(f, code, why, e);
    return retry(f, why, 0, code == CURL_NO_HOST || code == CURL_NO_CONNECTION ? 3 : MAX_TRIES, e);
}

/* ---- the loop ---- */

static bool start_ready(ses_fetcher *r, ses_fetch *fetch, size_t n, ses_err *e)
{
    int running = 0;
    double now = ses_seconds();
    for (size_t i = 0; i < n; i++) running += fetch[i].state == RUNNING;
    for (size_t i = 0; i < n && running < r->parallel; i++) {
        ses_fetch *f = &fetch[i];
        if (f->state != PENDING || f->not_before > now) continue;
        if (!try_start(f, e)) return false;
        running += f->state == RUNNING;
        if (!r->on_tick(r->ctx, NULL)) return r->stopped = true, false; /* begin may hash a long file */
    }
    return true;
}

static bool take_messages(ses_fetcher *r, ses_err *e)
{
    ses_curl_message *m;
    for (int left; (m = r->curl.multi_message(r->multi, &left));) {
        if (m->kind != SES_CURL_MSG_DONE) continue;
        ses_fetch *f = NULL;
        int code = m->result.code;
        r->curl.easy_get(m->easy, SES_CURL_INFO_PRIVATE, &f);
        bool ok = ended(f, code, e);
        close_request(f);
        if (!ok || r->stopped) return false;
    }
    return true;
}

/* Ends requests without data for too long. libcurl's own limit is an average over several seconds. */
static bool end_stalled(ses_fetcher *r, ses_fetch *fetch, size_t n, ses_err *e)
{
    char why[60];
    double now = ses_seconds();
    snprintf(why, sizeof why, "no data for %d s", r->timeout);
    for (size_t i = 0; i < n; i++) {
        ses_fetch *f = &fetch[i];
        if (f->state != RUNNING || now - f->active < r->timeout) continue;
        bool ok = retry(f, why, 0, MAX_TRIES, e);
        close_request(f);
        if (!ok || r->stopped) return false;
    }
    return true;
}

static bool all_finished(const ses_fetch *fetch, size_t n)
{
    size_t i = 0;
    while (i < n && fetch[i].state == FINISHED) i++;
    return i == n;
}

/* Nothing to wait for if a request can start or all have ended. */
static int wait_ms(const ses_fetcher *r, const ses_fetch *fetch, size_t n)
{
    int running = 0, ready = 0;
    double now = ses_seconds();
    for (size_t i = 0; i < n; i++) {
        running += fetch[i].state == RUNNING;
        ready += fetch[i].state == PENDING && fetch[i].not_before <= now;
    }
    return (ready && running < r->parallel) || all_finished(fetch, n) ? 0 : TICK_MS;
}

static bool loop(ses_fetcher *r, ses_fetch *fetch, size_t n, ses_err *e)
{
    for (int running; !all_finished(fetch, n);) {
        if (!start_ready(r, fetch, n, e)) return false;
        if (r->curl.multi_run(r->multi, &running)) return ses_fail(e, SES_EIO, "libcurl failed");
        if (!take_messages(r, e) || !end_stalled(r, fetch, n, e)) return false;
        if (!r->on_tick(r->ctx, NULL)) return r->stopped = true, false;
        int wait = wait_ms(r, fetch, n);
        if (wait) r->curl.multi_wait(r->multi, NULL, 0, wait, NULL);
    }
    return true;
}

bool ses_fetcher_run(ses_fetcher *r, ses_fetch *fetch, size_t n, ses_err *e)
{
    r->stopped = false;
    r->multi = r->curl.multi_new();
    if (!r->multi) return ses_fail(e, SES_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) fetch[i].fetcher = r;
    bool ok = loop(r, fetch, n, e);
    for (size_t i = 0; i < n; i++) {
        close_request(&fetch[i]);
        ses_free(fetch[i].now_at);
        fetch[i].now_at = NULL;
    }
    r->curl.multi_free(r->multi);
    r->multi = NULL;
    return ok;
}
