/* The recipe of a study: runs, tasks, seeds, published numbers. */
#include "ablate.h"

#include "base/json/json_helpers.h"
#include "base/str.h"
#include "base/suggest.h"
#include "tune/finetune_data.h"

#include <string.h>

enum { FILE_MAX = 1 << 24, DEFAULT_SEEDS = 3 };

static bool is_object(const ses_json *v, const char *what, ses_err *e)
{
    if (!v || ses_json_type_of(v) == SES_JSON_OBJECT) return true;
    return ses_fail(e, SES_EFORMAT, "%s is %s; expected an object", what,
                    ses_json_type_name(ses_json_type_of(v)));
}

/* ---- runs ---- */

void ses_ablate_name_folder(const char *run, char name[SES_ABLATE_FOLDER])
{
    size_t n = 0;
    for (; run[n] && n + 1 < SES_ABLATE_FOLDER; n++)
        name[n] = strchr(" /:,=\n\t", run[n]) || (!n && run[n] == '.') ? '-' : run[n];
    name[n] = 0;
}

static bool add_run(ses_ablate *s, ses_ablate_run a, ses_err *e)
{
    char folder[SES_ABLATE_FOLDER], other[SES_ABLATE_FOLDER];
    if (s->n_runs == SES_ABLATE_RUNS) return ses_fail(e, SES_EFORMAT, "more than %d runs", SES_ABLATE_RUNS);
    ses_ablate_name_folder(a.name, folder);
    if (!*folder) return ses_fail(e, SES_EFORMAT, "a run has an empty name");
    for (size_t i = 0; i < s->n_runs; i++) {
        ses_ablate_name_folder(s->run[i].name, other);
        if (!strcmp(folder, other))
            return ses_fail(e, SES_EFORMAT, "runs \"%s\" and \"%s\" have the same folder, %s", s->run[i].name,
                            a.name, folder);
    }
    s->run[s->n_runs++] = a;
    return true;
}

/* Whether there is a corpus for this run. */
static bool has_corpus(const ses_ablate *s, const ses_json *change)
{
    const ses_json *own = ses_json_get(change, "corpus");
    if (own) return ses_json_type_of(own) != SES_JSON_NULL;
    return ses_json_get(s->common, "corpus") || ses_json_get(s->grid, "corpus") ||
           (s->set && ses_json_get(ses_json_root(s->set), "corpus"));
}

/* Tasks only: "pretrain": false, or a model without a corpus. */
static bool read_change(ses_ablate *s, const ses_json *change, ses_ablate_run *a, ses_err *e)
{
    const ses_json *pretrain = ses_json_get(change, "pretrain"), *model = ses_json_get(change, "model");
    bool on = true;
    if (pretrain && !ses_json_bool(pretrain, &on))
        return ses_json_wrong_type("pretrain", pretrain, "true or false", e);
    if (!pretrain) on = has_corpus(s, change) || !model;
    a->change = change;
    a->tune = ses_json_get(change, "tune");
    a->tasks = ses_json_get(change, "tasks");
    if (a->tasks && ses_json_type_of(a->tasks) == SES_JSON_NULL) a->tasks = NULL;
    a->pretrains = on;
    if (!is_object(a->tune, "\"tune\"", e)) return false;
    if (on) return true;
    a->model = ses_json_string(model, NULL);
    if (model && !a->model) return ses_json_wrong_type("model", model, "a string", e);
    for (size_t i = 0; i < ses_json_len(change); i++) {
        const char *key = ses_json_key(change, i, NULL);
        if (!ses_list_has("pretrain|model|tune|tasks", key))
            return ses_fail(e, SES_EFORMAT,
                            "\"%s\": a run without pretraining has \"model\", \"tune\" and \"tasks\" only; "
                            "options of fine-tuning belong into \"tune\"",
                            ses_quoted_of(key, strlen(key)).s);
    }
    return true;
}

/* Adds every combination of the grid's values, for one entry of "runs" or for none. */
static bool add_grid(ses_ablate *s, const char *name, const ses_json *change, ses_err *e)
{
    ses_ablate_run first = { .pretrains = true, .from = SIZE_MAX };
    size_t axes = ses_json_len(s->grid), points = 1;
    if (change && !read_change(s, change, &first, e)) return ses_wrap(e, "\"%s\"", name);
    first.name = first.entry = name;
    if (!first.pretrains) return add_run(s, first, e);
    for (size_t i = 0; i < axes && points <= SES_ABLATE_RUNS; i++)
        points *= ses_json_len(ses_json_at(s->grid, i));
    if (!points || points > SES_ABLATE_RUNS || axes > SES_ABLATE_AXES)
        return ses_fail(
            e, SES_EFORMAT,
            "\"grid\": expected at most %d options, an array of values for each and at most %d runs",
            SES_ABLATE_AXES, SES_ABLATE_RUNS);
    for (size_t p = 0; p < points; p++) {
        ses_ablate_run a = first;
        ses_buf b = { 0 };
        size_t rest = p;
        ses_buf_puts(&b, name);
        for (size_t i = axes; i-- > 0;) {
            size_t n = ses_json_len(ses_json_at(s->grid, i));
            a.at[i] = rest % n;
            rest /= n;
        }
        for (size_t i = 0; i < axes; i++) {
            const char *v = ses_ablate_text(s, ses_json_at(ses_json_at(s->grid, i), a.at[i]), e);
            if (!v) return ses_buf_free(&b), false;
            ses_buf_appendf(&b, "%s%s=%s", b.len ? " " : "", ses_json_key(s->grid, i, NULL), v);
        }
        a.name = ses_buf_ok(&b, e) ? ses_arena_strndup(&s->mem, b.data ? b.data : "", b.len, e) : NULL;
        ses_buf_free(&b);
        if (!a.name || !add_run(s, a, e)) return false;
    }
    return true;
}

static bool read_runs(ses_ablate *s, const ses_json *runs, ses_err *e)
{
    if (!ses_json_len(runs) && !ses_json_len(s->grid))
        return ses_fail(e, SES_EFORMAT, "expected \"runs\" or \"grid\"");
    s->run = ses_arena_array(&s->mem, SES_ABLATE_RUNS, sizeof *s->run, e);
    if (!s->run) return false;
    for (size_t i = 0; i < ses_json_len(runs); i++)
        if (!is_object(ses_json_at(runs, i), "an entry of \"runs\"", e) ||
            !add_grid(s, ses_json_key(runs, i, NULL), ses_json_at(runs, i), e))
            return ses_wrap(e, "\"runs\"");
    return ses_json_len(runs) || add_grid(s, "", NULL, e);
}

/* ---- tasks ---- */

/* An option of the task, or common to all tasks. */
static const char *option_of(const ses_ablate *s, const ses_json *options, const char *key)
{
    const ses_json *v = ses_json_get(options, key);
    return ses_json_string(v ? v : ses_json_get(s->tune, key), NULL);
}

/* Measures of commands without fine-tuning. */
static const char *default_metric(const char *command, const char *task)
{
    static const struct {
        const char *command, *task, *metric;
    } known[] = {
        { "perplexity", NULL, "perplexity" },
        { "eval", "lama", "precision_at_1" },
        { "eval", "checklist", "failure_rate" },
    };
    for (size_t i = 0; i < SES_LEN(known); i++)
        if (!strcmp(command, known[i].command) && (!known[i].task || (task && !strcmp(task, known[i].task))))
            return known[i].metric;
    return "accuracy";
}

bool ses_ablate_lower_is_better(const char *metric)
{
    static const char *const suffix[] = { "perplexity", "_bits", "bits_per_byte", "failure_rate" };
    size_t n = strlen(metric);
    for (size_t i = 0; i < SES_LEN(suffix); i++) {
        size_t len = strlen(suffix[i]);
        if (n >= len && !strcmp(metric + n - len, suffix[i])) return true;
    }
    return ses_metric_lower_is_better(metric);
}

/* The measure of a fine-tuning task. */
static bool resolve_task(ses_ablate_task *t, const char *name, ses_err *e)
{
    const ses_finetune_task *task;
    ses_finetune_task_options none = { 0 };
    ses_data_spec spec;
    if (!name) return ses_fail(e, SES_EFORMAT, "expected \"task\", as of sesame finetune");
    if (!ses_finetune_resolve_task(&(ses_data_options){ .task = name }, &none, &task, &spec, e)) return false;
    t->in_percent = task->in_percent;
    if (!t->metric) t->metric = spec.best_metric;
    return true;
}

/* '|' ends the heading of a column. */
static bool is_column_name(const char *name) { return *name && !strpbrk(name, "|\n"); }

static bool read_task(ses_ablate *s, const char *name, const ses_json *options, ses_err *e)
{
    ses_ablate_task t = { .name = name, .options = options };
    const char *command = ses_json_string(ses_json_get(options, "command"), NULL);
    const ses_json *score = ses_json_get(options, "score");
    if (!is_object(options, "a task", e)) return false;
    if (!is_column_name(name) || ses_list_has("mean|run", name))
        return ses_fail(e, SES_EFORMAT,
                        "not a name of a task: \"mean\", \"run\", an empty one, or '|' in it");
    if (!command) command = option_of(s, options, "train") ? "finetune" : "eval";
    t.command = ses_command_find(command);
    t.tunes = t.command && !strcmp(t.command->name, "finetune");
    if (!t.command || (!t.tunes && !ses_list_has("eval|perplexity", t.command->name)))
        return ses_fail(e, SES_EFORMAT, "\"command\": \"%s\": expected finetune, eval or perplexity",
                        ses_quoted_of(command, strlen(command)).s);
    t.metric = ses_json_string(score, NULL);
    if (score && !t.metric) return ses_json_wrong_type("score", score, "a string", e);
    if (t.metric && !strncmp(t.metric, "eval_", 5)) t.metric += 5;
    if (t.tunes && !resolve_task(&t, option_of(s, options, "task"), e)) return false;
    if (!t.metric) t.metric = default_metric(command, option_of(s, options, "task"));
    if (!t.tunes && !ses_json_get(options, "data"))
        return ses_fail(e, SES_EFORMAT, "expected \"data\": a file, or an array of files");
    t.lower_is_better = ses_ablate_lower_is_better(t.metric);
    s->task[s->n_tasks++] = t;
    return true;
}

static bool read_tasks(ses_ablate *s, const ses_json *tasks, ses_err *e)
{
    if (!is_object(tasks, "\"tasks\"", e)) return false;
    if (ses_json_len(tasks) > SES_ABLATE_TASKS)
        return ses_fail(e, SES_EFORMAT, "\"tasks\": more than %d", SES_ABLATE_TASKS);
    s->task = ses_arena_array(&s->mem, SES_ABLATE_TASKS, sizeof *s->task, e);
    for (size_t i = 0; s->task && i < ses_json_len(tasks); i++) {
        const char *name = ses_json_key(tasks, i, NULL);
        if (!read_task(s, name, ses_json_at(tasks, i), e))
            return ses_wrap(e, "\"tasks\": \"%s\"", ses_quoted_of(name, strlen(name)).s);
    }
    return s->task != NULL;
}

static size_t find_task(const ses_ablate *s, const char *name, size_t n)
{
    size_t i = 0;
    while (i < s->n_tasks && !ses_equal(name, n, s->task[i].name)) i++;
    return i;
}

bool ses_ablate_has_task(const ses_ablate *s, size_t run, size_t task)
{
    const ses_json *names = s->run[run].tasks;
    bool found = !names;
    for (size_t i = 0; i < ses_json_len(names) && !found; i++) {
        size_t n = 0;
        const char *name = ses_json_string(ses_json_at(names, i), &n);
        found = name && ses_equal(name, n, s->task[task].name);
    }
    return found;
}

/* "tasks" of one run: names of tasks that it can have. */
static bool check_names(const ses_ablate *s, const ses_ablate_run *a, ses_err *e)
{
    const ses_json *names = a->tasks;
    if (names && ses_json_type_of(names) != SES_JSON_ARRAY)
        return ses_json_wrong_type("tasks", names, "an array of names of tasks", e);
    if (names && !ses_json_len(names) && !a->pretrains)
        return ses_fail(e, SES_EFORMAT, "\"tasks\" is empty: a run without pretraining needs a task");
    for (size_t k = 0; k < ses_json_len(names); k++) {
        size_t n = 0;
        const char *name = ses_json_string(ses_json_at(names, k), &n);
        ses_suggestion near = { .word = name };
        if (!name)
            return ses_json_wrong_type("tasks", ses_json_at(names, k), "an array of names of tasks", e);
        size_t task = find_task(s, name, n);
        if (task < s->n_tasks && !s->task[task].tunes && !a->pretrains && !a->model)
            return ses_fail(e, SES_EFORMAT,
                            "\"tasks\": \"%s\" evaluates a model, and the run has random weights: expected "
                            "\"model\" or tasks of fine-tuning",
                            s->task[task].name);
        if (task < s->n_tasks) continue;
        for (size_t i = 0; i < s->n_tasks; i++)
            ses_suggest_offer(&near, s->task[i].name, strlen(s->task[i].name));
        ses_fail(e, SES_EFORMAT, "\"tasks\": \"%s\" is not a name in \"tasks\" of the recipe",
                 ses_quoted_of(name, n).s);
        return ses_suggest_add(&near, "", e);
    }
    return true;
}

static bool check_tasks_of_runs(const ses_ablate *s, ses_err *e)
{
    for (size_t i = 0; i < s->n_runs; i++) {
        const char *name = s->run[i].entry;
        if (!check_names(s, &s->run[i], e))
            return ses_wrap(e, "\"runs\": \"%s\"", ses_quoted_of(name, strlen(name)).s);
    }
    return true;
}

/* The tasks in the column "mean"; default: the fine-tuned ones. */
static bool read_mean(ses_ablate *s, const ses_json *mean, ses_err *e)
{
    for (size_t i = 0; !mean && i < s->n_tasks; i++)
        s->averages[i] = s->task[i].tunes && !s->task[i].lower_is_better;
    if (mean && ses_json_type_of(mean) != SES_JSON_ARRAY)
        return ses_json_wrong_type("mean", mean, "an array of columns", e);
    for (size_t k = 0; k < ses_json_len(mean); k++) {
        size_t n = 0;
        const char *name = ses_json_string(ses_json_at(mean, k), &n);
        size_t i = name ? find_task(s, name, n) : s->n_tasks;
        if (i == s->n_tasks)
            return ses_fail(e, SES_EFORMAT, "\"mean\": \"%s\" is not a name in \"tasks\"",
                            name ? ses_quoted_of(name, n).s : "");
        s->averages[i] = true;
    }
    return true;
}

/* ---- seeds and published numbers ---- */

/* N: from 1 to N; or an array. */
static bool read_seeds(const ses_json *v, const char *key, int64_t *out, size_t *n, ses_err *e)
{
    int64_t count = 0;
    bool ok = ses_json_int(v, &count) && count > 0 && count <= SES_ABLATE_SEEDS;
    *n = 0;
    for (int64_t i = 0; ok && i < count; i++) out[(*n)++] = i + 1;
    if (ok) return true;
    ok = ses_json_type_of(v) == SES_JSON_ARRAY && ses_json_len(v) && ses_json_len(v) <= SES_ABLATE_SEEDS;
    for (size_t i = 0; ok && i < ses_json_len(v); i++) {
        ok = ses_json_int(ses_json_at(v, i), &out[i]) && out[i] >= 0;
        for (size_t k = 0; ok && k < i; k++) ok = out[k] != out[i];
        (*n)++;
    }
    return ok || ses_fail(e, SES_EFORMAT,
                          "\"%s\": expected a number from 1 to %d, or an array of different seeds from 0 on",
                          key, SES_ABLATE_SEEDS);
}

static bool check_scores(const ses_ablate *s, ses_err *e)
{
    bool ok = !s->scores ||
              (ses_json_type_of(s->scores) == SES_JSON_ARRAY && ses_json_len(s->scores) <= SES_ABLATE_SCORES);
    for (size_t i = 0; ok && i < ses_json_len(s->scores); i++) {
        const char *name = ses_json_string(ses_json_at(s->scores, i), NULL);
        ok = name && is_column_name(name) && find_task(s, name, strlen(name)) == s->n_tasks;
    }
    return ok || ses_fail(e, SES_EFORMAT,
                          "\"scores\": expected an array of at most %d names of scores, none of them the "
                          "name of a task",
                          SES_ABLATE_SCORES);
}

static bool is_column(const ses_ablate *s, const char *name)
{
    if (!strcmp(name, "mean") || find_task(s, name, strlen(name)) < s->n_tasks) return true;
    for (size_t i = 0; i < ses_json_len(s->scores); i++) {
        const char *score = ses_json_string(ses_json_at(s->scores, i), NULL);
        if (score && !strcmp(score, name)) return true;
    }
    return !s->scores && !s->n_tasks; /* all scores of the runs, which are unknown yet */
}

static bool check_published(const ses_ablate *s, ses_err *e)
{
    double x;
    for (size_t i = 0; i < ses_json_len(s->published); i++) {
        const char *name = ses_json_key(s->published, i, NULL);
        const ses_json *row = ses_json_at(s->published, i);
        size_t r = 0;
        while (r < s->n_runs && strcmp(s->run[r].name, name) != 0) r++;
        if (r == s->n_runs)
            return ses_fail(e, SES_EFORMAT, "\"published\": no run is named \"%s\"",
                            ses_quoted_of(name, strlen(name)).s);
        if (!is_object(row, "a run", e)) return ses_wrap(e, "\"published\": \"%s\"", name);
        for (size_t k = 0; k < ses_json_len(row); k++) {
            const char *column = ses_json_key(row, k, NULL);
            if (!ses_json_real(ses_json_at(row, k), &x))
                return ses_fail(e, SES_EFORMAT, "\"published\": \"%s\": \"%s\" is not a number", name,
                                ses_quoted_of(column, strlen(column)).s);
            if (!is_column(s, column))
                return ses_fail(e, SES_EFORMAT, "\"published\": \"%s\": \"%s\" is not a column of the table",
                                name, ses_quoted_of(column, strlen(column)).s);
        }
    }
    return true;
}

/* ---- selections of the command line ---- */

/* Item i of a list with ',' between; false past the end. */
static bool item_of(const char *list, size_t i, ses_string *out)
{
    for (; i && list; i--) {
        list = strchr(list, ',');
        if (list) list++;
    }
    if (!list) return false;
    *out = ses_trim((ses_string){ list, strcspn(list, ",") });
    return true;
}

static bool is_run(const ses_ablate_run *a, ses_string name)
{
    char folder[SES_ABLATE_FOLDER];
    ses_ablate_name_folder(a->name, folder);
    return ses_equal(name.p, name.n, a->name) || ses_equal(name.p, name.n, folder);
}

/* --only: names of runs, or of their folders. */
static bool select_runs(ses_ablate *s, const char *only, ses_err *e)
{
    size_t kept = 0;
    ses_string x;
    for (size_t k = 0; item_of(only, k, &x); k++) {
        bool found = false;
        for (size_t i = 0; i < s->n_runs; i++)
            found |= is_run(&s->run[i], x) || !strcmp(s->run[i].name, only);
        if (!found)
            return ses_fail(e, SES_EUSAGE, "--only: no run is named \"%s\"", ses_quoted_of(x.p, x.n).s);
    }
    for (size_t i = 0; i < s->n_runs; i++) {
        bool chosen = !strcmp(s->run[i].name, only);
        for (size_t k = 0; item_of(only, k, &x); k++) chosen |= is_run(&s->run[i], x);
        if (chosen) s->run[kept++] = s->run[i];
    }
    s->n_runs = kept;
    return true;
}

static bool select_tasks(ses_ablate *s, const char *list, ses_err *e)
{
    bool chosen[SES_ABLATE_TASKS] = { 0 };
    size_t kept = 0;
    ses_string x;
    for (size_t k = 0; item_of(list, k, &x); k++) {
        size_t i = find_task(s, x.p, x.n);
        if (i == s->n_tasks)
            return ses_fail(e, SES_EUSAGE, "--tasks: no task is named \"%s\"", ses_quoted_of(x.p, x.n).s);
        chosen[i] = true;
    }
    for (size_t i = 0; i < s->n_tasks; i++) {
        if (!chosen[i]) continue;
        s->task[kept] = s->task[i];
        s->averages[kept++] = s->averages[i];
    }
    s->n_tasks = kept;
    return true;
}

static bool select_parts(ses_ablate *s, ses_err *e)
{
    const ses_ablate_args *a = s->a;
    if (a->only && !select_runs(s, a->only, e)) return false;
    if (a->tasks && !select_tasks(s, a->tasks, e)) return false;
    if (a->seeds) s->n_seeds = (size_t)a->seeds;
    for (size_t i = 0; a->seeds && i < s->n_seeds; i++) s->seed[i] = (int64_t)i + 1;
    for (size_t i = 0; i < s->n_tasks; i++) s->n_averaged += s->averages[i];
    return true;
}

/* --set KEY=VALUE as an object: "tune." begins options of fine-tuning, others are of pretraining. Several
 * values of one key are an array. */
static ses_json_doc *read_settings(const ses_opt_list *set, bool tune, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    for (size_t i = 0; i < set->n; i++) {
        size_t key = strcspn(set->item[i], "="), skipped = tune ? 5 : 0;
        bool again = false, chosen = !strncmp(set->item[i], "tune.", 5) == tune;
        for (size_t k = 0; k < i; k++) again |= !strncmp(set->item[k], set->item[i], key + 1);
        if (!chosen || again) continue;
        ses_json_put_keyn(w, set->item[i] + skipped, key - skipped);
        ses_json_begin_array(w);
        for (size_t k = i; k < set->n; k++)
            if (!strncmp(set->item[k], set->item[i], key + 1)) ses_json_put_string(w, set->item[k] + key + 1);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

static bool read_all_settings(ses_ablate *s, ses_err *e)
{
    const ses_opt_list *set = &s->a->set;
    for (size_t i = 0; i < set->n; i++)
        if (!strchr(set->item[i], '=') || set->item[i][0] == '=' || !strncmp(set->item[i], "tune.=", 6))
            return ses_fail(e, SES_EUSAGE, "--set %s: expected KEY=VALUE",
                            ses_quoted_of(set->item[i], strlen(set->item[i])).s);
    s->set = read_settings(set, false, e);
    s->tune_set = s->set ? read_settings(set, true, e) : NULL;
    return s->tune_set != NULL;
}

/* ---- the whole recipe ---- */

static const char *const known[] = { "common", "grid",           "runs", "scores",    "tasks",  "tune",
                                     "seeds",  "pretrain-seeds", "mean", "published", "source", "title" };

static bool check_keys(const ses_json *root, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(root); i++) {
        const char *key = ses_json_key(root, i, NULL);
        ses_suggestion near = { .word = key };
        bool found = false;
        for (size_t k = 0; k < SES_LEN(known); k++) {
            found |= !strcmp(known[k], key);
            ses_suggest_offer(&near, known[k], strlen(known[k]));
        }
        if (found) continue;
        ses_fail(e, SES_EFORMAT,
                 "unknown key \"%s\"; expected common, runs, grid, scores, tasks, tune, seeds, "
                 "pretrain-seeds, mean, published, source or title",
                 ses_quoted_of(key, strlen(key)).s);
        return ses_suggest_add(&near, "", e);
    }
    return true;
}

static bool read_texts(ses_ablate *s, const ses_json *root, ses_err *e)
{
    const ses_json *title = ses_json_get(root, "title"), *source = ses_json_get(root, "source");
    s->title = ses_json_string(title, NULL);
    s->source = ses_json_string(source, NULL);
    if (title && !s->title) return ses_json_wrong_type("title", title, "a string", e);
    return !source || s->source || ses_json_wrong_type("source", source, "a string", e);
}

static bool read_all(ses_ablate *s, const ses_json *root, ses_err *e)
{
    const ses_json *runs = ses_json_get(root, "runs"), *seeds = ses_json_get(root, "seeds"),
                   *pretrain_seeds = ses_json_get(root, "pretrain-seeds");
    s->common = ses_json_get(root, "common");
    s->grid = ses_json_get(root, "grid");
    s->scores = ses_json_get(root, "scores");
    s->tune = ses_json_get(root, "tune");
    s->published = ses_json_get(root, "published");
    s->n_seeds = DEFAULT_SEEDS;
    for (int64_t i = 0; i < DEFAULT_SEEDS; i++) s->seed[i] = i + 1;
    return check_keys(root, e) && read_texts(s, root, e) && is_object(s->common, "\"common\"", e) &&
           is_object(s->grid, "\"grid\"", e) && is_object(runs, "\"runs\"", e) &&
           is_object(s->tune, "\"tune\"", e) && is_object(s->published, "\"published\"", e) &&
           (!seeds || read_seeds(seeds, "seeds", s->seed, &s->n_seeds, e)) &&
           (!pretrain_seeds ||
            read_seeds(pretrain_seeds, "pretrain-seeds", s->pretrain_seed, &s->n_pretrain_seeds, e)) &&
           read_runs(s, runs, e) && read_tasks(s, ses_json_get(root, "tasks"), e) &&
           check_tasks_of_runs(s, e) && check_scores(s, e) && read_mean(s, ses_json_get(root, "mean"), e) &&
           check_published(s, e);
}

bool ses_ablate_read(ses_ablate *s, ses_err *e)
{
    if (!read_all_settings(s, e)) return false;
    s->recipe = ses_json_load_object(s->path, FILE_MAX, e);
    return s->recipe && (read_all(s, ses_json_root(s->recipe), e) || ses_wrap(e, "%s", s->path)) &&
           select_parts(s, e);
}
