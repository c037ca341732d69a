/* Multiple choice (task choose): which of several texts fits. Each choice is a sequence: the text, then the
 * common beginning of the choices and the choice, as in transformers' run_swag.py. */
#include "tune/gpt/gpt_tuning.h"
#include "tune/multi/ensemble.h"

#include "base/str.h"
#include "model/model_desc.h"

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

/* [start] text [delimiter] choice [extract] */
static bool encode_gpt(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                       ses_err *e)
{
    ses_buf choice = { 0 };
    bool ok = true;
    for (size_t i = 0; ok && i < r->n_parts; i++) {
        choice.len = 0;
        ses_buf_appendf(&choice, "%s%s%s", r->text_b.p, r->text_b.n ? " " : "", r->parts[i].p);
        ok =
            ses_buf_ok(&choice, e) && ses_gpt_add_texts(t, r->text_a, (ses_string){ choice.data, choice.len },
                                                        row, s, &(ses_sequence){ .label = r->label }, e);
    }
    ses_buf_free(&choice);
    return ok;
}

static bool open_plain(ses_finetuner *t, ses_err *e)
{
    return t->model->class->head[0].head == &ses_head_multiple_choice ||
           ses_fail(e, SES_EUNSUPPORTED, "%s has an LM head, too: choose with it needs --inputs gpt1",
                    t->model->class->name);
}

static bool open_gpt(ses_finetuner *t, ses_err *e)
{
    if (t->gpt.both_orders)
        return ses_fail(e, SES_EUSAGE, "both-orders compares two texts: it does not apply to choose");
    return ses_gpt_open(t, e);
}

#define MULTIPLE_CHOICE                                                                                     \
    .name = "choose", .aliases = "multiple-choice", .summary = "which of several texts fits",               \
    .head = &ses_head_multiple_choice, .data = SES_DATA_CHOICE, .target = SES_TARGET_CLASS, .group = group, \
    .metrics = "accuracy", .best_metric = "accuracy", .begin = begin,                                       \
    .combine = ses_ensemble_combine_classes, .fill_evaluation = fill_evaluation,                            \
    .fill_prediction = fill_prediction, .put_prediction = put_prediction

static const ses_finetune_task gpt_way = { MULTIPLE_CHOICE,
                                           .way = SES_WAY_GPT,
                                           .lm_head = &ses_head_causal_lm,
                                           .open_tokenizer = ses_gpt_open_tokenizer,
                                           .put_config = ses_gpt_put_config,
                                           .open = open_gpt,
                                           .loss = ses_gpt_loss,
                                           .predict_batch = ses_gpt_predict_batch,
                                           .encode = encode_gpt };
const ses_finetune_task ses_finetune_task_multiple_choice = { MULTIPLE_CHOICE,
                                                              .ways = { [SES_WAY_GPT] = &gpt_way },
                                                              .open = open_plain, .encode = encode,
                                                              .collect = ses_finetuner_collect_scores };
