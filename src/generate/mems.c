/* Generation with Transformer-XL memories (mems): each layer's past hidden states are its input in
 * position of a KV cache.
 *
 * Transformer-XL stores all tokens it has read, and reads the new ones. XLNet predicts a position: a
 * placeholder token after the text, masked for all others. As in transformers, the last token of the text
 * is not stored but read again, followed by the placeholder. */
#include "base/alloc.h"
#include "generate_impl.h"
#include "model/model_desc.h"

#include <stdio.h>
#include <string.h>

/* The memory of one text; slots may share it. */
typedef struct memory {
    int64_t refcount, rows;
    int32_t reread; /* XLNet: the token to read again; -1: none */
    ses_real x[];   /* [layers][rows, hidden] */
} memory;

struct ses_mems {
    const ses_model *model;
    int64_t slots, layers, hidden;
    memory **memory; /* [slots]; NULL: empty */
    ses_arena work;  /* memory of the current pass */
    ses_batch batch; /* the current pass */
};

ses_mems *ses_mems_new(const ses_model *m, int64_t slots, ses_err *e)
{
    const ses_config *c = &m->c;
    if (c->xl.bi_data || (c->xl.segment_recurrence && !c->xl.mem_len)) {
        ses_fail(e, SES_EUNSUPPORTED, "generation unsupported with %s in config.json",
                 c->xl.bi_data ? "\"bi_data\": true" : "\"mem_len\": 0");
        return NULL;
    }
    ses_mems *k = ses_alloc(sizeof *k, e);
    if (!k) return NULL;
    *k = (ses_mems){ .model = m, .slots = slots, .layers = ses_model_layer_count(m), .hidden = c->hidden };
    k->memory = ses_alloc_array((size_t)slots, sizeof(memory *), e);
    if (k->memory) return k;
    ses_mems_free(k);
    return NULL;
}

static void release(memory *t)
{
    if (t && !--t->refcount) ses_free(t);
}

void ses_mems_free(ses_mems *k)
{
    if (!k) return;
    for (int64_t s = 0; k->memory && s < k->slots; s++) release(k->memory[s]);
    ses_free(k->memory);
    ses_arena_free(&k->work);
    ses_free(k);
}

void ses_mems_clear_slot(ses_mems *k, int64_t slot)
{
    release(k->memory[slot]);
    k->memory[slot] = NULL;
}

bool ses_mems_reorder(ses_mems *k, int64_t n, const int32_t *to, const int32_t *from, ses_err *e)
{
    memory **moved = ses_alloc_array((size_t)n, sizeof(memory *), e);
    if (!moved) return false;
    for (int64_t i = 0; i < n; i++)
        if ((moved[i] = k->memory[from[i]])) moved[i]->refcount++;
    for (int64_t i = 0; i < n; i++) {
        release(k->memory[to[i]]);
        k->memory[to[i]] = moved[i];
    }
    ses_free(moved);
    return true;
}

/* ---- a pass ---- */

/* XLNet: predicts positions. */
static bool uses_placeholder(const ses_mems *k) { return k->model->c.xl.permutation_lm; }

/* The tokens of the pass: the one to read again, the new ones, the placeholder. */
static bool add_tokens(ses_mems *k, const ses_batch *b, ses_err *e)
{
    size_t max = (size_t)b->tokens + 2 * (size_t)b->seqs, n = 0;
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    int32_t *id = ses_arena_array(&k->work, max, sizeof *id, e);
    if (!cu || !id) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        const memory *t = k->memory[b->slots[s]];
        if (t && t->reread >= 0) id[n++] = t->reread;
        for (int32_t i = b->cu_seqlens[s]; i < b->cu_seqlens[s + 1]; i++) id[n++] = b->ids[i];
        if (uses_placeholder(k)) id[n++] = 0;
        cu[s + 1] = (int32_t)n;
    }
    k->batch =
        (ses_batch){ .seqs = b->seqs, .tokens = (int64_t)n, .cu_seqlens = cu, .ids = id, .slots = b->slots };
    return true;
}

/* Each sequence predicts its last position, which is masked for all its tokens. */
static bool add_predictions(ses_mems *k, ses_err *e)
{
    ses_batch *b = &k->batch;
    size_t pairs = 0, at = 0;
    for (int64_t s = 0; s < b->seqs; s++) {
        size_t len = (size_t)(b->cu_seqlens[s + 1] - b->cu_seqlens[s]);
        pairs += len * len;
    }
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    int32_t *position = ses_arena_array(&k->work, (size_t)b->seqs, sizeof *position, e);
    uint8_t *mask = ses_arena_array(&k->work, pairs, 1, e);
    if (!cu || !position || !mask) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        int32_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        cu[s + 1] = (int32_t)s + 1;
        position[s] = len - 1;
        for (int32_t i = 0; i < len; i++, at += (size_t)len) mask[at + (size_t)len - 1] = 1;
    }
    b->target_cu_seqlens = cu, b->predict_positions = position, b->perm_mask = mask;
    return true;
}

/* Concatenates the memories of the sequences; none if all are empty. */
static bool add_memories(ses_mems *k, ses_err *e)
{
    ses_batch *b = &k->batch;
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    if (!cu) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        const memory *t = k->memory[b->slots[s]];
        cu[s + 1] = cu[s] + (t ? (int32_t)t->rows : 0);
    }
    size_t all = (size_t)cu[b->seqs], C = (size_t)k->hidden;
    if (!all) return true;
    ses_real *x = ses_arena_array(&k->work, (size_t)k->layers * all * C, sizeof *x, e);
    for (int64_t l = 0; x && l < k->layers; l++)
        for (int64_t s = 0; s < b->seqs; s++) {
            size_t n = (size_t)(cu[s + 1] - cu[s]) * C;
            if (n)
                memcpy(x + ((size_t)l * all + (size_t)cu[s]) * C, k->memory[b->slots[s]]->x + (size_t)l * n,
                       n * sizeof *x);
        }
    b->mem_cu_seqlens = cu, b->mems = x;
    return x != NULL;
}

const ses_batch *ses_mems_begin_pass(ses_mems *k, const ses_batch *b, ses_err *e)
{
    ses_arena_reset(&k->work);
    bool ok = add_tokens(k, b, e) && (!uses_placeholder(k) || add_predictions(k, e)) && add_memories(k, e);
    return ok ? &k->batch : NULL;
}

/* Rows of a sequence in the mems outputs: see ses_xl_output_mems. */
static int64_t output_rows(const ses_mems *k, int64_t s)
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
static bool store(ses_mems *k, int64_t s, const ses_real *const *mem, int64_t first, int64_t rows, ses_err *e)
{
    const ses_batch *b = &k->batch;
    enum { NOT_STORED = 2 }; /* the last token and the placeholder */
    int64_t n = !uses_placeholder(k) ? rows : rows > NOT_STORED ? rows - NOT_STORED : 0;
    size_t each = (size_t)(n * k->hidden), bytes;
    if (!ses_mul_size(each, (size_t)k->layers * sizeof(ses_real), &bytes) ||
        !ses_add_size(bytes, sizeof(memory), &bytes))
        return ses_fail(e, SES_ENOMEM, "memory of %lld tokens is too large", (long long)n);
    memory *t = ses_alloc(bytes, e);
    if (!t) return false;
    t->refcount = 1, t->rows = n;
    t->reread = uses_placeholder(k) ? b->ids[b->cu_seqlens[s + 1] - NOT_STORED] : -1;
    for (int64_t l = 0; each && l < k->layers; l++)
        memcpy(t->x + (size_t)l * each, mem[l] + first * k->hidden, each * sizeof *t->x);
    release(k->memory[b->slots[s]]);
    k->memory[b->slots[s]] = t;
    return true;
}

bool ses_mems_end_pass(ses_mems *k, ses_tape *tape, const ses_outputs *out, ses_err *e)
{
    const ses_batch *b = &k->batch;
    int64_t all = 0, first = 0;
    for (int64_t s = 0; s < b->seqs; s++) all += output_rows(k, s);
    ses_real **mem = ses_arena_array(&k->work, (size_t)k->layers, sizeof(ses_real *), e);
    for (int64_t l = 0; mem && l < k->layers; l++) {
        char name[32];
        snprintf(name, sizeof name, "mems.%d", (int)l);
        const ses_output *found = ses_outputs_find(out, name);
        const ses_tensor *x = found ? found->tensor : NULL;
        if (!x || ses_count(x) != all * k->hidden)
            return ses_fail(e, SES_EARG, "the model has no output mems.%d", (int)l);
        mem[l] = ses_arena_array(&k->work, (size_t)(all * k->hidden), sizeof **mem, e);
        if (!mem[l]) return false;
        if (!ses_tape_read(tape, x, mem[l])) return ses_tape_ok(tape, e);
    }
    for (int64_t s = 0; mem && s < b->seqs; s++) {
        int64_t rows = output_rows(k, s);
        if (!store(k, s, (const ses_real *const *)mem, first, rows, e)) return false;
        first += rows;
    }
    return mem != NULL;
}
