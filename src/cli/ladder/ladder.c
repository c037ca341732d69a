/* The ladder: chooses rungs, runs the unfinished ones, reads their figures. */
#define _XOPEN_SOURCE 700
#include "ladder.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/number_text.h"
#include "base/str.h"
#include "cli/curve/result_folder.h"
#include "cli/train/command_text.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "tune/classifier_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LADDER_FILE "ladder.json"
enum { FILE_MAX = 1 << 28 };

static const ses_rung *const rungs[] = {
#define SES_RUNG(name) &ses_rung_##name,
#include "rungs.def"
#undef SES_RUNG
};

/* ---- selection ---- */

/* Whether a list "a,b" contains the name. */
static bool is_listed(const char *list, const char *name)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ",");
        if (ses_equal(at, n, name)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static bool check_list(const char *option, const char *list, ses_err *e)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < SES_LEN(rungs) && !ses_equal(at, n, rungs[i]->name)) i++;
        if (i == SES_LEN(rungs)) {
            ses_buf names = { 0 };
            for (i = 0; i < SES_LEN(rungs); i++)
                ses_buf_appendf(&names, "%s%s", i ? ", " : "", rungs[i]->name);
            ses_fail(e, SES_EUSAGE, "--%s %.*s: unknown rung; choose from %s", option, (int)n, at,
                     names.data ? names.data : "");
            ses_buf_free(&names);
            return false;
        }
        at += n + (at[n] == ',');
    }
    return true;
}

static bool select_rungs(ses_ladder *l, ses_err *e)
{
    const ses_ladder_args *a = l->a;
    if (!check_list("only", a->only, e) || !check_list("skip", a->skip, e)) return false;
    l->row = ses_alloc_array(SES_LEN(rungs), sizeof *l->row, e);
    for (size_t i = 0; l->row && i < SES_LEN(rungs); i++)
        if ((!a->only || is_listed(a->only, rungs[i]->name)) && !is_listed(a->skip, rungs[i]->name))
            l->row[l->n_rows++].rung = rungs[i];
    return l->row && (l->n_rows || ses_fail(e, SES_EUSAGE, "--only and --skip leave no rung"));
}

static bool check_rungs(const ses_ladder *l, ses_err *e)
{
    for (size_t i = 0; i < l->n_rows; i++)
        if (l->row[i].rung->check && !l->row[i].rung->check(l->a, e)) return false;
    return true;
}

/* ---- helpers of rungs ---- */

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
    o.command = l->command;
    o.command_options = l->settings;
    return o;
}

static bool should_continue(void *ctx, int64_t done, int64_t total, double loss)
{
    (void)total, (void)loss; /* the total may be a limit that is not reached */
    ses_progress_show(ctx, done);
    return !ses_train_monitor_should_stop();
}

bool ses_ladder_run_classifier(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed,
                               const char *vectors, ses_err *e)
{
    ses_progress bar = ses_progress_start(stderr, &l->c->err, l->c->quiet, "training steps", 0);
    ses_classifier_plan p = { .kind = ses_classifier_find(r->method, e),
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

bool ses_rung_run_classifier(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    return ses_ladder_run_classifier(l, r, dir, seed, NULL, e);
}

bool ses_ladder_write_extra(const char *dir, double seconds, double joules, double bytes, ses_err *e)
{
    if (!ses_dir_make(dir, e)) return false;
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
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
    return ses_dir_each(dir, add_bytes, &f, NULL) ? f.bytes : NAN;
}

/* ---- figures of a folder ---- */

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

static char *folder_of(const ses_ladder *l, const ses_rung *r, int64_t k, ses_err *e)
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
    char *dir = folder_of(l, row->rung, k, e);
    bool ok = dir != NULL;
    bool finished = ok && l->a->resume && ses_ladder_read_run(l, dir, row, score);
    if (ok && !finished)
        ok = row->rung->run(l, row->rung, dir, l->a->seed + k, e) &&
             (ses_ladder_read_run(l, dir, row, score) ||
              ses_fail(e, SES_EIO, "%s: results cannot be read", dir));
    row->runs += ok;
    ses_free(dir);
    return ok;
}

static void average(ses_ladder_row *row, const double *score, int64_t n)
{
    double sum = 0, squares = 0, runs = (double)n;
    for (int64_t i = 0; i < n; i++) sum += score[i];
    row->score = sum / runs;
    for (int64_t i = 0; i < n; i++) squares += (score[i] - row->score) * (score[i] - row->score);
    row->deviation = n > 1 ? sqrt(squares / (runs - 1)) : NAN;
    row->train_seconds /= runs;
    row->joules /= runs;
    row->seconds_per_text /= runs;
    row->bytes /= runs;
    row->done = true;
}

/* The result of a rung as soon as it is there: the table follows after the last rung. */
static void show_row(const ses_ladder *l, const ses_ladder_row *row)
{
    char time[SES_NUMBER_TEXT];
    if (l->c->quiet) return;
    fprintf(stderr, "%s: %s %.4f, trained in %s\n", row->rung->name, l->metric, row->score,
            ses_elapsed_text(time, row->train_seconds));
}

/* A rung that fails does not end the ladder; a signal does. */
static bool run_row(ses_ladder *l, size_t i, ses_err *e)
{
    ses_ladder_row *row = &l->row[i];
    ses_err why = { 0 };
    int64_t seeds = row->rung->seeded ? l->a->seeds : 1, k = 0;
    double *score = ses_alloc_array((size_t)seeds, sizeof *score, e);
    if (!score) return false;
    if (row->rung->unavailable && row->rung->unavailable(l, row->reason, sizeof row->reason))
        return ses_free(score), true;
    if (!l->c->quiet)
        fprintf(stderr, "%s[%zu/%zu] %s%s: %s\n", ses_style_on(&l->c->err, SES_BOLD), i + 1, l->n_rows,
                row->rung->name, ses_style_on(&l->c->err, SES_PLAIN), row->rung->summary);
    while (k < seeds && run_seed(l, row, k, &score[k], &why)) k++;
    if (k == seeds) {
        average(row, score, seeds);
        show_row(l, row);
    } else
        snprintf(row->reason, sizeof row->reason, "%.280s", why.msg);
    if (why.code && !ses_train_monitor_should_stop() && !l->c->quiet)
        fprintf(stderr, "sesame: %s: %s\n", row->rung->name, row->reason);
    ses_free(score);
    return true;
}

static bool write_ladder(const ses_ladder *l, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_ladder_put(l, w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, l->root, LADDER_FILE, true, e);
}

static bool run_all(ses_ladder *l, ses_err *e)
{
    for (size_t i = 0; i < l->n_rows && !ses_train_monitor_should_stop(); i++)
        if (!run_row(l, i, e) || !write_ladder(l, e)) return false;
    return true;
}

/* ---- the folder ---- */

/* Options that do not change a result. */
static const char *const IRRELEVANT = "only|skip|output|svg|html|resume|overwrite|json|threads|isa|device|"
                                      "seeds|core-watts|co2-per-kwh|price-per-hour|price-per-kwh";

static bool open_output(ses_ladder *l, ses_err *e)
{
    const ses_ladder_args *a = l->a;
    ses_result_folder f = { .dir = a->output,
                            .file = LADDER_FILE,
                            .noun = "ladder",
                            .hint = "--overwrite repeats all rungs",
                            .settings = l->settings,
                            .ignored = IRRELEVANT,
                            .resume = a->resume,
                            .overwrite = a->overwrite };
    l->root = ses_strdup(a->output, e);
    return l->root && (l->lock = ses_result_folder_lock(&f, 0, e));
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
    const ses_command_fact facts[] = {
        { .name = "task", .text = l->task },
        { .name = "train", .text = l->train_name },
        { .name = "test", .text = l->test_name },
        { .name = "train_texts", .number = (int64_t)ses_examples_count(l->train) },
        { .name = "test_texts", .number = (int64_t)ses_examples_count(l->test) },
    };
    ses_command_text t;
    if (!ses_command_text_with_facts(l->c, facts, SES_LEN(facts), &t, e)) return false;
    l->settings = t.options;
    l->command = t.line;
    return true;
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
    ses_free(l->settings);
    ses_free(l->command);
    ses_free(l->row);
}

static bool has_result(const ses_ladder *l)
{
    for (size_t i = 0; i < l->n_rows; i++)
        if (l->row[i].done) return true;
    return false;
}

bool ses_ladder_command(ses_call *c, ses_err *e)
{
    ses_ladder l = { .c = c, .a = c->args };
    ses_device_options d = ses_compute_device_options(&l.a->compute);
    char train[SES_NUMBER_TEXT], test[SES_NUMBER_TEXT], text[400];
    ses_train_monitor_catch_signals();
    bool ok = check_outputs(l.a, e) && select_rungs(&l, e) && check_rungs(&l, e) && ses_ladder_read(&l, e) &&
              describe(&l, e) && open_root(&l, e) &&
              (l.dev = ses_device_open(l.a->compute.device, &d, e)) != NULL;
    if (ok && !c->quiet)
        fprintf(stderr, "%s texts for training, %s for the test%s\n",
                ses_grouped_text(train, (int64_t)ses_examples_count(l.train)),
                ses_grouped_text(test, (int64_t)ses_examples_count(l.test)),
                c->n_operands == 2 ? ", split off at random from each class" : "");
    if (ok && !c->quiet && *ses_row_overlap_text(&l.overlap, l.test_name, text, sizeof text))
        fprintf(stderr, "%s\n", text);
    ok = ok && run_all(&l, e) && ses_ladder_show(&l, e);
    if (ok && ses_train_monitor_should_stop()) {
        fprintf(stderr, l.temporary ? "stopped\n" : "stopped; the same command with --resume continues\n");
        ok = false; /* main exits with the code of the signal */
    } else if (ok && !has_result(&l)) {
        fprintf(stderr, "sesame: no rung has a result\n");
        ok = false;
    }
    ladder_free(&l);
    return ok;
}
