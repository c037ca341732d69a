/* Writes training runs as one HTML page. */
#include "html_report.h"

#include "base/alloc.h"
#include "base/energy_meter.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "cli/ui/svg_chart.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_MATRIX_LABELS = 30, MAX_CHARTS = 12 };

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#667;--rule:#d8dce2;--cell:47,111,235;"
    "--c0:#1f6feb;--c1:#d1570d;--c2:#1a7f37;--c3:#a333c8;--c4:#b58900;--c5:#0a8f9e;--c6:#cf222e;--c7:#6e7781}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7eb;--dim:#98a1ac;--rule:#343b43;"
    "--cell:88,150,255;--c0:#58a6ff;--c1:#f0883e;--c2:#4ac26b;--c3:#d2a8ff;--c4:#e3b341;--c5:#39c5cf;"
    "--c6:#ff7b72;--c7:#9aa4af}}"
    "body{margin:2rem auto;max-width:1320px;padding:0 1rem;background:var(--bg);color:var(--fg);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.2rem;"
    "border-top:1px solid var(--rule);padding-top:1rem}h3{font-size:1rem;margin:1.2rem 0 .4rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.15rem .7rem .15rem 0;"
    "text-align:left;vertical-align:top}td.n,th.n{text-align:right}thead th{border-bottom:1px solid "
    "var(--rule)}"
    ".wide{overflow-x:auto}.matrix td,.matrix th{padding:.25rem .6rem;text-align:right}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:1rem;margin-top:1."
    "5rem}"
    "svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--dim)}svg "
    ".title{font-size:13px;"
    "font-weight:600;fill:var(--fg)}.y{text-anchor:end}.x{text-anchor:middle}.grid{stroke:var(--rule)}"
    ".line{fill:none;stroke-width:1.8;stroke-linejoin:round}.key{display:inline-block;width:.8em;height:.8em;"
    "border-radius:2px;margin-right:.4em}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}"
    ".dim{color:var(--dim)}details{margin:.6rem 0}summary{cursor:pointer}";

/* ---- table cells ---- */

static void put_cell(ses_buf *b, const char *text)
{
    ses_buf_puts(b, "<td>");
    ses_html_text(b, text);
    ses_buf_puts(b, "</td>");
}

static void put_number(ses_buf *b, double x)
{
    ses_buf_puts(b, "<td class=\"n\">");
    isnan(x) ? ses_buf_puts(b, "-") : ses_buf_appendf(b, "%.4f", x);
    ses_buf_puts(b, "</td>");
}

static void put_number_text(ses_buf *b, const char *text)
{
    ses_buf_puts(b, "<td class=\"n\">");
    ses_html_text(b, text);
    ses_buf_puts(b, "</td>");
}

static void put_heading(ses_buf *b, const char *class, const char *text)
{
    ses_buf_appendf(b, "<th%s>", class);
    ses_html_text(b, text);
    ses_buf_puts(b, "</th>");
}

/* ---- all runs ---- */

static void put_overview(ses_buf *b, const ses_run_records *l)
{
    static const char *const columns[] = { "score",      "best", "at",       "eval loss",
                                           "train loss", "time", "tokens/s", "energy" };
    const char *name;
    ses_buf_puts(b, "<div class=\"wide\"><table><thead><tr><th>run</th>");
    for (size_t i = 0; (name = ses_run_records_setting(l, i)); i++) put_heading(b, "", name);
    ses_buf_puts(b, "<th>metric</th>");
    for (size_t i = 0; i < SES_LEN(columns); i++) put_heading(b, " class=\"n\"", columns[i]);
    ses_buf_puts(b, "</tr></thead>\n");
    for (size_t i = 0; i < l->n; i++) {
        const ses_run_record *r = &l->item[i];
        char text[200], human[SES_NUMBER_TEXT];
        double step = NAN, best = ses_run_record_best_score(r, &step),
               seconds = ses_run_record_number(r, "train_runtime"),
               rate = ses_run_record_number(r, "train_tokens_per_second"),
               kwh = ses_run_record_number(r, "train_energy_kwh");
        ses_buf_appendf(b, "<tr><td><span class=\"key\" style=\"background:var(--c%zu)\"></span>",
                        i % SES_CHART_COLORS);
        ses_html_text(b, r->name);
        ses_buf_puts(b, "</td>");
        for (size_t k = 0; (name = ses_run_records_setting(l, k)); k++)
            put_cell(b, ses_json_value_text(text, sizeof text, ses_json_get(r->options, name)));
        put_cell(b, *r->metric ? r->metric + strlen("eval_") : "-");
        put_number(b, ses_run_record_final_score(r));
        put_number(b, best);
        snprintf(text, sizeof text, "%.0f", step);
        put_number_text(b, isnan(step) ? "-" : text);
        put_number(b, ses_run_record_number(r, "eval_loss"));
        put_number(b, ses_run_record_number(r, "train_loss"));
        put_number_text(b, isnan(seconds) ? "-" : ses_duration_text(human, seconds));
        put_number_text(b, isnan(rate) ? "-" : ses_count_text(human, (uint64_t)rate));
        put_number_text(b, isnan(kwh) ? "-" : ses_watt_hours_text(human, 3.6e6 * kwh));
        ses_buf_puts(b, "</tr>\n");
    }
    ses_buf_puts(b, "</table></div>\n");
}

static bool put_chart(ses_buf *b, const ses_run_records *l, const char *name, const char *title, ses_err *e)
{
    ses_chart_line *line = ses_alloc_array(l->n, sizeof *line, e);
    if (!line) return false;
    for (size_t i = 0; i < l->n; i++)
        line[i] = (ses_chart_line){ ses_run_record_series(&l->item[i], name), l->item[i].name, i };
    ses_chart_put(b, title, line, l->n);
    ses_free(line);
    return true;
}

/* Charts of losses, learning rate, gradient norm and main scores. */
static bool put_charts(ses_buf *b, const ses_run_records *l, ses_err *e)
{
    static const struct {
        const char *name, *title;
    } common[] = { { "loss", "training loss" },
                   { "eval_loss", "evaluation loss" },
                   { "learning_rate", "learning rate" },
                   { "grad_norm", "gradient norm" } };
    const char *shown[MAX_CHARTS];
    size_t n = 0;
    bool ok = true;
    ses_buf_puts(b, "<div class=\"charts\">\n");
    for (size_t i = 0; ok && i < SES_LEN(common); i++) {
        ok = put_chart(b, l, common[i].name, common[i].title, e);
        for (size_t k = 0; ok && i == 1 && k < l->n && n < MAX_CHARTS;
             k++) { /* scores follow the evaluation loss */
            const char *metric = l->item[k].metric;
            bool new = *metric &&strcmp(metric, "eval_loss");
            for (size_t x = 0; x < n; x++) new &= strcmp(shown[x], metric) != 0;
            if (!new) continue;
            shown[n++] = metric;
            ok = put_chart(b, l, metric, metric + strlen("eval_"), e);
        }
    }
    ses_buf_puts(b, "</div>\n");
    return ok;
}

/* ---- one run ---- */

/* Reads the confusion matrix, [n, n]; NULL: missing or malformed. */
static int64_t *read_matrix(const ses_run_record *r, size_t *n)
{
    const ses_json *rows = ses_json_get(r->outcome, "eval_confusion_matrix");
    size_t count;
    *n = ses_json_len(ses_json_get(r->outcome, "eval_labels"));
    if (!*n || ses_json_len(rows) != *n || !ses_mul_size(*n, *n, &count)) return NULL;
    int64_t *m = ses_alloc_array(count, sizeof *m, NULL);
    bool ok = m != NULL;
    for (size_t i = 0; ok && i < count; i++)
        ok = ses_json_int(ses_json_at(ses_json_at(rows, i / *n), i % *n), &m[i]) && m[i] >= 0;
    if (ok) return m;
    ses_free(m);
    return NULL;
}

static const char *label_name(const ses_run_record *r, size_t i)
{
    const char *s = ses_json_string(ses_json_at(ses_json_get(r->outcome, "eval_labels"), i), NULL);
    return s ? s : "?";
}

static void put_classes(ses_buf *b, const ses_run_record *r, const int64_t *m, size_t n)
{
    ses_buf_puts(b, "<h3>Classes</h3><table><thead><tr><th>label</th><th class=\"n\">precision</th>"
                    "<th class=\"n\">recall</th><th class=\"n\">F1</th><th class=\"n\">number</th></tr>"
                    "</thead>\n");
    for (size_t c = 0; c < n; c++) {
        double correct = (double)m[c * n + c], predicted = 0, actual = 0;
        for (size_t k = 0; k < n; k++) predicted += (double)m[k * n + c], actual += (double)m[c * n + k];
        ses_buf_puts(b, "<tr>");
        put_cell(b, label_name(r, c));
        put_number(b, predicted > 0 ? correct / predicted : 0);
        put_number(b, actual > 0 ? correct / actual : 0);
        put_number(b, predicted + actual > 0 ? 2 * correct / (predicted + actual) : 0);
        ses_buf_appendf(b, "<td class=\"n\">%.0f</td></tr>\n", actual);
    }
    ses_buf_puts(b, "</table>\n");
}

static void put_matrix(ses_buf *b, const ses_run_record *r, const int64_t *m, size_t n)
{
    ses_buf_puts(b, "<h3>Confusion</h3><p class=\"dim\">Rows: true labels. Columns: predictions.</p>"
                    "<div class=\"wide\"><table class=\"matrix\"><tr><th></th>");
    for (size_t i = 0; i < n; i++) put_heading(b, "", label_name(r, i));
    ses_buf_puts(b, "</tr>\n");
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += (double)m[i * n + k];
        ses_buf_puts(b, "<tr>");
        put_heading(b, "", label_name(r, i));
        for (size_t k = 0; k < n; k++)
            ses_buf_appendf(b, "<td style=\"background:rgba(var(--cell),%.2f)\">%" PRId64 "</td>",
                            sum > 0 ? 0.6 * (double)m[i * n + k] / sum : 0, m[i * n + k]);
        ses_buf_puts(b, "</tr>\n");
    }
    ses_buf_puts(b, "</table></div>\n");
}

/* Keys that describe the evaluation and are not scores. */
static bool is_evaluation_info(const char *key)
{
    static const char *const info[] = { "eval_confidence", "eval_samples", "eval_runtime",
                                        "eval_samples_per_second", "eval_steps_per_second" };
    for (size_t i = 0; i < SES_LEN(info); i++)
        if (!strcmp(key, info[i])) return true;
    return false;
}

/* "eval_f1_low" and "eval_f1_high" are bounds of "eval_f1", not scores. */
static bool is_bound(const ses_run_record *r, const char *key)
{
    char stem[128];
    size_t n = strlen(key), suffix = n > 4 && !strcmp(key + n - 4, "_low")    ? 4
                                     : n > 5 && !strcmp(key + n - 5, "_high") ? 5
                                                                              : 0;
    snprintf(stem, sizeof stem, "%.*s", (int)(n - suffix), key);
    return suffix && ses_json_get(r->outcome, stem);
}

static void put_scores(ses_buf *b, const ses_run_record *r)
{
    size_t n = ses_json_len(r->outcome), shown = 0;
    for (size_t i = 0; i < n; i++) {
        const char *key = ses_json_key(r->outcome, i, NULL);
        char bound[160];
        double x;
        if (strncmp(key, "eval_", 5) || !ses_json_real(ses_json_at(r->outcome, i), &x) || is_bound(r, key) ||
            is_evaluation_info(key))
            continue;
        if (!shown++) ses_buf_puts(b, "<h3>Scores</h3><table>\n");
        ses_buf_puts(b, "<tr>");
        put_cell(b, key + 5);
        put_number(b, x);
        snprintf(bound, sizeof bound, "%s_low", key);
        double low = ses_run_record_number(r, bound);
        snprintf(bound, sizeof bound, "%s_high", key);
        if (!isnan(low))
            ses_buf_appendf(b, "<td class=\"dim\">%.4f to %.4f</td>", low, ses_run_record_number(r, bound));
        ses_buf_puts(b, "</tr>\n");
        if (shown == 8) ses_buf_puts(b, "</table><details><summary>all scores</summary><table>\n");
    }
    if (shown) ses_buf_puts(b, "</table>");
    if (shown >= 8) ses_buf_puts(b, "</details>");
    ses_buf_put(b, '\n');
}

static void put_settings(ses_buf *b, const ses_run_record *r)
{
    const char *command =
        r->run ? ses_json_string(ses_json_get(ses_json_root(r->run), "command"), NULL) : NULL;
    if (command) {
        ses_buf_puts(b, "<p><code>");
        ses_html_text(b, command);
        ses_buf_puts(b, "</code></p>\n");
    }
    if (!r->options) return;
    ses_buf_puts(b, "<details><summary>all settings</summary><table>\n");
    for (size_t i = 0; i < ses_json_len(r->options); i++) {
        char text[400];
        ses_buf_puts(b, "<tr>");
        put_cell(b, ses_json_key(r->options, i, NULL));
        put_cell(b, ses_json_value_text(text, sizeof text, ses_json_at(r->options, i)));
        ses_buf_puts(b, "</tr>\n");
    }
    ses_buf_puts(b, "</table></details>\n");
}

static void put_run(ses_buf *b, const ses_run_record *r)
{
    size_t n;
    ses_buf_puts(b, "<h2>");
    ses_html_text(b, r->name);
    ses_buf_puts(b, "</h2>\n");
    put_settings(b, r);
    put_scores(b, r);
    int64_t *m = read_matrix(r, &n);
    if (m) put_classes(b, r, m, n);
    if (m && n <= MAX_MATRIX_LABELS) put_matrix(b, r, m, n);
    if (m && n > MAX_MATRIX_LABELS)
        ses_buf_appendf(b, "<p class=\"dim\">The matrix of %zu labels is in all_results.json.</p>\n", n);
    ses_free(m);
}

bool ses_html_report_write(const ses_run_records *l, const char *path, bool overwrite, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_puts(&b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" "
                     "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    ses_html_text(&b, l->n == 1 ? l->item[0].name : "Training runs");
    ses_buf_appendf(&b, "</title><style>%s</style></head><body>\n<h1>", style);
    ses_html_text(&b, l->n == 1 ? l->item[0].name : "Training runs");
    ses_buf_puts(&b, "</h1>\n");
    put_overview(&b, l);
    bool ok = put_charts(&b, l, e);
    for (size_t i = 0; ok && i < l->n; i++) put_run(&b, &l->item[i]);
    ses_buf_puts(&b, "<p class=\"dim\">Written by Sesame.</p></body></html>\n");
    ok = ok && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, overwrite, e);
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
