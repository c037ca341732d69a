/* A label for a text or a pair of texts: one of several, several at once, or a number. */
#include "finetuner.h"

#include <string.h>

/* The text (and its pair), cut to the limit, the longer first. */
static const ses_encoding *encode_texts(ses_finetuner *t, const ses_labeled_example *r, ses_finetune_set *s,
                                        ses_err *e)
{
    ses_input in = { .text = { r->text_a.p, r->text_a.n } };
    if (r->text_b.n)
        in.pair = (ses_string){ r->text_b.p, r->text_b.n }; /* an empty one is none, as in pipelines */
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = t->max_tokens };
    if (!ses_encode(t->tokens, &in, &o, e)) return NULL;
    s->n_truncated += ses_tokens_overflow_count(t->tokens) > 0;
    return ses_tokens_result(t->tokens);
}

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, ses_err *e)
{
    p->score =
        ses_arena_array(&p->mem, s->n_rows * (size_t)ses_model_label_count(t->model), sizeof *p->score, e);
    return p->score != NULL;
}

static bool take(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, int64_t sequence,
                 const float *x, int64_t n, int64_t cols, ses_err *e)
{
    (void)t, (void)n, (void)e;
    memcpy(p->score + s->row[sequence] * cols, x, (size_t)cols * sizeof *x);
    return true;
}

/* ---- one of several ---- */

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    const ses_encoding *k = encode_texts(t, r, s, e);
    return k && ses_finetuner_add_sequence(t, s, row, k, &(ses_sequence){ .label = r->label }, NULL, NULL, e);
}

static bool evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                       ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    return ses_finetuner_fill_labels(s, p, (size_t)ses_model_label_count(t->model), v, mem, e);
}

static void put(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                ses_json_writer *w)
{
    (void)s;
    double probability;
    size_t cols = (size_t)ses_model_label_count(t->model);
    int64_t best = ses_finetuner_softmax(p->score + row * cols, cols, &probability);
    ses_json_put_key(w, "label");
    ses_json_put_string(w, best < (int64_t)t->n_labels ? t->label[best] : NULL);
    ses_json_put_key(w, "score");
    ses_json_put_float(w, (float)probability);
}

const ses_finetune_task ses_finetune_task_classify = {
    .name = "classify",
    .summary = "one label for a text or a pair of texts",
    .head = &ses_head_sequence_classification,
    .data = SES_DATA_CLASSIFY,
    .target = SES_TARGET_CLASS,
    .has_label_names = true,
    .problem_type = "single_label_classification",
    .metrics = "accuracy|f1",
    .best_metric = "accuracy",
    .encode = encode,
    .begin = begin,
    .collect = take,
    .fill_evaluation = evaluation,
    .put_prediction = put,
};

/* ---- a number ---- */

static bool encode_number(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                          ses_err *e)
{
    ses_real value = (ses_real)r->target;
    const ses_encoding *k = encode_texts(t, r, s, e);
    return k && ses_finetuner_add_sequence(t, s, row, k, &(ses_sequence){ .values = &value }, NULL, NULL, e);
}

static bool evaluation_number(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                              ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    return ses_finetuner_fill_reals(s, p, v, mem, e);
}

static void put_number(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                       ses_json_writer *w)
{
    (void)t, (void)s;
    ses_json_put_key(w, "value");
    ses_json_put_float(w, p->score[row]);
}

const ses_finetune_task ses_finetune_task_regress = {
    .name = "regress",
    .summary = "a number for a text or a pair of texts",
    .head = &ses_head_sequence_classification,
    .data = SES_DATA_REGRESS,
    .target = SES_TARGET_VALUES,
    .problem_type = "regression",
    .metrics = "pearson|spearman|squared_error",
    .best_metric = "pearson",
    .encode = encode_number,
    .begin = begin,
    .collect = take,
    .fill_evaluation = evaluation_number,
    .put_prediction = put_number,
};

/* ---- several at once ---- */

static bool encode_several(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                           ses_err *e)
{
    ses_arena mem = { 0 };
    ses_real *values = ses_arena_array(&mem, t->n_labels, sizeof *values, e);
    for (size_t i = 0; values && i < r->n_labels; i++) values[r->labels[i]] = 1;
    const ses_encoding *k = values ? encode_texts(t, r, s, e) : NULL;
    bool ok =
        k && ses_finetuner_add_sequence(t, s, row, k, &(ses_sequence){ .values = values }, NULL, NULL, e);
    ses_arena_free(&mem);
    return ok;
}

static bool evaluation_several(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                               ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    size_t cols = t->n_labels;
    uint8_t *gold = ses_arena_array(mem, v->n * cols, 1, e), *pred = ses_arena_array(mem, v->n * cols, 1, e);
    for (size_t i = 0; gold && pred && i < v->n; i++) {
        const ses_labeled_example *r = ses_examples_at(s->rows, i);
        for (size_t j = 0; j < r->n_labels; j++) gold[i * cols + (size_t)r->labels[j]] = 1;
        for (size_t j = 0; j < cols; j++)
            pred[i * cols + j] = p->score[i * cols + j] > 0; /* above one half */
    }
    v->gold_sets = gold;
    v->pred_sets = pred;
    return gold && pred;
}

static void put_several(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                        ses_json_writer *w)
{
    (void)s;
    ses_json_put_key(w, "labels");
    ses_json_begin_array(w);
    for (size_t j = 0; j < t->n_labels; j++)
        if (p->score[row * t->n_labels + j] > 0) ses_json_put_string(w, t->label[j]);
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
    .encode = encode_several,
    .begin = begin,
    .collect = take,
    .fill_evaluation = evaluation_several,
    .put_prediction = put_several,
};
