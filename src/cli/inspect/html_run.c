/* HTML sections of one training run. */
#include "analysis/figure/markup.h"
#include "base/alloc.h"
#include "base/energy/energy_meter.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "html_parts.h"
#include "hub/hub_name.h"
#include "next_commands.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Labels of a matrix: at most, with upright headings and percentages, beside the scores. */
enum { MAX_MATRIX_LABELS = 30, UPRIGHT_LABELS = 8, NARROW_LABELS = 4 };
enum { OPEN_ERRORS = 8 };

static const char *run_text(const ses_run_record *r, const char *key)
{
    return r->run ? ses_json_string(ses_json_get(ses_json_root(r->run), key), NULL) : NULL;
}

static const char *option_text(const ses_run_record *r, const char *key)
{
    return r->options ? ses_json_string(ses_json_get(r->options, key), NULL) : NULL;
}

/* ---- head and figures ---- */

static void put_item(ses_buf *b, bool *any, const char *label, const char *text)
{
    if (!text || !*text) return;
    ses_buf_puts(b, *any ? " · " : "");
    *any = true;
    if (label) ses_buf_appendf(b, "%s ", label);
    ses_html_text(b, text);
}

static void put_head(ses_buf *b, const ses_run_record *r, bool page)
{
    char number[SES_NUMBER_TEXT + 16];
    int64_t parameters;
    bool any = false;
    const char *train = option_text(r, "train"), *model = option_text(r, "model");
    ses_buf_puts(b, page ? "<header><p class=\"kicker\">Training report</p><h1>" : "<header><h2>");
    ses_html_text(b, r->name);
    ses_buf_puts(b, page ? "</h1><p class=\"sub\">" : "</h2><p class=\"sub\">");
    put_item(b, &any, NULL, run_text(r, "class"));
    if (r->run && ses_json_int(ses_json_get(ses_json_root(r->run), "parameters"), &parameters) &&
        parameters >= 0) {
        ses_grouped_text(number, (uint64_t)parameters);
        put_item(b, &any, NULL, number);
        ses_buf_puts(b, " parameters");
    }
    put_item(b, &any, "task", option_text(r, "task"));
    put_item(b, &any, "objective", option_text(r, "objective"));
    put_item(b, &any, "from", model ? ses_model_label_of(model).s : NULL);
    put_item(b, &any, "trained on", train ? ses_path_name_of(train).s : NULL);
    ses_buf_puts(b, "</p></header>\n");
}

static void put_tile(ses_buf *b, const char *class, const char *name, const char *value, const char *more)
{
    ses_buf_appendf(b, "<div%s><dt>", class);
    ses_html_text(b, name);
    ses_buf_puts(b, "</dt><dd>");
    ses_html_text(b, value);
    ses_buf_puts(b, "</dd>");
    if (*more) {
        ses_buf_puts(b, "<dd class=\"more\">");
        ses_html_text(b, more);
        ses_buf_puts(b, "</dd>");
    }
    ses_buf_puts(b, "</div>\n");
}

static void put_number_tile(ses_buf *b, const char *class, const char *name, double x, const char *more)
{
    char text[40];
    if (isnan(x)) return;
    snprintf(text, sizeof text, "%.4f", x);
    put_tile(b, class, name, text, more);
}

/* Values of the score's confidence interval, or of its best evaluation. */
static void put_score_tile(ses_buf *b, const ses_run_record *r)
{
    char key[96], more[96] = "";
    if (!*r->metric) return;
    snprintf(key, sizeof key, "%s_low", r->metric);
    double low = ses_run_record_number(r, key), step = NAN, best = ses_run_record_best_score(r, &step);
    snprintf(key, sizeof key, "%s_high", r->metric);
    if (!isnan(low))
        snprintf(more, sizeof more, "%.4f to %.4f", low, ses_run_record_number(r, key));
    else if (!isnan(best))
        snprintf(more, sizeof more, "best evaluation at update %.0f", step);
    put_number_tile(b, " class=\"main\"", r->metric + strlen("eval_"), ses_run_record_final_score(r), more);
}

static void put_energy_tile(ses_buf *b, const ses_run_record *r)
{
    double kwh = ses_run_record_number(r, "train_energy_kwh"), co2 = ses_run_record_number(r, "train_co2_kg");
    char total[SES_NUMBER_TEXT], more[64] = "";
    if (isnan(kwh)) return;
    if (!isnan(co2)) snprintf(more, sizeof more, "%.3g g CO2", 1000 * co2);
    put_tile(b, "", "energy", ses_watt_hours_text(total, 3.6e6 * kwh), more);
}

static void put_cost_tiles(ses_buf *b, const ses_run_record *r)
{
    double flops = ses_run_record_number(r, "train_flops"), price = ses_run_record_number(r, "train_price"),
           seconds = ses_run_record_number(r, "train_runtime");
    char text[SES_NUMBER_TEXT], speed[SES_NUMBER_TEXT], more[64] = "";
    if (flops > 0 && seconds > 0)
        snprintf(more, sizeof more, "%s per second", ses_flops_text(speed, flops / seconds));
    if (flops > 0) put_tile(b, "", "FLOPs", ses_flops_text(text, flops), more);
    snprintf(more, sizeof more, "%.4g", price);
    if (!isnan(price)) put_tile(b, "", "price", more, "");
}

/* How the energy is known, and its parts. */
static void put_energy_note(ses_buf *b, const ses_run_record *r)
{
    double gpu = ses_run_record_number(r, "train_energy_gpu_kwh"),
           cpu = ses_run_record_number(r, "train_energy_cpu_kwh");
    const char *source = ses_json_string(ses_json_get(r->outcome, "train_energy_source"), NULL);
    char part[SES_NUMBER_TEXT];
    if (!source) return;
    ses_buf_puts(b, "<p class=\"note\">Energy: ");
    if (!isnan(gpu) && !isnan(cpu)) {
        ses_buf_appendf(b, "CPU %s, ", ses_watt_hours_text(part, 3.6e6 * cpu));
        ses_buf_appendf(b, "GPU %s; ", ses_watt_hours_text(part, 3.6e6 * gpu));
    }
    ses_html_text(b, source);
    ses_buf_puts(b, ".</p>\n");
}

static void put_tiles(ses_buf *b, const ses_run_record *r)
{
    const ses_series *loss = ses_run_record_series(r, "loss");
    double seconds = ses_run_record_number(r, "train_runtime"),
           memory = ses_run_record_number(r, "train_peak_memory_bytes"),
           rate = ses_run_record_number(r, "train_tokens_per_second"),
           epochs = ses_run_record_number(r, "epoch");
    char text[SES_NUMBER_TEXT + 8], human[SES_NUMBER_TEXT], more[64] = "";
    ses_buf_puts(b, "<dl class=\"tiles\">\n");
    put_score_tile(b, r);
    if (strcmp(r->metric, "eval_loss"))
        put_number_tile(b, "", "evaluation loss", ses_run_record_number(r, "eval_loss"), "");
    put_number_tile(b, "", "training loss", ses_run_record_number(r, "train_loss"), "mean over the run");
    if (loss) {
        if (!isnan(epochs)) snprintf(more, sizeof more, "%.3g epochs", epochs);
        put_tile(b, "", "updates", ses_grouped_text(text, (uint64_t)loss->step[loss->n - 1]), more);
    }
    more[0] = 0;
    if (!isnan(rate)) snprintf(more, sizeof more, "%s tokens/s", ses_count_text(human, (uint64_t)rate));
    if (!isnan(seconds)) put_tile(b, "", "time", ses_duration_text(text, seconds), more);
    if (memory > 0) put_tile(b, "", "peak memory", ses_bytes_text(text, (uint64_t)memory), "");
    put_energy_tile(b, r);
    put_cost_tiles(b, r);
    ses_buf_puts(b, "</dl>\n");
    put_energy_note(b, r);
}

/* ---- scores ---- */

/* Keys that describe the evaluation and are not scores. */
static bool is_evaluation_info(const char *key)
{
    static const char *const info[] = { "eval_confidence", "eval_samples", "eval_runtime",
                                        "eval_samples_per_second", "eval_steps_per_second" };
    for (size_t i = 0; i < SES_LEN(info); i++)
        if (!strcmp(key, info[i])) return true;
    return false;
}

/* Length of the key without the suffix; 0: another suffix. */
static size_t stem(const char *key, const char *suffix)
{
    size_t n = strlen(key), k = strlen(suffix);
    return n > k && !strcmp(key + n - k, suffix) ? n - k : 0;
}

static double number_of(const ses_run_record *r, const char *key, size_t n, const char *suffix)
{
    char name[160];
    snprintf(name, sizeof name, "%.*s%s", (int)n, key, suffix);
    return ses_run_record_number(r, name);
}

/* "eval_f1_low" and "eval_f1_high" are bounds of "eval_f1". */
static bool is_bound(const ses_run_record *r, const char *key)
{
    size_t low = stem(key, "_low"), high = stem(key, "_high"), n = low ? low : high;
    return n && !isnan(number_of(r, key, n, ""));
}

/* "eval_PER_f1" is a score of the class PER, which has a number of examples. */
static bool is_class_score(const ses_run_record *r, const char *key)
{
    static const char *const kinds[] = { "_precision", "_recall", "_f1", "_number" };
    for (size_t i = 0; i < SES_LEN(kinds); i++) {
        size_t n = stem(key, kinds[i]);
        if (n && !isnan(number_of(r, key, n, "_number"))) return true;
    }
    return false;
}

/* A micro average that equals the accuracy or the plain score. */
static bool repeats_score(const ses_run_record *r, const char *key, double x)
{
    size_t n = stem(key, "_micro");
    return n && (x == ses_run_record_number(r, "eval_accuracy") || x == number_of(r, key, n, ""));
}

static void put_scores(ses_buf *b, const ses_run_record *r)
{
    size_t shown = 0;
    double level = ses_run_record_number(r, "eval_confidence");
    for (size_t i = 0; i < ses_json_len(r->outcome); i++) {
        const char *key = ses_json_key(r->outcome, i, NULL);
        double x;
        if (strncmp(key, "eval_", 5) || !ses_json_real(ses_json_at(r->outcome, i), &x) || is_bound(r, key) ||
            is_evaluation_info(key) || is_class_score(r, key) || repeats_score(r, key, x))
            continue;
        if (!shown++) ses_buf_puts(b, "<div class=\"card\"><h3>Scores</h3><table class=\"full\"><tbody>\n");
        ses_buf_puts(b, "<tr>");
        ses_html_cell(b, NULL, key + 5);
        ses_html_number(b, NULL, x);
        double low = number_of(r, key, strlen(key), "_low");
        if (!isnan(low))
            ses_buf_appendf(b, "<td class=\"dim\">%.4f–%.4f</td>", low,
                            number_of(r, key, strlen(key), "_high"));
        ses_buf_puts(b, "</tr>\n");
    }
    if (!shown) return;
    ses_buf_puts(b, "</tbody></table>");
    if (!isnan(level))
        ses_buf_appendf(b, "<p class=\"note\">With %g %% confidence intervals.</p>", 100 * level);
    ses_buf_puts(b, "</div>\n");
}

/* ---- classes and confusion matrix ---- */

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

static void put_class(ses_buf *b, const char *name, const double x[3], double number)
{
    ses_buf_puts(b, "<tr>");
    ses_html_cell(b, NULL, name);
    for (size_t i = 0; i < 3; i++) ses_html_number(b, NULL, x[i]);
    ses_buf_appendf(b, "<td class=\"n\">%.0f</td></tr>\n", number);
}

/* Classes with scores of their own: labels, or types of entities. */
static size_t put_scored_classes(ses_buf *b, const ses_run_record *r)
{
    size_t shown = 0;
    for (size_t i = 0; i < ses_json_len(r->outcome); i++) {
        const char *key = ses_json_key(r->outcome, i, NULL);
        char name[128];
        size_t n = stem(key, "_number");
        if (!n || strncmp(key, "eval_", 5)) continue;
        double x[3] = { number_of(r, key, n, "_precision"), number_of(r, key, n, "_recall"),
                        number_of(r, key, n, "_f1") };
        if (isnan(x[2])) continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - 5), key + 5);
        put_class(b, name, x, ses_run_record_number(r, key));
        shown++;
    }
    return shown;
}

static void put_counted_classes(ses_buf *b, const ses_run_record *r, const int64_t *m, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        double correct = (double)m[c * n + c], predicted = 0, actual = 0;
        for (size_t k = 0; k < n; k++) predicted += (double)m[k * n + c], actual += (double)m[c * n + k];
        double x[3] = { predicted > 0 ? correct / predicted : 0, actual > 0 ? correct / actual : 0,
                        predicted + actual > 0 ? 2 * correct / (predicted + actual) : 0 };
        put_class(b, label_name(r, c), x, actual);
    }
}

static void put_classes(ses_buf *b, const ses_run_record *r, const int64_t *m, size_t n)
{
    ses_buf rows = { 0 };
    if (!put_scored_classes(&rows, r) && m) put_counted_classes(&rows, r, m, n);
    if (rows.len) {
        ses_buf_puts(
            b, "<div class=\"card wide\"><h3>Classes</h3><table class=\"full\"><thead><tr><th>class</th>"
               "<th class=\"n\">precision</th><th class=\"n\">recall</th><th class=\"n\">F1</th>"
               "<th class=\"n\">number</th></tr></thead><tbody>\n");
        ses_buf_append(b, rows.data, rows.len);
        ses_buf_puts(b, "</tbody></table></div>\n");
    }
    ses_buf_free(&rows);
}

static void put_matrix_row(ses_buf *b, const ses_run_record *r, const int64_t *m, size_t n, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += (double)m[i * n + k];
    ses_buf_puts(b, "<tr>");
    ses_html_heading(b, " scope=\"row\"", label_name(r, i));
    for (size_t k = 0; k < n; k++) {
        double share = sum > 0 ? (double)m[i * n + k] / sum : 0;
        ses_buf_appendf(b, "<td style=\"background:rgba(var(--%s),%.2f)\">%" PRId64, i == k ? "hit" : "miss",
                        0.04 + 0.4 * share, m[i * n + k]);
        if (n <= UPRIGHT_LABELS) ses_buf_appendf(b, "<small>%.0f %%</small>", 100 * share);
        ses_buf_puts(b, "</td>");
    }
    ses_buf_puts(b, "</tr>\n");
}

static void put_matrix(ses_buf *b, const ses_run_record *r, const int64_t *m, size_t n)
{
    ses_buf_appendf(b,
                    "<div class=\"card\"><h3>Confusion matrix</h3><div class=\"wide\">"
                    "<table class=\"matrix%s\"><caption>rows: true label, columns: predicted</caption>"
                    "<thead><tr><th></th>",
                    n > UPRIGHT_LABELS ? " tall" : "");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(b, "<th scope=\"col\"><span>");
        ses_html_text(b, label_name(r, i));
        ses_buf_puts(b, "</span></th>");
    }
    ses_buf_puts(b, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < n; i++) put_matrix_row(b, r, m, n, i);
    ses_buf_puts(b, "</tbody></table></div></div>\n");
}

/* ---- worst errors ---- */

static void put_value(ses_buf *b, const char *name, const char *class, const ses_json *v)
{
    char text[1200];
    ses_buf_appendf(b, "<span>%s: <b%s>", name, class);
    ses_html_text(b, ses_json_value_text(text, sizeof text, v));
    if (ses_json_string(v, NULL) && !*text) ses_buf_puts(b, "(empty)");
    ses_buf_puts(b, "</b></span>");
}

static void put_error_text(ses_buf *b, const ses_json *error, const char *key)
{
    const char *text = ses_json_string(ses_json_get(error, key), NULL);
    if (!text) return;
    ses_buf_puts(b, "<p>");
    ses_html_text(b, text);
    ses_buf_puts(b, "</p>");
}

/* The wrong words of a tagged text. */
static void put_words(ses_buf *b, const ses_json *words)
{
    static const char *const column[] = { "word", "true", "predicted" };
    static const char *const class[] = { "<td>", "<td class=\"good\">", "<td class=\"bad\">" };
    char text[1200];
    size_t n = ses_json_type_of(words) == SES_JSON_ARRAY ? ses_json_len(words) : 0;
    if (n)
        ses_buf_puts(
            b, "<table class=\"words\"><thead><tr><th>word</th><th>true</th><th>predicted</th></tr></thead>");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(b, "<tr>");
        for (size_t k = 0; k < SES_LEN(column); k++) {
            ses_buf_puts(b, class[k]);
            ses_html_text(
                b, ses_json_value_text(text, sizeof text, ses_json_get(ses_json_at(words, i), column[k])));
            ses_buf_puts(b, "</td>");
        }
        ses_buf_puts(b, "</tr>");
    }
    if (n) ses_buf_puts(b, "</table>");
}

static void put_error(ses_buf *b, const ses_json *error, const char *score_name)
{
    const ses_json *words = ses_json_get(error, "words");
    double score;
    int64_t line;
    ses_buf_puts(b, "<li>");
    put_error_text(b, error, "text");
    put_error_text(b, error, "pair");
    put_words(b, words);
    ses_buf_puts(b, "<div class=\"labels\">");
    if (!words) {
        put_value(b, "true", " class=\"good\"", ses_json_get(error, "true"));
        put_value(b, "predicted", " class=\"bad\"", ses_json_get(error, "predicted"));
    }
    if (ses_json_real(ses_json_get(error, "score"), &score)) {
        ses_buf_puts(b, "<span>");
        ses_html_text(b, score_name);
        ses_buf_appendf(b, " %.4g</span>", score);
    }
    if (ses_json_int(ses_json_get(error, "line"), &line))
        ses_buf_appendf(b, "<span>line %" PRId64 "</span>", line);
    ses_buf_puts(b, "</div></li>\n");
}

static void put_errors(ses_buf *b, const ses_run_record *r)
{
    const ses_json *root = r->errors ? ses_json_root(r->errors) : NULL, *worst = ses_json_get(root, "worst");
    const char *score = ses_json_string(ses_json_get(root, "score"), NULL), *eval = option_text(r, "eval");
    int64_t errors = 0, examples = 0;
    size_t n = ses_json_type_of(worst) == SES_JSON_ARRAY ? ses_json_len(worst) : 0;
    if (!n) return;
    ses_json_int(ses_json_get(root, "errors"), &errors);
    ses_json_int(ses_json_get(root, "examples"), &examples);
    ses_buf_appendf(b,
                    "<div class=\"card block\"><h3>Worst errors</h3><p class=\"note\">%" PRId64 " of %" PRId64
                    " examples",
                    errors, examples);
    if (eval) {
        ses_buf_puts(b, " of ");
        ses_html_text(b, ses_path_name_of(eval).s);
    }
    ses_buf_puts(b, " are wrong. The worst come first.</p><ol class=\"errors block\">\n");
    for (size_t i = 0; i < n; i++) {
        if (i == OPEN_ERRORS)
            ses_buf_appendf(b, "</ol><details><summary>%zu more</summary><ol class=\"errors block\">\n",
                            n - i);
        put_error(b, ses_json_at(worst, i), score ? score : "score");
    }
    ses_buf_puts(b, n > OPEN_ERRORS ? "</ol></details></div>\n" : "</ol></div>\n");
}

/* ---- next commands and settings ---- */

static void put_next(ses_buf *b, const ses_run_record *r)
{
    ses_next_command next[SES_MAX_NEXT_COMMANDS];
    size_t n = ses_next_commands(r, next);
    if (n) ses_buf_puts(b, "<div class=\"card block\"><h3>Next</h3><ul class=\"next\">\n");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(b, "<li><p>");
        ses_html_text(b, next[i].what);
        ses_buf_puts(b, "</p><code>");
        if (ses_buf_ok(&next[i].line, NULL)) ses_html_text(b, next[i].line.data);
        ses_buf_puts(b, "</code></li>\n");
        ses_buf_free(&next[i].line);
    }
    if (n) ses_buf_puts(b, "</ul></div>\n");
}

static void put_settings(ses_buf *b, const ses_run_record *r)
{
    const char *command = run_text(r, "command");
    if (!command && !r->options) return;
    ses_buf_puts(b, "<div class=\"card block command\"><h3>Command</h3>\n");
    if (command) {
        ses_buf_puts(b, "<code>");
        ses_html_text(b, command);
        ses_buf_puts(b, "</code>\n");
    }
    if (r->options) ses_buf_puts(b, "<details><summary>All settings</summary><table class=\"set\"><tbody>\n");
    for (size_t i = 0; r->options && i < ses_json_len(r->options); i++) {
        char text[400];
        ses_buf_puts(b, "<tr>");
        ses_html_cell(b, NULL, ses_json_key(r->options, i, NULL));
        ses_html_cell(b, NULL, ses_json_value_text(text, sizeof text, ses_json_at(r->options, i)));
        ses_buf_puts(b, "</tr>\n");
    }
    ses_buf_puts(b, r->options ? "</tbody></table></details></div>\n" : "</div>\n");
}

void ses_html_run_put(ses_buf *b, const ses_run_record *r, const ses_buf *charts)
{
    size_t n;
    int64_t *m = read_matrix(r, &n);
    put_head(b, r, charts->len > 0);
    put_tiles(b, r);
    ses_buf_append(b, charts->data, charts->len);
    ses_buf_puts(b, "<div class=\"pair\">\n");
    put_scores(b, r);
    put_classes(b, r, m, n);
    if (m && n > NARROW_LABELS) ses_buf_puts(b, "</div><div class=\"block\">\n");
    if (m && n <= MAX_MATRIX_LABELS) put_matrix(b, r, m, n);
    ses_buf_puts(b, "</div>\n");
    if (m && n > MAX_MATRIX_LABELS)
        ses_buf_appendf(b, "<p class=\"dim block\">The matrix of %zu labels is in all_results.json.</p>\n",
                        n);
    ses_free(m);
    put_errors(b, r);
    put_next(b, r);
    put_settings(b, r);
}
