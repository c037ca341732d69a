/* The report of probes: a table, curves by layer, tasks by layers, JSON. */
#include "base/alloc.h"
#include "probe_nets.h"
#include "probe_run.h"
#include "probe_setup.h"

#include "base/arena.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The score in tables: micro-F1 of edge probes, else accuracy. */
static double score_of(const ses_probe_scores *s) { return isnan(s->f1) ? s->accuracy : s->f1; }

/* ---- JSON ---- */

static void put_scores(ses_json_writer *w, const ses_probe_scores *s)
{
    bool f1 = !isnan(s->f1);
    ses_json_member_real(w, "accuracy", s->accuracy);
    ses_json_member_real(w, "low", s->low);
    ses_json_member_real(w, "high", s->high);
    if (f1) ses_json_member_real(w, "f1", s->f1);
    ses_json_member_real(w, f1 ? "dev_f1" : "dev_accuracy", s->dev);
    if (!isnan(s->c)) ses_json_member_real(w, "C", s->c);
    if (isnan(s->bits)) return;
    ses_json_member_real(w, "codelength", s->bits);
    if (isfinite(s->plain_bits)) ses_json_member_real(w, "codelength_unsmoothed", s->plain_bits);
    ses_json_member_int(w, "labels_new_after_prefix", (int64_t)s->lacking);
    ses_json_member_real(w, "compression", s->compression);
}

static void put_control(ses_json_writer *w, const ses_probe_result *x)
{
    if (!x->has_control) return;
    ses_json_member_real(w, "control", score_of(&x->control));
    ses_json_member_real(w, "selectivity", score_of(&x->task) - score_of(&x->control));
}

static void put_vectors(ses_json_writer *w, const ses_probe_result *x)
{
    ses_json_member_object(w, "static_vectors");
    put_scores(w, &x->task);
    put_control(w, x);
    ses_json_end_object(w);
}

static void put_layer(ses_json_writer *w, const ses_probe_args *a, const ses_probe_results *r, size_t task,
                      size_t l)
{
    const ses_probe_result *x = &r->trained[task * r->n_layers + l],
                           *random = &r->random[task * r->n_layers + l];
    ses_json_begin_object(w);
    ses_json_member_int(w, "layer", r->layers[l]);
    if (!l && r->added_0) ses_json_member_bool(w, "baseline", true);
    put_scores(w, &x->task);
    if (a->classify.mix) ses_json_member_real(w, "weight", r->weight[task * r->n_layers + l]);
    put_control(w, x);
    if (random->done) {
        ses_json_member_object(w, "random_weights");
        put_scores(w, &random->task);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}

/* Centre of gravity and expected layer of a mix. score [n_layers]: work memory */
static void mix_summary(const ses_probe_results *r, size_t t, double *score, double *gravity,
                        double *expected)
{
    for (size_t l = 0; l < r->n_layers; l++) score[l] = score_of(&r->trained[t * r->n_layers + l].task);
    *gravity = ses_centre_of_gravity(r->layers, r->weight + t * r->n_layers, r->n_layers);
    *expected = ses_expected_layer(r->layers, score, r->n_layers);
}

static void put_task(ses_json_writer *w, const ses_probe_args *a, const ses_probe_results *r, size_t t,
                     double *memory)
{
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
    if (r->vectors[t].done) put_vectors(w, &r->vectors[t]);
    if (a->classify.mdl) ses_json_member_string(w, "codelength_smoothing", "(n p + 1) / (n + K)");
    if (a->classify.mix) {
        double gravity, expected;
        mix_summary(r, t, memory, &gravity, &expected);
        ses_json_member_real(w, "centre_of_gravity", gravity);
        ses_json_member_real(w, "expected_layer", expected);
    }
    ses_json_member_int(w, "best_layer", r->layers[ses_probe_best_layer(r, t)]);
    ses_json_member_array(w, "layers");
    for (size_t l = 0; l < r->n_layers; l++) put_layer(w, a, r, t, l);
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_json(ses_json_writer *w, const ses_probe_args *a, const ses_probe_results *r, double *memory)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "kind", r->data->kind);
    ses_json_member_array(w, "tasks");
    for (size_t t = 0; t < r->data->n_tasks; t++) put_task(w, a, r, t, memory);
    ses_json_end_array(w);
    if (r->data->n_dropped) {
        ses_json_member_array(w, "tasks_left_out");
        for (size_t t = 0; t < r->data->n_dropped; t++) ses_json_put_string(w, r->data->dropped[t]);
        ses_json_end_array(w);
    }
    if (r->data->test_in_train)
        ses_json_member_int(w, "test_texts_in_train", (int64_t)r->data->test_in_train);
    if (r->data->left_out) ses_json_member_int(w, "sentences_left_out", (int64_t)r->data->left_out);
    if (r->windowed) ses_json_member_int(w, "texts_in_windows", (int64_t)r->windowed);
    if (a->classify.vectors) {
        ses_json_member_int(w, "words", (int64_t)r->words);
        ses_json_member_int(w, "words_without_vector", (int64_t)r->unknown);
    }
    ses_json_end_object(w);
}

/* ---- figures ---- */

static void percent(ses_figure *f, bool present, double x)
{
    if (present)
        ses_figure_cell(f, "%.1f", 100 * x);
    else
        ses_figure_cell(f, "%s", "");
}

static void draw_scores(ses_figure *f, const ses_probe_args *a, const ses_probe_result *x,
                        const ses_probe_result *random, double weight)
{
    percent(f, true, score_of(&x->task));
    if (a->classify.edge)
        percent(f, true, x->task.accuracy);
    else
        ses_figure_cell(f, "%.1f-%.1f", 100 * x->task.low, 100 * x->task.high);
    percent(f, x->has_control, score_of(&x->control));
    percent(f, x->has_control, score_of(&x->task) - score_of(&x->control));
    percent(f, random->done, score_of(&random->task));
    if (a->classify.mix) ses_figure_cell(f, "%.3f", weight);
    if (!a->classify.mdl) return;
    ses_figure_cell(f, "%.1f", x->task.bits / 1000);
    ses_figure_cell(f, "%.1f", x->task.plain_bits / 1000);
    ses_figure_cell(f, "%.2f", x->task.compression);
}

static void draw_row(ses_figure *f, const ses_probe_args *a, const ses_probe_results *r, size_t t, size_t l)
{
    const ses_probe_result *x = &r->trained[t * r->n_layers + l], *random = &r->random[t * r->n_layers + l];
    ses_figure_cell(f, "%lld%s", (long long)r->layers[l], l == ses_probe_best_layer(r, t) ? "*" : "");
    draw_scores(f, a, x, random, r->weight[t * r->n_layers + l]);
}

static void draw_table(ses_report *report, const ses_probe_args *a, const ses_probe_results *r, size_t t)
{
    const ses_probe_task *task = &r->data->task[t];
    const ses_probe_baselines *b = &r->base[t];
    char title[160], columns[160];
    snprintf(title, sizeof title, "%.60s: %s in %%, %zu classes, %zu training and %zu test examples",
             task->name, a->classify.edge ? "micro-F1" : "accuracy", task->classes, b->train, b->test);
    snprintf(columns, sizeof columns, "%s|%s|>control|>selectivity|>random%s%s",
             a->classify.mix ? "layers up to" : "layer",
             a->classify.edge ? ">micro-F1|>accuracy" : ">accuracy|interval",
             a->classify.mix ? "|>weight" : "", a->classify.mdl ? "|>kbits|>unsmoothed|>compression" : "");
    ses_figure *f = ses_report_table(report, title, columns);
    for (size_t l = 0; l < r->n_layers; l++) draw_row(f, a, r, t, l);
    if (r->vectors[t].done) {
        ses_figure_cell(f, "%s", "static vectors");
        draw_scores(f, a, &r->vectors[t], &(ses_probe_result){ 0 }, 0);
    }
    const double base[] = { b->majority, b->majority_by_word };
    static const char *const name[] = { "majority", "majority by word" };
    int empty = 4 + a->classify.mix + 3 * a->classify.mdl;
    for (size_t i = 0; i < SES_LEN(base); i++) {
        ses_figure_cell(f, "%s", name[i]);
        percent(f, true, base[i]);
        for (int k = 0; k < empty; k++) ses_figure_cell(f, "%s", "");
    }
    if (b->unseen)
        ses_report_note(report,
                        "%s: %zu of %zu test labels do not occur in the training data; they count as wrong.",
                        task->name, b->unseen, b->test);
}

static void draw_curves(ses_report *report, const ses_probe_args *a, const ses_probe_results *r, size_t t,
                        double *memory)
{
    size_t n = r->n_layers;
    double *x = memory, *y = x + n, *low = y + n, *high = low + n, *control = high + n, *random = control + n,
           *majority = random + n, *vectors = majority + n;
    bool has_control = false, edge = a->classify.edge;
    size_t randoms = 0;
    for (size_t l = 0; l < n; l++) {
        const ses_probe_result *p = &r->trained[t * n + l], *q = &r->random[t * n + l];
        x[l] = (double)r->layers[l];
        y[l] = 100 * score_of(&p->task), low[l] = 100 * p->task.low, high[l] = 100 * p->task.high;
        control[l] = p->has_control ? 100 * score_of(&p->control) : NAN;
        random[l] = q->done ? 100 * score_of(&q->task) : NAN;
        majority[l] = 100 * r->base[t].majority_by_word;
        vectors[l] = 100 * score_of(&r->vectors[t].task);
        has_control |= p->has_control, randoms += q->done;
    }
    char title[96];
    snprintf(title, sizeof title, "%.60s by layer", r->data->task[t].name);
    ses_figure *f = ses_report_lines(report, title, a->classify.mix ? "layers up to" : "layer",
                                     edge ? "micro-F1 in %" : "accuracy in %");
    ses_figure_line(
        f, &(ses_figure_series){ "probe", false, (int64_t)n, x, y, edge ? NULL : low, edge ? NULL : high });
    if (has_control)
        ses_figure_line(f, &(ses_figure_series){ "control", true, (int64_t)n, x, control, NULL, NULL });
    if (randoms)
        ses_figure_line(f,
                        &(ses_figure_series){ "random weights", false, (int64_t)n, x, random, NULL, NULL });
    if (r->vectors[t].done)
        ses_figure_line(f,
                        &(ses_figure_series){ "static vectors", true, (int64_t)n, x, vectors, NULL, NULL });
    ses_figure_line(f, &(ses_figure_series){ "majority by word", true, (int64_t)n, x, majority, NULL, NULL });
}

static void draw_heatmap(ses_report *report, const ses_probe_args *a, const ses_probe_results *r,
                         ses_arena *mem, ses_err *e)
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
            value[t * n + l] = (float)score_of(&r->trained[t * n + l].task);
            snprintf(text, sizeof text, "%.1f", 100 * score_of(&r->trained[t * n + l].task));
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
    ses_report_heatmap(report, a->classify.edge ? "Micro-F1 by task and layer" : "Accuracy by task and layer",
                       &m);
}

static void put_notes(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_results *r,
                      double *memory)
{
    double gravity, expected;
    for (size_t t = 0; a->classify.mix && t < r->data->n_tasks; t++) {
        mix_summary(r, t, memory, &gravity, &expected);
        ses_report_note(c->report, "%s: centre of gravity %.2f, expected layer %.2f.", r->data->task[t].name,
                        gravity, expected);
    }
    ses_report_note(c->report, "Layer 0 is the embeddings%s; * has the best %s on development data.%s%s",
                    r->added_0 ? ", a baseline" : "", a->classify.edge ? "micro-F1" : "accuracy",
                    a->classify.edge ? "" : " Intervals are 95 % Wilson intervals.",
                    a->classify.no_control ? ""
                    : a->classify.edge     ? " Control: each word has a random label; selectivity: micro-F1 "
                                             "minus that of the control task."
                                           : " Control: each word has a random label; selectivity: accuracy "
                                             "minus control accuracy.");
    if (a->classify.edge || a->classify.mix)
        ses_report_note(c->report, "At most %lld training, %d development and %d test examples are used.",
                        (long long)(a->classify.max_train ? a->classify.max_train : SES_PROBE_NETS_TRAIN),
                        (int)SES_PROBE_NETS_EVAL, (int)SES_PROBE_NETS_EVAL);
    if (a->classify.mdl)
        ses_report_note(
            c->report,
            "Codelength: after n training examples of K labels, a label with probability p costs "
            "-log2((n p + 1) / (n + K)) bits; unsmoothed: -log2 p, but for labels that the n examples lack.");
    if (a->classify.vectors)
        ses_report_note(c->report,
                        "Static vectors: %zu of %zu words of the texts have a vector in %s; the others are "
                        "zeros, or missing in the mean.",
                        r->words - r->unknown, r->words, a->classify.vectors);
    ses_probe_note_windows(c, r->windowed);
}

void ses_probe_report(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_results *r)
{
    ses_arena mem = { 0 };
    double *memory = ses_arena_array(&mem, 8 * r->n_layers, sizeof *memory, NULL);
    if (memory) {
        put_json(ses_report_json(c->report), a, r, memory);
        for (size_t t = 0; t < r->data->n_tasks; t++) {
            draw_table(c->report, a, r, t);
            if (r->n_layers > 1) draw_curves(c->report, a, r, t, memory);
        }
        if (r->data->n_tasks > 1 && r->n_layers > 1) draw_heatmap(c->report, a, r, &mem, NULL);
        put_notes(c, a, r, memory);
    }
    ses_arena_free(&mem);
}
