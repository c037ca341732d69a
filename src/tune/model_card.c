/* Model card, README.md: metadata for the Hugging Face hub, labels, scores, data, settings, energy, usage. */
#include "finetune_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number_text.h"
#include "hub/card.h"
#include "hub/hub_name.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LABELS = 40, MAX_MATRIX = 12 };

static const struct {
    const ses_head *head;
    const char *pipeline;
} uses[] = {
    { &ses_head_sequence_classification, "text-classification" },
    { &ses_head_masked_lm, "text-classification" }, /* by patterns */
    { &ses_head_token_classification, "token-classification" },
    { &ses_head_question_answering, "question-answering" },
    { &ses_head_multiple_choice, "multiple-choice" },
    { &ses_head_causal_lm, "text-generation" },
    { &ses_head_seq2seq_lm, "text2text-generation" },
};

static size_t find_use(const ses_head *head)
{
    for (size_t i = 0; i < SES_LEN(uses); i++)
        if (uses[i].head == head) return i;
    return SES_LEN(uses);
}

void ses_finetune_usage(const ses_finetune *f, const char *dir, char *buf, size_t size)
{
    size_t i = find_use(f->task->head);
    ses_buf b = { 0 };
    ses_card_put_usage(i < SES_LEN(uses) ? uses[i].pipeline : NULL, dir, &b);
    snprintf(buf, size, "%s", b.len ? b.data : "");
    ses_buf_free(&b);
}

static void put_row(ses_buf *b, const char *name, const char *value)
{
    ses_buf_appendf(b, "| %s | ", name);
    ses_card_put_cell(b, value);
    ses_buf_puts(b, " |\n");
}

/* ---- metadata ---- */

static void put_metadata(ses_buf *b, const ses_finetune *f, bool own_form)
{
    const ses_finetune_options *o = &f->o;
    const ses_scores *s = &f->report.scores;
    size_t use = find_use(f->task->head);
    const char *task = use < SES_LEN(uses) ? uses[use].pipeline : f->task->name;
    ses_buf_appendf(b, "---\nlibrary_name: %s\npipeline_tag: %s\ntags:\n- sesame\n- %s\n",
                    f->tuner->classifier || own_form ? "sesame" : "transformers", task, f->task->name);
    ses_buf_appendf(b, "co2_eq_emissions:\n  emissions: %.6g\n  source: ",
                    1000 * ses_energy_co2(&f->log.energy, &f->log.options.energy)); /* grams */
    ses_card_put_yaml(b, f->log.energy.source);
    ses_buf_appendf(b, "\n  training_type: %s\n",
                    o->config || o->embed || f->tuner->classifier ? "from scratch" : "fine-tuning");
    if (f->eval_rows && s->n) {
        ses_buf_puts(b, "model-index:\n- name: ");
        ses_card_put_yaml(b, ses_path_name_of(o->run.output).s);
        ses_buf_appendf(b, "\n  results:\n  - task:\n      type: %s\n    dataset:\n      name: ", task);
        ses_card_put_yaml(b, o->data.task);
        ses_buf_puts(b, "\n      type: ");
        ses_card_put_yaml(b, ses_path_name_of(f->eval_name).s);
        ses_buf_puts(b, "\n    metrics:\n");
        for (size_t i = 0; i < s->n; i++) {
            if (isnan(s->item[i].value) || !ses_eval_report_is_overall(&f->report, i)) continue;
            ses_buf_puts(b, "    - type: ");
            ses_card_put_yaml(b, s->item[i].name);
            ses_buf_appendf(b, "\n      value: %.6g\n", s->item[i].value);
        }
    }
    ses_buf_puts(b, "---\n\n");
}

/* ---- labels and scores ---- */

static void put_labels(ses_buf *b, const ses_finetune *f)
{
    const ses_finetuner *t = f->tuner;
    if (!f->task->has_label_names || !t->n_labels) return;
    ses_buf_puts(b, "\nLabels: ");
    for (size_t i = 0; i < t->n_labels && i < MAX_LABELS; i++) {
        if (i) ses_buf_puts(b, ", ");
        ses_card_put_cell(b, t->label[i]);
    }
    if (t->n_labels > MAX_LABELS) ses_buf_appendf(b, ", ... (%zu in config.json)", t->n_labels);
    ses_buf_puts(b, ".\n");
}

static void put_scores(ses_buf *b, const ses_finetune *f)
{
    const ses_eval_report *r = &f->report;
    if (!f->eval_rows) return;
    ses_buf_puts(b, "\n## Scores\n\nOn ");
    ses_card_put_cell(b, ses_path_name_of(f->eval_name).s);
    ses_buf_appendf(b, ", %zu examples", r->n);
    if (f->overlap.shared) ses_buf_appendf(b, ", of which %zu are training examples", f->overlap.shared);
    if (!f->tuner->classifier && !f->o.last_weights)
        ses_buf_puts(b, ", which also selected the best checkpoint");
    if (r->level > 0) ses_buf_appendf(b, "; %g %% bootstrap confidence intervals", 100 * r->level);
    ses_buf_puts(b, ":\n\n| score | value |\n|---|---|\n");
    if (!isnan(r->loss)) ses_buf_appendf(b, "| loss | %.4f |\n", r->loss);
    for (size_t i = 0; i < r->scores.n; i++) {
        const ses_score *s = &r->scores.item[i];
        if (!ses_eval_report_is_overall(r, i)) continue;
        ses_buf_puts(b, "| ");
        ses_card_put_cell(b, s->name);
        ses_buf_appendf(b, " | %.4f", s->value);
        if (r->level > 0) ses_buf_appendf(b, " (%.4f to %.4f)", s->low, s->high);
        ses_buf_puts(b, " |\n");
    }
    if (!r->n_classes || r->n_classes > MAX_LABELS) return;
    ses_buf_puts(b, "\n| class | precision | recall | F1 | number |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < r->n_classes; i++) {
        const ses_class_score *c = &r->classes[i];
        ses_buf_puts(b, "| ");
        ses_card_put_cell(b, c->name);
        ses_buf_appendf(b, " | %.4f | %.4f | %.4f | %.0f |\n", c->precision, c->recall, c->f1, c->number);
    }
}

static void put_matrix(ses_buf *b, const ses_finetune *f)
{
    const ses_eval_report *r = &f->report;
    size_t n = f->tuner->n_labels;
    if (!f->eval_rows || !r->confusion || n > MAX_MATRIX) return;
    ses_buf_puts(b, "\nConfusion matrix, rows: true label, columns: predicted.\n\n| |");
    for (size_t i = 0; i < n; i++) {
        ses_buf_put(b, ' ');
        ses_card_put_cell(b, f->tuner->label[i]);
        ses_buf_puts(b, " |");
    }
    ses_buf_puts(b, "\n|---|");
    for (size_t i = 0; i < n; i++) ses_buf_puts(b, "---|");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(b, "\n| ");
        ses_card_put_cell(b, f->tuner->label[i]);
        ses_buf_puts(b, " |");
        for (size_t k = 0; k < n; k++) ses_buf_appendf(b, " %" PRId64 " |", r->confusion[i * n + k]);
    }
    ses_buf_put(b, '\n');
}

/* ---- training and usage ---- */

static void put_cost(ses_buf *b, const ses_finetune *f)
{
    ses_run_log_put_card(&f->log, b, ses_card_put_cell);
    if (f->o.command) ses_buf_appendf(b, "\n```\n%s\n```\n", f->o.command);
}

/* train_size, shots. */
static void put_sample(ses_buf *b, const ses_finetune *f)
{
    const ses_finetune_options *o = &f->o;
    if (!o->train_size && !o->shots) return;
    ses_buf_appendf(b, "| sample | %zu examples, drawn by the seed", ses_examples_count(f->train_rows));
    if (f->whole_train) ses_buf_appendf(b, " from %zu", ses_examples_count(f->whole_train));
    if (o->shots) ses_buf_appendf(b, "; %" PRId64 " of each class", o->shots);
    ses_buf_puts(b, " |\n");
}

static void put_classifier(ses_buf *b, const ses_finetune *f)
{
    const ses_classifier_kind *k = f->tuner->classifier->kind;
    ses_buf_puts(b, "\n## Training\n\n| | |\n|---|---|\n");
    ses_buf_appendf(b, "| method | %s: %s |\n| data | ", k->name, k->summary);
    ses_card_put_cell(b, ses_path_name_of(f->train_name).s);
    ses_buf_appendf(b, ", %zu texts |\n| seed | %" PRId64 " |\n", ses_examples_count(f->train_rows),
                    f->o.run.seed);
    put_sample(b, f);
    put_cost(b, f);
}

static void put_training(ses_buf *b, const ses_finetune *f)
{
    const ses_finetune_options *o = &f->o;
    const ses_training_options *r = &o->run;
    ses_buf_puts(b, "\n## Training\n\n| | |\n|---|---|\n");
    put_row(b, "base model",
            o->model                ? ses_model_label_of(o->model).s
            : o->config || o->embed ? "random weights"
            : f->student_dir        ? ses_model_label_of(f->student_dir).s
                                    : "an open model");
    ses_buf_puts(b, "| data | ");
    ses_card_put_cell(b, ses_path_name_of(f->train_name).s);
    ses_buf_appendf(b, ", %" PRId64 " sequences, %" PRId64 " tokens |\n", ses_dataset_size(f->train.data),
                    ses_dataset_tokens(f->train.data));
    put_sample(b, f);
    ses_buf_appendf(b, "| updates | %" PRId64 " of %" PRId64 ", %s %" PRId64,
                    ses_trainer_state(f->trainer)->updates, ses_trainer_total_updates(f->trainer),
                    r->tokens_per_batch ? "tokens per batch" : "batch size",
                    r->tokens_per_batch ? r->tokens_per_batch : r->batch_size);
    if (r->accumulate > 1) ses_buf_appendf(b, ", %" PRId64 " batches per update", r->accumulate);
    ses_buf_puts(b, " |\n");
    ses_buf_appendf(
        b,
        "| optimizer | %s, learning rate %g, schedule %s, warmup %g, weight decay %g, maximum gradient "
        "norm %g |\n| seed | %" PRId64 " |\n",
        r->optimizer, r->lr, r->schedule, r->warmup, r->weight_decay, r->max_grad_norm, r->seed);
    ses_transfer_put_card(&o->transfer, b);
    if (ses_finetune_pruning(f))
        ses_buf_appendf(b, "| pruning | %s, blocks %s, %.4g %% of the layers' weights kept |\n",
                        o->pruning.criterion, o->pruning.block ? o->pruning.block : "32x32",
                        100 * ses_finetune_pruning(f)->kept);
    put_cost(b, f);
}

/* forms: of ses_card_list_own_forms. */
static void put_usage(ses_buf *b, const ses_finetune *f, const ses_buf *forms)
{
    char usage[200];
    ses_finetune_usage(f, "FOLDER", usage, sizeof usage);
    ses_buf_appendf(b, "\n## Usage\n\n```\n%s\n```\n", usage);
    if (f->tuner->classifier) return;
    size_t use = find_use(f->task->head);
    bool plain = f->o.transfer.adapter == SES_ADAPT_NONE && f->o.transfer.head == SES_HEAD_DEFAULT;
    if (forms->len)
        ses_buf_appendf(b, "\nSesame reads this folder, current versions of transformers do not: %s.\n",
                        forms->data);
    else if (f->task->head == &ses_head_masked_lm)
        ses_buf_puts(b, "\nThis folder is a masked language model that answers the pattern of patterns.json: "
                        "`sesame` classifies with it, transformers opens the language model.\n");
    else if (plain && use < SES_LEN(uses) && f->task->head != &ses_head_multiple_choice)
        ses_buf_appendf(
            b, "\n```python\nfrom transformers import pipeline\nmodel = pipeline(\"%s\", \"FOLDER\")\n```\n",
            uses[use].pipeline);
    ses_transfer_put_usage(&f->o.transfer, f->tuner->model, b);
}

/* Class or method, and its size. */
static void put_kind(ses_buf *b, const ses_finetune *f)
{
    char number[SES_NUMBER_TEXT];
    const ses_classifier *c = f->tuner->classifier;
    int64_t n = !c                    ? ses_store_element_count(ses_model_store(f->tuner->model))
                : c->kind->parameters ? c->kind->parameters(c->self)
                                      : 0;
    ses_buf_appendf(b, "\n\n%s with %s parameters, trained with Sesame. Task %s: %s.\n",
                    c ? c->kind->name : ses_model_class_name(f->tuner->model), ses_grouped_text(number, n),
                    f->task->name, f->task->summary);
}

bool ses_model_card_write(const ses_finetune *f, const char *dir, ses_err *e)
{
    ses_buf b = { 0 }, forms = { 0 };
    if (!ses_card_list_own_forms(dir, &forms, e)) return ses_buf_free(&forms), false;
    put_metadata(&b, f, forms.len > 0);
    ses_buf_puts(&b, "# ");
    ses_card_put_cell(&b, ses_path_name_of(f->o.run.output).s);
    put_kind(&b, f);
    put_labels(&b, f);
    put_scores(&b, f);
    put_matrix(&b, f);
    f->tuner->classifier ? put_classifier(&b, f) : put_training(&b, f);
    put_usage(&b, f, &forms);
    char *path = ses_path_join(dir, "README.md", e);
    bool ok = path && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, false, e);
    ses_free(path);
    ses_buf_free(&forms);
    ses_buf_free(&b);
    return ok;
}
