/* Tasks classify, regress and multi_label: one label, a number, or several labels for a text or a pair of
 * texts. */
#include "tune/gpt/gpt_tuning.h"
#include "tune/multi/ensemble.h"

#include <string.h>

/* Adds the text and its pair with the targets of q; tokens are removed from the longer one until both fit. */
static bool add_texts(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                      ses_sequence *q, ses_err *e)
{
    ses_input in = { .text = { r->text_a.p, r->text_a.n } };
    ses_arena mem = { 0 };
    if (r->text_b.n)
        in.pair = (ses_string){ r->text_b.p, r->text_b.n }; /* an empty one counts as none, as in pipelines */
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = t->max_tokens };
    if (!ses_encode(t->tokens, &in, &o, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(t->tokens);
    s->n_truncated += ses_encode_ctx_overflow_count(t->tokens) > 0;
    bool ok = ses_finetuner_add_unknown_words(t, s, &in, k, q, &mem, e) &&
              ses_finetuner_add_sequence(t, s, row, k, q, NULL, NULL, e);
    ses_arena_free(&mem);
    return ok;
}

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    return ses_finetuner_begin_scores(s, (size_t)ses_model_label_count(t->model), o, e);
}

/* ---- classify ---- */

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    return add_texts(t, r, row, s, &(ses_sequence){ .label = r->label }, e);
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    return ses_finetuner_fill_labels(s, o, (size_t)ses_model_label_count(t->model), v, mem, e);
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)s, (void)mem, (void)e;
    size_t cols = (size_t)ses_model_label_count(t->model);
    int64_t best = ses_finetuner_softmax(o->score + row * cols, cols, &p->score);
    p->label = best < (int64_t)t->n_labels ? t->label[best] : NULL;
    return true;
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    ses_prediction p = { 0 };
    fill_prediction(t, s, o, row, &p, NULL, NULL);
    ses_json_member_string(w, "label", p.label);
    ses_json_put_key(w, "score");
    ses_json_put_float(w, (float)p.score);
}

static bool encode_gpt(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                       ses_err *e)
{
    return ses_gpt_add_texts(t, r->text_a, r->text_b, row, s, &(ses_sequence){ .label = r->label }, e);
}

#define CLASSIFY                                                                                        \
    .name = "classify", .aliases = "text-classification|sentiment-analysis",                            \
    .summary = "one label for a text or a pair of texts", .head = &ses_head_sequence_classification,    \
    .data = SES_DATA_CLASSIFY, .target = SES_TARGET_CLASS, .has_label_names = true,                     \
    .problem_type = "single_label_classification", .metrics = "accuracy|f1", .best_metric = "accuracy", \
    .begin = begin, .combine = ses_ensemble_combine_classes, .fill_evaluation = fill_evaluation,        \
    .fill_prediction = fill_prediction, .put_prediction = put_prediction

static const ses_finetune_task classify_gpt = { CLASSIFY, SES_GPT_HOOKS, .group = ses_gpt_group,
                                                .encode = encode_gpt };
const ses_finetune_task ses_finetune_task_classify = {
    CLASSIFY, .has_exits = true,
    .ways = { [SES_WAY_CLASSIFIER] = &ses_finetune_task_by_classifier,
              [SES_WAY_PATTERNS] = &ses_finetune_task_by_cloze,
              [SES_WAY_GPT] = &classify_gpt },
    .encode = encode, .collect = ses_finetuner_collect_scores
};

/* ---- regress ---- */

static bool encode_real(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                        ses_err *e)
{
    ses_real value = (ses_real)r->target;
    return add_texts(t, r, row, s, &(ses_sequence){ .values = &value }, e);
}

static bool fill_evaluation_reals(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                  ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    return ses_finetuner_fill_reals(s, o, v, mem, e);
}

static bool fill_prediction_real(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                 size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)t, (void)s, (void)mem, (void)e;
    p->value = (double)o->score[row];
    return true;
}

static void put_prediction_real(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                size_t row, ses_json_writer *w)
{
    (void)t, (void)s;
    ses_json_put_key(w, "value");
    ses_json_put_float(w, o->score[row]);
}

static bool encode_real_gpt(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                            ses_err *e)
{
    ses_real value = (ses_real)r->target;
    return ses_gpt_add_texts(t, r->text_a, r->text_b, row, s, &(ses_sequence){ .values = &value }, e);
}

#define REGRESS                                                                                             \
    .name = "regress", .summary = "a number for a text or a pair of texts",                                 \
    .head = &ses_head_sequence_classification, .data = SES_DATA_REGRESS, .target = SES_TARGET_VALUES,       \
    .problem_type = "regression", .metrics = "pearson|spearman|squared_error|r2", .best_metric = "pearson", \
    .begin = begin, .combine = ses_ensemble_combine_reals, .fill_evaluation = fill_evaluation_reals,        \
    .fill_prediction = fill_prediction_real, .put_prediction = put_prediction_real

static const ses_finetune_task regress_gpt = { REGRESS, SES_GPT_HOOKS, .group = ses_gpt_group,
                                               .encode = encode_real_gpt };
const ses_finetune_task ses_finetune_task_regress = { REGRESS, .ways = { [SES_WAY_GPT] = &regress_gpt },
                                                      .encode = encode_real,
                                                      .collect = ses_finetuner_collect_scores };

/* ---- multi_label ---- */

static bool encode_multi(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                         ses_err *e)
{
    ses_arena mem = { 0 };
    ses_real *values = ses_arena_array(&mem, t->n_labels, sizeof *values, e);
    for (size_t i = 0; values && i < r->n_labels; i++) values[r->labels[i]] = 1;
    bool ok = values && add_texts(t, r, row, s, &(ses_sequence){ .values = values }, e);
    ses_arena_free(&mem);
    return ok;
}

static bool fill_evaluation_multi(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                  ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    size_t cols = t->n_labels;
    uint8_t *true_sets = ses_arena_array(mem, v->n * cols, 1, e),
            *pred = ses_arena_array(mem, v->n * cols, 1, e);
    for (size_t i = 0; true_sets && pred && i < v->n; i++) {
        const ses_labeled_example *r = ses_examples_at(s->rows, i);
        for (size_t j = 0; j < r->n_labels; j++) true_sets[i * cols + (size_t)r->labels[j]] = 1;
        for (size_t j = 0; j < cols; j++)
            pred[i * cols + j] = o->score[i * cols + j] > 0; /* probability above one half */
    }
    v->true_sets = true_sets;
    v->pred_sets = pred;
    return true_sets && pred;
}

static bool applies(const ses_finetuner *t, const ses_finetune_outputs *o, size_t row, size_t label)
{
    return o->score[row * t->n_labels + label] > 0; /* probability above one half */
}

static bool fill_prediction_multi(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                  size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)s;
    const char **labels = ses_arena_array(mem, t->n_labels + 1, sizeof *labels, e);
    for (size_t j = 0; labels && j < t->n_labels; j++)
        if (applies(t, o, row, j)) labels[p->n_labels++] = t->label[j];
    p->labels = labels;
    return labels != NULL;
}

static void put_prediction_multi(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                 size_t row, ses_json_writer *w)
{
    (void)s;
    ses_json_member_array(w, "labels");
    for (size_t j = 0; j < t->n_labels; j++)
        if (applies(t, o, row, j)) ses_json_put_string(w, t->label[j]);
    ses_json_end_array(w);
}

const ses_finetune_task ses_finetune_task_multi_label = {
    .name = "multi_label",
    .summary = "any number of labels for a text or a pair of texts",
    .head = &ses_head_sequence_classification,
    .data = SES_DATA_MULTI,
    .target = SES_TARGET_VALUES,
    .has_label_names = true,
    .problem_type = "multi_label_classification",
    .metrics = "multilabel",
    .best_metric = "f1_micro",
    .encode = encode_multi,
    .begin = begin,
    .collect = ses_finetuner_collect_scores,
    .combine = ses_ensemble_combine_sets,
    .fill_evaluation = fill_evaluation_multi,
    .fill_prediction = fill_prediction_multi,
    .put_prediction = put_prediction_multi,
};
