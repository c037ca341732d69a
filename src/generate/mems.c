/* Generation with Transformer-XL memories (mems): each layer's past hidden states are its input in
 * position of a KV cache.
 *
 * Transformer-XL stores all tokens it has read, and reads the new ones. XLNet predicts a position: a
 * placeholder token after the text, masked for all others. As in transformers, the last token of the text
 * is not stored but read again, followed by the placeholder. */
#include "model/model_desc.h"
#include "slot_states.h"

#include <stdio.h>
#include <string.h>

/* The memory of one text. */
typedef struct memory {
    ses_slot_state base;
    int64_t rows;
    int32_t reread; /* XLNet: the token to read again; -1: none */
    ses_real x[];   /* [layers][rows, hidden] */
} memory;

static bool applies(const ses_model *m) { return m->c.xl.permutation_lm || m->c.xl.segment_recurrence; }

static bool check(const ses_model *m, ses_err *e)
{
    const ses_config *c = &m->c;
    if (!c->xl.bi_data && (!c->xl.segment_recurrence || c->xl.mem_len)) return true;
    return ses_fail(e, SES_EUNSUPPORTED, "generation unsupported with %s in config.json",
                    c->xl.bi_data ? "\"bi_data\": true" : "\"mem_len\": 0");
}

/* The memory of a sequence of the pass; NULL: empty. */
static const memory *memory_of(const ses_slot_states *k, int32_t slot)
{
    return (const memory *)(const void *)k->state[slot];
}

/* ---- a pass ---- */

/* XLNet: predicts positions. */
static bool uses_placeholder(const ses_slot_states *k) { return k->model->c.xl.permutation_lm; }

/* The tokens of the pass: the one to read again, the new ones, the placeholder. The placeholder's position is
 * predicted, and masked for all tokens of its sequence. */
static bool add_tokens(ses_slot_states *k, const ses_batch *b, ses_err *e)
{
    ses_batch_builder *in = &k->in;
    ses_batch_builder_clear(in);
    for (int64_t s = 0; s < b->seqs; s++) {
        const memory *t = memory_of(k, b->slots[s]);
        size_t from = in->ids.n;
        if (t && t->reread >= 0 && !ses_ints_push(&in->ids, t->reread, e)) return false;
        if (!ses_ints_append(&in->ids, b->ids + b->cu_seqlens[s], b->cu_seqlens[s + 1] - b->cu_seqlens[s],
                             e) ||
            (uses_placeholder(k) && !ses_ints_push(&in->ids, 0, e)) || !ses_batch_builder_end_sequence(in, e))
            return false;
        if (!uses_placeholder(k)) continue;
        size_t n = in->ids.n - from;
        uint8_t *mask = ses_batch_builder_add_perm(in, (int64_t)(n * n), e);
        for (size_t i = 0; mask && i < n; i++) mask[i * n + n - 1] = 1;
        if (!mask || !ses_ints_push(&in->predict_positions, (int32_t)n - 1, e) ||
            !ses_batch_builder_end_target(in, e))
            return false;
    }
    k->batch = ses_batch_builder_batch(in);
    k->batch.slots = b->slots;
    return true;
}

/* Concatenates the memories of the sequences; none if all are empty. */
static bool add_memories(ses_slot_states *k, ses_err *e)
{
    ses_batch *b = &k->batch;
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    if (!cu) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        const memory *t = memory_of(k, b->slots[s]);
        cu[s + 1] = cu[s] + (t ? (int32_t)t->rows : 0);
    }
    size_t all = (size_t)cu[b->seqs], C = (size_t)k->model->c.hidden,
           layers = (size_t)ses_model_layer_count(k->model);
    if (!all) return true;
    ses_real *x = ses_arena_array(&k->work, layers * all * C, sizeof *x, e);
    for (size_t l = 0; x && l < layers; l++)
        for (int64_t s = 0; s < b->seqs; s++) {
            size_t n = (size_t)(cu[s + 1] - cu[s]) * C;
            if (n)
                memcpy(x + (l * all + (size_t)cu[s]) * C, memory_of(k, b->slots[s])->x + l * n,
                       n * sizeof *x);
        }
    b->mem_cu_seqlens = cu, b->mems = x;
    return x != NULL;
}

static bool begin_pass(ses_slot_states *k, const ses_batch *b, ses_err *e)
{
    return add_tokens(k, b, e) && add_memories(k, e);
}

/* Rows of a sequence in the mems outputs: see ses_xl_output_mems. */
static int64_t output_rows(const ses_slot_states *k, int64_t s)
{
    const ses_config *c = &k->model->c;
    const ses_batch *b = &k->batch;
    int64_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
    int64_t before = b->mem_cu_seqlens     ? b->mem_cu_seqlens[s + 1] - b->mem_cu_seqlens[s]
                     : uses_placeholder(k) ? 0
                                           : c->xl.mem_len;
    if (c->xl.reuse_len && c->xl.reuse_len < len) len = c->xl.reuse_len;
    return c->xl.mem_len && before + len > c->xl.mem_len ? c->xl.mem_len : before + len;
}

/* Stores `rows` rows of the mems outputs, from `first` on, as the memory of sequence s. */
static bool store(ses_slot_states *k, int64_t s, const ses_real *const *mem, int64_t first, int64_t rows,
                  ses_err *e)
{
    const ses_batch *b = &k->batch;
    enum { NOT_STORED = 2 }; /* the last token and the placeholder */
    int64_t n = !uses_placeholder(k) ? rows : rows > NOT_STORED ? rows - NOT_STORED : 0;
    int64_t hidden = k->model->c.hidden, layers = ses_model_layer_count(k->model), each = n * hidden;
    memory *t = ses_slot_state_new(sizeof *t, (size_t)(each * layers), e);
    if (!t) return false;
    t->rows = n;
    t->reread = uses_placeholder(k) ? b->ids[b->cu_seqlens[s + 1] - NOT_STORED] : -1;
    for (int64_t l = 0; each && l < layers; l++)
        memcpy(t->x + l * each, mem[l] + first * hidden, (size_t)each * sizeof *t->x);
    ses_slot_states_put(k, b->slots[s], &t->base);
    return true;
}

static bool end_pass(ses_slot_states *k, ses_tape *tape, const ses_outputs *out, ses_err *e)
{
    const ses_batch *b = &k->batch;
    int64_t all = 0, first = 0, layers = ses_model_layer_count(k->model);
    for (int64_t s = 0; s < b->seqs; s++) all += output_rows(k, s);
    const ses_real **mem = ses_arena_array(&k->work, (size_t)layers, sizeof(ses_real *), e);
    for (int64_t l = 0; mem && l < layers; l++) {
        char name[32];
        snprintf(name, sizeof name, "mems.%d", (int)l);
        mem[l] = ses_slot_states_read(k, tape, out, name, all * k->model->c.hidden, e);
        if (!mem[l]) return false;
    }
    for (int64_t s = 0; mem && s < b->seqs; s++) {
        int64_t rows = output_rows(k, s);
        if (!store(k, s, mem, first, rows, e)) return false;
        first += rows;
    }
    return mem != NULL;
}

const ses_slot_kind ses_slot_kind_mems = {
    .applies = applies, .check = check, .mems = true, .begin_pass = begin_pass, .end_pass = end_pass
};
