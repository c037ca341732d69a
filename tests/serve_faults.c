/* serve_faults [--short] [--only NAME] SESAME: fault tests of `sesame serve` as a process, from the source
 * folder. A table with figures; exit 1 if a test fails. tools/serve-faults runs the long form,
 * tests/test_serve_faults.sh the short one. */
#define _GNU_SOURCE
#include "serve_attacks.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/stat.h>

typedef struct context {
    const char *sesame, *only;
    bool brief;
    int failed;
    char tmp[64];
} context;

static const char one_text[] = "{\"inputs\": \"A small bakery opened next to the station.\"}";

/* Growth of memory in MB that is allowed. Sanitizers keep freed memory. */
static bool is_flat(double growth, double limit)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    limit += 4096;
#endif
    return growth < limit;
}

/* ---- the table ---- */

static void row(context *c, const char *name, bool ok, const char *fmt, ...)
{
    va_list ap;
    printf("%-22s %-5s ", name, ok ? "ok" : "FAIL");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
    c->failed += !ok;
}

/* Models: a tiny encoder and tagger for speed, a small encoder, a small decoder. */
#define TINY "e=tests/pipelines/bert-mask"
#define TAGGER "tag=tests/pipelines/bert-tag"
#define SMALL "small=models/sesame-small"
#define DECODER "gpt=models/sesame-gpt"

/* A server with one or two models (the second may be NULL) and more arguments, up to NULL. files: limit of
 * open files; 0: none. */
static process serve(const context *c, const char *first, const char *second, int files, ...)
{
    const char *args[MAX_ARGS - 8] = { "-m", first };
    int n = 2;
    if (second) args[n++] = "-m", args[n++] = second;
    va_list ap;
    va_start(ap, files);
    for (const char *a; (a = va_arg(ap, const char *)) && n < MAX_ARGS - 9;) args[n++] = a;
    va_end(ap);
    return start_server(c->sesame, args, files);
}

/* Ends the server. False: it did not end well. */
static bool end(process *p)
{
    kill(p->pid, SIGTERM);
    return wait_server(p, 20) == 0;
}

static void write_bodies(const context *c, const char *name, int inputs, int words, char path[128])
{
    snprintf(path, 128, "%s/%s", c->tmp, name);
    FILE *f = fopen(path, "w");
    if (!f) exit(2);
    for (int line = 0; line < 4; line++) {
        fputs("{\"inputs\": [", f);
        for (int i = 0; i < inputs; i++) {
            fputs(i ? ", \"the" : "\"the", f);
            for (int k = 1; k < words; k++) fprintf(f, " %s", k % 3 ? "old river" : "house");
            fprintf(f, " %d\"", line);
        }
        fputs("]}\n", f);
    }
    fclose(f);
}

/* Memory while something runs: sampled by a thread. */
typedef struct watch {
    const process *p;
    atomic_bool stop;
    pthread_t thread;
    double mb[4096];
    int n;
} watch;

static void *run_watch(void *ctx)
{
    watch *w = ctx;
    for (; !atomic_load(&w->stop) && w->n < 4096; sleep_ms(w->n < 100 ? 50 : 250))
        w->mb[w->n++] = rss_mb(w->p);
    return NULL;
}

static watch *start_watch(const process *p)
{
    watch *w = calloc(1, sizeof *w);
    if (!w) exit(2);
    w->p = p;
    if (pthread_create(&w->thread, NULL, run_watch, w)) exit(2);
    return w;
}

/* Growth in MB from `share` of the time to the largest later value. */
static double end_watch(watch *w, double share)
{
    double growth = 0;
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    int first = (int)(share * w->n);
    for (int i = first; i < w->n; i++)
        if (w->mb[i] - w->mb[first] > growth) growth = w->mb[i] - w->mb[first];
    free(w);
    return growth;
}

/* ---- (a) overload ---- */

static void overload(context *c)
{
    char bodies[128], args[512];
    process p = serve(c, SMALL, NULL, 0, "--queue-inputs", "64", NULL);
    write_bodies(c, "overload", 1, 6, bodies);
    snprintf(args, sizeof args, "--bodies %s --connections 32 --seconds %s --warmup 0.2", bodies,
             c->brief ? "0.4" : "5");
    load peak = bench(c->sesame, &p, args);
    watch *w = start_watch(&p);
    snprintf(args, sizeof args, "--bodies %s --connections 512 --rate %.0f --seconds %s --warmup 0.2", bodies,
             10 * peak.per_second, c->brief ? "0.6" : "600");
    load l = bench(c->sesame, &p, args);
    double growth = end_watch(w, 0.3), limit = 64 / peak.per_second * 3 + 0.5;
    double begin = ses_seconds();
    int status = request(&p, "/embed", NULL, one_text, NULL, 0);
    double recovery = since(begin);
    bool ok =
        l.failed == 0 && l.ok > 0 && l.rejected > 0 && is_flat(growth, 24) && status == 200 && recovery < 10;
    if (!c->brief) ok = ok && l.per_second > 0.7 * peak.per_second && l.p99 < limit && recovery < 1.5;
    ok = end(&p) && ok;
    row(c, "overload 10x", ok,
        "peak %.0f/s; at %.0f/s: 200 %.0f/s, 429 %.0f, other %.0f; p50 %.0f ms, p99 %.0f ms; memory %+.1f "
        "MB; "
        "recovery %.0f ms",
        peak.per_second, 10 * peak.per_second, l.per_second, l.rejected, l.failed, 1e3 * l.p50, 1e3 * l.p99,
        growth, 1e3 * recovery);
}

/* ---- (b) clients that misbehave ---- */

static void misbehaving(context *c)
{
    attack list[] = { { "slow headers", slow_headers },    { "slow bodies", slow_bodies },
                      { "half-open", half_open },          { "reset", reset_clients },
                      { "never read", never_read },        { "unread streams", unread_streams },
                      { "malformed", malformed_requests }, { "random bytes", random_bytes } };
    enum { ATTACKS = sizeof list / sizeof *list };
    atomic_bool stop = false;
    int n, failed, before_n, wrong = 0, connections = 0, milliseconds = c->brief ? 1500 : 60000;
    process p = serve(c, TINY, DECODER, 0, "--header-timeout", "1", "--body-timeout", "2", NULL);
    request(&p, "/v1/completions", NULL, "{\"prompt\": \"The\", \"max_tokens\": 200}", NULL, 0);
    probe *good = start_probe(&p, one_text, 2);
    sleep_ms(c->brief ? 300 : 5000);
    double before = end_probe(good, &before_n, &failed);
    double mb = rss_mb(&p);
    for (int i = 0; i < ATTACKS; i++) {
        list[i].server = &p, list[i].stop = &stop;
        if (pthread_create(&list[i].thread, NULL, run_attack, &list[i])) exit(2);
    }
    good = start_probe(&p, one_text, 2);
    sleep_ms(milliseconds);
    double p99 = end_probe(good, &n, &failed);
    int health = request(&p, "/health", NULL, NULL, NULL, 0);
    atomic_store(&stop, true);
    for (int i = 0; i < ATTACKS; i++) {
        pthread_join(list[i].thread, NULL);
        wrong += list[i].wrong, connections += list[i].connections;
    }
    double growth = rss_mb(&p) - mb, left = -1;
    for (int i = 0; i < 60 && left != 1; i++, sleep_ms(100)) left = metric(&p, "sesame_connections");
    bool alive = is_alive(&p),
         ok = alive && health == 200 && !failed && !wrong && is_flat(growth, 64) && left == 1;
    if (!c->brief) ok = ok && p99 < (2 * before > 0.02 ? 2 * before : 0.02);
    ok = alive && end(&p) && ok;
    row(c, "bad clients", ok,
        "%d bad connections, %d wrong answers; good client: %d requests, %d failed, p99 %.2f ms alone, %.2f "
        "ms beside "
        "them; memory %+.1f MB; %.0f connection left",
        connections, wrong, n, failed, 1e3 * before, 1e3 * p99, growth, left);
}

/* ---- (c) the end of the server ---- */

typedef struct drain_client {
    const process *p;
    pthread_t thread;
    atomic_bool *ending;
    int complete, refused, lost;
} drain_client;

/* Sends requests until the server does not accept any more. */
static void *run_drain_client(void *ctx)
{
    drain_client *d = ctx;
    ses_http_request r = { .target = "/embed", .body = one_text, .n = sizeof one_text - 1 };
    ses_http_client *c = connect_to(d->p);
    while (c) {
        ses_http_response a = { 0 };
        if (!ses_http_client_send(c, &r, NULL)) break; /* closed before the request was accepted */
        if (!ses_http_client_receive(c, &a, NULL) || a.status != 200) {
            d->lost++;
            break;
        }
        d->complete++;
        if (a.keep_alive) continue;
        ses_http_client_free(c);
        c = connect_to(d->p);
    }
    d->refused += !c;
    ses_http_client_free(c);
    return NULL;
}

static void drain(context *c)
{
    enum { CLIENTS = 32 };
    int complete = 0, lost = 0, rounds = c->brief ? 2 : 50, wrong = 0;
    double longest = 0;
    for (int k = 0; k < rounds; k++) {
        drain_client d[CLIENTS] = { 0 };
        process p = serve(c, SMALL, NULL, 0, NULL);
        for (int i = 0; i < CLIENTS; i++) {
            d[i].p = &p;
            if (pthread_create(&d[i].thread, NULL, run_drain_client, &d[i])) exit(2);
        }
        sleep_ms(100 + k * 7 % 50);
        double begin = ses_seconds();
        wrong += !end(&p);
        if (since(begin) > longest) longest = since(begin);
        for (int i = 0; i < CLIENTS; i++) {
            pthread_join(d[i].thread, NULL);
            complete += d[i].complete, lost += d[i].lost;
        }
    }
    row(c, "SIGTERM under load", !lost && !wrong && complete > 0,
        "%d rounds, %d clients: %d answers complete, %d lost, %d wrong exit codes, longest drain %.0f ms",
        rounds, CLIENTS, complete, lost, wrong, 1e3 * longest);
}

static ses_http_client *open_stream(const process *p, int tokens)
{
    char body[128];
    int n =
        snprintf(body, sizeof body, "{\"prompt\": \"The\", \"max_tokens\": %d, \"stream\": true}", tokens);
    ses_http_client *c = connect_to(p);
    ses_http_request r = { .target = "/v1/completions", .body = body, .n = (size_t)n };
    if (!c || !ses_http_client_send(c, &r, NULL)) puts("  cannot start a stream");
    return c;
}

/* A second signal, the deadline, and the answers of /health before them. */
static void stopping(context *c)
{
    ses_http_client *stream[100], *idle, *second_idle;
    ses_http_response a = { 0 };
    process p = serve(c, DECODER, TINY, 0, NULL);
    for (int i = 0; i < 100; i++) stream[i] = open_stream(&p, 250);
    idle = connect_to(&p), second_idle = connect_to(&p);
    ses_http_request ready = { .target = "/health/ready" }, health = { .target = "/health" };
    bool up = ses_http_client_request(idle, &ready, &a, NULL) && a.status == 200 &&
              ses_http_client_request(second_idle, &health, &a, NULL) && a.status == 200;
    kill(p.pid, SIGUSR2); /* has no meaning for the server */
    kill(p.pid, SIGTERM);
    sleep_ms(20);
    bool down = ses_http_client_request(idle, &ready, &a, NULL) && a.status == 503;
    bool lives = ses_http_client_request(second_idle, &health, &a, NULL) && a.status == 200;
    double begin = ses_seconds();
    kill(p.pid, SIGTERM);
    int code = wait_server(&p, 10);
    double second = since(begin);
    for (int i = 0; i < 100; i++) ses_http_client_free(stream[i]);
    ses_http_client_free(idle);
    ses_http_client_free(second_idle);
    p = serve(c, DECODER, NULL, 0, "--drain", "0.5", NULL);
    for (int i = 0; i < 100; i++) stream[i] = open_stream(&p, 250);
    sleep_ms(50);
    begin = ses_seconds();
    kill(p.pid, SIGTERM);
    int deadline_code = wait_server(&p, 10);
    double deadline = since(begin);
    for (int i = 0; i < 100; i++) ses_http_client_free(stream[i]);
    /* in the suite other tests may hold up both sides for longer than idle connections stay open */
    bool answers = c->brief || (down && lives);
    double late = c->brief ? 8 : 1;
    row(c, "second SIGTERM",
        up && answers && code == 0 && second < late && deadline_code == 0 && deadline < late + 1.5,
        "exit %d after %.0f ms; while it drains /health/ready is 503: %s, /health 200: %s; --drain 0.5: exit "
        "%d after "
        "%.0f ms",
        code, 1e3 * second, down ? "yes" : "no", lives ? "yes" : "no", deadline_code, 1e3 * deadline);
}

/* ---- (d) soak ---- */

static void soak(context *c)
{
    static const char *const load_args[] = { "--path /embed --connections 64",
                                             "--path /embed --connections 8",
                                             "--path /tokenize --connections 16",
                                             "--path /embed_sparse --connections 4" };
    double wanted = c->brief ? 1e4 : 2e6, first = 0, failed = 0, n = 0, begin = ses_seconds();
    process p = serve(c, TINY, NULL, 0, NULL);
    for (int i = 0; n < wanted && since(begin) < 3600; i++) {
        char args[256];
        snprintf(args, sizeof args, "%s --seconds %s --warmup 0", load_args[i % 3], c->brief ? "0.25" : "5");
        load l = bench(c->sesame, &p, args);
        n = metric(&p, "te_request_count"), failed += l.failed;
        if (!first && n > wanted / 10) first = rss_mb(&p);
    }
    double growth = rss_mb(&p) - first, seconds = since(begin);
    bool ok = end(&p) && n >= wanted && failed == 0 && is_flat(growth, c->brief ? 8 : 2);
    row(c, "soak", ok,
        "%.0f requests in %.0f s, %.0f failed; memory after 10 %%: %.1f MB, at the end %+.2f MB", n, seconds,
        failed, first, growth);
}

/* ---- (e) interactive requests beside bulk requests ---- */

typedef struct background {
    const context *c;
    const process *p;
    char args[512];
    pthread_t thread;
    load result;
} background;

static void *run_background(void *ctx)
{
    background *b = ctx;
    b->result = bench(b->c->sesame, b->p, b->args);
    return NULL;
}

static void start_background(background *b)
{
    if (pthread_create(&b->thread, NULL, run_background, b)) exit(2);
    sleep_ms(300);
}

static void interactive(context *c)
{
    char path[128];
    int n, failed, seconds = c->brief ? 1 : 20;
    process p = serve(c, SMALL, NULL, 0, NULL);
    background b = { .c = c, .p = &p };
    write_bodies(c, "bulk", c->brief ? 32 : 256, 16, path);
    snprintf(b.args, sizeof b.args, "--bodies %s --connections %d --seconds %d --warmup 0", path,
             c->brief ? 2 : 8, 2 * seconds + 1);
    request(&p, "/embed", NULL, one_text, NULL, 0);
    double sum = metric(&p, "sesame_batch_seconds_sum"), count = metric(&p, "sesame_batch_seconds_count");
    start_background(&b); /* first alone: the time of a batch */
    sleep_ms(1000 * seconds);
    sum = metric(&p, "sesame_batch_seconds_sum") - sum;
    count = metric(&p, "sesame_batch_seconds_count") - count;
    probe *x = start_probe(&p, one_text, 20);
    sleep_ms(1000 * seconds);
    double p99 = end_probe(x, &n, &failed), batch = count > 0 ? sum / count : 0;
    pthread_join(b.thread, NULL);
    bool ok = end(&p) && !failed && n > 0 && b.result.failed == 0 && (c->brief || p99 <= 2 * batch);
    row(c, "interactive, bulk load", ok,
        "batch %.1f ms; beside %.0f bulk requests/s %d interactive requests, %d failed, p99 %.1f ms (%.2f "
        "batches)",
        1e3 * batch, b.result.per_second, n, failed, 1e3 * p99, batch > 0 ? p99 / batch : 0);
}

/* ---- (f) limits ---- */

static void limits(context *c)
{
    char path[128], head[4096] = "", args[256];
    process p = serve(c, SMALL, NULL, 0, "--queue-inputs", "4", NULL);
    background b = { .c = c, .p = &p };
    write_bodies(c, "four", 4, 20, path);
    snprintf(b.args, sizeof b.args, "--bodies %s --connections 16 --seconds 1 --warmup 0", path);
    start_background(&b);
    int status = 0;
    for (int i = 0; i < 200 && status != 429; i++)
        status = request(&p, "/embed", NULL, one_text, head, sizeof head);
    bool retry = status == 429 && strcasestr(head, "\r\nretry-after: ");
    pthread_join(b.thread, NULL);
    write_bodies(c, "ten", 10, 5, path);
    snprintf(args, sizeof args, "--bodies %s --connections 1 --seconds 0.2 --warmup 0", path);
    load large = bench(c->sesame, &p, args); /* larger than the queue, alone */
    bool ok = end(&p) && retry && b.result.failed == 0 && b.result.rejected > 0 && b.result.ok > 0 &&
              large.ok > 0 && large.failed == 0;
    row(c, "queue limit", ok,
        "200: %.0f, 429: %.0f (Retry-After: %s), other: %.0f; larger than the queue, alone: %.0f ok",
        b.result.ok, b.result.rejected, retry ? "yes" : "no", b.result.failed, large.ok);
}

/* More connections than allowed, or than there are file descriptors. */
static void connections(context *c)
{
    int fd[64], refused = 0;
    process p = serve(c, TINY, NULL, 0, "--max-connections", "8", NULL);
    for (int i = 0; i < 8; i++) fd[i] = raw_connect(&p);
    double begin = ses_seconds();
    int status = request(&p, "/embed", NULL, one_text, NULL, 0);
    double waited = since(begin);
    for (int i = 0; i < 8; i++) close(fd[i]);
    bool ok = end(&p) && status == 200 && waited < 5;
    p = serve(c, TINY, NULL, 24, NULL);
    for (int i = 0; i < 64; i++) fd[i] = raw_connect(&p);
    sleep_ms(300);
    for (int i = 0; i < 64; i++) {
        char b[32];
        if (fd[i] >= 0 && recv(fd[i], b, 12, MSG_DONTWAIT) == 12 && !memcmp(b + 9, "503", 3)) refused++;
        close(fd[i]);
    }
    sleep_ms(200);
    int later = request(&p, "/embed", NULL, one_text, NULL, 0);
    ok = end(&p) && ok && later == 200;
    row(c, "connection limits", ok,
        "9th of 8 connections: %d after %.0f ms; 64 connections with 24 files: %d got 503, a request "
        "afterwards %d",
        status, 1e3 * waited, refused, later);
}

/* ---- (g), (j) generation ---- */

static void disconnects(context *c)
{
    enum { STREAMS = 80 };
    ses_http_client *s[STREAMS];
    double left = -1, begin;
    process p = serve(c, DECODER, NULL, 0, NULL);
    for (int k = 0; k < (c->brief ? 2 : 20); k++) {
        for (int i = 0; i < STREAMS; i++) s[i] = open_stream(&p, 250);
        sleep_ms(50 + 10 * k);
        for (int i = 0; i < STREAMS; i++)
            raw_reset(dup(ses_http_client_fd(s[i]))), ses_http_client_free(s[i]);
    }
    begin = ses_seconds();
    while ((left = metric(&p, "sesame_admitted_inputs")) != 0 && since(begin) < 5) sleep_ms(5);
    double freed = since(begin);
    int status = request(&p, "/v1/completions", NULL, "{\"prompt\": \"The\", \"max_tokens\": 4}", NULL, 0);
    double next = since(begin) - freed;
    bool ok = end(&p) && left == 0 && status == 200;
    row(c, "disconnects", ok,
        "%d streams left by their clients; slots free after %.0f ms; the next text took %.0f ms",
        STREAMS * (c->brief ? 2 : 20), 1e3 * freed, 1e3 * next);
}

static bool ends_well(ses_http_client *c)
{
    ses_http_response a = { 0 };
    return ses_http_client_receive(c, &a, NULL) && a.status == 200 && a.body.n > 8 &&
           !memcmp(a.body.p + a.body.n - 8, "[DONE]\n\n", 8);
}

static void generation(context *c)
{
    static const char many[] = "{\"prompt\": \"The\", \"max_tokens\": 40, \"n\": 60, \"temperature\": 1}";
    int streams = c->brief ? 70 : 400, complete = 0, n, failed, samples;
    ses_http_client *s[400], *wide = NULL;
    ses_http_response a = { 0 };
    process p = serve(c, DECODER, TINY, 0, "--workers", "1", NULL);
    double begin = ses_seconds();
    for (int i = 0; i < streams; i++) {
        s[i] = open_stream(&p, c->brief ? 60 : 250);
        if (i != streams / 2) continue;
        wide = connect_to(&p); /* needs nearly all sequences at once */
        ses_http_client_send(
            wide, &(ses_http_request){ .target = "/v1/completions", .body = many, .n = sizeof many - 1 },
            NULL);
    }
    probe *x = start_probe(&p, one_text, 5);
    for (int i = 0; i < streams; i++) complete += ends_well(s[i]), ses_http_client_free(s[i]);
    bool wide_ok = ses_http_client_receive(wide, &a, NULL) && a.status == 200;
    ses_http_client_free(wide);
    double seconds = since(begin), p99 = end_probe(x, &n, &failed);
    samples = n;
    bool ok =
        end(&p) && complete == streams && wide_ok && !failed && samples > 0 && p99 < (c->brief ? 20 : 1);
    row(c, "many streams", ok,
        "%d of %d streams and a request for 60 texts complete in %.1f s; embeddings beside them: %d, %d "
        "failed, p99 %.1f ms",
        complete, streams, seconds, samples, failed, 1e3 * p99);
}

/* ---- (h) reload, (i) settings ---- */

static void reload(context *c)
{
    int reloads = c->brief ? 20 : 300;
    process p = serve(c, TINY, TAGGER, 0, NULL);
    background b = { .c = c, .p = &p };
    double half = 0;
    snprintf(b.args, sizeof b.args, "--connections 16 --seconds %d --warmup 0", c->brief ? 2 : 32);
    start_background(&b);
    for (int i = 0; i < reloads; i++, sleep_ms(c->brief ? 50 : 100)) {
        kill(p.pid, SIGHUP);
        if (i == reloads / 3) half = rss_mb(&p);
    }
    double growth = rss_mb(&p) - half;
    pthread_join(b.thread, NULL);
    bool ok =
        end(&p) && b.result.failed == 0 && b.result.rejected == 0 && b.result.ok > 0 && is_flat(growth, 24);
    row(c, "reload under load", ok, "%d reloads; 200: %.0f, 429: %.0f, failed: %.0f; memory %+.1f MB",
        reloads, b.result.ok, b.result.rejected, b.result.failed, growth);
}

static void settings(context *c)
{
    int n = c->brief ? 1000 : 5000, wrong = 0, refused = 0;
    double first = 0;
    process p = serve(c, TAGGER, TINY, 0, NULL);
    for (int i = 0; i < n; i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "{\"inputs\": \"plum fig\", \"parameters\": {\"stride\": %d, \"ignore_labels\": [\"x%d\"]}}",
                 i % 4, i);
        int status = request(&p, "/models/tag/pipeline/token-classification", NULL, body, NULL, 0);
        wrong += status != 200;
        char name[256];
        snprintf(name, sizeof name, "{\"model\": \"e\", \"inputs\": \"a\", \"prompt_name\": \"x%d\"}", i);
        refused += request(&p, "/embed", NULL, name, NULL, 0) / 100 == 4;
        if (i == n / 2) first = rss_mb(&p); /* the registry holds as many pipelines as it may */
    }
    double growth = rss_mb(&p) - first;
    /* A pipeline takes 0.2 MB. A worker that was idle in the first half may still clone all that are kept. */
    bool ok = end(&p) && !wrong && refused == n && is_flat(growth, 36);
    row(c, "many settings", ok,
        "%d combinations, %d failed, %d unknown names refused; memory %.1f MB, %+.1f MB at the end", n, wrong,
        refused, first, growth);
}

/* ---- all ---- */

static const struct {
    const char *name;
    void (*run)(context *c);
} tests[] = {
    { "overload", overload },       { "bad-clients", misbehaving }, { "drain", drain },
    { "stop", stopping },           { "interactive", interactive }, { "queue", limits },
    { "connections", connections }, { "disconnects", disconnects }, { "reload", reload },
    { "settings", settings },       { "streams", generation },      { "soak", soak },
};

static bool parse(context *c, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "--short"))
            c->brief = true;
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            c->only = argv[++i];
        else
            return false;
    }
    c->sesame = argv[i];
    return i + 1 == argc;
}

int main(int argc, char **argv)
{
    context c = { 0 };
    char command[128];
    if (!parse(&c, argc, argv)) {
        fputs("usage: serve_faults [--short] [--only NAME] SESAME\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    snprintf(c.tmp, sizeof c.tmp, "/tmp/serve-faults-XXXXXX");
    if (!mkdtemp(c.tmp)) return 2;
    int ran = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!c.only || !strcmp(c.only, tests[i].name)) tests[i].run(&c), ran++;
    snprintf(command, sizeof command, "rm -r '%s'", c.tmp);
    if (system(command)) return 2;
    printf("%d passed, %d failed\n", ran - c.failed, c.failed);
    return c.failed > 0;
}
