/* finetune --grid, --search, --seeds: one run per point and seed, in subfolders; a table at the end. */
#define _POSIX_C_SOURCE 200809L
#include "finetune_search.h"
#include "cli/train/command_text.h"
#include "cli/train/finetune_inputs.h"
#include "cli/train/train_monitor.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "math/student_t.h"
#include "train/train_folder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FILE_MAX = 1 << 28 };

/* ---- planning ---- */

static const char *value_at(const ses_search *s, size_t point, size_t at)
{
    return ses_search_space_value(&s->space, point, at);
}

/* Names the run "lr=1e-5,batch-size=16,seed=42". It is also the folder's name: '/' becomes '-'. */
static bool name_run(ses_search *s, size_t i, ses_err *e)
{
    ses_buf b = { 0 };
    ses_search_run *r = &s->runs[i];
    r->seed = s->a->s.train.run.seed + (int64_t)(i % s->seeds);
    if (s->space.drawn) ses_buf_appendf(&b, "trial=%zu%s", i / s->seeds + 1, s->space.n_axes ? "," : "");
    for (size_t k = 0; k < s->space.n_axes; k++)
        ses_buf_appendf(&b, "%s%s=%s", k ? "," : "", s->space.axis[k].opt.name, value_at(s, i / s->seeds, k));
    if (s->seeds > 1) ses_buf_appendf(&b, "%sseed=%" PRId64, b.len ? "," : "", r->seed);
    for (size_t k = 0; k < b.len; k++)
        if (b.data[k] == '/') b.data[k] = '-';
    bool ok = ses_buf_ok(&b, e) &&
              (b.len < 200 || ses_fail(e, SES_EUSAGE, "--grid: values too long for a folder name"));
    r->base = (ses_planned_job){ .after = SIZE_MAX };
    r->base.name = ok ? ses_arena_strndup(&s->mem, b.data, b.len, e) : NULL;
    ses_buf_free(&b);
    char *dir = r->base.name ? ses_path_join(s->a->s.train.run.output, r->base.name, e) : NULL;
    r->dir = dir ? ses_arena_strndup(&s->mem, dir, strlen(dir), e) : NULL;
    ses_free(dir);
    return r->dir != NULL;
}

bool ses_search_args(const ses_search *s, size_t i, ses_finetune_args *out, ses_err *e)
{
    *out = *s->a;
    out->grid = (ses_opt_list){ 0 };
    out->seeds = 1;
    out->search = SES_SEARCH_GRID;
    out->trials = SES_SEARCH_TRIALS; /* the default: the command of the run does not name it */
    out->eta = 3;
    for (size_t k = 0; k < s->space.n_axes; k++) {
        char from[80];
        snprintf(from, sizeof from, "--grid %s", s->space.axis[k].opt.name);
        if (!ses_opt_set(&s->space.axis[k].opt, out, from, value_at(s, i / s->seeds, k), e)) return false;
    }
    if (s->seeds > 1) out->s.train.run.seed = s->runs[i].seed;
    out->s.train.run.output = s->runs[i].dir;
    if (s->rounds) ses_halving_set_evaluations(s, out);
    return true;
}

/* Points and their number: all combinations, or random ones. */
static bool plan_points(ses_search *s, ses_err *e)
{
    const ses_finetune_args *a = s->a;
    bool random = a->search != SES_SEARCH_GRID;
    for (size_t i = 0; i < a->grid.n; i++) {
        if (!ses_search_space_add(&s->space, a->grid.item[i], &s->mem, e)) return false;
        if ((s->seeds > 1 || random) && !strcmp(s->space.axis[i].opt.name, "seed"))
            return ses_fail(e, SES_EUSAGE, "--grid seed and --%s: not both", random ? "search" : "seeds");
    }
    if (random && !a->grid.n)
        return ses_fail(e, SES_EUSAGE, "--search draws the values of --grid: add --grid lr=1e-5..1e-4:log");
    s->points = random ? (size_t)a->trials : ses_search_space_points(&s->space, SES_SEARCH_RUNS);
    if (!s->points)
        return ses_fail(e, SES_EUSAGE, "--grid: a range has no end of values; add --search random");
    if (s->points > SES_SEARCH_RUNS / s->seeds)
        return ses_fail(e, SES_EUSAGE, "--grid: more than %d runs", SES_SEARCH_RUNS);
    return (!random ||
            ses_search_space_draw(&s->space, s->points, (uint64_t)a->s.train.run.seed, &s->mem, e)) &&
           (a->search != SES_SEARCH_HALVING || ses_halving_plan(s, e));
}

static bool plan(ses_search *s, ses_err *e)
{
    const ses_finetune_args *a = s->a;
    ses_finetune_args trial;
    s->seeds = (size_t)a->seeds;
    if (!a->s.o.eval)
        return ses_fail(e, SES_EUSAGE, "--grid and --seeds compare scores: they need --eval FILE");
    if (a->s.train.run.log || a->s.train.run.tensorboard)
        return ses_fail(e, SES_EUSAGE, "--grid and --seeds: each run is logged in its own folder");
    if (!plan_points(s, e)) return false;
    s->runs = ses_arena_array(&s->mem, s->points * s->seeds, sizeof *s->runs, e);
    if (!s->runs) return false;
    memset(s->runs, 0, s->points * s->seeds * sizeof *s->runs);
    for (size_t i = 0; i < s->points * s->seeds; i++)
        if (!name_run(s, i, e) || !ses_search_args(s, i, &trial, e))
            return false; /* checks all values before the first run */
    return true;
}

/* Reads the data as the runs do: once, or for every point if values of --grid may name other data. */
static bool check_inputs(ses_search *s, ses_err *e)
{
    ses_row_overlap overlap;
    ses_finetune_args a;
    bool names = false;
    for (size_t k = 0; k < s->space.n_axes; k++) names |= s->space.axis[k].opt.type == SES_OPT_IS_TEXT;
    for (size_t p = 0; p < (names ? s->points : 1); p++)
        if (!ses_search_args(s, p * s->seeds, &a, e) || !ses_finetune_check_inputs(&a, &overlap, e))
            return names ? ses_wrap(e, "%s", s->runs[p * s->seeds].base.name) : false;
    return true;
}

/* ---- finished runs ---- */

/* Options that do not change a result. */
static const char *const IRRELEVANT =
    "output|resume|overwrite|grid|seeds|search|trials|eta|threads|isa|device|json|log|tensorboard|"
    "core-watts|co2-per-kwh|price-per-hour|price-per-kwh|bootstrap|confidence|keep|save-every";

static bool same_options(const ses_json *was, const ses_finetune_args *a, const char *dir, ses_err *e)
{
    ses_command_text text;
    if (!ses_command_text_make(&ses_command_finetune, a, &text, e)) return false;
    bool ok = ses_settings_check(was, text.options, IRRELEVANT, dir, "--overwrite repeats all runs", e);
    ses_command_text_free(&text);
    return ok;
}

static ses_json_doc *load(const char *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    ses_json_doc *d = path ? ses_json_load(path, FILE_MAX, NULL) : NULL;
    ses_free(path);
    return d;
}

bool ses_search_read(ses_search *s, ses_search_run *r, const ses_finetune_args *a, ses_err *e)
{
    ses_json_doc *about = load(r->dir, SES_RUN_INFO), *all = load(r->dir, "all_results.json");
    char key[80];
    bool ok = true;
    if (about && all && ses_train_folder_has_result(r->dir)) {
        const ses_json *root = ses_json_root(about), *results = ses_json_root(all);
        const char *metric = ses_json_string(ses_json_get(root, "metric"), NULL);
        ok = same_options(ses_json_get(root, "options"), a, r->dir, e);
        snprintf(s->metric, sizeof s->metric, "%s", metric ? metric : "loss");
        ses_json_bool(ses_json_get(root, "lower_is_better"), &s->lower);
        snprintf(key, sizeof key, "eval_%s", s->metric);
        r->score = r->seconds = r->kwh = NAN;
        ses_json_real(ses_json_get(results, key), &r->score);
        ses_json_real(ses_json_get(results, "train_runtime"), &r->seconds);
        ses_json_real(ses_json_get(results, "train_energy_kwh"), &r->kwh);
        if (ok) r->base.state = SES_JOB_DONE;
    }
    ses_json_free(about);
    ses_json_free(all);
    return ok;
}

/* ---- results ---- */

typedef struct summary {
    size_t n, best; /* finished runs with a score; index of the best */
    double mean, deviation, seconds, kwh;
} summary;

bool ses_search_is_better(const ses_search *s, double a, double b) { return s->lower ? a < b : a > b; }

bool ses_search_is_done(const ses_search_run *r) { return r->base.state == SES_JOB_DONE; }

static summary summarize(const ses_search *s, size_t point)
{
    summary x = { .best = SIZE_MAX };
    double *score = ses_alloc_array(s->seeds, sizeof *score, NULL);
    for (size_t k = 0; score && k < s->seeds; k++) {
        const ses_search_run *r = &s->runs[point * s->seeds + k];
        if (!ses_search_is_done(r) || isnan(r->score)) continue;
        score[x.n++] = r->score;
        x.seconds += r->seconds;
        x.kwh += r->kwh;
        if (x.best == SIZE_MAX || ses_search_is_better(s, r->score, s->runs[x.best].score))
            x.best = point * s->seeds + k;
    }
    ses_mean_interval m = ses_mean_interval_of(score, x.n, 0.95);
    x.mean = m.mean;
    x.deviation = m.deviation;
    ses_free(score);
    return x;
}

/* The point with the best mean score; SIZE_MAX: none is finished. */
static size_t best_point(const ses_search *s)
{
    size_t best = SIZE_MAX;
    for (size_t p = 0; p < s->points; p++) {
        summary x = summarize(s, p);
        if (x.n && (best == SIZE_MAX || ses_search_is_better(s, x.mean, summarize(s, best).mean))) best = p;
    }
    return best;
}

static void put_run(const ses_search_run *r, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", r->base.name);
    ses_json_member_int(w, "seed", r->seed);
    if (ses_search_is_done(r)) {
        ses_json_member_real(w, "score", r->score);
        ses_json_member_real(w, "train_runtime", r->seconds);
        ses_json_member_real(w, "train_energy_kwh", r->kwh);
    }
    if (r->n_rounds) {
        ses_json_member_array(w, "rounds");
        for (size_t i = 0; i < r->n_rounds; i++) ses_json_put_real(w, r->round[i]);
        ses_json_end_array(w);
    }
    if (*r->base.reason) ses_json_member_string(w, "failed", r->base.reason);
    ses_json_end_object(w);
}

static void put(const void *search, ses_json_writer *w)
{
    const ses_search *s = search;
    size_t best = best_point(s);
    if (s->rounds) {
        ses_json_put_key(w, "settings");
        ses_options_put_json(ses_command_finetune.opt, ses_command_finetune.n_opt, s->a, w);
    }
    ses_json_member_string(w, "metric", *s->metric ? s->metric : NULL);
    ses_json_member_bool(w, "lower_is_better", s->lower);
    ses_json_member_string(w, "best", best == SIZE_MAX ? NULL : s->runs[summarize(s, best).best].base.name);
    ses_json_member_array(w, "points");
    for (size_t p = 0; p < s->points; p++) {
        summary x = summarize(s, p);
        ses_json_begin_object(w);
        for (size_t k = 0; k < s->space.n_axes; k++)
            ses_json_member_string(w, s->space.axis[k].opt.name, value_at(s, p, k));
        ses_json_member_real(w, "mean", x.mean);
        ses_json_member_real(w, "deviation", x.deviation);
        ses_json_member_array(w, "runs");
        for (size_t k = 0; k < s->seeds; k++) put_run(&s->runs[p * s->seeds + k], w);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

bool ses_search_save(void *search, size_t i, ses_err *e)
{
    const ses_search *s = search;
    (void)i;
    return ses_experiment_write(&s->x, s->x.output, e);
}

static ses_text_table *table_of(const ses_search *s, ses_err *e)
{
    ses_buf columns = { 0 };
    for (size_t k = 0; k < s->space.n_axes; k++) ses_buf_appendf(&columns, "%s|", s->space.axis[k].opt.name);
    ses_buf_appendf(&columns, ">%s|>%s|>runs|>time|>energy", s->metric, s->rounds ? "length" : "deviation");
    ses_text_table *t = ses_buf_ok(&columns, e) ? ses_text_table_new(columns.data, e) : NULL;
    ses_buf_free(&columns);
    return t;
}

static void put_score(ses_text_table *t, ses_style style, bool is_known, double x)
{
    is_known ? ses_text_table_cell(t, "%.4f", x) : ses_text_table_cell(t, "-");
    ses_text_table_style(t, style);
}

/* Halving: the last score of a run and the part of the length that it had. */
static void put_part(const ses_search *s, const ses_search_run *r, ses_style style, ses_text_table *t)
{
    double part = ses_halving_part(s, r);
    put_score(t, style, !isnan(part),
              ses_search_is_done(r) ? r->score
              : r->n_rounds         ? r->round[r->n_rounds - 1]
                                    : NAN);
    if (isnan(part))
        ses_text_table_cell(t, "-");
    else if (part == 1)
        ses_text_table_cell(t, "1");
    else
        ses_text_table_cell(t, "1/%.0f", 1 / part);
}

static bool show(const ses_search *s, ses_err *e)
{
    size_t best = best_point(s);
    ses_text_table *t = table_of(s, e);
    if (!t) return false;
    for (size_t p = 0; p < s->points; p++) {
        summary x = summarize(s, p);
        char time[SES_NUMBER_TEXT], energy[SES_NUMBER_TEXT];
        ses_style style = p == best ? SES_GREEN : SES_PLAIN;
        for (size_t k = 0; k < s->space.n_axes; k++) {
            ses_text_table_cell(t, "%s", value_at(s, p, k));
            ses_text_table_style(t, style);
        }
        if (s->rounds)
            put_part(s, &s->runs[p], style, t);
        else {
            put_score(t, style, x.n > 0, x.mean);
            put_score(t, style, x.n > 1, x.deviation);
        }
        ses_text_table_cell(t, "%zu", x.n);
        ses_text_table_cell(t, "%s", x.n ? ses_duration_text(time, x.seconds) : "-");
        ses_text_table_cell(t, "%s", x.n ? ses_watt_hours_text(energy, 3.6e6 * x.kwh) : "-");
    }
    bool ok = ses_text_table_print(t, stdout, &s->x.c->out, 0, e);
    ses_text_table_free(t);
    if (ok && best != SIZE_MAX) {
        const ses_search_run *r = &s->runs[summarize(s, best).best];
        ses_show_line(&s->x.c->out, "Best", "%s: %s %.4f", r->dir, s->metric, r->score);
        ses_show_line(&s->x.c->out, "Next", "sesame compare %s", s->a->s.train.run.output);
    }
    return ok;
}

/* ---- running ---- */

static ses_planned_job *job_at(void *search, size_t i) { return &((ses_search *)search)->runs[i].base; }

bool ses_search_note_failure(ses_search_run *r, const ses_err *why, ses_err *e)
{
    if (why->code != SES_EARG) {
        if (e) *e = *why;
        return ses_wrap(e, "%s", r->base.name);
    }
    ses_job_fail(&r->base, why);
    fprintf(stderr, "sesame: %s: %s\n", r->base.name, r->base.reason);
    return true;
}

void ses_search_show_start(const ses_search *s, const ses_search_run *r, const char *part, bool finished,
                           size_t i, size_t n)
{
    const ses_term *t = &s->x.c->err;
    if (!s->x.c->quiet)
        fprintf(stderr, "%s[%s%zu/%zu] %s%s%s\n", ses_style_on(t, SES_BOLD), part, i + 1, n, r->base.name,
                ses_style_on(t, SES_PLAIN), finished || ses_search_is_done(r) ? ": already finished" : "");
}

/* A run that fails (its loss is NaN) does not stop the others. */
static bool start(void *ctx, size_t i, int *pid, ses_err *e)
{
    ses_search *s = ctx;
    ses_search_run *r = &s->runs[i];
    ses_finetune_args a;
    ses_err error = { 0 };
    bool stopped = false;
    (void)pid;
    if (!ses_search_args(s, i, &a, e) || (a.s.train.run.resume && !ses_search_read(s, r, &a, e)))
        return false;
    ses_search_show_start(s, r, "", false, i, s->points * s->seeds);
    if (ses_search_is_done(r)) return true;
    if (!ses_finetune_one(s->x.c, &a, true, &stopped, &error)) return ses_search_note_failure(r, &error, e);
    if (stopped) return true;
    if (!ses_search_read(s, r, &a, e)) return false;
    if (ses_search_is_done(r)) ses_finetune_drop_checkpoints(&a);
    return ses_search_is_done(r) || ses_fail(e, SES_EIO, "%s: results cannot be read", r->dir);
}

static bool run_all(ses_search *s, bool *stopped, ses_err *e)
{
    ses_job_runner runner = { .c = s->x.c,
                              .n = s->points * s->seeds,
                              .at_once = 1,
                              .ctx = s,
                              .job = job_at,
                              .start = start,
                              .save = ses_search_save };
    size_t failed = 0, left = 0;
    if (!ses_job_runner_run(&runner, stopped, e)) return false;
    for (size_t i = 0; i < runner.n; i++) {
        failed += s->runs[i].base.state == SES_JOB_FAILED;
        left += s->runs[i].base.state == SES_JOB_OPEN;
    }
    *stopped = left > 0; /* a signal during the last run has no effect */
    return failed < runner.n ||
           ses_fail(e, SES_EARG, "all runs failed; the first: %s", s->runs[0].base.reason);
}

bool ses_finetune_search(ses_call *c, ses_err *e)
{
    const ses_finetune_args *a = c->args;
    const ses_training_options *r = &a->s.train.run;
    ses_search s = { .x = { .c = c,
                            .name = "grid",
                            .noun = "search",
                            .output = r->output,
                            .resume = r->resume,
                            .overwrite = r->overwrite,
                            .put = put },
                     .a = a };
    bool stopped = false;
    ses_dir_lock *lock = NULL;
    bool ok = plan(&s, e) && check_inputs(&s, e) && (lock = ses_experiment_lock(&s.x, 0, e)) != NULL &&
              (r->resume || ses_experiment_write(&s.x, r->output, e)) &&
              (s.rounds ? ses_halving_run : run_all)(&s, &stopped, e);
    if (ok && stopped) fprintf(stderr, "search stopped; the same command with --resume continues\n");
    if (ok && a->compute.json)
        ok = ses_experiment_print_json(&s.x, e);
    else if (ok && !c->quiet && *s.metric)
        ok = show(&s, e);
    ses_dir_lock_free(lock);
    ses_arena_free(&s.mem);
    return ok && !stopped;
}
