/* Figures of one training run. */
#include "run_figures.h"

#include "analysis/probe/probe_fit.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "cli/ui/show_values.h"
#include "cli/ui/sparkline.h"
#include "hub/hub_name.h"
#include "next_commands.h"
#include "train/energy/energy_meter.h"
#include "tune/data/held_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Labels of a matrix: at most, with percentages, beside the scores. */
enum { MAX_MATRIX_LABELS = 30, PERCENT_LABELS = 8, NARROW_LABELS = 4 };
enum { OPEN_ERRORS = 8 };

static const char *run_text(const ses_run_record *r, const char *key)
{
    return r->run ? ses_json_string(ses_json_get(ses_json_root(r->run), key), NULL) : NULL;
}

static const char *option_text(const ses_run_record *r, const char *key)
{
    return r->options ? ses_json_string(ses_json_get(r->options, key), NULL) : NULL;
}

/* ---- tiles ---- */

static void put_item(ses_buf *b, const char *label, const char *text)
{
    if (!text || !*text) return;
    ses_buf_appendf(b, "%s%s%s%s", b->len ? " \xC2\xB7 " : "", label, *label ? " " : "", text);
}

/* The model and its data in a line. */
static void put_summary(ses_buf *b, const ses_run_record *r)
{
    char number[SES_NUMBER_TEXT];
    int64_t parameters;
    const char *train = option_text(r, "train"), *model = option_text(r, "model");
    put_item(b, "", run_text(r, "class"));
    if (r->run && ses_json_int(ses_json_get(ses_json_root(r->run), "parameters"), &parameters) &&
        parameters >= 0) {
        put_item(b, "", ses_grouped_text(number, (uint64_t)parameters));
        ses_buf_puts(b, " parameters");
    }
    put_item(b, "task", option_text(r, "task"));
    put_item(b, "objective", option_text(r, "objective"));
    put_item(b, "from", model ? ses_model_label_of(model).s : NULL);
    put_item(b, "trained on", train ? ses_path_name_of(train).s : NULL);
}

static void put_number_tile(ses_figure *f, const char *name, double x, const char *more)
{
    char text[40];
    if (isnan(x)) return;
    snprintf(text, sizeof text, "%.4f", x);
    ses_figure_tile(f, name, text, more);
}

/* The interval of an accuracy x of n examples. */
static void put_interval(double x, double n, char *out, size_t size)
{
    double low, high;
    ses_wilson_interval(x * n, n, &low, &high);
    snprintf(out, size, "%.0f examples: 95 %% interval %.3f to %.3f", n, low, high);
}

/* Values of the score's confidence interval, or of its best evaluation. */
static void put_score_tile(ses_figure *f, const ses_run_record *r)
{
    enum { FEW = 1000 }; /* examples: the interval of an accuracy is wider than a point or two */
    char key[96], more[96] = "";
    double n = ses_run_record_number(r, "eval_samples"), score = ses_run_record_final_score(r);
    if (!*r->metric) return;
    snprintf(key, sizeof key, "%s_low", r->metric);
    double low = ses_run_record_number(r, key), step = NAN, best = ses_run_record_best_score(r, &step);
    snprintf(key, sizeof key, "%s_high", r->metric);
    if (!isnan(low))
        snprintf(more, sizeof more, "%.4f to %.4f", low, ses_run_record_number(r, key));
    else if (!strcmp(r->metric, "eval_accuracy") && n >= 1 && n <= FEW && score >= 0 && score <= 1)
        put_interval(score, n, more, sizeof more);
    else if (!isnan(best))
        snprintf(more, sizeof more, "best evaluation at update %.0f", step);
    put_number_tile(f, r->metric + strlen("eval_"), ses_run_record_final_score(r), more);
}

static void put_energy_tile(ses_figure *f, const ses_run_record *r)
{
    double kwh = ses_run_record_number(r, "train_energy_kwh"), co2 = ses_run_record_number(r, "train_co2_kg");
    char total[SES_NUMBER_TEXT], more[64] = "";
    if (isnan(kwh)) return;
    if (!isnan(co2)) snprintf(more, sizeof more, "%.3g g CO2", 1000 * co2);
    ses_figure_tile(f, "energy", ses_watt_hours_text(total, 3.6e6 * kwh), more);
}

static void put_cost_tiles(ses_figure *f, const ses_run_record *r)
{
    double flops = ses_run_record_number(r, "train_flops"), price = ses_run_record_number(r, "train_price"),
           seconds = ses_run_record_number(r, "train_runtime");
    char text[SES_NUMBER_TEXT], speed[SES_NUMBER_TEXT], more[64] = "";
    if (flops > 0 && seconds > 0)
        snprintf(more, sizeof more, "%s per second", ses_flops_text(speed, flops / seconds));
    if (flops > 0) ses_figure_tile(f, "FLOPs", ses_flops_text(text, flops), more);
    snprintf(more, sizeof more, "%.4g", price);
    if (!isnan(price)) ses_figure_tile(f, "price", more, "");
}

/* How the energy is known, and its parts. */
static void put_energy_note(ses_figure *f, const ses_run_record *r)
{
    double gpu = ses_run_record_number(r, "train_energy_gpu_kwh"),
           cpu = ses_run_record_number(r, "train_energy_cpu_kwh");
    const char *source = ses_json_string(ses_json_get(r->outcome, "train_energy_source"), NULL);
    char of_cpu[SES_NUMBER_TEXT], of_gpu[SES_NUMBER_TEXT];
    if (source && !isnan(gpu) && !isnan(cpu))
        ses_figure_note(f, "Energy: CPU %s, GPU %s; %s.", ses_watt_hours_text(of_cpu, 3.6e6 * cpu),
                        ses_watt_hours_text(of_gpu, 3.6e6 * gpu), source);
    else if (source)
        ses_figure_note(f, "Energy: %s.", source);
}

/* The mean of a series over the updates (after, to]. */
static double mean_between(const ses_series *s, double after, double to)
{
    double sum = 0, n = 0;
    for (size_t i = 0; s && i < s->n; i++)
        if (s->step[i] > after && s->step[i] <= to) sum += s->value[i], n++;
    return n > 0 ? sum / n : NAN;
}

/* The evaluation loss rises from its minimum to the end, while the training loss falls. */
static void put_overfitting(ses_figure *f, const ses_run_record *r)
{
    char text[40], more[120];
    const ses_series *eval = ses_run_record_series(r, "eval_loss"), *train = ses_run_record_series(r, "loss");
    size_t least = 0;
    if (!eval || !train || eval->n < 3) return;
    for (size_t i = 1; i < eval->n; i++)
        if (eval->value[i] < eval->value[least]) least = i;
    if (least + 2 >= eval->n) return; /* at least two evaluations after it */
    size_t last = eval->n - 1;
    double before = mean_between(train, least ? eval->step[least - 1] : 0, eval->step[least]),
           after = mean_between(train, eval->step[last - 1], eval->step[last]);
    if (!(after < before) || !(eval->value[last] > eval->value[least])) return;
    snprintf(text, sizeof text, "from update %.0f", eval->step[least]);
    snprintf(more, sizeof more, "evaluation loss %.4f to %.4f, training loss %.4f to %.4f",
             eval->value[least], eval->value[last], before, after);
    ses_figure_tile(f, "overfitting", text, more);
}

void ses_run_tiles_put(ses_report *report, const ses_run_record *r, const char *title)
{
    const ses_series *loss = ses_run_record_series(r, "loss");
    double seconds = ses_run_record_number(r, "train_runtime"),
           memory = ses_run_record_number(r, "train_peak_memory_bytes"),
           rate = ses_run_record_number(r, "train_tokens_per_second"),
           epochs = ses_run_record_number(r, "epoch");
    char text[SES_NUMBER_TEXT + 8], human[SES_NUMBER_TEXT], more[64] = "";
    ses_buf summary = { 0 };
    put_summary(&summary, r);
    ses_figure *f = ses_report_tiles(report, title, summary.data ? summary.data : "");
    ses_buf_free(&summary);
    put_score_tile(f, r);
    if (strcmp(r->metric, "eval_loss"))
        put_number_tile(f, "evaluation loss", ses_run_record_number(r, "eval_loss"), "");
    put_number_tile(f, "training loss", ses_run_record_number(r, "train_loss"), "mean over the run");
    put_overfitting(f, r);
    if (loss && loss->step[loss->n - 1] < 1e15) {
        if (!isnan(epochs)) snprintf(more, sizeof more, "%.3g epochs", epochs);
        ses_figure_tile(f, "updates", ses_grouped_text(text, (uint64_t)loss->step[loss->n - 1]), more);
    }
    more[0] = 0;
    if (!isnan(rate)) snprintf(more, sizeof more, "%s tokens/s", ses_count_text(human, (uint64_t)rate));
    if (!isnan(seconds)) ses_figure_tile(f, "time", ses_duration_text(text, seconds), more);
    if (memory > 0) ses_figure_tile(f, "peak memory", ses_bytes_text(text, (uint64_t)memory), "");
    put_energy_tile(f, r);
    put_cost_tiles(f, r);
    put_energy_note(f, r);
}

/* ---- scores ---- */

/* Keys that describe the evaluation and are not scores. */
/* Length of the key without the suffix; 0: another suffix. */
static size_t stem(const char *key, const char *suffix)
{
    size_t n = strlen(key), k = strlen(suffix);
    return n > k && !strcmp(key + n - k, suffix) ? n - k : 0;
}

/* Numbers beside the scores: counts, times, speeds. */
static bool is_evaluation_info(const char *key)
{
    return !strcmp(key, "eval_confidence") || !strcmp(key, "eval_samples") ||
           !strncmp(key, "eval_samples_", strlen("eval_samples_")) || stem(key, "_runtime") ||
           stem(key, "_per_second");
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

static void put_scores(ses_report *report, const ses_run_record *r)
{
    ses_figure *f = NULL;
    double level = ses_run_record_number(r, "eval_confidence");
    for (size_t i = 0; i < ses_json_len(r->outcome); i++) {
        const char *key = ses_json_key(r->outcome, i, NULL);
        double x;
        if (strncmp(key, "eval_", 5) || !ses_json_real(ses_json_at(r->outcome, i), &x) || is_bound(r, key) ||
            is_evaluation_info(key) || is_class_score(r, key) || repeats_score(r, key, x))
            continue;
        if (!f)
            f = ses_report_table(report, "Scores", isnan(level) ? "score|>value" : "score|>value|>interval");
        ses_figure_cell(f, "%s", key + 5);
        ses_figure_cell(f, "%.4f", x);
        if (isnan(level)) continue;
        double low = number_of(r, key, strlen(key), "_low");
        if (isnan(low))
            ses_figure_cell(f, "%s", "");
        else
            ses_figure_cell(f, "%.4f\xE2\x80\x93%.4f", low, number_of(r, key, strlen(key), "_high"));
    }
    ses_figure_show(f, SES_SHOW_SMALL | SES_SHOW_FIRST);
    if (f && !isnan(level)) ses_figure_note(f, "With %g %% confidence intervals.", 100 * level);
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

static void put_class(ses_figure *f, const char *name, const double x[3], double number)
{
    ses_figure_cell(f, "%s", name);
    for (size_t i = 0; i < 3; i++) ses_figure_cell(f, "%.4f", x[i]);
    ses_figure_cell(f, "%.0f", number);
}

/* Classes with scores of their own: labels, or types of entities. Returns their number; f may be NULL. */
static size_t put_scored_classes(ses_figure *f, const ses_run_record *r)
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
        put_class(f, name, x, ses_run_record_number(r, key));
        shown++;
    }
    return shown;
}

static void put_counted_classes(ses_figure *f, const ses_run_record *r, const int64_t *m, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        double correct = (double)m[c * n + c], predicted = 0, actual = 0;
        for (size_t k = 0; k < n; k++) predicted += (double)m[k * n + c], actual += (double)m[c * n + k];
        double x[3] = { predicted > 0 ? correct / predicted : 0, actual > 0 ? correct / actual : 0,
                        predicted + actual > 0 ? 2 * correct / (predicted + actual) : 0 };
        put_class(f, label_name(r, c), x, actual);
    }
}

static void put_classes(ses_report *report, const ses_run_record *r, const int64_t *m, size_t n)
{
    bool scored = put_scored_classes(NULL, r) > 0;
    if (!scored && !m) return;
    ses_figure *f = ses_report_table(report, "Classes", "class|>precision|>recall|>F1|>number");
    ses_figure_show(f, SES_SHOW_SMALL);
    if (scored)
        put_scored_classes(f, r);
    else
        put_counted_classes(f, r, m, n);
}

/* Shares of the rows, with counts and, in small matrices, percentages. */
static void put_matrix(ses_report *report, const ses_run_record *r, const int64_t *m, size_t n)
{
    ses_arena arena = { 0 };
    float *value = ses_arena_array(&arena, n * n, sizeof *value, NULL);
    const char **name = ses_arena_array(&arena, n, sizeof *name, NULL),
               **cell = ses_arena_array(&arena, n * n, sizeof *cell, NULL);
    char(*text)[48] = ses_arena_array(&arena, n * n, sizeof *text, NULL);
    for (size_t i = 0; value && name && cell && text && i < n * n; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += (double)m[i / n * n + k];
        value[i] = sum > 0 ? (float)((double)m[i] / sum) : 0;
        snprintf(text[i], sizeof *text, n <= PERCENT_LABELS ? "%" PRId64 "\n%.0f %%" : "%" PRId64, m[i],
                 100 * (double)value[i]);
        cell[i] = text[i];
        name[i % n] = label_name(r, i % n);
    }
    if (value && name && cell && text)
        ses_figure_show(ses_report_heatmap(report, "Confusion matrix",
                                           &(ses_figure_matrix){ .rows = (int64_t)n,
                                                                 .cols = (int64_t)n,
                                                                 .value = value,
                                                                 .row_name = name,
                                                                 .col_name = name,
                                                                 .row_label = "true label",
                                                                 .col_label = "predicted",
                                                                 .cell = cell,
                                                                 .scale = SES_SCALE_MATCH }),
                        n <= NARROW_LABELS ? SES_SHOW_SMALL : 0);
    ses_arena_free(&arena);
}

/* ---- worst errors ---- */

static void put_value(ses_figure *f, const ses_json *v)
{
    char text[1200];
    ses_json_value_text(text, sizeof text, v);
    ses_figure_cell(f, "%s", v && !*text ? "(empty)" : v ? text : "");
}

static void put_text(ses_figure *f, const char *text) { ses_figure_cell(f, "%s", text ? text : ""); }

static const ses_json *words_of(const ses_json *error)
{
    const ses_json *words = ses_json_get(error, "words");
    return ses_json_type_of(words) == SES_JSON_ARRAY && ses_json_len(words) ? words : NULL;
}

/* Columns that only some tasks have: a second text, the wrong words of a tagged text. */
typedef struct error_columns {
    bool pair, words;
} error_columns;

/* Row i of an error: its values, or its i-th wrong word. */
static void put_error(ses_figure *f, const ses_json *error, error_columns has, size_t i)
{
    const ses_json *words = words_of(error), *of = has.words && words ? ses_json_at(words, i) : error;
    char number[40] = "";
    double score;
    int64_t line;
    put_text(f, i ? NULL : ses_json_string(ses_json_get(error, "text"), NULL));
    if (has.pair) put_text(f, i ? NULL : ses_json_string(ses_json_get(error, "pair"), NULL));
    if (has.words) put_value(f, ses_json_get(of, "word"));
    put_value(f, ses_json_get(of, "true"));
    put_value(f, ses_json_get(of, "predicted"));
    if (!i && ses_json_real(ses_json_get(error, "score"), &score))
        snprintf(number, sizeof number, "%.4g", score);
    put_text(f, number);
    number[0] = 0;
    if (!i && ses_json_int(ses_json_get(error, "line"), &line))
        snprintf(number, sizeof number, "%" PRId64, line);
    put_text(f, number);
}

/* The errors [from, to) as a table. */
static ses_figure *put_error_table(ses_report *report, const ses_json *root, const char *title, size_t from,
                                   size_t to)
{
    const ses_json *worst = ses_json_get(root, "worst"), *first = ses_json_at(worst, 0);
    const char *score = ses_json_string(ses_json_get(root, "score"), NULL);
    error_columns has = { ses_json_get(first, "pair") != NULL, words_of(first) != NULL };
    ses_buf columns = { 0 };
    ses_buf_appendf(&columns, "text%s%s|+true|-predicted|>%s|>line", has.pair ? "|second text" : "",
                    has.words ? "|word" : "", score && !strchr(score, '|') ? score : "score");
    ses_figure *f = ses_buf_ok(&columns, NULL) ? ses_report_table(report, title, columns.data) : NULL;
    ses_buf_free(&columns);
    for (size_t i = from; f && i < to; i++) {
        const ses_json *error = ses_json_at(worst, i), *words = has.words ? words_of(error) : NULL;
        for (size_t k = 0; k < (words ? ses_json_len(words) : 1); k++) put_error(f, error, has, k);
    }
    return f;
}

static void put_errors(ses_report *report, const ses_run_record *r)
{
    const ses_json *root = r->errors ? ses_json_root(r->errors) : NULL, *worst = ses_json_get(root, "worst");
    const char *eval = option_text(r, "eval");
    if (ses_held_out_is(eval)) eval = NULL;
    int64_t errors = 0, examples = 0;
    size_t n = ses_json_type_of(worst) == SES_JSON_ARRAY ? ses_json_len(worst) : 0;
    char more[40];
    if (!n) return;
    ses_json_int(ses_json_get(root, "errors"), &errors);
    ses_json_int(ses_json_get(root, "examples"), &examples);
    ses_figure *f = put_error_table(report, root, "Worst errors", 0, n < OPEN_ERRORS ? n : OPEN_ERRORS);
    ses_figure_show(f, SES_SHOW_CARDS);
    ses_figure_note(f, "%" PRId64 " of %" PRId64 " examples%s%s are wrong. The worst come first.", errors,
                    examples, eval ? " of " : "", eval ? ses_path_name_of(eval).s : "");
    if (n <= OPEN_ERRORS) return;
    snprintf(more, sizeof more, "%zu more", n - OPEN_ERRORS);
    ses_figure_show(put_error_table(report, root, more, OPEN_ERRORS, n), SES_SHOW_CARDS | SES_SHOW_FOLDED);
}

/* ---- next commands and settings ---- */

static void put_next(ses_report *report, const ses_run_record *r)
{
    ses_next_command next[SES_MAX_NEXT_COMMANDS];
    size_t n = ses_next_commands(r, next);
    ses_figure *f = n ? ses_report_table(report, "Next", "to|`command") : NULL;
    ses_figure_show(f, SES_SHOW_CARDS);
    for (size_t i = 0; i < n; i++) {
        put_text(f, next[i].what);
        put_text(f, ses_buf_ok(&next[i].line, NULL) ? next[i].line.data : NULL);
        ses_buf_free(&next[i].line);
    }
}

static void put_settings(ses_report *report, const ses_run_record *r)
{
    const char *command = run_text(r, "command");
    if (command) put_text(ses_report_table(report, "Command", "`"), command);
    ses_figure *f = r->options ? ses_report_table(report, "All settings", "setting|value") : NULL;
    ses_figure_show(f, SES_SHOW_FOLDED);
    for (size_t i = 0; i < ses_json_len(r->options); i++) {
        char text[400];
        put_text(f, ses_json_key(r->options, i, NULL));
        put_text(f, ses_json_value_text(text, sizeof text, ses_json_at(r->options, i)));
    }
}

void ses_run_figures_put(ses_report *report, const ses_run_record *r)
{
    size_t n;
    int64_t *m = read_matrix(r, &n);
    put_scores(report, r);
    put_classes(report, r, m, n);
    if (m && n <= MAX_MATRIX_LABELS) put_matrix(report, r, m, n);
    if (m && n > MAX_MATRIX_LABELS)
        ses_report_note(report, "The confusion matrix of %zu labels is in all_results.json of %s.", n,
                        r->name);
    ses_free(m);
    put_errors(report, r);
    put_next(report, r);
    put_settings(report, r);
}
