/* Task classify by patterns: the text becomes a cloze question, and the masked LM's scores of the words that
 * represent the labels are the scores of the labels (PET, ADAPET, LM-BFF). No new parameters. */
#include "base/alloc.h"
#include "finetune_impl.h"
#include "tune/few_shot/cloze_batches.h"
#include "tune/few_shot/cloze_loss.h"
#include "tune/multi/ensemble.h"

#include <math.h>

typedef struct cloze_state {
    ses_patterns *own; /* read from a file; NULL: borrowed */
    ses_cloze_prompt *prompt;
    ses_cloze_batches *batches; /* NULL: questions only */
} cloze_state;

static const ses_few_shot *few_shot(const ses_finetuner *t)
{
    static const ses_few_shot none = { 0 };
    return t->settings.few_shot ? t->settings.few_shot : &none;
}

ses_cloze_prompt *ses_cloze_prompt_of(const ses_finetuner *t) { return ((cloze_state *)t->state)->prompt; }

static void close_task(ses_finetuner *t)
{
    cloze_state *s = t->state;
    if (!s) return;
    ses_cloze_batches_free(s->batches);
    ses_cloze_prompt_free(s->prompt);
    ses_patterns_free(s->own);
    ses_free(s);
    t->state = NULL;
}

static bool open_task(ses_finetuner *t, ses_err *e)
{
    const char *file = t->settings.patterns;
    const ses_patterns *p = few_shot(t)->patterns;
    cloze_state *s = t->state = ses_alloc(sizeof *s, e);
    if (!s) return false;
    if (!p && !file) return ses_fail(e, SES_EUSAGE, "set patterns: a file of patterns and verbalizers");
    if (!p) p = s->own = ses_patterns_open(file, e);
    if (!p) return false;
    ses_cloze_prompt_options o = { .patterns = p,
                                   .pattern = t->settings.pattern > 0 ? (size_t)t->settings.pattern - 1 : 0,
                                   .label = t->label,
                                   .n_labels = t->n_labels,
                                   .tokenizer = t->tokenizer,
                                   .tokens = t->tokens,
                                   .config = &t->tokenizer_config };
    s->prompt = ses_cloze_prompt_new(&o, e);
    return s->prompt || (file && ses_wrap(e, "%s", file));
}

static bool save(const ses_finetuner *t, const char *dir, ses_err *e)
{
    const ses_cloze_prompt *p = ses_cloze_prompt_of(t);
    return ses_patterns_save(p->o.patterns, p->o.pattern + 1, dir, SES_PATTERN_FILE, e);
}

/* ---- sequences ---- */

static bool add_question(ses_finetuner *t, const ses_labeled_example *r, int32_t row, int64_t set,
                         ses_finetune_set *s, ses_err *e)
{
    ses_cloze_prompt *p = ses_cloze_prompt_of(t);
    if (!ses_cloze_prompt_ask(p, r->text_a, r->text_b, set, t->max_tokens, e)) return false;
    int32_t *tags = ses_finetuner_scratch(t, p->ids.n, e);
    if (!tags) return false;
    for (size_t i = 0; i < p->ids.n; i++) tags[i] = SES_IGNORE_INDEX;
    tags[p->mask_at] = ses_cloze_prompt_token_of(p, r->label >= 0 ? r->label : 0);
    s->n_truncated += !set && p->n_removed > 0;
    ses_sequence q = { .n = (int64_t)p->ids.n,
                       .ids = p->ids.p,
                       .segments = p->segments.p,
                       .tags = tags,
                       .origin = (int64_t)r->line };
    if (!ses_array_reserve(&s->row, &s->cap, s->n + 1, sizeof *s->row, e) || !ses_dataset_add(s->data, &q, e))
        return false;
    s->row[s->n++] = row;
    s->tokens += p->ids.n;
    return true;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < ses_cloze_prompt_sets(ses_cloze_prompt_of(t)); i++)
        ok = add_question(t, r, row, i, s, e);
    return ok;
}

static bool finish_encoding(ses_finetuner *t, ses_finetune_set *s, ses_err *e)
{
    bool found = !ses_cloze_prompt_of(t)->pattern->has_pair;
    for (size_t i = 0; !found && i < s->n_rows; i++) found = ses_examples_at(s->rows, i)->text_b.n > 0;
    return found ||
           ses_fail(e, SES_EFORMAT, "the pattern has {pair}, but the data have one text: set --pair");
}

static bool wrap_source(ses_finetuner *t, const ses_finetune_set *s, ses_batches *batches, uint64_t seed,
                        ses_batch_source *source, ses_err *e)
{
    cloze_state *st = t->state;
    if (!few_shot(t)->unlabeled && !few_shot(t)->decoupled) return true;
    st->batches = ses_cloze_batches_new(t, st->prompt, s, batches, seed, e);
    if (st->batches) *source = ses_cloze_batches_source(st->batches);
    return st->batches != NULL;
}

/* ---- loss ---- */

/* Rows with a label, by kind of their sequence: row[n], label[n], and where each kind begins. */
typedef struct labeled_rows {
    int32_t *row, *label;
    int64_t begin[SES_CLOZE_REJECT + 2];
} labeled_rows;

static bool find_rows(ses_tape *tape, const ses_batch *b, labeled_rows *r)
{
    int64_t n = 0;
    r->row = ses_tape_host_alloc(tape, (size_t)b->tokens, sizeof *r->row);
    r->label = ses_tape_host_alloc(tape, (size_t)b->tokens, sizeof *r->label);
    if (!r->row || !r->label) return false;
    for (int32_t kind = SES_CLOZE_QUESTION; kind <= SES_CLOZE_REJECT; kind++) {
        r->begin[kind] = n;
        for (int64_t s = 0; s < b->seqs; s++) {
            if ((b->pair_labels ? b->pair_labels[s] : SES_CLOZE_QUESTION) != kind) continue;
            for (int32_t i = b->cu_seqlens[s]; i < b->cu_seqlens[s + 1]; i++)
                if (b->labels[i] != SES_IGNORE_INDEX) r->row[n] = i, r->label[n++] = b->labels[i];
        }
    }
    r->begin[SES_CLOZE_REJECT + 1] = n;
    return true;
}

/* Logits of the rows: [n, vocabulary]. */
static ses_tensor *logits_of(const ses_finetuner *t, ses_tape *tape, const ses_batch *b,
                             const labeled_rows *r, ses_err *e)
{
    ses_outputs out;
    ses_batch plain = *b;
    plain.labels = plain.pair_labels = NULL;
    ses_output_request want = { .logits = true, .rows = r->row, .n_rows = r->begin[SES_CLOZE_REJECT + 1] };
    if (!ses_model_forward(t->model, tape, &plain, &want, &out, e)) return NULL;
    const ses_output *x = ses_outputs_find(&out, out.head[0].output);
    if (!x) ses_fail(e, SES_EUNSUPPORTED, "%s has no scores of tokens", ses_model_class_name(t->model));
    return x ? x->tensor : NULL;
}

ses_tensor *ses_cloze_logits(const ses_finetuner *t, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    labeled_rows r;
    return find_rows(tape, b, &r) ? logits_of(t, tape, b, &r, e) : NULL;
}

/* The rows of x of one kind. */
static ses_tensor *rows_of(ses_tape *tape, ses_tensor *x, const labeled_rows *r, int kind)
{
    int64_t n = r->begin[kind + 1] - r->begin[kind];
    int32_t *row = ses_tape_host_alloc(tape, (size_t)n, sizeof *row);
    if (!row || n == ses_rows(x)) return row ? x : NULL;
    for (int64_t i = 0; i < n; i++) row[i] = (int32_t)(r->begin[kind] + i);
    return ses_gather(tape, x, ses_tape_ints(tape, row, n));
}

static ses_tensor *add_scaled(ses_tape *t, ses_tensor *sum, ses_tensor *x, double weight)
{
    x = ses_scale(t, x, weight);
    return sum ? ses_add(t, sum, x) : x;
}

/* The loss of masked tokens: their mean; NULL: there are none. */
static ses_tensor *token_loss(ses_tape *tape, ses_tensor *x, const labeled_rows *r)
{
    ses_tensor *sum = NULL;
    int64_t predict = r->begin[SES_CLOZE_PREDICT], reject = r->begin[SES_CLOZE_REJECT],
            end = r->begin[SES_CLOZE_REJECT + 1];
    if (reject > predict) {
        ses_tensor *y = rows_of(tape, x, r, SES_CLOZE_PREDICT);
        y = ses_cross_entropy(tape, y, ses_tape_ints(tape, r->label + predict, reject - predict));
        sum = add_scaled(tape, sum, y, (double)(reject - predict) / (double)(end - predict));
    }
    if (end > reject) {
        ses_tensor *y = rows_of(tape, x, r, SES_CLOZE_REJECT);
        sum = add_scaled(tape, sum, ses_cloze_reject_loss(tape, y, r->label + reject),
                         (double)(end - reject) / (double)(end - predict));
    }
    return sum;
}

static ses_tensor *loss(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    const ses_few_shot *how = few_shot(t);
    const ses_cloze_prompt *p = ses_cloze_prompt_of(t);
    labeled_rows r;
    ses_tensor *x = find_rows(tape, b, &r) ? logits_of(t, tape, b, &r, e) : NULL;
    int64_t n = r.begin[SES_CLOZE_PREDICT];
    int32_t *label = x ? ses_tape_host_alloc(tape, (size_t)n, sizeof *label) : NULL;
    for (int64_t i = 0; label && i < n; i++) label[i] = ses_cloze_prompt_label_of(p, r.label[i]);
    if (!label) return NULL;
    ses_tensor *q = rows_of(tape, x, &r, SES_CLOZE_QUESTION);
    ses_tensor *y = how->decoupled ? ses_cloze_decoupled_loss(p, tape, q, label)
                                   : ses_cloze_label_loss(p, tape, q, label);
    ses_tensor *aux = token_loss(tape, x, &r);
    if (!aux) return y;
    if (how->decoupled) return ses_add(tape, y, aux);
    return add_scaled(tape, ses_scale(tape, y, 1 - how->mlm_weight), aux, how->mlm_weight);
}

/* ---- predictions ---- */

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    return ses_finetuner_begin_scores(s, t->n_labels, o, e);
}

static double log_sum(const float *x, size_t n)
{
    double max = (double)x[0], sum = 0;
    for (size_t i = 1; i < n; i++) max = fmax(max, (double)x[i]);
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - max);
    return max + log(sum);
}

/* Scores are means over the sequences of a row. */
static bool predict_batch(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                          const ses_batch *b, int64_t first, ses_err *e)
{
    size_t cols = t->n_labels;
    ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
    ses_tensor *x = ses_cloze_logits(t, t->tape, b, e);
    int64_t vocab = x ? ses_cols(x) : 0;
    ses_real *raw = x ? ses_alloc_array((size_t)ses_count(x), sizeof *raw, e) : NULL;
    float *wide = raw ? ses_alloc_array((size_t)vocab + cols, sizeof *wide, e) : NULL, *score = wide + vocab;
    bool ok = wide && ses_tape_read(t->tape, x, raw);
    for (int64_t i = 0; ok && i < b->seqs; i++) {
        for (int64_t k = 0; k < vocab; k++) wide[k] = (float)raw[i * vocab + k];
        ses_cloze_prompt_scores(ses_cloze_prompt_of(t), wide, score);
        int32_t label = ses_examples_at(s->rows, (size_t)s->row[first + i])->label;
        o->loss += !t->unlabeled && label >= 0 ? log_sum(score, cols) - (double)score[label] : NAN;
        float *to = o->score + (size_t)s->row[first + i] * cols;
        for (size_t c = 0; c < cols; c++)
            to[c] += score[c] / (float)ses_cloze_prompt_sets(ses_cloze_prompt_of(t));
    }
    ses_free(raw);
    ses_free(wide);
    return ok;
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    return ses_finetuner_fill_labels(s, o, t->n_labels, v, mem, e);
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)s, (void)mem, (void)e;
    p->label = t->label[ses_finetuner_softmax(o->score + row * t->n_labels, t->n_labels, &p->score)];
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

const ses_finetune_task ses_finetune_task_by_cloze = {
    .name = "classify",
    .summary = "one label for a text or a pair of texts",
    .head = &ses_head_masked_lm,
    .data = SES_DATA_CLASSIFY,
    .target = SES_TARGET_TAGS,
    .has_label_names = true,
    .way = SES_WAY_PATTERNS,
    .metrics = "accuracy|f1",
    .best_metric = "accuracy",
    .open = open_task,
    .close = close_task,
    .save = save,
    .loss = loss,
    .encode = encode,
    .finish_encoding = finish_encoding,
    .wrap_source = wrap_source,
    .begin = begin,
    .predict_batch = predict_batch,
    .combine = ses_ensemble_combine_classes,
    .fill_evaluation = fill_evaluation,
    .fill_prediction = fill_prediction,
    .put_prediction = put_prediction,
};
