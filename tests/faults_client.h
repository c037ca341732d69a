/* For serve_faults.c: a server process, its memory, good clients with their latency, and raw sockets. */
#ifndef TESTS_FAULTS_CLIENT_H
#define TESTS_FAULTS_CLIENT_H

#include "base/clock.h"
#include "http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline void sleep_ms(int64_t ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

static inline double since(double begin) { return ses_seconds() - begin; }

static inline int number_of(const char *text) { return (int)strtol(text, NULL, 10); }
static inline double real_of(const char *text) { return strtod(text, NULL); }

/* ---- the server process ---- */

typedef struct process {
    pid_t pid;
    int port;
} process;

enum { MAX_ARGS = 48 };

/* Waits for the line with the port. The rest of standard error is dropped by a thread, so that the server
 * never waits for it. */
static inline void *drop_output(void *ctx)
{
    char line[512];
    FILE *f = ctx;
    while (fgets(line, sizeof line, f))
        if (strstr(line, "Sanitizer") || strstr(line, "runtime error")) fputs(line, stdout);
    fclose(f);
    return NULL;
}

static inline void exec_server(const char *sesame, const char *const *args, int files)
{
    const char *argv[MAX_ARGS] = { sesame, "serve", "-p", "0" };
    int n = 4;
    while (*args && n < MAX_ARGS - 1) argv[n++] = *args++;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no server stays if the test is killed */
    if (files) setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)files, (rlim_t)files });
    execv(sesame, (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* files: limit of open files; 0: none. */
static inline process start_server(const char *sesame, const char *const *args, int files)
{
    int fd[2];
    char line[512];
    process p = { 0 };
    pthread_t thread;
    if (pipe(fd)) exit(2);
    p.pid = fork();
    if (!p.pid) {
        dup2(fd[1], 2);
        close(fd[0]);
        close(fd[1]);
        exec_server(sesame, args, files);
    }
    close(fd[1]);
    fcntl(fd[0], F_SETFD, FD_CLOEXEC);
    FILE *f = fdopen(fd[0], "r");
    while (!p.port && f && fgets(line, sizeof line, f)) {
        const char *colon = strrchr(line, ':');
        if (strstr(line, "ready in") && colon) p.port = number_of(colon + 1);
        if (!p.port) fputs(line, stdout);
    }
    if (!p.port || pthread_create(&thread, NULL, drop_output, f)) {
        puts("the server did not start");
        exit(2);
    }
    pthread_detach(thread);
    return p;
}

/* The exit status; -1: it did not end in time and was killed; 128 + signal: it crashed. */
static inline int wait_server(process *p, double seconds)
{
    int status = 0;
    for (double begin = ses_seconds(); since(begin) < seconds; sleep_ms(5))
        if (waitpid(p->pid, &status, WNOHANG) == p->pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(p->pid, SIGKILL);
    waitpid(p->pid, &status, 0);
    return -1;
}

static inline bool is_alive(const process *p) { return !waitpid(p->pid, NULL, WNOHANG); }

/* A number from /proc/PID/status, such as "VmRSS:" in kB. */
static inline double rss_mb(const process *p)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmRSS:", 6)) kb = number_of(line + 6);
    if (f) fclose(f);
    return (double)kb / 1024;
}

/* ---- requests ---- */

static inline ses_http_client *connect_to(const process *p)
{
    return ses_http_client_open("127.0.0.1", p->port, 60, NULL);
}

/* One request on a connection of its own. Returns the status; 0: none. */
static inline int request(const process *p, const char *path, const char *headers, const char *body,
                          char *out, size_t n)
{
    ses_http_response a = { 0 };
    ses_http_client *c = connect_to(p);
    ses_http_request r = { .target = path, .headers = headers, .body = body, .n = body ? strlen(body) : 0 };
    bool ok = c && ses_http_client_request(c, &r, &a, NULL);
    if (ok && out) snprintf(out, n, "%.*s\n%.*s", (int)a.head.n, a.head.p, (int)a.body.n, a.body.p);
    ses_http_client_free(c);
    return ok ? a.status : 0;
}

/* A value of /metrics; -1: there is none. */
static inline double metric(const process *p, const char *name)
{
    static char text[1 << 17];
    char key[128];
    snprintf(key, sizeof key, "\n%s ", name);
    if (request(p, "/metrics", NULL, NULL, text, sizeof text) != 200) return -1;
    const char *at = strstr(text, key);
    return at ? real_of(at + strlen(key)) : -1;
}

/* ---- a good client, beside the others ---- */

enum { MAX_SAMPLES = 1 << 16 };

typedef struct probe {
    const process *server;
    const char *path, *body;
    int pause_ms;
    atomic_bool stop;
    pthread_t thread;
    double *latency; /* [n] seconds */
    int n, failed;
} probe;

static inline void *run_probe(void *ctx)
{
    probe *x = ctx;
    ses_http_client *c = NULL;
    ses_http_request r = { .target = x->path, .body = x->body, .n = strlen(x->body) };
    while (!atomic_load(&x->stop) && x->n < MAX_SAMPLES) {
        ses_http_response a = { 0 };
        double begin = ses_seconds();
        if (!c) c = connect_to(x->server);
        if (!c || !ses_http_client_request(c, &r, &a, NULL) || a.status != 200) x->failed++;
        x->latency[x->n++] = since(begin);
        if (!a.keep_alive) ses_http_client_free(c), c = NULL;
        sleep_ms(x->pause_ms);
    }
    ses_http_client_free(c);
    return NULL;
}

static inline probe *start_probe(const process *p, const char *body, int pause_ms)
{
    probe *x = calloc(1, sizeof *x);
    if (x) x->latency = calloc(MAX_SAMPLES, sizeof *x->latency);
    if (!x || !x->latency) exit(2);
    x->server = p, x->path = "/embed", x->body = body, x->pause_ms = pause_ms;
    if (pthread_create(&x->thread, NULL, run_probe, x)) exit(2);
    return x;
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ends the client; returns its p99 in seconds. */
static inline double end_probe(probe *x, int *n, int *failed)
{
    atomic_store(&x->stop, true);
    pthread_join(x->thread, NULL);
    qsort(x->latency, (size_t)x->n, sizeof *x->latency, compare_doubles);
    double p99 = x->n ? x->latency[(x->n * 99) / 100 < x->n ? (x->n * 99) / 100 : x->n - 1] : 0;
    *n = x->n, *failed = x->failed;
    free(x->latency);
    free(x);
    return p99;
}

/* ---- the load generator ---- */

typedef struct load {
    double sent, ok, rejected, failed, per_second, p50, p99;
} load;

static inline double member(const char *json, const char *key)
{
    char text[64];
    snprintf(text, sizeof text, "\"%s\": ", key);
    const char *at = strstr(json, text);
    return at ? real_of(at + strlen(text)) : -1;
}

static inline load bench(const char *sesame, const process *p, const char *args)
{
    char command[1024], line[2048] = "";
    snprintf(command, sizeof command, "'%s' bench serve --json --url http://127.0.0.1:%d %s", sesame, p->port,
             args);
    FILE *f = popen(command, "r");
    if (!f || !fgets(line, sizeof line, f)) puts("sesame bench serve failed");
    if (f) pclose(f);
    return (load){ member(line, "sent"),   member(line, "ok"),         member(line, "rejected"),
                   member(line, "failed"), member(line, "per_second"), member(line, "p50"),
                   member(line, "p99") };
}

/* ---- raw sockets ---- */

static inline int raw_connect(const process *p)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)p->port) };
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 5, 0 }, sizeof(struct timeval));
    if (!connect(fd, (struct sockaddr *)&a, sizeof a)) return fd;
    close(fd);
    return -1;
}

static inline bool raw_send(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0) return false;
        p += k, n -= (size_t)k;
    }
    return true;
}

static inline void raw_reset(int fd)
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
    close(fd);
}

/* The status of a response; 0: the server closed without one. */
static inline int raw_status(int fd)
{
    char b[64];
    ssize_t n = recv(fd, b, sizeof b - 1, 0);
    b[n > 0 ? n : 0] = 0;
    return n > 12 && !strncmp(b, "HTTP/1.1 ", 9) ? number_of(b + 9) : 0;
}

#endif
