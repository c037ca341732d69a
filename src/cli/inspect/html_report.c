/* Writes training runs as one HTML page. */
#include "html_report.h"

#include "analysis/figure/markup.h"
#include "base/alloc.h"
#include "base/energy/energy_meter.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "cli/ui/svg_chart.h"
#include "html_parts.h"

#include <math.h>
#include <string.h>

enum { MAX_CHARTS = 12 };

/* ---- table cells ---- */

static void begin_cell(ses_buf *b, const char *class, const char *label)
{
    ses_buf_appendf(b, "<td%s", class);
    if (label) {
        ses_buf_puts(b, " data-label=\"");
        ses_html_text(b, label);
        ses_buf_put(b, '"');
    }
    ses_buf_put(b, '>');
}

void ses_html_cell(ses_buf *b, const char *label, const char *text)
{
    begin_cell(b, "", label);
    ses_html_text(b, text);
    ses_buf_puts(b, "</td>");
}

void ses_html_number_text(ses_buf *b, const char *label, const char *text)
{
    begin_cell(b, " class=\"n\"", label);
    ses_html_text(b, text);
    ses_buf_puts(b, "</td>");
}

void ses_html_number(ses_buf *b, const char *label, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.4f", x);
    ses_html_number_text(b, label, isnan(x) ? "-" : text);
}

void ses_html_heading(ses_buf *b, const char *attributes, const char *text)
{
    ses_buf_appendf(b, "<th%s>", attributes);
    ses_html_text(b, text);
    ses_buf_puts(b, "</th>");
}

/* ---- all runs ---- */

static const char *metric_name(const ses_run_record *r)
{
    return *r->metric ? r->metric + strlen("eval_") : "-";
}

/* The first cell of a row: the run's color and name. */
static void put_run_cell(ses_buf *b, const ses_run_record *r, size_t color)
{
    ses_buf_appendf(b, "<tr%s><td><span><span class=\"key\" style=\"background:var(--c%zu)\"></span>",
                    r->rank == 1 ? " class=\"best\"" : "", color % SES_CHART_COLORS);
    ses_html_text(b, r->name);
    ses_buf_puts(b, r->rank == 1 ? "<span class=\"mark\">best</span></span></td>" : "</span></td>");
}

static void put_overview_row(ses_buf *b, const ses_run_record *r, size_t color, bool shows_price)
{
    char text[40], human[SES_NUMBER_TEXT];
    double step = NAN, best = ses_run_record_best_score(r, &step),
           seconds = ses_run_record_number(r, "train_runtime"),
           rate = ses_run_record_number(r, "train_tokens_per_second"),
           kwh = ses_run_record_number(r, "train_energy_kwh");
    put_run_cell(b, r, color);
    ses_html_cell(b, "metric", metric_name(r));
    ses_html_number(b, "score", ses_run_record_final_score(r));
    ses_html_number(b, "best evaluation", best);
    snprintf(text, sizeof text, "%.0f", step);
    ses_html_number_text(b, "at update", isnan(step) ? "-" : text);
    ses_html_number(b, "evaluation loss", ses_run_record_number(r, "eval_loss"));
    ses_html_number(b, "training loss", ses_run_record_number(r, "train_loss"));
    ses_html_number_text(b, "time", isnan(seconds) ? "-" : ses_duration_text(human, seconds));
    ses_html_number_text(b, "tokens/s", isnan(rate) ? "-" : ses_count_text(human, (uint64_t)rate));
    ses_html_number_text(b, "energy", isnan(kwh) ? "-" : ses_watt_hours_text(human, 3.6e6 * kwh));
    double flops = ses_run_record_number(r, "train_flops"), price = ses_run_record_number(r, "train_price");
    ses_html_number_text(b, "FLOPs", flops > 0 ? ses_flops_text(text, flops) : "-");
    snprintf(text, sizeof text, "%.4g", price);
    if (shows_price) ses_html_number_text(b, "price", isnan(price) ? "-" : text);
    ses_buf_puts(b, "</tr>\n");
}

/* Does a run have a price? */
static bool has_price(const ses_run_records *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!isnan(ses_run_record_number(&l->item[i], "train_price"))) return true;
    return false;
}

static void put_overview(ses_buf *b, const ses_run_records *l)
{
    static const char *const columns[] = { "score", "best",     "at",     "eval loss", "train loss",
                                           "time",  "tokens/s", "energy", "FLOPs" };
    ses_buf_puts(b, "<div class=\"card wide block\"><table class=\"cards full\"><thead><tr><th>run</th>"
                    "<th>metric</th>");
    for (size_t i = 0; i < SES_LEN(columns); i++) ses_html_heading(b, " class=\"n\"", columns[i]);
    bool shows_price = has_price(l);
    if (shows_price) ses_html_heading(b, " class=\"n\"", "price");
    ses_buf_puts(b, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < l->n; i++) put_overview_row(b, &l->item[i], i, shows_price);
    ses_buf_puts(b, "</tbody></table></div>\n");
}

static void put_differences(ses_buf *b, const ses_run_records *l)
{
    const char *name;
    char text[200];
    if (!ses_run_records_setting(l, 0)) return;
    ses_buf_puts(b, "<div class=\"card wide block\"><h3>Settings that differ</h3>"
                    "<table class=\"cards full set\"><thead><tr><th>run</th>");
    for (size_t i = 0; (name = ses_run_records_setting(l, i)); i++) ses_html_heading(b, "", name);
    ses_buf_puts(b, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < l->n; i++) {
        const ses_run_record *r = &l->item[i];
        put_run_cell(b, r, i);
        for (size_t k = 0; (name = ses_run_records_setting(l, k)); k++)
            ses_html_cell(b, name, ses_json_value_text(text, sizeof text, ses_json_get(r->options, name)));
        ses_buf_puts(b, "</tr>\n");
    }
    ses_buf_puts(b, "</tbody></table></div>\n");
}

/* ---- charts ---- */

/* Cross entropies are in nats; other losses have no common unit. */
static const char *loss_label(const ses_run_records *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const ses_json *o = l->item[i].options;
        const char *task = o ? ses_json_string(ses_json_get(o, "task"), NULL) : NULL,
                   *objective = o ? ses_json_string(ses_json_get(o, "objective"), NULL) : NULL;
        const ses_json *teacher = o ? ses_json_get(o, "teacher") : NULL; /* a name or a list */
        bool nats = task ? strcmp(task, "regress") && strcmp(task, "embed") && strcmp(task, "multi_label")
                         : objective && (!strcmp(objective, "mlm") || !strcmp(objective, "clm"));
        if (!nats || ses_json_string(teacher, NULL) || ses_json_len(teacher)) return "loss";
    }
    return "cross-entropy loss (nats)";
}

static bool put_chart(ses_buf *b, const ses_run_records *l, const char *series, ses_chart c, ses_err *e)
{
    ses_chart_line *line = ses_alloc_array(l->n, sizeof *line, e);
    if (!line) return false;
    for (size_t i = 0; i < l->n; i++)
        line[i] = (ses_chart_line){ ses_run_record_series(&l->item[i], series), l->item[i].name, i };
    c.line = line;
    c.n = l->n;
    c.x_label = "updates";
    ses_chart_put(b, &c);
    ses_free(line);
    return true;
}

/* Metrics of the runs; accuracies of runs whose metric is the loss. */
static bool is_charted(const ses_run_record *r, const char *series)
{
    size_t n = strlen(series), suffix = strlen("_accuracy");
    if (!strcmp(series, "eval_loss") || strncmp(series, "eval_", 5)) return false;
    if (!strcmp(series, r->metric)) return true;
    return !strcmp(r->metric, "eval_loss") && n > suffix && !strcmp(series + n - suffix, "_accuracy");
}

static bool put_score_charts(ses_buf *b, const ses_run_records *l, ses_err *e)
{
    const char *shown[MAX_CHARTS];
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; ok && k < l->item[i].n_series && n < MAX_CHARTS; k++) {
            const char *name = l->item[i].series[k].name;
            bool new = is_charted(&l->item[i], name);
            for (size_t x = 0; x < n; x++) new &= strcmp(shown[x], name) != 0;
            if (!new) continue;
            shown[n++] = name;
            char title[96];
            snprintf(title, sizeof title, "Evaluation: %s", name + strlen("eval_"));
            ok = put_chart(b, l, name, (ses_chart){ .title = title, .y_label = name + strlen("eval_") }, e);
        }
    return ok;
}

/* Charts of losses, main scores, learning rate and gradient norm. */
static bool put_charts(ses_buf *b, const ses_run_records *l, ses_err *e)
{
    const char *loss = loss_label(l);
    ses_buf_puts(b, "<div class=\"charts\">\n");
    bool ok = put_chart(b, l, "loss",
                        (ses_chart){ .title = "Training loss", .y_label = loss, .smooth = true }, e) &&
              put_chart(b, l, "eval_loss", (ses_chart){ .title = "Evaluation loss", .y_label = loss }, e) &&
              put_score_charts(b, l, e) && ses_html_cost_charts_put(b, l, e) &&
              put_chart(b, l, "learning_rate",
                        (ses_chart){ .title = "Learning rate", .y_label = "learning rate" }, e) &&
              put_chart(b, l, "grad_norm",
                        (ses_chart){
                            .title = "Gradient norm", .y_label = "L2 norm, before clipping", .smooth = true },
                        e);
    ses_buf_puts(b, "</div>\n");
    return ok;
}

static void put_legend(ses_buf *b, const ses_run_records *l)
{
    ses_buf_puts(b, "<ul class=\"legend\">");
    for (size_t i = 0; i < l->n; i++) {
        ses_buf_appendf(b, "<li><span class=\"key\" style=\"background:var(--c%zu)\"></span>",
                        i % SES_CHART_COLORS);
        ses_html_text(b, l->item[i].name);
        ses_buf_puts(b, "</li>");
    }
    ses_buf_puts(b, "</ul>\n");
}

/* ---- the page ---- */

static void put_head(ses_buf *b, const char *title)
{
    ses_buf_puts(b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" "
                    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    ses_html_text(b, title);
    ses_buf_puts(b, "</title><style>");
    for (size_t i = 0; ses_html_style[i]; i++) ses_buf_puts(b, ses_html_style[i]);
    ses_buf_puts(b, "</style></head><body>\n");
}

static bool put_page(ses_buf *b, const ses_run_records *l, ses_err *e)
{
    ses_buf charts = { 0 }, none = { 0 };
    bool ok = put_charts(&charts, l, e) && ses_buf_ok(&charts, e);
    put_head(b, l->n == 1 ? l->item[0].name : "Training runs");
    if (l->n == 1) {
        ses_html_run_put(b, &l->item[0], &charts);
    } else {
        ses_buf_appendf(
            b, "<header><p class=\"kicker\">Training report</p><h1>%zu training runs</h1></header>\n", l->n);
        put_overview(b, l);
        put_differences(b, l);
        put_legend(b, l);
        ses_buf_append(b, charts.data, charts.len);
        for (size_t i = 0; i < l->n; i++) {
            ses_buf_puts(b, "<section>");
            ses_html_run_put(b, &l->item[i], &none);
            ses_buf_puts(b, "</section>\n");
        }
    }
    ses_buf_puts(b, "<footer>Written by Sesame.</footer></body></html>\n");
    ses_buf_free(&charts);
    return ok;
}

bool ses_html_report_write(const ses_run_records *l, const char *path, bool overwrite, ses_err *e)
{
    ses_buf b = { 0 };
    bool ok = put_page(&b, l, e) && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, overwrite, e);
    ses_buf_free(&b);
    return ok;
}

bool ses_html_report_write_run(const char *dir, ses_err *e)
{
    ses_run_records l = { 0 };
    char *path = ses_path_join(dir, "report.html", e);
    bool ok = path && ses_run_records_add(&l, dir, e) && ses_html_report_write(&l, path, true, e);
    ses_run_records_free(&l);
    ses_free(path);
    return ok;
}
