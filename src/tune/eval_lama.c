/* LAMA: see eval_lama.h. */
#include "eval_lama.h"

#include "base/alloc.h"
#include "base/strmap.h"
#include "io/text_reader.h"
#include "model/model_desc.h"
#include "run/pass.h"
#include "text/tokenizer_config.h"

#include <math.h>
#include <string.h>

/* Limits of a forward pass: tokens (at least one fact), facts; each fact is a row of logits. */
enum { PASS_TOKENS = 4096, PASS_FACTS = 128, MAX_WORD_LINE = 1 << 16 };

const char *const ses_lama_reason_name[SES_LAMA_REASONS] = { "not_one_mask", "answer_not_one_token",
                                                             "answer_not_a_candidate", "too_long" };

typedef struct queued {
    size_t relation;
    int32_t answer;
} queued;

struct ses_lama {
    const ses_model *model;
    const ses_tokenizer *tokenizer;
    ses_encode_ctx *tokens;
    ses_pass pass; /* the next one */
    ses_tokenizer_config config;
    const char *logits_name, *mask; /* mask: spelling of the mask token, of mask_len bytes; NULL: causal */
    size_t mask_len;
    int64_t max_tokens, vocab;
    uint8_t *is_candidate; /* [vocab] */
    ses_lama_relation *relation;
    size_t n, cap;
    ses_strmap index;
    ses_buf text;
    queued queue[PASS_FACTS];
    int64_t n_queued;
};

void ses_lama_free(ses_lama *l)
{
    if (!l) return;
    ses_encode_ctx_free(l->tokens);
    ses_pass_close(&l->pass);
    for (size_t i = 0; i < l->n; i++) ses_free(l->relation[i].name);
    ses_strmap_free(&l->index);
    ses_buf_free(&l->text);
    ses_free(l->relation), ses_free(l->is_candidate);
    ses_free(l);
}

static bool find_head(ses_lama *l, const char *dir, ses_err *e)
{
    const ses_head_use *use = &l->model->class->head[0];
    bool causal = use->head == &ses_head_causal_lm ||
                  (use->head == &ses_head_masked_lm && l->model->class->decoder_only);
    if (!causal && use->head != &ses_head_masked_lm && use->head != &ses_head_seq2seq_lm)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s does not predict tokens: LAMA needs a masked or causal language model",
                        ses_model_class_name(l->model));
    l->logits_name = use->output;
    if (!ses_tokenizer_config_read(&l->config, dir, ses_model_type(l->model), NULL, l->tokenizer, e))
        return false;
    if (causal) return true;
    if (l->config.role[SES_ROLE_MASK] < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", dir);
    l->mask = ses_tokenizer_id_to_token(l->tokenizer, l->config.role[SES_ROLE_MASK], &l->mask_len);
    return true;
}

/* Every token of the vocabulary but special and unused ones. */
static void use_all_tokens(ses_lama *l)
{
    int64_t n = ses_tokenizer_vocab_size(l->tokenizer);
    size_t len;
    for (int64_t i = 0; i < n && i < l->vocab; i++)
        l->is_candidate[i] = ses_tokenizer_id_to_token(l->tokenizer, (int32_t)i, &len) &&
                             !ses_tokenizer_is_special(l->tokenizer, (int32_t)i);
}

ses_lama *ses_lama_new(const ses_model *m, const ses_tokenizer *t, const char *dir, ses_err *e)
{
    ses_lama *l = ses_alloc(sizeof *l, e);
    if (!l) return NULL;
    *l = (ses_lama){ .model = m, .tokenizer = t };
    l->max_tokens = ses_model_max_tokens(m);
    l->vocab = ses_model_vocab_size(m);
    if (find_head(l, dir, e) && (l->tokens = ses_encode_ctx_new(t, e)) && ses_pass_open(&l->pass, m, e) &&
        (l->is_candidate = ses_alloc_array((size_t)l->vocab, 1, e))) {
        use_all_tokens(l);
        return l;
    }
    ses_lama_free(l);
    return NULL;
}

/* ---- words ---- */

/* The token of a word in the middle of a text; -1: it is not one token, or unknown. */
static bool word_token(ses_lama *l, ses_string word, int32_t *id, ses_err *e)
{
    static const char before[] = "a ";
    size_t at = sizeof before - 1, n = 0;
    *id = -1;
    l->text.len = 0;
    ses_buf_puts(&l->text, before);
    ses_buf_append(&l->text, word.p, word.n);
    if (!ses_buf_ok(&l->text, e)) return false;
    ses_input in = { .text = { l->text.data, l->text.len } };
    if (!ses_encode(l->tokens, &in, &(ses_encode_options){ .no_special = true }, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    for (size_t i = 0; i < x->n; i++)
        if (x->byte_offset[i].end > at) *id = x->id[i], n++;
    if (n != 1 || *id == l->config.role[SES_ROLE_UNK] || *id >= l->vocab) *id = -1;
    return true;
}

bool ses_lama_set_candidates(ses_lama *l, const char *path, ses_err *e)
{
    ses_text_reader lines = { 0 };
    ses_string word;
    bool ok = ses_text_reader_open(&lines, path, MAX_WORD_LINE, e);
    memset(l->is_candidate, 0, (size_t)l->vocab);
    while (ok && (ok = ses_text_reader_next(&lines, &word.p, &word.n, e)) && word.p) {
        int32_t id = -1;
        ok = !word.n || word_token(l, word, &id, e);
        if (ok && id >= 0) l->is_candidate[id] = 1;
    }
    ses_text_reader_free(&lines);
    if (ok && !ses_lama_candidate_count(l)) ok = ses_fail(e, SES_EFORMAT, "no word is one token");
    return ok || ses_wrap(e, "%s", path);
}

int64_t ses_lama_candidate_count(const ses_lama *l)
{
    int64_t n = 0;
    for (int64_t i = 0; i < l->vocab; i++) n += l->is_candidate[i];
    return n;
}

/* ---- a pass ---- */

/* The rank of the answer among the candidates; of equal logits the lower id is first. 0: a logit is NaN. */
static int64_t rank_of(const ses_lama *l, const ses_real *logit, int32_t answer)
{
    int64_t rank = 1;
    for (int64_t i = 0; i < l->vocab; i++) {
        if (!l->is_candidate[i]) continue;
        if (isnan((double)logit[i])) return 0;
        rank += logit[i] > logit[answer] || (logit[i] == logit[answer] && i < answer);
    }
    return rank;
}

bool ses_lama_flush(ses_lama *l, ses_err *e)
{
    static const ses_output_request want = { .logits = true };
    int64_t n = l->n_queued;
    if (!n) return true;
    l->n_queued = 0;
    if (!ses_pass_run(&l->pass, &want, e)) return false;
    const ses_output *logits = ses_outputs_find(&l->pass.out, l->logits_name);
    if (!logits || ses_cols(logits->tensor) != l->vocab)
        return ses_fail(e, SES_EARG, "the model has no logits of its vocabulary");
    const ses_real *x = ses_pass_read(&l->pass, l->logits_name, e);
    if (!x) return false;
    for (int64_t i = 0; i < n; i++) {
        ses_lama_scores *s = &l->relation[l->queue[i].relation].scores;
        int64_t rank = rank_of(l, x + i * l->vocab, l->queue[i].answer);
        if (!rank) return ses_fail(e, SES_EFORMAT, "the model computes NaN: its weights are damaged");
        s->facts++;
        s->at_1 += rank == 1;
        s->at_10 += rank <= 10;
        s->reciprocal += 1 / (double)rank;
    }
    return true;
}

/* ---- facts ---- */

static ses_lama_relation *relation_of(ses_lama *l, ses_string name, ses_err *e)
{
    int64_t at;
    bool fresh;
    if (ses_strmap_find(&l->index, name.p, name.n, &at)) return &l->relation[at];
    if (!ses_array_reserve(&l->relation, &l->cap, l->n + 1, sizeof *l->relation, e)) return NULL;
    ses_lama_relation *r = &l->relation[l->n];
    *r = (ses_lama_relation){ .name = ses_strndup(name.p, name.n, e) };
    if (!r->name || !ses_strmap_insert(&l->index, r->name, name.n, (int64_t)l->n, &fresh, e)) {
        ses_free(r->name);
        return NULL;
    }
    l->n++;
    return r;
}

/* Encodes the text around the mask. *at: the token whose output predicts the answer; -1: there is none. */
static bool encode(ses_lama *l, const ses_lama_fact *f, int64_t *at, ses_err *e)
{
    *at = -1;
    l->text.len = 0;
    size_t before = f->before.n;
    while (!l->mask && before && f->before.p[before - 1] == ' ') before--; /* the answer begins with it */
    ses_buf_append(&l->text, f->before.p, before);
    if (l->mask) ses_buf_append(&l->text, l->mask, l->mask_len);
    if (l->mask) ses_buf_append(&l->text, f->after.p, f->after.n);
    if (!ses_buf_ok(&l->text, e)) return false;
    ses_input in = { .text = { l->text.len ? l->text.data : "", l->text.len } };
    if (!ses_encode(l->tokens, &in, &(ses_encode_options){ .no_special = !l->mask }, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    if (!l->mask) *at = (int64_t)x->n - 1 + (l->config.role[SES_ROLE_BOS] >= 0);
    for (size_t i = 0; l->mask && i < x->n; i++) {
        if (x->id[i] != l->config.role[SES_ROLE_MASK]) continue;
        if (*at >= 0) return *at = -1, true; /* the fact itself contains another one */
        *at = (int64_t)i;
    }
    return true;
}

static bool queue_fact(ses_lama *l, size_t relation, int32_t answer, int64_t at, ses_err *e)
{
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    int32_t bos = !l->mask ? l->config.role[SES_ROLE_BOS] : -1;
    int64_t n = (int64_t)x->n + (bos >= 0);
    ses_batch_builder *b = &l->pass.in;
    if (l->n_queued && ((int64_t)b->ids.n + n > PASS_TOKENS || l->n_queued == PASS_FACTS) &&
        !ses_lama_flush(l, e))
        return false;
    bool decodes = l->model->stack[1].layer && !l->model->c.decoder.input_from_source;
    size_t from = b->ids.n;
    l->queue[l->n_queued++] = (queued){ relation, answer };
    return ses_ints_push(&b->rows, (int32_t)(from + (size_t)at), e) &&
           (bos < 0 || ses_ints_push(&b->ids, bos, e)) && ses_batch_builder_add_encoding(b, x, false, e) &&
           (!decodes || ses_batch_builder_shift(b, l->model, b->ids.p + from, n, e));
}

bool ses_lama_feed(ses_lama *l, const ses_lama_fact *f, ses_err *e)
{
    int32_t answer;
    int64_t at = -1;
    ses_lama_relation *r = relation_of(l, f->relation, e);
    if (!r || !word_token(l, f->answer, &answer, e)) return false;
    if (f->masks == 1 && !encode(l, f, &at, e)) return false;
    int64_t n = at >= 0 ? (int64_t)ses_encode_ctx_result(l->tokens)->n + 1 : 0;
    ses_lama_reason reason = at < 0                          ? SES_LAMA_MASKS
                             : answer < 0                    ? SES_LAMA_TOKENS
                             : !l->is_candidate[answer]      ? SES_LAMA_CANDIDATES
                             : n - !!l->mask > l->max_tokens ? SES_LAMA_LONG
                                                             : SES_LAMA_REASONS;
    if (reason == SES_LAMA_REASONS) return queue_fact(l, (size_t)(r - l->relation), answer, at, e);
    r->left_out[reason]++;
    return true;
}

const ses_lama_relation *ses_lama_relations(const ses_lama *l, size_t *n)
{
    *n = l->n;
    return l->relation;
}
