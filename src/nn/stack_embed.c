/* The embeddings of a stack: tokens or vectors instead of them, positions, segments. */
#include "layer_hooks.h"

#include <math.h>

/* The token vectors, one row per token. A factorized table is the product of two matrices. */
static ses_tensor *token_vectors(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, int32_t pad)
{
    ses_tensor *x = ses_embed(p->tape, 1, &k->token, &q->ids, pad);
    ses_tensor *up = k->token_up ? ses_tape_host_alloc(p->tape, 1, sizeof *up) : NULL;
    if (!up) return k->token_up ? NULL : x;
    *up = *k->token_up;
    up->pack = NULL; /* a tied LM head reads the matrix in the other layout, and a pack has one */
    return ses_linear(p->tape, x, up, NULL, SES_ACT_NONE, SES_IN_OUT);
}

/* The token vectors as a table with one row per token, so that they can be captured or replaced, or because
 * they are computed. */
static void embed_as_table(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor **table,
                           ses_tensor **id, int32_t *pad)
{
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *row);
    for (int64_t i = 0; row && i < q->tokens; i++) row[i] = (int32_t)i;
    *table = token_vectors(k, p, q, *pad);
    if (p->hooks_embeds) *table = ses_hook_embeds(p, q, *table);
    *id = row ? ses_tape_ints(p->tape, row, q->tokens) : NULL;
    *pad = -1;
}

/* Token vectors, or projected vectors of the batch instead, as a table with one row per token. */
static void embed_modal(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor **table,
                        ses_tensor **id, int32_t *pad)
{
    const ses_batch *b = p->batch;
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *row);
    for (int64_t i = 0; row && i < q->tokens; i++)
        row[i] = (int32_t)(b->modal_rows[i] < 0 ? i : q->tokens + b->modal_rows[i]);
    ses_tensor *x = ses_tape_input(p->tape, b->modal_vectors, SES_DIM(b->n_modal, p->c->embed.modal_width));
    *table = ses_append_rows(p->tape, token_vectors(k, p, q, *pad),
                             ses_dense_run(p->tape, k->modal, x, SES_ACT_NONE));
    *id = row ? ses_tape_ints(p->tape, row, q->tokens) : NULL;
    *pad = -1;
}

/* Token vectors, and vectors of the virtual tokens, as a table with one row per token. */
static void embed_virtual(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor **table,
                          ses_tensor **id, int32_t *pad)
{
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *row);
    for (int64_t i = 0; row && i < q->tokens; i++)
        row[i] = (int32_t)(p->virtual_rows[i] < 0 ? i : q->tokens + p->virtual_rows[i]);
    *table = ses_append_rows(p->tape, token_vectors(k, p, q, *pad),
                             ses_virtual_values(&k->virt, p->tape, k->virt.embed));
    *id = row ? ses_tape_ints(p->tape, row, q->tokens) : NULL;
    *pad = -1;
}

/* Row 0 of a table for each token. */
static ses_tensor *first_rows(ses_forward_ctx *p, const ses_seqs *q)
{
    const int32_t *zeros = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *zeros);
    return zeros ? ses_tape_ints(p->tape, zeros, q->tokens) : NULL;
}

/* Token vectors x of a model that was trained with dropped tokens: vectors of masks are zero. */
static ses_tensor *drop_masks(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x)
{
    static const double kept_in_training = 1 - 0.15 * 0.8;
    ses_real *factor = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *factor);
    for (int64_t s = 0; factor && s < q->seqs; s++) {
        int32_t from = q->host_cu_seqlens[s], to = q->host_cu_seqlens[s + 1], kept = 0;
        for (int32_t t = from; t < to; t++) kept += q->host_ids[t] != p->c->embed.mask_id;
        for (int32_t t = from; t < to; t++)
            factor[t] = (ses_real)(q->host_ids[t] == p->c->embed.mask_id
                                       ? 0
                                       : kept_in_training * (double)(to - from) / (double)kept);
    }
    return factor && x ? ses_scale_rows(p->tape, x, ses_tape_input(p->tape, factor, SES_DIM(q->tokens)))
                       : NULL;
}

ses_tensor *ses_stack_embed(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    ses_tensor *table[SES_MAX_TABLES] = { k->token }, *id[SES_MAX_TABLES] = { q->ids };
    double scale = c->embed.scale_by_sqrt_hidden ? sqrt((double)c->hidden) : 1;
    /* token vectors are scaled or projected before positions are added */
    bool tokens_first = scale != 1 || c->embed.project_before_positions || c->embed.token_dropout;
    int32_t first_pad = c->embed.train_pad ? -1 : (int32_t)c->pad_id;
    int n = 1;
    ses_tensor *x = NULL;
    if (tokens_first) {
        bool virt = p->virtual_rows && q == &p->in;
        if (virt) embed_virtual(k, p, q, &table[0], &id[0], &first_pad);
        x = virt ? ses_embed(t, 1, table, id, first_pad) : token_vectors(k, p, q, first_pad);
        if (p->hooks_embeds) x = ses_hook_embeds(p, q, x);
        if (c->embed.token_dropout) x = drop_masks(p, q, x);
        if (scale != 1) x = ses_scale(t, x, scale);
        if (c->embed.project_before_positions && k->project.w)
            x = ses_dense_run(t, k->project, x, SES_ACT_NONE);
        n = 0;
    }
    if (k->position) table[n] = k->position, id[n++] = q->positions;
    if (k->segment) table[n] = k->segment, id[n++] = q->segments;
    if (k->task) table[n] = k->task, id[n++] = first_rows(p, q);
    int32_t pad[SES_MAX_TABLES] = { tokens_first ? -1 : first_pad, -1, -1, -1 };
    if (c->position.skips_pad && !tokens_first)
        pad[1] = (int32_t)c->pad_id; /* the row of padding tokens, which are not counted */
    if (k->modal.w && p->batch->modal_rows && !tokens_first)
        embed_modal(k, p, q, &table[0], &id[0], &pad[0]);
    else if (p->virtual_rows && q == &p->in && !tokens_first)
        embed_virtual(k, p, q, &table[0], &id[0], &pad[0]);
    else if ((p->hooks_embeds || k->token_up) && !tokens_first)
        embed_as_table(k, p, q, &table[0], &id[0], &pad[0]);
    ses_tensor *sum = n ? ses_embed_with_pads(t, n, table, id, pad) : NULL;
    x = x && sum ? ses_add(t, x, sum) : x ? x : sum;
    if (k->embed_norm.gain) x = ses_norm_run(t, k->embed_norm, x, NULL, c->norm.eps);
    x = ses_dropout(t, x, c->dropout.embed < 0 ? c->dropout.hidden : c->dropout.embed);
    return k->project.w && !c->embed.project_before_positions ? ses_dense_run(t, k->project, x, SES_ACT_NONE)
                                                              : x;
}
