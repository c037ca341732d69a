/* Writes training runs as one HTML page, and the losses of a run as a picture. */
#include "run_report.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "run_figures.h"
#include "train/energy/energy_meter.h"

#include <math.h>
#include <string.h>

/* ---- all runs ---- */

/* The first cell of a row: the run's color and name. */
static void put_run_cell(ses_figure *f, const ses_run_record *r, size_t line)
{
    ses_figure_cell(f, r->rank == 1 ? "%s (best)" : "%s", r->name);
    ses_figure_cell_key(f, (int64_t)line);
}

static void put_number(ses_figure *f, double x)
{
    if (isnan(x))
        ses_figure_cell(f, "-");
    else
        ses_figure_cell(f, "%.4f", x);
}

static void put_overview_row(ses_figure *f, const ses_run_record *r, size_t line, bool shows_price)
{
    char text[40], human[SES_NUMBER_TEXT];
    double step = NAN, best = ses_run_record_best_score(r, &step),
           seconds = ses_run_record_number(r, "train_runtime"),
           rate = ses_run_record_number(r, "train_tokens_per_second"),
           kwh = ses_run_record_number(r, "train_energy_kwh"),
           flops = ses_run_record_number(r, "train_flops");
    put_run_cell(f, r, line);
    ses_figure_cell(f, "%s", *r->metric ? r->metric + strlen("eval_") : "-");
    put_number(f, ses_run_record_final_score(r));
    put_number(f, best);
    snprintf(text, sizeof text, "%.0f", step);
    ses_figure_cell(f, "%s", isnan(step) ? "-" : text);
    put_number(f, ses_run_record_number(r, "eval_loss"));
    put_number(f, ses_run_record_number(r, "train_loss"));
    ses_figure_cell(f, "%s", isnan(seconds) ? "-" : ses_duration_text(human, seconds));
    ses_figure_cell(f, "%s", isnan(rate) ? "-" : ses_count_text(human, (uint64_t)rate));
    ses_figure_cell(f, "%s", isnan(kwh) ? "-" : ses_watt_hours_text(human, 3.6e6 * kwh));
    ses_figure_cell(f, "%s", flops > 0 ? ses_flops_text(text, flops) : "-");
    double price = ses_run_record_number(r, "train_price");
    snprintf(text, sizeof text, "%.4g", price);
    if (shows_price) ses_figure_cell(f, "%s", isnan(price) ? "-" : text);
}

/* Does a run have a price? */
static bool has_price(const ses_run_records *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!isnan(ses_run_record_number(&l->item[i], "train_price"))) return true;
    return false;
}

static void put_overview(ses_report *report, const ses_run_records *l)
{
    bool shows_price = has_price(l);
    ses_figure *f = ses_report_table(
        report, "",
        shows_price
            ? "run|metric|>score|>best|>at|>eval loss|>train loss|>time|>tokens/s|>energy|>FLOPs|>price"
            : "run|metric|>score|>best|>at|>eval loss|>train loss|>time|>tokens/s|>energy|>FLOPs");
    ses_figure_show(f, SES_SHOW_CARDS);
    for (size_t i = 0; i < l->n; i++) put_overview_row(f, &l->item[i], i, shows_price);
}

static void put_differences(ses_report *report, const ses_run_records *l)
{
    enum { MOST = 30 }; /* columns of a table */
    const char *name;
    char text[200];
    ses_buf columns = { 0 };
    ses_buf_puts(&columns, "run");
    for (size_t i = 0; i < MOST && (name = ses_run_records_setting(l, i)); i++)
        ses_buf_appendf(&columns, "|%.*s", (int)strcspn(name, "|"), name);
    ses_figure *f = ses_run_records_setting(l, 0) && ses_buf_ok(&columns, NULL)
                        ? ses_report_table(report, "Settings that differ", columns.data)
                        : NULL;
    ses_figure_show(f, SES_SHOW_CARDS);
    for (size_t i = 0; f && i < l->n; i++) {
        put_run_cell(f, &l->item[i], i);
        for (size_t k = 0; k < MOST && (name = ses_run_records_setting(l, k)); k++)
            ses_figure_cell(f, "%s",
                            ses_json_value_text(text, sizeof text, ses_json_get(l->item[i].options, name)));
    }
    ses_buf_free(&columns);
}

/* ---- output ---- */

static bool write_file(ses_report *report, const char *path, bool overwrite, bool page, ses_err *e)
{
    const ses_report_head head = { .analysis = "report", .title = "Training runs" };
    ses_buf b = { 0 };
    bool ok = (page ? ses_report_html(report, &head, &b, e) : ses_report_svg(report, &head, &b, e)) &&
              ses_file_write(path, b.data, b.len, overwrite, e);
    ses_buf_free(&b);
    return ok;
}

bool ses_run_report_write(const ses_run_records *l, const char *path, bool overwrite, ses_err *e)
{
    ses_report *report = ses_report_new(e);
    if (!report) return false;
    if (l->n == 1) {
        ses_report_set_title(report, "%s", l->item[0].name);
        ses_run_tiles_put(report, &l->item[0], "");
    } else {
        ses_report_set_title(report, "%zu training runs", l->n);
        put_overview(report, l);
        put_differences(report, l);
    }
    bool ok = ses_run_charts_put(report, l, e);
    for (size_t i = 0; i < l->n; i++) {
        if (l->n > 1) ses_run_tiles_put(report, &l->item[i], l->item[i].name);
        ses_run_figures_put(report, &l->item[i]);
    }
    ok = ok && write_file(report, path, overwrite, true, e);
    ses_report_free(report);
    return ok;
}

bool ses_run_report_write_run(const char *dir, ses_err *e)
{
    ses_run_records l = { 0 };
    char *path = ses_path_join(dir, "report.html", e);
    bool ok = path && ses_run_records_add(&l, dir, e) && ses_run_report_write(&l, path, true, e);
    ses_run_records_free(&l);
    ses_free(path);
    return ok;
}

bool ses_run_curve_write(const char *log, const char *path, const char *title, ses_err *e)
{
    ses_run_records l = { 0 };
    ses_report *report = ses_run_records_add_log(&l, log, title, e) ? ses_report_new(e) : NULL;
    if (report) ses_run_losses_put(report, &l.item[0]);
    bool ok = report && write_file(report, path, true, false, e);
    ses_report_free(report);
    ses_run_records_free(&l);
    return ok;
}
