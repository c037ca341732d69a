/* An encoder of (bidirectional) LSTM or GRU layers over token vectors: the models before BERT that classify
 * texts, tag words and embed sentences (InferSent: Conneau et al. 2017; Skip-Thought: Kiros et al. 2015).
 * Tensors have PyTorch's names. */
#include "recurrent_tables.h"

#include "base/alloc.h"
#include "nn/layer_hooks.h"

static const ses_config_key keys[] = {
    SES_KEY_REQUIRED("vocab_size", vocab, SES_MAX_VOCAB),
    SES_KEY_REQUIRED("embedding_size", embed.width, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("hidden_size", rnn.size, SES_MAX_WIDTH),
    SES_KEY_REQUIRED("num_hidden_layers", layers, SES_MAX_LAYERS),
    SES_KEY_INTEGER("pad_token_id", pad_id, -1, SES_MAX_VOCAB),
    SES_KEY_FLAG("bidirectional", rnn.bidirectional),
    SES_KEY_RATE("embedding_dropout", rnn.input_drop),
    SES_KEY_RATE("hidden_dropout", rnn.hidden_drop),
    SES_KEY_RATE("token_dropout", rnn.embed_drop),
    SES_KEY_RATE("weight_dropout", rnn.weight_drop),
    SES_KEY_RATE("classifier_dropout", dropout.head),
    SES_KEY_INTEGER("decoder_size", head.decoder_size, 0, SES_MAX_WIDTH),
    SES_KEY_NUMBER("initializer_range", init.range, 0, 100),
};

static bool post_read(ses_config *c, const ses_json *config, ses_err *e)
{
    static const char *const types[] = { "lstm", "gru" }, *const pooling[] = { "max", "mean", "ends" };
    static const ses_summary summary[] = { SES_SUMMARY_MAX, SES_SUMMARY_MEAN, SES_SUMMARY_ENDS };
    size_t type, pool;
    if (!ses_config_name(config, "rnn_type", types, SES_LEN(types), &type, e) ||
        !ses_config_name(config, "pooling", pooling, SES_LEN(pooling), &pool, e))
        return false;
    if (c->rnn.bidirectional && c->rnn.size > SES_MAX_WIDTH / 2)
        return ses_fail(e, SES_EARG, "\"hidden_size\" %lld: two directions allow at most %d",
                        (long long)c->rnn.size, SES_MAX_WIDTH / 2);
    c->rnn.one_way = !c->rnn.bidirectional;
    c->rnn.type = type ? SES_RNN_GRU : SES_RNN_LSTM;
    c->hidden = c->rnn.bidirectional ? 2 * c->rnn.size : c->rnn.size;
    c->summary.kind = summary[pool];
    if (c->summary.kind == SES_SUMMARY_ENDS && !c->rnn.bidirectional)
        c->summary.kind = SES_SUMMARY_LAST_TOKEN;
    c->position.max = SES_MAX_POSITIONS; /* no position table: any length */
    return true;
}

/* [layers][2]: forward and backward direction */
typedef ses_rnn_params layer_params[2];

static bool add(ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    layer_params *layer = k->priv = ses_alloc_array((size_t)k->depth, sizeof *layer, e);
    if (!layer) return false;
    k->token = ses_store_add(s, "embed.token", SES_DIM(c->vocab, c->embed.width), SES_INIT_NORMAL);
    ses_store_set_embedding(s, k->token);
    ses_rnn_shape shape = { .type = c->rnn.type, .size = c->rnn.size, .width = c->embed.width };
    for (int i = 0; i < (int)k->depth; i++, shape.width = c->hidden) {
        layer[i][0] = ses_rnn_add(s, &shape, "rnn.", i, "");
        if (c->rnn.bidirectional) layer[i][1] = ses_rnn_add(s, &shape, "rnn.", i, "_reverse");
    }
    return ses_store_ok(s, e);
}

static ses_tensor *run_layer(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x, int i)
{
    const ses_config *c = p->c;
    const ses_rnn_params *r = ((const layer_params *)k->priv)[i];
    ses_rnn_run run = { .o.type = c->rnn.type, .weight_drop = c->rnn.weight_drop };
    ses_tensor *y[2] = { ses_rnn_layer(p, &r[0], x, q, &run) };
    if (!c->rnn.bidirectional) return y[0];
    run.o.reverse = true;
    y[1] = ses_rnn_layer(p, &r[1], x, q, &run);
    return ses_concat(p->tape, 2, y);
}

static ses_tensor *run(const ses_stack *k, ses_forward_ctx *p, const ses_seqs *q)
{
    ses_tape *t = p->tape;
    const ses_config *c = p->c;
    bool rewinds = !p->captures && !p->request->hidden_states && !p->layer;
    ses_tape_mark start = ses_tape_get_mark(t);
    ses_tensor *x = ses_embed(t, 1, &k->token, (ses_tensor *const[]){ q->ids }, (int32_t)c->pad_id);
    if (p->hooks_embeds) x = ses_hook_embeds(p, q, x);
    x = ses_dropout_tokens(p, q, x, c->rnn.embed_drop, false);
    x = ses_dropout(t, x, c->rnn.input_drop);
    for (int i = 0; i < (int)k->depth; i++) {
        x = ses_stack_output_hidden(k, p, x, i);
        if (i) x = ses_dropout(t, x, c->rnn.hidden_drop);
        x = run_layer(k, p, q, x, i);
        if (rewinds) x = ses_tape_rewind(t, start, x);
        ses_tape_wrap_error(t, "layer %d", i);
    }
    return ses_stack_output_hidden(k, p, x, (int)k->depth);
}

static const ses_stack_vtable vtable = { .add = add, .run = run };

static const ses_tensor_name tensors[] = {
    { "embed.token", "embeddings.weight" },
    { "rnn.*", "rnn.*" },
    { "classify.out.*", "/classifier.*" },
    { "choice.out.*", "/classifier.*" },
    { "tag.*", "/classifier.*" },
    { "span.*", "/qa_outputs.*" },
    { "neighbor.0.*", "/previous_decoder.*" },
    { "neighbor.1.*", "/next_decoder.*" },
    { "neighbor.out.*", "/decoder.*" },
};

static const ses_class classes[] = {
    { .name = "RnnEncoderModel" },
    SES_CLASS("RnnEncoderForSequenceClassification", SES_USE_HEAD(sequence_classification, "logits")),
    SES_CLASS("RnnEncoderForTokenClassification", SES_USE_HEAD(token_classification, "logits")),
    SES_CLASS("RnnEncoderForQuestionAnswering", SES_USE_HEAD(question_answering, "")),
    SES_CLASS("RnnEncoderForNeighborSentences", SES_USE_PAIR_HEAD(neighbor_sentences, "sentence_vectors")),
    SES_CLASS("RnnEncoderForMultipleChoice", SES_USE_HEAD(multiple_choice, "logits")),
};

const ses_model_desc ses_model_rnn_encoder = {
    .name = "rnn-encoder",
    .prefix = "encoder.",
    .vtable = &vtable,
    .defaults = { SES_RECURRENT_DEFAULTS, .rnn.bidirectional = true, .dropout.head = 0.5, .init.range = 0.1,
                  .summary.no_proj = true },
    .keys = { SES_TABLE(keys) },
    .post_read = post_read,
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
