/* Attention scores by distance (Shaw et al. 2018; SES_POS_RELATIVE_KEY, SES_POS_RELATIVE_KEY_QUERY): each
 * layer has a vector per distance, which all its heads share. It is multiplied by the query, or by the query
 * and by the key, and added to the scores. */
#include "nn/nn.h"

#include "nn/layer_hooks.h"

#include <stdio.h>

ses_tensor *ses_relative_key_add(const ses_stack *k, ses_store *s, const ses_config *c, int i)
{
    char name[96];
    snprintf(name, sizeof name, "%slayer.%d.attn.distance", k->prefix, i);
    int64_t dim = c->attention.head_size ? c->attention.head_size : c->hidden / k->heads;
    return ses_store_add(s, name, SES_DIM(2 * c->position.max - 1, dim), SES_INIT_NORMAL);
}

void ses_relative_key_begin(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx)
{
    (void)k;
    int64_t n = 2 * ctx->seqs->max_seqlen - 1;
    int32_t *row = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *row);
    /* entry i: a distance (query minus key) of max_seqlen - 1 - i; rows are in the order of the table */
    for (int64_t i = 0; row && i < n; i++) row[i] = (int32_t)(n - 1 - i);
    ctx->rel_dist_to_row = row ? ses_tape_ints(p->tape, row, n) : NULL;
}

/* The rows of the batch's distances, as wide as all heads: [distances, heads * head size]. */
static ses_tensor *rows_of(ses_forward_ctx *p, const ses_stack_ctx *ctx, ses_tensor *table, int64_t heads)
{
    int64_t n = 2 * ctx->seqs->max_seqlen - 1, zero = ses_rows(table) / 2, last = ses_rows(table) - 1;
    int32_t *id = ses_tape_host_alloc(p->tape, (size_t)(n * heads), sizeof *id);
    for (int64_t i = 0; id && i < n * heads; i++) {
        int64_t row = zero - (ctx->seqs->max_seqlen - 1) + i / heads;
        id[i] = (int32_t)(row < 0 ? 0 : row > last ? last : row);
    }
    ses_tensor *x = id ? ses_gather(p->tape, table, ses_tape_ints(p->tape, id, n * heads)) : NULL;
    return ses_reshape(p->tape, x, SES_DIM(n, heads * ses_cols(table)));
}

void ses_relative_key_scores(const ses_stack *k, ses_forward_ctx *p, const ses_stack_ctx *ctx,
                             const ses_layer *l, ses_attention_inputs *in, int i)
{
    const ses_config *c = p->c;
    int64_t heads = ses_stack_heads(k, i);
    ses_qkv_layout layout = in->k ? SES_QKV_SEPARATE : SES_QKV_FUSED;
    if (p->hooked || (in->k && !in->v)) ses_hook_split(p, in, &layout, heads);
    ses_relative_inputs r = { .cu_seqlens_q = ctx->seqs->cu_seqlens,
                              .cu_seqlens_k = ctx->seqs->cu_seqlens,
                              .dist_to_row = ctx->rel_dist_to_row };
    ses_tensor *rows = rows_of(p, ctx, l->distance, heads);
    r.term[0] = (ses_relative_term){ .x = in->q, .r = rows, .layout = layout };
    if (c->position.kind == SES_POS_RELATIVE_KEY_QUERY)
        r.term[1] = (ses_relative_term){
            .x = in->k ? in->k : in->q, .r = rows, .side = SES_BY_KEY, .layout = layout
        };
    in->allow_i8 = false;
    in->bias = ses_relative_scores(
        p->tape, &r,
        &(ses_relative_options){ .heads = heads,
                                 .max_seqlen_k = ctx->seqs->max_seqlen,
                                 .pairs = ctx->seqs->token_pairs,
                                 .for_attention = !p->hooked,
                                 .scale = c->position.distances_unscaled ? 1 : c->attention.scale });
}
