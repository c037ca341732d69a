/* The input of a classifier: one vector per sequence, or one per token, with the dense layers before it. */
#include "nn.h"

int64_t ses_head_width(const ses_config *c)
{
    return c->embed.project_before_positions && c->embed.width ? c->embed.width : c->hidden;
}

void ses_prediction_head_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name)
{
    if (!c->head.prediction_head) return;
    h->dense = ses_dense_add(s, c->hidden, c->hidden, c->lm.no_transform_bias ? SES_NO_BIAS : SES_BIAS,
                             "%s.dense", name);
    h->norm = ses_norm_add(s, c->hidden, c->norm.kind, "%s.norm", name);
}

ses_tensor *ses_prediction_head_run(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x)
{
    if (!h->dense.w) return x;
    x = ses_dense_run(p->tape, h->dense, x, p->c->summary.act);
    return h->norm.gain ? ses_norm_run(p->tape, h->norm, x, NULL, p->c->norm.eps) : x;
}

void ses_summary_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name)
{
    bool unchanged = c->summary.kind == SES_SUMMARY_LAST_NON_PAD || c->summary.kind == SES_SUMMARY_CLS_INDEX;
    ses_prediction_head_add(h, s, c, name);
    if (!h->dense.w && !c->pooler.present && !c->summary.no_proj && !unchanged)
        h->dense = ses_dense_add(s, c->hidden, c->hidden, SES_BIAS, "%s.dense", name);
}

/* The summary token of sequence s: first, batch-given, last, last non-padding, or last EOS. */
static int32_t summary_token(const ses_forward_ctx *p, const ses_seqs *q, int64_t s)
{
    const int32_t *id = p->batch->ids;
    int32_t first = q->host_cu_seqlens[s], last = q->host_cu_seqlens[s + 1] - 1, t = last;
    if (p->c->summary.kind == SES_SUMMARY_FIRST) return first;
    if (p->c->summary.kind == SES_SUMMARY_CLS_INDEX && p->batch->choice_positions)
        return first + p->batch->choice_positions[s];
    if (p->c->summary.kind == SES_SUMMARY_LAST_NON_PAD) {
        while (t > first && id[t] == p->c->pad_id) t--;
        return t;
    }
    if (p->c->summary.kind != SES_SUMMARY_EOS) return last;
    while (t >= first && id[t] != p->c->eos_id) t--;
    return t < first ? last : t;
}

static ses_tensor *gather_tokens(ses_forward_ctx *p, const ses_state *at, bool first_tokens)
{
    const ses_seqs *q = at->seqs;
    int32_t *token = ses_tape_host_alloc(p->tape, (size_t)q->seqs, sizeof *token);
    for (int64_t s = 0; token && s < q->seqs; s++)
        token[s] = first_tokens ? q->host_cu_seqlens[s] : summary_token(p, q, s);
    return token ? ses_state_gather(p, at, token, q->seqs) : NULL;
}

ses_tensor *ses_summary_first(ses_forward_ctx *p, const ses_state *at) { return gather_tokens(p, at, true); }

ses_tensor *ses_summary_gather(ses_forward_ctx *p, const ses_state *at)
{
    switch (p->c->summary.kind) {
    case SES_SUMMARY_MEAN: return ses_pool_rows(p->tape, at->x, at->seqs->cu_seqlens, SES_POOL_MEAN);
    case SES_SUMMARY_MAX: return ses_pool_rows(p->tape, at->x, at->seqs->cu_seqlens, SES_POOL_MAX);
    case SES_SUMMARY_ENDS: return ses_rnn_final_states(p, at->seqs, at->x);
    default: return gather_tokens(p, at, false);
    }
}

void ses_summary_mark_used(const ses_head_use *use, const ses_forward_ctx *p, const ses_seqs *q,
                           int32_t *used)
{
    (void)use;
    bool all = p->c->summary.kind >= SES_SUMMARY_MEAN || ses_custom_head_is_recurrent(p->c) ||
               p->c->head.pooled_width > 0 || p->c->head.label_gain;
    if (p->c->pooler.present) return; /* the pooler has marked the first tokens */
    for (int64_t t = 0; all && t < q->tokens; t++) used[t] = 1;
    for (int64_t s = 0; !all && s < q->seqs; s++) used[summary_token(p, q, s)] = 1;
}

ses_tensor *ses_summary_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    double rate = ses_head_dropout_rate(p->c);
    if (at->pooled) return ses_dropout(t, at->pooled, rate);
    if (p->c->summary.dense_by_token && h->dense.w)
        return ses_dropout(
            t, ses_pool_rows(t, ses_prediction_head_run(h, p, at->x), at->seqs->cu_seqlens, SES_POOL_MEAN),
            rate);
    ses_tensor *x = ses_summary_gather(p, at);
    if (p->c->summary.kind == SES_SUMMARY_LAST_NON_PAD) return x;
    if (p->c->summary.kind == SES_SUMMARY_CLS_INDEX) return ses_dropout(t, x, p->c->dropout.summary_first);
    x = ses_dropout(t, x, p->c->dropout.head_on_summary_input ? rate : p->c->dropout.summary_first);
    if (h->dense.w)
        x = ses_prediction_head_run(h, p, x);
    else if (p->c->summary.act != SES_ACT_NONE)
        x = ses_activate(t, x, p->c->summary.act);
    return ses_dropout(t, x, rate);
}
