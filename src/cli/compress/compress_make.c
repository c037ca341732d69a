/* Makes the models of candidates: runs their commands as processes, several at a time. */
#define _POSIX_C_SOURCE 200809L
#include "compress.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "train/checkpoint_dir.h"
#include "tune/finetuner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 64, LOG_MAX = 1 << 24 };

/* A candidate whose commands run. */
typedef struct job {
    size_t candidate;
    const char *at; /* the line that runs, in the candidate's commands */
    pid_t pid;
    double start;
} job;

typedef struct workshop {
    ses_compress *z;
    job job[MAX_JOBS];
    size_t n_jobs, done, total;
    double start;
    bool stopping;
    ses_progress line;
} workshop;

/* ---- one command ---- */

/* The word after --output, or the second operand of convert and quantize; NULL: none. */
static const char *output_of(char *const *word)
{
    for (size_t i = 2; word[0] && word[1] && word[i]; i++)
        if (!strcmp(word[i], "--output") || !strcmp(word[i], "--write")) return word[i + 1];
    return word[0] && word[1] && word[2] ? word[3] : NULL;
}

/* Replaces this process, a child of `parent`. threads 0: the command's own number. */
static void execute(char **word, const char *log, bool resume, int threads, pid_t parent)
{
    char count[24], *argv[512];
    size_t n = 0;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), none = open("/dev/null", O_RDWR);
    for (; word[n] && n < SES_LEN(argv) - 6; n++) argv[n] = word[n];
    argv[n++] = (char *)(uintptr_t) "--quiet";
    if (threads && strcmp(word[1], "convert") != 0) {
        snprintf(count, sizeof count, "%d", threads);
        argv[n++] = (char *)(uintptr_t) "--threads";
        argv[n++] = count;
    }
    if (resume) argv[n++] = (char *)(uintptr_t) "--resume";
    argv[n] = NULL;
    ses_compress_follow_parent((int)parent, SIGTERM);
    dup2(none, STDIN_FILENO);
    dup2(fd < 0 ? none : fd, STDERR_FILENO);
    dup2(none, STDOUT_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Starts the command at j->at. Output of an earlier call is continued or removed. */
static bool start(workshop *s, job *j, ses_err *e)
{
    const ses_compress *z = s->z;
    size_t n = (size_t)(ses_compress_step_end(j->at) - j->at);
    char **word = ses_compress_split(j->at, n, e), *log = ses_compress_path(z, j->candidate, ".log", e);
    const char *out = word ? output_of(word) : NULL;
    bool ok = word && log, resume = ok && out && !strcmp(word[1], "finetune") && ses_checkpoint_any(out);
    int threads = ses_compute_threads(&z->a->tune.compute) / (int)z->a->jobs;
    if (ok && out && !resume && ses_path_exists(out)) ok = ses_dir_remove_all(out, e);
    pid_t own = getpid();
    fflush(NULL);
    j->pid = ok ? fork() : -1;
    if (ok && !j->pid) execute(word, log, resume, threads > 1 ? threads : 1, own);
    if (ok && j->pid < 0) ok = ses_fail(e, SES_EIO, "a process cannot be started: %s", strerror(errno));
    ses_free(word);
    ses_free(log);
    return ok;
}

/* The last line of a text that is not empty, without the name of the program and a final period. A line
 * that begins with the name comes before others: "sesame: MESSAGE", then "Try 'sesame prune --help'.". */
static ses_string last_message(const char *text, size_t n)
{
    static const char name[] = "sesame: ";
    const size_t len = sizeof name - 1;
    ses_string last = { "", 0 }, named = last;
    for (size_t begin = 0, end; begin < n; begin = end + 1) {
        for (end = begin; end < n && text[end] != '\n';) end++;
        if (end == begin) continue;
        last = (ses_string){ text + begin, end - begin };
        if (last.n > len && !strncmp(last.p, name, len)) named = (ses_string){ last.p + len, last.n - len };
    }
    if (named.n) last = named;
    if (last.n > 1 && last.p[last.n - 1] == '.' && last.p[last.n - 2] != '.') last.n--; /* not of "..." */
    return last;
}

/* Why the commands of a candidate failed: from its log. */
static void read_reason(const ses_compress *z, size_t i, char *reason, size_t size)
{
    char *path = ses_compress_path(z, i, ".log", NULL);
    size_t n = 0;
    char *text = path && ses_path_exists(path) ? ses_file_read(path, LOG_MAX, &n, NULL) : NULL;
    ses_string why = text ? last_message(text, n) : (ses_string){ "", 0 };
    if (why.n)
        ses_quote(reason, size, why.p, why.n);
    else
        snprintf(reason, size, "its command failed");
    ses_free(text);
    ses_free(path);
}

/* ---- candidates ---- */

static void fail(ses_candidate *x, ses_err *why)
{
    x->state = SES_CANDIDATE_FAILED;
    x->is_unsupported = why->code == SES_EUNSUPPORTED;
    ses_quote(x->reason, sizeof x->reason, why->msg, strlen(why->msg));
}

static void show(workshop *s, const ses_candidate *x)
{
    char time[SES_NUMBER_TEXT];
    s->done++;
    if (s->z->c->quiet) return;
    ses_progress_end(&s->line);
    if (x->state == SES_CANDIDATE_MADE)
        fprintf(stderr, "[%zu/%zu] %s: made in %s\n", s->done, s->total, x->name,
                ses_elapsed_text(time, x->seconds));
    else
        fprintf(stderr, "[%zu/%zu] %s: %s\n", s->done, s->total, x->name, x->reason);
}

/* Candidates that cannot be made: the method does not fit, needs data, or the one before it failed. */
static bool is_excluded(const ses_compress *z, size_t i, ses_err *why)
{
    const ses_candidate *x = &z->candidate[i], *parent = &z->candidate[x->parent];
    const char *task = z->a->tune.data.task;
    if (!x->method) return z->is_new && !z->train && !ses_fail(why, SES_EUSAGE, "needs --data");
    if (parent->state == SES_CANDIDATE_FAILED)
        return !ses_fail(why, parent->is_unsupported ? SES_EUNSUPPORTED : SES_EARG, "%s was not made",
                         parent->name);
    if (x->method->trains && !z->train)
        return !ses_fail(why, SES_EUNSUPPORTED, "needs training data: --data FILE");
    if (x->method->tasks && !ses_list_has(x->method->tasks, z->task->name))
        return !ses_fail(why, SES_EUNSUPPORTED, "not for the task %s", task);
    return false;
}

static bool begin(workshop *s, size_t i, ses_err *e)
{
    ses_candidate *x = &s->z->candidate[i];
    ses_err why = { 0 };
    job *j = &s->job[s->n_jobs];
    x->commands.len = 0;
    if (is_excluded(s->z, i, &why) || !ses_compress_put_steps(s->z, i, &x->commands, &why)) {
        fail(x, &why);
        show(s, x);
        return ses_compress_write_candidate(s->z, i, e);
    }
    if (x->method && x->method->kind == SES_COMPRESS_RULE) { /* the model of its parent */
        x->state = SES_CANDIDATE_MADE;
        s->done++;
        return ses_compress_write_candidate(s->z, i, e);
    }
    *j = (job){ .candidate = i, .at = x->commands.data, .start = ses_seconds() };
    if (!start(s, j, e)) return false;
    s->n_jobs++;
    return true;
}

/* After a command of job k has ended: the next one, or the end of the candidate. */
static bool go_on(workshop *s, size_t k, int status, ses_err *e)
{
    job *j = &s->job[k];
    ses_candidate *x = &s->z->candidate[j->candidate];
    bool ok = WIFEXITED(status) && !WEXITSTATUS(status);
    const char *end = ses_compress_step_end(j->at);
    if (ok && end[0] && end[1] && !s->stopping) {
        j->at = end + 1;
        return start(s, j, e);
    }
    if (ok && (!end[0] || !end[1])) {
        x->seconds += ses_seconds() - j->start;
        x->state = SES_CANDIDATE_MADE;
    } else if (!s->stopping) {
        x->state = SES_CANDIDATE_FAILED;
        read_reason(s->z, j->candidate, x->reason, sizeof x->reason);
    }
    bool written = x->state == SES_CANDIDATE_OPEN || ses_compress_write_candidate(s->z, j->candidate, e);
    if (x->state != SES_CANDIDATE_OPEN) show(s, x);
    s->job[k] = s->job[--s->n_jobs];
    return written;
}

static bool is_running(const workshop *s, size_t i)
{
    for (size_t k = 0; k < s->n_jobs; k++)
        if (s->job[k].candidate == i) return true;
    return false;
}

/* The next candidate that can be started or excluded; z->n: none now. */
static size_t next(const workshop *s)
{
    const ses_compress *z = s->z;
    for (size_t i = 0; i < z->n; i++) {
        ses_candidate_state parent = z->candidate[z->candidate[i].parent].state;
        if (z->candidate[i].state == SES_CANDIDATE_OPEN && !is_running(s, i) &&
            (!i || parent != SES_CANDIDATE_OPEN))
            return i;
    }
    return z->n;
}

static void stop_jobs(workshop *s)
{
    if (s->stopping) return;
    s->stopping = true;
    for (size_t k = 0; k < s->n_jobs; k++) kill(s->job[k].pid, SIGTERM);
}

/* Ended jobs; false: an error. */
static bool collect(workshop *s, ses_err *e)
{
    for (size_t k = 0; k < s->n_jobs;) {
        int status = 0;
        pid_t r = waitpid(s->job[k].pid, &status, WNOHANG);
        size_t before = s->n_jobs;
        if (r == 0 || (r < 0 && errno == EINTR)) {
            k++;
            continue;
        }
        if (!go_on(s, k, r < 0 ? 1 << 8 : status, e)) return false;
        k += s->n_jobs == before;
    }
    return true;
}

static bool run(workshop *s, bool *stopped, ses_err *e)
{
    const ses_compress_args *a = s->z->a;
    bool ok = true;
    for (;;) {
        bool late = a->budget > 0 && ses_seconds() - s->start > 60 * a->budget;
        size_t i = s->z->n;
        if (ses_train_monitor_should_stop()) stop_jobs(s);
        if (ok && !s->stopping && s->n_jobs < (size_t)a->jobs) i = next(s);
        if (i && late) i = s->z->n; /* the original is always made */
        if (i < s->z->n) {
            ok = begin(s, i, e);
            if (!ok) stop_jobs(s);
            continue;
        }
        if (!s->n_jobs) break;
        if (!collect(s, ok ? e : NULL)) ok = false, stop_jobs(s);
        ses_progress_show(&s->line, (int64_t)s->done);
        nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
    }
    *stopped = ses_train_monitor_should_stop();
    return ok;
}

bool ses_compress_make(ses_compress *z, bool *stopped, ses_err *e)
{
    workshop s = { .z = z, .start = ses_seconds() };
    for (size_t i = 0; i < z->n; i++) s.total += z->candidate[i].state == SES_CANDIDATE_OPEN;
    if (s.total < z->n && !z->c->quiet && z->a->resume)
        fprintf(stderr, "%zu model%s made, %zu %s left\n", z->n - s.total,
                z->n - s.total == 1 ? " is" : "s are", s.total, s.total == 1 ? "is" : "are");
    s.line = ses_progress_start(stderr, &z->c->err, z->c->quiet, "models", (int64_t)s.total);
    bool ok = run(&s, stopped, e);
    ses_progress_end(&s.line);
    for (size_t i = 0; ok && !*stopped && i < z->n; i++)
        if (z->candidate[i].state == SES_CANDIDATE_OPEN && !*z->candidate[i].reason)
            snprintf(z->candidate[i].reason, sizeof z->candidate[i].reason,
                     "not made: --budget was used up; --resume continues");
    return ok;
}
