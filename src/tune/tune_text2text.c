/* Sequence to sequence (task rewrite): text to text, as summarization and translation. The decoder is trained
 * with teacher forcing and evaluated by the texts it generates. */
#include "finetuner.h"

#include "base/alloc.h"
#include "base/str.h"
#include "text/language_token.h"

#include <math.h>
#include <string.h>

static bool language(const ses_finetuner *t, const char *code, const char *option, int32_t *id, ses_err *e)
{
    *id = -1;
    return !code || ses_language_token_id(t->tokenizer, code, id, e) || ses_wrap(e, "--%s", option);
}

static ses_encode_ctx *tokens_of_target(const ses_finetuner *t)
{
    return t->target_tokens ? t->target_tokens : t->tokens;
}

static bool open(ses_finetuner *t, ses_err *e)
{
    t->generation = ses_generation_config_open(t->model, e);
    return t->generation &&
           ses_target_tokenizer_open(t->tokenizer_path, t->model, &t->target_tokenizer, &t->target_tokens,
                                     e) &&
           language(t, t->settings.src_lang, "src-lang", &t->src_lang, e) &&
           language(t, t->settings.tgt_lang, "tgt-lang", &t->tgt_lang, e);
}

/* ---- sequences ---- */

/* Encodes a text with its language token into scratch, from index `from`. Returns the number of ids; -1:
 * failed. */
static int64_t encode_text(ses_finetuner *t, ses_encode_ctx *tokens, ses_string text, int32_t lang,
                           int64_t max_length, size_t from, bool *truncated, ses_err *e)
{
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST, .max_length = max_length };
    if (!ses_encode(tokens, &(ses_input){ .text = text }, &o, e)) return -1;
    const ses_encoding *k = ses_encode_ctx_result(tokens);
    int32_t *id = ses_finetuner_scratch(t, from + k->n + 1, e);
    if (!id) return -1;
    if (k->n) memcpy(id + from, k->id, k->n * sizeof *id);
    *truncated |= ses_encode_ctx_overflow_count(tokens) > 0;
    if (lang >= 0 &&
        !ses_language_token_replace(&t->tokenizer_config, lang, k->special_mask, id + from, k->n, e))
        return -1;
    return (int64_t)k->n;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_buf source = { 0 };
    bool truncated = false, has_target = !t->unlabeled;
    ses_buf_appendf(&source, "%s%s", t->settings.prefix ? t->settings.prefix : "", r->text_a.p);
    int64_t n_target = has_target
                           ? encode_text(t, tokens_of_target(t), (ses_string){ r->text_b.p, r->text_b.n },
                                         t->tgt_lang, t->settings.max_target, 0, &truncated, e)
                           : 0;
    int64_t n = n_target < 0 || !ses_buf_ok(&source, e)
                    ? -1
                    : encode_text(t, t->tokens, (ses_string){ source.data, source.len }, t->src_lang,
                                  t->max_tokens, (size_t)n_target, &truncated, e);
    ses_buf_free(&source);
    if (n < 0) return false;
    if (has_target && !n_target) return ses_fail(e, SES_EFORMAT, "the target text has no tokens");
    if (!n) return ses_fail(e, SES_EFORMAT, "the text has no tokens");
    s->n_truncated += truncated;
    ses_encoding k = { .n = (size_t)n, .id = t->scratch + n_target };
    return ses_finetuner_add_sequence(
        t, s, row, &k, &(ses_sequence){ .target_ids = t->scratch, .n_target = n_target }, NULL, NULL, e);
}

/* ---- generation ---- */

typedef struct loss_sum { /* over tokens */
    double nll;
    int64_t n;
} loss_sum;

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    o->state = ses_arena_array(&o->mem, 1, sizeof(loss_sum), e);
    o->text = ses_arena_array(&o->mem, s->n_rows, sizeof *o->text, e);
    (void)t;
    return o->state && o->text;
}

static bool add_loss(ses_finetuner *t, const ses_batch *b, loss_sum *sum, ses_err *e)
{
    ses_outputs out;
    ses_real loss = 0;
    int32_t n = b->target_cu_seqlens[b->seqs];
    ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
    if (!ses_model_forward(t->model, t->tape, b, &(ses_output_request){ 0 }, &out, e) ||
        !ses_tape_read(t->tape, out.loss, &loss))
        return false;
    sum->nll += (double)loss * n;
    sum->n += n;
    return true;
}

/* Decodes generated ids; ids beyond the tokenizer's vocabulary are skipped. */
static const char *decode(ses_finetuner *t, const ses_generated_sequence *w, ses_arena *mem, ses_err *e)
{
    const ses_tokenizer *tokenizer = t->target_tokenizer ? t->target_tokenizer : t->tokenizer;
    int32_t *known = ses_finetuner_scratch(t, (size_t)w->ids.n + 1, e);
    const char *text;
    size_t n = 0, len;
    for (int64_t i = 0; known && i < w->ids.n; i++)
        if (w->ids.id[i] < ses_tokenizer_vocab_size(tokenizer)) known[n++] = w->ids.id[i];
    if (!known || !ses_decode(tokens_of_target(t), known, n, false, &text, &len, e)) return NULL;
    char *copy = ses_arena_strndup(mem, text, len, e);
    if (copy && t->tokenizer_config.clean_up_spaces) copy[ses_clean_up_tokenization(copy, len)] = 0;
    return copy;
}

static void set_generation(const ses_finetuner *t, ses_generate_options *o)
{
    *o = *ses_generation_config_options(t->generation);
    o->max_length = t->settings.max_target; /* prompt and output, as in transformers */
    o->max_new_tokens = 0;
    if (o->min_length > o->max_length) o->min_length = 0;
    if (t->settings.num_beams) o->num_beams = t->settings.num_beams;
    if (o->num_return_sequences > 1) o->num_return_sequences = 1;
    if (o->pad < 0) o->pad = t->tokenizer_config.role[SES_ROLE_PAD];
    if (t->tgt_lang >= 0) o->forced_bos = t->tgt_lang;
}

static bool predict_batch(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                          const ses_batch *b, int64_t first, ses_err *e)
{
    ses_generate_options g;
    if (b->target_cu_seqlens[b->seqs] && !add_loss(t, b, o->state, e)) return false;
    set_generation(t, &g);
    ses_prompt *prompt = ses_alloc_array((size_t)b->seqs, sizeof *prompt, e);
    for (int64_t i = 0; prompt && i < b->seqs; i++)
        prompt[i].ids = (ses_ids){ b->ids + b->cu_seqlens[i], b->cu_seqlens[i + 1] - b->cu_seqlens[i] };
    ses_generated *r = prompt ? ses_generate(t->model, prompt, b->seqs, &g, e) : NULL;
    bool ok = r != NULL;
    for (int64_t i = 0; ok && i < b->seqs; i++) {
        const char **text = &o->text[s->row[first + i]];
        *text = decode(t, &r->sequence[i], &o->mem, e);
        ok = *text != NULL;
    }
    ses_generated_free(r);
    ses_free(prompt);
    return ok;
}

static bool finish(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e)
{
    (void)t, (void)s, (void)e;
    const loss_sum *sum = o->state;
    o->loss = sum->n ? sum->nll / (double)sum->n : NAN;
    return true;
}

static bool fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t;
    const char **ref_texts = ses_arena_array(mem, v->n, sizeof *ref_texts, e);
    for (size_t r = 0; ref_texts && r < v->n; r++) ref_texts[r] = ses_examples_at(s->rows, r)->text_b.p;
    v->pred_texts = o->text;
    v->ref_texts = ref_texts;
    return ref_texts != NULL;
}

static bool fill_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e)
{
    (void)t, (void)s, (void)mem, (void)e;
    p->text = o->text[row];
    return true;
}

static void put_prediction(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w)
{
    (void)t, (void)s;
    ses_json_member_string(w, "text", o->text[row]);
}

const ses_finetune_task ses_finetune_task_text2text = {
    .name = "rewrite",
    .aliases = "text2text-generation|summarization|translation",
    .summary = "text to text: summaries, translations",
    .head = &ses_head_seq2seq_lm,
    .data = SES_DATA_SEQ2SEQ,
    .target = SES_TARGET_TEXT,
    .default_max_length = 1024,
    .generates = true,
    .metrics = "rouge|bleu|exact",
    .best_metric = "rougeL",
    .open = open,
    .encode = encode,
    .begin = begin,
    .predict_batch = predict_batch,
    .finish = finish,
    .fill_evaluation = fill_evaluation,
    .fill_prediction = fill_prediction,
    .put_prediction = put_prediction,
};
