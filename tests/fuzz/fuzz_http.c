/* HTTP requests: the first byte gives the size of portions; fed in these portions, the rest yields the
 * same requests as fed at once. An accepted request has one framing, which a second, naive reading of its
 * headers confirms. */
#include "fuzz.h"
#include "serve/http/http_parser.h"

#include <strings.h>

enum { MAX_REQUESTS = 64, MAX_HEAD = 4096, MAX_BODY = 1 << 20 };

typedef struct outcome {
    size_t end;  /* bytes up to the end of the request */
    size_t body; /* decoded bytes */
    int status;  /* 0: accepted */
    uint64_t hash;
} outcome;

static uint64_t add_bytes(uint64_t hash, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)p[i]) * 1099511628211u;
    return hash;
}

/* Bytes that are decoded in place, in a block of their own, so that reads past the end are detected. */
static char *copy_of(const char *p, size_t n)
{
    char *copy = malloc(n ? n : 1);
    MUST(copy);
    if (n) memcpy(copy, p, n);
    return copy;
}

/* Counts headers with this name by searching lines, without the parser. */
static int count_headers(const char *p, size_t n, const char *name)
{
    int found = 0;
    size_t len = strlen(name);
    for (size_t i = 0; i + len < n; i++)
        found += i >= 2 && p[i - 1] == '\n' && !strncasecmp(p + i, name, len) && p[i + len] == ':';
    return found;
}

static void check_head(const ses_http_head *h, const char *p)
{
    int lengths = count_headers(p, h->bytes, "content-length");
    int codings = count_headers(p, h->bytes, "transfer-encoding");
    int hosts = count_headers(p, h->bytes, "host");
    MUST(h->bytes >= 4 && !memcmp(p + h->bytes - 4, "\r\n\r\n", 4));
    MUST(lengths + codings <= 1 && lengths == h->has_length && codings == h->chunked);
    MUST(hosts <= 1 && (hosts == 1 || h->minor == 0));
    for (size_t i = 0; i < h->bytes; i++) {
        unsigned char c = (unsigned char)p[i];
        MUST(c >= 0x20 || c == '\t' || c == '\r' || c == '\n');
        if (c == '\n') MUST(i > 0 && p[i - 1] == '\r');
        if (c == '\r') MUST(p[i + 1] == '\n');
        if (c == '\n' && i + 1 < h->bytes) MUST(p[i + 1] != ' ' && p[i + 1] != '\t');
    }
    for (int i = 0; i < h->fields; i++) {
        ses_http_field f = h->field[i];
        MUST(f.name.n && f.name.at + f.name.n < f.value.at && f.value.at + f.value.n + 2 < h->bytes);
        MUST(ses_http_is_token(p + f.name.at, f.name.n) && p[f.name.at + f.name.n] == ':');
    }
}

static void check_path(const ses_http_head *h, const char *p)
{
    const char *reason = NULL;
    char *path = malloc(h->path.n + 2);
    MUST(path);
    size_t n = ses_http_path_decode(p + h->path.at, h->path.n, path, &reason);
    if (n == SIZE_MAX)
        MUST(reason);
    else {
        MUST(n && n <= h->path.n + 1 && strlen(path) == n && (path[0] == '/' || !strcmp(path, "*")));
        MUST(!strstr(path, "/../") && !strstr(path, "/./"));
        MUST(n < 3 || strcmp(path + n - 3, "/..") != 0);
    }
    free(path);
}

static ses_http_result read_head(ses_http_head *h, const char *p, size_t n, size_t step)
{
    ses_http_result r = SES_HTTP_MORE;
    ses_http_head_begin(h, MAX_HEAD);
    for (size_t have = 0; have < n && r == SES_HTTP_MORE;) {
        have = n - have < step ? n : have + step;
        r = ses_http_head_parse(h, p, have);
    }
    return r;
}

/* Reads a chunked body; returns the bytes used. */
static size_t read_chunks(outcome *o, ses_http_result *r, const char *p, size_t n, size_t step)
{
    ses_http_chunks c;
    size_t at = 0;
    ses_http_chunks_begin(&c, MAX_BODY);
    for (*r = SES_HTTP_MORE; at < n && *r == SES_HTTP_MORE;) {
        size_t k = n - at < step ? n - at : step, produced = 0;
        char *portion = copy_of(p + at, k);
        *r = ses_http_chunks_decode(&c, portion, &k, portion, &produced);
        MUST(produced <= k && (k || *r != SES_HTTP_MORE));
        o->hash = add_bytes(o->hash, portion, produced);
        o->body += produced;
        at += k;
        free(portion);
    }
    MUST(o->body <= c.total && c.total <= MAX_BODY);
    MUST(*r != SES_HTTP_COMPLETE || o->body == c.total);
    if (*r == SES_HTTP_INVALID) o->status = c.status;
    return at;
}

/* Reads requests until one is rejected or incomplete; returns their number. */
static int read_all(outcome *out, const char *p, size_t n, size_t step)
{
    static ses_http_head h;
    int count = 0;
    for (size_t at = 0; at < n && count < MAX_REQUESTS; count++) {
        outcome *o = &out[count];
        *o = (outcome){ .hash = 14695981039346656037u };
        ses_http_result r = read_head(&h, p + at, n - at, step);
        MUST((r == SES_HTTP_INVALID) == (h.status >= 400 && h.status < 600 && h.reason));
        if (r == SES_HTTP_MORE) break;
        o->status = h.status;
        if (r == SES_HTTP_INVALID) return count + 1;
        check_head(&h, p + at);
        check_path(&h, p + at);
        o->hash = add_bytes(o->hash, p + at + h.method.at, h.method.n);
        at += h.bytes;
        if (h.chunked) {
            at += read_chunks(o, &r, p + at, n - at, step);
            if (r == SES_HTTP_INVALID) return count + 1;
            if (r == SES_HTTP_MORE) break;
        } else {
            if (h.content_length > n - at) break;
            o->body = (size_t)h.content_length;
            o->hash = add_bytes(o->hash, p + at, o->body);
            at += o->body;
        }
        o->end = at;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static outcome whole[MAX_REQUESTS + 1], parts[MAX_REQUESTS + 1];
    if (n < 1) return 0;
    const char *p = (const char *)data + 1;
    size_t step = data[0] % 61 + 1u;
    int a = read_all(whole, p, n - 1, n), b = read_all(parts, p, n - 1, step);
    MUST(a == b);
    for (int i = 0; i < a; i++)
        MUST(whole[i].end == parts[i].end && whole[i].status == parts[i].status &&
             whole[i].body == parts[i].body && whole[i].hash == parts[i].hash);
    return 0;
}
