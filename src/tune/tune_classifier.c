/* Task classify with a classifier that reads texts, without tokenizer and neural encoder. */
#include "base/alloc.h"
#include "finetune_impl.h"
#include "tensor/device_impl.h"
#include "tune/multi/ensemble.h"

#include <math.h>
#include <string.h>

ses_finetuner *ses_finetuner_new_classifier(const ses_finetuner_options *o, ses_classifier *c,
                                            ses_device *dev, ses_err *e)
{
    ses_finetuner *t = ses_alloc(sizeof *t, e);
    if (!t) return ses_classifier_free(c), NULL;
    t->task = &ses_finetune_task_by_classifier;
    t->settings = o->settings;
    t->dev = dev;
    t->classifier = c;
    return t;
}

bool ses_classifier_texts(const ses_examples *rows, ses_string *text, ses_arena *mem, ses_err *e)
{
    for (size_t i = 0; i < ses_examples_count(rows); i++) {
        const ses_labeled_example *r = ses_examples_at(rows, i);
        text[i] = (ses_string){ r->text_a.p, r->text_a.n };
        if (!r->text_b.n) continue;
        char *both = ses_arena_array(mem, r->text_a.n + 1 + r->text_b.n, 1, e);
        if (!both) return false;
        memcpy(both, r->text_a.p, r->text_a.n);
        both[r->text_a.n] = ' ';
        memcpy(both + r->text_a.n + 1, r->text_b.p, r->text_b.n);
        text[i] = (ses_string){ both, r->text_a.n + 1 + r->text_b.n };
    }
    return true;
}

/* Scores are log probabilities; the loss is their mean for the true labels. */
static bool predict_rows(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    ses_arena mem = { 0 };
    size_t cols = t->classifier->n_labels, n = s->n_rows;
    ses_string *text = ses_arena_array(&mem, n, sizeof *text, e);
    double *log_p = ses_arena_array(&mem, n * cols, sizeof *log_p, e);
    bool ok = text && log_p && ses_finetuner_begin_scores(s, cols, o, e) &&
              ses_classifier_texts(s->rows, text, &mem, e) &&
              ses_classifier_run(t->classifier, text, n, t->dev->exec.pool, log_p, e);
    for (size_t i = 0; ok && i < n; i++) {
        int32_t label = ses_examples_at(s->rows, i)->label;
        o->loss += !t->unlabeled && label >= 0 ? -log_p[i * cols + (size_t)label] / (double)n : NAN;
        for (size_t c = 0; c < cols; c++) o->score[i * cols + c] = (float)log_p[i * cols + c];
    }
    ses_arena_free(&mem);
    return ok;
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    return ses_finetuner_fill_labels(s, o, t->classifier->n_labels, v, mem, e);
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)s, (void)mem, (void)e;
    size_t cols = t->classifier->n_labels;
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

const ses_finetune_task ses_finetune_task_by_classifier = {
    .name = "classify",
    .summary = "one label for a text or a pair of texts",
    .head = &ses_head_sequence_classification,
    .data = SES_DATA_CLASSIFY,
    .target = SES_TARGET_CLASS,
    .has_label_names = true,
    .metrics = "accuracy|f1",
    .best_metric = "accuracy",
    .way = SES_WAY_CLASSIFIER,
    .predict_rows = predict_rows,
    .combine = ses_ensemble_combine_classes,
    .fill_evaluation = fill_evaluation,
    .fill_prediction = fill_prediction,
    .put_prediction = put_prediction,
};
