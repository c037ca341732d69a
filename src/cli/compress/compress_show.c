/* Results of a compression: tables and plot on the terminal, as SVG, HTML and JSON. */
#include "compress.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/number_text.h"
#include "base/str.h"
#include "cli/ui/show_values.h"

#include <math.h>
#include <string.h>

/* Scores are shown in percent, unless they are losses; some are percentages already. */
static double scale_of(const ses_compress *z) { return z->lower_is_better || z->in_percent ? 1 : 100; }

/* ---- JSON ---- */

void ses_compress_put(const void *compress, ses_json_writer *w)
{
    const ses_compress *z = compress;
    ses_json_member_string(w, "command", z->x.command);
    ses_json_member_string(w, "metric", z->metric);
    ses_json_member_bool(w, "lower_is_better", z->lower_is_better);
    ses_json_member_string(w, "eval", z->eval);
    if (z->holds_out) ses_json_member_int(w, "held_out_examples", (int64_t)z->n_held_out);
    if (z->train) ses_json_member_int(w, "eval_examples_in_train", (int64_t)z->overlap.shared);
    ses_json_member_string(w, "by", ses_compress_measure_name(z->a->by));
    ses_json_member_real(w, "max_drop", z->a->max_drop);
    if (z->candidate[0].is_measured)
        ses_json_member_string(w, "chosen", z->candidate[z->chosen].name);
    else
        ses_json_put_key(w, "chosen"), ses_json_put_null(w);
    ses_json_member_array(w, "candidates");
    for (size_t i = 0; i < z->n; i++) ses_compress_put_candidate(z, &z->candidate[i], w);
    ses_json_end_array(w);
}

/* ---- tables ---- */

static void put_scores(const ses_compress *z, ses_report *r)
{
    char columns[200], bytes[SES_NUMBER_TEXT], time[SES_NUMBER_TEXT];
    double scale = scale_of(z);
    snprintf(columns, sizeof columns, "candidate|>%s|>+-|>loss|>one text|>speed|>size|", z->metric);
    ses_figure *t = ses_report_table(r, "Candidates", columns);
    for (size_t i = 0; i < z->n; i++) {
        const ses_candidate *x = &z->candidate[i];
        if (!x->is_measured) continue;
        ses_figure_cell(t, "%s", x->name);
        ses_figure_cell(t, "%.2f", scale * x->score);
        isnan(x->low) ? ses_figure_cell(t, "-")
                      : ses_figure_cell(t, "%.1f", 0.5 * scale * (x->high - x->low));
        i ? ses_figure_cell(t, "%.2f", x->drop) : ses_figure_cell(t, "-");
        ses_figure_cell(t, "%s", ses_elapsed_text(time, x->cost.latency));
        ses_figure_cell(t, "%.2fx", x->speed);
        ses_figure_cell(t, "%s", ses_bytes_text(bytes, (uint64_t)fmax(0, x->cost.bytes)));
        ses_figure_cell(t, "%s", x->is_chosen ? "chosen" : x->on_front ? "front" : "");
    }
}

static void put_joules(const ses_candidate *x, ses_figure *t)
{
    if (isnan(x->cost.joules))
        ses_figure_cell(t, "-");
    else
        ses_figure_cell(t, "%.3g mJ", 1e3 * x->cost.joules);
}

static bool has_energy(const ses_compress *z)
{
    for (size_t i = 0; i < z->n; i++)
        if (z->candidate[i].is_measured && !isnan(z->candidate[i].cost.joules)) return true;
    return false;
}

/* The column of energy is left out if nothing was measured, so that names of chains fit into 80 columns. */
static void put_costs(const ses_compress *z, ses_report *r)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    bool energy = has_energy(z);
    ses_figure *t =
        ses_report_table(r, "Costs",
                         energy ? "candidate|>texts/s|>in batches|>memory|>parameters|>MFLOP|>energy|>made in"
                                : "candidate|>texts/s|>in batches|>memory|>parameters|>MFLOP|>made in");
    for (size_t i = 0; i < z->n; i++) {
        const ses_candidate *x = &z->candidate[i];
        if (!x->is_measured) continue;
        ses_figure_cell(t, "%s", x->name);
        ses_figure_cell(t, "%.0f", x->cost.throughput);
        ses_figure_cell(t, "%.2fx", x->rate);
        ses_figure_cell(t, "%s", ses_bytes_text(a, (uint64_t)fmax(0, x->cost.memory)));
        isnan(x->cost.parameters)
            ? ses_figure_cell(t, "-")
            : ses_figure_cell(t, "%s", ses_grouped_text(b, (int64_t)x->cost.parameters));
        isnan(x->cost.flops) ? ses_figure_cell(t, "-") : ses_figure_cell(t, "%.3g", 1e-6 * x->cost.flops);
        if (energy) put_joules(x, t);
        x->base.seconds > 0 ? ses_figure_cell(t, "%s", ses_elapsed_text(a, x->base.seconds))
                            : ses_figure_cell(t, "-");
    }
}

/* ---- plot ---- */

typedef struct axis {
    const char *label;
    double scale;
} axis;

static axis axis_of(const ses_compress *z)
{
    switch ((ses_compress_measure)z->a->by) {
    case SES_BY_LATENCY: return (axis){ "milliseconds of one text", 1e3 };
    case SES_BY_SIZE: return (axis){ "megabytes of the files", 1e-6 };
    case SES_BY_MEMORY: return (axis){ "megabytes of memory", 1e-6 };
    case SES_BY_ENERGY: return (axis){ "millijoules of one text", 1e3 };
    }
    return (axis){ "", 1 };
}

/* The score of the original less --max-drop. */
static double least_score(const ses_compress *z)
{
    double s = z->candidate[0].score;
    return z->lower_is_better ? s * (1 + z->a->max_drop / 100) : scale_of(z) * s - z->a->max_drop;
}

static bool put_plot(const ses_compress *z, ses_report *r, ses_err *e)
{
    axis a = axis_of(z);
    char label[80];
    double *x = ses_alloc_array(2 * z->n, sizeof *x, e), *y = x ? x + z->n : NULL;
    const char **name = x ? ses_alloc_array(z->n, sizeof *name, e) : NULL;
    bool *front = name ? ses_alloc_array(z->n, sizeof *front, e) : NULL;
    ses_figure_tradeoff t = { .x = x, .y = y, .name = name, .on_front = front, .original = -1, .chosen = -1 };
    for (size_t i = 0; front && i < z->n; i++) {
        double cost = ses_compress_cost_of(z, &z->candidate[i]);
        if (!isfinite(cost) || !isfinite(z->candidate[i].score)) continue;
        x[t.n] = a.scale * cost;
        y[t.n] = (z->lower_is_better ? -1 : scale_of(z)) * z->candidate[i].score;
        name[t.n] = z->candidate[i].name;
        front[t.n] = z->candidate[i].on_front;
        if (!i) t.original = t.n;
        if (i == z->chosen) t.chosen = t.n;
        t.n++;
    }
    t.limit = z->lower_is_better ? -least_score(z) : least_score(z);
    snprintf(label, sizeof label, "%s%s%s", z->lower_is_better ? "-" : "", z->metric,
             scale_of(z) == 1 ? "" : " x 100");
    if (front && t.n) ses_report_tradeoff(r, "Score against cost", a.label, label, &t);
    bool ok = front != NULL;
    ses_free(x);
    ses_free((void *)name);
    ses_free(front);
    return ok;
}

/* ---- notes ---- */

static void put_choice(const ses_compress *z, ses_report *r)
{
    char rule[80];
    const ses_candidate *x = &z->candidate[z->chosen];
    const char *unit = z->lower_is_better ? "%" : z->a->max_drop == 1 ? "point" : "points";
    bool comparable = !isnan(ses_compress_cost_of(z, &z->candidate[0]));
    if (!comparable)
        ses_report_note(r, "Nothing was chosen by %s, which was not measured: %s/model is the original.",
                        ses_compress_measure_name(z->a->by), z->output);
    else if (!z->chosen)
        ses_report_note(r, "No candidate has less %s and loses at most %g %s: %s/model is the original.",
                        ses_compress_measure_name(z->a->by), z->a->max_drop, unit, z->output);
    else
        ses_report_note(r, "%s/model is %s: the least %s of the candidates that lose at most %g %s.",
                        z->output, x->name, ses_compress_measure_name(z->a->by), z->a->max_drop, unit);
    if (ses_compress_rule_of(x, rule, sizeof rule))
        ses_report_note(
            r, "The figures are with --exit %s, which is not part of the model: give it to every command.",
            rule);
}

/* Chains that begin with a failed candidate are counted with it. */
static void put_failure(const ses_compress *z, size_t i, ses_report *r)
{
    const ses_candidate *x = &z->candidate[i];
    size_t n = 0;
    char more[60] = "";
    if (x->is_measured || (i && z->candidate[x->parent].base.state == SES_JOB_FAILED)) return;
    for (size_t k = 1; x->base.state == SES_JOB_FAILED && k < z->n; k++) {
        size_t at = k;
        while (at && at != i) at = z->candidate[at].parent;
        n += at == i && k != i;
    }
    if (n) snprintf(more, sizeof more, " (nor %zu that start%s with it)", n, n == 1 ? "s" : "");
    ses_report_note(r, "%s has no result%s: %s.", x->name, more,
                    *x->base.reason ? x->base.reason : "not run");
}

static void put_notes(const ses_compress *z, ses_report *r)
{
    char text[400];
    put_choice(z, r);
    if (z->holds_out)
        ses_report_note(r, "Scores are on %zu example%s of %s held out from training: %s.%s", z->n_held_out,
                        z->n_held_out == 1 ? "" : "s", ses_path_name_of(z->a->train).s, z->eval,
                        z->is_new ? "" : " If the given model was trained on them, its score is too high.");
    if (*ses_row_overlap_text(&z->overlap, ses_path_name_of(z->eval).s, text, sizeof text))
        ses_report_note(r, "%s.", text);
    ses_report_note(r,
                    "+-: half the %g %% interval of the score. One text: median over texts of %s and %lld "
                    "round%s, with the tokenizer (%s). "
                    "Speed: median of original / candidate, which alternate. Front: no other candidate has "
                    "at least the score and at most the %s.",
                    z->a->tune.bootstrap.confidence, ses_path_name_of(z->eval).s, (long long)z->a->rounds,
                    z->a->rounds == 1 ? "" : "s", z->machine, ses_compress_measure_name(z->a->by));
    ses_report_note(r, "Memory: what a process needs for the model and its computation. MFLOP: of a token, "
                       "products with the weights of the layers, 2 per weight.");
    if (*z->energy_note) ses_report_note(r, "Energy: not available: %s.", z->energy_note);
    for (size_t i = 0; i < z->n; i++) put_failure(z, i, r);
}

/* The commands that made a candidate, from the first on. */
static void put_commands(const ses_compress *z, size_t i, ses_figure *t)
{
    const ses_candidate *x = &z->candidate[i];
    if (i) put_commands(z, x->parent, t);
    for (const char *at = x->commands.data; at && *at;) {
        size_t n = strcspn(at, "\n");
        ses_figure_cell(t, "%.*s", (int)n, at);
        at += n + (at[n] == '\n');
    }
}

bool ses_compress_fill(const void *compress, ses_report *r, ses_err *e)
{
    const ses_compress *z = compress;
    ses_report_set_title(r, "Compression of %s", ses_path_name_of(z->model).s);
    put_scores(z, r);
    put_costs(z, r);
    if (!put_plot(z, r, e)) return false;
    put_notes(z, r);
    return true;
}

void ses_compress_fill_page(const void *compress, ses_report *r)
{
    const ses_compress *z = compress;
    if (z->chosen)
        put_commands(z, z->chosen, ses_report_table(r, "Commands that made the chosen model", "command"));
}

static void print_commands(const ses_compress *z, size_t i)
{
    const ses_candidate *x = &z->candidate[i];
    if (i) print_commands(z, x->parent);
    if (x->commands.data) fputs(x->commands.data, stdout);
}

/* Lines to copy: a table on the terminal would shorten them. */
void ses_compress_print_commands(const ses_compress *z)
{
    const ses_term *t = &z->x.c->out;
    if (!z->chosen || z->x.json) return;
    printf("\n%sCommands that made %s%s\n\n", ses_style_on(t, SES_BOLD), z->candidate[z->chosen].name,
           ses_style_on(t, SES_PLAIN));
    print_commands(z, z->chosen);
}
