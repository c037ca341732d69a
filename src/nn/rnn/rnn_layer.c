/* Recurrent layers: parameters with PyTorch's names, one direction or both. */
#include "nn/nn.h"

#include <stdio.h>

static ses_tensor *add(ses_store *s, const char *prefix, const char *what, int layer, const char *suffix,
                       const int64_t dim[SES_MAX_DIM])
{
    char name[128];
    snprintf(name, sizeof name, "%s%s_l%d%s", prefix, what, layer, suffix);
    return ses_store_add(s, name, dim, SES_INIT_FAN_IN);
}

ses_rnn_params ses_rnn_add(ses_store *s, const ses_rnn_shape *k, const char *prefix, int layer,
                           const char *suffix)
{
    int64_t G = (k->type == SES_RNN_LSTM ? 4 : 3) * k->size, outputs = k->proj ? k->proj : k->size;
    ses_rnn_params r = { .in.w = add(s, prefix, "weight_ih", layer, suffix, SES_DIM(G, k->width)) };
    if (!k->no_bias) r.in.b = add(s, prefix, "bias_ih", layer, suffix, SES_DIM(G));
    r.w = add(s, prefix, "weight_hh", layer, suffix, SES_DIM(G, outputs));
    if (!k->no_bias) r.b = add(s, prefix, "bias_hh", layer, suffix, SES_DIM(G));
    if (k->proj) r.proj = add(s, prefix, "weight_hr", layer, suffix, SES_DIM(outputs, k->size));
    return r;
}

ses_tensor *ses_rnn_layer(ses_forward_ctx *p, const ses_rnn_params *r, ses_tensor *x, const ses_seqs *q,
                          const ses_rnn_run *run)
{
    ses_tensor *w = ses_dropout(p->tape, r->w, run->weight_drop);
    ses_rnn_inputs in = { .x = ses_dense_run(p->tape, r->in, x, SES_ACT_NONE),
                          .w = w,
                          .bias = r->b,
                          .proj = r->proj,
                          .cu_seqlens = q->cu_seqlens,
                          .host_cu_seqlens = q->host_cu_seqlens,
                          .h0 = run->h0,
                          .c0 = run->c0 };
    return ses_rnn(p->tape, &in, &run->o);
}

ses_tensor *ses_rnn_bidirectional(ses_forward_ctx *p, const ses_rnn_params r[2], ses_tensor *x,
                                  const ses_seqs *q, ses_rnn_type type)
{
    ses_tensor *direction[2];
    for (int i = 0; i < 2; i++)
        direction[i] = ses_rnn_layer(p, &r[i], x, q, &(ses_rnn_run){ .o = { .type = type, .reverse = i } });
    return ses_concat(p->tape, 2, direction);
}

ses_tensor *ses_rnn_last(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, bool reverse)
{
    int32_t *last = ses_tape_host_alloc(p->tape, (size_t)q->seqs, sizeof *last);
    for (int64_t s = 0; last && s < q->seqs; s++) {
        int32_t from = q->host_cu_seqlens[s], to = q->host_cu_seqlens[s + 1];
        last[s] = from == to ? SES_IGNORE_INDEX : reverse ? from : to - 1;
    }
    return last ? ses_gather(p->tape, x, ses_tape_ints(p->tape, last, q->seqs)) : NULL;
}

ses_tensor *ses_rnn_final_states(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x)
{
    int64_t half = ses_cols(x) / 2;
    ses_tensor *left = ses_rnn_last(p, q, ses_columns(p->tape, x, 0, half), false),
               *right = ses_rnn_last(p, q, ses_columns(p->tape, x, half, half), true);
    return ses_concat(p->tape, 2, (ses_tensor *const[]){ left, right });
}
