/* Task choose: which of several texts fits. Each choice is a sequence: the text, then the common beginning
 * of the choices and the choice, as in transformers' run_swag.py. */
#include "tune/multi/ensemble.h"

#include "base/str.h"

#include <string.h>

static int64_t group(const ses_finetuner *t, const ses_examples *rows)
{
    (void)t;
    return (int64_t)ses_examples_at(rows, 0)->n_parts; /* the same in every row */
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = t->max_tokens };
    ses_buf pair = { 0 };
    bool ok = true, truncated = false;
    for (size_t i = 0; ok && i < r->n_parts; i++) {
        pair.len = 0;
        ses_buf_appendf(&pair, "%s%s%s", r->text_b.p, r->text_b.n ? " " : "", r->parts[i].p);
        ses_input in = { .text = { r->text_a.p, r->text_a.n }, .pair = { pair.data, pair.len } };
        ok = ses_buf_ok(&pair, e) && ses_encode(t->tokens, &in, &o, e) &&
             ses_finetuner_add_sequence(t, s, row, ses_encode_ctx_result(t->tokens),
                                        &(ses_sequence){ .label = r->label }, NULL, NULL, e);
        truncated |= ok && ses_encode_ctx_overflow_count(t->tokens) > 0;
    }
    s->n_truncated += truncated;
    ses_buf_free(&pair);
    return ok;
}

static size_t choice_count(const ses_finetune_set *s) { return ses_examples_at(s->rows, 0)->n_parts; }

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    (void)t;
    return ses_finetuner_begin_scores(s, choice_count(s), o, e);
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    v->n_labels = choice_count(s);
    v->labels = NULL;
    return ses_finetuner_fill_labels(s, o, v->n_labels, v, mem, e);
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)t, (void)mem, (void)e;
    size_t n = choice_count(s);
    p->choice = ses_finetuner_softmax(o->score + row * n, n, &p->score);
    p->text = ses_examples_at(s->rows, row)->parts[p->choice].p;
    return true;
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    ses_prediction p = { 0 };
    fill_prediction(t, s, o, row, &p, NULL, NULL);
    ses_json_member_int(w, "choice", p.choice);
    ses_json_put_key(w, "score");
    ses_json_put_float(w, (float)p.score);
    ses_json_member_string(w, "text", p.text);
}

const ses_finetune_task ses_finetune_task_choose = {
    .name = "choose",
    .aliases = "multiple-choice",
    .summary = "which of several texts fits",
    .head = &ses_head_multiple_choice,
    .data = SES_DATA_CHOICE,
    .target = SES_TARGET_CLASS,
    .group = group,
    .metrics = "accuracy",
    .best_metric = "accuracy",
    .encode = encode,
    .begin = begin,
    .collect = ses_finetuner_collect_scores,
    .combine = ses_ensemble_combine_classes,
    .fill_evaluation = fill_evaluation,
    .fill_prediction = fill_prediction,
    .put_prediction = put_prediction,
};
