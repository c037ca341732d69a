/* What a classifier of sequences looks at: one vector a sequence. */
#include "nn.h"

void ses_summary_add(ses_head_params *h, ses_store *s, const ses_config *c, const char *name)
{
    if (!c->pooler && !c->summary_plain && c->summary != SES_SUMMARY_LAST)
        h->dense = ses_dense_add(s, c->hidden, c->hidden, SES_BIAS, "%s.dense", name);
}

/* The last token of each sequence, or its last end-of-sequence token. */
static ses_tensor *ends(ses_pass *p, const ses_state *at)
{
    const ses_seqs *q = at->seqs;
    bool eos = p->c->summary == SES_SUMMARY_EOS;
    int32_t *row = ses_tape_host(p->tape, (size_t)q->seqs, sizeof *row);
    for (int64_t s = 0; row && s < q->seqs; s++) {
        row[s] = q->host_cu[s + 1] - 1;
        for (int32_t t = row[s]; eos && t >= q->host_cu[s]; t--)
            if (p->batch->ids[t] == p->c->eos) {
                row[s] = t;
                break;
            }
    }
    return row ? ses_take(p->tape, at->x, ses_tape_ints(p->tape, row, q->seqs)) : NULL;
}

ses_tensor *ses_summary_run(const ses_head_params *h, ses_pass *p, const ses_state *at)
{
    ses_tape *t = p->tape;
    ses_tensor *x = NULL;
    double drop = ses_head_drop(p->c);
    if (at->pooled) return ses_dropout(t, at->pooled, drop);
    switch (p->c->summary) {
    case SES_SUMMARY_FIRST: x = ses_pool_rows(t, at->x, at->seqs->cu, SES_POOL_FIRST); break;
    case SES_SUMMARY_MEAN: x = ses_pool_rows(t, at->x, at->seqs->cu, SES_POOL_MEAN); break;
    case SES_SUMMARY_EOS:
    case SES_SUMMARY_END: x = ends(p, at); break;
    case SES_SUMMARY_LAST: return ends(p, at);
    }
    x = ses_dropout(t, x, p->c->drop_summary_in ? drop : p->c->drop_summary);
    if (h->dense.w)
        x = ses_dense_run(t, h->dense, x, p->c->summary_act);
    else if (p->c->summary_act != SES_ACT_NONE)
        x = ses_activate(t, x, p->c->summary_act);
    return ses_dropout(t, x, drop);
}
