/* Reads records of training runs. */
#include "run_record.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "sesame/metric.h"
#include "train/train_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 1 << 28, MAX_SERIES = 1000 };

void ses_run_records_free(ses_run_records *l)
{
    for (size_t i = 0; i < l->n; i++) {
        ses_run_record *r = &l->item[i];
        for (size_t k = 0; k < r->n_series; k++) {
            ses_free(r->series[k].step);
            ses_free(r->series[k].value);
        }
        ses_free(r->series);
        ses_free(r->dir);
        ses_free(r->name);
        ses_json_free(r->run);
        ses_json_free(r->results);
        ses_json_free(r->errors);
    }
    ses_free(l->item);
    *l = (ses_run_records){ 0 };
}

/* ---- curves ---- */

static ses_series *get_series(ses_run_record *r, const char *name, ses_err *e)
{
    for (size_t i = 0; i < r->n_series; i++)
        if (!strcmp(r->series[i].name, name)) return &r->series[i];
    if (!ses_array_reserve(&r->series, &r->cap, r->n_series + 1, sizeof *r->series, e)) return NULL;
    ses_series *s = &r->series[r->n_series++];
    *s = (ses_series){ 0 };
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

/* A resumed run repeats steps: the later values replace the earlier ones. */
static bool add_point(ses_series *s, double step, double value, ses_err *e)
{
    while (s->n && s->step[s->n - 1] >= step) s->n--;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        double *steps = ses_realloc_array(s->step, cap, sizeof *steps, e);
        if (steps) s->step = steps;
        double *values = steps ? ses_realloc_array(s->value, cap, sizeof *values, e) : NULL;
        if (!values) return false;
        s->value = values;
        s->cap = cap;
    }
    s->step[s->n] = step;
    s->value[s->n++] = value;
    return true;
}

/* Adds all numbers of a log entry except step and epoch. */
static bool add_entry(ses_run_record *r, const ses_json *entry, ses_err *e)
{
    double step, x;
    if (!ses_json_real(ses_json_get(entry, "step"), &step)) return true;
    for (size_t i = 0; i < ses_json_len(entry); i++) {
        const char *key = ses_json_key(entry, i, NULL);
        if (!strcmp(key, "step") || !strcmp(key, "epoch") || strlen(key) >= sizeof r->metric) continue;
        if (!ses_json_real(ses_json_at(entry, i), &x) || r->n_series >= MAX_SERIES) continue;
        ses_series *s = get_series(r, key, e);
        if (!s || !add_point(s, step, x, e)) return false;
    }
    return true;
}

/* Lines that are not JSON, such as the last one of a killed process, are skipped. */
static bool read_log(ses_run_record *r, const char *path, ses_err *e)
{
    size_t n;
    char *text = ses_file_read(path, MAX_FILE, &n, e);
    bool ok = text != NULL;
    for (char *at = text; ok && at < text + n;) {
        size_t len = strcspn(at, "\n");
        ses_json_doc *d = ses_json_parse(at, len, NULL);
        if (d) ok = add_entry(r, ses_json_root(d), e);
        ses_json_free(d);
        at += len + 1;
    }
    ses_free(text);
    return ok;
}

static bool read_history(ses_run_record *r, const char *path, ses_err *e)
{
    ses_json_doc *d = ses_json_load_object(path, MAX_FILE, e);
    const ses_json *log = d ? ses_json_get(ses_json_root(d), "log_history") : NULL;
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < ses_json_len(log); i++) ok = add_entry(r, ses_json_at(log, i), e);
    ses_json_free(d);
    return ok;
}

const ses_series *ses_run_record_series(const ses_run_record *r, const char *name)
{
    for (size_t i = 0; i < r->n_series; i++)
        if (!strcmp(r->series[i].name, name) && r->series[i].n) return &r->series[i];
    return NULL;
}

/* ---- folders ---- */

static bool has_file(const char *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    bool exists = path && ses_path_exists(path);
    ses_free(path);
    return exists;
}

static bool is_run(const char *dir)
{
    return has_file(dir, SES_RUN_LOG) || has_file(dir, "trainer_state.json");
}

static bool load_if_present(const char *dir, const char *name, ses_json_doc **out, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    bool ok = path != NULL;
    if (ok && ses_path_exists(path)) ok = (*out = ses_json_load_object(path, MAX_FILE, e)) != NULL;
    ses_free(path);
    return ok;
}

/* The main metric in run.json; default: the first score that is not a loss. */
static void find_metric(ses_run_record *r)
{
    const char *metric = r->run ? ses_json_string(ses_json_get(ses_json_root(r->run), "metric"), NULL) : NULL;
    if (metric) {
        snprintf(r->metric, sizeof r->metric, "eval_%s", metric);
        r->lower_is_better = ses_metric_lower_is_better(metric);
        ses_json_bool(ses_json_get(ses_json_root(r->run), "lower_is_better"), &r->lower_is_better);
    }
    if (metric && ses_run_record_series(r, r->metric)) return;
    r->metric[0] = 0;
    static const char *const not_scores[] = { "eval_loss", "eval_runtime", "eval_samples_per_second",
                                              "eval_steps_per_second" };
    for (size_t i = 0; i < r->n_series && !*r->metric; i++) {
        bool is_score = strncmp(r->series[i].name, "eval_", 5) == 0;
        for (size_t k = 0; k < SES_LEN(not_scores); k++)
            is_score &= strcmp(r->series[i].name, not_scores[k]) != 0;
        if (is_score) memcpy(r->metric, r->series[i].name, sizeof r->metric);
    }
    if (!*r->metric && ses_run_record_series(r, "eval_loss"))
        snprintf(r->metric, sizeof r->metric, "eval_loss");
    r->lower_is_better = *r->metric && ses_metric_lower_is_better(r->metric + strlen("eval_"));
}

static bool add_run(ses_run_records *l, const char *dir, const char *name, ses_err *e)
{
    if (!ses_array_reserve(&l->item, &l->cap, l->n + 1, sizeof *l->item, e)) return false;
    ses_run_record *r = &l->item[l->n++];
    *r = (ses_run_record){ 0 };
    bool log = has_file(dir, SES_RUN_LOG);
    char *path = ses_path_join(dir, log ? SES_RUN_LOG : "trainer_state.json", e);
    bool ok = path && (r->dir = ses_strdup(dir, e)) && (r->name = ses_strdup(name, e)) &&
              (log ? read_log(r, path, e) : read_history(r, path, e)) &&
              load_if_present(dir, SES_RUN_INFO, &r->run, e) &&
              load_if_present(dir, "all_results.json", &r->results, e) &&
              load_if_present(dir, SES_RUN_ERRORS, &r->errors, e);
    ses_free(path);
    if (!ok) return ses_wrap(e, "%s", dir);
    r->options = r->run ? ses_json_get(ses_json_root(r->run), "options") : NULL;
    if (ses_json_type_of(r->options) != SES_JSON_OBJECT) r->options = NULL; /* unknown format */
    r->outcome = r->results ? ses_json_root(r->results) : NULL;
    find_metric(r);
    return true;
}

bool ses_run_records_add_log(ses_run_records *l, const char *log, const char *name, ses_err *e)
{
    if (!ses_array_reserve(&l->item, &l->cap, l->n + 1, sizeof *l->item, e)) return false;
    ses_run_record *r = &l->item[l->n++];
    *r = (ses_run_record){ 0 };
    return (r->name = ses_strdup(name, e)) && read_log(r, log, e);
}

typedef struct run_names {
    ses_buf names; /* each ended by NUL */
    const char *dir;
    size_t n;
} run_names;

static bool add_if_run(void *ctx, const char *name)
{
    run_names *l = ctx;
    char *path = ses_path_join(l->dir, name, NULL);
    if (path && name[0] != '.' && ses_path_is_dir(path) && is_run(path) &&
        strncmp(name, "checkpoint-", 11) != 0)
        l->n += ses_buf_append(&l->names, name, strlen(name) + 1);
    ses_free(path);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_subfolders(ses_run_records *l, const char *dir, ses_err *e)
{
    run_names found = { .dir = dir };
    bool ok = ses_dir_each(dir, add_if_run, &found, e) && ses_buf_ok(&found.names, e);
    const char **name = ok ? ses_alloc_array(found.n + 1, sizeof *name, e) : NULL;
    ok = name != NULL;
    size_t n = 0;
    for (size_t at = 0; ok && at < found.names.len; at += strlen(found.names.data + at) + 1)
        name[n++] = found.names.data + at;
    if (n) qsort(name, n, sizeof *name, by_name);
    for (size_t i = 0; ok && i < n; i++) {
        char *path = ses_path_join(dir, name[i], e);
        ok = path && add_run(l, path, name[i], e);
        ses_free(path);
    }
    if (ok && !n)
        ok = ses_fail(
            e, SES_EFORMAT,
            "%s: not a training run: found neither %s nor trainer_state.json, also not in its subfolders",
            dir, SES_RUN_LOG);
    ses_free(name);
    ses_buf_free(&found.names);
    return ok;
}

bool ses_run_records_add(ses_run_records *l, const char *path, ses_err *e)
{
    if (!ses_dir_check(path, e)) return false;
    char *trimmed = ses_strdup(path, e);
    if (!trimmed) return false;
    ses_path_trim(trimmed);
    bool ok =
        is_run(trimmed) ? add_run(l, trimmed, ses_path_basename(trimmed), e) : add_subfolders(l, trimmed, e);
    ses_free(trimmed);
    return ok;
}

/* Replaces duplicate names by paths. */
static bool make_names_unique(ses_run_records *l, ses_err *e)
{
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < i; k++) {
            if (strcmp(l->item[i].name, l->item[k].name)) continue;
            for (size_t x = 0; x < 2; x++) {
                ses_run_record *r = &l->item[x ? i : k];
                ses_free(r->name);
                if (!(r->name = ses_strdup(r->dir, e))) return false;
            }
        }
    return true;
}

bool ses_run_records_open(ses_run_records *l, char *const *paths, size_t n, ses_err *e)
{
    *l = (ses_run_records){ 0 };
    for (size_t i = 0; i < n; i++) {
        if (n > 1 && ses_path_exists(paths[i]) && !ses_path_is_dir(paths[i]))
            continue; /* a file in the folder of a search */
        if (!ses_run_records_add(l, paths[i], e)) return false;
    }
    return l->n ? make_names_unique(l, e) : ses_fail(e, SES_EFORMAT, "expected folders of training runs");
}

/* ---- values ---- */

double ses_run_record_number(const ses_run_record *r, const char *key)
{
    double x = NAN;
    return ses_json_real(ses_json_get(r->outcome, key), &x) ? x : NAN;
}

double ses_run_record_final_score(const ses_run_record *r)
{
    const ses_series *s = ses_run_record_series(r, r->metric);
    double x = ses_run_record_number(r, r->metric);
    return isnan(x) && s ? s->value[s->n - 1] : x;
}

double ses_run_record_best_score(const ses_run_record *r, double *step)
{
    const ses_series *s = ses_run_record_series(r, r->metric);
    double best = NAN;
    for (size_t i = 0; s && i < s->n; i++)
        if (isnan(best) || (r->lower_is_better ? s->value[i] < best : s->value[i] > best)) {
            best = s->value[i];
            *step = s->step[i];
        }
    return best;
}

void ses_run_record_sparkline(const ses_run_record *r, const char *name, const ses_term *t,
                              char buf[SES_BAR_SIZE])
{
    const ses_series *s = ses_run_record_series(r, name);
    ses_sparkline spark = { 0 };
    for (size_t i = 0; s && i < s->n; i++) ses_sparkline_add(&spark, s->value[i]);
    ses_sparkline_text(&spark, t, buf);
}

/* ---- ranks ---- */

/* Index of the first run with the metric of run i. */
static size_t metric_group(const ses_run_records *l, size_t i)
{
    size_t k = 0;
    while (strcmp(l->item[k].metric, l->item[i].metric)) k++;
    return k;
}

/* The sort key of a run. */
typedef struct ranking {
    size_t group, at; /* at: index before sorting */
    double score;     /* higher is better; NaN: none */
} ranking;

static int by_rank(const void *a, const void *b)
{
    const ranking *x = a, *y = b;
    int none = isnan(x->score) - isnan(y->score);
    if (none) return none;
    if (!isnan(x->score) && x->group != y->group) return x->group < y->group ? -1 : 1;
    if (!isnan(x->score) && x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

bool ses_run_records_rank(ses_run_records *l, ses_err *e)
{
    ranking *key = ses_alloc_array(l->n, sizeof *key, e);
    ses_run_record *sorted = key ? ses_alloc_array(l->n, sizeof *sorted, e) : NULL;
    for (size_t i = 0; sorted && i < l->n; i++) {
        double score = ses_run_record_final_score(&l->item[i]);
        key[i] = (ranking){ metric_group(l, i), i, l->item[i].lower_is_better ? -score : score };
    }
    if (sorted) qsort(key, l->n, sizeof *key, by_rank);
    for (size_t i = 0, first = 0; sorted && i < l->n; i++) {
        if (i && key[i].group != key[first].group) first = i;
        sorted[i] = l->item[key[i].at];
        bool tied = i > first && key[i].score == key[i - 1].score;
        sorted[i].rank = isnan(key[i].score) ? 0 : tied ? sorted[i - 1].rank : i - first + 1;
    }
    if (sorted) memcpy(l->item, sorted, l->n * sizeof *sorted);
    ses_free(key);
    ses_free(sorted);
    return sorted != NULL;
}

/* Options about output and logging, not about training. */
static const char *const output_options[] = { "output", "log",  "tensorboard", "resume", "overwrite",
                                              "json",   "grid", "seeds",       NULL };

bool ses_run_records_differ(const ses_run_records *l, const char *option)
{
    char first[200], x[200];
    bool has_first = false;
    for (size_t i = 0; output_options[i]; i++)
        if (!strcmp(output_options[i], option)) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (!l->item[i].options) continue;
        const ses_json *v = ses_json_get(l->item[i].options, option);
        ses_json_value_text(x, sizeof x, v);
        if (has_first && strcmp(first, x)) return true;
        has_first = true;
        memcpy(first, x, sizeof first);
    }
    return false;
}

const char *ses_run_records_setting(const ses_run_records *l, size_t i)
{
    for (size_t r = 0; r < l->n; r++) {
        const ses_json *o = l->item[r].options;
        if (!o) continue;
        for (size_t k = 0; k < ses_json_len(o); k++) {
            const char *key = ses_json_key(o, k, NULL);
            if (ses_run_records_differ(l, key) && i-- == 0) return key;
        }
        return NULL;
    }
    return NULL;
}
