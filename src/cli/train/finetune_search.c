/* finetune --grid, --seeds: every combination of values, each with every seed, as runs in folders of their
 * own; one table at the end. */
#define _POSIX_C_SOURCE 200809L
#include "finetune_command.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/suggest.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_AXES = 16, MAX_RUNS = 10000, FILE_MAX = 1 << 28 };

typedef struct axis {
    ses_opt opt;
    const char **value;
    size_t n;
} axis;

typedef struct attempt {
    char *name, *dir;
    int64_t seed;
    bool done;
    double score, seconds, kwh;
    char failed[200];
} attempt;

typedef struct search {
    ses_call *c;
    const ses_finetune_args *a;
    ses_arena mem;
    axis axis[MAX_AXES];
    size_t n_axes, points, seeds;
    attempt *run; /* [points, seeds] */
    char metric[64];
    bool lower;
} search;

/* ---- what is to be run ---- */

static bool is_word(const char *word, const char *list) /* "a|b|c" */
{
    for (; *list; list += strcspn(list, "|"), list += *list == '|')
        if (ses_equal(list, strcspn(list, "|"), word)) return true;
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
            !is_word(name, "task|output|log|tensorboard|seeds|resume|overwrite|json|metric|eval")) {
            *out = *o;
            return true;
        }
        return ses_fail(e, SES_EUSAGE, "--grid: --%s is the same for all runs", name);
    }
    ses_fail(e, SES_EUSAGE, "--grid: no option is called \"%s\"", name);
    return ses_suggest_add(&s, "", e);
}

/* The values of "1e-5,3e-5". */
static bool read_values(search *s, axis *x, const char *list, ses_err *e)
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
    return read_values(s, x, text + len + 1, e);
}

/* The value of an axis at a point; the last axis moves fastest. */
static const char *value_at(const search *s, size_t point, size_t at)
{
    for (size_t i = s->n_axes - 1; i > at; i--) point /= s->axis[i].n;
    return s->axis[at].value[point % s->axis[at].n];
}

/* "lr=1e-5,batch-size=16,seed=42": also the folder's name, so a '/' becomes '-'. */
static bool name_run(search *s, size_t i, ses_err *e)
{
    ses_buf b = { 0 };
    attempt *r = &s->run[i];
    r->seed = s->a->seed + (int64_t)(i % s->seeds);
    for (size_t k = 0; k < s->n_axes; k++)
        ses_buf_appendf(&b, "%s%s=%s", k ? "," : "", s->axis[k].opt.name, value_at(s, i / s->seeds, k));
    if (s->seeds > 1) ses_buf_appendf(&b, "%sseed=%" PRId64, s->n_axes ? "," : "", r->seed);
    for (size_t k = 0; k < b.len; k++)
        if (b.data[k] == '/') b.data[k] = '-';
    bool ok = ses_buf_ok(&b, e) && (b.len < 200 || ses_fail(e, SES_EUSAGE, "--grid: values are too long"));
    r->name = ok ? ses_arena_strndup(&s->mem, b.data, b.len, e) : NULL;
    ses_buf_free(&b);
    char *dir = r->name ? ses_path_join(s->a->output, r->name, e) : NULL;
    r->dir = dir ? ses_arena_strndup(&s->mem, dir, strlen(dir), e) : NULL;
    ses_free(dir);
    return r->dir != NULL;
}

/* The arguments of a run: those of the command, with its own values. */
static bool args_of(const search *s, size_t i, ses_finetune_args *out, ses_err *e)
{
    *out = *s->a;
    out->grid = (ses_opt_list){ 0 };
    out->seeds = 1;
    for (size_t k = 0; k < s->n_axes; k++) {
        char from[80];
        snprintf(from, sizeof from, "--grid %s", s->axis[k].opt.name);
        if (!ses_opt_set(&s->axis[k].opt, out, from, value_at(s, i / s->seeds, k), e)) return false;
    }
    if (s->seeds > 1) out->seed = s->run[i].seed;
    out->output = s->run[i].dir;
    return true;
}

static bool plan(search *s, ses_err *e)
{
    const ses_finetune_args *a = s->a;
    ses_finetune_args trial;
    s->points = 1;
    s->seeds = (size_t)a->seeds;
    if (!a->eval) return ses_fail(e, SES_EUSAGE, "--grid and --seeds compare scores: --eval FILE is needed");
    if (a->log || a->board)
        return ses_fail(e, SES_EUSAGE, "--grid and --seeds: each run is logged in its own folder");
    for (size_t i = 0; i < a->grid.n; i++) {
        if (!add_axis(s, a->grid.item[i], e)) return false;
        s->points *= s->axis[i].n;
        if (s->points > MAX_RUNS / s->seeds)
            return ses_fail(e, SES_EUSAGE, "--grid: more than %d runs", MAX_RUNS);
        if (s->seeds > 1 && !strcmp(s->axis[i].opt.name, "seed"))
            return ses_fail(e, SES_EUSAGE, "--grid seed and --seeds: not both");
    }
    s->run = ses_arena_array(&s->mem, s->points * s->seeds, sizeof *s->run, e);
    if (!s->run) return false;
    memset(s->run, 0, s->points * s->seeds * sizeof *s->run);
    for (size_t i = 0; i < s->points * s->seeds; i++)
        if (!name_run(s, i, e) || !args_of(s, i, &trial, e)) return false; /* a wrong value is told at once */
    return true;
}

/* ---- what has been run ---- */

/* Options that make no difference to a result. */
static const char *const FREE = "output|resume|overwrite|grid|seeds|threads|isa|device|json|log|tensorboard|"
                                "core-watts|co2-per-kwh|bootstrap|confidence|keep|save-every";

static bool same_options(const ses_json *was, const ses_finetune_args *a, const char *dir, ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_options_put_json(ses_command_finetune.opt, ses_command_finetune.n_opt, a, w);
    const char *text = ses_json_writer_text(w, &n, e);
    ses_json_doc *d = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    const ses_json *now = d ? ses_json_root(d) : NULL;
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < ses_json_len(now); i++) {
        const char *key = ses_json_key(now, i, NULL);
        char x[200], y[200];
        ses_json_value_text(x, sizeof x, ses_json_get(was, key));
        ses_json_value_text(y, sizeof y, ses_json_at(now, i));
        if (!is_word(key, FREE) && strcmp(x, y))
            ok = ses_fail(e, SES_EARG, "%s: was made with %s %s, not %s; --overwrite makes all anew", dir,
                          key, x, y);
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

static bool is_whole(const char *dir) /* its config came last */
{
    char *path = ses_path_join(dir, "config.json", NULL);
    bool there = path && ses_path_exists(path);
    ses_free(path);
    return there;
}

/* The result of a finished run, from its folder; r->done stays false where it is not finished. */
static bool read_result(search *s, attempt *r, const ses_finetune_args *a, ses_err *e)
{
    ses_json_doc *about = load(r->dir, SES_RUN_INFO), *all = load(r->dir, "all_results.json");
    char key[80];
    bool ok = true;
    if (about && all && is_whole(r->dir)) {
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

/* ---- what came of it ---- */

typedef struct summary {
    size_t n, best; /* runs that count, and the best of them */
    double mean, deviation, seconds, kwh;
} summary;

static bool better(const search *s, double a, double b) { return s->lower ? a < b : a > b; }

static summary sum_up(const search *s, size_t point)
{
    summary x = { .best = SIZE_MAX };
    double squares = 0;
    for (size_t k = 0; k < s->seeds; k++) {
        const attempt *r = &s->run[point * s->seeds + k];
        if (!r->done || isnan(r->score)) continue;
        x.n++;
        x.mean += r->score;
        x.seconds += r->seconds;
        x.kwh += r->kwh;
        if (x.best == SIZE_MAX || better(s, r->score, s->run[x.best].score)) x.best = point * s->seeds + k;
    }
    x.mean = x.n ? x.mean / (double)x.n : NAN;
    for (size_t k = 0; k < s->seeds; k++) {
        const attempt *r = &s->run[point * s->seeds + k];
        if (r->done && !isnan(r->score)) squares += (r->score - x.mean) * (r->score - x.mean);
    }
    x.deviation = x.n > 1 ? sqrt(squares / (double)(x.n - 1)) : NAN;
    return x;
}

/* The point with the best mean; SIZE_MAX: none is finished. */
static size_t best_point(const search *s)
{
    size_t best = SIZE_MAX;
    for (size_t p = 0; p < s->points; p++) {
        summary x = sum_up(s, p);
        if (x.n && (best == SIZE_MAX || better(s, x.mean, sum_up(s, best).mean))) best = p;
    }
    return best;
}

static void put_run(const attempt *r, ses_json_writer *w)
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
    ses_json_member_string(w, "best", best == SIZE_MAX ? NULL : s->run[sum_up(s, best).best].name);
    ses_json_member_array(w, "points");
    for (size_t p = 0; p < s->points; p++) {
        summary x = sum_up(s, p);
        ses_json_begin_object(w);
        for (size_t k = 0; k < s->n_axes; k++)
            ses_json_member_string(w, s->axis[k].opt.name, value_at(s, p, k));
        ses_json_member_real(w, "mean", x.mean);
        ses_json_member_real(w, "deviation", x.deviation);
        ses_json_member_array(w, "runs");
        for (size_t k = 0; k < s->seeds; k++) put_run(&s->run[p * s->seeds + k], w);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static bool write_grid(const search *s, ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(2, e);
    char *path = w ? ses_path_join(s->a->output, SES_GRID_FILE, e) : NULL;
    if (path) put_all(s, w);
    const char *text = path ? ses_json_writer_text(w, &n, e) : NULL;
    bool ok = text && ses_file_write(path, text, n, true, e);
    ses_json_writer_free(w);
    ses_free(path);
    return ok;
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

static void put_score(ses_text_table *t, ses_style style, bool there, double x)
{
    there ? ses_text_table_cell(t, "%.4f", x) : ses_text_table_cell(t, "-");
    ses_text_table_style(t, style);
}

static bool show(const search *s, ses_err *e)
{
    size_t best = best_point(s);
    ses_text_table *t = table_of(s, e);
    if (!t) return false;
    for (size_t p = 0; p < s->points; p++) {
        summary x = sum_up(s, p);
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
        const attempt *r = &s->run[sum_up(s, best).best];
        ses_show_line(&s->c->out, "Best", "%s: %s %.4f", r->dir, s->metric, r->score);
        ses_show_line(&s->c->out, "Next", "sesame compare %s", s->a->output);
    }
    return ok;
}

/* ---- one after the other ---- */

static bool look(void *ctx, const char *name)
{
    bool *other = ctx;
    *other |= strcmp(name, ".lock") && strncmp(name, ".sesame-", 8);
    return true;
}

static bool has_room(const ses_finetune_args *a, ses_err *e)
{
    bool other = false;
    if (a->overwrite && a->resume)
        return ses_fail(e, SES_EUSAGE, "--resume goes on with the runs, --overwrite replaces them: not both");
    if (a->overwrite || !ses_path_exists(a->output)) return true;
    if (!ses_dir_each(a->output, look, &other, e)) return false;
    char *grid = ses_path_join(a->output, SES_GRID_FILE, e);
    bool ok = grid && (!other || (a->resume && ses_path_exists(grid)));
    ses_free(grid);
    return ok || ses_fail(e, SES_EIO, "%s: is not empty: %s", a->output,
                          a->resume ? "and has no " SES_GRID_FILE " to go on with"
                                    : "--resume goes on with its runs, --overwrite replaces them");
}

/* Where a run that cannot go on (its loss is not a number) is one of several, the others still can. */
static bool run_one(search *s, size_t i, bool *stopped, ses_err *e)
{
    attempt *r = &s->run[i];
    ses_finetune_args a;
    ses_err why = { 0 };
    if (!args_of(s, i, &a, e) || (a.resume && !read_result(s, r, &a, e))) return false;
    if (!s->c->quiet)
        fprintf(stderr, "%s[%zu/%zu] %s%s%s\n", ses_style_on(&s->c->err, SES_BOLD), i + 1,
                s->points * s->seeds, r->name, ses_style_on(&s->c->err, SES_PLAIN),
                r->done ? ": finished before" : "");
    if (r->done) return true;
    if (ses_finetune_one(s->c, &a, true, stopped, &why)) {
        if (!*stopped && (!read_result(s, r, &a, e) || !r->done))
            return e->code || ses_fail(e, SES_EIO, "%s: its results cannot be read", r->dir);
        return true;
    }
    if (why.code != SES_EARG) {
        if (e) *e = why;
        return ses_wrap(e, "%s", r->name);
    }
    ses_quote(r->failed, sizeof r->failed, why.msg, strlen(why.msg));
    fprintf(stderr, "sesame: %s: %s\n", r->name, r->failed);
    return true;
}

static bool run_all(search *s, bool *stopped, ses_err *e)
{
    size_t failed = 0, n = s->points * s->seeds;
    for (size_t i = 0; i < n && !*stopped; i++) {
        if (!run_one(s, i, stopped, e) || !write_grid(s, e)) return false;
        failed += *s->run[i].failed != 0;
        *stopped |= ses_train_monitor_should_stop() && i + 1 < n;
    }
    return failed < n || ses_fail(e, SES_EARG, "no run came to its end; the first: %s", s->run[0].failed);
}

bool ses_finetune_search(ses_call *c, ses_err *e)
{
    search s = { .c = c, .a = c->args };
    bool stopped = false;
    ses_dir_lock *lock = NULL;
    bool ok = plan(&s, e) && has_room(s.a, e) && ses_dir_make(s.a->output, e) &&
              (lock = ses_dir_lock_new(s.a->output, e)) != NULL && (s.a->resume || write_grid(&s, e)) &&
              run_all(&s, &stopped, e);
    if (ok && stopped) fprintf(stderr, "the search was stopped; the same command with --resume goes on\n");
    if (ok && s.a->tune.shared.json) {
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
