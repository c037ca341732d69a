/* A forward pass of a generator: reads prompt tokens and the last tokens of texts in progress, and makes a
 * step of the decoding strategy of each prompt. An error concerns the prompt in which it occurs. */
#include "base/alloc.h"
#include "generate_impl.h"

#include <string.h>

/* ---- input ---- */

/* A sequence: tokens of the decoder, the input of the encoder. */
static bool add_sequence(ses_generator *g, int32_t slot, ses_ids id, ses_ids source, int64_t rows, ses_err *e)
{
    ses_batch_builder *b = &g->in;
    ses_ints *ids = g->has_encoder ? &b->target_ids : &b->ids;
    return ses_ints_append(ids, id.id, id.n, e) && ses_ints_append(&b->ids, source.id, source.n, e) &&
           ses_batch_builder_end_sequence(b, e) && (!g->has_encoder || ses_batch_builder_end_target(b, e)) &&
           ses_ints_push(&b->slots, slot, e) && ses_ints_push(&g->last, (int32_t)rows, e);
}

int64_t ses_prompt_state_unfinished(const ses_prompt_state *p)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->n_hyps; i++) n += !p->hyp[i].done;
    return n;
}

/* Rows of logits that a part needs. */
static int64_t count_rows(const ses_pass_part *a)
{
    return !a->n ? ses_prompt_state_unfinished(a->p) : a->p->prompt_logprob ? a->n : 1;
}

static ses_ids part_source(const ses_generator *g, const ses_pass_part *a)
{
    return g->has_encoder && a->n ? a->p->source : (ses_ids){ NULL, 0 };
}

static bool add_part(ses_generator *g, const ses_pass_part *a, ses_err *e)
{
    const ses_prompt_state *p = a->p;
    bool ok = true;
    if (a->n) /* the other hypotheses get copies of the first one's slot */
        return add_sequence(g, p->hyp[0].slot, (ses_ids){ p->first.id + p->n_read, a->n }, part_source(g, a),
                            count_rows(a), e);
    for (int64_t i = 0; ok && i < p->n_hyps; i++) {
        const ses_hypothesis *h = &p->hyp[i];
        ok = h->done ||
             add_sequence(g, h->slot, (ses_ids){ h->t.id + h->n - 1, 1 }, (ses_ids){ NULL, 0 }, 1, e);
    }
    return ok;
}

/* ---- the model ---- */

static bool reserve_logits(ses_generator *g, int64_t rows, ses_err *e)
{
    size_t n;
    if (rows <= g->logits_capacity) return true;
    if (!ses_mul_size((size_t)rows, (size_t)g->vocab_size, &n))
        return ses_fail(e, SES_ENOMEM, "too many rows of logits");
    ses_real *logits = ses_realloc_array(g->logits, n, sizeof *logits, e);
    if (logits) g->logits = logits, g->logits_capacity = rows;
    return logits != NULL;
}

/* Runs the model; g->logits gets the requested rows. */
static bool forward(ses_generator *g, ses_err *e)
{
    ses_outputs out;
    ses_batch batch = ses_batch_builder_batch(&g->in);
    batch.cache = g->cache;
    const ses_batch *b = g->states ? ses_slot_states_begin_pass(g->states, &batch, e) : &batch;
    if (!b) return false;
    const int32_t *cu_seqlens = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    for (int64_t s = 0; s < b->seqs; s++)
        for (int32_t i = g->last.p[s]; i > 0; i--)
            if (!ses_ints_push(&g->in.rows, cu_seqlens[s + 1] - i, e)) return false;
    int64_t n = (int64_t)g->in.rows.n;
    if (!reserve_logits(g, n, e)) return false;
    ses_output_request request = { .logits = true, .rows = g->in.rows.p, .n_rows = n };
    if (g->states) request.mems = g->states->kind->mems, request.rnn_state = g->states->kind->rnn_state;
    ses_tape_reset(g->tape, NULL);
    g->stats.tokens_read += cu_seqlens[b->seqs] + (b->target_cu_seqlens && b->ids ? b->tokens : 0);
    if (!ses_model_forward(g->model, g->tape, b, &request, &out, e)) return false;
    const ses_output *logits = ses_outputs_find(&out, g->logits_name);
    const ses_tensor *y = logits && logits->axis == SES_PER_ROW ? logits->tensor : NULL;
    if (!y || ses_count(y) != n * g->vocab_size)
        return ses_fail(e, SES_EARG, "the model has no logits over its vocabulary");
    if (!ses_tape_read(g->tape, y, g->logits)) return ses_tape_ok(g->tape, e);
    return !g->states || ses_slot_states_end_pass(g->states, g->tape, &out, e);
}

static bool run_pass(ses_generator *g, const ses_pass_part *part, int64_t n, ses_err *e)
{
    ses_batch_builder_clear(&g->in);
    g->last.n = 0;
    for (int64_t i = 0; i < n; i++)
        if (!add_part(g, &part[i], e)) return false;
    return forward(g, e);
}

/* ---- copies of slots ---- */

void ses_generate_reorder_cache(ses_generator *g, ses_prompt_state *p, int32_t to, int32_t from)
{
    if (to == from) return;
    g->reorder_to[g->n_reorder] = to, g->reorder_from[g->n_reorder++] = from;
    p->reordered = true;
}

/* Copies all scheduled slots at once. */
static void apply_reorder(ses_generator *g)
{
    int64_t n = g->n_reorder;
    ses_err e = { 0 };
    g->n_reorder = 0;
    if (!n) return;
    bool ok = g->states ? ses_slot_states_reorder(g->states, n, g->reorder_to, g->reorder_from, &e)
                        : ses_cache_reorder(g->cache, n, g->reorder_to, g->reorder_from, &e);
    for (int64_t i = 0; i < g->n_active; i++) {
        ses_prompt_state *p = g->active[i];
        if (p->reordered && !ok) p->error = e;
        p->reordered = false;
    }
}

/* ---- steps of the decoding strategies ---- */

/* Uses the logits of prompt tokens: scores the prompt; after its last token, copies the slot for the other
 * hypotheses. */
static bool end_prefill(ses_generator *g, const ses_pass_part *a, const ses_real *logits, ses_err *e)
{
    ses_prompt_state *p = a->p;
    for (int64_t i = 0; p->prompt_logprob && i < a->n && p->n_read + i + 1 < p->prompt_len; i++)
        if (!ses_generate_score_prompt(g, p, p->n_read + i + 1, logits + i * g->vocab_size, e)) return false;
    p->n_read += a->n;
    for (int64_t k = 1; p->n_read == p->prompt_len && k < p->n_hyps; k++)
        ses_generate_reorder_cache(g, p, p->hyp[k].slot, p->hyp[0].slot);
    return true;
}

/* One step of a prompt's hypotheses. logits: the part's rows. */
static bool step(ses_generator *g, const ses_pass_part *a, const ses_real *logits, ses_err *e)
{
    ses_prompt_state *p = a->p;
    int64_t at = a->n ? count_rows(a) - 1 : 0;
    for (int64_t i = 0; i < p->n_hyps; i++) {
        g->logits_row[i] = logits + at * g->vocab_size;
        if (!a->n && !p->hyp[i].done) at++;
    }
    g->stats.sequences += ses_prompt_state_unfinished(p);
    return p->decoding->step(g, p, g->logits_row, e);
}

/* Hands the logits of a pass to its prompts. A callback may cancel any prompt. */
static void use_logits(ses_generator *g, const ses_pass_part *part, int64_t n)
{
    const ses_real *logits = g->logits;
    for (int64_t i = 0; i < n; i++) {
        int64_t rows = count_rows(&part[i]);
        ses_prompt_state *p = part[i].p;
        if (part[i].n) (void)end_prefill(g, &part[i], logits, &p->error);
        logits += rows * g->vocab_size;
    }
    apply_reorder(g);
    logits = g->logits;
    for (int64_t i = 0; i < n; i++) {
        int64_t rows = count_rows(&part[i]); /* before the step changes it */
        ses_prompt_state *p = part[i].p;
        if (p->n_read == p->prompt_len && !ses_prompt_state_is_over(p))
            (void)step(g, &part[i], logits, &p->error);
        logits += rows * g->vocab_size;
    }
    apply_reorder(g);
}

/* The cache is unchanged after a failed pass, so its prompts run again, each alone; other states may have
 * changed. */
void ses_generator_run_parts(ses_generator *g, const ses_pass_part *part, int64_t n)
{
    ses_err e = { 0 };
    if (run_pass(g, part, n, &e)) {
        use_logits(g, part, n);
    } else if (n == 1 || g->states || g->fails_together) {
        for (int64_t i = 0; i < n; i++) part[i].p->error = e;
    } else {
        for (int64_t i = 0; i < n; i++) ses_generator_run_parts(g, &part[i], 1);
    }
}
