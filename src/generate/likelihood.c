/* Likelihoods: encodes requests as spans of tokens. likelihood_run.c computes them. */
#include "likelihood_impl.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "model/model_desc.h"
#include "nn/cache_impl.h"
#include "nn/decoder_input.h"

#include <string.h>

enum { PASS_TOKENS = 4096, SLOTS = 64, NO_POSITION_TABLE = 4096, DEFAULT_LENGTH = 2048 };

void ses_likelihood_free(ses_likelihood *l)
{
    if (!l) return;
    ses_cache_free(l->cache);
    ses_encode_ctx_free(l->tokens);
    ses_pass_close(&l->pass);
    ses_free(l->id), ses_free(l->span), ses_free(l->result), ses_free(l->text);
    ses_free(l);
}

/* Finds the head that predicts tokens. */
static bool find_kind(ses_likelihood *l, ses_err *e)
{
    const ses_model *m = l->model;
    const ses_head_use *use = ses_class_lm_head(m->desc, m->class);
    if (m->c.rnn.backward)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "this \"%s\" reads texts from their end to their beginning: expected a forward model",
                        ses_model_type(m));
    if (use && !m->desc->defaults.xl.permutation_lm) {
        l->kind = use->head == &ses_head_seq2seq_lm ? SES_LIKELIHOOD_SEQ2SEQ : SES_LIKELIHOOD_CAUSAL;
        l->logits_name = use->output;
        return true;
    }
    for (size_t i = 0; i < SES_LEN(m->class->head); i++) {
        use = &m->class->head[i];
        bool causal = use->head == &ses_head_causal_lm;
        if (use->head != &ses_head_masked_lm && !causal) continue;
        l->kind = causal ? SES_LIKELIHOOD_CAUSAL : SES_LIKELIHOOD_MASKED;
        l->logits_name = use->output;
        return true;
    }
    return ses_fail(e, SES_EUNSUPPORTED,
                    "%s does not predict tokens: expected a causal, masked or sequence-to-sequence language "
                    "model",
                    ses_model_class_name(m));
}

static bool prepare(ses_likelihood *l, const char *dir, ses_err *e)
{
    const ses_model *m = l->model;
    ses_tokenizer_config c;
    ses_err none = { 0 };
    if (!find_kind(l, e) || !ses_tokenizer_config_read(&c, dir, ses_model_type(m), NULL, l->tokenizer, e))
        return false;
    int32_t bos = c.role[SES_ROLE_BOS], eos = c.role[SES_ROLE_EOS];
    l->prefix_id = bos >= 0 ? bos : eos;
    l->mask_id = c.role[SES_ROLE_MASK];
    if (l->kind == SES_LIKELIHOOD_MASKED && l->mask_id < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", dir);
    if (l->prefix_id >= 0)
        l->prefix_text.p = ses_tokenizer_id_to_token(l->tokenizer, l->prefix_id, &l->prefix_text.n);
    int64_t max = ses_model_max_tokens(m), target = ses_model_max_target_tokens(m);
    if (target < max) max = target;
    if (max > NO_POSITION_TABLE) /* no table of positions: the tokenizer's limit, else the harness's */
        max = c.model_max_length && c.model_max_length < max ? c.model_max_length : DEFAULT_LENGTH;
    if (!l->o.max_length || l->o.max_length > max) l->o.max_length = max;
    if (l->o.max_length < 4)
        return ses_fail(e, SES_EARG, "inputs of %lld tokens are too short: expected at least 4",
                        (long long)l->o.max_length);
    if (l->o.pass_tokens <= 0) l->o.pass_tokens = PASS_TOKENS;
    l->vocab = ses_model_vocab_size(m);
    bool wraps = l->kind == SES_LIKELIHOOD_SEQ2SEQ && ses_decoder_wraps(&m->c);
    if (l->kind != SES_LIKELIHOOD_MASKED && !wraps && !l->o.no_sharing)
        l->cache = ses_cache_new_shared(m, SLOTS, &none);
    return l->cache || none.code != SES_ENOMEM || ses_fail(e, none.code, "%s", none.msg);
}

ses_likelihood *ses_likelihood_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                                   const ses_likelihood_options *o, ses_err *e)
{
    ses_likelihood *l = ses_alloc(sizeof *l, e);
    if (!l) return NULL;
    l->model = m, l->tokenizer = t;
    if (o) l->o = *o;
    if (prepare(l, dir, e) && (l->tokens = ses_encode_ctx_new(t, e)) && ses_pass_open(&l->pass, m, e))
        return l;
    ses_likelihood_free(l);
    return NULL;
}

ses_likelihood_kind ses_likelihood_kind_of(const ses_likelihood *l) { return l->kind; }
int64_t ses_likelihood_max_length(const ses_likelihood *l) { return l->o.max_length; }
ses_likelihood_stats ses_likelihood_get_stats(const ses_likelihood *l) { return l->stats; }

const ses_likelihood_result *ses_likelihood_at(const ses_likelihood *l, size_t i) { return &l->result[i]; }

/* ---- texts ---- */

size_t ses_likelihood_rstrip(ses_string s)
{
    for (;;) {
        size_t at = s.n;
        uint32_t cp;
        while (at && ses_utf8_continues(s.p[at - 1])) at--;
        if (!at--) return s.n;
        if (!ses_utf8_decode(s.p + at, s.n - at, &cp) ||
            !(ses_cp_is(cp, SES_CP_SPACE) || (cp >= 0x1c && cp <= 0x1f)))
            return s.n;
        s.n = at;
    }
}

/* Encodes a text into l->tokens. plain: without special tokens. Returns the tokens that count: of a causal
 * model without special tokens at the end, which would not be there in the middle of a longer text. */
static bool encode(ses_likelihood *l, ses_string text, bool plain, size_t *n, ses_err *e)
{
    bool begins =
        l->prefix_text.n && text.n >= l->prefix_text.n && !memcmp(text.p, l->prefix_text.p, l->prefix_text.n);
    ses_encode_options o = { .no_special = plain || (begins && l->kind != SES_LIKELIHOOD_MASKED) };
    ses_input in = { .text = { text.n ? text.p : "", text.n } };
    if (!ses_encode(l->tokens, &in, &o, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    *n = x->n;
    while (!o.no_special && l->kind == SES_LIKELIHOOD_CAUSAL && *n > 1 && x->special_mask[*n - 1]) --*n;
    for (size_t i = 0; i < *n; i++)
        if (x->id[i] >= ses_model_source_vocab_size(l->model))
            return ses_fail(e, SES_EARG, "token id %d is outside the model's vocabulary of %lld tokens",
                            (int)x->id[i], (long long)ses_model_source_vocab_size(l->model));
    return true;
}

/* Appends n ids to l->id, which has the room. */
static void put_ids(ses_likelihood *l, const int32_t *id, size_t n)
{
    if (n) memcpy(l->id + l->n_id, id, n * sizeof *id);
    l->n_id += n;
}

static bool reserve_span(ses_likelihood *l, size_t ids, ses_err *e)
{
    return ses_array_reserve(&l->id, &l->id_cap, l->n_id + ids, sizeof *l->id, e) &&
           ses_array_reserve(&l->span, &l->span_cap, l->n_spans + 1, sizeof *l->span, e) &&
           ses_array_reserve(&l->result, &l->result_cap, l->n_results + 1, sizeof *l->result, e);
}

/* Ends the request of the spans added last. */
static bool end_request(ses_likelihood *l, bool truncated)
{
    l->result[l->n_results++] = (ses_likelihood_result){ .is_greedy = true, .is_truncated = truncated };
    l->stats.requests++;
    l->stats.truncated += truncated;
    return true;
}

/* Adds a span of tokens: context, scored tokens and tail. The context loses its first tokens after `keep` if
 * all are more than `max`. */
static bool add_span(ses_likelihood *l, ses_ids keep, ses_ids context, ses_ids scored, ses_ids tail,
                     int64_t max, bool *truncated, ses_err *e)
{
    int64_t room = max - keep.n - scored.n - tail.n;
    if (!scored.n) return ses_fail(e, SES_EFORMAT, "the continuation has no tokens");
    if (room < 0)
        return ses_fail(e, SES_EFORMAT,
                        "the continuation has %lld tokens, more than the model accepts (%lld)",
                        (long long)scored.n, (long long)l->o.max_length);
    if (context.n > room) context.id += context.n - room, context.n = room, *truncated = true;
    if (!reserve_span(l, (size_t)(keep.n + context.n + scored.n + tail.n), e)) return false;
    l->span[l->n_spans++] = (ses_scored_span){ .at = l->n_id,
                                               .n_context = (int32_t)(keep.n + context.n),
                                               .n_scored = (int32_t)scored.n,
                                               .n_tail = (int32_t)tail.n,
                                               .request = l->n_results,
                                               .is_greedy = true };
    put_ids(l, keep.id, (size_t)keep.n);
    put_ids(l, context.id, (size_t)context.n);
    put_ids(l, scored.id, (size_t)scored.n);
    put_ids(l, tail.id, (size_t)tail.n);
    return true;
}

/* Copies the result of the tokenizer to l->text. */
static bool keep_text(ses_likelihood *l, size_t n, ses_err *e)
{
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    if (!ses_array_reserve(&l->text, &l->text_cap, n + 1, sizeof *l->text, e)) return false;
    if (n) memcpy(l->text, x->id, n * sizeof *l->text);
    l->n_text = n;
    return true;
}

static ses_ids ids_of(const int32_t *id, size_t n) { return (ses_ids){ id, (int64_t)n }; }

static bool need_prefix(const ses_likelihood *l, ses_err *e)
{
    return l->prefix_id >= 0 ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "the tokenizer has neither a BOS nor an EOS token, which an empty context needs");
}

/* Longest context and continuation: a causal model does not read the last token, an encoder-decoder reads
 * both apart. */
static int64_t span_limit(const ses_likelihood *l, size_t scored)
{
    return l->o.max_length + (l->kind == SES_LIKELIHOOD_CAUSAL    ? 1
                              : l->kind == SES_LIKELIHOOD_SEQ2SEQ ? (int64_t)scored
                                                                  : 0);
}

static bool check_length(const ses_likelihood *l, size_t scored, ses_err *e)
{
    return (int64_t)scored <= l->o.max_length ||
           ses_fail(e, SES_EFORMAT, "the continuation has %zu tokens, more than the model accepts (%lld)",
                    scored, (long long)l->o.max_length);
}

/* ---- masked models ---- */

/* Special tokens before and after the text in the tokenizer's last result. */
static void find_template(const ses_encoding *x, size_t *head, size_t *tail)
{
    *head = *tail = 0;
    while (*head < x->n && x->special_mask[*head]) ++*head;
    while (*tail < x->n - *head && x->special_mask[x->n - 1 - *tail]) ++*tail;
}

/* The text, of which the first n_context tokens are not scored. */
static bool add_masked(ses_likelihood *l, ses_string text, size_t n_context, bool *truncated, ses_err *e)
{
    size_t n, head, tail;
    if (!encode(l, text, false, &n, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    find_template(x, &head, &tail);
    size_t inner = n - head - tail, begin = n_context < inner ? n_context : inner;
    return add_span(l, ids_of(x->id, head), ids_of(x->id + head, begin),
                    ids_of(x->id + head + begin, inner - begin), ids_of(x->id + n - tail, tail),
                    l->o.max_length, truncated, e);
}

/* Disjoint windows, each between the special tokens, every token scored. */
static bool add_masked_text(ses_likelihood *l, ses_string text, ses_err *e)
{
    size_t n, head, tail;
    bool truncated = false;
    if (!encode(l, text, false, &n, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    find_template(x, &head, &tail);
    size_t width = (size_t)l->o.max_length - head - tail;
    if ((size_t)l->o.max_length <= head + tail)
        return ses_fail(e, SES_EARG, "windows of %lld tokens are too short", (long long)l->o.max_length);
    for (size_t at = head; at < n - tail; at += width) {
        size_t m = n - tail - at < width ? n - tail - at : width;
        if (!add_span(l, ids_of(x->id, head), ids_of(NULL, 0), ids_of(x->id + at, m),
                      ids_of(x->id + n - tail, tail), l->o.max_length, &truncated, e))
            return false;
    }
    return true;
}

/* ---- requests ---- */

/* The context has no tokens: it is represented by the prefix token. */
static bool add_without_context(ses_likelihood *l, ses_string continuation, ses_err *e)
{
    size_t n;
    bool truncated = false;
    if (!need_prefix(l, e) || !encode(l, continuation, true, &n, e) || !keep_text(l, n, e)) return false;
    bool begins = n && l->text[0] == l->prefix_id;
    ses_ids scored = ids_of(l->text + begins, n - begins);
    return check_length(l, n - begins, e) &&
           add_span(l, ids_of(NULL, 0), ids_of(&l->prefix_id, 1), scored, ids_of(NULL, 0),
                    span_limit(l, n - begins), &truncated, e);
}

/* Causal: whole text and context are encoded, and the whole is split after the context's number of tokens. */
static bool add_causal(ses_likelihood *l, ses_string whole, size_t context, bool *truncated, ses_err *e)
{
    size_t n, n_context;
    if (!encode(l, whole, false, &n, e) || !keep_text(l, n, e) ||
        !encode(l, (ses_string){ whole.p, context }, false, &n_context, e))
        return false;
    if (!n_context) return add_without_context(l, whole, e);
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    size_t begin = n_context < n ? n_context : n;
    return check_length(l, n - begin, e) &&
           add_span(l, ids_of(NULL, 0), ids_of(x->id, n_context), ids_of(l->text + begin, n - begin),
                    ids_of(NULL, 0), span_limit(l, n - begin), truncated, e);
}

/* Encoder-decoder: the parts are encoded apart, only the context with special tokens. */
static bool add_seq2seq(ses_likelihood *l, ses_string whole, size_t context, bool *truncated, ses_err *e)
{
    size_t n, n_context;
    if (!encode(l, (ses_string){ whole.p + context, whole.n - context }, true, &n, e) ||
        !keep_text(l, n, e) || !encode(l, (ses_string){ whole.p, context }, false, &n_context, e))
        return false;
    if (!n_context) return add_without_context(l, whole, e);
    const ses_encoding *x = ses_encode_ctx_result(l->tokens);
    return check_length(l, n, e) && add_span(l, ids_of(NULL, 0), ids_of(x->id, n_context), ids_of(l->text, n),
                                             ids_of(NULL, 0), span_limit(l, n), truncated, e);
}

/* A request of a context and a continuation in one buffer; the context has no white space at its end. */
static bool add_whole(ses_likelihood *l, ses_string whole, size_t context, ses_err *e)
{
    size_t n_context = 0;
    bool truncated = false, ok;
    if (l->kind == SES_LIKELIHOOD_MASKED)
        ok = encode(l, (ses_string){ whole.p, context }, true, &n_context, e) &&
             add_masked(l, whole, n_context, &truncated, e);
    else if (!context)
        ok = add_without_context(l, whole, e);
    else
        ok = (l->kind == SES_LIKELIHOOD_CAUSAL ? add_causal : add_seq2seq)(l, whole, context, &truncated, e);
    return ok && end_request(l, truncated);
}

bool ses_likelihood_add(ses_likelihood *l, ses_string context, ses_string continuation, ses_err *e)
{
    size_t n;
    if (!ses_add_size(context.n, continuation.n, &n)) return ses_fail(e, SES_ENOMEM, "the text is too long");
    char *text = ses_alloc(n + 1, e);
    if (!text) return false;
    if (context.n) memcpy(text, context.p, context.n);
    if (continuation.n) memcpy(text + context.n, continuation.p, continuation.n);
    bool ok = add_whole(l, (ses_string){ text, n }, ses_likelihood_rstrip(context), e);
    ses_free(text);
    return ok;
}

/* Windows as the harness makes them: the first predicts max_length tokens after the prefix token, the others
 * as many after the last token of the window before them; the last one has more context instead. */
static bool add_windows(ses_likelihood *l, ses_err *e)
{
    size_t max = (size_t)l->o.max_length, n = l->n_text;
    bool truncated = false;
    for (size_t done = 0; done < n;) {
        size_t m = n - done < max ? n - done : max;
        ses_ids context = done ? ids_of(l->text + done + m - max - 1, max + 1 - m) : ids_of(&l->prefix_id, 1);
        if (!add_span(l, ids_of(NULL, 0), context, ids_of(l->text + done, m), ids_of(NULL, 0),
                      span_limit(l, m), &truncated, e))
            return false;
        done += m;
    }
    return true;
}

bool ses_likelihood_add_text(ses_likelihood *l, ses_string text, ses_err *e)
{
    size_t n;
    bool ok = l->kind == SES_LIKELIHOOD_MASKED ? add_masked_text(l, text, e)
                                               : need_prefix(l, e) && encode(l, text, false, &n, e) &&
                                                     keep_text(l, n, e) && add_windows(l, e);
    /* a text without tokens has no span */
    return ok && ses_array_reserve(&l->result, &l->result_cap, l->n_results + 1, sizeof *l->result, e) &&
           end_request(l, false);
}

bool ses_likelihood_encode_prompt(ses_likelihood *l, ses_string text, int64_t max, ses_ids *out,
                                  bool *truncated, ses_err *e)
{
    size_t n;
    if (l->kind == SES_LIKELIHOOD_MASKED)
        return ses_fail(e, SES_EUNSUPPORTED, "%s predicts masked tokens, it does not generate text",
                        ses_model_class_name(l->model));
    if (!encode(l, text, false, &n, e) || !keep_text(l, n, e)) return false;
    if (!n && !need_prefix(l, e)) return false;
    if (!n) l->text[l->n_text++] = l->prefix_id;
    *out = ids_of(l->text, l->n_text);
    *truncated = out->n > max;
    if (*truncated) out->id += out->n - max, out->n = max;
    return true;
}

/* ---- results ---- */

bool ses_likelihood_run(ses_likelihood *l, ses_err *e)
{
    if (!ses_likelihood_run_spans(l, e)) return false;
    for (size_t i = l->first_new; i < l->n_spans; i++) {
        const ses_scored_span *s = &l->span[i];
        ses_likelihood_result *r = &l->result[s->request];
        r->logprob += s->logprob;
        r->tokens += s->n_scored;
        r->is_greedy &= s->is_greedy;
    }
    l->first_new = l->n_spans;
    return true;
}
