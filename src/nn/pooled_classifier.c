/* The classifier of ULMFiT (Howard and Ruder 2018): the state of the last token, the maximum and the mean of
 * the last head.pooled tokens, then batch norm, dropout and a layer without bias, twice, with a ReLU between.
 * Names and shapes follow fastai. */
#include "nn.h"

#include <stdio.h>

void ses_pooled_classifier_add(ses_head_params *h, ses_store *s, const ses_config *c)
{
    const int64_t width[] = { 3 * c->hidden, c->head.pooled_width, c->labels };
    for (int i = 0; i < 2; i++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "classify.%d.norm.", i);
        h->batch_norm[i] = ses_batch_norm_add(s, width[i], prefix);
        h->custom[i] = ses_dense_add(s, width[i + 1], width[i], SES_NO_BIAS, "classify.%d.out", i);
    }
}

/* [B, 3 C]: last, maximum, mean. */
static ses_tensor *pool(ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const ses_seqs *q = at->seqs;
    int64_t max = p->c->head.pooled;
    int32_t *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row), n = 0;
    int32_t *cu = ses_tape_host_alloc(t, (size_t)q->seqs + 1, sizeof *cu);
    for (int64_t s = 0; row && cu && s < q->seqs; s++) {
        int32_t from = q->host_cu_seqlens[s], to = q->host_cu_seqlens[s + 1];
        if (max > 0 && to - from > max) from = to - (int32_t)max;
        while (from < to) row[n++] = from++;
        cu[s + 1] = n;
    }
    if (!row || !cu) return NULL;
    ses_tensor *x = n < q->tokens ? ses_gather(t, at->x, ses_tape_ints(t, row, n)) : at->x,
               *ends = ses_tape_ints(t, cu, q->seqs + 1);
    return ses_concat(t, 3,
                      (ses_tensor *const[]){ ses_rnn_last(p, q, at->x, false),
                                             ses_pool_rows(t, x, ends, SES_POOL_MAX),
                                             ses_pool_rows(t, x, ends, SES_POOL_MEAN) });
}

ses_tensor *ses_pooled_classifier_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    const double rate[] = { ses_head_dropout_rate(p->c), p->c->dropout.final };
    ses_tensor *x = pool(p, at);
    for (int i = 0; i < 2; i++) {
        if (i && p->request->head_inputs) ses_forward_output(p, SES_PER_SEQUENCE, x, "head_inputs");
        x = ses_batch_norm_run(t, &h->batch_norm[i], x);
        x = ses_dense_run(t, h->custom[i], ses_dropout(t, x, rate[i]), i ? SES_ACT_NONE : SES_ACT_RELU);
    }
    return x;
}
