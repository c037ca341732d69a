/* Task heads of Sesame: a linear layer, an MLP, or bidirectional LSTM or GRU layers. */
#include "nn.h"

#include <stdio.h>

/* Gates in PyTorch's order. LSTM: input, forget, cell, output; GRU: reset, update, new. */
static int64_t gates(const ses_config *c) { return c->custom_head.kind == SES_CUSTOM_LSTM ? 4 : 3; }

bool ses_custom_head_is_recurrent(const ses_config *c) { return c->custom_head.kind >= SES_CUSTOM_LSTM; }

static ses_tensor *add(ses_store *s, const char *what, int layer, const char *direction,
                       const int64_t dim[SES_MAX_DIM])
{
    char name[96];
    snprintf(name, sizeof name, "own.rnn.%s_l%d%s", what, layer, direction);
    return ses_store_add(s, name, dim, SES_INIT_FAN_IN);
}

static ses_rnn_params recurrent_add(ses_store *s, const ses_config *c, int layer, int64_t width,
                                    const char *direction)
{
    int64_t size = c->custom_head.sizes[layer], G = gates(c) * size;
    return (ses_rnn_params){ .in = { .w = add(s, "weight_ih", layer, direction, SES_DIM(G, width)),
                                     .b = add(s, "bias_ih", layer, direction, SES_DIM(G)) },
                             .w = add(s, "weight_hh", layer, direction, SES_DIM(G, size)),
                             .b = add(s, "bias_hh", layer, direction, SES_DIM(G)) };
}

void ses_custom_head_add(ses_head_params *h, ses_store *s, const ses_config *c)
{
    int64_t width = ses_layer_choice_width(c, ses_head_width(c));
    for (int i = 0; i < (int)c->custom_head.layers; i++) {
        int64_t size = c->custom_head.sizes[i];
        if (ses_custom_head_is_recurrent(c)) {
            h->rnn[i][0] = recurrent_add(s, c, i, width, "");
            h->rnn[i][1] = recurrent_add(s, c, i, width, "_reverse");
            width = 2 * size;
        } else {
            h->custom[i] = ses_dense_add(s, size, width, SES_BIAS, "own.dense.%d", i);
            width = size;
        }
    }
    h->out = ses_dense_add(s, c->labels, width, SES_BIAS, "own.out");
}

/* [T, 2 size]: outputs of the forward and the backward direction. */
static ses_tensor *bidirectional(const ses_rnn_params r[2], ses_forward_ctx *p, ses_tensor *x,
                                 const ses_seqs *q)
{
    ses_tensor *direction[2];
    ses_rnn_type type = p->c->custom_head.kind == SES_CUSTOM_LSTM ? SES_RNN_LSTM : SES_RNN_GRU;
    for (int i = 0; i < 2; i++)
        direction[i] = ses_rnn(p->tape, ses_dense_run(p->tape, r[i].in, x, SES_ACT_NONE), r[i].w, r[i].b,
                               q->cu_seqlens, type, i == 1);
    return ses_concat(p->tape, 2, direction);
}

/* [B, 2 size]: final state of each direction, at the last and at the first token. */
static ses_tensor *final_states(ses_forward_ctx *p, ses_tensor *x, const ses_seqs *q)
{
    int64_t half = ses_cols(x) / 2;
    int32_t *last = ses_tape_host_alloc(p->tape, (size_t)q->seqs, sizeof *last);
    for (int64_t s = 0; last && s < q->seqs; s++) last[s] = q->host_cu_seqlens[s + 1] - 1;
    if (!last) return NULL;
    ses_tensor *left = ses_gather(p->tape, ses_columns(p->tape, x, 0, half),
                                  ses_tape_ints(p->tape, last, q->seqs)),
               *right =
                   ses_pool_rows(p->tape, ses_columns(p->tape, x, half, half), q->cu_seqlens, SES_POOL_FIRST);
    return ses_concat(p->tape, 2, (ses_tensor *const[]){ left, right });
}

ses_tensor *ses_custom_head_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                                bool per_token)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    double rate = ses_head_dropout_rate(c);
    ses_tensor *x = per_token || ses_custom_head_is_recurrent(c) ? at->x : ses_summary_gather(p, at);
    for (int i = 0; i < (int)c->custom_head.layers && x; i++) {
        x = ses_dropout(t, x, rate);
        x = ses_custom_head_is_recurrent(c) ? bidirectional(h->rnn[i], p, x, at->seqs)
                                            : ses_dense_run(t, h->custom[i], x, c->custom_head.act);
    }
    if (x && ses_custom_head_is_recurrent(c) && !per_token) x = final_states(p, x, at->seqs);
    return x ? ses_dropout(t, x, rate) : NULL;
}
