/* Which of several texts fits: each choice is a sequence of its own, the text and then what all choices begin
 * with and the choice, as the reference's script for SWAG has them. */
#include "finetuner.h"

#include "base/str.h"

#include <string.h>

static int64_t group(const ses_finetuner *t, const ses_examples *rows)
{
    (void)t;
    return (int64_t)ses_examples_at(rows, 0)->n_parts; /* columns: as many in every row */
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = t->max_tokens };
    ses_buf pair = { 0 };
    bool ok = true, cut = false;
    for (size_t i = 0; ok && i < r->n_parts; i++) {
        pair.len = 0;
        ses_buf_appendf(&pair, "%s%s%s", r->text_b.p, r->text_b.n ? " " : "", r->parts[i].p);
        ses_input in = { .text = { r->text_a.p, r->text_a.n }, .pair = { pair.data, pair.len } };
        ok = ses_buf_ok(&pair, e) && ses_encode(t->tokens, &in, &o, e) &&
             ses_finetuner_add_sequence(t, s, row, ses_tokens_result(t->tokens),
                                        &(ses_sequence){ .label = r->label }, NULL, NULL, e);
        cut |= ok && ses_tokens_overflow_count(t->tokens) > 0;
    }
    s->n_truncated += cut;
    ses_buf_free(&pair);
    return ok;
}

static size_t choices(const ses_finetune_set *s) { return ses_examples_at(s->rows, 0)->n_parts; }

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, ses_err *e)
{
    (void)t;
    p->score = ses_arena_array(&p->mem, s->n_rows * choices(s), sizeof *p->score, e);
    return p->score != NULL;
}

static bool take(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, int64_t sequence,
                 const float *x, int64_t n, int64_t cols, ses_err *e)
{
    (void)t, (void)n, (void)e;
    memcpy(p->score + s->row[sequence] * cols, x, (size_t)cols * sizeof *x);
    return true;
}

static bool evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                       ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    v->n_labels = choices(s);
    v->labels = NULL;
    return ses_finetuner_fill_labels(s, p, v->n_labels, v, mem, e);
}

static void put(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                ses_json_writer *w)
{
    (void)t;
    double probability;
    int64_t best = ses_finetuner_softmax(p->score + row * choices(s), choices(s), &probability);
    const ses_string *text = &ses_examples_at(s->rows, row)->parts[best];
    ses_json_put_key(w, "choice");
    ses_json_put_int(w, best);
    ses_json_put_key(w, "score");
    ses_json_put_float(w, (float)probability);
    ses_json_put_key(w, "text");
    ses_json_put_stringn(w, text->p, text->n);
}

const ses_finetune_task ses_finetune_task_choose = {
    .name = "choose",
    .summary = "which of several texts fits",
    .head = &ses_head_multiple_choice,
    .data = SES_DATA_CHOICE,
    .target = SES_TARGET_CLASS,
    .group = group,
    .metrics = "accuracy",
    .best_metric = "accuracy",
    .encode = encode,
    .begin = begin,
    .collect = take,
    .fill_evaluation = evaluation,
    .put_prediction = put,
};
