/* A prompt of a generator: lengths, hypotheses, result. */
#include "base/alloc.h"
#include "base/hash.h"
#include "generate_impl.h"
#include "model/model_desc.h"
#include "nn/cache_impl.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_NEW_TOKENS = 20 };

/* ---- a waiting prompt ---- */

static bool copy_ids(ses_prompt_state *p, ses_ids from, ses_ids *to, ses_err *e)
{
    int32_t *id = ses_arena_array(&p->mem, (size_t)from.n + 1, sizeof *id, e);
    if (id && from.n) memcpy(id, from.id, (size_t)from.n * sizeof *id);
    *to = (ses_ids){ id, from.n };
    return id != NULL;
}

/* Sets the tokens that the hypotheses begin with: the prompt, or the decoder's start token and
 * decoder_ids. */
static bool set_first_tokens(const ses_generator *g, ses_prompt_state *p, ses_ids given, ses_err *e)
{
    int64_t n = 0;
    p->first = p->source, p->prompt_len = p->source.n;
    if (!g->has_encoder) return true;
    int32_t *id = ses_arena_array(&p->mem, (size_t)given.n + 1, sizeof *id, e);
    if (!id) return false;
    if (!given.n || given.id[0] != p->o.decoder_start) id[n++] = p->o.decoder_start;
    for (int64_t i = 0; i < given.n; i++) id[n++] = given.id[i];
    p->first = (ses_ids){ id, n }, p->prompt_len = n;
    return true;
}

/* The last token of a text is never input, so a text may have one token more than the model accepts. */
static bool set_lengths(const ses_generator *g, ses_prompt_state *p, ses_err *e)
{
    const ses_generate_options *o = &p->o;
    int64_t max_tokens = ses_model_max_target_tokens(g->model);
    if (p->prompt_len > max_tokens)
        return ses_fail(e, SES_EARG, "the prompt has %lld tokens, the model accepts at most %lld",
                        (long long)p->prompt_len, (long long)max_tokens);
    p->max_length = o->max_new_tokens ? p->prompt_len + o->max_new_tokens
                    : o->max_length   ? o->max_length
                                      : p->prompt_len + DEFAULT_NEW_TOKENS;
    if (p->max_length > max_tokens + 1) p->max_length = max_tokens + 1;
    if (p->prompt_len >= p->max_length)
        return ses_fail(
            e, SES_EARG,
            "the prompt has %lld tokens and max_length is %lld: there is nothing left to generate",
            (long long)p->prompt_len, (long long)p->max_length);
    p->min_length = o->min_new_tokens ? p->prompt_len + o->min_new_tokens : o->min_length;
    p->n_hyps = p->decoding->count_hyps(o);
    p->cache_need = p->n_hyps * (p->max_length - 1 + (g->cache ? g->cache->virtual_rows : 0));
    return true;
}

ses_prompt_state *ses_prompt_state_new(const ses_generator *g, const ses_prompt *prompt,
                                       const ses_generate_options *o, ses_err *e)
{
    ses_prompt_state *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->o = *o;
    p->decoding = o->num_beams > 1 ? &ses_decoding_beam : &ses_decoding_sample;
    p->n_top = o->top_logprobs < g->vocab_size ? o->top_logprobs : g->vocab_size;
    bool ok = ses_generate_check(g, &p->o, e);
    if (ok && prompt->ids.n < 1) ok = ses_fail(e, SES_EARG, "the prompt is empty");
    ok = ok && ses_generate_check_ids(prompt->ids, ses_model_source_vocab_size(g->model), "prompt", e) &&
         ses_generate_check_ids(prompt->decoder_ids, g->vocab_size, "decoder_ids", e) &&
         copy_ids(p, prompt->ids, &p->source, e) && set_first_tokens(g, p, prompt->decoder_ids, e) &&
         set_lengths(g, p, e);
    if (ok) {
        size_t bytes = (size_t)p->source.n * sizeof *p->source.id;
        p->random_site = (uint32_t)ses_hash((ses_hash_key){ 0, 0 }, p->source.id, bytes);
        return p;
    }
    ses_arena_free(&p->mem);
    ses_free(p);
    return NULL;
}

void ses_prompt_state_free(ses_generator *g, ses_prompt_state *p)
{
    if (!p) return;
    bool last_user = p->tokens && p->tokens == g->tokens && !--g->tokens_users;
    if (last_user || p->tokens != g->tokens) ses_encode_ctx_free(p->tokens);
    if (last_user) g->tokens = NULL;
    ses_arena_free(&p->mem);
    ses_free(p);
}

/* ---- a prompt in progress ---- */

bool ses_text_tokens_new(ses_prompt_state *p, ses_text_tokens *t, ses_err *e)
{
    size_t generated = (size_t)(p->max_length - p->prompt_len);
    t->id = ses_arena_array(&p->mem, (size_t)p->max_length, sizeof *t->id, e);
    t->logprob = ses_arena_array(&p->mem, generated, sizeof *t->logprob, e);
    if (!t->id || !t->logprob) return false;
    memcpy(t->id, p->first.id, (size_t)p->prompt_len * sizeof *t->id);
    if (p->n_top) t->top = ses_arena_array(&p->mem, generated * (size_t)p->n_top, sizeof *t->top, e);
    return !p->n_top || t->top;
}

/* The workspace to decode texts for stop strings; prompts with the same tokenizer share it. */
static bool use_tokens(ses_generator *g, ses_prompt_state *p, ses_err *e)
{
    if (!p->o.n_stop_strings) return true;
    bool shares = g->tokens && g->tokens_of == p->o.tokenizer;
    p->tokens = shares ? g->tokens : ses_encode_ctx_new(p->o.tokenizer, e);
    if (!g->tokens) g->tokens = p->tokens, g->tokens_of = p->o.tokenizer;
    g->tokens_users += p->tokens && p->tokens == g->tokens;
    return p->tokens != NULL;
}

static bool new_prompt_scores(ses_prompt_state *p, ses_err *e)
{
    size_t n = (size_t)p->prompt_len, tops = n * (size_t)p->n_top;
    if (!p->o.prompt_logprobs) return true;
    p->prompt_logprob = ses_arena_array(&p->mem, n, sizeof *p->prompt_logprob, e);
    if (p->n_top) p->prompt_top = ses_arena_array(&p->mem, tops, sizeof *p->prompt_top, e);
    if (!p->prompt_logprob || (p->n_top && !p->prompt_top)) return false;
    p->prompt_logprob[0] = NAN;
    for (int64_t i = 0; i < p->n_top; i++) p->prompt_top[i] = (ses_top_token){ -1, NAN };
    return true;
}

bool ses_prompt_state_begin(ses_generator *g, ses_prompt_state *p, const int32_t *slot, ses_err *e)
{
    p->hyp = ses_arena_array(&p->mem, (size_t)p->n_hyps, sizeof *p->hyp, e);
    for (int64_t i = 0; p->hyp && i < p->n_hyps; i++) {
        p->hyp[i].slot = slot[i], p->hyp[i].n = p->prompt_len;
        if (!ses_text_tokens_new(p, &p->hyp[i].t, e)) return false;
    }
    return p->hyp && use_tokens(g, p, e) && new_prompt_scores(p, e) && p->decoding->begin(g, p, e);
}

/* ---- the result ---- */

static bool copy_array(void *to, const void *from, int64_t n, size_t size, ses_err *e)
{
    void *copy = ses_alloc_array((size_t)n + 1, size, e);
    if (copy && n) memcpy(copy, from, (size_t)n * size);
    memcpy(to, &copy, sizeof copy);
    return copy != NULL;
}

bool ses_generated_sequence_copy(ses_generated_sequence *out, const ses_prompt_state *p,
                                 const ses_text_tokens *t, int64_t n, ses_err *e)
{
    int64_t generated = n - p->prompt_len;
    *out = (ses_generated_sequence){
        .prompt = p->index, .ids = { NULL, n }, .prompt_len = p->prompt_len, .n_top = p->n_top
    };
    return copy_array(&out->ids.id, t->id, n, sizeof *t->id, e) &&
           copy_array(&out->logprob, t->logprob, generated, sizeof *t->logprob, e) &&
           (!p->n_top || copy_array(&out->top, t->top, generated * p->n_top, sizeof *t->top, e));
}

static bool copy_prompt_scores(const ses_prompt_state *p, ses_generated_sequence *out, ses_err *e)
{
    int64_t n = p->prompt_len;
    return (!p->prompt_logprob ||
            copy_array(&out->prompt_logprob, p->prompt_logprob, n, sizeof *p->prompt_logprob, e)) &&
           (!p->prompt_top ||
            copy_array(&out->prompt_top, p->prompt_top, n * p->n_top, sizeof *p->prompt_top, e));
}

ses_generated *ses_prompt_state_finish(ses_prompt_state *p, ses_err *e)
{
    ses_generated *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->n = p->o.num_return_sequences, r->cancelled = p->cancelled;
    r->sequence = ses_alloc_array((size_t)r->n, sizeof *r->sequence, e);
    bool ok = r->sequence != NULL, started = p->hyp != NULL;
    for (int64_t i = 0; ok && !started && i < r->n; i++)
        r->sequence[i] = (ses_generated_sequence){ .prompt = p->index, .finish = SES_FINISH_CANCELLED };
    ok =
        ok && (!started || (p->decoding->finish(p, r->sequence, e) && copy_prompt_scores(p, r->sequence, e)));
    for (int64_t i = 0; ok && i < r->n; i++)
        r->tokens_generated += r->sequence[i].ids.n - r->sequence[i].prompt_len;
    if (ok) return r;
    ses_generated_free(r);
    return NULL;
}
