/* Language models (task continue): causal language modeling. Texts are joined and split into blocks of equal
 * length, the rest is dropped, as in transformers' run_clm.py; or each text is a sequence (line_by_line). */
#include "finetuner.h"

#include "base/alloc.h"
#include "metric/word_ids.h"
#include "model/model_desc.h"
#include "run/pass.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Adds a sequence, in the order in which the model reads it. */
static bool add(ses_finetuner *t, ses_finetune_set *s, int32_t row, const int32_t *id, size_t n, ses_err *e)
{
    if (t->model->c.rnn.backward) {
        int32_t *reversed = ses_finetuner_scratch(t, n, e);
        if (!reversed) return false;
        for (size_t i = 0; i < n; i++) reversed[i] = id[n - 1 - i];
        id = reversed;
    }
    ses_encoding k = { .n = n, .id = id };
    return ses_finetuner_add_sequence(t, s, row, &k, &(ses_sequence){ .tags = id }, NULL, NULL, e);
}

/* Adds all full blocks of the pending tokens. */
static bool add_blocks(ses_finetuner *t, ses_finetune_set *s, int32_t row, ses_err *e)
{
    size_t at = 0, block = (size_t)t->max_tokens;
    for (; s->n_pending - at >= block; at += block) {
        if (!add(t, s, row, s->pending + at, block, e)) return false;
        s->row[s->n - 1] = (int32_t)(s->n - 1); /* the row of a block is its own number */
    }
    memmove(s->pending, s->pending + at, (s->n_pending - at) * sizeof *s->pending);
    s->n_pending -= at;
    return true;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    const int32_t *id;
    size_t n, len = r->text_a.n;
    if (t->settings.line_by_line) {
        while (len && r->text_a.p[len - 1] == '\n') len--;
        ses_input in = { .text = { r->text_a.p, len } };
        ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST, .max_length = t->max_tokens };
        if (!ses_encode(t->tokens, &in, &o, e)) return false;
        const ses_encoding *k = ses_encode_ctx_result(t->tokens);
        s->n_truncated += ses_encode_ctx_overflow_count(t->tokens) > 0;
        return !k->n || add(t, s, row, k->id, k->n, e); /* an empty text is skipped */
    }
    if (!ses_encode_ids(t->tokens, r->text_a.p, len, true, &id, &n, e) ||
        !ses_array_reserve(&s->pending, &s->pending_cap, s->n_pending + n, sizeof *s->pending, e))
        return false;
    if (n) memcpy(s->pending + s->n_pending, id, n * sizeof *id);
    s->n_pending += n;
    return add_blocks(t, s, row, e);
}

static int32_t end_token(const ses_finetuner *t)
{
    const int32_t *role = t->tokenizer_config.role;
    return role[SES_ROLE_EOS] >= 0 ? role[SES_ROLE_EOS] : role[SES_ROLE_SEP];
}

/* A text and the same text again, whose tokens are predicted; the end token follows both. */
static bool add_twice(ses_finetuner *t, ses_finetune_set *s, int32_t row, const int32_t *id, size_t n,
                      ses_err *e)
{
    int32_t end = end_token(t);
    size_t part = n + (end >= 0);
    int32_t *ids = ses_finetuner_scratch(t, 4 * part, e), *tags = ids + 2 * part;
    if (!ids) return false;
    for (size_t i = 0; i < 2 * part; i++) {
        ids[i] = i % part < n ? id[i % part] : end;
        tags[i] = i < part ? SES_IGNORE_INDEX : ids[i];
    }
    ses_encoding k = { .n = 2 * part, .id = ids };
    return ses_finetuner_add_sequence(t, s, row, &k, &(ses_sequence){ .tags = tags }, NULL, NULL, e);
}

static bool open_autoencoder(ses_finetuner *t, ses_err *e)
{
    return t->model->desc->carries_state ||
           ses_fail(
               e, SES_EUNSUPPORTED,
               "the loss autoencoder needs a recurrent language model, as lstm: a \"%s\" would copy the text",
               ses_model_type(t->model));
}

static bool encode_twice(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                         ses_err *e)
{
    int64_t max = t->max_tokens / 2 - (end_token(t) >= 0);
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = max > 1 ? max : 1,
                             .no_special = true };
    if (!ses_encode(t->tokens, &(ses_input){ .text = { r->text_a.p, r->text_a.n } }, &o, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(t->tokens);
    s->n_truncated += ses_encode_ctx_overflow_count(t->tokens) > 0;
    return !k->n || add_twice(t, s, row, k->id, k->n, e);
}

static bool finish_encoding(ses_finetuner *t, ses_finetune_set *s, ses_err *e)
{
    if (t->settings.line_by_line) return true;
    s->n_rows = s->n;
    return s->n || ses_fail(e, SES_EFORMAT,
                            "%zu tokens do not fill a block of %" PRId64
                            "; use a smaller max-length, or one sequence per line",
                            s->n_pending, t->max_tokens);
}

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    (void)t;
    o->nll = ses_arena_array(&o->mem, s->n_rows, sizeof *o->nll, e);
    o->n_nll = ses_arena_array(&o->mem, s->n_rows, sizeof *o->n_nll, e);
    return o->nll && o->n_nll;
}

/* One sequence at a time: each needs its own loss, and logits of the whole vocabulary are not stored. */
static bool predict_batch(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                          const ses_batch *b, int64_t first, ses_err *e)
{
    ses_pass pass = { .model = t->model, .tape = t->tape };
    bool ok = true;
    for (int64_t i = 0; ok && i < b->seqs; i++) {
        int32_t at = b->cu_seqlens[i], n = b->cu_seqlens[i + 1] - at, row = s->row[first + i];
        ses_real loss = 0;
        int64_t labels = 0; /* the first token is not predicted */
        for (int32_t j = 1; j < n; j++) labels += b->labels[at + j] != SES_IGNORE_INDEX;
        if (!labels) continue;
        ok = ses_batch_builder_add(&pass.in, b->ids + at, b->segments + at, n, e) &&
             ses_ints_append(&pass.in.labels, b->labels + at, n, e) &&
             ses_pass_run(&pass, &(ses_output_request){ 0 }, e) &&
             ses_tape_read(t->tape, pass.out.loss, &loss);
        o->nll[row] = (double)loss * (double)labels;
        o->n_nll[row] = labels;
    }
    ses_batch_builder_free(&pass.in);
    return ok;
}

static bool finish(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    double sum = 0, n = 0;
    (void)t, (void)e;
    for (size_t r = 0; r < s->n_rows; r++) sum += o->nll[r], n += (double)o->n_nll[r];
    o->loss = sum / n;
    return true;
}

static bool count_words(ses_finetuner *t, const int32_t *id, size_t n, int64_t *words, ses_err *e)
{
    const char *text;
    size_t len;
    if (!ses_decode(t->tokens, id, n, false, &text, &len, e)) return false;
    *words = (int64_t)ses_words_count(text, len);
    return true;
}

/* The predicted tokens of a sequence in the order of the text, valid until the next call. */
static const int32_t *text_tokens(ses_finetuner *t, const ses_finetune_set *s, int64_t sequence, size_t *n,
                                  ses_err *e)
{
    ses_sequence q = ses_dataset_at(s->data, sequence);
    int32_t *id = ses_finetuner_scratch(t, (size_t)q.n, e);
    *n = 0;
    for (int64_t i = 0; id && i < q.n; i++) {
        int64_t at = t->model->c.rnn.backward ? q.n - 1 - i : i;
        if (q.tags[at] != SES_IGNORE_INDEX) id[(*n)++] = q.ids[at];
    }
    return id;
}

/* Words of each row, between white space. A word that continues from the block before counts there. */
static int64_t *row_words(ses_finetuner *t, const ses_finetune_set *s, ses_arena *mem, ses_err *e)
{
    int64_t *words = ses_arena_array(mem, s->n_rows, sizeof *words, e),
            n_sequences = ses_dataset_size(s->data);
    bool joined = t->task->finish_encoding && !t->settings.line_by_line;
    int32_t last = -1;
    for (int64_t i = 0; words && i < n_sequences; i++) {
        size_t n;
        int64_t *to = &words[s->row[i]], one = 0, other = 0, both = 0;
        const int32_t *id = text_tokens(t, s, i, &n, e);
        if (!id || !count_words(t, id, n, to, e)) return NULL;
        if (!n) continue;
        const int32_t edge[2] = { last, id[0] };
        if (joined && last >= 0 &&
            !(count_words(t, edge, 1, &one, e) && count_words(t, edge + 1, 1, &other, e) &&
              count_words(t, edge, 2, &both, e)))
            return NULL;
        *to -= both < one + other;
        last = id[n - 1];
    }
    return words;
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    v->nll = o->nll;
    v->n_nll = o->n_nll;
    v->n_words = row_words(t, s, mem, e);
    return v->n_words != NULL;
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)t, (void)s, (void)mem, (void)e;
    p->nll = o->nll[row];
    p->n_tokens = o->n_nll[row];
    return true;
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    (void)t, (void)s;
    double mean = o->n_nll[row] ? o->nll[row] / (double)o->n_nll[row] : NAN;
    ses_json_member_int(w, "tokens", o->n_nll[row]);
    ses_json_member_real(w, "loss", mean);
    ses_json_member_real(w, "perplexity", exp(mean));
}

#define LANGUAGE_MODEL                                                                                       \
    .name = "continue", .aliases = "text-generation", .summary = "causal language modeling: the next token", \
    .head = &ses_head_causal_lm, .data = SES_DATA_TEXT, .format = SES_DATA_LINES, .target = SES_TARGET_TAGS, \
    .default_max_length = 1024, .generates = true, .metrics = "perplexity", .best_metric = "perplexity",     \
    .begin = begin, .predict_batch = predict_batch, .finish = finish, .fill_evaluation = fill_evaluation,    \
    .fill_prediction = fill_prediction, .put_prediction = put_prediction

/* Sequence autoencoder (Dai and Le 2015): each text is reproduced from the state after it. */
static const ses_finetune_task autoencoder = { LANGUAGE_MODEL, .loss_name = "autoencoder",
                                               .open = open_autoencoder, .encode = encode_twice };
static const ses_finetune_task *const others[] = { &autoencoder, NULL };

const ses_finetune_task ses_finetune_task_language_model = { LANGUAGE_MODEL, .loss_name = "causal",
                                                             .other_losses = others, .encode = encode,
                                                             .finish_encoding = finish_encoding };
