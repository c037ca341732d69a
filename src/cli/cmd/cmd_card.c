/* card: writes or checks a model card. */
#define _XOPEN_SOURCE 700
#include "base/alloc.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"
#include "hub/card.h"
#include "hub/hub_name.h"
#include "sesame/model.h"
#include "sesame/sentence.h"

#include <stdlib.h>
#include <string.h>

typedef struct args {
    bool check, json, overwrite;
    const char *license, *output, *title;
    ses_opt_list languages, datasets;
} args;

static const ses_opt opt[] = {
    SES_OPT_FLAG(args, check, "check", "check README.md of the folder instead: missing and invalid fields"),
    SES_OPT_TEXT(args, license, "license", "NAME", "license: apache-2.0, mit, other"),
    SES_OPT_LIST(args, languages, "language", "CODE", "language of the texts, ISO 639: en"),
    SES_OPT_LIST(args, datasets, "dataset", "NAME", "training data"),
    SES_OPT_TEXT(args, title, "title", "TEXT", "title; default: the name of the folder"),
    SES_OPT_TEXT(args, output, "output", "FILE",
                 "write this file, '-': standard output; default: README.md in the folder", .letter = 'o',
                 .alias = "to"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace an existing file"),
    SES_OPT_JSON(args, json),
};

/* ---- check ---- */

typedef struct check_job {
    ses_json_writer *w; /* NULL: text */
    size_t errors, hints;
} check_job;

static bool on_problem(void *ctx, ses_card_level level, const char *what)
{
    check_job *j = ctx;
    const char *kind = level == SES_CARD_ERROR ? "error" : "hint";
    *(level == SES_CARD_ERROR ? &j->errors : &j->hints) += 1;
    if (j->w) {
        ses_json_begin_object(j->w);
        ses_json_member_string(j->w, "level", kind);
        ses_json_member_string(j->w, "message", what);
        ses_json_end_object(j->w);
    } else {
        printf("%s: ", kind);
        ses_put_escaped(stdout, what);
        putchar('\n');
    }
    return true;
}

static bool check(const ses_call *c, const char *dir, ses_err *e)
{
    const args *a = c->args;
    check_job j = { 0 };
    ses_card card;
    bool found = false;
    if (!ses_card_load(&card, dir, &found, e)) return false;
    bool ok = !a->json || (j.w = ses_json_writer_new(0, e));
    if (j.w) ses_json_begin_array(j.w);
    if (ok && found)
        ses_card_check(&card, dir, on_problem, &j);
    else if (ok)
        on_problem(&j, SES_CARD_ERROR, "README.md is missing; 'sesame card MODEL' writes one");
    if (j.w) {
        ses_json_end_array(j.w);
        ok = ses_json_writer_print(j.w, e);
    } else if (ok && !c->quiet) {
        printf("%zu errors, %zu hints\n", j.errors, j.hints);
    }
    ses_card_free(&card);
    return ok && !j.errors;
}

/* ---- writing ---- */

typedef struct details {
    const char *dir, *library, *task;
    ses_model *model;
    char *base; /* name of the base model of an adapter; NULL: none */
    ses_buf title;
} details;

static char *base_name(const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, "adapter_config.json", e);
    ses_json_doc *d = path ? ses_json_load_object(path, 16 << 20, e) : NULL;
    const char *name = ses_json_string(ses_json_get(ses_json_root(d), "base_model_name_or_path"), NULL);
    char *base = d ? ses_strdup(name ? ses_model_label_of(name).s : "", e) : NULL;
    if (base && name && ses_hub_name_is(name)) ses_free(base), base = ses_strdup(name, e);
    ses_json_free(d);
    ses_free(path);
    return base;
}

static bool read_facts(details *f, const char *dir, const args *a, ses_device *dev, ses_err *e)
{
    ses_card none = { 0 };
    ses_buf forms = { 0 };
    bool adapter = ses_model_is_adapter(dir), listed = ses_card_list_own_forms(dir, &forms, e);
    *f = (details){ .dir = dir, .task = ses_card_task(&none, dir) };
    f->library = ses_sentence_is_encoder_dir(dir) ? "sentence-transformers"
                 : adapter                        ? "peft"
                 : forms.len                      ? "sesame"
                                                  : "transformers";
    ses_buf_free(&forms);
    if (!listed) return false;
    f->model = ses_model_open(dir, dev, &(ses_model_options){ .check_only = true }, e);
    if (f->model && adapter) f->base = base_name(dir, e);
    char *real = realpath(dir, NULL); /* "." has no name */
    ses_buf_puts(&f->title, a->title ? a->title : ses_model_label_of(real ? real : dir).s);
    free(real); /* realpath's */
    return f->model && (!adapter || f->base) && ses_buf_ok(&f->title, e);
}

static void put_list(ses_buf *b, const char *key, const ses_opt_list *l)
{
    if (!l->n) return;
    ses_buf_appendf(b, "%s:\n", key);
    for (size_t i = 0; i < l->n; i++) {
        ses_buf_puts(b, "- ");
        ses_card_put_yaml(b, l->item[i]);
        ses_buf_put(b, '\n');
    }
}

static void put_metadata(ses_buf *b, const details *f, const args *a)
{
    ses_buf_puts(b, "---\n");
    if (a->license) {
        ses_buf_puts(b, "license: ");
        ses_card_put_yaml(b, a->license);
        ses_buf_put(b, '\n');
    }
    put_list(b, "language", &a->languages);
    ses_buf_appendf(b, "library_name: %s\n", f->library);
    if (f->task) ses_buf_appendf(b, "pipeline_tag: %s\n", f->task);
    if (f->base && *f->base) {
        ses_buf_puts(b, "base_model: ");
        ses_card_put_yaml(b, f->base);
        ses_buf_put(b, '\n');
    }
    put_list(b, "datasets", &a->datasets);
    ses_buf_puts(b, "tags:\n- sesame\n---\n");
}

static void put_labels(ses_buf *b, const ses_model *m)
{
    int64_t n = ses_model_label_count(m);
    if (!ses_json_get(ses_model_config(m), "id2label") || n < 2 || n > 100) return;
    ses_buf_puts(b, "\nLabels: ");
    for (int64_t i = 0; i < n; i++) {
        const char *name = ses_model_label_name(m, i);
        if (i) ses_buf_puts(b, ", ");
        ses_card_put_cell(b, name ? name : "-");
    }
    ses_buf_puts(b, ".\n");
}

/* The table of scores.json, as `sesame models` reads it. */
static void put_scores(ses_buf *b, const char *dir)
{
    char *path = ses_path_join(dir, "scores.json", NULL);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load_object(path, 1 << 20, NULL) : NULL;
    const ses_json *list = ses_json_get(ses_json_root(d), "scores");
    for (size_t i = 0; i < ses_json_len(list); i++) {
        const char *name = ses_json_string(ses_json_get(ses_json_at(list, i), "name"), NULL);
        double x;
        if (!name || !ses_json_real(ses_json_get(ses_json_at(list, i), "value"), &x)) continue;
        if (!i) ses_buf_puts(b, "\n| score | value |\n|---|---|\n");
        ses_buf_puts(b, "| ");
        ses_card_put_cell(b, name);
        ses_buf_appendf(b, " | %.6g |\n", x);
    }
    ses_json_free(d);
    ses_free(path);
}

static void put_body(ses_buf *b, const details *f)
{
    char number[SES_NUMBER_TEXT];
    const ses_model *m = f->model;
    ses_buf_puts(b, "\n# ");
    ses_card_put_cell(b, f->title.data);
    ses_buf_appendf(b, "\n\n%s (%s) with %s parameters.\n\n| | |\n|---|---|\n", ses_model_class_name(m),
                    ses_model_type(m), ses_grouped_text(number, ses_store_element_count(ses_model_store(m))));
    ses_buf_appendf(b, "| layers | %lld |\n| vocabulary | %s tokens |\n", (long long)ses_model_layer_count(m),
                    ses_grouped_text(number, ses_model_vocab_size(m)));
    ses_buf_appendf(b, "| longest sequence | %s tokens |\n",
                    ses_grouped_text(number, ses_model_max_tokens(m)));
    if (f->base && *f->base) {
        ses_buf_puts(b, "| adapter of | ");
        ses_card_put_cell(b, f->base);
        ses_buf_puts(b, " |\n");
    }
    put_labels(b, m);
    put_scores(b, f->dir);
    ses_buf_puts(b, "\n## Usage\n\n```\n");
    ses_card_put_usage(f->task, "FOLDER", b);
    ses_buf_puts(b, "\n```\n");
}

static bool write_card(const ses_call *c, const details *f, ses_err *e)
{
    const args *a = c->args;
    ses_hub_name hub;
    ses_buf b = { 0 };
    if (!a->output && ses_hub_name_of_snapshot(f->dir, &hub))
        return ses_fail(e, SES_EUSAGE, "%s is in the Hugging Face cache, which is not changed: add -o FILE",
                        hub.id);
    put_metadata(&b, f, a);
    put_body(&b, f);
    char *path = a->output ? ses_strdup(a->output, e) : ses_path_join(f->dir, "README.md", e);
    bool ok = path && ses_buf_ok(&b, e), to_stdout = ok && !strcmp(path, "-");
    if (to_stdout)
        ok = ses_stdout_write(b.data, b.len, e);
    else if (ok && ses_path_exists(path) && !a->overwrite)
        ok = ses_fail(e, SES_EUSAGE, "%s: exists; --check checks it, --overwrite replaces it", path);
    else if (ok)
        ok = ses_file_write(path, b.data, b.len, a->overwrite, e);
    if (ok && !to_stdout && !c->quiet) {
        fprintf(stderr, "%s written; describe training data and limitations in it.\n", path);
        if (!a->license) fputs("It names no license: --license adds one.\n", stderr);
    }
    ses_free(path);
    ses_buf_free(&b);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    const char *dir = c->operands[0];
    details f = { 0 };
    if (a->check) return check(c, dir, e);
    ses_device *dev = ses_device_open("cpu", NULL, e);
    bool ok = dev && read_facts(&f, dir, a, dev, e) && write_card(c, &f, e);
    ses_model_free(f.model);
    ses_device_free(dev);
    ses_buf_free(&f.title);
    ses_free(f.base);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame card my-model --license mit --language en --dataset glue", "write my-model/README.md" },
    { "sesame card my-model --check", "missing and invalid fields; exit status 1 if there are errors" },
    { "sesame card ORG/NAME -o -", "a card for a model of the Hugging Face cache, on standard output" },
    { 0 },
};

const ses_command ses_command_card = {
    .name = "card",
    .usage = "MODEL",
    .summary = "write or check a model card",
    .description = "Writes README.md of a model folder: front matter for the Hugging Face hub (license, "
                   "language, library, task, "
                   "base model, data) and a text with architecture, labels, scores (scores.json) and usage. "
                   "Training data and "
                   "limitations are yours to add.\n\n"
                   "--check reads README.md and prints errors (invalid values, no license) and hints "
                   "(missing fields that the "
                   "hub recommends). 'sesame finetune' and 'sesame pretrain' write cards by themselves.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .has_model_operand = true,
    .run = run,
};
