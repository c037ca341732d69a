/* A label for a text or a pair of texts: one of several, several at once, or a number. */
#include "finetuner.h"

#include <string.h>

/* The text (and its pair), cut to the limit, the longer first. */
static const ses_encoding *encode_texts(ses_tuner *t, const ses_datum *r, ses_tune_set *s, ses_err *e)
{
    ses_input in = { .text = { r->text_a.s, r->text_a.n } };
    if (r->text_b.n)
        in.pair = (ses_string){ r->text_b.s, r->text_b.n }; /* an empty one is none, as in pipelines */
    ses_encode_options o = { .truncation = SES_LONGEST_FIRST, .max_length = t->limit };
    if (!ses_encode(t->tokens, &in, &o, e)) return NULL;
    s->cut += ses_tokens_overflows(t->tokens) > 0;
    return ses_tokens_result(t->tokens);
}

static bool begin(ses_tuner *t, const ses_tune_set *s, ses_predicted *p, ses_err *e)
{
    p->score = ses_arena_array(&p->mem, s->n_rows * (size_t)ses_model_labels(t->model), sizeof *p->score, e);
    return p->score != NULL;
}

static bool take(ses_tuner *t, const ses_tune_set *s, ses_predicted *p, int64_t sequence, const float *x,
                 int64_t n, int64_t cols, ses_err *e)
{
    (void)t, (void)n, (void)e;
    memcpy(p->score + s->row[sequence] * cols, x, (size_t)cols * sizeof *x);
    return true;
}

/* ---- one of several ---- */

static bool encode(ses_tuner *t, const ses_datum *r, int32_t row, ses_tune_set *s, ses_err *e)
{
    const ses_encoding *k = encode_texts(t, r, s, e);
    return k && ses_tuner_add(t, s, row, k, &(ses_sequence){ .label = r->label }, NULL, NULL, e);
}

static bool evaluation(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, ses_evaluation *v,
                       ses_arena *mem, ses_err *e)
{
    return ses_tuner_best(s, p, (size_t)ses_model_labels(t->model), v, mem, e);
}

static void put(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, size_t row, ses_json_writer *w)
{
    (void)s;
    double probability;
    size_t cols = (size_t)ses_model_labels(t->model);
    int64_t best = ses_tuner_softmax(p->score + row * cols, cols, &probability);
    ses_json_put_key(w, "label");
    ses_json_put_string(w, best < (int64_t)t->n_labels ? t->label[best] : NULL);
    ses_json_put_key(w, "score");
    ses_json_put_float(w, (float)probability);
}

const ses_tune_kind ses_tune_classify = {
    .name = "classify",
    .what = "one label for a text or a pair of texts",
    .head = &ses_head_classify,
    .data = SES_DATA_CLASSIFY,
    .target = SES_TARGET_CLASS,
    .named = true,
    .problem = "single_label_classification",
    .metrics = "accuracy|f1",
    .best = "accuracy",
    .encode = encode,
    .begin = begin,
    .take = take,
    .evaluation = evaluation,
    .put = put,
};

/* ---- a number ---- */

static bool encode_number(ses_tuner *t, const ses_datum *r, int32_t row, ses_tune_set *s, ses_err *e)
{
    ses_real value = (ses_real)r->target;
    const ses_encoding *k = encode_texts(t, r, s, e);
    return k && ses_tuner_add(t, s, row, k, &(ses_sequence){ .values = &value }, NULL, NULL, e);
}

static bool evaluation_number(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, ses_evaluation *v,
                              ses_arena *mem, ses_err *e)
{
    (void)t;
    return ses_tuner_numbers(s, p, v, mem, e);
}

static void put_number(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, size_t row,
                       ses_json_writer *w)
{
    (void)t, (void)s;
    ses_json_put_key(w, "value");
    ses_json_put_float(w, p->score[row]);
}

const ses_tune_kind ses_tune_regress = {
    .name = "regress",
    .what = "a number for a text or a pair of texts",
    .head = &ses_head_classify,
    .data = SES_DATA_REGRESS,
    .target = SES_TARGET_VALUES,
    .problem = "regression",
    .metrics = "pearson|spearman|squared_error",
    .best = "pearson",
    .encode = encode_number,
    .begin = begin,
    .take = take,
    .evaluation = evaluation_number,
    .put = put_number,
};

/* ---- several at once ---- */

static bool encode_several(ses_tuner *t, const ses_datum *r, int32_t row, ses_tune_set *s, ses_err *e)
{
    ses_arena mem = { 0 };
    ses_real *values = ses_arena_array(&mem, t->n_labels, sizeof *values, e);
    for (size_t i = 0; values && i < r->n_labels; i++) values[r->labels[i]] = 1;
    const ses_encoding *k = values ? encode_texts(t, r, s, e) : NULL;
    bool ok = k && ses_tuner_add(t, s, row, k, &(ses_sequence){ .values = values }, NULL, NULL, e);
    ses_arena_free(&mem);
    return ok;
}

static bool evaluation_several(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, ses_evaluation *v,
                               ses_arena *mem, ses_err *e)
{
    size_t cols = t->n_labels;
    uint8_t *gold = ses_arena_array(mem, v->n * cols, 1, e), *pred = ses_arena_array(mem, v->n * cols, 1, e);
    for (size_t i = 0; gold && pred && i < v->n; i++) {
        const ses_datum *r = ses_examples_at(s->rows, i);
        for (size_t j = 0; j < r->n_labels; j++) gold[i * cols + (size_t)r->labels[j]] = 1;
        for (size_t j = 0; j < cols; j++)
            pred[i * cols + j] = p->score[i * cols + j] > 0; /* above one half */
    }
    v->gold_sets = gold;
    v->pred_sets = pred;
    return gold && pred;
}

static void put_several(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, size_t row,
                        ses_json_writer *w)
{
    (void)s;
    ses_json_put_key(w, "labels");
    ses_json_begin_array(w);
    for (size_t j = 0; j < t->n_labels; j++)
        if (p->score[row * t->n_labels + j] > 0) ses_json_put_string(w, t->label[j]);
    ses_json_end_array(w);
}

const ses_tune_kind ses_tune_multi_label = {
    .name = "multi_label",
    .what = "any number of labels for a text or a pair of texts",
    .head = &ses_head_classify,
    .data = SES_DATA_MULTI,
    .target = SES_TARGET_VALUES,
    .named = true,
    .problem = "multi_label_classification",
    .metrics = "multilabel",
    .best = "f1_micro",
    .encode = encode_several,
    .begin = begin,
    .take = take,
    .evaluation = evaluation_several,
    .put = put_several,
};
