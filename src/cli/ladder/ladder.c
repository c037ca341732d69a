/* The ladder: chooses methods, runs the unfinished ones, reads their figures. */
#define _XOPEN_SOURCE 700
#include "ladder.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/number_text.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "math/student_t.h"
#include "tune/classifier_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 28 };

/* ---- selection ---- */

/* Whether a list "a,b" contains the name. */
static bool is_listed(const char *list, const char *name)
{
    ses_string s;
    for (size_t k = 0; ses_comma_item(list, k, &s); k++)
        if (ses_equal(s.p, s.n, name)) return true;
    return false;
}

static const char *name_at(const void *ctx, size_t i)
{
    const ses_ladder_method *m = ses_ladder_method_at(i);
    (void)ctx;
    return m ? m->name : NULL;
}

static bool check_list(const char *option, const char *list, ses_err *e)
{
    ses_string s;
    for (size_t k = 0; ses_comma_item(list, k, &s); k++) {
        size_t i = 0;
        while (name_at(NULL, i) && !ses_equal(s.p, s.n, name_at(NULL, i))) i++;
        if (name_at(NULL, i)) continue;
        ses_fail_unknown(e, SES_EUSAGE, "method", s, name_at, NULL);
        return ses_wrap(e, "--%s", option);
    }
    return true;
}

/* The methods of --only without the ones of --skip; checks the files that they read. */
static bool choose_methods(ses_ladder *l, ses_err *e)
{
    const ses_ladder_args *a = l->a;
    const ses_ladder_method *m;
    size_t n = 0;
    while (ses_ladder_method_at(n)) n++;
    if (!check_list("only", a->only, e) || !check_list("skip", a->skip, e)) return false;
    l->row = ses_alloc_array(n, sizeof *l->row, e);
    for (size_t i = 0; l->row && (m = ses_ladder_method_at(i)); i++) {
        if ((a->only && !is_listed(a->only, m->name)) || is_listed(a->skip, m->name)) continue;
        if (m->check && !m->check(a, e)) return false;
        l->row[l->n_rows++] = (ses_ladder_row){ .base = { .name = m->name, .after = SIZE_MAX }, .method = m };
    }
    return l->row && (l->n_rows || ses_fail(e, SES_EUSAGE, "--only and --skip leave no method"));
}

/* ---- helpers of methods ---- */

ses_finetune_options ses_ladder_options(const ses_ladder *l, const char *dir, int64_t seed)
{
    ses_finetune_options o = ses_finetune_defaults();
    o.train_examples = l->train;
    o.eval_examples = l->test;
    o.data = (ses_data_options){ .task = l->task };
    o.last_weights = l->last_weights;
    if (l->last_weights) o.run.save_every = -1; /* nothing selects a checkpoint */
    o.run.output = dir;
    o.run.overwrite = true;
    o.run.seed = seed;
    o.run.core_watts = l->a->energy.core_watts;
    o.run.co2_per_kwh = l->a->energy.co2_per_kwh;
    o.run.price_per_hour = l->a->energy.price_per_hour;
    o.run.price_per_kwh = l->a->energy.price_per_kwh;
    o.bootstrap = l->a->bootstrap;
    o.confidence = l->a->confidence;
    o.command = l->x.command;
    o.command_options = l->x.settings;
    return o;
}

static bool should_continue(void *ctx, int64_t done, int64_t total, double loss)
{
    (void)total, (void)loss; /* the total may be a limit that is not reached */
    ses_progress_show(ctx, done);
    return !ses_train_monitor_should_stop();
}

bool ses_ladder_run_classifier(ses_ladder *l, const ses_ladder_method *r, const char *dir, int64_t seed,
                               const char *vectors, ses_err *e)
{
    ses_progress bar = ses_progress_start(stderr, &l->x.c->err, l->x.c->quiet, "training steps", 0);
    ses_classifier_plan p = { .kind = ses_classifier_find(r->classifier, e),
                              .progress = should_continue,
                              .ctx = &bar };
    if (!p.kind) return false;
    p.settings.ngrams = r->ngrams;
    p.settings.vectors = vectors;
    ses_finetune_options o = ses_ladder_options(l, dir, seed);
    ses_finetune *f = ses_classifier_finetune(&o, &p, l->dev, e);
    ses_progress_end(&bar);
    ses_finetune_free(f);
    return f != NULL;
}

bool ses_ladder_write_extra(const char *dir, double seconds, double joules, double bytes, ses_err *e)
{
    if (!ses_dir_make(dir, e)) return false;
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_real(w, "seconds", seconds);
    ses_json_member_real(w, "joules", joules);
    ses_json_member_real(w, "bytes", bytes);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, "rung.json", true, e);
}

typedef struct folder {
    const char *dir;
    double bytes;
} folder;

/* Weights, vocabularies and configurations, not reports and states of training. */
static bool add_bytes(void *ctx, const char *name)
{
    static const char *const others[] = { "README.md",          "run.json",           "rung.json",
                                          "eval_errors.json",   "trainer_state.json", "log.jsonl",
                                          "train_results.json", "eval_results.json",  "all_results.json",
                                          "report.html" };
    folder *f = ctx;
    struct stat s;
    for (size_t i = 0; i < SES_LEN(others); i++)
        if (!strcmp(name, others[i])) return true;
    char *path = *name != '.' ? ses_path_join(f->dir, name, NULL) : NULL;
    if (path && !stat(path, &s) && S_ISREG(s.st_mode)) f->bytes += (double)s.st_size;
    ses_free(path);
    return true;
}

double ses_ladder_folder_bytes(const char *dir)
{
    folder f = { .dir = dir };
    struct stat s;
    if (stat(dir, &s) == 0 && S_ISREG(s.st_mode)) return (double)s.st_size;
    return ses_dir_each(dir, add_bytes, &f, NULL) ? f.bytes : NAN;
}

/* ---- figures of a folder ---- */

bool ses_ladder_is_done(const ses_ladder_row *row) { return row->base.state == SES_JOB_DONE; }

static bool has_file(const char *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    bool exists = path && ses_path_exists(path);
    ses_free(path);
    return exists;
}

static ses_json_doc *load(const char *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load_object(path, FILE_MAX, NULL) : NULL;
    ses_free(path);
    return d;
}

static double number(const ses_json_doc *d, const char *name, const char *metric, const char *suffix)
{
    char key[160];
    double x = NAN;
    snprintf(key, sizeof key, "%s%s%s", name, metric, suffix);
    return d && ses_json_real(ses_json_get(ses_json_root(d), key), &x) ? x : NAN;
}

bool ses_ladder_read_run(const ses_ladder *l, const char *dir, ses_ladder_row *row, double *score)
{
    ses_json_doc *all = load(dir, "all_results.json"), *extra = load(dir, "rung.json");
    bool ok = all && (has_file(dir, "config.json") || has_file(dir, "logreg.safetensors"));
    *score = ok ? number(all, "eval_", l->metric, "") : NAN;
    ok = !isnan(*score);
    if (ok) {
        double seconds = number(extra, "seconds", "", ""), joules = number(extra, "joules", "", ""),
               bytes = number(extra, "bytes", "", "");
        row->train_seconds += number(all, "train_runtime", "", "") + (isnan(seconds) ? 0 : seconds);
        row->joules += 3.6e6 * number(all, "train_energy_kwh", "", "") + (isnan(joules) ? 0 : joules);
        row->seconds_per_text +=
            number(all, "eval_predict_runtime", "", "") / number(all, "eval_samples", "", "");
        row->bytes += ses_ladder_folder_bytes(dir) + (isnan(bytes) ? 0 : bytes);
        if (!row->runs) {
            row->low = number(all, "eval_", l->metric, "_low");
            row->high = number(all, "eval_", l->metric, "_high");
        }
    }
    ses_json_free(all);
    ses_json_free(extra);
    return ok;
}

/* ---- running ---- */

static char *folder_of(const ses_ladder *l, const ses_ladder_method *r, int64_t k, ses_err *e)
{
    char name[100];
    if (k)
        snprintf(name, sizeof name, "%s-seed=%lld", r->name, (long long)(l->a->seed + k));
    else
        snprintf(name, sizeof name, "%s", r->name);
    return ses_path_join(l->root, name, e);
}

static bool run_seed(ses_ladder *l, ses_ladder_row *row, int64_t k, double *score, ses_err *e)
{
    char *dir = folder_of(l, row->method, k, e);
    bool ok = dir != NULL;
    bool finished = ok && l->a->resume && ses_ladder_read_run(l, dir, row, score);
    if (ok && !finished)
        ok = row->method->run(l, row->method, dir, l->a->seed + k, e) &&
             (ses_ladder_read_run(l, dir, row, score) ||
              ses_fail(e, SES_EIO, "%s: results cannot be read", dir));
    row->runs += ok;
    ses_free(dir);
    return ok;
}

/* Means over the seeds. */
static void average(ses_ladder_row *row, const double *score, int64_t n)
{
    double runs = (double)n;
    ses_mean_interval x = ses_mean_interval_of(score, (size_t)n, 0.95);
    row->score = x.mean;
    row->deviation = x.deviation;
    row->train_seconds /= runs;
    row->joules /= runs;
    row->seconds_per_text /= runs;
    row->bytes /= runs;
}

/* The result of a method as soon as it is there: the table follows after the last method. */
static void show_row(const ses_ladder *l, const ses_ladder_row *row)
{
    char time[SES_NUMBER_TEXT];
    if (l->x.c->quiet) return;
    if (ses_ladder_is_done(row))
        fprintf(stderr, "%s: %s %.4f, trained in %s\n", row->method->name, l->metric, row->score,
                ses_elapsed_text(time, row->train_seconds));
    else
        fprintf(stderr, "sesame: %s: %s\n", row->method->name, row->base.reason);
}

static ses_planned_job *job_at(void *ctx, size_t i) { return &((ses_ladder *)ctx)->row[i].base; }

/* A method that fails does not end the ladder; a signal does. */
static bool start(void *ctx, size_t i, int *pid, ses_err *e)
{
    ses_ladder *l = ctx;
    ses_ladder_row *row = &l->row[i];
    ses_err why = { 0 };
    int64_t seeds = row->method->seeded ? l->a->seeds : 1, k = 0;
    (void)pid;
    if (row->method->unavailable && row->method->unavailable(l, row->base.reason, sizeof row->base.reason)) {
        row->base.state = SES_JOB_FAILED;
        return true;
    }
    double *score = ses_alloc_array((size_t)seeds, sizeof *score, e);
    if (!score) return false;
    if (!l->x.c->quiet)
        fprintf(stderr, "%s[%zu/%zu] %s%s: %s\n", ses_style_on(&l->x.c->err, SES_BOLD), i + 1, l->n_rows,
                row->method->name, ses_style_on(&l->x.c->err, SES_PLAIN), row->method->summary);
    while (k < seeds && run_seed(l, row, k, &score[k], &why)) k++;
    if (k == seeds) {
        average(row, score, seeds);
        row->base.state = SES_JOB_DONE;
    } else
        ses_job_fail(&row->base, &why);
    if (k == seeds || !ses_train_monitor_should_stop()) show_row(l, row);
    ses_free(score);
    return true;
}

static bool save(void *ctx, size_t i, ses_err *e)
{
    const ses_ladder *l = ctx;
    (void)i;
    return ses_experiment_write(&l->x, l->root, e);
}

static bool run_all(ses_ladder *l, bool *stopped, ses_err *e)
{
    ses_job_runner r = {
        .c = l->x.c, .n = l->n_rows, .at_once = 1, .ctx = l, .job = job_at, .start = start, .save = save
    };
    return ses_job_runner_run(&r, stopped, e);
}

/* ---- the folder ---- */

/* Options that do not change a result. */
static const char *const IRRELEVANT = "only|skip|output|svg|html|resume|overwrite|json|threads|isa|device|"
                                      "seeds|core-watts|co2-per-kwh|price-per-hour|price-per-kwh";

static bool open_output(ses_ladder *l, ses_err *e)
{
    l->root = ses_strdup(l->a->output, e);
    return l->root && (l->lock = ses_experiment_lock(&l->x, 0, e));
}

static bool open_root(ses_ladder *l, ses_err *e)
{
    const char *tmp = getenv("TMPDIR");
    if (l->a->output) return open_output(l, e);
    if (l->a->resume) return ses_fail(e, SES_EUSAGE, "--resume needs --output DIR");
    l->root = ses_path_join(tmp && *tmp ? tmp : "/tmp", "sesame-ladder-XXXXXX", e);
    if (!l->root) return false;
    l->temporary = mkdtemp(l->root) != NULL;
    return l->temporary || ses_fail(e, SES_EIO, "%s: cannot be created; set TMPDIR", l->root);
}

/* ---- the command ---- */

static bool describe(ses_ladder *l, ses_err *e)
{
    const ses_command_value data[] = {
        { .name = "task", .text = l->task },
        { .name = "train", .text = l->train_name },
        { .name = "test", .text = l->test_name },
        { .name = "train_texts", .number = (int64_t)ses_examples_count(l->train) },
        { .name = "test_texts", .number = (int64_t)ses_examples_count(l->test) },
    };
    return ses_experiment_describe(&l->x, data, SES_LEN(data), e);
}

static bool check_outputs(const ses_ladder_args *a, ses_err *e)
{
    const char *path[] = { a->html, a->svg };
    for (size_t i = 0; i < SES_LEN(path); i++)
        if (path[i] && !a->overwrite && !a->resume && ses_path_exists(path[i]))
            return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path[i]);
    if (a->resume && a->overwrite)
        return ses_fail(e, SES_EUSAGE, "--resume continues a ladder, --overwrite replaces it: set one");
    return true;
}

static void ladder_free(ses_ladder *l)
{
    ses_dir_lock_free(l->lock);
    if (l->temporary) ses_dir_remove_all(l->root, NULL);
    ses_examples_free(l->train);
    ses_examples_free(l->test);
    ses_device_free(l->dev);
    ses_free(l->root);
    ses_experiment_free(&l->x);
    ses_free(l->row);
}

static bool has_result(const ses_ladder *l)
{
    for (size_t i = 0; i < l->n_rows; i++)
        if (ses_ladder_is_done(&l->row[i])) return true;
    return false;
}

bool ses_ladder_command(ses_call *c, ses_err *e)
{
    const ses_ladder_args *a = c->args;
    ses_ladder l = { .x = { .c = c,
                            .name = "ladder",
                            .noun = "ladder",
                            .title = "methods of classification on one data set",
                            .output = a->output,
                            .hint = "--overwrite repeats all methods",
                            .ignored = IRRELEVANT,
                            .resume = a->resume,
                            .overwrite = a->overwrite,
                            .json = a->compute.json,
                            .seed = (uint64_t)a->seed,
                            .put = ses_ladder_put,
                            .fill = ses_ladder_fill },
                     .a = a };
    bool stopped = false;
    ses_device_options d = ses_compute_device_options(&l.a->compute);
    char train[SES_NUMBER_TEXT], test[SES_NUMBER_TEXT], text[400];
    ses_train_monitor_catch_signals();
    bool ok = check_outputs(l.a, e) && choose_methods(&l, e) && ses_ladder_read(&l, e) && describe(&l, e) &&
              open_root(&l, e) && (l.dev = ses_device_open(l.a->compute.device, &d, e)) != NULL;
    if (ok && !c->quiet)
        fprintf(stderr, "%s texts for training, %s for the test%s\n",
                ses_grouped_text(train, (int64_t)ses_examples_count(l.train)),
                ses_grouped_text(test, (int64_t)ses_examples_count(l.test)),
                c->n_operands == 2 ? ", split off at random from each class" : "");
    if (ok && !c->quiet && *ses_row_overlap_text(&l.overlap, l.test_name, text, sizeof text))
        fprintf(stderr, "%s\n", text);
    ok = ok && run_all(&l, &stopped, e) &&
         ses_experiment_show(&l.x, a->svg, a->html, a->overwrite || a->resume, e);
    if (ok && stopped && l.temporary) {
        fprintf(stderr, "stopped\n");
        ok = false; /* main exits with the code of the signal */
    }
    ok = ok && ses_experiment_end(&l.x, stopped);
    if (ok && !has_result(&l)) {
        fprintf(stderr, "sesame: no method has a result\n");
        ok = false;
    }
    ladder_free(&l);
    return ok;
}
