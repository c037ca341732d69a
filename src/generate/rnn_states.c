/* Generation with recurrent layers: a slot holds their state after its last token. In an encoder-decoder it
 * also holds the encoder's states of its source; slots copied from each other share them. */
#include "model/model_desc.h"
#include "slot_states.h"

#include <string.h>

typedef struct rnn_state {
    ses_slot_state base; /* shared: the source; NULL: a model without encoder */
    ses_real x[];        /* [ses_model_state_size()] */
} rnn_state;

typedef struct source_state {
    ses_slot_state base;
    int64_t rows;
    ses_real x[]; /* [rows, hidden] */
} source_state;

static bool applies(const ses_model *m) { return ses_model_state_size(m) > 0; }

static const source_state *source_of(const ses_slot_states *s, int64_t seq)
{
    return (const source_state *)(const void *)s->state[s->batch.slots[seq]]->shared;
}

/* The states of the slots; zeros: empty. None if all are empty. */
static bool add_states(ses_slot_states *s, ses_err *e)
{
    ses_batch *b = &s->batch;
    size_t size = (size_t)ses_model_state_size(s->model), used = 0;
    for (int64_t i = 0; i < b->seqs; i++) used += s->state[b->slots[i]] != NULL;
    if (!used) return true;
    ses_real *x = ses_arena_array(&s->work, (size_t)b->seqs * size, sizeof *x, e);
    for (int64_t i = 0; x && i < b->seqs; i++) {
        const rnn_state *t = (const rnn_state *)(const void *)s->state[b->slots[i]];
        if (t) memcpy(x + (size_t)i * size, t->x, size * sizeof *x);
    }
    b->rnn_state = x;
    return x != NULL;
}

/* The encoder's states of the sources, concatenated. */
static bool add_sources(ses_slot_states *s, ses_err *e)
{
    ses_batch *b = &s->batch;
    size_t hidden = (size_t)s->model->c.hidden;
    int32_t *cu = ses_arena_array(&s->work, (size_t)b->seqs + 1, sizeof *cu, e);
    if (!cu) return false;
    for (int64_t i = 0; i < b->seqs; i++) {
        if (!s->state[b->slots[i]] || !s->state[b->slots[i]]->shared)
            return ses_fail(e, SES_EARG, "slot %d has no source", (int)b->slots[i]);
        cu[i + 1] = cu[i] + (int32_t)source_of(s, i)->rows;
    }
    ses_real *x = ses_arena_array(&s->work, (size_t)cu[b->seqs] * hidden, sizeof *x, e);
    for (int64_t i = 0; x && i < b->seqs; i++)
        memcpy(x + (size_t)cu[i] * hidden, source_of(s, i)->x,
               (size_t)source_of(s, i)->rows * hidden * sizeof *x);
    b->tokens = cu[b->seqs], b->cu_seqlens = cu, b->encoder_states = x;
    return x != NULL;
}

static bool begin_pass(ses_slot_states *s, const ses_batch *new_tokens, ses_err *e)
{
    s->batch = *new_tokens;
    return add_states(s, e) && (new_tokens->ids || add_sources(s, e));
}

/* The source of sequence i: its rows of the encoder's output, or the one it had. */
static bool make_source(const ses_slot_states *s, int64_t i, const ses_real *encoded, ses_slot_state **to,
                        ses_err *e)
{
    const ses_batch *b = &s->batch;
    *to = NULL;
    if (!b->target_cu_seqlens) return true;
    if (!encoded) {
        *to = ses_slot_state_ref(s->state[b->slots[i]]->shared);
        return true;
    }
    int64_t hidden = s->model->c.hidden, rows = b->cu_seqlens[i + 1] - b->cu_seqlens[i];
    source_state *t = ses_slot_state_new(sizeof *t, (size_t)(rows * hidden), e);
    if (!t) return false;
    t->rows = rows;
    memcpy(t->x, encoded + b->cu_seqlens[i] * hidden, (size_t)(rows * hidden) * sizeof *t->x);
    *to = &t->base;
    return true;
}

static bool store(ses_slot_states *s, int64_t i, const ses_real *state, const ses_real *encoded, ses_err *e)
{
    size_t size = (size_t)ses_model_state_size(s->model);
    ses_slot_state *source;
    if (!make_source(s, i, encoded, &source, e)) return false;
    rnn_state *t = ses_slot_state_new(sizeof *t, size, e);
    if (!t) {
        ses_slot_state_release(source);
        return false;
    }
    t->base.shared = source;
    memcpy(t->x, state + (size_t)i * size, size * sizeof *t->x);
    ses_slot_states_put(s, s->batch.slots[i], &t->base);
    return true;
}

static bool end_pass(ses_slot_states *s, ses_tape *tape, const ses_outputs *out, ses_err *e)
{
    const ses_batch *b = &s->batch;
    const ses_real *encoded = NULL,
                   *state = ses_slot_states_read(s, tape, out, "rnn_state",
                                                 b->seqs * ses_model_state_size(s->model), e);
    if (!state) return false;
    if (b->target_cu_seqlens && b->ids) {
        encoded = ses_slot_states_read(s, tape, out, "encoder_last_hidden_state",
                                       b->tokens * s->model->c.hidden, e);
        if (!encoded) return false;
    }
    for (int64_t i = 0; i < b->seqs; i++)
        if (!store(s, i, state, encoded, e)) return false;
    return true;
}

const ses_slot_kind ses_slot_kind_rnn = {
    .applies = applies, .rnn_state = true, .begin_pass = begin_pass, .end_pass = end_pass
};
