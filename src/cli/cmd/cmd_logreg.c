/* logreg: logistic regression on feature vectors, with test set, cross-validation and a grid of C. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/logreg_run.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"

#include <stdlib.h>
#include <string.h>

typedef struct args {
    const char *label, *c, *test_features, *test_labels, *output;
    int64_t folds, seed, iterations;
    double test_size, tolerance;
    bool no_header, balanced, no_bias, json, overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, label, "label", "COLUMN", "column of the labels: a name or a number from 1",
                 .def = "label"),
    SES_OPT_FLAG(args, no_header, "no-header", "the file of labels has no header"),
    SES_OPT_TEXT(args, c, "c", "NUMBER[,NUMBER...]",
                 "inverse of regularization strength; several: cross-validation selects the best",
                 .letter = 'C', .def = "1"),
    SES_OPT_INT(args, folds, "folds", "5", 0, 1000,
                "folds of cross-validation on the training part; 0: none"),
    SES_OPT_REAL(args, test_size, "test-size", "0.25", 0, 0.95, "fraction of the examples used as test set"),
    SES_OPT_TEXT(args, test_features, "test-features", "FILE", "features of a separate test set"),
    SES_OPT_TEXT(args, test_labels, "test-labels", "FILE", "labels of a separate test set"),
    SES_OPT_FLAG(args, balanced, "balanced",
                 "weight classes equally, regardless of their numbers of examples"),
    SES_OPT_FLAG(args, no_bias, "no-bias", "no intercept"),
    SES_OPT_INT(args, iterations, "iterations", "1000", 1, 1000000, "maximum L-BFGS iterations per fit"),
    SES_OPT_REAL(args, tolerance, "tolerance", "1e-7", 1e-12, 1,
                 "stop when all components of the gradient of the mean loss are below"),
    SES_OPT_INT(args, seed, "seed", "1", 0, 0, "random seed of the split"),
    SES_OPT_TEXT(args, output, "output", "FILE", "write the model as JSON: classes, weights, biases",
                 .letter = 'o', .alias = "to"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace an existing file"),
    SES_OPT_JSON(args, json),
};

static bool parse_grid(const char *text, ses_logreg_plan *p, ses_err *e)
{
    while (*text) {
        char *end;
        double c = strtod(text, &end);
        if (end == text || (*end && *end != ',') || !(c > 0) || !(c < 1e300))
            return ses_fail(e, SES_EUSAGE, "--c: expected positive numbers separated by ','");
        if (p->n_tried == SES_MAX_C)
            return ses_fail(e, SES_EUSAGE, "--c: at most %d numbers", (int)SES_MAX_C);
        p->tried[p->n_tried++].c = c;
        text = *end ? end + 1 : end;
    }
    if (!p->n_tried) return ses_fail(e, SES_EUSAGE, "--c: expected a number");
    if (p->n_tried > 1 && !p->folds) return ses_fail(e, SES_EUSAGE, "--c: several numbers need --folds");
    return true;
}

/* ---- text output ---- */

static bool show_grid(const ses_logreg_plan *p, const ses_logreg_result *r, const ses_term *t, ses_err *e)
{
    ses_text_table *table = ses_text_table_new(">C|>Accuracy|>Deviation|", e);
    if (!table) return false;
    for (size_t k = 0; k < p->n_tried; k++) {
        const ses_logreg_try *x = &p->tried[k];
        ses_text_table_cell(table, "%g", x->c);
        ses_text_table_cell(table, "%.4f", x->mean);
        ses_text_table_cell(table, "%.4f", x->deviation);
        ses_text_table_cell(table, "%s%s", k == r->best ? "best" : "",
                            x->n_unconverged ? " (not converged: increase --iterations)" : "");
    }
    printf("\nCross-validation, %d folds\n", (int)p->folds);
    bool ok = ses_text_table_print(table, stdout, t, 2, e);
    ses_text_table_free(table);
    return ok;
}

static bool show_confusion(const ses_logreg_data *d, const ses_logreg_result *r, const ses_term *t,
                           ses_err *e)
{
    enum { MAX_CLASSES = 12 };
    size_t n = r->model.classes;
    char name[32], buf[24], head[16 * (MAX_CLASSES + 1)] = "true \\ predicted";
    if (n > MAX_CLASSES) return true;
    for (size_t k = 0; k < n; k++) {
        size_t used = strlen(head);
        ses_escape_controls(name, 12, ses_logreg_label(d, k, buf));
        snprintf(head + used, sizeof head - used, "|>%s", name);
    }
    ses_text_table *table = ses_text_table_new(head, e);
    if (!table) return false;
    for (size_t g = 0; g < n; g++) {
        ses_escape_controls(name, sizeof name, ses_logreg_label(d, g, buf));
        ses_text_table_cell(table, "%s", name);
        for (size_t k = 0; k < n; k++) ses_text_table_cell(table, "%lld", (long long)r->confusion[g * n + k]);
    }
    puts("\nConfusion matrix of the test set");
    bool ok = ses_text_table_print(table, stdout, t, 2, e);
    ses_text_table_free(table);
    return ok;
}

static bool show(const ses_logreg_data *d, const ses_logreg_plan *p, const ses_logreg_result *r,
                 const ses_term *t, ses_err *e)
{
    static const char *const wanted[] = { "accuracy", "f1_macro", "matthews_correlation" };
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    ses_show_line(t, "Examples", "%s with %zu features, %zu classes", ses_grouped_text(a, (int64_t)d->x.rows),
                  d->x.cols, d->classes);
    ses_show_line(t, "Split", "%s for training, %s for testing", ses_grouped_text(a, (int64_t)r->n_train),
                  ses_grouped_text(b, (int64_t)r->n_test));
    if (p->folds && !show_grid(p, r, t, e)) return false;
    puts("");
    ses_show_line(t, "C", "%g, %s after %lld iterations", p->tried[r->best].c,
                  r->model.converged ? "converged" : "NOT converged (increase --iterations)",
                  (long long)r->model.iterations);
    ses_show_line(t, "Training", "accuracy %.4f", r->train_accuracy);
    for (size_t i = 0; i < r->scores.n; i++)
        for (size_t k = 0; k < SES_LEN(wanted); k++)
            if (!strcmp(r->scores.item[i].name, wanted[k]))
                ses_show_line(t, k ? "" : "Test", "%s %.4f (95 %%: %.4f to %.4f)", wanted[k],
                              r->scores.item[i].value, r->scores.item[i].low, r->scores.item[i].high);
    if (!r->n_test) return true;
    ses_show_line(t, "", "baseline, most common class: accuracy %.4f", r->baseline);
    return show_confusion(d, r, t, e);
}

/* ---- JSON output ---- */

static void put_model(ses_json_writer *w, const ses_logreg_data *d, const ses_logreg_plan *p,
                      const ses_logreg_result *r)
{
    const ses_logreg *m = &r->model;
    char buf[24];
    ses_json_member_real(w, "c", p->tried[r->best].c);
    ses_json_member_array(w, "classes");
    for (size_t c = 0; c < m->classes; c++) ses_json_put_string(w, ses_logreg_label(d, c, buf));
    ses_json_end_array(w);
    ses_json_member_array(w, "coef");
    for (size_t k = 0; k < m->rows; k++) {
        ses_json_begin_array(w);
        for (size_t i = 0; i < m->width; i++) ses_json_put_real(w, m->weight[k * m->width + i]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_member_array(w, "intercept");
    for (size_t k = 0; k < m->rows; k++) ses_json_put_real(w, m->bias[k]);
    ses_json_end_array(w);
}

static bool print_json(const ses_logreg_data *d, const ses_logreg_plan *p, const ses_logreg_result *r,
                       ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "examples", (int64_t)d->x.rows);
    ses_json_member_int(w, "features", (int64_t)d->x.cols);
    ses_json_member_int(w, "classes", (int64_t)d->classes);
    ses_json_member_int(w, "train", (int64_t)r->n_train);
    ses_json_member_int(w, "test", (int64_t)r->n_test);
    ses_json_member_array(w, "cross_validation");
    for (size_t k = 0; p->folds && k < p->n_tried; k++) {
        ses_json_begin_object(w);
        ses_json_member_real(w, "c", p->tried[k].c);
        ses_json_member_real(w, "accuracy", p->tried[k].mean);
        ses_json_member_real(w, "deviation", p->tried[k].deviation);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_member_real(w, "best_c", p->tried[r->best].c);
    ses_json_member_bool(w, "converged", r->model.converged);
    ses_json_member_int(w, "iterations", r->model.iterations);
    ses_json_member_real(w, "train_accuracy", r->train_accuracy);
    for (size_t i = 0; i < r->scores.n; i++) {
        const ses_score *s = &r->scores.item[i];
        ses_json_member_array(w, s->name);
        ses_json_put_real(w, s->value);
        ses_json_put_real(w, s->low);
        ses_json_put_real(w, s->high);
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool save(const char *path, bool overwrite, const ses_logreg_data *d, const ses_logreg_plan *p,
                 const ses_logreg_result *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    put_model(w, d, p, r);
    ses_json_end_object(w);
    return ses_json_writer_save(w, NULL, path, overwrite, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_logreg_plan p = { .options = { .tolerance = a->tolerance,
                                       .iterations = a->iterations,
                                       .no_bias = a->no_bias,
                                       .balanced = a->balanced },
                          .folds = a->folds,
                          .test_size = a->test_size,
                          .seed = (uint64_t)a->seed };
    ses_data_spec spec = {
        .kind = SES_DATA_CLASSIFY, .text_a = a->label, .label = a->label, .no_header = a->no_header
    };
    ses_logreg_data d = { 0 }, t = { 0 };
    ses_logreg_result r = { 0 };
    if (!parse_grid(a->c, &p, e)) return false;
    if (p.folds == 1) return ses_fail(e, SES_EUSAGE, "--folds: expected 0 or at least 2");
    if (!a->test_features != !a->test_labels)
        return ses_fail(e, SES_EUSAGE, "--test-features and --test-labels: set both");
    if (a->output && !a->overwrite && ses_path_exists(a->output))
        return ses_fail(e, SES_EIO, "%s: exists already; --overwrite replaces it", a->output);
    bool ok = ses_logreg_data_read(&d, c->operands[0], c->operands[1], &spec, NULL, e);
    if (ok && a->test_features) ok = ses_logreg_data_read(&t, a->test_features, a->test_labels, &spec, &d, e);
    ok = ok && ses_logreg_plan_run(&d, a->test_features ? &t : NULL, &p, &r, e) &&
         (a->json ? print_json(&d, &p, &r, e) : show(&d, &p, &r, &c->out, e));
    if (ok && a->output) ok = save(a->output, a->overwrite, &d, &p, &r, e);
    ses_logreg_result_free(&r);
    ses_logreg_data_free(&d);
    ses_logreg_data_free(&t);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame logreg vectors.npy train.tsv", "predict the column label from the rows of vectors.npy" },
    { "sesame logreg vectors.npy train.tsv -C 0.01,0.1,1,10,100", "choose C by cross-validation" },
    { "sesame logreg x.npy y.npy --test-features x2.npy --test-labels y2.npy -o model.json",
      "a separate test set; save the model" },
    { 0 },
};

const ses_command ses_command_logreg = {
    .name = "logreg",
    .usage = "FEATURES LABELS",
    .summary = "train and test logistic regression",
    .description =
        "FEATURES is a NumPy file (.npy, one row per example) or a table of numbers without a header; "
        "LABELS is a NumPy vector of integers or a table with a column of labels. This makes a "
        "classifier from the outputs of a model without training the model.\n\n"
        "The objective is scikit-learn's: C times the sum of the losses plus half the squared norm of "
        "the weights, multinomial. The test set and the folds are stratified and drawn from the seed: "
        "the same command gives the same numbers on every machine. Confidence intervals are "
        "bootstrap percentiles over the test examples.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
