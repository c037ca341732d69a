/* Attention of a recurrent decoder over the encoder's states: dot product or general (Luong et al. 2015), or
 * additive (Bahdanau et al. 2015). One head; ses_attention computes the softmax and the sum. */
#include "nn/nn.h"

#include <stdio.h>

void ses_rnn_attention_add(ses_rnn_attention *a, ses_store *s, const ses_config *c, const char *prefix)
{
    char name[96];
    int64_t H = c->hidden;
    a->kind = c->rnn.attention;
    if (a->kind == SES_RNN_ATTENTION_NONE) return;
    bool additive = a->kind == SES_RNN_ATTENTION_ADDITIVE;
    if (additive || a->kind == SES_RNN_ATTENTION_GENERAL)
        a->query = ses_dense_add(s, H, H, SES_NO_BIAS, "%sattn.query", prefix);
    if (additive) a->key = ses_dense_add(s, H, H, SES_NO_BIAS, "%sattn.key", prefix);
    snprintf(name, sizeof name, "%sattn.v", prefix);
    if (additive) a->v = ses_store_add(s, name, SES_DIM(H), SES_INIT_FAN_IN);
    a->out = ses_dense_add(s, H, 2 * H, SES_NO_BIAS, "%sattn.out", prefix);
}

void ses_rnn_attention_begin(const ses_rnn_attention *a, ses_tape *t, ses_tensor *states,
                             ses_rnn_attention_keys *k)
{
    /* a copy: keys and values have gradients of their own */
    k->value = ses_scale(t, states, 1);
    k->key = a->key.w ? ses_dense_run(t, a->key, states, SES_ACT_NONE) : states;
}

ses_tensor *ses_rnn_attention_run(const ses_rnn_attention *a, ses_tape *t, const ses_rnn_attention_keys *k,
                                  ses_tensor *x, ses_tensor **probs)
{
    if (!x || !k->key) return NULL;
    ses_attention_inputs in = { .q = x,
                                .k = k->key,
                                .v = k->value,
                                .cu_seqlens_q = k->cu_seqlens_q,
                                .cu_seqlens_k = k->cu_seqlens_k,
                                .len_k = k->len_k };
    ses_attention_options o = {
        .heads = 1, .max_seqlen_q = k->max_seqlen_q, .max_seqlen_k = k->max_seqlen_k, .scale = 1
    };
    if (a->query.w) in.q = ses_dense_run(t, a->query, x, SES_ACT_NONE);
    if (a->v) { /* the scores are the bias; queries of zeros add nothing to them */
        in.bias = ses_additive_scores(t, in.q, k->key, a->v, k->cu_seqlens_q, k->cu_seqlens_k);
        const ses_real *zeros = ses_tape_host_alloc(t, (size_t)ses_count(x), sizeof *zeros);
        in.q = zeros ? ses_tape_input(t, zeros, x->dim) : NULL;
    }
    ses_tensor *context = ses_attention(t, &in, &o, probs);
    return ses_dense_run(t, a->out, ses_concat(t, 2, (ses_tensor *const[]){ context, x }), SES_ACT_TANH);
}
