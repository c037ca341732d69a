/* data: shows statistics and examples of labeled files. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/inspect/data_stats.h"
#include "cli/train/data_notes.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "tune/finetune_data.h"
#include "tune/finetune_options.h"

#include <string.h>

typedef struct args {
    ses_data_options data;
    int64_t show;
    bool list, json;
} args;

static const ses_opt opt[] = {
    SES_OPT_TASK(args, data, false),
    SES_OPT_INCLUDE(args, data, ses_data_option_table),
    SES_OPT_INT(args, show, "show", "3", 0, 1000000, "number of examples to show", .letter = 'n'),
    SES_OPT_FLAG(args, list, "list", "list the benchmarks"),
    SES_OPT_JSON(args, json),
};

static bool print_benchmark(const ses_benchmark *b, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", b->name);
    ses_json_member_string(w, "title", b->title);
    ses_json_member_string(w, "kind", ses_data_kind_name(b->spec.kind));
    ses_json_member_string(w, "train", b->train);
    ses_json_member_string(w, "dev", b->dev);
    ses_json_member_string(w, "test", b->test);
    ses_json_member_string(w, "text", b->spec.text_a);
    ses_json_member_string(w, "pair", b->spec.text_b);
    ses_json_member_string(w, "label", b->spec.label);
    ses_json_member_string(w, "labels", b->spec.label_names ? b->spec.label_names : b->spec.label_values);
    ses_json_member_string(w, "metrics", b->spec.metrics);
    ses_json_member_string(w, "best", b->spec.best_metric);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool list_benchmarks(const ses_call *c, bool json, ses_err *e)
{
    ses_text_table *table = json ? NULL : ses_text_table_new("Name|Kind|Metric|Title", e);
    bool ok = json || table;
    const ses_benchmark *b;
    for (size_t i = 0; ok && (b = ses_benchmark_at(i)); i++) {
        if (json) {
            ok = print_benchmark(b, e);
            continue;
        }
        ses_text_table_cell(table, "%s", b->name);
        ses_text_table_cell(table, "%s", ses_data_kind_name(b->spec.kind));
        ses_text_table_cell(table, "%s", b->spec.best_metric);
        ses_text_table_cell(table, "%s", b->title);
    }
    if (ok && table) ok = ses_text_table_print(table, stdout, &c->out, 0, e);
    ses_text_table_free(table);
    return ok;
}

/* Fails with the first error that would end a training run. */
static bool check_gaps(const ses_examples *d, const char *path, ses_err *e)
{
    const ses_data_gap *g = NULL, *next;
    for (size_t i = 0; (next = ses_examples_gap(d, i)) && !g; i++)
        if (next->is_error) g = next;
    size_t more = ses_examples_dropped(d);
    if (!g) return true;
    return more > 1 ? ses_fail(e, SES_EFORMAT,
                               "%s: line %llu: %s; %zu rows have errors (see Gaps), --skip-bad drops them",
                               path, (unsigned long long)g->line[0], g->what, more)
                    : ses_fail(e, SES_EFORMAT, "%s: line %llu: %s; --skip-bad drops the row", path,
                               (unsigned long long)g->line[0], g->what);
}

/* Shows a file. *like: the examples of the first file, whose labels the others must have; NULL: this is
 * the first. */
static bool show_file(const ses_call *c, const ses_data_view *v, ses_examples **like, ses_err *e)
{
    const args *a = c->args;
    ses_data_stats s = { 0 };
    ses_data_spec spec = *v->spec;
    bool drops = spec.bad_rows == SES_BAD_ROWS_DROP;
    if (!drops) spec.bad_rows = SES_BAD_ROWS_COUNT;
    ses_examples *d = ses_data_open(&spec, v->path, *like, e);
    bool ok = d && ses_data_stats_of(d, &s, e);
    if (ok && *like && !a->json) puts("");
    ok = ok && (a->json ? ses_data_print_json(d, &s, v, e) : ses_data_show(d, &s, v, &c->out, e));
    ses_data_stats_free(&s);
    if (ok) ses_note_columns(c, d, v->path);
    if (ok && !*like && ses_examples_label_count(d)) ses_note_labels(c, d, v->path);
    ok = ok && (drops || check_gaps(d, v->path, e));
    if (*like || !ok)
        ses_examples_free(d);
    else
        *like = d;
    return ok;
}

static bool show_folder(const ses_call *c, const char *dir, ses_data_view *v, ses_examples **like, ses_err *e)
{
    if (!v->benchmark)
        return ses_fail(
            e, SES_EUSAGE,
            "%s is a folder: expected a file, or a benchmark with --task (see sesame data --list)", dir);
    const char *const file[3] = { v->benchmark->train, v->benchmark->dev, v->benchmark->test };
    static const char *const split[3] = { "train", "dev", "test" };
    bool ok = true, any = false;
    for (int i = 0; ok && i < 3; i++) {
        char *path = file[i] ? ses_path_join(dir, file[i], e) : NULL;
        if (file[i] && !path) return false;
        if (path && ses_path_exists(path)) {
            any = true;
            v->path = path;
            v->split = split[i];
            ok = show_file(c, v, like, e);
        }
        ses_free(path);
    }
    if (!ok || any) return ok;
    return ses_fail(e, SES_EIO, "%s: no file of %s found; expected %s%s%s%s%s", dir, v->benchmark->name,
                    file[0] ? file[0] : "", file[0] && (file[1] || file[2]) ? ", " : "",
                    file[1] ? file[1] : "", file[1] && file[2] ? ", " : "", file[2] ? file[2] : "");
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    if (a->list) return list_benchmarks(c, a->json, e);
    if (!c->n_operands) return ses_fail(e, SES_EUSAGE, "expected a FILE, or --list for the benchmarks");
    ses_data_spec spec;
    ses_data_view v = { .spec = &spec, .show = a->show };
    ses_examples *like = NULL;
    if (!ses_data_options_spec(&a->data, &spec, &v.benchmark, e)) return false;
    bool ok = true;
    for (int i = 0; ok && i < c->n_operands; i++) {
        v.path = c->operands[i];
        v.split = NULL;
        ok = ses_path_is_dir(v.path) ? show_folder(c, v.path, &v, &like, e) : show_file(c, &v, &like, e);
    }
    ses_examples_free(like);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame data --list", "list the benchmarks" },
    { "sesame data SST-2 --task sst2", "the train and dev files of SST-2 in a folder" },
    { "sesame data train.csv dev.csv --text review --label stars", "two files with the same labels" },
    { "sesame data notes.tsv --no-header --text 2 --label 1 -n 10", "columns by number; show ten examples" },
    { "sesame data ner.txt --task tag --tag-column 4", "CoNLL columns" },
    { 0 },
};

const ses_command ses_command_data = {
    .name = "data",
    .usage = "[FILE_OR_FOLDER...]",
    .summary = "show dataset statistics and examples",
    .description =
        "Reads labeled files as training does and shows the number of examples, the label "
        "distribution, text lengths, duplicates and contradictory labels, and the first examples. An "
        "error that would stop a training run is reported with its line.\n\n"
        "A benchmark (--task) defines files, columns, labels and metrics; a folder means its files of "
        "the benchmark. Options override single settings. If no benchmark is named, --task gives the kind "
        "of task, and --text, --pair and --label the columns.\n\n"
        "Several files are read with the labels of the first.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .run = run,
};
