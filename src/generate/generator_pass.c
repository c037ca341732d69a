/* A forward pass of a generator: reads prompt tokens and the last tokens of texts in progress, and makes a
 * step of the decoding strategy of each prompt. An error concerns the prompt in which it occurs. */
#include "base/alloc.h"
#include "generate_impl.h"

#include <string.h>

/* ---- input ---- */

/* Sequences of a pass; one allocation, at cu_seqlens. */
typedef struct pass {
    int32_t *cu_seqlens, *id;               /* input of the decoder */
    int32_t *source_cu_seqlens, *source_id; /* input of the encoder */
    int32_t *slot, *rows;                   /* [n]: slot, and number of last tokens whose logits are needed */
    int32_t *row;                           /* [n_rows]: these tokens */
    int64_t n, tokens, source_tokens, n_rows;
} pass;

static bool pass_new(pass *x, int64_t seqs, int64_t tokens, int64_t source_tokens, int64_t n_rows, ses_err *e)
{
    size_t total = 4 * (size_t)seqs + 2 + (size_t)tokens + (size_t)source_tokens + (size_t)n_rows;
    *x = (pass){ .cu_seqlens = ses_alloc_array(total, sizeof *x->cu_seqlens, e) };
    if (!x->cu_seqlens) return false;
    x->source_cu_seqlens = x->cu_seqlens + seqs + 1;
    x->slot = x->source_cu_seqlens + seqs + 1;
    x->rows = x->slot + seqs;
    x->row = x->rows + seqs;
    x->id = x->row + n_rows;
    x->source_id = x->id + tokens;
    return true;
}

static void pass_add(pass *x, int32_t slot, const int32_t *id, int64_t n, ses_ids source, int64_t rows)
{
    memcpy(x->id + x->tokens, id, (size_t)n * sizeof *id);
    if (source.n) memcpy(x->source_id + x->source_tokens, source.id, (size_t)source.n * sizeof *source.id);
    x->slot[x->n] = slot, x->rows[x->n++] = (int32_t)rows;
    x->cu_seqlens[x->n] = (int32_t)(x->tokens += n);
    x->source_cu_seqlens[x->n] = (int32_t)(x->source_tokens += source.n);
    x->n_rows += rows;
}

static ses_batch pass_batch(const ses_generator *g, const pass *x)
{
    ses_batch b = { .seqs = x->n, .slots = x->slot, .cache = g->cache };
    if (!g->has_encoder) {
        b.tokens = x->tokens, b.cu_seqlens = x->cu_seqlens, b.ids = x->id;
        return b;
    }
    b.target_cu_seqlens = x->cu_seqlens, b.target_ids = x->id;
    if (x->source_tokens)
        b.tokens = x->source_tokens, b.cu_seqlens = x->source_cu_seqlens, b.ids = x->source_id;
    return b;
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

static void add_part(const ses_generator *g, pass *x, const ses_pass_part *a)
{
    const ses_prompt_state *p = a->p;
    if (a->n) /* the other hypotheses get copies of the first one's slot */
        pass_add(x, p->hyp[0].slot, p->first.id + p->n_read, a->n, part_source(g, a), count_rows(a));
    for (int64_t i = 0; !a->n && i < p->n_hyps; i++) {
        const ses_hypothesis *h = &p->hyp[i];
        if (!h->done) pass_add(x, h->slot, h->t.id + h->n - 1, 1, (ses_ids){ NULL, 0 }, 1);
    }
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
static bool forward(ses_generator *g, pass *x, ses_err *e)
{
    ses_outputs out;
    ses_batch batch = pass_batch(g, x);
    const ses_batch *b = g->states ? ses_slot_states_begin_pass(g->states, &batch, e) : &batch;
    if (!b || !reserve_logits(g, x->n_rows, e)) return false;
    const int32_t *cu_seqlens = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    int64_t n = 0;
    for (int64_t s = 0; s < b->seqs; s++)
        for (int32_t i = x->rows[s]; i > 0; i--) x->row[n++] = cu_seqlens[s + 1] - i;
    ses_output_request request = { .logits = true, .rows = x->row, .n_rows = n };
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
    int64_t seqs = 0, tokens = 0, source_tokens = 0, rows = 0;
    pass x;
    for (int64_t i = 0; i < n; i++) {
        int64_t part_rows = count_rows(&part[i]);
        seqs += part[i].n ? 1 : part_rows, tokens += part[i].n ? part[i].n : part_rows, rows += part_rows;
        source_tokens += part_source(g, &part[i]).n;
    }
    if (!pass_new(&x, seqs, tokens, source_tokens, rows, e)) return false;
    for (int64_t i = 0; i < n; i++) add_part(g, &x, &part[i]);
    bool ok = forward(g, &x, e);
    ses_free(x.cu_seqlens);
    return ok;
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
