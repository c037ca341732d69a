/* Exact match of greedy output: generates a text after each context and compares it with the target. */
#include "eval_likelihood_impl.h"

#include "base/alloc.h"
#include "base/unicode/lowercase.h"
#include "sesame/generate.h"
#include "sesame/pipeline.h"
#include "task/stop_text.h"

#include <string.h>

/* Appends a text as the metric compares it. */
static void put_compared(const ses_eval_task *t, ses_string s, ses_buf *out)
{
    size_t from = out->len;
    if (t->ignore_case)
        ses_lower_append(out, s.p, s.n);
    else
        ses_buf_append(out, s.p, s.n);
    if (out->wanted || !out->data) return;
    size_t to = from;
    for (size_t i = from; i < out->len; i++) {
        char c = out->data[i];
        bool digit = c >= '0' && c <= '9', letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool punctuation = c > ' ' && c < 0x7f && !digit && !letter;
        if ((punctuation && t->ignore_punctuation) || (digit && t->ignore_numbers)) continue;
        out->data[to++] = c;
    }
    out->len = to;
}

static bool is_equal(const ses_eval_task *t, ses_string text, ses_string target, bool *equal, ses_err *e)
{
    ses_buf a = { 0 }, b = { 0 }, lower = { 0 };
    while (t->remove_whitespace && text.n && (text.p[0] == ' ' || (text.p[0] >= '\t' && text.p[0] <= '\r')))
        text.p++, text.n--;
    if (t->lowercase) ses_lower_append(&lower, text.p, text.n);
    put_compared(t, t->lowercase ? string_of(&lower) : text, &a);
    put_compared(t, target, &b);
    bool ok = ses_buf_ok(&lower, e) && ses_buf_ok(&a, e) && ses_buf_ok(&b, e);
    *equal = ok && a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len));
    ses_buf_free(&a), ses_buf_free(&b), ses_buf_free(&lower);
    return ok;
}

/* The prompts of all documents, their ids in one array. */
typedef struct prompt_list {
    int32_t *id;
    size_t n_id, cap;
    ses_prompt *prompt;
    size_t *at; /* first id of each */
} prompt_list;

static bool add_prompt(ses_eval_state *s, size_t i, int64_t max, prompt_list *l, int64_t *truncated,
                       ses_err *e)
{
    ses_buf text = { 0 };
    ses_ids ids = { NULL, 0 };
    bool lost = false;
    bool ok = ses_prompts_context(&s->prompts, i, &text, e) &&
              (ses_likelihood_encode_prompt(s->likelihood, string_of(&text), max, &ids, &lost, e) ||
               ses_docs_wrap(s->prompts.docs, i, e)) &&
              ses_array_reserve(&l->id, &l->cap, l->n_id + (size_t)ids.n, sizeof *l->id, e);
    if (ok && ids.n) memcpy(l->id + l->n_id, ids.id, (size_t)ids.n * sizeof *l->id);
    if (ok) l->at[i] = l->n_id, l->prompt[i].ids.n = ids.n, l->n_id += (size_t)ids.n;
    *truncated += lost;
    ses_buf_free(&text);
    return ok;
}

static bool write_line(const ses_eval_likelihood_options *o, size_t i, ses_string text, ses_string target,
                       bool equal, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "doc_id", (int64_t)i);
    ses_json_member_string(w, "request_type", "generate_until");
    ses_json_member_stringn(w, "generated", text.p, text.n);
    ses_json_member_stringn(w, "target", target.p, target.n);
    ses_json_member_bool(w, "exact_match", equal);
    ses_json_end_object(w);
    size_t n = 0;
    const char *line = ses_json_writer_text(w, &n, e);
    bool ok = line && o->log(o->log_ctx, line, n, e) && o->log(o->log_ctx, "\n", 1, e);
    ses_json_writer_free(w);
    return ok;
}

/* Compares the text of document i, up to the first stop string. */
static bool compare(ses_eval_state *s, size_t i, const ses_generated_sequence *g, ses_encode_ctx *k,
                    bool has_encoder, const ses_generate_options *generate,
                    const ses_eval_likelihood_options *o, ses_err *e)
{
    size_t from = has_encoder ? 0 : (size_t)g->prompt_len, n = 0;
    const char *text = NULL;
    ses_buf target = { 0 };
    bool ok = ses_decode(k, g->ids.id + from, (size_t)g->ids.n - from, false, &text, &n, e) &&
              ses_prompts_target(&s->prompts, i, &target, e);
    if (ok) n = ses_stop_text_find(generate, text, n, 0);
    ok = ok && is_equal(s->task, (ses_string){ text, n }, string_of(&target), &s->item[i].is_equal, e) &&
         (!o->log || write_line(o, i, (ses_string){ text, n }, string_of(&target), s->item[i].is_equal, e));
    ses_buf_free(&target);
    return ok;
}

/* Greedy, with the folder's other settings, as transformers' generate(). */
static void set_greedy(const ses_eval_task *t, const ses_tokenizer *k, ses_generate_options *o)
{
    o->do_sample = false, o->num_beams = o->num_beam_groups = o->num_return_sequences = 1;
    o->temperature = 1, o->max_length = 0, o->max_new_tokens = t->max_gen_toks;
    o->stop_strings = t->until, o->n_stop_strings = (int64_t)t->n_until, o->tokenizer = k;
}

static bool generate_all(ses_eval_state *s, const ses_model *m, const ses_tokenizer *t, const prompt_list *l,
                         const ses_eval_likelihood_options *o, ses_eval_likelihood_result *r, ses_err *e)
{
    bool has_encoder = ses_likelihood_kind_of(s->likelihood) == SES_LIKELIHOOD_SEQ2SEQ;
    ses_generation_config *config = ses_generation_config_open(m, e);
    ses_encode_ctx *k = config ? ses_encode_ctx_new(t, e) : NULL;
    ses_generate_options g = { 0 };
    if (k) g = *ses_generation_config_options(config);
    set_greedy(s->task, t, &g);
    ses_generated *out = k ? ses_generate(m, l->prompt, (int64_t)s->n, &g, e) : NULL;
    bool ok = out != NULL;
    for (size_t i = 0; ok && i < s->n; i++) ok = compare(s, i, &out->sequence[i], k, has_encoder, &g, o, e);
    if (ok) r->scored_tokens = out->tokens_generated, r->stats.tokens_read = out->tokens_read;
    ses_generated_free(out);
    ses_encode_ctx_free(k);
    ses_generation_config_free(config);
    return ok;
}

bool ses_eval_generation(ses_eval_state *s, const ses_model *m, const ses_tokenizer *t,
                         const ses_eval_likelihood_options *o, ses_eval_likelihood_result *r, ses_err *e)
{
    prompt_list l = { 0 };
    int64_t max = ses_likelihood_max_length(s->likelihood);
    if (ses_likelihood_kind_of(s->likelihood) == SES_LIKELIHOOD_MASKED)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s predicts masked tokens: it cannot generate text, which task %s (generate_until) needs",
            ses_model_class_name(m), s->task->name);
    if (ses_likelihood_kind_of(s->likelihood) == SES_LIKELIHOOD_CAUSAL) max -= s->task->max_gen_toks;
    if (max < 1)
        return ses_fail(
            e, SES_EARG,
            "max_gen_toks is %lld, but the model accepts %lld tokens, the context included: expected less",
            (long long)s->task->max_gen_toks, (long long)ses_likelihood_max_length(s->likelihood));
    l.prompt = ses_alloc_array(s->n, sizeof *l.prompt, e);
    l.at = ses_alloc_array(s->n, sizeof *l.at, e);
    bool ok = l.prompt && l.at;
    for (size_t i = 0; ok && i < s->n; i++) ok = add_prompt(s, i, max, &l, &r->stats.truncated, e);
    for (size_t i = 0; ok && i < s->n; i++) l.prompt[i].ids.id = l.id + l.at[i];
    r->stats.requests = (int64_t)s->n;
    ok = ok && generate_all(s, m, t, &l, o, r, e);
    ses_free(l.id), ses_free(l.prompt), ses_free(l.at);
    return ok;
}
