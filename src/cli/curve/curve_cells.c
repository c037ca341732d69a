/* Cells of a learning curve: names, files, running them one after the other or in several processes. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "curve.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/number_text.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "data/examples_sample.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, NAME_SIZE = 120 };

ses_curve_cell *ses_curve_cell_at(const ses_curve *v, size_t size, size_t method, size_t seed)
{
    return &v->cell[(size * v->n_methods + method) * v->n_seeds + seed];
}

size_t ses_curve_seeds_of(const ses_curve *v, size_t size, size_t method)
{
    const ses_curve_method *m = v->method[method];
    bool seeded = m->rung ? m->rung->seeded : m->seeded;
    return v->size[size] || seeded ? v->n_seeds : 1;
}

const char *ses_curve_size_text(int64_t size, char buf[24])
{
    snprintf(buf, 24, "%" PRId64, size);
    return size ? buf : "all";
}

/* ---- files ---- */

static char *path_of(const ses_curve *v, const char *name, const char *ending, ses_err *e)
{
    char file[NAME_SIZE + 8];
    snprintf(file, sizeof file, "%s%s", name, ending);
    return ses_path_join(v->cells, file, e);
}

static void name_cell(const ses_curve *v, size_t size, size_t method, size_t seed, char name[NAME_SIZE])
{
    char text[24];
    snprintf(name, NAME_SIZE, "%s,%s=%s,seed=%" PRId64, v->method[method]->name,
             v->a->per_class ? "shots" : "size", ses_curve_size_text(v->size[size], text),
             v->a->seed + (int64_t)seed);
}

bool ses_curve_cell_read(ses_curve_cell *out, const char *path, ses_err *e)
{
    ses_json_doc *d = ses_path_exists(path) ? ses_json_record_load(path, FILE_MAX, false, e) : NULL;
    const ses_json *root = d ? ses_json_root(d) : NULL;
    ses_curve_cell x = { .train_seconds = NAN, .joules = NAN };
    const char *why = ses_json_string(ses_json_get(root, "failed"), NULL);
    ses_json_real(ses_json_get(root, "train_seconds"), &x.train_seconds);
    ses_json_real(ses_json_get(root, "train_joules"), &x.joules);
    ses_json_int(ses_json_get(root, "examples"), &x.examples);
    x.done = ses_json_real(ses_json_get(root, "score"), &x.score) && isfinite(x.score);
    if (!x.done && why) ses_quote(x.failed, sizeof x.failed, why, strlen(why));
    ses_json_free(d);
    *out = x;
    return x.done;
}

static bool write_cell(const ses_curve *v, const ses_curve_cell *x, const char *name, const char *method,
                       int64_t seed, ses_err *e)
{
    char file[NAME_SIZE + 8];
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", method);
    ses_json_member_int(w, "examples", x->examples);
    ses_json_member_int(w, "seed", seed);
    ses_json_member_string(w, "metric", v->metric);
    if (x->done) {
        ses_json_member_real(w, "score", x->score);
        ses_json_member_real(w, "train_seconds", x->train_seconds);
        ses_json_member_real(w, "train_joules", x->joules);
    } else
        ses_json_member_string(w, "failed", x->failed);
    ses_json_end_object(w);
    snprintf(file, sizeof file, "%s.json", name);
    return ses_json_record_save(w, 2, v->cells, file, true, e);
}

/* ---- one cell ---- */

static void show_cell(const ses_curve *v, const ses_curve_cell *x, const char *name, size_t number,
                      size_t total)
{
    char time[SES_NUMBER_TEXT];
    if (v->c->quiet) return;
    if (x->done)
        fprintf(stderr, "[%zu/%zu] %s: %s %.4f, trained in %s\n", number, total, name, v->metric, x->score,
                ses_elapsed_text(time, x->train_seconds));
    else
        fprintf(stderr, "[%zu/%zu] %s: %s\n", number, total, name, x->failed);
}

/* A run that fails does not end the curve. False: its file cannot be written. */
static bool run_cell(ses_curve *v, size_t size, size_t method, size_t seed, bool *stopped, ses_err *e)
{
    const ses_curve_method *m = v->method[method];
    ses_curve_cell *x = ses_curve_cell_at(v, size, method, seed);
    int64_t number = v->a->seed + (int64_t)seed;
    char name[NAME_SIZE];
    ses_err why = { 0 };
    name_cell(v, size, method, seed, name);
    char *dir = path_of(v, name, "", e);
    if (!dir) return false;
    ses_sample s = { .seed = (uint64_t)number };
    *(v->a->per_class ? &s.shots : &s.size) = v->size[size];
    ses_examples *train = ses_examples_sample(v->train, &s, &why);
    ses_ladder l = { .metric = v->metric };
    ses_ladder_row row = { 0 };
    double begin = ses_seconds();
    *x = (ses_curve_cell){ .examples = train ? (int64_t)ses_examples_count(train) : 0 };
    x->done = train && ses_curve_run_method(v, m, v->size[size], number, train, dir, stopped, &why) &&
              !*stopped &&
              (ses_ladder_read_run(&l, dir, &row, &x->score) ||
               ses_fail(&why, SES_EIO, "%s: results cannot be read", dir));
    *stopped |= !x->done && ses_train_monitor_should_stop();
    /* such a method trains several models: the whole run, with its evaluation */
    x->train_seconds = m->kind == SES_METHOD_OWN ? ses_seconds() - begin : row.train_seconds;
    x->joules = row.joules;
    x->unsupported = !x->done && !*stopped && why.code == SES_EUNSUPPORTED;
    if (!x->done) ses_quote(x->failed, sizeof x->failed, why.msg, strlen(why.msg));
    bool ok = *stopped || write_cell(v, x, name, m->name, number, e);
    if (ok && !*stopped && !(v->a->keep_models && x->done)) ses_dir_remove_all(dir, NULL);
    ses_examples_free(train);
    ses_free(dir);
    return ok;
}

/* ---- all cells ---- */

typedef struct todo {
    size_t *cell; /* index, as in v->cell */
    size_t n;
} todo;

/* Reads the finished cells of a resumed curve and lists the others. */
static bool plan(ses_curve *v, todo *t, ses_err *e)
{
    char name[NAME_SIZE];
    *t = (todo){ ses_alloc_array(v->n_sizes * v->n_methods * v->n_seeds, sizeof *t->cell, e), 0 };
    for (size_t s = 0; t->cell && s < v->n_sizes; s++)
        for (size_t m = 0; m < v->n_methods; m++)
            for (size_t k = 0; k < ses_curve_seeds_of(v, s, m); k++) {
                name_cell(v, s, m, k, name);
                char *path = path_of(v, name, ".json", e);
                ses_err why = { 0 };
                if (!path) return false;
                bool done = v->a->resume && ses_curve_cell_read(ses_curve_cell_at(v, s, m, k), path, &why);
                if (why.code) fprintf(stderr, "%s: the cell is run again\n", why.msg);
                if (!done) t->cell[t->n++] = (size_t)(ses_curve_cell_at(v, s, m, k) - v->cell);
                ses_free(path);
            }
    return t->cell != NULL;
}

/* The first cell of a method that failed because the model cannot have it; NULL: none. */
static const ses_curve_cell *find_unsupported(const ses_curve *v, size_t method)
{
    for (size_t i = 0; i < v->n_sizes * v->n_methods * v->n_seeds; i++)
        if (i / v->n_seeds % v->n_methods == method && v->cell[i].unsupported) return &v->cell[i];
    return NULL;
}

/* Runs the cells that `next`, shared with other processes, gives. A method that cannot be used with the model
 * is tried once. */
static bool run_some(ses_curve *v, const todo *t, _Atomic size_t *next, bool *stopped, ses_err *e)
{
    for (size_t i; !*stopped && (i = atomic_fetch_add(next, 1)) < t->n;) {
        size_t at = t->cell[i], seed = at % v->n_seeds, method = at / v->n_seeds % v->n_methods;
        const ses_curve_cell *same = find_unsupported(v, method);
        char name[NAME_SIZE];
        name_cell(v, at / v->n_seeds / v->n_methods, method, seed, name);
        if (same) v->cell[at] = *same, v->cell[at].examples = 0;
        if (same ? !write_cell(v, &v->cell[at], name, v->method[method]->name, v->a->seed + (int64_t)seed, e)
                 : !run_cell(v, at / v->n_seeds / v->n_methods, method, seed, stopped, e))
            return false;
        if (!*stopped && !same) show_cell(v, &v->cell[at], name, i + 1, t->n);
        *stopped |= ses_train_monitor_should_stop();
    }
    return true;
}

/* Waits for the workers, to which a signal is passed on. */
static bool wait_all(const pid_t *pid, size_t n)
{
    bool ok = true, passed_on = false;
    for (size_t i = 0; i < n;) {
        int status = 0;
        pid_t r = waitpid(pid[i], &status, 0);
        if (r < 0 && errno == EINTR) {
            if (ses_train_monitor_should_stop() && !passed_on)
                for (size_t k = i; k < n; k++) kill(pid[k], SIGTERM);
            passed_on |= ses_train_monitor_should_stop();
            continue;
        }
        ok &= r > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
        i++;
    }
    return ok;
}

/* Each process runs cells and writes their files; afterwards this one reads them. */
static bool run_jobs(ses_curve *v, const todo *t, _Atomic size_t *next, bool *stopped, ses_err *e)
{
    enum { MAX_JOBS = 256 };
    pid_t pid[MAX_JOBS];
    size_t n = 0;
    fflush(NULL);
    for (; n < (size_t)v->a->jobs && n < MAX_JOBS; n++) {
        pid[n] = fork();
        if (pid[n] < 0) break;
        if (!pid[n]) {
            ses_err why = { 0 };
            bool ok = run_some(v, t, next, stopped, &why);
            if (!ok) fprintf(stderr, "sesame: %s\n", why.msg);
            fflush(NULL);
            _exit(ok ? 0 : 1);
        }
    }
    if (!n) return ses_fail(e, SES_EIO, "--jobs: a process cannot be started: %s", strerror(errno));
    bool ok = wait_all(pid, n);
    *stopped = ses_train_monitor_should_stop();
    for (size_t i = 0; i < t->n; i++) {
        size_t at = t->cell[i];
        char name[NAME_SIZE];
        name_cell(v, at / v->n_seeds / v->n_methods, at / v->n_seeds % v->n_methods, at % v->n_seeds, name);
        char *path = path_of(v, name, ".json", e);
        if (!path) return false;
        ses_curve_cell_read(&v->cell[at], path, NULL);
        ses_free(path);
    }
    return ok || *stopped || ses_fail(e, SES_EIO, "a process of --jobs has failed");
}

bool ses_curve_run_cells(ses_curve *v, bool *stopped, ses_err *e)
{
    todo t;
    bool ok = plan(v, &t, e);
    size_t finished = 0;
    for (size_t i = 0; ok && i < v->n_sizes * v->n_methods * v->n_seeds; i++) finished += v->cell[i].done;
    if (ok && finished && !v->c->quiet)
        fprintf(stderr, "%zu cells are finished, %zu are left\n", finished, t.n);
    void *shared =
        mmap(NULL, sizeof(_Atomic size_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ok && shared == MAP_FAILED) ok = ses_fail(e, SES_ENOMEM, "out of memory");
    if (ok && t.n) ok = (v->a->jobs > 1 && t.n > 1 ? run_jobs : run_some)(v, &t, shared, stopped, e);
    if (shared != MAP_FAILED) munmap(shared, sizeof(_Atomic size_t));
    ses_free(t.cell);
    return ok;
}
