/* Columns, cells and costs of a study's table. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ses_ablate_entry *ses_ablate_entry_at(const ses_ablate *s, size_t run, size_t column)
{
    return &s->entry[run * s->n_columns + column];
}

bool ses_ablate_has_column(const ses_ablate *s, size_t run, size_t column)
{
    const ses_ablate_column *c = &s->column[column];
    bool all = true;
    for (size_t i = 0; i < s->n_tasks; i++)
        if (c->kind == SES_COLUMN_MEAN ? s->averages[i] : c->kind == SES_COLUMN_TASK && c->task == i)
            all &= ses_ablate_has_task(s, run, i);
    return all;
}

/* ---- columns ---- */

static void add_column(ses_ablate *s, ses_ablate_column c)
{
    for (size_t i = 0; i < s->n_columns; i++)
        if (!strcmp(s->column[i].name, c.name)) return;
    if (s->n_columns < SES_ABLATE_COLUMNS) s->column[s->n_columns++] = c;
}

static void add_score(ses_ablate *s, const char *name)
{
    bool lower = ses_ablate_lower_is_better(name);
    if (s->n_columns < SES_ABLATE_SCORES) /* limits the table's width */
        add_column(s, (ses_ablate_column){ .name = name,
                                           .kind = SES_COLUMN_SCORE,
                                           .lower_is_better = lower,
                                           .scale = lower ? 1 : 100 });
}

/* All losses and accuracies of a pretraining run. Perplexities repeat the losses, and unigram baselines are
 * equal in all runs. */
static void add_scores_of(ses_ablate *s, const ses_ablate_job *j)
{
    const ses_json *results = ses_json_get(ses_json_root(j->record), "results");
    for (size_t i = 0; i < ses_json_len(results); i++) {
        const char *key = ses_json_key(results, i, NULL);
        if (!strncmp(key, "eval_", 5) && strcmp(key, "eval_loss") != 0 && !strstr(key, "_perplexity") &&
            !strstr(key, "_by_frequency"))
            add_score(s, key + 5);
    }
}

/* "scores" of the recipe, or else without tasks the scores of the runs; then tasks and their mean. */
static void choose_columns(ses_ablate *s)
{
    for (size_t i = 0; i < ses_json_len(s->scores); i++)
        add_score(s, ses_json_string(ses_json_at(s->scores, i), NULL));
    for (size_t i = 0; !s->scores && !s->n_tasks && i < s->n_jobs; i++)
        if (s->job[i].record) add_scores_of(s, &s->job[i]);
    for (size_t i = 0; i < s->n_tasks; i++) {
        const ses_ablate_task *t = &s->task[i];
        add_column(s, (ses_ablate_column){ .name = t->name,
                                           .kind = SES_COLUMN_TASK,
                                           .task = i,
                                           .lower_is_better = t->lower_is_better,
                                           .scale = t->lower_is_better || t->in_percent ? 1 : 100 });
    }
    if (s->n_averaged > 1)
        add_column(s, (ses_ablate_column){ .name = "mean", .kind = SES_COLUMN_MEAN, .scale = 1 });
}

/* ---- cells ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ses_ablate_median(double *x, size_t n)
{
    if (!n) return NAN;
    qsort(x, n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static const ses_ablate_job *find_job(const ses_ablate *s, size_t run, size_t task, size_t pretrain_seed,
                                      size_t seed)
{
    for (size_t i = 0; i < s->n_jobs; i++) {
        const ses_ablate_job *j = &s->job[i];
        if (j->run == run && j->task == task && j->pretrain_seed == pretrain_seed && j->seed == seed)
            return j;
    }
    return NULL;
}

/* A score of a task; one without training has the same for all seeds. NaN: none. */
static double task_score(const ses_ablate *s, size_t run, size_t task, size_t p, size_t k)
{
    const ses_ablate_job *j = find_job(s, run, task, p, s->task[task].tunes ? k : 0);
    return j && j->record ? ses_ablate_score(s, j) : NAN;
}

static double scale_of(const ses_ablate *s, size_t task)
{
    for (size_t i = 0; i < s->n_columns; i++)
        if (s->column[i].kind == SES_COLUMN_TASK && s->column[i].task == task) return s->column[i].scale;
    return 1;
}

/* The mean of the chosen tasks with the same seeds, in the units of the table; NaN: one is missing. */
static double mean_score(const ses_ablate *s, size_t run, size_t p, size_t k)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_tasks; i++)
        if (s->averages[i]) sum += scale_of(s, i) * task_score(s, run, i, p, k);
    return sum / (double)s->n_averaged;
}

static double value_at(const ses_ablate *s, size_t run, const ses_ablate_column *c, size_t p, size_t k)
{
    char key[120];
    const ses_ablate_job *j;
    switch (c->kind) {
    case SES_COLUMN_TASK: return task_score(s, run, c->task, p, k);
    case SES_COLUMN_MEAN: return mean_score(s, run, p, k);
    case SES_COLUMN_SCORE:
        j = find_job(s, run, SIZE_MAX, p, 0);
        snprintf(key, sizeof key, "eval_%s", c->name);
        return j ? ses_ablate_result(j, key) : NAN;
    }
    return NAN;
}

static size_t seeds_of(const ses_ablate *s, const ses_ablate_column *c)
{
    bool tunes = false;
    if (c->kind == SES_COLUMN_TASK) tunes = s->task[c->task].tunes;
    for (size_t i = 0; c->kind == SES_COLUMN_MEAN && i < s->n_tasks; i++)
        tunes |= s->averages[i] && s->task[i].tunes;
    return tunes ? s->n_seeds : 1;
}

/* Results of one pretrained model are not independent of each other: with several of them, their means are
 * the values of the interval. */
static bool fill_cell(ses_ablate *s, size_t run, size_t column, ses_err *e)
{
    const ses_ablate_column *c = &s->column[column];
    size_t models = ses_ablate_models_of(s, run), seeds = seeds_of(s, c), n = 0;
    ses_ablate_entry *x = ses_ablate_entry_at(s, run, column);
    double *all = ses_alloc_array(models * seeds, sizeof *all, e);
    x->value = all ? ses_arena_array(&s->mem, models * seeds, sizeof *x->value, e) : NULL;
    if (!x->value) return ses_free(all), false;
    for (size_t p = 0; p < models; p++) {
        double sum = 0;
        size_t found = 0;
        for (size_t k = 0; k < seeds; k++) {
            double v = value_at(s, run, c, p, k);
            if (isnan(v)) continue;
            all[n++] = v;
            sum += v;
            found++;
            if (models == 1) x->value[x->n++] = v;
        }
        if (models > 1 && found) x->value[x->n++] = sum / (double)found;
    }
    x->interval = ses_mean_interval_of(x->value, x->n, s->a->confidence / 100);
    x->median = ses_ablate_median(all, n);
    x->results = n;
    ses_free(all);
    x->published = NAN;
    ses_json_real(ses_json_get(ses_json_get(s->published, s->run[run].name), c->name), &x->published);
    return true;
}

/* ---- costs ---- */

static double first_of(const ses_ablate_job *j, const char *key, const char *other, double factor)
{
    double x = ses_ablate_result(j, key);
    return isnan(x) && other ? factor * ses_ablate_result(j, other) : x;
}

/* Means over the pretraining seeds. */
static void fill_costs(ses_ablate *s, size_t run)
{
    ses_ablate_costs c = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        const ses_ablate_job *j = &s->job[i];
        if (j->run != run || !j->record) continue;
        if (j->task != SIZE_MAX) {
            c.task_seconds += j->base.seconds;
            continue;
        }
        c.seconds += first_of(j, "train_runtime", "train_seconds", 1);
        c.rate += ses_ablate_result(j, "train_tokens_per_second");
        c.flops += ses_ablate_result(j, "train_flops");
        c.watt_hours += first_of(j, "train_energy_wh", "train_energy_kwh", 1000);
        c.price += ses_ablate_result(j, "train_price");
        n++;
    }
    double *each[] = { &c.seconds, &c.rate, &c.flops, &c.watt_hours, &c.price };
    for (size_t i = 0; i < SES_LEN(each); i++) *each[i] = n ? *each[i] / (double)n : NAN;
    s->costs[run] = c;
}

bool ses_ablate_fill(ses_ablate *s, ses_err *e)
{
    choose_columns(s);
    s->entry = ses_arena_array(&s->mem, s->n_runs * s->n_columns + 1, sizeof *s->entry, e);
    s->costs = s->entry ? ses_arena_array(&s->mem, s->n_runs, sizeof *s->costs, e) : NULL;
    if (!s->costs) return false;
    for (size_t i = 0; i < s->n_runs; i++) {
        for (size_t k = 0; k < s->n_columns; k++)
            if (!fill_cell(s, i, k, e)) return false;
        fill_costs(s, i);
    }
    return true;
}
