/* Scores and costs of the candidates. Every measurement runs in a child process of its own, on the CPU. */
#define _POSIX_C_SOURCE 200809L
#include "compress.h"

#include "base/alloc.h"
#include "base/str.h"
#include "cli/compress/score_drop.h"
#include "cli/experiment/child_process.h"
#include "cli/ladder/ladder.h"
#include "cli/train/train_monitor.h"
#include "compress_timing.h"
#include "model/model_desc.h"
#include "nn/config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The report of a child. */
typedef struct result {
    bool ok;
    ses_err why;
    double score, low, high, memory, parameters, flops;
    ses_timing timing;
} result;

typedef void child_fn(const ses_compress *z, size_t candidate, result *r);

/* ---- child processes ---- */

/* Reads the whole struct; a signal ends the child. */
static bool receive(int fd, pid_t pid, result *r)
{
    enum { WAIT_MS = 100 }; /* a signal may arrive before the wait */
    size_t got = 0;
    while (got < sizeof *r) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (ses_train_monitor_should_stop()) kill(pid, SIGKILL);
        if (poll(&p, 1, WAIT_MS) <= 0) continue;
        ssize_t n = read(fd, (char *)r + got, sizeof *r - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        got += (size_t)n;
    }
    return got == sizeof *r;
}

/* A process that measures a candidate. Its report fits into the pipe, so it never waits for this one. */
typedef struct child {
    pid_t pid;
    int fd;
} child;

static bool start(const ses_compress *z, size_t candidate, child_fn *fn, child *c, ses_err *e)
{
    int fd[2];
    if (pipe(fd) != 0) return ses_fail(e, SES_EIO, "pipe: %s", strerror(errno));
    pid_t parent = getpid();
    fflush(NULL);
    *c = (child){ .pid = fork(), .fd = fd[0] };
    if (!c->pid) {
        result own = { 0 };
        close(fd[0]);
        ses_child_follow_parent((int)parent, SIGKILL);
        fn(z, candidate, &own);
        _exit(write(fd[1], &own, sizeof own) == (ssize_t)sizeof own ? 0 : 1);
    }
    close(fd[1]);
    if (c->pid > 0) return true;
    close(fd[0]);
    return ses_fail(e, SES_EIO, "a process cannot be started: %s", strerror(errno));
}

static void finish(const child *c, result *r)
{
    *r = (result){ 0 };
    bool whole = receive(c->fd, c->pid, r);
    close(c->fd);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (whole) return;
    *r = (result){ 0 };
    ses_fail(&r->why, SES_EIO, "the process that measured it ended early");
}

/* ---- resident memory ---- */

/* A line of /proc/self/status in bytes; NaN: there is none. */
static double status_bytes(const char *name)
{
    char line[200];
    double kib = NAN;
    size_t n = strlen(name);
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n) && line[n] == ':') kib = strtod(line + n + 1, NULL);
    if (f) fclose(f);
    return 1024 * kib;
}

/* From now on VmHWM is the peak after this call. */
static void reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "5", 1) < 0) errno = 0; /* the peak since the start of the process counts */
    close(fd);
}

/* ---- score, memory, size ---- */

static void count(const char *dir, ses_device *dev, result *r)
{
    ses_model *m = ses_model_open(dir, dev, &(ses_model_options){ 0 }, NULL);
    r->parameters = m ? (double)ses_store_element_count(ses_model_store(m)) : NAN;
    r->flops = m ? m->flops.rate[SES_UNIT_TOKEN][SES_FLOP_WEIGHT] : NAN;
    ses_model_free(m);
}

static bool evaluate(const ses_compress *z, ses_predictor *p, result *r, ses_err *e)
{
    ses_eval_report report = { 0 };
    bool ok = ses_predictor_evaluate(p, z->eval, &report, e);
    r->score = r->low = r->high = NAN;
    for (size_t i = 0; ok && i < report.scores.n; i++) {
        const ses_score *s = &report.scores.item[i];
        if (!strcmp(s->name, z->metric)) r->score = s->value, r->low = s->low, r->high = s->high;
    }
    if (ok && report.mean_layers > 0) r->flops *= report.mean_layers / (double)report.n_layers;
    ses_eval_report_free(&report);
    return ok && (isfinite(r->score) || ses_fail(e, SES_EARG, "%s: no score %s", z->eval, z->metric));
}

/* A rule may follow a precision. */
static bool ends_in_precision(const ses_candidate *x)
{
    return x->method && x->method->kind != SES_COMPRESS_TRANSFORM;
}

/* The memory of the model comes first: the evaluation keeps all outputs. */
static void measure_score(const ses_compress *z, size_t candidate, result *r)
{
    const char *dir = z->candidate[candidate].dir;
    ses_test_bench b;
    bool ok = ses_test_bench_open(&b, z, &r->why);
    if (ok) count(dir, b.dev, r);
    double before = status_bytes("VmRSS");
    reset_peak();
    ses_predictor *p = ok ? ses_test_bench_predictor(&b, candidate, &r->why) : NULL;
    ok = p && ses_test_bench_visit(&b, p, &r->why);
    r->memory = status_bytes("VmHWM") - before;
    const char *device = z->a->tune.compute.device;
    if (ok && strcmp(device, "cpu") &&
        !ends_in_precision(&z->candidate[candidate])) { /* f32 there as here, to the last digits */
        ses_predictor_free(p);
        ok = (p = ses_test_bench_move(&b, candidate, &r->why)) != NULL;
    }
    r->ok = ok && evaluate(z, p, r, &r->why);
    ses_predictor_free(p);
    ses_test_bench_close(&b);
}

static void measure_times(const ses_compress *z, size_t candidate, result *r)
{
    ses_test_bench b;
    ses_predictor *p = NULL, *original = NULL;
    bool ok =
        ses_test_bench_open(&b, z, &r->why) && (original = ses_test_bench_predictor(&b, 0, &r->why)) != NULL;
    if (ok && candidate) ok = (p = ses_test_bench_predictor(&b, candidate, &r->why)) != NULL;
    r->ok = ok && ses_test_bench_time(&b, original, p, (size_t)z->a->rounds, &r->timing, &r->why);
    ses_predictor_free(p);
    ses_predictor_free(original);
    ses_test_bench_close(&b);
}

/* ---- all candidates ---- */

static void keep(ses_compress *z, ses_candidate *x, const result *score, const result *times)
{
    const ses_timing *t = &times->timing;
    x->is_measured = true;
    x->score = score->score, x->low = score->low, x->high = score->high;
    x->cost = (ses_compress_costs){ .latency = t->latency,
                                    .throughput = t->throughput,
                                    .memory = score->memory,
                                    .bytes = ses_ladder_folder_bytes(x->dir),
                                    .parameters = score->parameters,
                                    .flops = score->flops,
                                    .joules = t->joules };
    x->speed = t->speed;
    x->rate = t->rate;
    x->energy_ratio = t->energy_ratio;
    if (*t->energy_note) snprintf(z->energy_note, sizeof z->energy_note, "%s", t->energy_note);
}

/* Whether a candidate is made but not measured. */
static bool is_open(const ses_candidate *x) { return x->base.state == SES_JOB_DONE && !x->is_measured; }

/* Scores of the made candidates, --jobs at a time: they do not depend on other processes. */
static bool measure_scores(ses_compress *z, result *score, ses_progress *line, ses_err *e)
{
    enum { MAX = 64 };
    child running[MAX];
    size_t order[MAX], first = 0, n = 0, done = 0, next = 0, jobs = (size_t)z->a->jobs;
    bool ok = true;
    while (ok || n) {
        while (next < z->n && !is_open(&z->candidate[next])) next++;
        if (ok && next < z->n && n < jobs && n < MAX && !ses_train_monitor_should_stop()) {
            size_t at = (first + n) % MAX;
            order[at] = next;
            ok = start(z, next++, measure_score, &running[at], e);
            n += ok;
            continue;
        }
        if (!n) break;
        finish(&running[first], &score[order[first]]);
        first = (first + 1) % MAX;
        n--;
        ses_progress_show(line, (int64_t)++done);
    }
    return ok;
}

static bool measure(ses_compress *z, size_t i, const result *score, bool *stopped, ses_err *e)
{
    ses_candidate *x = &z->candidate[i];
    result times = { 0 };
    child c;
    if (score->ok && !start(z, i, measure_times, &c, e)) return false;
    if (score->ok) finish(&c, &times);
    if ((*stopped = ses_train_monitor_should_stop())) return true;
    const result *failed = !score->ok ? score : !times.ok ? &times : NULL;
    if (failed) {
        ses_job_fail(&x->base, &failed->why);
        if (!i) return ses_fail(e, failed->why.code, "%s: %s", z->model, failed->why.msg);
    } else
        keep(z, x, score, &times);
    return ses_compress_write_candidate(z, i, e);
}

static void show(const ses_compress *z, const ses_candidate *x, size_t number, size_t total)
{
    if (z->x.c->quiet) return;
    if (x->is_measured)
        fprintf(stderr, "[%zu/%zu] %s: %s %.4f, %.2f ms, %.2f times as fast\n", number, total, x->name,
                z->metric, x->score, 1e3 * x->cost.latency, x->speed);
    else
        fprintf(stderr, "[%zu/%zu] %s: %s\n", number, total, x->name, x->base.reason);
}

bool ses_compress_measure_all(ses_compress *z, bool *stopped, ses_err *e)
{
    size_t total = 0, done = 0;
    for (size_t i = 0; i < z->n; i++) total += is_open(&z->candidate[i]);
    result *score = ses_alloc_array(z->n, sizeof *score, e);
    ses_progress line =
        ses_progress_start(stderr, &z->x.c->err, z->x.c->quiet, "models evaluated", (int64_t)total);
    bool ok = score && measure_scores(z, score, &line, e);
    ses_progress_end(&line);
    line = ses_progress_start(stderr, &z->x.c->err, z->x.c->quiet, "models timed", (int64_t)total);
    for (size_t i = 0; ok && !(*stopped = ses_train_monitor_should_stop()) && i < z->n; i++) {
        if (!is_open(&z->candidate[i])) continue;
        ses_progress_show(&line, (int64_t)done);
        ok = measure(z, i, &score[i], stopped, e);
        ses_progress_end(&line);
        if (ok && !*stopped) show(z, &z->candidate[i], ++done, total);
    }
    for (size_t i = 0; ok && i < z->n; i++)
        z->candidate[i].drop =
            ses_score_drop(z->candidate[0].score, z->candidate[i].score, z->lower_is_better, z->in_percent);
    ses_free(score);
    return ok;
}
