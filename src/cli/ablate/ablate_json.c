/* ablate.json: settings, all results, and the comparison with published numbers. */
#include "ablate.h"
#include "ablate_compare.h"

#include "base/json/json_helpers.h"
#include "cli/ui/show_values.h"
#include "sesame/base.h"

#include <math.h>

/* ---- one run ---- */

static void put_job(const ses_ablate *s, const ses_ablate_job *j, ses_json_writer *w)
{
    static const char *const state[] = { "open", "stopped", "done", "failed" };
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    ses_json_begin_object(w);
    if (t) ses_json_member_string(w, "task", t->name);
    if (s->n_pretrain_seeds && (s->run[j->run].pretrains || s->run[j->run].from != SIZE_MAX))
        ses_json_member_int(w, "pretrain_seed", s->pretrain_seed[j->pretrain_seed]);
    if (t && t->tunes) ses_json_member_int(w, "seed", s->seed[j->seed]);
    ses_json_member_string(w, "state", state[j->base.state]);
    if (j->base.state == SES_JOB_FAILED) ses_json_member_string(w, "reason", j->base.reason);
    ses_json_member_string(w, "folder", j->dir);
    ses_json_member_array(w, "arguments");
    for (size_t i = 0; i < j->n_words; i++) ses_json_put_string(w, j->word[i]);
    ses_json_end_array(w);
    if (j->record) {
        if (t) ses_json_member_real(w, "score", ses_ablate_score(s, j));
        ses_json_member_real(w, "seconds", j->base.seconds);
        ses_json_put_key(w, "results");
        ses_json_put_value(w, ses_json_get(ses_json_root(j->record), "results"));
    }
    ses_json_end_object(w);
}

static void put_results(const ses_ablate_entry *x, ses_json_writer *w)
{
    ses_json_member_real(w, "mean", x->interval.mean);
    ses_json_member_real(w, "median", x->median);
    ses_json_member_real(w, "low", x->interval.low);
    ses_json_member_real(w, "high", x->interval.high);
    ses_json_member_real(w, "deviation", x->interval.deviation);
    ses_json_member_int(w, "results", (int64_t)x->results);
    ses_json_member_array(w, "values");
    for (size_t i = 0; i < x->n; i++) ses_json_put_real(w, x->value[i]);
    ses_json_end_array(w);
}

/* A run that does not take part in the tasks of a column may have a published number there. */
static void put_cell(const ses_ablate *s, size_t run, size_t column, ses_json_writer *w)
{
    const ses_ablate_entry *x = ses_ablate_entry_at(s, run, column);
    bool takes_part = ses_ablate_has_column(s, run, column);
    if (!takes_part && isnan(x->published)) return;
    ses_json_member_object(w, s->column[column].name);
    if (takes_part) put_results(x, w);
    if (!isnan(x->published)) ses_json_member_real(w, "published", x->published);
    ses_json_end_object(w);
}

static void put_costs(const ses_ablate_costs *c, ses_json_writer *w)
{
    const struct {
        const char *key;
        double value;
    } item[] = { { "train_runtime", c->seconds }, { "train_tokens_per_second", c->rate },
                 { "train_flops", c->flops },     { "train_energy_wh", c->watt_hours },
                 { "train_price", c->price },     { "task_seconds", c->task_seconds } };
    for (size_t i = 0; i < SES_LEN(item); i++)
        if (!isnan(item[i].value)) ses_json_member_real(w, item[i].key, item[i].value);
}

static void put_run(const ses_ablate *s, size_t run, ses_json_writer *w)
{
    const ses_ablate_run *a = &s->run[run];
    ses_json_begin_object(w);
    ses_json_member_string(w, "run", a->name);
    if (a->model) ses_json_member_string(w, "model", a->model);
    ses_json_member_object(w, "scores");
    for (size_t k = 0; k < s->n_columns; k++) put_cell(s, run, k, w);
    ses_json_end_object(w);
    put_costs(&s->costs[run], w);
    ses_json_member_array(w, "jobs");
    for (size_t i = 0; i < s->n_jobs; i++)
        if (s->job[i].run == run) put_job(s, &s->job[i], w);
    ses_json_end_array(w);
    ses_json_end_object(w);
}

/* ---- columns and published numbers ---- */

static void put_column(const ses_ablate *s, const ses_ablate_column *c, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", c->name);
    ses_json_member_string(w, "metric",
                           c->kind == SES_COLUMN_TASK   ? s->task[c->task].metric
                           : c->kind == SES_COLUMN_MEAN ? "mean of tasks"
                                                        : c->name);
    ses_json_member_bool(w, "lower_is_better", c->lower_is_better);
    ses_json_member_real(w, "scale", c->scale);
    if (c->kind == SES_COLUMN_TASK && s->task[c->task].overlap.shared)
        ses_json_member_int(w, "eval_examples_in_train", (int64_t)s->task[c->task].overlap.shared);
    ses_json_end_object(w);
}

static void put_comparison(const ses_ablate *s, const ses_ablate_comparison *c, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "column", s->column[c->column].name);
    ses_json_member_real(w, "spearman", c->spearman);
    ses_json_member_string(w, "verdict", c->verdict);
    ses_json_member_array(w, "pairs");
    for (size_t i = 0; i < c->n_pairs; i++) {
        const ses_ablate_pair *p = &c->pair[i];
        ses_json_begin_object(w);
        ses_json_member_string(w, "better", s->run[p->better].name);
        ses_json_member_string(w, "worse", s->run[p->worse].name);
        ses_json_member_real(w, "published_difference", p->published);
        ses_json_member_real(w, "difference", p->own.difference);
        ses_json_member_real(w, "low", p->own.low);
        ses_json_member_real(w, "high", p->own.high);
        ses_json_member_real(w, "p", p->own.p);
        ses_json_member_string(w, "verdict", ses_order_name(p->order));
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

void ses_ablate_put_json(ses_ablate *s, ses_json_writer *w)
{
    ses_ablate_comparison c;
    ses_json_begin_object(w);
    ses_json_member_string(w, "title", s->title);
    ses_json_member_string(w, "command", s->command);
    ses_json_member_string(w, "version", SES_VERSION);
    ses_json_put_key(w, "recipe");
    ses_json_put_value(w, ses_json_root(s->recipe));
    ses_json_member_real(w, "confidence", s->a->confidence / 100);
    ses_json_member_array(w, "columns");
    for (size_t i = 0; i < s->n_columns; i++) put_column(s, &s->column[i], w);
    ses_json_end_array(w);
    ses_json_member_array(w, "runs");
    for (size_t i = 0; i < s->n_runs; i++) put_run(s, i, w);
    ses_json_end_array(w);
    ses_json_member_array(w, "comparison");
    for (size_t i = 0; i < s->n_columns; i++)
        if (ses_ablate_compare(s, i, &c, NULL)) put_comparison(s, &c, w);
    ses_json_end_array(w);
    ses_json_end_object(w);
}

bool ses_ablate_write_json(ses_ablate *s, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) ses_ablate_put_json(s, w);
    return w && ses_json_writer_save(w, s->a->output, "ablate.json", true, e);
}

bool ses_ablate_print_json(ses_ablate *s, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_ablate_put_json(s, w);
    return w && ses_json_writer_print(w, e);
}
