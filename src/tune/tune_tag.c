/* Task tag: a label for every word. The first token of a word has its label, or all of them (all_pieces); the
 * prediction is the first token's. A CRF (crf) reads the first tokens only. */
#include "tag_words.h"
#include "tune/multi/ensemble.h"

#include "generate/logit_scores.h"
#include "model/model_desc.h"
#include "nn/crf_decoder.h"

#include <math.h>
#include <string.h>

/* Labels [n], then words [n] of the encoding's tokens; in scratch. */
static int32_t *token_labels(ses_finetuner *t, const ses_labeled_example *r, const ses_encoding *k,
                             ses_err *e)
{
    int32_t *tags = ses_finetuner_scratch(t, 2 * k->n, e), before = -1;
    for (size_t i = 0; tags && i < k->n; i++) {
        int32_t at = k->special_mask[i] ? -1 : k->word_id[i];
        bool first = at >= 0 && at != before;
        tags[k->n + i] = first ? at : -1;
        tags[i] =
            r->labels && at >= 0 && (first || t->settings.all_pieces) ? r->labels[at] : SES_IGNORE_INDEX;
        if (at >= 0) before = at;
    }
    return tags;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_arena mem = { 0 };
    ses_sequence q = { 0 };
    ses_input in;
    bool ok = (!t->words || ses_tag_words_get(t, s, (size_t)row, &q, &mem, e)) &&
              ses_tag_encode(t, r, &in, &mem, e);
    const ses_encoding *k = ok ? ses_encode_ctx_result(t->tokens) : NULL;
    int32_t *tags = ok ? token_labels(t, r, k, e) : NULL;
    if (ok) s->n_truncated += ses_encode_ctx_overflow_count(t->tokens) > 0;
    if (tags) s->n_lost_words += (int64_t)r->n_parts;
    for (size_t i = 0; tags && i < k->n; i++) s->n_lost_words -= tags[k->n + i] >= 0;
    q.tags = tags;
    ok = tags && (t->words || ses_finetuner_add_unknown_words(t, s, &in, k, &q, &mem, e)) &&
         ses_finetuner_add_sequence(t, s, row, k, &q, tags + k->n, NULL, e);
    ses_arena_free(&mem);
    return ok;
}

/* The dataset has copies of the features. */
static bool finish_encoding(ses_finetuner *t, ses_finetune_set *s, ses_err *e)
{
    (void)t, (void)e;
    ses_tag_words_free(s->words);
    s->words = NULL;
    return true;
}

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    size_t words = 0;
    bool has_crf;
    ses_crf_decoder *crf = ses_arena_array(&o->mem, 1, sizeof *crf, e);
    if (!crf || !ses_crf_decoder_init(crf, t->model->store, t->model->c.crf.scheme, t->label, t->n_labels,
                                      &o->mem, &has_crf, e))
        return false;
    o->state = has_crf ? crf : NULL;
    o->tag_cu = ses_arena_array(&o->mem, s->n_rows + 1, sizeof *o->tag_cu, e);
    if (!o->tag_cu) return false;
    for (size_t r = 0; r < s->n_rows; r++) o->tag_cu[r + 1] = words += ses_examples_at(s->rows, r)->n_parts;
    o->tags = ses_arena_array(&o->mem, words, sizeof *o->tags, e);
    for (size_t i = 0; o->tags && i < words; i++) o->tags[i] = -1;
    if (!t->in_ensemble) return o->tags != NULL;
    o->prob = ses_arena_array(&o->mem, words * t->n_labels + 1, sizeof *o->prob, e);
    return o->tags && o->prob;
}

/* The best sequence of labels of the words that have a token. prob: of their labels; or NULL. */
static bool decode(ses_finetuner *t, const ses_crf_decoder *crf, const int32_t *word, const float *x,
                   int64_t n, int32_t *tags, float *prob, ses_err *e)
{
    ses_arena mem = { 0 };
    int32_t *row = ses_finetuner_scratch(t, 2 * (size_t)n, e), count = 0;
    size_t cols = t->n_labels;
    float *marginal = prob ? ses_arena_array(&mem, (size_t)n * cols, sizeof *marginal, e) : NULL;
    if (!row || (prob && !marginal)) return ses_arena_free(&mem), false;
    for (int32_t i = 0; i < n; i++)
        if (word[i] >= 0) row[count++] = i;
    bool ok = ses_crf_decode(crf, x, row, count, row + n, marginal, e);
    for (int32_t k = 0; ok && k < count; k++) {
        size_t at = (size_t)word[row[k]];
        tags[at] = row[n + k];
        if (prob) memcpy(prob + at * cols, marginal + (size_t)k * cols, cols * sizeof *prob);
    }
    ses_arena_free(&mem);
    return ok;
}

/* Probabilities of the labels of a token. */
static void softmax(const float *x, int64_t cols, float *prob)
{
    double p;
    int64_t best = ses_finetuner_softmax(x, (size_t)cols, &p);
    for (int64_t k = 0; k < cols; k++) prob[k] = (float)(exp((double)x[k] - (double)x[best]) * p);
}

static bool collect(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, int64_t sequence,
                    const float *x, int64_t n, int64_t cols, ses_err *e)
{
    /* one sequence per row: tokens have the same order in the set and in the dataset */
    const int32_t *word = s->word + (ses_dataset_at(s->data, sequence).ids - ses_dataset_at(s->data, 0).ids);
    int32_t *tags = o->tags + o->tag_cu[s->row[sequence]];
    float *prob = o->prob ? o->prob + o->tag_cu[s->row[sequence]] * t->n_labels : NULL;
    if (o->state) return decode(t, o->state, word, x, n, tags, prob, e);
    for (int64_t i = 0; i < n; i++) {
        if (word[i] < 0) continue;
        tags[word[i]] = (int32_t)ses_argmax(x + i * cols, cols);
        if (prob) softmax(x + i * cols, cols, prob + word[i] * cols);
    }
    return true;
}

/* The best label by the mean of the models that have read the word: tokenizers may differ. */
static bool combine(const ses_ensemble_member *m, size_t n, ses_err *e)
{
    size_t words = m->o->tag_cu[m->s->n_rows], cols = m->t->n_labels;
    float *mean = ses_arena_array(&m->o->mem, cols, sizeof *mean, e);
    for (size_t w = 0; mean && w < words; w++) {
        bool has_tag = false;
        memset(mean, 0, cols * sizeof *mean);
        for (size_t i = 0; i < n; i++) {
            if (m[i].o->tags[w] < 0) continue;
            has_tag = true;
            for (size_t k = 0; k < cols; k++)
                mean[k] += m[i].o->prob[w * cols + ses_ensemble_label(&m[i], k)];
        }
        m->o->tags[w] = has_tag ? (int32_t)ses_argmax(mean, (int64_t)cols) : -1;
    }
    m->o->loss = NAN;
    return mean != NULL;
}

/* Truncated words are ignored, as in transformers' run_ner.py. */
static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    size_t words = o->tag_cu[v->n];
    int32_t *true_labels = ses_arena_array(mem, words, sizeof *true_labels, e),
            *pred = ses_arena_array(mem, words, sizeof *pred, e);
    for (size_t r = 0; true_labels && pred && r < v->n; r++) {
        const ses_labeled_example *x = ses_examples_at(s->rows, r);
        for (size_t i = 0; i < x->n_parts; i++) {
            size_t at = o->tag_cu[r] + i;
            true_labels[at] = o->tags[at] < 0 || !x->labels ? SES_IGNORE_INDEX : x->labels[i];
            pred[at] = o->tags[at] < 0 ? 0 : o->tags[at];
        }
    }
    v->true_labels = true_labels;
    v->pred_labels = pred;
    v->cu = o->tag_cu;
    return true_labels && pred;
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    p->n_labels = ses_examples_at(s->rows, row)->n_parts;
    const char **labels = ses_arena_array(mem, p->n_labels + 1, sizeof *labels, e);
    for (size_t i = 0; labels && i < p->n_labels; i++) {
        int32_t tag = o->tags[o->tag_cu[row] + i];
        labels[i] = tag < 0 ? NULL : t->label[tag];
    }
    p->labels = labels;
    return labels && (!t->settings.scheme ||
                      ses_tag_names_convert(labels, p->n_labels, (ses_tag_scheme)t->settings.scheme, mem, e));
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    const ses_labeled_example *r = ses_examples_at(s->rows, row);
    ses_json_member_array(w, "words");
    for (size_t i = 0; i < r->n_parts; i++) ses_json_put_stringn(w, r->parts[i].p, r->parts[i].n);
    ses_json_end_array(w);
    int64_t lost = 0;
    ses_arena mem = { 0 };
    ses_prediction p = { 0 };
    bool ok = fill_prediction(t, s, o, row, &p, &mem, NULL);
    ses_json_member_array(w, "tags");
    for (size_t i = 0; ok && i < p.n_labels; i++) {
        ses_json_put_string(w, p.labels[i]);
        lost += !p.labels[i];
    }
    ses_json_end_array(w);
    ses_arena_free(&mem);
    if (lost)
        ses_json_put_key(w, "cut"),
            ses_json_put_int(w, lost); /* words without a tag; the key is part of the format */
}

const ses_finetune_task ses_finetune_task_tag = {
    .name = "tag",
    .aliases = "token-classification|ner",
    .summary = "a label for every word",
    .head = &ses_head_token_classification,
    .data = SES_DATA_TAG,
    .format = SES_DATA_CONLL,
    .target = SES_TARGET_TAGS,
    .has_label_names = true,
    .metrics = "entity|token_f1",
    .best_metric = "f1",
    .encode = encode,
    .finish_encoding = finish_encoding,
    .begin = begin,
    .collect = collect,
    .combine = combine,
    .fill_evaluation = fill_evaluation,
    .fill_prediction = fill_prediction,
    .put_prediction = put_prediction,
};
