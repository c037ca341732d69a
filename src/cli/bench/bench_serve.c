/* bench serve: load on an HTTP server. With --url a running server; with --model this program as a server in
 * another process, compared with the same work in this process. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "bench.h"
#include "cli/ui/text_table.h"
#include "load_generator.h"
#include "sesame/pipeline.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_BODIES = 64 << 20 };

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_serve_load, url, "url", "URL",
                 "serve: load this server, http://HOST:PORT or unix:PATH; default: a server with --model"),
    SES_OPT_TEXT(ses_serve_load, path, "path", "PATH", "serve: route to request", .def = "/embed"),
    SES_OPT_TEXT(ses_serve_load, bodies, "bodies", "FILE",
                 "serve: request bodies, one JSON object per line, sent in turn; default: short texts as "
                 "\"inputs\""),
    SES_OPT_REAL(ses_serve_load, rate, "rate", NULL, 0, 1e7,
                 "serve: mean requests per second, at random times; 0: each connection sends when it has its "
                 "response",
                 .value = "N"),
    SES_OPT_INT(ses_serve_load, connections, "connections", "64", 1, 60000, "serve: connections",
                .value = "N"),
    SES_OPT_REAL(ses_serve_load, seconds, "seconds", "10", 0.01, 1e6, "serve: measured time", .value = "N"),
    SES_OPT_REAL(ses_serve_load, warmup, "warmup", "1", 0, 1e6, "serve: time before the measurement",
                 .value = "N"),
    SES_OPT_INT(ses_serve_load, seed, "seed", "1", 0, 9e15, "serve: seed of the random times", .value = "N"),
};

const ses_opt_table ses_serve_load_options = { opt, SES_LEN(opt) };

static const char *const texts[] = {
    "The ferry leaves at noon.",
    "How do I reset my password?",
    "A small bakery opened next to the station.",
    "Rain is expected in the afternoon.",
    "The committee postponed its decision again.",
    "Which model should I use for short texts?",
    "She plays the cello in two orchestras.",
    "The battery lasts about nine hours.",
    "Please send the invoice to the new address.",
    "Our neighbours keep bees on the roof.",
    "The museum is closed on Mondays.",
    "He fixed the bicycle with a piece of wire.",
};

/* ---- requests ---- */

typedef struct requests {
    ses_string *at;
    size_t n, capacity;
} requests;

static bool add_request(requests *r, const char *path, const char *host, const char *body, size_t n,
                        ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(
        &b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        path, host, n);
    ses_buf_append(&b, body, n);
    if (!ses_buf_ok(&b, e) || !ses_array_reserve(&r->at, &r->capacity, r->n + 1, sizeof *r->at, e)) {
        ses_buf_free(&b);
        return false;
    }
    r->at[r->n++] = (ses_string){ b.data, b.len };
    return true;
}

static void requests_free(requests *r)
{
    for (size_t i = 0; i < r->n; i++) ses_free((char *)(uintptr_t)r->at[i].p);
    ses_free(r->at);
}

static bool read_bodies(requests *r, const ses_serve_load *s, const char *host, ses_err *e)
{
    size_t size = 0;
    char *text = ses_file_read(s->bodies, MAX_BODIES, &size, e);
    bool ok = text != NULL;
    for (size_t at = 0; ok && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t n = end ? (size_t)(end - (text + at)) : size - at;
        if (n) ok = add_request(r, s->path, host, text + at, n, e);
        at += n + 1;
    }
    ses_free(text);
    return ok && (r->n || ses_fail(e, SES_EFORMAT, "%s: contains no request", s->bodies));
}

static bool make_requests(requests *r, const ses_serve_load *s, const char *host, ses_err *e)
{
    char body[256];
    if (s->bodies) return read_bodies(r, s, host, e);
    for (size_t i = 0; i < SES_LEN(texts); i++) {
        int n = snprintf(body, sizeof body, "{\"inputs\":\"%s\"}", texts[i]);
        if (!add_request(r, s->path, host, body, (size_t)n, e)) return false;
    }
    return true;
}

/* ---- output ---- */

static void print_result(const ses_bench *b, const char *name, const ses_load *l, const ses_load_result *r)
{
    double cpu = r->seconds > 0 ? r->cpu_seconds / (r->seconds + l->warmup) : 0;
    if (b->json) {
        printf("{\"bench\": \"serve\", \"name\": \"%s\", \"connections\": %d, \"rate\": %g, \"seconds\": "
               "%.3f, \"sent\": "
               "%lld, \"ok\": %lld, \"rejected\": %lld, \"failed\": %lld, \"per_second\": %.2f, \"p50\": "
               "%.6f, \"p90\": %.6f, "
               "\"p99\": %.6f, \"max\": %.6f, \"mean\": %.6f, \"client_cpu_seconds\": %.3f, \"max_late\": "
               "%.6f}\n",
               name, l->connections, l->rate, r->seconds, (long long)r->sent, (long long)r->ok,
               (long long)r->rejected, (long long)r->failed, r->rate, r->p50, r->p90, r->p99, r->max, r->mean,
               r->cpu_seconds, r->max_late);
        return;
    }
    printf("%-14s %5d connections  %9.1f/s  p50 %8.3f ms  p90 %8.3f  p99 %8.3f  max %8.3f  429: %lld  "
           "failed: %lld  "
           "client CPU %.0f %%\n",
           name, l->connections, r->rate, 1e3 * r->p50, 1e3 * r->p90, 1e3 * r->p99, 1e3 * r->max,
           (long long)r->rejected, (long long)r->failed, 100 * cpu);
}

/* ---- in this process ---- */

static bool drop_result(void *ctx, const ses_result *r, ses_err *e)
{
    (void)r, (void)e;
    ++*(int64_t *)ctx;
    return true;
}

/* Texts per second in batches, and the time of one text alone. */
static bool measure_in_process(ses_bench *b, double *per_second, double *alone, ses_err *e)
{
    const ses_serve_load *s = b->serve;
    int64_t count = 0;
    ses_pipeline *p = ses_pipeline_open("embed", b->model, b->dev, NULL, e);
    if (!p) return false;
    bool ok = true;
    size_t i = 0;
    double start = ses_seconds(), from = start + s->warmup, end = from + s->seconds;
    ses_pipeline_set_callback(p, drop_result, &count);
    bool warm = false;
    while (ok && ses_seconds() < end) {
        ok = ses_pipeline_feed(p, &(ses_item){ .text = ses_str(texts[i++ % SES_LEN(texts)]) }, e);
        if (!warm && ses_seconds() >= from) warm = true, count = 0, from = ses_seconds();
    }
    *per_second = (double)count / (ses_seconds() - from);
    ok = ok && ses_pipeline_flush(p, e);
    double *t = ses_alloc_array(512, sizeof *t, e);
    ses_pipeline_set_callback(p, NULL, NULL);
    for (size_t k = 0; ok && t && k < 512; k++) {
        double begin = ses_seconds();
        ok = ses_pipeline_run(p, &(ses_item){ .text = ses_str(texts[k % SES_LEN(texts)]) }, e) != NULL;
        t[k] = ses_seconds() - begin;
        for (size_t m = k; m && t[m] < t[m - 1]; m--) {
            double x = t[m];
            t[m] = t[m - 1], t[m - 1] = x;
        }
    }
    if (t) *alone = t[256];
    ses_free(t);
    ses_pipeline_free(p);
    return ok;
}

/* ---- a server in another process ---- */

typedef struct child {
    pid_t pid;
    int port;
} child;

/* Reads the port from the line "... ready in N ms at http://127.0.0.1:PORT". */
static bool read_port(FILE *f, int *port, ses_err *e)
{
    char line[4096], last[4096] = "no output";
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "http://127.0.0.1:");
        if (at) {
            *port = (int)strtol(at + 17, NULL, 10);
            return true;
        }
        snprintf(last, sizeof last, "%s", line);
    }
    return ses_fail(e, SES_EIO, "the server did not start: %s", last);
}

static bool start_server(ses_bench *b, child *c, ses_err *e)
{
    int out[2];
    char threads[16];
    snprintf(threads, sizeof threads, "%d", b->threads);
    if (pipe(out)) return ses_fail(e, SES_EIO, "pipe: %s", strerror(errno));
    c->pid = fork();
    if (c->pid < 0) return ses_fail(e, SES_EIO, "fork: %s", strerror(errno));
    if (!c->pid) {
        dup2(out[1], 2);
        close(out[0]);
        close(out[1]);
        const char *dtype = b->dtype == SES_I8     ? "int8"
                            : b->dtype == SES_F16  ? "f16"
                            : b->dtype == SES_BF16 ? "bf16"
                                                   : "f32";
        execl("/proc/self/exe", "sesame", "serve", "--port", "0", "--model", b->model, "--threads", threads,
              "--device", ses_device_name(b->dev), "--dtype", dtype, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    bool ok = f && read_port(f, &c->port, e);
    if (f) fclose(f);
    return ok;
}

static void stop_server(child *c)
{
    if (c->pid <= 0) return;
    kill(c->pid, SIGTERM);
    waitpid(c->pid, NULL, 0);
}

static bool run_load(ses_bench *b, const char *name, ses_load *l, ses_load_result *r, ses_err *e)
{
    l->stopped = ses_bench_stopped;
    if (!ses_load_run(l, r, e)) return false;
    print_result(b, name, l, r);
    fflush(stdout);
    return true;
}

/* Throughput with many connections and latency with one, both against the same work in this process. */
static bool compare(ses_bench *b, ses_load *l, ses_err *e)
{
    child c = { 0 };
    double rate = 0, alone = 0;
    ses_load_result many = { 0 }, one = { 0 };
    if (!measure_in_process(b, &rate, &alone, e)) return false;
    if (!b->json) printf("%-14s %28.1f/s  p50 %8.3f ms\n", "in process", rate, 1e3 * alone);
    bool ok = start_server(b, &c, e);
    l->host = "127.0.0.1", l->port = c.port;
    ok = ok && run_load(b, "server", l, &many, e);
    ses_load single = *l;
    single.connections = 1, single.rate = 0;
    ok = ok && run_load(b, "server, idle", &single, &one, e);
    stop_server(&c);
    if (!ok || b->json) {
        if (ok)
            printf("{\"bench\": \"serve\", \"name\": \"in process\", \"per_second\": %.2f, \"p50\": %.6f}\n",
                   rate, alone);
        return ok;
    }
    printf("server / in process: %.3f of the texts per second; idle p50 %+.3f ms\n",
           rate > 0 ? many.rate / rate : 0, 1e3 * (one.p50 - alone));
    return true;
}

static bool run(ses_bench *b, ses_err *e)
{
    const ses_serve_load *s = b->serve;
    char host[256] = "127.0.0.1";
    int port = 0;
    requests r = { 0 };
    if (!s->url == !b->model) return ses_fail(e, SES_EUSAGE, "bench serve needs --url URL or --model DIR");
    bool ok = (!s->url || ses_load_parse_url(s->url, host, sizeof host, &port, e)) &&
              make_requests(&r, s, "localhost", e);
    ses_load l = { .host = host,
                   .port = port,
                   .request = r.at,
                   .n_requests = r.n,
                   .rate = s->rate,
                   .connections = (int)s->connections,
                   .seconds = b->quick ? 1 : s->seconds,
                   .warmup = b->quick ? 0.2 : s->warmup,
                   .seed = (uint64_t)s->seed };
    ses_load_result result;
    ok = ok && (s->url ? run_load(b, "server", &l, &result, e) : compare(b, &l, e));
    requests_free(&r);
    return ok;
}

const ses_bench_kind ses_bench_serve = { .name = "serve", .run = run };
