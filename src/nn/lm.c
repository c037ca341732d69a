/* LM head: transform (dense layer and norm) if the model has one, then the projection to the vocabulary. */
#include "nn.h"

void ses_lm_add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    if (c->adaptive.clusters) {
        ses_adaptive_softmax_add_lm(&h->adaptive, s, c);
        return;
    }
    int64_t E = c->lm.width      ? c->lm.width
                : c->embed.width ? c->embed.width
                                 : c->hidden,
            width = c->lm.extra_cols ? c->hidden : E;
    if (!c->lm.no_transform) {
        h->dense =
            ses_dense_add(s, width, c->hidden, c->lm.no_transform_bias ? SES_NO_BIAS : SES_BIAS, "lm.dense");
        h->norm = ses_norm_add(s, width, c->norm.kind, "lm.norm");
    }
    if (width > E) h->extra_proj = ses_store_add(s, "lm.rest", SES_DIM(width - E, c->vocab), SES_INIT_NORMAL);
    h->out.w =
        c->embed.tied ? token : ses_store_add(s, "lm.out.weight", SES_DIM(c->vocab, E), SES_INIT_NORMAL);
    ses_store_set_dense(s, h->out.w, SES_OUT_IN);
    if (c->embed.tied) ses_store_set_embedding(s, h->out.w);
    if (c->lm.final_logits_bias) {
        h->out.b = ses_store_add(s, "lm.out.bias", SES_DIM(1, c->vocab), SES_INIT_ZERO);
        ses_store_set_role(s, h->out.b, SES_PARAM_BUFFER); /* zero if the file lacks it */
    } else if (c->lm.bias)
        h->out.b = ses_store_add(s, "lm.out.bias", SES_DIM(c->vocab), SES_INIT_ZERO);
}

ses_tensor *ses_lm_transform(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x)
{
    if (h->dense.w)
        x = ses_norm_run(p->tape, h->norm, ses_dense_run(p->tape, h->dense, x, p->c->lm.act), NULL,
                         p->c->norm.eps);
    return p->c->lm.logit_scale ? ses_scale(p->tape, x, p->c->lm.logit_scale) : x;
}

static ses_tensor *project(const ses_head_params *h, ses_tape *t, ses_tensor *x)
{
    int64_t E = ses_cols(h->out.w);
    if (!h->extra_proj) return ses_dense_run(t, h->out, x, SES_ACT_NONE);
    ses_tensor *y = ses_dense_run(t, h->out, ses_columns(t, x, 0, E), SES_ACT_NONE);
    return ses_add(t, y,
                   ses_linear(t, ses_columns(t, x, E, h->extra_proj->dim[0]), h->extra_proj, NULL,
                              SES_ACT_NONE, SES_IN_OUT));
}

ses_tensor *ses_lm_logits(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x)
{
    if (p->c->adaptive.clusters) return ses_adaptive_softmax_logits(&h->adaptive, p, x);
    return project(h, p->tape, ses_lm_transform(h, p, x));
}

void ses_lm_output(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, ses_axis axis,
                   const ses_state *at)
{
    ses_tensor *x = p->request->logits ? ses_state_requested(p, at, &axis) : NULL;
    if (x) ses_forward_output(p, axis, ses_lm_logits(h, p, x), "%s", use->output);
}

void ses_lm_mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q, int32_t shift,
                      int32_t *used)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    int64_t labeled = 0;
    if (p->request->logits) ses_state_mark_used(p, q, used);
    for (int64_t s = 0; labels && s < q->seqs; s++)
        for (int32_t t = q->host_cu_seqlens[s]; t + shift < q->host_cu_seqlens[s + 1]; t++)
            if (labels[t + shift] != SES_IGNORE_INDEX) used[t] = 1, labeled++;
    if (labels && !labeled) used[0] = 1; /* see ses_lm_loss */
}

ses_tensor *ses_lm_loss(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at, int32_t *token,
                        int32_t *label, int64_t n)
{
    ses_tape *t = p->tape;
    if (!token || !label) return NULL;
    if (!n) /* no label: one ignored row keeps the loss a number */
        token[n] = 0, label[n++] = SES_IGNORE_INDEX;
    ses_tensor *x = ses_state_gather(p, at, token, n);
    if (p->c->adaptive.clusters) return ses_adaptive_softmax_loss(&h->adaptive, p, x, label, n);
    ses_tensor *y = ses_lm_transform(h, p, x), *labels = ses_tape_ints(t, label, n);
    if (h->extra_proj) return ses_cross_entropy(t, project(h, t, y), labels);
    return ses_linear_cross_entropy(t, ses_dense_run_first(t, &h->out, y), h->out.w, h->out.b, labels);
}
