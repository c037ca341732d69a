/* Runs of a learning curve: names, files, running them one after the other or in several processes. */
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

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FILE_MAX = 1 << 20 };

bool ses_curve_is_done(const ses_curve_run *x) { return x->base.state == SES_JOB_DONE; }

ses_curve_run *ses_curve_run_at(const ses_curve *v, size_t size, size_t method, size_t seed)
{
    return &v->run[(size * v->n_methods + method) * v->n_seeds + seed];
}

size_t ses_curve_seeds_of(const ses_curve *v, size_t size, size_t method)
{
    const ses_curve_method *m = v->method[method];
    bool seeded = m->ladder ? m->ladder->seeded : m->seeded;
    return v->size[size] || seeded ? v->n_seeds : 1;
}

const char *ses_curve_size_text(int64_t size, char buf[24])
{
    snprintf(buf, 24, "%" PRId64, size);
    return size ? buf : "all";
}

/* ---- files ---- */

static char *path_of(const ses_curve *v, size_t i, const char *ending, ses_err *e)
{
    char file[SES_CURVE_NAME + 8];
    snprintf(file, sizeof file, "%s%s", v->run[i].name, ending);
    return ses_path_join(v->cells, file, e);
}

static size_t size_of(const ses_curve *v, size_t i) { return i / v->n_seeds / v->n_methods; }
static size_t method_of(const ses_curve *v, size_t i) { return i / v->n_seeds % v->n_methods; }
static int64_t seed_of(const ses_curve *v, size_t i) { return v->a->seed + (int64_t)(i % v->n_seeds); }

bool ses_curve_run_read(ses_curve_run *out, const char *path, ses_err *e)
{
    ses_err why = { 0 };
    ses_json_doc *d = ses_path_exists(path) ? ses_json_record_load(path, FILE_MAX, false, &why) : NULL;
    const ses_json *root = d ? ses_json_root(d) : NULL;
    const char *reason = ses_json_string(ses_json_get(root, "failed"), NULL);
    out->train_seconds = out->joules = NAN;
    ses_json_real(ses_json_get(root, "train_seconds"), &out->train_seconds);
    ses_json_real(ses_json_get(root, "train_joules"), &out->joules);
    ses_json_int(ses_json_get(root, "examples"), &out->examples);
    bool done = ses_json_real(ses_json_get(root, "score"), &out->score) && isfinite(out->score);
    out->base.state = done ? SES_JOB_DONE : reason ? SES_JOB_FAILED : SES_JOB_OPEN;
    *out->base.reason = 0;
    if (!done && reason) ses_quote(out->base.reason, sizeof out->base.reason, reason, strlen(reason));
    ses_json_free(d);
    return !why.code || ses_fail(e, why.code, "%s", why.msg);
}

static bool save(void *ctx, size_t i, ses_err *e)
{
    const ses_curve *v = ctx;
    const ses_curve_run *x = &v->run[i];
    char file[SES_CURVE_NAME + 8];
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", v->method[method_of(v, i)]->name);
    ses_json_member_int(w, "examples", x->examples);
    ses_json_member_int(w, "seed", seed_of(v, i));
    ses_json_member_string(w, "metric", v->metric);
    if (ses_curve_is_done(x)) {
        ses_json_member_real(w, "score", x->score);
        ses_json_member_real(w, "train_seconds", x->train_seconds);
        ses_json_member_real(w, "train_joules", x->joules);
    } else
        ses_json_member_string(w, "failed", x->base.reason);
    ses_json_end_object(w);
    snprintf(file, sizeof file, "%s.json", x->name);
    return ses_json_record_save(w, 2, v->cells, file, true, e);
}

static void load(void *ctx, size_t i)
{
    const ses_curve *v = ctx;
    char *path = path_of(v, i, ".json", NULL);
    if (path) ses_curve_run_read(&v->run[i], path, NULL);
    ses_free(path);
}

/* ---- one run ---- */

static ses_planned_job *job_at(void *ctx, size_t i) { return &((ses_curve *)ctx)->run[i].base; }

/* A method that cannot be used with the model is tried once. */
static bool is_refused(const ses_curve *v, size_t i)
{
    ses_planned_job *j = &v->run[i].base;
    for (size_t k = 0; k < v->n_sizes * v->n_methods * v->n_seeds; k++) {
        const ses_planned_job *other = &v->run[k].base;
        if (k == i || method_of(v, k) != method_of(v, i) || !other->is_unsupported) continue;
        *j = *other;
        j->name = v->run[i].name;
        j->is_quiet = true;
        return true;
    }
    return false;
}

static const char *result(void *ctx, size_t i, char *buf, size_t size)
{
    const ses_curve *v = ctx;
    char time[SES_NUMBER_TEXT];
    snprintf(buf, size, "%s %.4f, trained in %s", v->metric, v->run[i].score,
             ses_elapsed_text(time, v->run[i].train_seconds));
    return buf;
}

/* A run that fails does not end the curve. */
static bool start(void *ctx, size_t i, int *pid, ses_err *e)
{
    ses_curve *v = ctx;
    const ses_curve_method *m = v->method[method_of(v, i)];
    ses_curve_run *x = &v->run[i];
    ses_err why = { 0 };
    int64_t size = v->size[size_of(v, i)];
    bool stopped = false;
    (void)pid;
    x->examples = 0;
    if (is_refused(v, i)) return true;
    char *dir = path_of(v, i, "", e);
    if (!dir) return false;
    ses_sample s = { .seed = (uint64_t)seed_of(v, i) };
    *(v->a->per_class ? &s.shots : &s.size) = size;
    ses_examples *train = ses_examples_sample(v->train, &s, &why);
    ses_ladder l = { .metric = v->metric };
    ses_ladder_row row = { 0 };
    double begin = ses_seconds();
    if (train) x->examples = (int64_t)ses_examples_count(train);
    bool ok = train && ses_curve_run_method(v, m, size, seed_of(v, i), train, dir, &stopped, &why) &&
              !stopped &&
              (ses_ladder_read_run(&l, dir, &row, &x->score) ||
               ses_fail(&why, SES_EIO, "%s: results cannot be read", dir));
    stopped |= !ok && ses_train_monitor_should_stop();
    /* such a method trains several models: the whole run, with its evaluation */
    x->train_seconds = m->kind == SES_METHOD_OWN ? ses_seconds() - begin : row.train_seconds;
    x->joules = row.joules;
    if (ok)
        x->base.state = SES_JOB_DONE;
    else if (!stopped)
        ses_job_fail(&x->base, &why);
    if (!stopped && !(v->a->keep_models && ok)) ses_dir_remove_all(dir, NULL);
    ses_examples_free(train);
    ses_free(dir);
    return true;
}

/* ---- all runs ---- */

/* Names the run; a resumed curve reads its file. */
static bool plan(ses_curve *v, size_t i, ses_err *e)
{
    ses_curve_run *x = &v->run[i];
    char text[24];
    ses_err why = { 0 };
    snprintf(x->name, sizeof x->name, "%s,%s=%s,seed=%" PRId64, v->method[method_of(v, i)]->name,
             v->a->per_class ? "shots" : "size", ses_curve_size_text(v->size[size_of(v, i)], text),
             seed_of(v, i));
    x->base = (ses_planned_job){ .name = x->name, .after = SIZE_MAX };
    char *path = path_of(v, i, ".json", e);
    if (path && v->a->resume && !ses_curve_run_read(x, path, &why))
        fprintf(stderr, "%s: the cell is run again\n", why.msg);
    if (x->base.state == SES_JOB_FAILED) x->base.state = SES_JOB_OPEN; /* it is tried again */
    ses_free(path);
    return path != NULL;
}

bool ses_curve_run_all(ses_curve *v, bool *stopped, ses_err *e)
{
    ses_job_runner r = { .c = v->x.c,
                         .n = v->n_sizes * v->n_methods * v->n_seeds,
                         .at_once = (size_t)v->a->jobs,
                         .ctx = v,
                         .job = job_at,
                         .start = start,
                         .save = save,
                         .result = result,
                         .load = load };
    size_t finished = 0, left = 0;
    for (size_t i = 0; i < r.n; i++) {
        bool exists = i % v->n_seeds < ses_curve_seeds_of(v, size_of(v, i), method_of(v, i));
        if (!exists) v->run[i].base.state = SES_JOB_NONE;
        if (exists && !plan(v, i, e)) return false;
        finished += ses_curve_is_done(&v->run[i]);
        left += v->run[i].base.state == SES_JOB_OPEN;
    }
    if (finished && !v->x.c->quiet) fprintf(stderr, "%zu cells are finished, %zu are left\n", finished, left);
    return !left || ses_job_runner_run(&r, stopped, e);
}
