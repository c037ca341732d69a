/* bilstm: bidirectional LSTM layers. The states of language models may enter between two of them (TagLM,
 * Peters et al. 2017). */
#include "tagger_encoder.h"

static bool check(ses_config *c, ses_err *e)
{
    if (!c->rnn.size) return ses_fail(e, SES_EFORMAT, "\"rnn_size\" is missing, expected 1 or more");
    if (!c->tagger.late_layer != !c->tagger.late_width)
        return ses_fail(e, SES_EFORMAT, "\"lm_layer\" and \"lm_size\": expected both or none");
    if (c->tagger.late_layer >= c->layers && c->tagger.late_layer)
        return ses_fail(e, SES_EFORMAT,
                        "\"lm_layer\" is %lld, expected less than \"num_hidden_layers\", %lld",
                        (long long)c->tagger.late_layer, (long long)c->layers);
    c->hidden = 2 * c->rnn.size;
    c->rnn.bidirectional = true;
    return true;
}

static void add(ses_tagger_params *g, ses_store *s, const ses_config *c, int64_t width)
{
    for (int i = 0; i < (int)c->layers; i++) {
        int64_t late =
            i && i == c->tagger.late_layer
                ? ses_tagger_mix_width(c, c->embed.modal_width - c->tagger.late_width, c->embed.modal_width)
                : 0;
        ses_rnn_shape shape = { .type = SES_RNN_LSTM,
                                .size = c->rnn.size,
                                .width = i ? c->hidden + late : width };
        g->rnn[i][0] = ses_rnn_add(s, &shape, "rnn.", i, "");
        g->rnn[i][1] = ses_rnn_add(s, &shape, "rnn.", i, "_reverse");
    }
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x,
                       ses_tensor *late)
{
    const ses_tagger_params *g = k->priv;
    for (int i = 0; i < (int)p->c->layers && x; i++) {
        if (late && i == p->c->tagger.late_layer)
            x = ses_concat(p->tape, 2, (ses_tensor *const[]){ x, late });
        x = ses_rnn_bidirectional(p, g->rnn[i], x, q, SES_RNN_LSTM);
        if (x && i + 1 < (int)p->c->layers) x = ses_stack_output_hidden(k, p, x, i + 1);
        ses_tape_wrap_error(p->tape, "layer %d", i);
    }
    return x;
}

const ses_tagger_encoder ses_tagger_bilstm = { .name = "bilstm", .check = check, .add = add, .run = run };
