/* Task embed: sentence vectors (Sentence-BERT). A row is several texts, each a sequence; the loss defines the
 * objective. Cosines are evaluated against scores, or by triplets. */
#include "finetuner.h"

#include "base/alloc.h"
#include "op/op.h"
#include "sesame/sentence.h"
#include "train/similarity_loss.h"

#include <math.h>
#include <string.h>

/* ---- rows ---- */

static bool has_tuples(const ses_examples *rows) { return ses_examples_kind(rows) == SES_DATA_TUPLE; }

static int64_t group(const ses_finetuner *t, const ses_examples *rows)
{
    (void)t;
    return 2 + (has_tuples(rows) ? (int64_t)ses_examples_at(rows, 0)->n_parts : 0);
}

static bool add_text(ses_finetuner *t, const ses_string *text, int32_t row, ses_real value,
                     ses_finetune_set *s, bool *truncated, ses_err *e)
{
    ses_string x = { text->p, text->n };
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = t->max_tokens };
    bool ok = ses_encode(t->tokens, &(ses_input){ .text = x }, &o, e) &&
              ses_finetuner_add_sequence(t, s, row, ses_encode_ctx_result(t->tokens),
                                         &(ses_sequence){ .values = &value }, NULL, NULL, e);
    *truncated |= ok && ses_encode_ctx_overflow_count(t->tokens) > 0;
    return ok;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    bool truncated = false, label = ses_examples_kind(s->rows) == SES_DATA_CLASSIFY;
    ses_real value = (ses_real)(label ? r->label : r->target / (t->scale_targets ? t->max_abs_target : 1));
    if (!add_text(t, &r->text_a, row, value, s, &truncated, e) ||
        !add_text(t, &r->text_b, row, value, s, &truncated, e))
        return false;
    for (size_t i = 0; has_tuples(s->rows) && i < r->n_parts; i++)
        if (!add_text(t, &r->parts[i], row, value, s, &truncated, e)) return false;
    s->n_truncated += truncated;
    return true;
}

/* ---- losses ---- */

static int64_t example_count(const ses_batch *b) { return b->seqs / b->choices; }

static double margin(const ses_finetuner *t, double default_margin)
{
    return t->settings.margin < 0 ? default_margin : t->settings.margin;
}

static ses_tensor *negatives(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    ses_tensor *x = ses_sentence_embed(t->sentence, tape, b, NULL, e);
    return x ? ses_loss_in_batch_negatives(tape, x, example_count(b), b->choices,
                                           1 / t->settings.cosine_temperature)
             : NULL;
}

static ses_tensor *triplet(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    if (b->choices != 3) {
        ses_fail(e, SES_EUSAGE, "the triplet loss needs one column of negative texts (choices)");
        return NULL;
    }
    ses_tensor *x = ses_sentence_embed(t->sentence, tape, b, NULL, e);
    return x ? ses_loss_triplet(tape, x, example_count(b), margin(t, 5)) : NULL;
}

static ses_tensor *cosine(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    ses_tensor *x = ses_sentence_embed(t->sentence, tape, b, NULL, e);
    return x ? ses_loss_cosine(tape, x, b->targets, example_count(b)) : NULL;
}

static ses_tensor *contrastive(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    for (int64_t i = 0; i < example_count(b); i++)
        if (b->targets[i] != 0 && b->targets[i] != 1) {
            ses_fail(e, SES_EFORMAT, "the label of a contrastive pair is %g, not 0 or 1",
                     (double)b->targets[i]);
            return NULL;
        }
    ses_tensor *x = ses_sentence_embed(t->sentence, tape, b, NULL, e);
    return x ? ses_loss_contrastive(tape, x, b->targets, example_count(b), margin(t, 0.5)) : NULL;
}

static ses_tensor *softmax(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    int64_t n = example_count(b);
    ses_tensor *x = ses_sentence_embed(t->sentence, tape, b, NULL, e);
    int32_t *label = x ? ses_tape_host_alloc(tape, (size_t)n, sizeof *label) : NULL;
    for (int64_t i = 0; label && i < n; i++) label[i] = (int32_t)b->targets[i];
    return label ? ses_loss_softmax(tape, x, t->class_w, t->class_b, label, n) : NULL;
}

/* The classifier over `parts` vectors; it is not saved. */
static bool open_classifier(ses_finetuner *t, int64_t parts, ses_err *e)
{
    if (!ses_store_trainable_count(ses_model_store(t->model))) return true;
    int64_t n = (int64_t)t->n_classes, width = parts * ses_sentence_width(t->sentence);
    t->extra_params = ses_store_new(t->dev, e);
    if (!t->extra_params) return false;
    t->class_w = ses_store_add(t->extra_params, "classifier.weight", SES_DIM(n, width), SES_INIT_FAN_IN);
    t->class_b = ses_store_add(t->extra_params, "classifier.bias", SES_DIM(n), SES_INIT_ZERO);
    if (!ses_store_ok(t->extra_params, e) || !ses_store_alloc_trainable(t->extra_params, e)) return false;
    ses_store_init(t->extra_params, 0, t->seed);
    return true;
}

/* u, v, |u - v| */
static bool open_softmax(ses_finetuner *t, ses_err *e) { return open_classifier(t, 3, e); }
/* u, v, |u - v|, u v (InferSent: Conneau et al. 2017) */
static bool open_softmax_product(ses_finetuner *t, ses_err *e) { return open_classifier(t, 4, e); }

/* Scores from 0 to 5 are divided by 5: a cosine is at most 1. */
static bool open_cosine(ses_finetuner *t, ses_err *e)
{
    (void)e;
    t->scale_targets = t->max_abs_target > 1;
    return true;
}

/* ---- evaluation ---- */

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    size_t n = (size_t)(group(t, s->rows) - 1);
    o->score = ses_arena_array(&o->mem, s->n_rows * n, sizeof *o->score, e);
    return o->score != NULL;
}

static double dot(const ses_real *a, const ses_real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Cosines between a row's first text and each of the others. */
static bool predict_batch(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                          const ses_batch *b, int64_t first, ses_err *e)
{
    int64_t g = b->choices, W = ses_sentence_width(t->sentence);
    ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
    ses_tensor *x = ses_sentence_embed(t->sentence, t->tape, b, NULL, e);
    ses_real *v = x ? ses_alloc_array((size_t)ses_count(x), sizeof *v, e) : NULL;
    bool ok = v && ses_tape_read(t->tape, x, v);
    for (int64_t i = 0; ok && i < b->seqs; i++) {
        const ses_real *u = v + i / g * g * W, *w = v + i * W;
        float *to = o->score + s->row[first + i] * (g - 1);
        if (i % g) to[i % g - 1] = (float)(dot(u, w, W) / sqrt(fmax(dot(u, u, W) * dot(w, w, W), 1e-24)));
    }
    ses_free(v);
    return ok;
}

static bool finish(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    (void)t, (void)s, (void)e;
    o->loss = NAN; /* evaluation data differ from the data of the loss */
    return true;
}

/* A row is correct if the first text is closer to the second than to all negatives. */
static bool fill_triplets(const ses_finetune_set *s, const ses_finetune_outputs *o, ses_evaluation *v,
                          ses_arena *mem, ses_err *e)
{
    int32_t *true_labels = ses_arena_array(mem, v->n, sizeof *true_labels, e),
            *pred = ses_arena_array(mem, v->n, sizeof *pred, e);
    for (size_t i = 0; true_labels && pred && i < v->n; i++) {
        size_t others = ses_examples_at(s->rows, i)->n_parts;
        const float *cos = o->score + i * (others + 1);
        true_labels[i] = pred[i] = 1;
        for (size_t k = 1; k <= others; k++) pred[i] &= cos[0] > cos[k];
    }
    v->true_labels = true_labels;
    v->pred_labels = pred;
    v->n_labels = 2;
    v->labels = NULL;
    return true_labels && pred;
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    if (has_tuples(s->rows)) return fill_triplets(s, o, v, mem, e);
    return ses_finetuner_fill_reals(s, o, v, mem, e);
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)mem, (void)e;
    p->value = (double)o->score[row * (size_t)(group(t, s->rows) - 1)];
    return true;
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    int64_t n = group(t, s->rows) - 1;
    ses_json_put_key(w, n > 1 ? "similarities" : "similarity");
    if (n > 1) ses_json_begin_array(w);
    for (int64_t k = 0; k < n; k++) ses_json_put_float(w, o->score[(int64_t)row * n + k]);
    if (n > 1) ses_json_end_array(w);
}

/* ---- the task with each of its losses ---- */

#define EMBED                                                                                             \
    .name = "embed", .aliases = "similarity|sentence-similarity",                                         \
    .summary = "sentence vectors, similar for similar meanings", .target = SES_TARGET_VALUES, .width = 1, \
    .group = group, .metrics = "spearman|pearson", .best_metric = "spearmanr", .encode = encode,          \
    .begin = begin, .predict_batch = predict_batch, .finish = finish, .fill_evaluation = fill_evaluation, \
    .fill_prediction = fill_prediction, .put_prediction = put_prediction

static const ses_finetune_task by_softmax = { EMBED, .loss_name = "softmax", .data = SES_DATA_CLASSIFY,
                                              .open = open_softmax, .loss = softmax };
static const ses_finetune_task by_softmax_product = { EMBED, .loss_name = "softmax-product",
                                                      .data = SES_DATA_CLASSIFY, .open = open_softmax_product,
                                                      .loss = softmax };
static const ses_finetune_task by_cosine = { EMBED, .loss_name = "cosine", .data = SES_DATA_REGRESS,
                                             .open = open_cosine, .loss = cosine };
static const ses_finetune_task by_contrastive = { EMBED, .loss_name = "contrastive", .data = SES_DATA_REGRESS,
                                                  .loss = contrastive };
static const ses_finetune_task by_triplet = { EMBED, .loss_name = "triplet", .data = SES_DATA_TUPLE,
                                              .eval_triplets = true, .loss = triplet };
static const ses_finetune_task *const others[] = { &by_softmax,     &by_softmax_product, &by_cosine,
                                                   &by_contrastive, &by_triplet,         NULL };
const ses_finetune_task ses_finetune_task_embed = { EMBED, .loss_name = "negatives", .other_losses = others,
                                                    .data = SES_DATA_TUPLE, .loss = negatives };
