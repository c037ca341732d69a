/* The model card, README.md: what the Hugging Face hub reads at its top, and for people labels, data,
 * settings, scores, energy and how to load it. */
#include "finetune_command.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LABELS = 40, MATRIX = 12, SCORES = 12 };

static const struct {
    const ses_head *head;
    const char *pipeline, *sample;
} uses[] = {
    { &ses_head_sequence_classification, "text-classification", "'some text'" },
    { &ses_head_token_classification, "token-classification", "'some text'" },
    { &ses_head_question_answering, "question-answering", "'some question' 'some passage'" },
    { &ses_head_multiple_choice, "multiple-choice", "'a beginning' 'one end' 'another'" },
    { &ses_head_causal_lm, "text-generation", "'a beginning'" },
    { &ses_head_seq2seq_lm, "text2text-generation", "'some text'" },
};

static size_t use_of(const ses_head *head)
{
    for (size_t i = 0; i < SES_LEN(uses); i++)
        if (uses[i].head == head) return i;
    return SES_LEN(uses);
}

const char *ses_finetune_usage(char *buf, size_t size, const ses_head *head, const char *dir)
{
    size_t i = use_of(head);
    if (i < SES_LEN(uses))
        snprintf(buf, size, "%s --model %s %s", uses[i].pipeline, dir, uses[i].sample);
    else
        snprintf(buf, size, "info %s", dir);
    return buf;
}

/* ---- text from outside ---- */

/* In a double-quoted string of YAML. */
static void put_yaml(ses_buf *b, const char *s)
{
    ses_buf_put(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') ses_buf_put(b, '\\');
        ses_buf_put(b, (unsigned char)*s < 0x20 || *s == 0x7F ? ' ' : *s);
    }
    ses_buf_put(b, '"');
}

/* In a cell of a table of Markdown. */
static void put_cell(ses_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '<')
            ses_buf_puts(b, "&lt;");
        else if (strchr("|`*_[]\\", *s))
            ses_buf_appendf(b, "\\%c", *s);
        else
            ses_buf_put(b, (unsigned char)*s < 0x20 || *s == 0x7F ? ' ' : *s);
    }
}

static void put_row(ses_buf *b, const char *name, const char *value)
{
    ses_buf_appendf(b, "| %s | ", name);
    put_cell(b, value);
    ses_buf_puts(b, " |\n");
}

/* ---- the top ---- */

static void put_top(ses_buf *b, const ses_finetune *f)
{
    const ses_finetune_args *a = f->a;
    const ses_scores *s = &f->judged.scores;
    size_t use = use_of(f->kind->head);
    const char *task = use < SES_LEN(uses) ? uses[use].pipeline : f->kind->name;
    ses_buf_appendf(b, "---\nlibrary_name: transformers\npipeline_tag: %s\ntags:\n- sesame\n- %s\n", task,
                    f->kind->name);
    ses_buf_appendf(b, "co2_eq_emissions:\n  emissions: %.6g\n  source: ",
                    1000 * ses_energy_co2(&f->run_log.energy, &a->energy)); /* grams */
    put_yaml(b, f->run_log.energy.source);
    ses_buf_appendf(b, "\n  training_type: %s\n", a->model ? "fine-tuning" : "from scratch");
    if (f->eval.data && s->n) {
        ses_buf_puts(b, "model-index:\n- name: ");
        put_yaml(b, ses_path_name_of(a->output).s);
        ses_buf_appendf(b, "\n  results:\n  - task:\n      type: %s\n    dataset:\n      name: ", task);
        put_yaml(b, f->a->tune.data.task);
        ses_buf_puts(b, "\n      type: ");
        put_yaml(b, ses_path_name_of(a->eval).s);
        ses_buf_puts(b, "\n    metrics:\n");
        for (size_t i = 0; i < s->n && i < SCORES; i++) {
            if (isnan(s->item[i].value)) continue;
            ses_buf_puts(b, "    - type: ");
            put_yaml(b, s->item[i].name);
            ses_buf_appendf(b, "\n      value: %.6g\n", s->item[i].value);
        }
    }
    ses_buf_puts(b, "---\n\n");
}

/* ---- what it is, and how good ---- */

static void put_labels(ses_buf *b, const ses_finetune *f)
{
    const ses_finetuner *t = f->tuner;
    if (!f->kind->has_label_names || !t->n_labels) return;
    ses_buf_puts(b, "\nLabels: ");
    for (size_t i = 0; i < t->n_labels && i < LABELS; i++) {
        if (i) ses_buf_puts(b, ", ");
        put_cell(b, t->label[i]);
    }
    if (t->n_labels > LABELS) ses_buf_appendf(b, ", ... (%zu in config.json)", t->n_labels);
    ses_buf_puts(b, ".\n");
}

static void put_scores(ses_buf *b, const ses_finetune *f)
{
    const ses_eval_report *j = &f->judged;
    if (!f->eval.data) return;
    ses_buf_puts(b, "\n## Scores\n\nOn ");
    put_cell(b, ses_path_name_of(f->a->eval).s);
    ses_buf_appendf(b, ", %zu examples, which also chose the best weights", j->n);
    if (j->level > 0) ses_buf_appendf(b, "; intervals hold %g %% of the resamples", 100 * j->level);
    ses_buf_puts(b, ":\n\n| score | value |\n|---|---|\n");
    if (!isnan(j->loss)) ses_buf_appendf(b, "| loss | %.4f |\n", j->loss);
    for (size_t i = 0; i < j->scores.n && i < SCORES; i++) {
        const ses_score *s = &j->scores.item[i];
        ses_buf_puts(b, "| ");
        put_cell(b, s->name);
        ses_buf_appendf(b, " | %.4f", s->value);
        if (j->level > 0) ses_buf_appendf(b, " (%.4f to %.4f)", s->low, s->high);
        ses_buf_puts(b, " |\n");
    }
    if (!j->n_classes || j->n_classes > LABELS) return;
    ses_buf_puts(b, "\n| class | precision | recall | F1 | number |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < j->n_classes; i++) {
        const ses_class_score *c = &j->classes[i];
        ses_buf_puts(b, "| ");
        put_cell(b, c->name);
        ses_buf_appendf(b, " | %.4f | %.4f | %.4f | %.0f |\n", c->precision, c->recall, c->f1, c->number);
    }
}

static void put_matrix(ses_buf *b, const ses_finetune *f)
{
    const ses_eval_report *j = &f->judged;
    size_t n = f->tuner->n_labels;
    if (!f->eval.data || !j->confusion || n > MATRIX) return;
    ses_buf_puts(b, "\nRows are what is right, columns what was said:\n\n| |");
    for (size_t i = 0; i < n; i++) {
        ses_buf_put(b, ' ');
        put_cell(b, f->tuner->label[i]);
        ses_buf_puts(b, " |");
    }
    ses_buf_puts(b, "\n|---|");
    for (size_t i = 0; i < n; i++) ses_buf_puts(b, "---|");
    for (size_t i = 0; i < n; i++) {
        ses_buf_puts(b, "\n| ");
        put_cell(b, f->tuner->label[i]);
        ses_buf_puts(b, " |");
        for (size_t k = 0; k < n; k++) ses_buf_appendf(b, " %" PRId64 " |", j->confusion[i * n + k]);
    }
    ses_buf_put(b, '\n');
}

/* ---- how it was made, how it is used ---- */

static void put_training(ses_buf *b, const ses_finetune *f)
{
    const ses_finetune_args *a = f->a;
    const ses_train_state *at = ses_trainer_state(f->trainer);
    char text[SES_ENERGY_TEXT], time[SES_NUMBER_TEXT];
    ses_buf_puts(b, "\n## Training\n\n| | |\n|---|---|\n");
    put_row(b, "begun with", a->model ? ses_path_name_of(a->model).s : "random weights");
    ses_buf_puts(b, "| data | ");
    put_cell(b, ses_path_name_of(a->train).s);
    ses_buf_appendf(b, ", %" PRId64 " sequences, %" PRId64 " tokens |\n", ses_dataset_size(f->train.data),
                    ses_dataset_tokens(f->train.data));
    ses_buf_appendf(b, "| updates | %" PRId64 " of %" PRId64 ", %s %" PRId64, at->updates,
                    ses_trainer_total_updates(f->trainer), a->tokens ? "tokens a batch" : "batch size",
                    a->tokens ? a->tokens : a->batch);
    if (a->accumulate > 1) ses_buf_appendf(b, ", %" PRId64 " batches an update", a->accumulate);
    ses_buf_puts(b, " |\n");
    ses_buf_appendf(
        b, "| optimizer | %s, rate %g, %s, warm-up %g, decay %g, clip %g |\n| seed | %" PRId64 " |\n",
        ses_optim_name((size_t)a->optimizer, NULL), a->lr, ses_schedule_name((size_t)a->schedule, NULL),
        a->warmup, a->decay, a->clip, a->seed);
    ses_transfer_card(&a->transfer, b);
    put_row(b, "time", ses_duration_text(time, f->run_log.seconds));
    put_row(b, "energy", ses_energy_text(text, &f->run_log.energy, &a->energy));
    ses_buf_puts(b, "\n```\nsesame finetune");
    ses_options_put_command_line(ses_command_finetune.opt, ses_command_finetune.n_opt, a, b);
    ses_buf_puts(b, "\n```\n");
}

static void put_usage(ses_buf *b, const ses_finetune *f)
{
    char usage[200];
    ses_buf_appendf(b, "\n## Use\n\n```\nsesame %s\n```\n",
                    ses_finetune_usage(usage, sizeof usage, f->kind->head, "FOLDER"));
    size_t use = use_of(f->kind->head);
    bool plain = f->a->transfer.adapter == SES_ADAPT_NONE && f->a->transfer.head == SES_HEAD_DEFAULT;
    if (plain && use < SES_LEN(uses) && f->kind->head != &ses_head_multiple_choice)
        ses_buf_appendf(
            b, "\n```python\nfrom transformers import pipeline\nmodel = pipeline(\"%s\", \"FOLDER\")\n```\n",
            uses[use].pipeline);
    ses_transfer_use(&f->a->transfer, f->tuner->model, b);
}

bool ses_finetune_card(const ses_finetune *f, const char *dir, ses_err *e)
{
    char human[SES_NUMBER_TEXT];
    ses_buf b = { 0 };
    put_top(&b, f);
    ses_buf_puts(&b, "# ");
    put_cell(&b, ses_path_name_of(f->a->output).s);
    ses_buf_appendf(&b, "\n\nA %s of %s parameters, trained with Sesame for: %s.\n",
                    ses_model_class_name(f->tuner->model),
                    ses_grouped_text(human, ses_store_element_count(ses_model_store(f->tuner->model))),
                    f->kind->summary);
    put_labels(&b, f);
    put_scores(&b, f);
    put_matrix(&b, f);
    put_training(&b, f);
    put_usage(&b, f);
    char *path = ses_path_join(dir, "README.md", e);
    bool ok = path && ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, false, e);
    ses_free(path);
    ses_buf_free(&b);
    return ok;
}
