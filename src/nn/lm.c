/* From hidden states to the vocabulary: a dense layer with norm where the model has one, then the
 * projection. */
#include "nn.h"

void ses_lm_add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    if (c->clusters) {
        ses_clusters_add_lm(&h->clusters, s, c);
        return;
    }
    int64_t E = c->embed ? c->embed : c->hidden, width = c->lm_wide ? c->hidden : E;
    if (!c->lm_plain) {
        h->dense = ses_dense_add(s, width, c->hidden, c->no_lm_bias ? SES_NO_BIAS : SES_BIAS, "lm.dense");
        h->norm = ses_norm_add(s, width, c->norm, "lm.norm");
    }
    if (width > E) h->rest = ses_store_add(s, "lm.rest", SES_DIM(width - E, c->vocab), SES_INIT_NORMAL);
    h->out.w = c->tied ? token : ses_store_add(s, "lm.out.weight", SES_DIM(c->vocab, E), SES_INIT_NORMAL);
    ses_store_dense(s, h->out.w, SES_OUT_IN);
    if (c->tied) ses_store_table(s, h->out.w);
    if (c->lm_fixed_bias) {
        h->out.b = ses_store_add(s, "lm.out.bias", SES_DIM(1, c->vocab), SES_INIT_ZERO);
        ses_store_role(s, h->out.b, SES_PARAM_COMPUTED); /* zero where the file lacks it */
    } else if (c->lm_bias)
        h->out.b = ses_store_add(s, "lm.out.bias", SES_DIM(c->vocab), SES_INIT_ZERO);
}

static ses_tensor *transform(const ses_head_params *h, ses_pass *p, ses_tensor *x)
{
    if (h->dense.w)
        x = ses_norm_run(p->tape, h->norm, ses_dense_run(p->tape, h->dense, x, p->c->lm_act), NULL,
                         p->c->norm_eps);
    return p->c->logit_scale ? ses_scale(p->tape, x, p->c->logit_scale) : x;
}

static ses_tensor *project(const ses_head_params *h, ses_tape *t, ses_tensor *x)
{
    int64_t E = ses_cols(h->out.w);
    if (!h->rest) return ses_dense_run(t, h->out, x, SES_ACT_NONE);
    ses_tensor *y = ses_dense_run(t, h->out, ses_columns(t, x, 0, E), SES_ACT_NONE);
    return ses_add(
        t, y, ses_linear(t, ses_columns(t, x, E, h->rest->dim[0]), h->rest, NULL, SES_ACT_NONE, SES_IN_OUT));
}

ses_tensor *ses_lm_logits(const ses_head_params *h, ses_pass *p, ses_tensor *x)
{
    if (p->c->clusters) return ses_clusters_logits(&h->clusters, p, x);
    return project(h, p->tape, transform(h, p, x));
}

void ses_lm_output(const ses_head_params *h, const ses_head_use *use, ses_pass *p, ses_axis axis,
                   const ses_state *at)
{
    ses_tensor *x = p->want->logits ? ses_state_asked(p, at, &axis) : NULL;
    if (x) ses_pass_output(p, axis, ses_lm_logits(h, p, x), "%s", use->output);
}

void ses_lm_reads(const ses_head_use *use, const ses_pass *p, const ses_seqs *q, int32_t ahead, int32_t *read)
{
    const int32_t *labels = ses_head_labels(use, p->batch);
    int64_t labeled = 0;
    if (p->want->logits) ses_state_reads(p, q, read);
    for (int64_t s = 0; labels && s < q->seqs; s++)
        for (int32_t t = q->host_cu[s]; t + ahead < q->host_cu[s + 1]; t++)
            if (labels[t + ahead] != SES_IGNORE) read[t] = 1, labeled++;
    if (labels && !labeled) read[0] = 1; /* see ses_lm_loss */
}

ses_tensor *ses_lm_loss(const ses_head_params *h, ses_pass *p, const ses_state *at, int32_t *token,
                        int32_t *label, int64_t n)
{
    ses_tape *t = p->tape;
    if (!token || !label) return NULL;
    if (!n)
        token[n] = 0, label[n++] = SES_IGNORE; /* nothing is labeled: one ignored row keeps the loss a
                                                      number */
    ses_tensor *x = ses_state_take(p, at, token, n);
    if (p->c->clusters) return ses_clusters_loss(&h->clusters, p, x, label, n);
    ses_tensor *y = transform(h, p, x), *labels = ses_tape_ints(t, label, n);
    if (h->rest) return ses_cross_entropy(t, project(h, t, y), labels);
    return ses_linear_cross_entropy(t, y, h->out.w, h->out.b, labels);
}
