/* A text becomes another: summaries, translations. The decoder learns each token of the target from those
 * before it and from the source; measured is what it writes by itself. */
#include "finetuner.h"

#include "base/alloc.h"
#include "base/str.h"
#include "text/language_token.h"

#include <math.h>
#include <string.h>

static bool language(const ses_tuner *t, const char *code, const char *option, int32_t *id, ses_err *e)
{
    *id = -1;
    return !code || ses_language_id(t->tokenizer, code, id, e) || ses_wrap(e, "--%s", option);
}

static bool open(ses_tuner *t, ses_err *e)
{
    t->generation = ses_generation_open(t->model, e);
    return t->generation && language(t, t->o.src_lang, "src-lang", &t->src_lang, e) &&
           language(t, t->o.tgt_lang, "tgt-lang", &t->tgt_lang, e);
}

/* ---- sequences ---- */

/* Ids of a text, its language marked; in scratch from `from` on. Returns how many; below 0: failed. */
static int64_t ids_of(ses_tuner *t, ses_string text, int32_t lang, int64_t most, size_t from, bool *cut,
                      ses_err *e)
{
    ses_encode_options o = { .truncation = SES_ONLY_FIRST, .max_length = most };
    if (!ses_encode(t->tokens, &(ses_input){ .text = text }, &o, e)) return -1;
    const ses_encoding *k = ses_tokens_result(t->tokens);
    int32_t *id = ses_tuner_scratch(t, from + k->n + 1, e);
    if (!id) return -1;
    if (k->n) memcpy(id + from, k->id, k->n * sizeof *id);
    *cut |= ses_tokens_overflows(t->tokens) > 0;
    if (lang >= 0 && !ses_language_put(&t->facts, lang, k->special, id + from, k->n, e)) return -1;
    return (int64_t)k->n;
}

static bool encode(ses_tuner *t, const ses_datum *r, int32_t row, ses_tune_set *s, ses_err *e)
{
    ses_buf source = { 0 };
    bool cut = false, learns = !t->o.blind;
    ses_buf_appendf(&source, "%s%s", t->o.prefix ? t->o.prefix : "", r->text_a.s);
    int64_t said =
        learns ? ids_of(t, (ses_string){ r->text_b.s, r->text_b.n }, t->tgt_lang, t->o.max_target, 0, &cut, e)
               : 0;
    int64_t n = said < 0 || !ses_buf_ok(&source, e) ? -1
                                                    : ids_of(t, (ses_string){ source.data, source.len },
                                                             t->src_lang, t->limit, (size_t)said, &cut, e);
    ses_buf_free(&source);
    if (n < 0) return false;
    if (learns && !said) return ses_fail(e, SES_EFORMAT, "the text to be written has no token");
    if (!n) return ses_fail(e, SES_EFORMAT, "the text has no token");
    s->cut += cut;
    ses_encoding k = { .n = (size_t)n, .id = t->scratch + said };
    return ses_tuner_add(t, s, row, &k, &(ses_sequence){ .target = t->scratch, .n_target = said }, NULL, NULL,
                         e);
}

/* ---- what is written ---- */

typedef struct sums { /* of the loss, over tokens */
    double nll;
    int64_t n;
} sums;

static bool begin(ses_tuner *t, const ses_tune_set *s, ses_predicted *p, ses_err *e)
{
    p->own = ses_arena_array(&p->mem, 1, sizeof(sums), e);
    p->text = ses_arena_array(&p->mem, s->n_rows, sizeof *p->text, e);
    (void)t;
    return p->own && p->text;
}

static bool measure(ses_tuner *t, const ses_batch *b, sums *sum, ses_err *e)
{
    ses_outputs out;
    ses_real loss = 0;
    int32_t n = b->target_cu[b->seqs];
    ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
    if (!ses_model_forward(t->model, t->tape, b, &(ses_want){ 0 }, &out, e) ||
        !ses_tape_read(t->tape, out.loss, &loss))
        return false;
    sum->nll += (double)loss * n;
    sum->n += n;
    return true;
}

/* Tokens as text; ids beyond the tokenizer's have none. */
static const char *say(ses_tuner *t, const ses_written *w, ses_arena *mem, ses_err *e)
{
    int32_t *known = ses_tuner_scratch(t, (size_t)w->ids.n + 1, e);
    const char *text;
    size_t n = 0, len;
    for (int64_t i = 0; known && i < w->ids.n; i++)
        if (w->ids.id[i] < ses_tokenizer_size(t->tokenizer)) known[n++] = w->ids.id[i];
    if (!known || !ses_decode(t->tokens, known, n, false, &text, &len, e)) return NULL;
    char *copy = ses_arena_strndup(mem, text, len, e);
    if (copy && t->facts.clean_up) copy[ses_clean_up(copy, len)] = 0;
    return copy;
}

static void settings(const ses_tuner *t, ses_generate_options *o)
{
    *o = *ses_generation_options(t->generation);
    o->max_length = t->o.max_target; /* of all the decoder reads and writes, as the reference counts */
    o->max_new_tokens = 0;
    if (o->min_length > o->max_length) o->min_length = 0;
    if (t->o.beams) o->num_beams = t->o.beams;
    if (o->num_return_sequences > 1) o->num_return_sequences = 1;
    if (o->pad < 0) o->pad = t->facts.role[SES_ROLE_PAD];
    if (t->tgt_lang >= 0) o->forced_bos = t->tgt_lang;
}

static bool pass(ses_tuner *t, const ses_tune_set *s, ses_predicted *p, const ses_batch *b, int64_t first,
                 ses_err *e)
{
    ses_generate_options o;
    if (b->target_cu[b->seqs] && !measure(t, b, p->own, e)) return false;
    settings(t, &o);
    ses_prompt *prompt = ses_alloc_array((size_t)b->seqs, sizeof *prompt, e);
    for (int64_t i = 0; prompt && i < b->seqs; i++)
        prompt[i].ids = (ses_ids){ b->ids + b->cu[i], b->cu[i + 1] - b->cu[i] };
    ses_generated *r = prompt ? ses_generate(t->model, prompt, b->seqs, &o, e) : NULL;
    bool ok = r != NULL;
    for (int64_t i = 0; ok && i < b->seqs; i++) {
        const char **text = &p->text[s->row[first + i]];
        *text = say(t, &r->text[i], &p->mem, e);
        ok = *text != NULL;
    }
    ses_generated_free(r);
    ses_free(prompt);
    return ok;
}

static bool finish(ses_tuner *t, const ses_tune_set *s, ses_predicted *p, ses_err *e)
{
    (void)t, (void)s, (void)e;
    const sums *sum = p->own;
    p->loss = sum->n ? sum->nll / (double)sum->n : NAN;
    return true;
}

static bool evaluation(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, ses_evaluation *v,
                       ses_arena *mem, ses_err *e)
{
    (void)t;
    const char **gold = ses_arena_array(mem, v->n, sizeof *gold, e);
    for (size_t r = 0; gold && r < v->n; r++) gold[r] = ses_examples_at(s->rows, r)->text_b.s;
    v->pred_texts = p->text;
    v->gold_texts = gold;
    return gold != NULL;
}

static void put(ses_tuner *t, const ses_tune_set *s, const ses_predicted *p, size_t row, ses_json_writer *w)
{
    (void)t, (void)s;
    ses_json_put_key(w, "text");
    ses_json_put_string(w, p->text[row]);
}

const ses_tune_kind ses_tune_rewrite = {
    .name = "rewrite",
    .what = "a text becomes another",
    .head = &ses_head_target_lm,
    .data = SES_DATA_REWRITE,
    .target = SES_TARGET_TEXT,
    .usual_length = 1024,
    .writes = true,
    .metrics = "rouge|bleu|exact",
    .best = "rougeL",
    .open = open,
    .encode = encode,
    .begin = begin,
    .pass = pass,
    .finish = finish,
    .evaluation = evaluation,
    .put = put,
};
