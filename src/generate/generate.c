/* The generation loop. Prompts start as others finish; each forward pass adds one token to every text. */
#include "base/alloc.h"
#include "base/hash.h"
#include "generate_impl.h"
#include "model/model_desc.h"

#include <string.h>

enum {
    DEFAULT_CACHE_TOKENS = 16384,
    DEFAULT_NEW_TOKENS = 20,
    MAX_HYPS = 64,        /* in one pass: more do not make a token cheaper */
    PREFILL_TOKENS = 4096 /* prompt tokens in one pass, at least one prompt */
};

/* ---- prompts ---- */

static void prompt_free(ses_prompt_state *p)
{
    if (!p) return;
    ses_arena_free(&p->mem);
    ses_free(p);
}

/* The tokens a prompt's hypotheses begin with; buffer: [decoder_ids.n + 1]. */
static ses_ids first_tokens(const ses_generate_ctx *g, const ses_prompt *prompt, int32_t *buffer)
{
    if (!g->has_encoder) return prompt->ids;
    ses_ids given = prompt->decoder_ids;
    int64_t n = 0;
    if (!given.n || given.id[0] != g->o.decoder_start) buffer[n++] = g->o.decoder_start;
    for (int64_t i = 0; i < given.n; i++) buffer[n++] = given.id[i];
    return (ses_ids){ buffer, n };
}

/* The last token of a text is never input, so a text may have one token more than the model accepts. */
static bool set_lengths(const ses_generate_ctx *g, ses_prompt_state *p, ses_err *e)
{
    const ses_generate_options *o = &g->o;
    int64_t max_tokens = ses_model_max_tokens(g->model);
    if (p->prompt_len > max_tokens)
        return ses_fail(e, SES_EARG, "prompt %lld has %lld tokens, the model accepts at most %lld",
                        (long long)p->index, (long long)p->prompt_len, (long long)max_tokens);
    p->max_length = o->max_new_tokens ? p->prompt_len + o->max_new_tokens
                    : o->max_length   ? o->max_length
                                      : p->prompt_len + DEFAULT_NEW_TOKENS;
    if (p->max_length > max_tokens + 1) p->max_length = max_tokens + 1;
    if (p->prompt_len >= p->max_length)
        return ses_fail(
            e, SES_EARG,
            "prompt %lld has %lld tokens and max_length is %lld: there is nothing left to generate",
            (long long)p->index, (long long)p->prompt_len, (long long)p->max_length);
    p->min_length = o->min_new_tokens ? p->prompt_len + o->min_new_tokens : o->min_length;
    return true;
}

static bool new_hypotheses(ses_generate_ctx *g, ses_prompt_state *p, ses_ids first, int64_t position,
                           ses_err *e)
{
    p->n_hyps = g->decoding->count_hyps(&g->o);
    p->hyp = ses_arena_array(&p->mem, (size_t)p->n_hyps, sizeof *p->hyp, e);
    for (int64_t i = 0; p->hyp && i < p->n_hyps; i++) {
        ses_hypothesis *h = &p->hyp[i];
        h->slot = (int32_t)(position * p->n_hyps + i), h->n = first.n;
        h->id = ses_arena_array(&p->mem, (size_t)p->max_length, sizeof *h->id, e);
        h->logprob = ses_arena_array(&p->mem, (size_t)p->max_length, sizeof *h->logprob, e);
        if (!h->id || !h->logprob) return false;
        memcpy(h->id, first.id, (size_t)first.n * sizeof *h->id);
    }
    return p->hyp != NULL;
}

/* position: index in g->active, which decides the cache slots. */
static ses_prompt_state *prompt_new(ses_generate_ctx *g, int64_t index, int64_t position, ses_err *e)
{
    const ses_prompt *prompt = &g->prompt[index];
    ses_prompt_state *p = ses_alloc(sizeof *p, e);
    int32_t *buffer =
        p ? ses_arena_array(&p->mem, (size_t)prompt->decoder_ids.n + 1, sizeof *buffer, e) : NULL;
    if (!buffer) goto fail;
    ses_ids first = first_tokens(g, prompt, buffer), ids = prompt->ids;
    p->index = index, p->source = ids, p->prompt_len = first.n;
    p->random_site = (uint32_t)ses_hash((ses_hash_key){ 0, 0 }, ids.id, (size_t)ids.n * sizeof *ids.id);
    if (!set_lengths(g, p, e) || !new_hypotheses(g, p, first, position, e) || !g->decoding->begin(g, p, e))
        goto fail;
    return p;
fail:
    prompt_free(p);
    return NULL;
}

/* ---- scores and cache, for the decoding strategies ---- */

double ses_generate_next_scores(ses_generate_ctx *g, const ses_prompt_state *p, const ses_hypothesis *h,
                                const ses_real *logits, bool log_softmax)
{
    for (int64_t i = 0; i < g->vocab_size; i++) g->score[i] = (float)logits[i];
    double lse = ses_log_sum_exp(g->score, g->vocab_size);
    for (int64_t i = 0; log_softmax && i < g->vocab_size; i++)
        g->score[i] = (float)((double)g->score[i] - lse);
    ses_logits_ctx c = { .o = &g->o,
                         .score = g->score,
                         .vocab_size = g->vocab_size,
                         .id = h->id,
                         .n = h->n,
                         .prompt_len = p->prompt_len,
                         .max_length = p->max_length,
                         .min_length = p->min_length,
                         .source = p->source,
                         .rank = g->rank };
    c.min_keep = g->o.num_beams > 1 ? (g->o.eos.n ? g->o.eos.n : 1) + 1 : 1;
    if (c.min_keep > g->vocab_size) c.min_keep = g->vocab_size;
    ses_logits_process(&c);
    return lse;
}

void ses_generate_reorder_cache(ses_generate_ctx *g, int32_t to, int32_t from)
{
    if (to == from) return;
    g->reorder_to[g->n_reorder] = to, g->reorder_from[g->n_reorder++] = from;
}

static bool apply_reorder(ses_generate_ctx *g, ses_err *e)
{
    int64_t n = g->n_reorder;
    g->n_reorder = 0;
    return !n || (g->mems ? ses_mems_reorder(g->mems, n, g->reorder_to, g->reorder_from, e)
                          : ses_cache_reorder(g->cache, n, g->reorder_to, g->reorder_from, e));
}

/* ---- forward passes ---- */

static bool reserve_logits(ses_generate_ctx *g, int64_t rows, ses_err *e)
{
    size_t n;
    if (rows <= g->logits_capacity) return true;
    if (!ses_mul_size((size_t)rows, (size_t)g->vocab_size, &n))
        return ses_fail(e, SES_ENOMEM, "too many rows of logits");
    ses_real *logits = ses_realloc_array(g->logits, n, sizeof *logits, e);
    if (logits) g->logits = logits, g->logits_capacity = rows;
    return logits != NULL;
}

/* Runs the model; g->logits gets the logits of each sequence's last token. */
static bool forward(ses_generate_ctx *g, const ses_batch *b, ses_err *e)
{
    ses_outputs out;
    if (g->mems && !(b = ses_mems_begin_pass(g->mems, b, e))) return false;
    const int32_t *cu_seqlens = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    int32_t *last = ses_alloc_array((size_t)b->seqs, sizeof *last, e);
    for (int64_t s = 0; last && s < b->seqs; s++) last[s] = cu_seqlens[s + 1] - 1;
    ses_output_request request = { .logits = true, .rows = last, .n_rows = b->seqs, .mems = g->mems };
    ses_tape_reset(g->tape, NULL);
    bool ok =
        last && reserve_logits(g, b->seqs, e) && ses_model_forward(g->model, g->tape, b, &request, &out, e);
    const ses_output *logits = ok ? ses_outputs_find(&out, g->logits_name) : NULL;
    const ses_tensor *x = logits && logits->axis == SES_PER_ROW ? logits->tensor : NULL;
    ok = x && ses_count(x) == b->seqs * g->vocab_size && ses_tape_read(g->tape, x, g->logits);
    ses_free(last);
    g->out->tokens_read += cu_seqlens[b->seqs] + (b->target_cu_seqlens && b->ids ? b->tokens : 0);
    if (!ok) return ses_fail(e, SES_EARG, "the model has no logits over its vocabulary");
    return !g->mems || ses_mems_end_pass(g->mems, g->tape, &out, e);
}

/* Sequences of one pass; one allocation, at cu_seqlens. */
typedef struct pass {
    int32_t *cu_seqlens, *id;               /* input of the decoder */
    int32_t *source_cu_seqlens, *source_id; /* input of the encoder */
    int32_t *slot;
    int64_t n, tokens, source_tokens;
} pass;

static bool pass_new(pass *p, int64_t seqs, int64_t tokens, int64_t source_tokens, ses_err *e)
{
    size_t total = 3 * (size_t)seqs + 2 + (size_t)tokens + (size_t)source_tokens;
    *p = (pass){ .cu_seqlens = ses_alloc_array(total, sizeof *p->cu_seqlens, e) };
    if (!p->cu_seqlens) return false;
    p->source_cu_seqlens = p->cu_seqlens + seqs + 1;
    p->slot = p->source_cu_seqlens + seqs + 1;
    p->id = p->slot + seqs;
    p->source_id = p->id + tokens;
    return true;
}

static void pass_add(pass *p, int32_t slot, const int32_t *id, int64_t n, ses_ids source)
{
    memcpy(p->id + p->tokens, id, (size_t)n * sizeof *id);
    if (source.n) memcpy(p->source_id + p->source_tokens, source.id, (size_t)source.n * sizeof *source.id);
    p->slot[p->n++] = slot;
    p->cu_seqlens[p->n] = (int32_t)(p->tokens += n);
    p->source_cu_seqlens[p->n] = (int32_t)(p->source_tokens += source.n);
}

static ses_batch pass_batch(const ses_generate_ctx *g, const pass *p)
{
    ses_batch b = { .seqs = p->n, .slots = p->slot, .cache = g->cache };
    if (!g->has_encoder) {
        b.tokens = p->tokens, b.cu_seqlens = p->cu_seqlens, b.ids = p->id;
        return b;
    }
    b.target_cu_seqlens = p->cu_seqlens, b.target_ids = p->id;
    if (p->source_tokens)
        b.tokens = p->source_tokens, b.cu_seqlens = p->source_cu_seqlens, b.ids = p->source_id;
    return b;
}

/* One step of a prompt's hypotheses. logits: one row for each that is not done; in the first step, one
 * for all. */
static bool step(ses_generate_ctx *g, ses_prompt_state *p, const ses_real *logits, bool first_step,
                 ses_err *e)
{
    const ses_real **row = ses_alloc_array((size_t)p->n_hyps, sizeof *row, e);
    int64_t at = 0;
    for (int64_t i = 0; row && i < p->n_hyps; i++) {
        row[i] = logits + at * g->vocab_size;
        if (!first_step && !p->hyp[i].done) at++;
    }
    bool ok = row && g->decoding->step(g, p, row, e);
    ses_free(row);
    return ok;
}

/* ---- the loop ---- */

/* Runs the tokens of n new prompts (prefill) and makes their first step. position: [n] in g->active. */
static bool prefill(ses_generate_ctx *g, const int64_t *position, int64_t n, ses_err *e)
{
    int64_t tokens = 0, source_tokens = 0;
    pass x;
    for (int64_t i = 0; i < n; i++) {
        tokens += g->active[position[i]]->prompt_len;
        source_tokens += g->has_encoder ? g->active[position[i]]->source.n : 0;
    }
    if (!pass_new(&x, n, tokens, source_tokens, e)) return false;
    for (int64_t i = 0; i < n; i++) {
        const ses_prompt_state *p = g->active[position[i]];
        const ses_hypothesis *h = p->hyp; /* the others get copies of the first one's slot */
        pass_add(&x, h[0].slot, h[0].id, p->prompt_len, g->has_encoder ? p->source : (ses_ids){ NULL, 0 });
        for (int64_t k = 1; k < p->n_hyps; k++) ses_generate_reorder_cache(g, h[k].slot, h[0].slot);
    }
    ses_batch b = pass_batch(g, &x);
    bool ok = forward(g, &b, e) && apply_reorder(g, e);
    ses_free(x.cu_seqlens);
    for (int64_t i = 0; ok && i < n && !g->out->cancelled; i++)
        ok = step(g, g->active[position[i]], g->logits + i * g->vocab_size, true, e);
    return ok && apply_reorder(g, e);
}

/* Starts prompts in the free positions, in passes of about PREFILL_TOKENS tokens. */
static bool start_prompts(ses_generate_ctx *g, ses_err *e)
{
    int64_t *position = ses_alloc_array((size_t)g->n_active, sizeof *position, e), n = 0, tokens = 0;
    bool ok = position != NULL;
    for (int64_t i = 0; ok && i < g->n_active && g->next_prompt < g->n_prompts; i++) {
        if (g->active[i]) continue;
        ok = (g->active[i] = prompt_new(g, g->next_prompt, i, e)) != NULL;
        if (!ok) break;
        g->next_prompt++;
        position[n++] = i;
        tokens += g->active[i]->prompt_len + (g->has_encoder ? g->active[i]->source.n : 0);
        if (tokens < PREFILL_TOKENS) continue;
        ok = prefill(g, position, n, e);
        n = tokens = 0;
        if (g->out->cancelled) break;
    }
    if (ok && n && !g->out->cancelled) ok = prefill(g, position, n, e);
    ses_free(position);
    return ok;
}

static int64_t count_unfinished(const ses_prompt_state *p)
{
    int64_t n = 0;
    for (int64_t i = 0; p && i < p->n_hyps; i++) n += !p->hyp[i].done;
    return n;
}

/* Adds a token to every unfinished hypothesis. A finished one keeps its slot until its prompt is done. */
static bool decode_step(ses_generate_ctx *g, ses_err *e)
{
    int64_t n = 0, at = 0;
    pass x;
    for (int64_t i = 0; i < g->n_active; i++) n += count_unfinished(g->active[i]);
    if (!n) return true;
    if (!pass_new(&x, n, n, 0, e)) return false;
    for (int64_t i = 0; i < g->n_active; i++)
        for (int64_t k = 0; g->active[i] && k < g->active[i]->n_hyps; k++) {
            const ses_hypothesis *h = &g->active[i]->hyp[k];
            if (!h->done) pass_add(&x, h->slot, h->id + h->n - 1, 1, (ses_ids){ NULL, 0 });
        }
    ses_batch b = pass_batch(g, &x);
    bool ok = forward(g, &b, e);
    for (int64_t i = 0; ok && i < g->n_active && !g->out->cancelled; i++) {
        ses_prompt_state *p = g->active[i];
        int64_t rows = count_unfinished(p);
        if (p) ok = step(g, p, g->logits + at * g->vocab_size, false, e);
        at += rows;
    }
    ses_free(x.cu_seqlens);
    return ok && apply_reorder(g, e);
}

static void clear_slot(ses_generate_ctx *g, int32_t slot)
{
    if (g->mems)
        ses_mems_clear_slot(g->mems, slot);
    else
        ses_cache_trim(g->cache, slot, 0);
}

/* Copies the texts of finished prompts to the result and frees their positions. */
static bool finish_prompts(ses_generate_ctx *g, ses_err *e)
{
    int64_t each = g->o.num_return_sequences;
    for (int64_t i = 0; i < g->n_active; i++) {
        ses_prompt_state *p = g->active[i];
        if (!p || !(p->done || g->out->cancelled)) continue;
        ses_generated_sequence *text = g->out->sequence + p->index * each;
        if (!g->decoding->finish(g, p, text, e)) return false;
        for (int64_t r = 0; r < each; r++) g->out->tokens_generated += text[r].ids.n - text[r].prompt_len;
        for (int64_t k = 0; k < p->n_hyps; k++) clear_slot(g, p->hyp[k].slot);
        prompt_free(p);
        g->active[i] = NULL;
    }
    return true;
}

static bool run(ses_generate_ctx *g, ses_err *e)
{
    bool busy = true;
    while (busy && !g->out->cancelled) {
        if (!start_prompts(g, e) || !finish_prompts(g, e) || (!g->out->cancelled && !decode_step(g, e)) ||
            !finish_prompts(g, e))
            return false;
        busy = g->next_prompt < g->n_prompts;
        for (int64_t i = 0; i < g->n_active; i++) busy |= g->active[i] != NULL;
    }
    for (int64_t i = 0; i < g->out->n; i++) /* prompts that were not started */
        if (!g->out->sequence[i].ids.id)
            g->out->sequence[i] = (ses_generated_sequence){ .prompt = i / g->o.num_return_sequences,
                                                            .finish = SES_FINISH_CANCELLED };
    return true;
}

/* ---- memory ---- */

/* The longest text any prompt may reach; 0 after an error. */
static int64_t longest_text(ses_generate_ctx *g, ses_err *e)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < g->n_prompts; i++) {
        const ses_prompt *prompt = &g->prompt[i];
        ses_prompt_state p = { .index = i, .prompt_len = prompt->ids.n };
        if (g->has_encoder) p.prompt_len = prompt->decoder_ids.n + 1;
        if (prompt->ids.n < 1) return ses_fail(e, SES_EARG, "prompt %lld is empty", (long long)i);
        if (!ses_generate_check_ids(prompt->ids, g->vocab_size, "prompt", e) || !set_lengths(g, &p, e))
            return 0;
        if (p.max_length > longest) longest = p.max_length;
    }
    return longest;
}

/* Cache slots have the length of the longest text; the number of prompts in progress follows. */
static bool allocate(ses_generate_ctx *g, ses_err *e)
{
    int64_t length = longest_text(g, e), hyps = g->decoding->count_hyps(&g->o);
    int64_t tokens = g->o.cache_tokens ? g->o.cache_tokens : DEFAULT_CACHE_TOKENS;
    if (!length) return false;
    g->n_active = tokens / length < MAX_HYPS ? tokens / length / hyps : MAX_HYPS / hyps;
    if (g->n_active < 1) g->n_active = 1;
    if (g->n_active > g->n_prompts) g->n_active = g->n_prompts;
    int64_t slots = g->n_active * hyps;
    if (g->model->desc->vtable) /* models with stacks of their own have no KV cache */
        g->mems = ses_mems_new(g->model, slots, e);
    else
        g->cache = ses_cache_new(g->model, slots, length, e);
    g->tape = g->cache || g->mems ? ses_tape_new(g->model->dev, NULL, e) : NULL;
    if (g->o.n_stop_strings) g->tokens = ses_encode_ctx_new(g->o.tokenizer, e);
    g->active = ses_alloc_array((size_t)g->n_active, sizeof *g->active, e);
    g->reorder_to = ses_alloc_array((size_t)slots, sizeof *g->reorder_to, e);
    g->reorder_from = ses_alloc_array((size_t)slots, sizeof *g->reorder_from, e);
    g->score = ses_alloc_array((size_t)g->vocab_size, sizeof *g->score, e);
    g->rank = ses_alloc_array((size_t)g->vocab_size, sizeof *g->rank, e);
    size_t n = 0;
    if (!ses_mul_size((size_t)g->n_prompts, (size_t)g->o.num_return_sequences, &n))
        return ses_fail(e, SES_ENOMEM, "too many sequences");
    g->out->n = (int64_t)n;
    g->out->sequence = ses_alloc_array(n, sizeof *g->out->sequence, e);
    return g->tape && (g->tokens || !g->o.n_stop_strings) && g->active && g->reorder_to && g->reorder_from &&
           g->score && g->rank && g->out->sequence;
}

static void release(ses_generate_ctx *g)
{
    for (int64_t i = 0; g->active && i < g->n_active; i++) prompt_free(g->active[i]);
    ses_cache_free(g->cache);
    ses_mems_free(g->mems);
    ses_tape_free(g->tape);
    ses_encode_ctx_free(g->tokens);
    ses_free(g->active);
    ses_free(g->reorder_to);
    ses_free(g->reorder_from);
    ses_free(g->logits);
    ses_free(g->score);
    ses_free(g->rank);
}

ses_generated *ses_generate(const ses_model *m, const ses_prompt *prompt, int64_t n,
                            const ses_generate_options *o, ses_err *e)
{
    ses_generate_ctx g = {
        .model = m, .o = *o, .prompt = prompt, .n_prompts = n, .vocab_size = ses_model_vocab_size(m)
    };
    g.decoding = o->num_beams > 1 ? &ses_decoding_beam : &ses_decoding_sample;
    g.out = ses_alloc(sizeof *g.out, e);
    bool ok = g.out && ses_generate_check(&g, e) && (n < 1 || (allocate(&g, e) && run(&g, e)));
    release(&g);
    if (ok) return g.out;
    ses_generated_free(g.out);
    return NULL;
}

void ses_generated_free(ses_generated *r)
{
    if (!r) return;
    for (int64_t i = 0; r->sequence && i < r->n; i++) {
        ses_free((void *)(uintptr_t)r->sequence[i].ids.id);
        ses_free((void *)(uintptr_t)r->sequence[i].logprob);
    }
    ses_free(r->sequence);
    ses_free(r);
}
