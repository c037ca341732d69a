/* The generator: starts prompts as sequences and cache permit, runs passes, finishes prompts. */
#include "base/alloc.h"
#include "generate_impl.h"
#include "model/model_desc.h"
#include "nn/cache_impl.h"
#include "tensor/device_impl.h"

#include <string.h>

enum {
    DEFAULT_CACHE_TOKENS = 16384,
    DEFAULT_SEQUENCES = 64, /* in one pass: more do not make a token cheaper */
    HOST_PREFILL = 256,     /* prompt tokens in one step: a fraction of a second */
    DEVICE_PREFILL = 4096,
    PASS_PREFILL = 4096, /* prompt tokens in one pass */
    PASS_SCORED = 128,   /* scored prompt tokens in one pass: each needs a row of logits */
    MAX_SEQUENCES = 1 << 20
};

/* ---- new, free ---- */

static bool allocate(ses_generator *g, ses_err *e)
{
    size_t n = (size_t)g->max_sequences;
    if (ses_slot_kind_of(g->model))
        g->states = ses_slot_states_new(g->model, g->max_sequences, e);
    else
        g->cache = ses_cache_new_shared(g->model, g->max_sequences, e);
    if (!g->cache && !g->states) return false;
    g->tape = ses_tape_new(g->model->dev, NULL, e);
    g->active = ses_alloc_array(n, sizeof *g->active, e);
    g->free_slot = ses_alloc_array(n, sizeof *g->free_slot, e);
    g->slot = ses_alloc_array(n, sizeof *g->slot, e);
    g->reorder_to = ses_alloc_array(n, sizeof *g->reorder_to, e);
    g->reorder_from = ses_alloc_array(n, sizeof *g->reorder_from, e);
    g->logits_row = ses_alloc_array(n, sizeof *g->logits_row, e);
    g->part = ses_alloc_array(n, sizeof *g->part, e);
    g->score = ses_alloc_array((size_t)g->vocab_size, sizeof *g->score, e);
    g->rank = ses_alloc_array((size_t)g->vocab_size, sizeof *g->rank, e);
    g->top = ses_alloc_array(SES_MAX_TOP_LOGPROBS, sizeof *g->top, e);
    return g->tape && g->active && g->free_slot && g->slot && g->reorder_to && g->reorder_from &&
           g->logits_row && g->part && g->score && g->rank && g->top;
}

ses_generator *ses_generator_new(const ses_model *m, int64_t cache_tokens, int64_t max_sequences, ses_err *e)
{
    if (cache_tokens < 0 || max_sequences < 0 || max_sequences > MAX_SEQUENCES) {
        ses_fail(e, SES_EARG, "%lld cache tokens and %lld sequences, expected at least 0 and 0 to %d",
                 (long long)cache_tokens, (long long)max_sequences, MAX_SEQUENCES);
        return NULL;
    }
    ses_generator *g = ses_alloc(sizeof *g, e);
    if (!g) return NULL;
    g->model = m, g->vocab_size = ses_model_vocab_size(m);
    g->cache_tokens = cache_tokens ? cache_tokens : DEFAULT_CACHE_TOKENS;
    g->max_sequences = max_sequences ? max_sequences : DEFAULT_SEQUENCES;
    g->prefill_tokens = m->dev->is_host ? HOST_PREFILL : DEVICE_PREFILL;
    if (ses_generate_check_model(g, e) && allocate(g, e)) {
        g->n_free_slots = g->max_sequences;
        for (int64_t i = 0; i < g->n_free_slots; i++) g->free_slot[i] = (int32_t)(g->n_free_slots - 1 - i);
        return g;
    }
    ses_generator_free(g);
    return NULL;
}

void ses_generator_set_prefill_tokens(ses_generator *g, int64_t tokens)
{
    g->prefill_tokens = tokens > 0 ? tokens : 1;
}

void ses_generator_allow_large_prompts(ses_generator *g) { g->allows_large = true; }

/* ---- the end of a prompt ---- */

/* Calls on_finish and frees p, which is in no list any more. */
static void finish_prompt(ses_generator *g, ses_prompt_state *p)
{
    ses_generated *r = p->error.code == SES_OK ? ses_prompt_state_finish(p, &p->error) : NULL;
    if (r) g->stats.tokens_generated += r->tokens_generated;
    g->stats.failed += !r, g->stats.cancelled += r && p->cancelled, g->stats.finished += r && !p->cancelled;
    p->on_finish(p->o.ctx, p->index, r, r ? NULL : &p->error);
    ses_prompt_state_free(g, p);
}

static void release_slots(ses_generator *g, const int32_t *slot, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        if (g->states) ses_slot_states_clear(g->states, slot[i]);
        if (g->cache) {
            ses_cache_trim(g->cache, slot[i], 0);
            (void)ses_cache_reserve(g->cache, slot[i], 0);
        }
        g->free_slot[g->n_free_slots++] = slot[i];
    }
}

/* Finishes the prompts in progress that are over; all: cancels the others. */
static void finish_active(ses_generator *g, bool all)
{
    int64_t left = 0, n = g->n_active;
    for (int64_t i = 0; i < n; i++) {
        ses_prompt_state *p = g->active[i];
        if (!all && !ses_prompt_state_is_over(p)) {
            g->active[left++] = p;
            continue;
        }
        for (int64_t k = 0; k < p->n_hyps; k++) release_slots(g, &p->hyp[k].slot, 1);
        g->cache_used -= p->cache_need;
        p->cancelled |= !ses_prompt_state_is_over(p);
        g->active[i] = NULL; /* callbacks may look for prompts */
        finish_prompt(g, p);
    }
    g->n_active = left;
}

static ses_prompt_state *remove_waiting(ses_generator *g, ses_prompt_state *before)
{
    ses_prompt_state *p = before ? before->next : g->first_waiting;
    if (before)
        before->next = p->next;
    else
        g->first_waiting = p->next;
    if (g->last_waiting == p) g->last_waiting = before;
    g->n_waiting--;
    g->n_waiting_cancelled -= p->cancelled;
    return p;
}

static void finish_cancelled_waiting(ses_generator *g)
{
    ses_prompt_state *before = NULL;
    while (g->n_waiting_cancelled) {
        ses_prompt_state *p = before ? before->next : g->first_waiting;
        if (p && p->cancelled)
            finish_prompt(g, remove_waiting(g, before));
        else
            before = p; /* NULL: a callback has cancelled an earlier one */
    }
}

void ses_generator_free(ses_generator *g)
{
    if (!g) return;
    g->is_closing = true;
    if (g->active) finish_active(g, true);
    while (g->first_waiting) {
        ses_prompt_state *p = remove_waiting(g, NULL);
        p->cancelled = true;
        finish_prompt(g, p);
    }
    ses_cache_free(g->cache);
    ses_slot_states_free(g->states);
    ses_tape_free(g->tape);
    ses_batch_builder_free(&g->in);
    ses_ints_free(&g->last);
    ses_free(g->active);
    ses_free(g->free_slot);
    ses_free(g->slot);
    ses_free(g->reorder_to);
    ses_free(g->reorder_from);
    ses_free(g->logits);
    ses_free(g->logits_row);
    ses_free(g->part);
    ses_free(g->score);
    ses_free(g->rank);
    ses_free(g->top);
    ses_free(g);
}

/* ---- add, cancel ---- */

static bool check_need(const ses_generator *g, const ses_prompt_state *p, ses_err *e)
{
    if (p->n_hyps > g->max_sequences)
        return ses_fail(e, SES_EARG,
                        "the prompt needs %lld sequences (beams or samples), expected at most %lld",
                        (long long)p->n_hyps, (long long)g->max_sequences);
    return g->allows_large || p->cache_need <= g->cache_tokens ||
           ses_fail(
               e, SES_EARG,
               "the prompt needs %lld tokens of KV cache, expected at most %lld: request fewer new tokens, "
               "beams or texts",
               (long long)p->cache_need, (long long)g->cache_tokens);
}

int64_t ses_generator_add(ses_generator *g, const ses_prompt *prompt, const ses_generate_options *o,
                          const ses_generator_callbacks *callbacks, ses_err *e)
{
    ses_generate_options own = *o;
    if (g->is_closing) {
        ses_fail(e, SES_EARG, "the generator is being freed");
        return -1;
    }
    own.on_token = callbacks->on_token, own.ctx = callbacks->ctx;
    ses_prompt_state *p = ses_prompt_state_new(g, prompt, &own, e);
    if (!p) return -1;
    if (!check_need(g, p, e)) {
        ses_prompt_state_free(g, p);
        return -1;
    }
    p->on_finish = callbacks->on_finish, p->index = g->next_index++;
    if (g->last_waiting)
        g->last_waiting->next = p;
    else
        g->first_waiting = p;
    g->last_waiting = p;
    g->n_waiting++;
    return p->index;
}

bool ses_generator_cancel(ses_generator *g, int64_t prompt)
{
    ses_prompt_state *p = NULL;
    for (int64_t i = 0; i < g->n_active && !p; i++)
        if (g->active[i] && g->active[i]->index == prompt) p = g->active[i];
    bool waiting = !p;
    for (ses_prompt_state *w = g->first_waiting; w && !p; w = w->next)
        if (w->index == prompt) p = w;
    if (!p || ses_prompt_state_is_over(p)) return p && p->cancelled;
    p->cancelled = true;
    g->n_waiting_cancelled += waiting;
    return true;
}

void ses_generator_cancel_all(ses_generator *g)
{
    for (int64_t i = 0; i < g->n_active; i++)
        if (g->active[i] && !ses_prompt_state_is_over(g->active[i])) g->active[i]->cancelled = true;
    for (ses_prompt_state *p = g->first_waiting; p; p = p->next) p->cancelled = true;
    g->n_waiting_cancelled = g->n_waiting;
}

/* ---- starting prompts ---- */

/* Enlarges the cache for the prompts that can start now: at least doubled, at most cache_tokens unless one
 * prompt needs more. */
static bool grow_cache(ses_generator *g, ses_err *e)
{
    int64_t want = g->cache_used, slots = g->n_free_slots, max = g->cache_tokens;
    for (const ses_prompt_state *p = g->first_waiting; p; p = p->next) {
        bool first = want == 0, fits = slots >= p->n_hyps && (first || want + p->cache_need <= max);
        if (!fits) break;
        want += p->cache_need, slots -= p->n_hyps;
    }
    if (!g->cache || want <= g->cache->self.rows) return true;
    if (want > max) max = want;
    int64_t doubled = 2 * g->cache->self.rows < max ? 2 * g->cache->self.rows : max;
    return ses_cache_grow_rows(g->cache, want > doubled ? want : doubled, e);
}

/* Takes n slots with room for `length` tokens each; false: the free memory has no ranges of this length. */
static bool take_slots(ses_generator *g, int32_t *slot, int64_t n, int64_t length)
{
    for (int64_t i = 0; i < n; i++) {
        slot[i] = g->free_slot[--g->n_free_slots];
        if (!g->cache || ses_cache_reserve(g->cache, slot[i], length)) continue;
        release_slots(g, slot, i + 1);
        return false;
    }
    return true;
}

/* Starts the first waiting prompt. Returns false if it must wait. */
static bool start_prompt(ses_generator *g)
{
    int32_t *slot = g->slot;
    ses_prompt_state *p = g->first_waiting;
    bool alone = !g->n_active;
    if (p->n_hyps > g->n_free_slots || (!alone && g->cache_used + p->cache_need > g->cache_tokens))
        return false;
    if (!take_slots(g, slot, p->n_hyps, p->max_length - 1)) return false;
    (void)remove_waiting(g, NULL);
    ses_err e = { 0 };
    if (!ses_prompt_state_begin(g, p, slot, &e)) {
        release_slots(g, slot, p->n_hyps);
        p->hyp = NULL, p->error = e;
        finish_prompt(g, p);
        return true;
    }
    g->cache_used += p->cache_need;
    g->active[g->n_active++] = p;
    return true;
}

static void start_prompts(ses_generator *g)
{
    ses_err e = { 0 };
    if (!g->first_waiting) return;
    if (!grow_cache(g, &e) && (g->fails_together || !g->n_active)) { /* else when others have finished */
        ses_prompt_state *p = remove_waiting(g, NULL);
        p->error = e;
        finish_prompt(g, p);
        return;
    }
    while (g->first_waiting && start_prompt(g)) continue;
}

/* ---- a step ---- */

/* Only a decoder with a KV cache reads a prompt in parts, and together with the last tokens of other
 * texts. */
static bool reads_in_parts(const ses_generator *g) { return g->cache && !g->has_encoder; }

/* Adds parts for prompts that have not been read; returns their tokens, about `max`. */
static int64_t add_prefill(ses_generator *g, int64_t *n, int64_t max)
{
    int64_t tokens = 0, scored = PASS_SCORED;
    for (int64_t i = 0; i < g->n_active && tokens < max; i++) {
        ses_prompt_state *p = g->active[i];
        int64_t left = p->prompt_len - p->n_read;
        if (!left || ses_prompt_state_is_over(p)) continue;
        if (reads_in_parts(g) && left > max - tokens) left = max - tokens;
        if (p->prompt_logprob && left > scored) left = scored;
        if (!left) continue;
        if (p->prompt_logprob) scored -= left;
        g->part[(*n)++] = (ses_pass_part){ p, left };
        tokens += left + (g->has_encoder ? p->source.n : 0);
    }
    return tokens;
}

static int64_t add_decode(ses_generator *g)
{
    int64_t n = 0;
    for (int64_t i = 0; i < g->n_active; i++) {
        ses_prompt_state *p = g->active[i];
        if (p->n_read == p->prompt_len && !ses_prompt_state_is_over(p))
            g->part[n++] = (ses_pass_part){ p, 0 };
    }
    return n;
}

bool ses_generator_step(ses_generator *g)
{
    int64_t left = g->prefill_tokens, tokens;
    finish_active(g, false);
    finish_cancelled_waiting(g);
    start_prompts(g);
    int64_t n = add_decode(g);
    g->stats.steps += g->n_active > 0;
    if (n && !reads_in_parts(g)) {
        ses_generator_run_parts(g, g->part, n);
        n = 0;
    }
    do {
        tokens = add_prefill(g, &n, left < PASS_PREFILL ? left : PASS_PREFILL);
        if (n) ses_generator_run_parts(g, g->part, n);
        left -= tokens, n = 0;
    } while (tokens && left > 0);
    finish_active(g, false);
    finish_cancelled_waiting(g);
    return g->n_active + g->n_waiting > 0;
}

/* ---- statistics ---- */

int64_t ses_generator_active(const ses_generator *g) { return g->n_active; }
int64_t ses_generator_waiting(const ses_generator *g) { return g->n_waiting; }

ses_generator_stats ses_generator_get_stats(const ses_generator *g)
{
    ses_generator_stats s = g->stats;
    s.active_sequences = g->max_sequences - g->n_free_slots, s.max_sequences = g->max_sequences;
    s.cache_used = g->cache_used, s.cache_tokens = g->cache_tokens;
    s.cache_bytes = g->cache ? ses_cache_bytes(g->cache) : 0;
    return s;
}
