/* prune: removes heads, feed-forward rows and layers; without --output, ranks heads (the analysis prune). */
#include "analysis/prune/prune.h"
#include "analysis_command.h"
#include "base/json/json_helpers.h"
#include "base/number.h"
#include "cli/train/option_setting.h"
#include "cli/train/predictor_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "tune/prune/part_pruning.h"

#include <math.h>
#include <string.h>

typedef struct args {
    ses_analysis_args analysis; /* first: ses_analysis_command reads it */
    ses_predictor_args tune;
    const char *data, *output;
    double ffn;
    int64_t multiple;
    int order, scope;
    bool has_ffn, fill, no_score;
} args;

static const ses_opt opt[] = {
    SES_OPT_REAL(args, ffn, "ffn", NULL, 0, 0, "part of the feed-forward rows to remove",
                 .was_set = offsetof(args, has_ffn), .value = "X"),
    SES_OPT_TEXT(args, analysis.layers, "layers", "N", "number of layers to keep"),
    SES_OPT_CHOICE(
        args, order, "layers-from", "top", "top|bottom|alternate|importance",
        "layers that are removed first; alternate: layers at equal distances stay; importance: by the "
        "gradient",
        .group = "details"),
    SES_OPT_TEXT(args, data, "data", "FILE", "labeled examples that measure importance and score"),
    SES_OPT_TEXT(args, output, "output", "DIR", "folder of the pruned model", .letter = 'o', .alias = "to"),
    SES_OPT_FLAG(args, fill, "fill",
                 "write zeros at full size instead of smaller weights, for libraries that cannot read these",
                 .group = "details"),
    SES_OPT_FLAG(args, no_score, "no-score", "with --output: do not evaluate --data before and after",
                 .group = "details"),
    SES_OPT_CHOICE(args, scope, "scope", "model", "model|layer",
                   "compare heads and rows of all layers, or remove the same part of each layer",
                   .group = "details"),
    SES_OPT_INT(args, multiple, "multiple", "32", 1, 4096,
                "feed-forward widths are multiples of N, which suits the kernels", .value = "N",
                .group = "details"),
    SES_OPT_TASK(args, tune.data, false),
    SES_OPT_TEXT(args, analysis.model, "model", "DIR", "the model, instead of the first argument",
                 .letter = 'm', .is_model = true),
    SES_OPT_ADAPTER(args, analysis.adapter),
    SES_OPT_INT(args, analysis.seed, "seed", "42", 0, 9e15, "seed of the choice of examples",
                .group = "pages"),
    SES_OPT_TEXT(args, analysis.html, "html", "FILE", "write a page that needs no other file",
                 .group = "pages"),
    SES_OPT_TEXT(args, analysis.svg, "svg", "FILE", "write the pictures", .group = "pages"),
    SES_OPT_TEXT(args, analysis.json, "json", "FILE",
                 "write JSON to standard output instead of the drawing, or to FILE (*.json)", .letter = 'j',
                 .implicit_value = "-", .value_ending = ".json"),
    SES_OPT_FLAG(args, analysis.overwrite, "overwrite", "replace existing files"),
    SES_OPT_INCLUDE(args, tune, ses_predictor_option_table),
    SES_OPT_INCLUDE(args, analysis.compute, ses_device_option_table),
};

/* --data without --task: as in the run that trained the model. */
static ses_json_doc *open_stored(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_predictor_args t = a->tune;
    t.model = a->analysis.adapter ? a->analysis.adapter : a->analysis.model;
    return a->output && a->data ? ses_predictor_args_open_stored(&t, c, NULL, e) : NULL;
}

static bool read_number(const char *name, const char *text, double *out, ses_err *e)
{
    *out = 0;
    if (!text || ses_parse_number(text, strlen(text), out)) return true;
    return ses_fail(e, SES_EUSAGE, "--%s %s: expected a number", name, text);
}

/* ---- the result ---- */

static void put_figures(ses_json_writer *w, const char *name, const ses_part_pruning_figures *f,
                        const char *metric)
{
    ses_json_member_object(w, name);
    ses_json_member_int(w, "layers", f->layers);
    ses_json_member_int(w, "heads", f->heads);
    ses_json_member_int(w, "ffn_rows", f->rows);
    ses_json_member_int(w, "parameters", f->parameters);
    ses_json_member_real(w, "flops", f->flops);
    if (*metric) ses_json_member_real(w, metric, f->score);
    ses_json_end_object(w);
}

static bool print_json(const ses_part_pruning_result *r, const args *a, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "output", a->output);
    ses_json_member_bool(w, "fill", a->fill);
    ses_json_member_int(w, "examples", r->examples);
    ses_json_member_string(w, "metric", *r->metric ? r->metric : NULL);
    put_figures(w, "before", &r->before, r->metric);
    put_figures(w, "after", &r->after, r->metric);
    ses_json_end_object(w);
    if (strcmp(a->analysis.json, "-") == 0) return ses_json_writer_print(w, e);
    return ses_json_writer_save(w, NULL, a->analysis.json, a->analysis.overwrite, e);
}

static void put_count(ses_text_table *t, const char *name, int64_t before, int64_t after)
{
    char n[SES_NUMBER_TEXT];
    ses_text_table_cell(t, "%s", name);
    ses_text_table_cell(t, "%s", ses_grouped_text(n, before));
    ses_text_table_cell(t, "%s", ses_grouped_text(n, after));
    ses_text_table_cell(t, "%.0f %%", before ? 100 * (double)after / (double)before : 100);
}

static void put_real(ses_text_table *t, const char *name, double before, double after, double unit)
{
    ses_text_table_cell(t, "%s", name);
    ses_text_table_cell(t, "%.4g", before / unit);
    ses_text_table_cell(t, "%.4g", after / unit);
    ses_text_table_cell(t, "%.0f %%", 100 * after / before);
}

static bool print_table(const ses_part_pruning_result *r, const args *a, const ses_call *c, ses_err *e)
{
    const ses_part_pruning_figures *x = &r->before, *y = &r->after;
    ses_text_table *t = ses_text_table_new("|>before|>after|>left", e);
    if (!t) return false;
    put_count(t, "layers", x->layers, y->layers);
    put_count(t, "heads", x->heads, y->heads);
    put_count(t, "feed-forward rows", x->rows, y->rows);
    put_count(t, "parameters", x->parameters, y->parameters);
    put_real(t, "size in f32, MB", 4 * (double)x->parameters, 4 * (double)y->parameters, 1e6);
    put_real(t, "GFLOPs of the layers, 128 tokens", x->flops, y->flops, 1e9);
    if (*r->metric) {
        ses_text_table_cell(t, "%s", r->metric);
        ses_text_table_cell(t, "%.4f", x->score);
        ses_text_table_cell(t, "%.4f", y->score);
        ses_text_table_cell(t, "%+.4f", y->score - x->score);
    }
    bool ok = ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    if (ok && !c->quiet && a->fill)
        fprintf(stderr,
                "%s has zeros in place of removed heads and rows: parameters, size and GFLOPs are those "
                "of whole layers.\n",
                a->output);
    return ok;
}

/* ---- the command ---- */

typedef struct progress {
    const ses_call *c;
    ses_progress line;
} progress;

static bool on_event(void *ctx, const ses_training_event *ev)
{
    progress *p = ctx;
    if (ev->kind == SES_TRAINING_NOTICE && (ev->is_warning || !p->c->quiet))
        fprintf(stderr, "%s%s\n", ev->is_warning ? "sesame: " : "", ev->text);
    if (ev->kind != SES_TRAINING_EVALUATING) return true;
    p->line.total = ev->total;
    ses_progress_show(&p->line, ev->done);
    if (ev->done == ev->total) ses_progress_end(&p->line);
    return true;
}

/* Options of the removal that another one makes useful. */
static bool check_removal(const args *a, const ses_call *c, ses_err *e)
{
    static const struct {
        const char *names, *needs;
    } row[] = { { "task", "data FILE" }, { "layers-from", "layers N" }, { "multiple", "ffn X" } };
    const bool given[] = { a->data != NULL, a->analysis.layers != NULL, a->has_ffn };
    const char *name;
    for (size_t i = 0; i < SES_LEN(row); i++)
        if (!given[i] && (name = ses_option_changed(opt, SES_LEN(opt), row[i].names, a)))
            return ses_fail(e, SES_EUSAGE, "--%s has no effect without --%s", name, row[i].needs);
    name = a->data ? NULL
                   : ses_option_changed(ses_predictor_option_table.opt, ses_predictor_option_table.n, NULL,
                                        &a->tune);
    if (name) return ses_fail(e, SES_EUSAGE, "--%s has no effect without --data FILE", name);
    const ses_analysis *x = c->command->analysis;
    const ses_prune_args *ranked = c->task_args;
    if (ranked->text || ranked->pair || ranked->label)
        return ses_fail(e, SES_EUSAGE, "--%s belongs to --heads without --output: use --%s COLUMN",
                        ranked->text   ? "column"
                        : ranked->pair ? "pair-column"
                                       : "label-column",
                        ranked->text   ? "text"
                        : ranked->pair ? "pair"
                                       : "label");
    name = ses_option_changed(x->opt, x->n_opt, "keep|step|write|fraction", ranked);
    if (!name) name = ses_option_changed(opt, SES_LEN(opt), "html|svg", a);
    return !name || ses_fail(e, SES_EUSAGE, "--%s belongs to --heads without --output", name);
}

static bool read_options(const args *a, const ses_call *c, ses_part_pruning_options *o, ses_err *e)
{
    const ses_prune_args *ranked = c->task_args;
    double layers;
    *o = (ses_part_pruning_options){ .data = a->data,
                                     .output = a->output,
                                     .ffn = a->ffn,
                                     .order = (ses_layer_order)a->order,
                                     .by_layer = a->scope == 1,
                                     .multiple = a->multiple,
                                     .max_examples = ranked->examples,
                                     .form = a->fill ? SES_REDUCED_FILLED : SES_REDUCED_SMALL,
                                     .overwrite = a->analysis.overwrite,
                                     .no_score = a->no_score };
    if (ranked->heads && !strcmp(ranked->heads, "rank"))
        return ses_fail(e, SES_EUSAGE,
                        "--heads needs a value with --output: the part of the heads to remove");
    if (!check_removal(a, c, e) || !read_number("heads", ranked->heads, &o->heads, e) ||
        !read_number("layers", a->analysis.layers, &layers, e))
        return false;
    if (a->analysis.layers && (layers < 1 || layers != floor(layers) || layers > 1e6))
        return ses_fail(e, SES_EUSAGE, "--layers %s: expected the number of layers to keep, from 1 on",
                        a->analysis.layers);
    o->layers = (int64_t)layers;
    return true;
}

static bool remove_parts(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    const char *adapter = a->analysis.adapter,
               *model = a->analysis.model ? a->analysis.model : c->operands[0];
    int operands = c->n_operands + (a->analysis.model != NULL);
    ses_part_pruning_options o;
    ses_part_pruning_result r;
    if (operands != 1)
        return operands ? ses_fail(e, SES_EUSAGE,
                                   "unexpected argument '%s': with --output, the data are --data FILE",
                                   c->operands[c->n_operands - 1])
                        : ses_fail(e, SES_EUSAGE, "missing argument: MODEL");
    if (!read_options(a, c, &o, e)) return false;
    progress p = { .c = c, .line = ses_progress_start(stderr, &c->err, c->quiet, "sequences", 0) };
    o.predictor = ses_predictor_defaults();
    o.predictor.data = a->tune.data, o.predictor.task = a->tune.task;
    o.predictor.base = adapter ? model : NULL;
    o.predictor.seed = a->analysis.seed;
    o.predictor.on_event = on_event, o.predictor.ctx = &p;
    ses_device_options d = ses_compute_device_options(&a->analysis.compute);
    ses_device *dev = ses_device_open(a->analysis.compute.device, &d, e);
    bool ok = dev && ses_part_pruning_run(adapter ? adapter : model, &o, dev, &r, e);
    ses_progress_end(&p.line);
    ses_device_free(dev);
    if (!ok) return false;
    return a->analysis.json ? print_json(&r, a, e) : print_table(&r, a, c, e);
}

/* Options that only the removal has. */
static bool check_analysis(const args *a, ses_err *e)
{
    const char *given =
        a->has_ffn ? "ffn"
                   : ses_option_changed(opt, SES_LEN(opt),
                                        "data|layers|layers-from|fill|no-score|scope|multiple|task", a);
    if (!given)
        given =
            ses_option_changed(ses_predictor_option_table.opt, ses_predictor_option_table.n, NULL, &a->tune);
    return !given || ses_fail(e, SES_EUSAGE, "--%s requires --output DIR", given);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    return a->output ? remove_parts(c, e) : check_analysis(a, e) && ses_analysis_command(c, e);
}

const ses_command ses_command_prune = {
    .name = "prune",
    .usage = "",
    .summary = "remove heads, feed-forward rows and layers that a model does not need",
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .analysis = &ses_analysis_prune,
    .open_stored = open_stored,
    .run = run,
};
