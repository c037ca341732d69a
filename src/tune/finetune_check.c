/* Checks before a fine-tuning run: labels, the score that selects the best checkpoint; notices about data
 * and head. */
#include "data/examples_notices.h"
#include "tune/multi/mixture.h"

#include "base/elmo/word_chars.h"
#include "base/number_text.h"
#include "base/str.h"
#include "model/model_desc.h"
#include "task/words/word_stack.h"
#include "train/distill/student_config.h"
#include "train/training_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- labels ---- */

bool ses_finetune_match_labels(ses_finetune *f, ses_err *e)
{
    ses_err ignored = { 0 }; /* labels of the base model may be unreadable or different */
    if (f->o.config || f->o.embed || !f->task->has_label_names) return true;
    if (!ses_config_labels(ses_finetune_base_config(f), f->task->data, &f->base_labels, &f->base_has_names,
                           &ignored))
        return true;
    f->keeps_labels = f->base_has_names && ses_examples_align_labels(f->train_rows, f->base_labels, &ignored);
    return ignored.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "out of memory");
}

/* ---- what a run starts from ---- */

bool ses_finetune_check_start(const ses_finetune_options *o, ses_err *e)
{
    if ((o->model != NULL) + (o->config != NULL) + (o->open_model != NULL) + (o->embed != NULL) +
            ses_student_is_new(&o->teacher.student) !=
        1)
        return ses_fail(e, SES_EUSAGE,
                        "set one of model, config, open_model and embed, or sizes of a new student");
    if (o->quantize_aware && (o->embed || o->n_also || ses_transfer_has_adapter(&o->transfer)))
        return ses_fail(e, SES_EUNSUPPORTED, "qat trains the weights of one model: not with %s",
                        o->embed    ? "embed"
                        : o->n_also ? "several data sets"
                                    : "an adapter, whose merged weights would be rounded anew");
    return true;
}

bool ses_finetune_resolve_student(ses_finetune *f, ses_err *e)
{
    if (!ses_student_is_new(&f->o.teacher.student)) return true;
    if (!f->o.teacher.model) return ses_fail(e, SES_EUSAGE, "the sizes of a student need a teacher");
    f->student_dir = ses_model_resolve(f->o.teacher.model, NULL, e);
    if (!f->o.tokenizer) f->o.tokenizer = f->student_dir;
    return f->student_dir != NULL;
}

/* ---- notices ---- */

static void list_labels(const ses_examples *d, ses_buf *b)
{
    enum { SHOWN = 20 };
    size_t n = ses_examples_label_count(d);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        ses_buf_appendf(b, "%s%s", i ? ", " : "", ses_examples_label_name(d, i));
    if (n > SHOWN) ses_buf_appendf(b, ", ... (%zu)", n);
}

void ses_finetune_report_start(ses_finetune *f)
{
    char number[4][SES_NUMBER_TEXT], trained[48] = "", eval[48] = "";
    const ses_store *s = ses_model_store(f->tuner->model);
    int64_t all = ses_store_element_count(s), n = ses_dataset_size(f->train.data);
    if (ses_store_trainable_count(s) < all)
        snprintf(trained, sizeof trained, " (%s trained)",
                 ses_grouped_text(number[0], ses_store_trainable_count(s)));
    if (f->eval_rows)
        snprintf(eval, sizeof eval, ", %s for evaluation",
                 ses_grouped_text(number[1], (int64_t)f->eval.n_rows));
    ses_training_notify(ses_finetune_on_event, f,
                        "%s: %s parameters%s, %s examples of %.1f tokens%s, %" PRId64 " updates",
                        ses_model_class_name(f->tuner->model), ses_grouped_text(number[2], all), trained,
                        ses_grouped_text(number[3], n), (double)ses_dataset_tokens(f->train.data) / (double)n,
                        eval, ses_trainer_total_updates(f->trainer));
}

static void report_class_weights(ses_finetune *f)
{
    ses_buf b = { 0 };
    for (size_t i = 0; f->class_weights && i < f->tuner->n_labels && b.len < 400; i++)
        ses_buf_appendf(&b, "%s%s %.4g", i ? ", " : "", f->tuner->label[i], f->class_weights[i]);
    if (ses_buf_ok(&b, NULL) && b.data)
        ses_training_notify(ses_finetune_on_event, f, "class weights: %s%s", b.data,
                            b.len < 400 ? "" : ", ...");
    ses_buf_free(&b);
}

void ses_finetune_report_head(ses_finetune *f)
{
    report_class_weights(f);
    const char *missing = ses_model_missing_keys(f->tuner->model);
    bool resumed = ses_trainer_state(f->trainer)->batches > 0; /* all parameters are the checkpoint's */
    if (f->tuner->scale_targets)
        ses_training_notify(ses_finetune_on_event, f,
                            "scores are divided by their maximum, %g: a cosine is at most 1",
                            f->tuner->max_abs_target);
    const char *stray = f->tuner->task->target == SES_TARGET_TAGS ? ses_tag_names_stray(f->train_rows) : NULL;
    if (stray)
        ses_training_notify(ses_finetune_on_event, f,
                            "%s: the label \"%s\" is neither O nor has a prefix of BIO or BIOES (B-, I-, E-, "
                            "S-), unlike others: it is never part of a span",
                            f->train_name, stray);
    if (f->tuner->settings.crf && f->tuner->tag_scheme == SES_TAGS_PLAIN &&
        ses_tag_names_scheme(f->train_rows) != SES_TAGS_PLAIN)
        ses_training_notify(ses_finetune_on_event, f,
                            "the labels follow neither BIO nor BIOES (an I- without a B- before it): the CRF "
                            "may decode any sequence; --scheme bio or bioes converts them");
    if (f->reads_last_token)
        ses_training_notify(
            ses_finetune_on_event, f,
            "the model reads from left to right: a linear head on the last token (sesame_head) "
            "replaces the head on the first one");
    if (f->o.config || f->o.embed) return;
    if (*missing && !resumed)
        ses_training_notify(ses_finetune_on_event, f, "randomly initialized: %s", missing);
    if (!f->task->has_label_names || f->keeps_labels || (*missing && !f->base_has_names)) return;
    ses_buf b = { 0 };
    ses_buf_puts(&b,
                 *missing ? "labels of the base model: " : "the head is kept; labels of the base model: ");
    if (f->base_has_names)
        list_labels(f->base_labels, &b);
    else
        ses_buf_puts(&b, "unnamed");
    ses_buf_puts(&b, "; labels of the data: ");
    list_labels(f->train_rows, &b);
    if (ses_buf_ok(&b, NULL)) ses_training_notify(ses_finetune_on_event, f, "%s", b.data);
    ses_buf_free(&b);
}

typedef struct event_sink {
    ses_training_fn *on_event;
    void *ctx;
} event_sink;

static void put_notice(void *sink, const char *text)
{
    const event_sink *s = sink;
    ses_training_notify(s->on_event, s->ctx, "%s", text);
}

void ses_finetune_report_labels(const ses_finetune *f, ses_finetune *to)
{
    event_sink sink = { ses_finetune_on_event, to };
    ses_data_label_notices(f->train_rows, f->train_name, put_notice, &sink, NULL);
}

void ses_finetune_report_rows(ses_finetune *f)
{
    event_sink sink = { ses_finetune_on_event, f };
    ses_data_notices(f->train_rows, f->train_name, put_notice, &sink, NULL);
    if (f->eval_rows) ses_data_notices(f->eval_rows, f->eval_name, put_notice, &sink, NULL);
}

/* Rows without a word that a classifier of words knows. */
static void tell_unknown(const ses_finetuner *t, const ses_finetune_set *s, const char *name,
                         ses_training_fn *on_event, void *ctx)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    size_t n = s->rows ? ses_examples_count(s->rows) : 0, unknown = 0;
    ses_arena mem = { 0 };
    ses_string *text = t->classifier && n ? ses_arena_array(&mem, n, sizeof *text, NULL) : NULL;
    bool ok = text && ses_classifier_texts(s->rows, text, &mem, NULL) &&
              ses_classifier_count_unknown(t->classifier, text, n, &unknown, NULL);
    if (ok && unknown)
        ses_training_notify(
            on_event, ctx,
            "%s: %s of %s texts have no word of the model: they get the label of an empty text", name,
            ses_grouped_text(a, (int64_t)unknown), ses_grouped_text(b, (int64_t)n));
    ses_arena_free(&mem);
}

void ses_finetune_report_set(const ses_finetuner *t, const ses_finetune_set *s, const char *name,
                             ses_training_fn *on_event, void *ctx)
{
    char target[64] = "", a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    event_sink sink = { on_event, ctx };
    if (s->rows) ses_data_notices(s->rows, name, put_notice, &sink, NULL);
    tell_unknown(t, s, name, on_event, ctx);
    if (t->task->target == SES_TARGET_TEXT)
        snprintf(target, sizeof target, " (target texts: %" PRId64 ")", t->settings.max_target);
    if (s->n_truncated)
        ses_training_notify(
            on_event, ctx, "%s: %s of %s examples are longer than %" PRId64 " tokens%s and %s", name,
            ses_grouped_text(a, s->n_truncated), ses_grouped_text(b, (int64_t)s->n_rows), t->max_tokens,
            target, t->task->target == SES_TARGET_SPAN ? "are split into windows" : "were truncated");
    if (s->n_pending)
        ses_training_notify(on_event, ctx,
                            "%s: the last %s tokens do not fill a block of %" PRId64 " and are dropped", name,
                            ses_grouped_text(a, (int64_t)s->n_pending), t->max_tokens);
    if (s->rows && ses_examples_repaired(s->rows))
        ses_training_notify(on_event, ctx,
                            "%s: %s labels break the rules of BIOES and were changed: a span begins and ends "
                            "where conlleval sees it",
                            name, ses_grouped_text(a, (int64_t)ses_examples_repaired(s->rows)));
    if (s->n_lost_words)
        ses_training_notify(on_event, ctx,
                            "%s: %s words have no tokens or were truncated: they get no tag and no score",
                            name, ses_grouped_text(a, s->n_lost_words));
    if (s->n_shortened_words)
        ses_training_notify(on_event, ctx,
                            "%s: %s words are longer than %" PRId64
                            " bytes: only the beginning of such words is read",
                            name, ses_grouped_text(a, s->n_shortened_words),
                            t->words ? ses_word_stack_max_bytes(t->words)
                                     : ses_word_max_bytes(t->model->stack[0].c->chars.per_word));
}

/* ---- the metric ---- */

/* Names of the scores of these metrics, from a small evaluation in which every label is correct once. */
static bool score_names(const ses_finetune *f, const char *metrics, ses_scores *out, ses_err *e)
{
    const ses_finetuner *t = f->tuner;
    size_t labels = t->n_labels ? t->n_labels : 2, n = labels > 2 ? labels : 2;
    ses_arena mem = { 0 };
    int32_t *true_labels = ses_arena_array(&mem, n, sizeof *true_labels, e);
    size_t *cu = ses_arena_array(&mem, n + 1, sizeof *cu, e);
    uint8_t *sets = ses_arena_array(&mem, n * (labels + 1), 1, e);
    double *reals = ses_arena_array(&mem, n, sizeof *reals, e);
    int64_t *ones = ses_arena_array(&mem, n, sizeof *ones, e);
    const char **texts = ses_arena_array(&mem, n, sizeof *texts, e);
    bool ok = true_labels && cu && sets && reals && ones && texts;
    for (size_t i = 0; ok && i < n; i++) {
        true_labels[i] = i < labels ? (int32_t)i : 0;
        cu[i + 1] = i + 1;
        reals[i] = (double)i;
        ones[i] = 1;
        texts[i] = "a";
    }
    ses_evaluation v = { .n = n,
                         .true_labels = true_labels,
                         .pred_labels = true_labels,
                         .n_labels = labels,
                         .labels = t->n_labels ? t->label : NULL,
                         .cu = f->task->data == SES_DATA_TAG ? cu : NULL,
                         .true_sets = sets,
                         .pred_sets = sets,
                         .true_reals = reals,
                         .pred_reals = reals,
                         .nll = reals,
                         .n_nll = ones,
                         .groups = ones,
                         .pred_texts = texts,
                         .ref_texts = texts,
                         .ref_cu = cu,
                         .no_answer = t->settings.allow_no_answer ? reals : NULL };
    ok = ok && ses_metric_list_run(metrics, &v, NULL, out, e);
    ses_arena_free(&mem);
    return ok;
}

/* Does the list contain a metric of this kind? */
static bool has_kind(ses_metric_kind kind, const char *list)
{
    const char *name, *item;
    size_t n;
    ses_metric_kind found;
    for (size_t k = 0; ses_list_at(list, k, &item, &n); k++)
        for (size_t i = 0; (name = ses_metric_at(i, NULL, &found)); i++)
            if (found == kind && ses_equal(item, n, name)) return true;
    return false;
}

/* Adds a metric that gives the score, if one of the same kind of data exists. */
static bool add_metric(ses_finetune *f, const char *metrics, const char *score, bool *added, ses_err *e)
{
    const char *name = NULL;
    ses_metric_kind kind;
    double x;
    *added = false;
    for (size_t i = 0; !*added && (name = ses_metric_at(i, NULL, &kind)); i++) {
        ses_scores s = { 0 };
        ses_err ignored = { 0 };
        *added =
            has_kind(kind, metrics) && score_names(f, name, &s, &ignored) && ses_scores_find(&s, score, &x);
        ses_scores_free(&s);
        if (ignored.code == SES_ENOMEM) return ses_fail(e, SES_ENOMEM, "out of memory");
    }
    if (!*added) return true;
    ses_buf all = { 0 };
    ses_buf_appendf(&all, "%s|%s", metrics, name);
    if (!ses_buf_ok(&all, e)) return ses_buf_free(&all), false;
    f->metrics = all.data;
    f->tuner->settings.metrics = f->metrics;
    return true;
}

const char *ses_finetune_metric(const ses_finetune *f)
{
    if (f->mixture) return ses_mixture_metric(f->mixture);
    return f->o.metric ? f->o.metric : f->spec.best_metric;
}

bool ses_finetune_check_metric(ses_finetune *f, ses_err *e)
{
    const char *name = ses_finetune_metric(f), *metrics = f->tuner->settings.metrics;
    ses_scores s = { 0 };
    double x;
    if ((!f->o.metric && !f->eval_rows) || !strcmp(name, "loss")) return true;
    bool ok = score_names(f, metrics, &s, e), known = ok && ses_scores_find(&s, name, &x);
    if (ok && !known) ok = add_metric(f, metrics, name, &known, e);
    if (ok && !known) {
        char list[400] = "loss";
        for (size_t i = 0; i < s.n; i++) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, ", %s", s.item[i].name);
        }
        ok = ses_fail(e, SES_EUSAGE, "metric: unknown score \"%s\"; choose one of %s", name, list);
    }
    ses_scores_free(&s);
    return ok;
}
