/* Prompt tuning: a batch with virtual tokens before its sequences, and outputs without them. Positions
 * continue over the virtual tokens, their segments are 0, and they have no labels, as in the peft library. */
#include "model_desc.h"

#include "nn/cache_impl.h"

/* Requests that would show virtual tokens. */
static bool check_request(const ses_model *m, const ses_batch *b, const ses_output_request *r, ses_err *e)
{
    bool prompt = m->stack[0].virt.embed != NULL;
    bool inside = r->qkv || r->head_outputs || r->ffn_activations || r->embeddings || r->capture_gradients ||
                  r->head_inputs || (r->edits != NULL);
    if (r->attentions || r->attention_scores || (prompt && inside))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "attention and the inside of layers are not available for an adapter with virtual "
                        "tokens: open its base model");
    if (!prompt || !(b->modal_rows || b->perm_mask || b->predict_positions || b->mems || b->word_chars))
        return true;
    return ses_fail(e, SES_EUNSUPPORTED, "prompt tuning reads plain texts only");
}

/* Does sequence s start here, and not in an earlier batch? */
static bool starts(const ses_batch *b, int64_t s)
{
    bool cached = b->cache && !b->target_cu_seqlens;
    return !cached || !ses_cache_len(b->cache, b->slots[s]);
}

/* x with `fill` for virtual tokens; NULL stays NULL. */
static const int32_t *spread(const ses_virtual_batch *v, ses_tape *t, const int32_t *x, int32_t fill)
{
    int32_t *y = x ? ses_tape_host_alloc(t, (size_t)v->batch.tokens, sizeof *y) : NULL;
    for (int64_t i = 0; y && i < v->batch.tokens; i++) y[i] = fill;
    for (int64_t i = 0; y && i < v->tokens; i++) y[v->token[i]] = x[i];
    return y;
}

/* Positions in each sequence, moved behind its virtual tokens; negative ones mean none. */
static const int32_t *moved(const ses_batch *b, ses_tape *t, const int32_t *x, int64_t by)
{
    int32_t *y = x ? ses_tape_host_alloc(t, (size_t)b->seqs, sizeof *y) : NULL;
    for (int64_t s = 0; y && s < b->seqs; s++) y[s] = x[s] + (x[s] < 0 || !starts(b, s) ? 0 : (int32_t)by);
    return y;
}

/* Offsets, and the order of tokens and virtual tokens. */
static bool lay_out(ses_virtual_batch *v, ses_tape *t, const ses_batch *b, int64_t V)
{
    int64_t n = b->tokens;
    for (int64_t s = 0; s < b->seqs; s++) n += starts(b, s) ? V : 0;
    int32_t *cu = ses_tape_host_alloc(t, (size_t)b->seqs + 1, sizeof *cu),
            *row = ses_tape_host_alloc(t, (size_t)n, sizeof *row), at = 0;
    v->token = ses_tape_host_alloc(t, (size_t)b->tokens, sizeof *v->token);
    if (!cu || !row || !v->token) return false;
    for (int64_t s = 0; s < b->seqs; s++) {
        for (int32_t i = 0; starts(b, s) && i < V; i++) row[at++] = i;
        for (int32_t i = b->cu_seqlens[s]; i < b->cu_seqlens[s + 1]; i++) v->token[i] = at, row[at++] = -1;
        cu[s + 1] = at;
    }
    v->batch.cu_seqlens = cu, v->batch.tokens = at;
    v->virtual_rows = row, v->tokens = b->tokens;
    return true;
}

/* Positions 0, 1, ... of the virtual tokens, then the given ones. */
static const int32_t *continued(const ses_virtual_batch *v, ses_tape *t, const int32_t *x, int64_t V)
{
    int32_t *y = x ? ses_tape_host_alloc(t, (size_t)v->batch.tokens, sizeof *y) : NULL;
    for (int64_t i = 0; y && i < v->batch.tokens; i++) y[i] = v->virtual_rows[i];
    for (int64_t i = 0; y && i < v->tokens; i++) y[v->token[i]] = x[i] + (int32_t)V;
    return y;
}

bool ses_virtual_batch_make(const ses_model *m, ses_tape *t, const ses_batch **batch,
                            const ses_output_request **request, ses_virtual_batch *v, ses_err *e)
{
    const ses_batch *b = *batch;
    const ses_virtual *x = &m->stack[0].virt;
    if (!x->tokens && !m->stack[1].virt.tokens) return true;
    if (!check_request(m, b, *request, e)) return false;
    if (!x->embed || !b->ids) return true;
    v->batch = *b, v->request = **request;
    if (!lay_out(v, t, b, x->tokens)) return ses_tape_ok(t, e);
    int32_t id = m->stack[0].c->pad_id == 0; /* any token but padding */
    bool by_token = m->class->head[0].head && m->class->head[0].head->axis == SES_LABEL_PER_TOKEN;
    v->batch.ids = spread(v, t, b->ids, id);
    v->batch.segments = spread(v, t, b->segments, 0);
    v->batch.positions = continued(v, t, b->positions, x->tokens);
    v->batch.answer_mask = spread(v, t, b->answer_mask, 0);
    if (by_token && !b->target_cu_seqlens) v->batch.labels = spread(v, t, b->labels, SES_IGNORE_INDEX);
    v->batch.prefix_len = moved(b, t, b->prefix_len, x->tokens);
    v->batch.choice_positions = moved(b, t, b->choice_positions, x->tokens);
    v->batch.starts = moved(b, t, b->starts, x->tokens);
    v->batch.ends = moved(b, t, b->ends, x->tokens);
    if (v->request.rows && !b->target_cu_seqlens) {
        int32_t *row = ses_tape_host_alloc(t, (size_t)v->request.n_rows, sizeof *row);
        for (int64_t i = 0; row && i < v->request.n_rows; i++) {
            int32_t r = v->request.rows[i];
            row[i] = r >= 0 && r < b->tokens ? v->token[r] : -1;
        }
        v->request.rows = row;
    }
    *batch = &v->batch, *request = &v->request;
    return ses_tape_ok(t, e);
}

void ses_virtual_batch_shrink(const ses_virtual_batch *v, ses_tape *t, ses_output *item, size_t n)
{
    ses_tensor *rows = NULL;
    for (size_t i = 0; i < n; i++) {
        if (item[i].axis != SES_PER_TOKEN || !item[i].tensor || ses_rows(item[i].tensor) != v->batch.tokens)
            continue;
        if (!rows) rows = ses_tape_ints(t, v->token, v->tokens);
        item[i].tensor = ses_gather(t, item[i].tensor, rows);
    }
}
