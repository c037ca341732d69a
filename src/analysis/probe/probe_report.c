/* The report of probes: a table, curves by layer, tasks by layers, JSON. */
#include "base/alloc.h"
#include "probe_run.h"

#include "base/arena.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void put_scores(ses_json_writer *w, const ses_probe_scores *s)
{
    ses_json_member_real(w, "accuracy", s->accuracy);
    ses_json_member_real(w, "low", s->low);
    ses_json_member_real(w, "high", s->high);
    ses_json_member_real(w, "dev_accuracy", s->dev);
    if (!isnan(s->c)) ses_json_member_real(w, "C", s->c);
    if (isnan(s->bits)) return;
    ses_json_member_real(w, "codelength", s->bits);
    ses_json_member_real(w, "compression", s->compression);
}

static void put_layer(ses_json_writer *w, const ses_probe_results *r, size_t task, size_t l)
{
    const ses_probe_result *x = &r->trained[task * r->n_layers + l],
                           *random = &r->random[task * r->n_layers + l];
    ses_json_begin_object(w);
    ses_json_member_int(w, "layer", r->layers[l]);
    put_scores(w, &x->task);
    if (x->has_control) {
        ses_json_member_real(w, "control", x->control.accuracy);
        ses_json_member_real(w, "selectivity", x->task.accuracy - x->control.accuracy);
    }
    if (random->done) {
        ses_json_member_object(w, "random_weights");
        put_scores(w, &random->task);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}

static void put_json(ses_json_writer *w, const ses_probe_results *r)
{
    ses_json_begin_object(w);
    ses_json_member_array(w, "tasks");
    for (size_t t = 0; t < r->data->n_tasks; t++) {
        const ses_probe_task *task = &r->data->task[t];
        const ses_probe_baselines *b = &r->base[t];
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", task->name);
        ses_json_member_int(w, "classes", (int64_t)task->classes);
        ses_json_member_int(w, "train", (int64_t)b->train);
        ses_json_member_int(w, "test", (int64_t)b->test);
        ses_json_member_int(w, "unseen_labels", (int64_t)b->unseen);
        ses_json_member_real(w, "majority", b->majority);
        ses_json_member_real(w, "majority_by_word", b->majority_by_word);
        ses_json_member_int(w, "best_layer", r->layers[ses_probe_best_layer(r, t)]);
        ses_json_member_array(w, "layers");
        for (size_t l = 0; l < r->n_layers; l++) put_layer(w, r, t, l);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void percent(ses_figure *f, bool present, double x)
{
    if (present)
        ses_figure_cell(f, "%.1f", 100 * x);
    else
        ses_figure_cell(f, "%s", "");
}

static void draw_table(ses_report *report, const ses_probe_args *a, const ses_probe_results *r, size_t t)
{
    const ses_probe_task *task = &r->data->task[t];
    const ses_probe_baselines *b = &r->base[t];
    size_t best = ses_probe_best_layer(r, t);
    char title[160];
    snprintf(title, sizeof title, "%.60s: accuracy in %%, %zu classes, %zu training and %zu test examples",
             task->name, task->classes, b->train, b->test);
    ses_figure *f =
        ses_report_table(report, title,
                         a->classify.mdl ? "layer|>accuracy|interval|>control|>selectivity|>random|>kbits|"
                                           ">compression"
                                         : "layer|>accuracy|interval|>control|>selectivity|>random");
    for (size_t l = 0; l < r->n_layers; l++) {
        const ses_probe_result *x = &r->trained[t * r->n_layers + l],
                               *random = &r->random[t * r->n_layers + l];
        ses_figure_cell(f, "%lld%s", (long long)r->layers[l], l == best ? "*" : "");
        percent(f, true, x->task.accuracy);
        ses_figure_cell(f, "%.1f-%.1f", 100 * x->task.low, 100 * x->task.high);
        percent(f, x->has_control, x->control.accuracy);
        percent(f, x->has_control, x->task.accuracy - x->control.accuracy);
        percent(f, random->done, random->task.accuracy);
        if (!a->classify.mdl) continue;
        ses_figure_cell(f, "%.1f", x->task.bits / 1000);
        ses_figure_cell(f, "%.2f", x->task.compression);
    }
    const double base[] = { b->majority, b->majority_by_word };
    static const char *const name[] = { "majority", "majority by word" };
    for (size_t i = 0; i < SES_LEN(base); i++) {
        ses_figure_cell(f, "%s", name[i]);
        percent(f, true, base[i]);
        for (int k = 0; k < (a->classify.mdl ? 6 : 4); k++) ses_figure_cell(f, "%s", "");
    }
    if (b->unseen)
        ses_report_note(report,
                        "%s: %zu of %zu test labels do not occur in the training data; they count as wrong.",
                        task->name, b->unseen, b->test);
}

static void draw_curves(ses_report *report, const ses_probe_results *r, size_t t, double *memory)
{
    size_t n = r->n_layers;
    double *x = memory, *y = x + n, *low = y + n, *high = low + n, *control = high + n, *random = control + n,
           *majority = random + n;
    bool has_control = false, has_random = false;
    for (size_t l = 0; l < n; l++) {
        const ses_probe_result *p = &r->trained[t * n + l], *q = &r->random[t * n + l];
        x[l] = (double)r->layers[l];
        y[l] = 100 * p->task.accuracy, low[l] = 100 * p->task.low, high[l] = 100 * p->task.high;
        control[l] = p->has_control ? 100 * p->control.accuracy : NAN;
        random[l] = q->done ? 100 * q->task.accuracy : NAN;
        majority[l] = 100 * r->base[t].majority_by_word;
        has_control |= p->has_control, has_random |= q->done;
    }
    char title[96];
    snprintf(title, sizeof title, "%.60s by layer", r->data->task[t].name);
    ses_figure *f = ses_report_lines(report, title, "layer", "accuracy in %");
    ses_figure_line(f, &(ses_figure_series){ "probe", false, (int64_t)n, x, y, low, high });
    if (has_control)
        ses_figure_line(f, &(ses_figure_series){ "control", true, (int64_t)n, x, control, NULL, NULL });
    if (has_random)
        ses_figure_line(f,
                        &(ses_figure_series){ "random weights", false, (int64_t)n, x, random, NULL, NULL });
    ses_figure_line(f, &(ses_figure_series){ "majority by word", true, (int64_t)n, x, majority, NULL, NULL });
}

static void draw_heatmap(ses_report *report, const ses_probe_results *r, ses_arena *mem, ses_err *e)
{
    size_t n = r->n_layers, tasks = r->data->n_tasks;
    float *value = ses_arena_array(mem, n * tasks, sizeof *value, e);
    const char **row = ses_arena_array(mem, tasks, sizeof *row, e),
               **col = ses_arena_array(mem, n, sizeof *col, e),
               **cell = ses_arena_array(mem, n * tasks, sizeof *cell, e);
    if (!value || !row || !col || !cell) return;
    for (size_t t = 0; t < tasks; t++) {
        row[t] = r->data->task[t].name;
        for (size_t l = 0; l < n; l++) {
            char text[24];
            value[t * n + l] = (float)r->trained[t * n + l].task.accuracy;
            snprintf(text, sizeof text, "%.1f", 100 * r->trained[t * n + l].task.accuracy);
            cell[t * n + l] = ses_arena_strndup(mem, text, strlen(text), e);
        }
    }
    for (size_t l = 0; l < n; l++) {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)r->layers[l]);
        col[l] = ses_arena_strndup(mem, text, strlen(text), e);
    }
    ses_figure_matrix m = { .rows = (int64_t)tasks,
                            .cols = (int64_t)n,
                            .value = value,
                            .row_name = row,
                            .col_name = col,
                            .row_label = "task",
                            .col_label = "layer",
                            .cell = cell,
                            .scale = SES_SCALE_UNIT };
    ses_report_heatmap(report, "Accuracy by task and layer", &m);
}

void ses_probe_report(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_results *r)
{
    ses_arena mem = { 0 };
    put_json(ses_report_json(c->report), r);
    double *memory = ses_arena_array(&mem, 7 * r->n_layers, sizeof *memory, NULL);
    for (size_t t = 0; t < r->data->n_tasks; t++) {
        draw_table(c->report, a, r, t);
        if (r->n_layers > 1 && memory) draw_curves(c->report, r, t, memory);
    }
    if (r->data->n_tasks > 1 && r->n_layers > 1) draw_heatmap(c->report, r, &mem, NULL);
    ses_report_note(
        c->report,
        "Layer 0 is the embeddings; * has the best accuracy on development data. Intervals are 95 %% Wilson "
        "intervals.%s",
        a->classify.no_control
            ? ""
            : " Control: each word has a random label; selectivity: accuracy minus control accuracy.");
    ses_arena_free(&mem);
}
