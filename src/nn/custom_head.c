/* Task heads of Sesame: a linear layer, an MLP, or bidirectional LSTM or GRU layers. */
#include "nn.h"

bool ses_custom_head_is_recurrent(const ses_config *c) { return c->custom_head.kind >= SES_CUSTOM_LSTM; }

ses_summary ses_custom_head_summary(const ses_config *c)
{
    /* the first token of a causal model attends to no other */
    bool blind = c->custom_head.kind && c->attention.causal && c->summary.kind == SES_SUMMARY_FIRST;
    switch (c->custom_head.pooling) {
    case SES_HEAD_POOL_FIRST: return SES_SUMMARY_FIRST;
    case SES_HEAD_POOL_MEAN: return SES_SUMMARY_MEAN;
    case SES_HEAD_POOL_MAX: return SES_SUMMARY_MAX;
    case SES_HEAD_POOL_LAST: return SES_SUMMARY_LAST_TOKEN;
    default: return blind ? SES_SUMMARY_LAST_TOKEN : c->summary.kind;
    }
}

static ses_rnn_type rnn_type(const ses_config *c)
{
    return c->custom_head.kind == SES_CUSTOM_LSTM ? SES_RNN_LSTM : SES_RNN_GRU;
}

void ses_custom_head_add(ses_head_params *h, ses_store *s, const ses_config *c, int64_t outputs)
{
    int64_t width = ses_layer_choice_width(c, ses_head_width(c));
    if (c->custom_head.norm) h->batch_norm[0] = ses_batch_norm_add(s, width, "own.norm.");
    for (int i = 0; i < (int)c->custom_head.layers; i++) {
        int64_t size = c->custom_head.sizes[i];
        if (ses_custom_head_is_recurrent(c)) {
            ses_rnn_shape k = { .type = rnn_type(c), .size = size, .width = width };
            h->rnn[i][0] = ses_rnn_add(s, &k, "own.rnn.", i, "");
            h->rnn[i][1] = ses_rnn_add(s, &k, "own.rnn.", i, "_reverse");
            width = 2 * size;
        } else {
            h->custom[i] = ses_dense_add(s, size, width, SES_BIAS, "own.dense.%d", i);
            width = size;
        }
    }
    h->out = ses_dense_add(s, outputs, width, SES_BIAS, "own.out");
}

ses_tensor *ses_custom_head_run(const ses_head_params *h, ses_forward_ctx *p, const ses_state *at,
                                bool per_token)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    double rate = ses_head_dropout_rate(c);
    ses_tensor *x = per_token || ses_custom_head_is_recurrent(c) ? at->x : ses_summary_gather(p, at);
    if (c->custom_head.normalize && !per_token) x = ses_l2_normalize(t, x);
    if (h->batch_norm[0].gain) x = ses_batch_norm_run(t, &h->batch_norm[0], x);
    for (int i = 0; i < (int)c->custom_head.layers && x; i++) {
        x = ses_dropout(t, x, rate);
        x = ses_custom_head_is_recurrent(c) ? ses_rnn_bidirectional(p, h->rnn[i], x, at->seqs, rnn_type(c))
                                            : ses_dense_run(t, h->custom[i], x, c->custom_head.act);
    }
    if (x && ses_custom_head_is_recurrent(c) && !per_token) x = ses_rnn_final_states(p, at->seqs, x);
    return x ? ses_dropout(t, x, rate) : NULL;
}
