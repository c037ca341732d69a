/* finetune --grid, --seeds: one run per combination of values and seed, in subfolders; a table at the end. */
#define _POSIX_C_SOURCE 200809L
#include "finetune_command.h"
#include "train_monitor.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/suggest.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "train/train_folder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_AXES = 16, MAX_RUNS = 10000, FILE_MAX = 1 << 28 };

typedef struct axis {
    ses_opt opt;
    const char **value;
    size_t n;
} axis;

typedef struct run {
    char *name, *dir;
    int64_t seed;
    bool done;
    double score, seconds, kwh;
    char failed[200];
} run;

typedef struct search {
    ses_call *c;
    const ses_finetune_args *a;
    ses_arena mem;
    axis axis[MAX_AXES];
    size_t n_axes, points, seeds;
    run *runs; /* [points, seeds] */
    char metric[64];
    bool lower;
} search;

/* ---- planning ---- */

/* list: "a|b|c" */
static bool is_in_list(const char *word, const char *list)
{
    const char *item;
    size_t n;
    for (size_t i = 0; ses_list_at(list, i, &item, &n); i++)
        if (ses_equal(item, n, word)) return true;
    return false;
}

static bool find_option(const char *name, ses_opt *out, ses_err *e)
{
    const ses_command *c = &ses_command_finetune;
    ses_suggestion s = { .word = name };
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt); (o = ses_opt_next(&it));) {
        ses_suggest_offer(&s, o->name, strlen(o->name));
        if (strcmp(o->name, name)) continue;
        if (o->type != SES_OPT_LIST &&
            !is_in_list(name, "task|output|log|tensorboard|seeds|resume|overwrite|json|metric|eval")) {
            *out = *o;
            return true;
        }
        return ses_fail(e, SES_EUSAGE, "--grid: --%s is the same for all runs", name);
    }
    ses_fail(e, SES_EUSAGE, "--grid: unknown option \"%s\"", name);
    return ses_suggest_add(&s, "", e);
}

/* Parses "1e-5,3e-5". */
static bool parse_values(search *s, axis *x, const char *list, ses_err *e)
{
    x->n = 1;
    for (const char *c = list; *c; c++) x->n += *c == ',';
    x->value = ses_arena_array(&s->mem, x->n, sizeof *x->value, e);
    if (!x->value) return false;
    for (size_t i = 0; i < x->n; i++) {
        size_t len = strcspn(list, ",");
        x->value[i] = ses_arena_strndup(&s->mem, list, len, e);
        if (!x->value[i]) return false;
        list += len + (list[len] == ',');
        for (size_t k = 0; k < i; k++)
            if (!strcmp(x->value[k], x->value[i]))
                return ses_fail(e, SES_EUSAGE, "--grid: %s=%s is given twice", x->opt.name, x->value[i]);
    }
    return true;
}

static bool add_axis(search *s, const char *text, ses_err *e)
{
    axis *x = &s->axis[s->n_axes];
    size_t len = strcspn(text, "=");
    if (s->n_axes == MAX_AXES) return ses_fail(e, SES_EUSAGE, "--grid: more than %d options", MAX_AXES);
    if (!text[len] || !text[len + 1])
        return ses_fail(e, SES_EUSAGE, "--grid %s: expected NAME=VALUE,VALUE...", text);
    const char *name = ses_arena_strndup(&s->mem, text, len, e);
    if (!name || !find_option(name, &x->opt, e)) return false;
    for (size_t i = 0; i < s->n_axes; i++)
        if (!strcmp(s->axis[i].opt.name, name))
            return ses_fail(e, SES_EUSAGE, "--grid: %s is given twice", name);
    s->n_axes++;
    return parse_values(s, x, text + len + 1, e);
}

/* The value of an axis at a point; the last axis moves fastest. */
static const char *value_at(const search *s, size_t point, size_t at)
{
    for (size_t i = s->n_axes - 1; i > at; i--) point /= s->axis[i].n;
    return s->axis[at].value[point % s->axis[at].n];
}

/* Names the run "lr=1e-5,batch-size=16,seed=42". It is also the folder's name: '/' becomes '-'. */
static bool name_run(search *s, size_t i, ses_err *e)
{
    ses_buf b = { 0 };
    run *r = &s->runs[i];
    r->seed = s->a->s.train.run.seed + (int64_t)(i % s->seeds);
    for (size_t k = 0; k < s->n_axes; k++)
        ses_buf_appendf(&b, "%s%s=%s", k ? "," : "", s->axis[k].opt.name, value_at(s, i / s->seeds, k));
    if (s->seeds > 1) ses_buf_appendf(&b, "%sseed=%" PRId64, s->n_axes ? "," : "", r->seed);
    for (size_t k = 0; k < b.len; k++)
        if (b.data[k] == '/') b.data[k] = '-';
    bool ok = ses_buf_ok(&b, e) &&
              (b.len < 200 || ses_fail(e, SES_EUSAGE, "--grid: values too long for a folder name"));
    r->name = ok ? ses_arena_strndup(&s->mem, b.data, b.len, e) : NULL;
    ses_buf_free(&b);
    char *dir = r->name ? ses_path_join(s->a->s.train.run.output, r->name, e) : NULL;
    r->dir = dir ? ses_arena_strndup(&s->mem, dir, strlen(dir), e) : NULL;
    ses_free(dir);
    return r->dir != NULL;
}

/* Arguments of run i: the command's, with the values of the run. */
static bool run_args(const search *s, size_t i, ses_finetune_args *out, ses_err *e)
{
    *out = *s->a;
    out->grid = (ses_opt_list){ 0 };
    out->seeds = 1;
    for (size_t k = 0; k < s->n_axes; k++) {
        char from[80];
        snprintf(from, sizeof from, "--grid %s", s->axis[k].opt.name);
        if (!ses_opt_set(&s->axis[k].opt, out, from, value_at(s, i / s->seeds, k), e)) return false;
    }
    if (s->seeds > 1) out->s.train.run.seed = s->runs[i].seed;
    out->s.train.run.output = s->runs[i].dir;
    return true;
}

static bool plan(search *s, ses_err *e)
{
    const ses_finetune_args *a = s->a;
    ses_finetune_args trial;
    s->points = 1;
    s->seeds = (size_t)a->seeds;
    if (!a->s.o.eval)
        return ses_fail(e, SES_EUSAGE, "--grid and --seeds compare scores: they need --eval FILE");
    if (a->s.train.run.log || a->s.train.run.tensorboard)
        return ses_fail(e, SES_EUSAGE, "--grid and --seeds: each run is logged in its own folder");
    for (size_t i = 0; i < a->grid.n; i++) {
        if (!add_axis(s, a->grid.item[i], e)) return false;
        s->points *= s->axis[i].n;
        if (s->points > MAX_RUNS / s->seeds)
            return ses_fail(e, SES_EUSAGE, "--grid: more than %d runs", MAX_RUNS);
        if (s->seeds > 1 && !strcmp(s->axis[i].opt.name, "seed"))
            return ses_fail(e, SES_EUSAGE, "--grid seed and --seeds: not both");
    }
    s->runs = ses_arena_array(&s->mem, s->points * s->seeds, sizeof *s->runs, e);
    if (!s->runs) return false;
    memset(s->runs, 0, s->points * s->seeds * sizeof *s->runs);
    for (size_t i = 0; i < s->points * s->seeds; i++)
        if (!name_run(s, i, e) || !run_args(s, i, &trial, e))
            return false; /* checks all values before the first run */
    return true;
}

/* ---- finished runs ---- */

/* Options that do not change a result. */
static const char *const IRRELEVANT =
    "output|resume|overwrite|grid|seeds|threads|isa|device|json|log|tensorboard|"
    "core-watts|co2-per-kwh|bootstrap|confidence|keep|save-every";

static bool same_options(const ses_json *was, const ses_finetune_args *a, const char *dir, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_options_put_json(ses_command_finetune.opt, ses_command_finetune.n_opt, a, w);
    ses_json_doc *d = ses_json_writer_parse(w, e);
    const ses_json *now = d ? ses_json_root(d) : NULL;
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < ses_json_len(now); i++) {
        const char *key = ses_json_key(now, i, NULL);
        char x[200], y[200];
        ses_json_value_text(x, sizeof x, ses_json_get(was, key));
        ses_json_value_text(y, sizeof y, ses_json_at(now, i));
        if (!is_in_list(key, IRRELEVANT) && strcmp(x, y))
            ok = ses_fail(e, SES_EARG, "%s: was trained with %s %s, not %s; --overwrite repeats all runs",
                          dir, key, x, y);
    }
    ses_json_free(d);
    return ok;
}

static ses_json_doc *load(const char *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    ses_json_doc *d = path ? ses_json_load(path, FILE_MAX, NULL) : NULL;
    ses_free(path);
    return d;
}

/* Reads the result of a finished run from its folder; r->done stays false if it is not finished. */
static bool read_result(search *s, run *r, const ses_finetune_args *a, ses_err *e)
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
        r->done = ok;
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

static bool is_better(const search *s, double a, double b) { return s->lower ? a < b : a > b; }

static summary summarize(const search *s, size_t point)
{
    summary x = { .best = SIZE_MAX };
    double squares = 0;
    for (size_t k = 0; k < s->seeds; k++) {
        const run *r = &s->runs[point * s->seeds + k];
        if (!r->done || isnan(r->score)) continue;
        x.n++;
        x.mean += r->score;
        x.seconds += r->seconds;
        x.kwh += r->kwh;
        if (x.best == SIZE_MAX || is_better(s, r->score, s->runs[x.best].score))
            x.best = point * s->seeds + k;
    }
    x.mean = x.n ? x.mean / (double)x.n : NAN;
    for (size_t k = 0; k < s->seeds; k++) {
        const run *r = &s->runs[point * s->seeds + k];
        if (r->done && !isnan(r->score)) squares += (r->score - x.mean) * (r->score - x.mean);
    }
    x.deviation = x.n > 1 ? sqrt(squares / (double)(x.n - 1)) : NAN;
    return x;
}

/* The point with the best mean score; SIZE_MAX: none is finished. */
static size_t best_point(const search *s)
{
    size_t best = SIZE_MAX;
    for (size_t p = 0; p < s->points; p++) {
        summary x = summarize(s, p);
        if (x.n && (best == SIZE_MAX || is_better(s, x.mean, summarize(s, best).mean))) best = p;
    }
    return best;
}

static void put_run(const run *r, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", r->name);
    ses_json_member_int(w, "seed", r->seed);
    if (r->done) {
        ses_json_member_real(w, "score", r->score);
        ses_json_member_real(w, "train_runtime", r->seconds);
        ses_json_member_real(w, "train_energy_kwh", r->kwh);
    }
    if (*r->failed) ses_json_member_string(w, "failed", r->failed);
    ses_json_end_object(w);
}

static void put_all(const search *s, ses_json_writer *w)
{
    size_t best = best_point(s);
    ses_json_begin_object(w);
    ses_json_member_string(w, "metric", *s->metric ? s->metric : NULL);
    ses_json_member_bool(w, "lower_is_better", s->lower);
    ses_json_member_string(w, "best", best == SIZE_MAX ? NULL : s->runs[summarize(s, best).best].name);
    ses_json_member_array(w, "points");
    for (size_t p = 0; p < s->points; p++) {
        summary x = summarize(s, p);
        ses_json_begin_object(w);
        for (size_t k = 0; k < s->n_axes; k++)
            ses_json_member_string(w, s->axis[k].opt.name, value_at(s, p, k));
        ses_json_member_real(w, "mean", x.mean);
        ses_json_member_real(w, "deviation", x.deviation);
        ses_json_member_array(w, "runs");
        for (size_t k = 0; k < s->seeds; k++) put_run(&s->runs[p * s->seeds + k], w);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static bool write_grid(const search *s, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) put_all(s, w);
    return ses_json_writer_save(w, s->a->s.train.run.output, SES_GRID_FILE, true, e);
}

static ses_text_table *table_of(const search *s, ses_err *e)
{
    ses_buf columns = { 0 };
    for (size_t k = 0; k < s->n_axes; k++) ses_buf_appendf(&columns, "%s|", s->axis[k].opt.name);
    ses_buf_appendf(&columns, ">%s|>deviation|>runs|>time|>energy", s->metric);
    ses_text_table *t = ses_buf_ok(&columns, e) ? ses_text_table_new(columns.data, e) : NULL;
    ses_buf_free(&columns);
    return t;
}

static void put_score(ses_text_table *t, ses_style style, bool is_known, double x)
{
    is_known ? ses_text_table_cell(t, "%.4f", x) : ses_text_table_cell(t, "-");
    ses_text_table_style(t, style);
}

static bool show(const search *s, ses_err *e)
{
    size_t best = best_point(s);
    ses_text_table *t = table_of(s, e);
    if (!t) return false;
    for (size_t p = 0; p < s->points; p++) {
        summary x = summarize(s, p);
        char time[SES_NUMBER_TEXT], energy[SES_NUMBER_TEXT];
        ses_style style = p == best ? SES_GREEN : SES_PLAIN;
        for (size_t k = 0; k < s->n_axes; k++) {
            ses_text_table_cell(t, "%s", value_at(s, p, k));
            ses_text_table_style(t, style);
        }
        put_score(t, style, x.n > 0, x.mean);
        put_score(t, style, x.n > 1, x.deviation);
        ses_text_table_cell(t, "%zu", x.n);
        ses_text_table_cell(t, "%s", x.n ? ses_duration_text(time, x.seconds) : "-");
        ses_text_table_cell(t, "%s", x.n ? ses_watt_hours_text(energy, 3.6e6 * x.kwh) : "-");
    }
    bool ok = ses_text_table_print(t, stdout, &s->c->out, 0, e);
    ses_text_table_free(t);
    if (ok && best != SIZE_MAX) {
        const run *r = &s->runs[summarize(s, best).best];
        ses_show_line(&s->c->out, "Best", "%s: %s %.4f", r->dir, s->metric, r->score);
        ses_show_line(&s->c->out, "Next", "sesame compare %s", s->a->s.train.run.output);
    }
    return ok;
}

/* ---- running ---- */

static bool note_entry(void *ctx, const char *name)
{
    bool *other = ctx;
    *other |= strcmp(name, ".lock") && strncmp(name, ".sesame-", 8);
    return true;
}

static bool output_is_free(const ses_finetune_args *a, ses_err *e)
{
    bool other = false;
    if (a->s.train.run.overwrite && a->s.train.run.resume)
        return ses_fail(e, SES_EUSAGE, "--resume continues the runs, --overwrite replaces them: set one");
    if (a->s.train.run.overwrite || !ses_path_exists(a->s.train.run.output)) return true;
    if (!ses_dir_each(a->s.train.run.output, note_entry, &other, e)) return false;
    char *grid = ses_path_join(a->s.train.run.output, SES_GRID_FILE, e);
    bool ok = grid && (!other || (a->s.train.run.resume && ses_path_exists(grid)));
    ses_free(grid);
    return ok || ses_fail(e, SES_EIO, "%s: not empty: %s", a->s.train.run.output,
                          a->s.train.run.resume ? "no " SES_GRID_FILE " to resume from"
                                                : "--resume continues its runs, --overwrite replaces them");
}

/* A run that fails (its loss is NaN) does not stop the others. */
static bool run_one(search *s, size_t i, bool *stopped, ses_err *e)
{
    run *r = &s->runs[i];
    ses_finetune_args a;
    ses_err error = { 0 };
    if (!run_args(s, i, &a, e) || (a.s.train.run.resume && !read_result(s, r, &a, e))) return false;
    if (!s->c->quiet)
        fprintf(stderr, "%s[%zu/%zu] %s%s%s\n", ses_style_on(&s->c->err, SES_BOLD), i + 1,
                s->points * s->seeds, r->name, ses_style_on(&s->c->err, SES_PLAIN),
                r->done ? ": already finished" : "");
    if (r->done) return true;
    if (ses_finetune_one(s->c, &a, true, stopped, &error)) {
        if (*stopped) return true;
        return read_result(s, r, &a, e) &&
               (r->done || ses_fail(e, SES_EIO, "%s: results cannot be read", r->dir));
    }
    if (error.code != SES_EARG) {
        if (e) *e = error;
        return ses_wrap(e, "%s", r->name);
    }
    ses_quote(r->failed, sizeof r->failed, error.msg, strlen(error.msg));
    fprintf(stderr, "sesame: %s: %s\n", r->name, r->failed);
    return true;
}

static bool run_all(search *s, bool *stopped, ses_err *e)
{
    size_t failed = 0, n = s->points * s->seeds;
    for (size_t i = 0; i < n && !*stopped; i++) {
        if (!run_one(s, i, stopped, e) || !write_grid(s, e)) return false;
        failed += *s->runs[i].failed != 0;
        *stopped |= ses_train_monitor_should_stop() && i + 1 < n;
    }
    return failed < n || ses_fail(e, SES_EARG, "all runs failed; the first: %s", s->runs[0].failed);
}

bool ses_finetune_search(ses_call *c, ses_err *e)
{
    search s = { .c = c, .a = c->args };
    bool stopped = false;
    ses_dir_lock *lock = NULL;
    bool ok = plan(&s, e) && output_is_free(s.a, e) && ses_dir_make(s.a->s.train.run.output, e) &&
              (lock = ses_dir_lock_new(s.a->s.train.run.output, e)) != NULL &&
              (s.a->s.train.run.resume || write_grid(&s, e)) && run_all(&s, &stopped, e);
    if (ok && stopped) fprintf(stderr, "search stopped; the same command with --resume continues\n");
    if (ok && s.a->compute.json) {
        ses_json_writer *w = ses_json_writer_new(0, e);
        if (w) put_all(&s, w);
        ok = w && ses_json_writer_print(w, e);
    } else if (ok && !c->quiet && *s.metric) {
        ok = show(&s, e);
    }
    ses_dir_lock_free(lock);
    ses_arena_free(&s.mem);
    return ok && !stopped;
}
