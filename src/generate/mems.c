/* How models that remember go on with a text: what each layer saw of the tokens before is given back to them,
 * as mems, in place of a cache of keys and values.
 *
 * A decoder (Transformer-XL) remembers all it has read, and reads what is new. A model that reads in any
 * order (XLNet) is asked about a place: a token behind the text that nobody sees stands for it. As the
 * reference does it, the text's last token is not remembered but read again, with the new one beside it. */
#include "generate_impl.h"

#include "base/alloc.h"
#include "model/model_desc.h"

#include <stdio.h>
#include <string.h>

typedef struct trace { /* what is remembered of a text; slots share it */
    int64_t users, rows;
    int32_t last; /* of a model that is asked about places: to be read again; -1: none */
    ses_real x[]; /* [layers][rows, hidden] */
} trace;

struct ses_mems {
    const ses_model *model;
    int64_t slots, layers, hidden;
    trace **trace;  /* [slots]; NULL: nothing was read */
    ses_arena work; /* of the pass in hand */
    ses_batch batch;
};

ses_mems *ses_mems_new(const ses_model *m, int64_t slots, ses_err *e)
{
    const ses_config *c = &m->c;
    if (c->xl.bi_data || (c->xl.segment_recurrence && !c->xl.mem_len)) {
        ses_fail(e, SES_EUNSUPPORTED, "a model whose config says %s writes no texts",
                 c->xl.bi_data ? "\"bi_data\": true" : "\"mem_len\": 0");
        return NULL;
    }
    ses_mems *k = ses_alloc(sizeof *k, e);
    if (!k) return NULL;
    *k = (ses_mems){ .model = m, .slots = slots, .layers = ses_model_layer_count(m), .hidden = c->hidden };
    k->trace = ses_alloc_array((size_t)slots, sizeof(trace *), e);
    if (k->trace) return k;
    ses_mems_free(k);
    return NULL;
}

static void leave(trace *t)
{
    if (t && !--t->users) ses_free(t);
}

void ses_mems_free(ses_mems *k)
{
    if (!k) return;
    for (int64_t s = 0; k->trace && s < k->slots; s++) leave(k->trace[s]);
    ses_free(k->trace);
    ses_arena_free(&k->work);
    ses_free(k);
}

void ses_mems_clear_slot(ses_mems *k, int64_t slot)
{
    leave(k->trace[slot]);
    k->trace[slot] = NULL;
}

bool ses_mems_reorder(ses_mems *k, int64_t n, const int32_t *to, const int32_t *from, ses_err *e)
{
    trace **now = ses_alloc_array((size_t)n, sizeof(trace *), e);
    if (!now) return false;
    for (int64_t i = 0; i < n; i++)
        if ((now[i] = k->trace[from[i]])) now[i]->users++;
    for (int64_t i = 0; i < n; i++) {
        leave(k->trace[to[i]]);
        k->trace[to[i]] = now[i];
    }
    ses_free(now);
    return true;
}

/* ---- a pass ---- */

static bool asks(const ses_mems *k) { return k->model->c.xl.permutation_lm; }

/* The tokens to be read: the one that is read again, the new ones, the place that is asked about. */
static bool lay_tokens(ses_mems *k, const ses_batch *b, ses_err *e)
{
    size_t most = (size_t)b->tokens + 2 * (size_t)b->seqs, n = 0;
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    int32_t *id = ses_arena_array(&k->work, most, sizeof *id, e);
    if (!cu || !id) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        const trace *t = k->trace[b->slots[s]];
        if (t && t->last >= 0) id[n++] = t->last;
        for (int32_t i = b->cu_seqlens[s]; i < b->cu_seqlens[s + 1]; i++) id[n++] = b->ids[i];
        if (asks(k)) id[n++] = 0;
        cu[s + 1] = (int32_t)n;
    }
    k->batch =
        (ses_batch){ .seqs = b->seqs, .tokens = (int64_t)n, .cu_seqlens = cu, .ids = id, .slots = b->slots };
    return true;
}

/* Every sequence is asked about its last place, which no token of it sees. */
static bool lay_places(ses_mems *k, ses_err *e)
{
    ses_batch *b = &k->batch;
    size_t pairs = 0, at = 0;
    for (int64_t s = 0; s < b->seqs; s++) {
        size_t len = (size_t)(b->cu_seqlens[s + 1] - b->cu_seqlens[s]);
        pairs += len * len;
    }
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    int32_t *place = ses_arena_array(&k->work, (size_t)b->seqs, sizeof *place, e);
    uint8_t *mask = ses_arena_array(&k->work, pairs, 1, e);
    if (!cu || !place || !mask) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        int32_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        cu[s + 1] = (int32_t)s + 1;
        place[s] = len - 1;
        for (int32_t i = 0; i < len; i++, at += (size_t)len) mask[at + (size_t)len - 1] = 1;
    }
    b->target_cu_seqlens = cu, b->predict_positions = place, b->perm_mask = mask;
    return true;
}

/* What is remembered of the sequences, one after the other; nothing where none has a past. */
static bool lay_memory(ses_mems *k, ses_err *e)
{
    ses_batch *b = &k->batch;
    int32_t *cu = ses_arena_array(&k->work, (size_t)b->seqs + 1, sizeof *cu, e);
    if (!cu) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        const trace *t = k->trace[b->slots[s]];
        cu[s + 1] = cu[s] + (t ? (int32_t)t->rows : 0);
    }
    size_t all = (size_t)cu[b->seqs], C = (size_t)k->hidden;
    if (!all) return true;
    ses_real *x = ses_arena_array(&k->work, (size_t)k->layers * all * C, sizeof *x, e);
    for (int64_t l = 0; x && l < k->layers; l++)
        for (int64_t s = 0; s < b->seqs; s++) {
            size_t n = (size_t)(cu[s + 1] - cu[s]) * C;
            if (n)
                memcpy(x + ((size_t)l * all + (size_t)cu[s]) * C, k->trace[b->slots[s]]->x + (size_t)l * n,
                       n * sizeof *x);
        }
    b->mem_cu_seqlens = cu, b->mems = x;
    return x != NULL;
}

const ses_batch *ses_mems_begin_pass(ses_mems *k, const ses_batch *b, ses_err *e)
{
    ses_arena_reset(&k->work);
    bool ok = lay_tokens(k, b, e) && (!asks(k) || lay_places(k, e)) && lay_memory(k, e);
    return ok ? &k->batch : NULL;
}

/* Rows a sequence leaves among the mems: see ses_xl_output_mems. */
static int64_t left(const ses_mems *k, int64_t s)
{
    const ses_config *c = &k->model->c;
    const ses_batch *b = &k->batch;
    int64_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
    int64_t before = b->mem_cu_seqlens ? b->mem_cu_seqlens[s + 1] - b->mem_cu_seqlens[s]
                     : asks(k)         ? 0
                                       : c->xl.mem_len;
    if (c->xl.reuse_len && c->xl.reuse_len < len) len = c->xl.reuse_len;
    return c->xl.mem_len && before + len > c->xl.mem_len ? c->xl.mem_len : before + len;
}

static bool keep(ses_mems *k, int64_t s, const ses_real *const *mem, int64_t first, int64_t rows, ses_err *e)
{
    const ses_batch *b = &k->batch;
    enum { AGAIN = 2 }; /* the last token and the place behind it */
    int64_t n = !asks(k) ? rows : rows > AGAIN ? rows - AGAIN : 0;
    size_t each = (size_t)(n * k->hidden), bytes;
    if (!ses_mul_size(each, (size_t)k->layers * sizeof(ses_real), &bytes) ||
        !ses_add_size(bytes, sizeof(trace), &bytes))
        return ses_fail(e, SES_ENOMEM, "a memory of %lld tokens", (long long)n);
    trace *t = ses_alloc(bytes, e);
    if (!t) return false;
    t->users = 1, t->rows = n;
    t->last = asks(k) ? b->ids[b->cu_seqlens[s + 1] - AGAIN] : -1;
    for (int64_t l = 0; each && l < k->layers; l++)
        memcpy(t->x + (size_t)l * each, mem[l] + first * k->hidden, each * sizeof *t->x);
    leave(k->trace[b->slots[s]]);
    k->trace[b->slots[s]] = t;
    return true;
}

bool ses_mems_end_pass(ses_mems *k, ses_tape *tape, const ses_outputs *out, ses_err *e)
{
    const ses_batch *b = &k->batch;
    int64_t all = 0, first = 0;
    for (int64_t s = 0; s < b->seqs; s++) all += left(k, s);
    ses_real **mem = ses_arena_array(&k->work, (size_t)k->layers, sizeof(ses_real *), e);
    for (int64_t l = 0; mem && l < k->layers; l++) {
        char name[32];
        snprintf(name, sizeof name, "mems.%d", (int)l);
        const ses_output *found = ses_outputs_find(out, name);
        const ses_tensor *x = found ? found->tensor : NULL;
        if (!x || ses_count(x) != all * k->hidden)
            return ses_fail(e, SES_EARG, "the model gave no memory of its layer %d", (int)l);
        mem[l] = ses_arena_array(&k->work, (size_t)(all * k->hidden), sizeof **mem, e);
        if (!mem[l]) return false;
        if (!ses_tape_read(tape, x, mem[l])) return ses_tape_ok(tape, e);
    }
    for (int64_t s = 0; mem && s < b->seqs; s++) {
        int64_t rows = left(k, s);
        if (!keep(k, s, (const ses_real *const *)mem, first, rows, e)) return false;
        first += rows;
    }
    return mem != NULL;
}
