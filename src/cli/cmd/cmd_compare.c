/* compare: shows training runs side by side. */
#include "base/alloc.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/inspect/run_record.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "cli/ui/text_table.h"
#include "train/energy/energy_meter.h"

#include <math.h>
#include <string.h>

typedef struct args {
    bool json;
} args;

static const ses_opt opt[] = { SES_OPT_JSON(args, json) };

/* ---- table ---- */

/* The metric if all runs have the same one, for the column title; else NULL, and cells name theirs. */
static const char *common_metric(const ses_run_records *l)
{
    for (size_t i = 1; i < l->n; i++)
        if (strcmp(l->item[i].metric, l->item[0].metric)) return NULL;
    return l->item[0].metric;
}

static void put_title(ses_buf *b, const char *title)
{
    for (const char *c = title; *c; c++) ses_buf_put(b, *c == '|' ? '/' : *c); /* '|' separates columns */
    ses_buf_put(b, '|');
}

/* Columns after the settings: alignment, title, importance. The least important is left out first on a narrow
 * terminal; 0: never. */
static const struct {
    const char *title;
    int importance;
} figures[] = { { ">best", 5 },       { ">at", 4 },    { ">eval loss", 8 },
                { ">train loss", 7 }, { ">time", 6 },  { ">tokens/s", 3 },
                { ">energy", 2 },     { ">FLOPs", 2 }, { "loss curve", 1 } };
enum { SETTING_IMPORTANCE = 20 };

/* Numbers are right-aligned. */
static bool is_number(const ses_run_records *l, const char *setting)
{
    for (size_t i = 0; i < l->n; i++) {
        const ses_json *v = ses_json_get(l->item[i].options, setting);
        double x;
        if (v && !ses_json_real(v, &x)) return false;
    }
    return true;
}

static ses_text_table *new_table(const ses_run_records *l, ses_err *e)
{
    const char *metric = common_metric(l), *name;
    ses_buf b = { 0 };
    ses_buf_puts(&b, ">rank|run|");
    for (size_t i = 0; (name = ses_run_records_setting(l, i)); i++) {
        if (is_number(l, name)) ses_buf_put(&b, '>');
        put_title(&b, name);
    }
    ses_buf_put(&b, '>');
    put_title(&b, metric && *metric ? metric + strlen("eval_") : "score");
    for (size_t i = 0; i < SES_LEN(figures); i++) ses_buf_appendf(&b, "%s%s", i ? "|" : "", figures[i].title);
    ses_text_table *t = ses_buf_ok(&b, e) ? ses_text_table_new(b.data, e) : NULL;
    ses_buf_free(&b);
    return t;
}

/* Terminal only: a pipe gets every column. Later settings are less important than earlier ones. */
static bool fit(ses_text_table *t, const ses_run_records *l, const ses_term *term, ses_err *e)
{
    size_t settings = 0, n;
    if (!term->tty) return true;
    while (ses_run_records_setting(l, settings)) settings++;
    n = 3 + settings + SES_LEN(figures);
    int *importance = ses_alloc_array(n, sizeof *importance, e);
    if (!importance) return false;
    for (size_t i = 0; i < settings; i++) importance[2 + i] = SETTING_IMPORTANCE + (int)(settings - i);
    for (size_t i = 0; i < SES_LEN(figures); i++) importance[3 + settings + i] = figures[i].importance;
    ses_text_table_fit(t, term->width, importance);
    ses_free(importance);
    return true;
}

static void put_number(ses_text_table *t, const char *metric, double x)
{
    if (isnan(x))
        ses_text_table_cell(t, "-");
    else
        ses_text_table_cell(t, "%s%s%.4f", metric, *metric ? " " : "", x);
}

static void put_row(ses_text_table *t, const ses_run_records *l, const ses_run_record *r,
                    const ses_term *term)
{
    char buf[200], human[SES_NUMBER_TEXT], curve[SES_BAR_SIZE];
    const char *name;
    double step = NAN, best = ses_run_record_best_score(r, &step),
           seconds = ses_run_record_number(r, "train_runtime"),
           rate = ses_run_record_number(r, "train_tokens_per_second"),
           kwh = ses_run_record_number(r, "train_energy_kwh");
    bool is_best = r->rank == 1 && l->n > 1;
    if (r->rank)
        ses_text_table_cell(t, "%s%zu", is_best ? "*" : "", r->rank);
    else
        ses_text_table_cell(t, "-");
    ses_text_table_style(t, is_best ? SES_GREEN : SES_PLAIN);
    ses_text_table_cell(t, "%s", r->name);
    ses_text_table_style(t, is_best ? SES_GREEN : SES_PLAIN);
    for (size_t i = 0; (name = ses_run_records_setting(l, i)); i++)
        ses_text_table_cell(t, "%s", ses_json_value_text(buf, sizeof buf, ses_json_get(r->options, name)));
    put_number(t, common_metric(l) || !*r->metric ? "" : r->metric + strlen("eval_"),
               ses_run_record_final_score(r));
    ses_text_table_style(t, is_best ? SES_GREEN : SES_PLAIN);
    put_number(t, "", best);
    isnan(step) ? ses_text_table_cell(t, "-") : ses_text_table_cell(t, "%.0f", step);
    put_number(t, "", ses_run_record_number(r, "eval_loss"));
    put_number(t, "", ses_run_record_number(r, "train_loss"));
    ses_text_table_cell(t, "%s", isnan(seconds) ? "-" : ses_duration_text(human, seconds));
    ses_text_table_cell(t, "%s", isnan(rate) ? "-" : ses_count_text(human, (uint64_t)rate));
    ses_text_table_cell(t, "%s", isnan(kwh) ? "-" : ses_watt_hours_text(human, 3.6e6 * kwh));
    double flops = ses_run_record_number(r, "train_flops");
    ses_text_table_cell(t, "%s", flops > 0 ? ses_flops_text(human, flops) : "-");
    ses_run_record_sparkline(r, "loss", term, curve);
    ses_text_table_cell(t, "%s", curve);
}

/* Notes below the table: the meaning of the mark, the columns that do not fit. */
static void put_notes(const ses_text_table *t, const ses_run_records *l, const ses_term *term)
{
    const char *metric = common_metric(l), *title;
    ses_buf b = { 0 };
    if (l->n > 1 && l->item[0].rank && metric)
        ses_buf_appendf(&b, "* best %s (%s is better). ", metric + strlen("eval_"),
                        l->item[0].lower_is_better ? "lower" : "higher");
    else if (l->n > 1 && l->item[0].rank)
        ses_buf_puts(&b, "* best of the runs with the same metric. ");
    for (size_t i = 0; (title = ses_text_table_hidden(t, i)); i++)
        ses_buf_appendf(&b, "%s%s", i ? ", " : "Columns that do not fit: ", title);
    if (ses_text_table_hidden(t, 0)) ses_buf_puts(&b, ".");
    if (b.len && ses_buf_ok(&b, NULL)) {
        fputs(ses_style_on(term, SES_DIM), stdout);
        ses_put_wrapped(stdout, b.data, 0, 0, term->tty ? term->width : 1000);
        fputs(ses_style_on(term, SES_PLAIN), stdout);
    }
    ses_buf_free(&b);
}

/* ---- JSON ---- */

static void put_json(const ses_run_records *l, const ses_run_record *r, ses_json_writer *w)
{
    static const char *const copied[] = { "eval_loss",
                                          "train_loss",
                                          "train_runtime",
                                          "train_samples_per_second",
                                          "train_tokens_per_second",
                                          "train_energy_kwh",
                                          "train_energy_wh",
                                          "train_flops",
                                          "train_price",
                                          "train_co2_kg",
                                          "train_peak_memory_bytes" };
    const char *name;
    double step = NAN, best = ses_run_record_best_score(r, &step);
    ses_json_begin_object(w);
    ses_json_member_string(w, "run", r->name);
    ses_json_member_string(w, "dir", r->dir);
    ses_json_member_object(w, "settings");
    for (size_t i = 0; (name = ses_run_records_setting(l, i)); i++) {
        const ses_json *v = ses_json_get(r->options, name);
        ses_json_put_key(w, name);
        v ? ses_json_put_value(w, v) : ses_json_put_null(w);
    }
    ses_json_end_object(w);
    ses_json_member_string(w, "metric", *r->metric ? r->metric : NULL);
    ses_json_member_real(w, "score", ses_run_record_final_score(r));
    ses_json_member_real(w, "best", best);
    ses_json_member_real(w, "best_step", step);
    for (size_t i = 0; i < SES_LEN(copied); i++)
        ses_json_member_real(w, copied[i], ses_run_record_number(r, copied[i]));
    ses_json_put_key(w, "rank");
    r->rank ? ses_json_put_int(w, (int64_t)r->rank) : ses_json_put_null(w);
    ses_json_end_object(w);
}

static bool print_json(const ses_run_records *l, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_array(w);
    for (size_t i = 0; i < l->n; i++) put_json(l, &l->item[i], w);
    ses_json_end_array(w);
    return ses_json_writer_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_run_records l;
    bool ok = ses_run_records_open(&l, c->operands, (size_t)c->n_operands, e) && ses_run_records_rank(&l, e);
    if (ok && a->json) {
        ok = print_json(&l, e);
    } else if (ok) {
        ses_text_table *t = new_table(&l, e);
        for (size_t i = 0; t && i < l.n; i++) put_row(t, &l, &l.item[i], &c->out);
        ok = t && fit(t, &l, &c->out, e) && ses_text_table_print(t, stdout, &c->out, 0, e);
        if (ok) put_notes(t, &l, &c->out);
        ses_text_table_free(t);
    }
    ses_run_records_free(&l);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame compare first second", "two runs" },
    { "sesame compare search", "all runs of a hyperparameter search" },
    { 0 },
};

const ses_command ses_command_compare = {
    .name = "compare",
    .usage = "RUN...",
    .summary = "compare training runs",
    .description =
        "Prints a line per run, the best score first: the settings that differ, final and best score, "
        "losses, "
        "time, tokens per second, energy, FLOPs and the loss curve. The score is the run's main metric; "
        "whether "
        "lower is better follows from the metric. On a terminal, columns that do not fit are left out and "
        "named below the table; a pipe gets all of them. RUN is a folder written by finetune (finished or "
        "not) "
        "or by the Trainer of transformers, or a folder of such folders.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
