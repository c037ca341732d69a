/* A mock of the Hugging Face hub on loopback, one thread per connection. It serves a folder of models,
 * ROOT/ORG/NAME/..., by the routes that clients use: /api/models/ID[/revision/REV], /api/models/ID/tree/REV,
 * /ID/resolve/REV/PATH. Files from lfs_from bytes on are LFS files: they have a SHA-256 and are redirected
 * to another host name. Faults count down. */
#ifndef TESTS_MOCK_HUB_H
#define TESTS_MOCK_HUB_H

#include "base/file.h"
#include "base/sha.h"
#include "base/str.h"
#include "sesame/json.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct mock_hub {
    const char *root;      /* ROOT/ORG/NAME/... */
    const char *token;     /* required; NULL: none */
    const char *cdn;       /* URL to which LFS files are redirected; NULL: http://localhost:PORT */
    const char *api_extra; /* appended to "siblings" of the API: hostile entries, with their comma */
    size_t lfs_from;       /* bytes from which files are LFS files */
    int port, fd;
    pthread_t thread;
    /* faults: how many of the next answers to file requests have them */
    atomic_int fail_429, fail_503, truncate, wrong_bytes, ignore_range, bad_range, refuse_range;
    atomic_int api_503;   /* the API answers 503 */
    atomic_int slow_ms;   /* delay between pieces of a file */
    atomic_int gated;     /* answers 403 with X-Error-Code: GatedRepo */
    atomic_int downgrade; /* redirects to ftp:// */
    /* counts */
    atomic_int requests, file_requests, ranges, tokens_elsewhere, tokens_here;
} mock_hub;

static const char mock_commit[] = "0123456789abcdef0123456789abcdef01234567";

static inline void mock_sleep(int ms)
{
    struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

static inline bool mock_take(atomic_int *count)
{
    int n = atomic_load(count);
    while (n > 0)
        if (atomic_compare_exchange_weak(count, &n, n - 1)) return true;
    return false;
}

static inline bool mock_send(int fd, const void *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = send(fd, (const char *)p + done, n - done, MSG_NOSIGNAL);
        if (k <= 0) return false;
        done += (size_t)k;
    }
    return true;
}

static inline void mock_answer(int fd, const char *status, const char *headers, const void *body, size_t n)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b,
                    "HTTP/1.1 %s\r\nContent-Length: %zu\r\nX-Repo-Commit: %s\r\nConnection: close\r\n%s\r\n",
                    status, n, mock_commit, headers);
    ses_buf_append(&b, body, n);
    mock_send(fd, b.data, b.len);
    ses_buf_free(&b);
}

static inline void mock_text(int fd, bool head, const char *status, const char *headers)
{
    mock_answer(fd, status, headers, "{\"error\":\"mock\"}", head ? 0 : 16); /* HEAD: no body */
}

/* ---- hashes ---- */

static inline void mock_hash(const char *data, size_t n, bool sha256, char out[SES_SHA256_HEX + 1])
{
    char head[40];
    ses_sha s = sha256 ? ses_sha256_start() : ses_sha1_start();
    int k = snprintf(head, sizeof head, "blob %zu", n);
    if (!sha256) ses_sha_add(&s, head, (size_t)k + 1);
    ses_sha_add(&s, data, n);
    ses_sha_hex(&s, out);
}

/* ---- the list of files ---- */

typedef struct mock_list {
    const mock_hub *h;
    ses_json_writer *w;
    const char *root, *below;
    bool tree; /* the tree route's fields */
} mock_list;

static inline void mock_put_file(const mock_list *l, const char *path, const char *full)
{
    char sha1[SES_SHA256_HEX + 1], sha256[SES_SHA256_HEX + 1];
    size_t n;
    char *data = ses_file_read(full, 1 << 28, &n, NULL);
    if (!data) return;
    mock_hash(data, n, false, sha1);
    mock_hash(data, n, true, sha256);
    bool lfs = n >= l->h->lfs_from;
    ses_json_begin_object(l->w);
    if (l->tree) ses_json_member_string(l->w, "type", "file");
    ses_json_member_string(l->w, l->tree ? "path" : "rfilename", path);
    ses_json_member_uint(l->w, "size", n);
    ses_json_member_string(l->w, l->tree ? "oid" : "blobId", sha1);
    if (lfs) {
        ses_json_member_object(l->w, "lfs");
        ses_json_member_string(l->w, l->tree ? "oid" : "sha256", sha256);
        ses_json_member_uint(l->w, "size", n);
        ses_json_member_uint(l->w, "pointerSize", 134);
        ses_json_end_object(l->w);
    }
    ses_json_end_object(l->w);
    free(data);
}

static inline bool mock_list_entry(void *ctx, const char *name)
{
    mock_list *l = ctx;
    char path[2048], full[4096];
    snprintf(path, sizeof path, "%s%s", l->below, name);
    snprintf(full, sizeof full, "%s/%s", l->root, path);
    if (ses_path_is_dir(full)) {
        snprintf(path, sizeof path, "%s%s/", l->below, name);
        mock_list sub = *l;
        sub.below = path;
        ses_dir_each(full, mock_list_entry, &sub, NULL);
    } else {
        mock_put_file(l, path, full);
    }
    return true;
}

static inline void mock_api(mock_hub *h, int fd, const char *id, bool tree, bool head)
{
    char root[2048];
    size_t n;
    snprintf(root, sizeof root, "%s/%s", h->root, id);
    if (!ses_path_is_dir(root)) {
        mock_text(fd, head, "404 Not Found",
                  "X-Error-Code: RepoNotFound\r\nX-Error-Message: Repository not found\r\n");
        return;
    }
    ses_json_writer *w = ses_json_writer_new(-1, NULL);
    if (!tree) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "id", id);
        ses_json_member_string(w, "sha", mock_commit);
        ses_json_member_bool(w, "private", false);
        ses_json_put_key(w, "siblings");
    }
    ses_json_begin_array(w);
    mock_list l = { .h = h, .w = w, .root = root, .below = "", .tree = tree };
    ses_dir_each(root, mock_list_entry, &l, NULL);
    ses_json_end_array(w);
    if (!tree) ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &n, NULL);
    ses_buf b = { 0 };
    size_t end = tree || !h->api_extra ? n : n - 2; /* before "]}" */
    ses_buf_append(&b, text, end);
    if (end < n) ses_buf_puts(&b, h->api_extra), ses_buf_puts(&b, "]}");
    mock_answer(fd, "200 OK", "Content-Type: application/json\r\n", b.data, b.len);
    ses_buf_free(&b);
    ses_json_writer_free(w);
}

/* ---- files ---- */

static inline bool mock_fault(mock_hub *h, int fd, bool ranged, bool head)
{
    if (mock_take(&h->fail_429))
        mock_text(fd, head, "429 Too Many Requests", "ratelimit: \"api\";r=0;t=0\r\n");
    else if (mock_take(&h->fail_503))
        mock_text(fd, head, "503 Service Unavailable", "Retry-After: 0\r\n");
    else if (ranged && mock_take(&h->refuse_range))
        mock_text(fd, head, "416 Range Not Satisfiable", "");
    else
        return false;
    return true;
}

static inline void mock_file(mock_hub *h, int fd, const char *path, const char *range, bool head)
{
    size_t n, first = 0;
    char etag[SES_SHA256_HEX + 1], headers[600];
    char *data = ses_file_read(path, 1 << 28, &n, NULL);
    if (!data) {
        mock_text(fd, head, "404 Not Found", "X-Error-Code: EntryNotFound\r\n");
        return;
    }
    bool lfs = n >= h->lfs_from;
    mock_hash(data, n, lfs, etag);
    if (range) atomic_fetch_add(&h->ranges, 1);
    if (!head && mock_fault(h, fd, range != NULL, head)) {
        free(data);
        return;
    }
    if (range && !mock_take(&h->ignore_range)) first = (size_t)strtoull(range, NULL, 10);
    if (first > n) first = n;
    size_t claimed = first && mock_take(&h->bad_range) ? first - 1 : first;
    if (!head && n && mock_take(&h->wrong_bytes)) data[n / 2] ^= 1;
    int k = snprintf(
        headers, sizeof headers,
        "HTTP/1.1 %s\r\nContent-Length: %zu\r\nX-Repo-Commit: %s\r\nETag: \"%s\"\r\nX-Linked-Size: %zu\r\n"
        "Accept-Ranges: bytes\r\nConnection: close\r\n",
        first ? "206 Partial Content" : "200 OK", n - first, mock_commit, etag, n);
    if (first)
        k += snprintf(headers + k, sizeof headers - (size_t)k, "Content-Range: bytes %zu-%zu/%zu\r\n",
                      claimed, n - 1, n);
    snprintf(headers + k, sizeof headers - (size_t)k, "\r\n");
    mock_send(fd, headers, strlen(headers));
    size_t end = !head && n > 100 && mock_take(&h->truncate) ? first + (n - first) / 2 : n;
    for (size_t at = first; !head && at < end;) {
        size_t piece = end - at < 16384 ? end - at : 16384;
        if (!mock_send(fd, data + at, piece)) break;
        at += piece;
        if (atomic_load(&h->slow_ms)) mock_sleep(atomic_load(&h->slow_ms));
    }
    free(data);
}

/* /ID/resolve/COMMIT/PATH: plain files here, LFS files by a redirect to "localhost", another host. */
static inline void mock_resolve(mock_hub *h, int fd, const char *target, const char *range, bool head)
{
    char path[4096], headers[3000], cdn[200], etag[SES_SHA256_HEX + 1];
    const char *at = strstr(target, "/resolve/");
    const char *file = strchr(at + 9, '/');
    snprintf(path, sizeof path, "%s%.*s%s", h->root, (int)(at - target), target, file ? file : "");
    atomic_fetch_add(&h->file_requests, !head);
    struct stat st;
    if (atomic_load(&h->downgrade)) {
        mock_text(fd, head, "302 Found", "Location: ftp://127.0.0.1/etc/passwd\r\n");
        return;
    }
    if (stat(path, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size < h->lfs_from) {
        mock_file(h, fd, path, range, head);
        return;
    }
    size_t n;
    char *data = ses_file_read(path, 1 << 28, &n, NULL);
    mock_hash(data ? data : "", data ? n : 0, true, etag);
    free(data);
    snprintf(cdn, sizeof cdn, "http://localhost:%d", h->port);
    snprintf(
        headers, sizeof headers, "Location: %s/cdn%.*s%s\r\nX-Linked-Etag: \"%s\"\r\nX-Linked-Size: %lld\r\n",
        h->cdn ? h->cdn : cdn, (int)(at - target), target, file ? file : "", etag, (long long)st.st_size);
    mock_text(fd, head, "302 Found", headers);
}

/* ---- requests ---- */

typedef struct mock_request {
    mock_hub *h;
    int fd;
} mock_request;

static inline void mock_decode(char *s)
{
    char *out = s;
    for (; *s; s++) {
        if (*s == '%' && ses_hex_digit(s[1]) >= 0 && ses_hex_digit(s[2]) >= 0)
            *out++ = (char)(ses_hex_digit(s[1]) * 16 + ses_hex_digit(s[2])), s += 2;
        else
            *out++ = *s;
    }
    *out = 0;
}

static inline const char *mock_header(const char *text, const char *name, char *out, size_t size)
{
    const char *at = strcasestr(text, name);
    if (!at) return NULL;
    at += strlen(name);
    at += strspn(at, ": ");
    snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return out;
}

static inline void mock_route(mock_hub *h, int fd, char *target, const char *text, bool head)
{
    char range[80], auth[200], host[200], *query = strchr(target, '?');
    if (query) *query = 0;
    mock_decode(target);
    const char *r = mock_header(text, "\r\nRange: bytes=", range, sizeof range);
    const char *a = mock_header(text, "\r\nAuthorization", auth, sizeof auth);
    bool elsewhere = mock_header(text, "\r\nHost", host, sizeof host) && !strncmp(host, "localhost", 9);
    atomic_fetch_add(&h->requests, 1);
    if (a) atomic_fetch_add(elsewhere ? &h->tokens_elsewhere : &h->tokens_here, 1);
    bool known = !h->token || (a && strlen(a) > 7 && !strcmp(a + 7, h->token));
    if (!elsewhere && !known) {
        mock_text(fd, head, "401 Unauthorized", "X-Error-Code: RepoNotFound\r\n");
    } else if (!strncmp(target, "/api/models/", 12)) {
        char id[400];
        char *revision = strstr(target, "/revision/"), *tree = strstr(target, "/tree/");
        char *end = revision ? revision : tree;
        snprintf(id, sizeof id, "%.*s", end ? (int)(end - target - 12) : 390, target + 12);
        if (atomic_load(&h->gated))
            mock_text(fd, head, "403 Forbidden",
                      "X-Error-Code: GatedRepo\r\nX-Error-Message: restricted\r\n");
        else if (mock_take(&h->api_503))
            mock_text(fd, head, "503 Service Unavailable", "");
        else if (revision && strcmp(revision + 10, "main") && strcmp(revision + 10, mock_commit) &&
                 strcmp(revision + 10, "refs/pr/1"))
            mock_text(fd, head, "404 Not Found", "X-Error-Code: RevisionNotFound\r\n");
        else
            mock_api(h, fd, id, tree != NULL, head);
    } else if (!strncmp(target, "/cdn/", 5)) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", h->root, target + 4);
        mock_file(h, fd, path, r, head);
    } else if (strstr(target, "/resolve/")) {
        mock_resolve(h, fd, target, r, head);
    } else {
        mock_text(fd, head, "404 Not Found", "");
    }
}

static inline void *mock_serve(void *ctx)
{
    mock_request q = *(mock_request *)ctx;
    char text[16384], method[8], target[2048];
    size_t n = 0;
    free(ctx);
    for (ssize_t k; n < sizeof text - 1 && (k = recv(q.fd, text + n, sizeof text - 1 - n, 0)) > 0;) {
        text[n += (size_t)k] = 0;
        if (strstr(text, "\r\n\r\n")) break;
    }
    if (n && sscanf(text, "%7s %2047s", method, target) == 2)
        mock_route(q.h, q.fd, target, text, !strcmp(method, "HEAD"));
    shutdown(q.fd, SHUT_WR);
    while (recv(q.fd, text, sizeof text, 0) > 0)
        continue; /* the client has read everything before the close */
    close(q.fd);
    return NULL;
}

static inline void *mock_accept(void *ctx)
{
    mock_hub *h = ctx;
    for (int fd; (fd = accept(h->fd, NULL, NULL)) >= 0;) {
        mock_request *q = malloc(sizeof *q);
        pthread_t t;
        pthread_attr_t attr;
        *q = (mock_request){ h, fd };
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        if (pthread_create(&t, &attr, mock_serve, q)) free(q), close(fd);
        pthread_attr_destroy(&attr);
    }
    return NULL;
}

static inline bool mock_start(mock_hub *h)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    h->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (h->fd < 0 || bind(h->fd, (struct sockaddr *)&a, sizeof a) || listen(h->fd, 64) ||
        getsockname(h->fd, (struct sockaddr *)&a, &n))
        return false;
    h->port = ntohs(a.sin_port);
    return pthread_create(&h->thread, NULL, mock_accept, h) == 0;
}

static inline void mock_stop(mock_hub *h)
{
    shutdown(h->fd, SHUT_RDWR);
    pthread_join(h->thread, NULL);
    close(h->fd);
}

#endif
