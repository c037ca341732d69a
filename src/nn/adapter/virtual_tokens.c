/* Virtual tokens of adapters: keys and values before the keys and values of each sequence (prefix tuning),
 * and the dense layers that compute virtual tokens while they are trained. */
#include "nn/nn.h"

ses_tensor *ses_virtual_values(const ses_virtual *v, ses_tape *t, ses_tensor *x)
{
    for (int i = 0; i < v->n_dense; i++)
        x = ses_dense_run(t, v->dense[i], x, i + 1 < v->n_dense ? v->act : SES_ACT_NONE);
    return x;
}

void ses_virtual_begin(const ses_virtual *v, ses_forward_ctx *p, const ses_seqs *q)
{
    int64_t V = v->tokens, n = q->tokens + q->seqs * V;
    int32_t *cu = ses_tape_host_alloc(p->tape, (size_t)q->seqs + 1, sizeof *cu),
            *row = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *row), *to = row;
    if (!cu || !row) return;
    p->prefixed = (ses_seqs){ .seqs = q->seqs,
                              .tokens = n,
                              .max_seqlen = q->max_seqlen + V,
                              .host_cu_seqlens = cu,
                              .cu_seqlens = NULL };
    for (int64_t s = 0; s < q->seqs; s++) { /* rows of the virtual tokens' keys, then of the keys of q */
        cu[s + 1] = q->host_cu_seqlens[s + 1] + (int32_t)((s + 1) * V);
        for (int64_t i = 0; i < V; i++) *to++ = (int32_t)i;
        for (int32_t t = q->host_cu_seqlens[s]; t < q->host_cu_seqlens[s + 1]; t++) *to++ = (int32_t)V + t;
    }
    p->prefixed.cu_seqlens = ses_tape_ints(p->tape, cu, q->seqs + 1);
    p->prefixed_rows = ses_tape_ints(p->tape, row, n);
}

ses_tensor *ses_virtual_part(const ses_virtual *v, ses_tape *t, ses_tensor *prefix, int i, int part)
{
    int32_t *row = ses_tape_host_alloc(t, (size_t)v->tokens, sizeof *row);
    int64_t width = ses_count(prefix) / (v->tokens * v->entries);
    for (int64_t k = 0; row && k < v->tokens; k++)
        row[k] = (int32_t)(k * v->entries + (i * v->stride + part) % v->entries);
    ses_tensor *entries = ses_reshape(t, prefix, SES_DIM(v->tokens * v->entries, width));
    return row ? ses_gather(t, entries, ses_tape_ints(t, row, v->tokens)) : NULL;
}

void ses_virtual_prepend(const ses_virtual *v, ses_forward_ctx *p, ses_tensor *prefix, int i,
                         ses_attention_inputs *in)
{
    ses_tensor **part[] = { &in->k, &in->v };
    for (int k = 0; k < 2; k++) {
        ses_tensor *first = *part[k] ? ses_virtual_part(v, p->tape, prefix, i, k) : NULL;
        *part[k] =
            first ? ses_gather(p->tape, ses_append_rows(p->tape, first, *part[k]), p->prefixed_rows) : NULL;
    }
}
