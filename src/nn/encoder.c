#include "nn.h"

#include "base/alloc.h"

static ses_layer layer_add(ses_store *s, const ses_config *c, int i)
{
    int64_t C = c->hidden;
    ses_layer l;
    l.query = ses_dense_add(s, C, C, "layer.%d.attn.query", i);
    l.key = ses_dense_add(s, C, C, "layer.%d.attn.key", i);
    l.value = ses_dense_add(s, C, C, "layer.%d.attn.value", i);
    l.out = ses_dense_add(s, C, C, "layer.%d.attn.out", i);
    l.attn_norm = ses_norm_add(s, C, "layer.%d.attn.norm", i);
    l.up = ses_dense_add(s, c->ffn, C, "layer.%d.ffn.up", i);
    l.down = ses_dense_add(s, C, c->ffn, "layer.%d.ffn.down", i);
    l.ffn_norm = ses_norm_add(s, C, "layer.%d.ffn.norm", i);
    return l;
}

bool ses_encoder_add(ses_encoder *n, ses_store *s, const ses_config *c, bool pooler, ses_err *e)
{
    int64_t C = c->hidden;
    n->layer = ses_alloc_array((size_t)c->layers, sizeof *n->layer, e);
    if (!n->layer) return false;
    n->token = ses_store_add(s, "embed.token", SES_DIM(c->vocab, C), SES_INIT_NORMAL);
    n->position = ses_store_add(s, "embed.position", SES_DIM(c->positions, C), SES_INIT_NORMAL);
    n->segment = ses_store_add(s, "embed.segment", SES_DIM(c->segments, C), SES_INIT_NORMAL);
    n->embed_norm = ses_norm_add(s, C, "embed.norm");
    for (int i = 0; i < (int)c->layers; i++) n->layer[i] = layer_add(s, c, i);
    if (pooler) n->pooler = ses_dense_add(s, C, C, "pooler");
    return ses_store_ok(s, e);
}

void ses_encoder_free(ses_encoder *n) { ses_free(n->layer); }

static ses_tensor *attend(const ses_layer *l, ses_pass *p, ses_tensor *x, int i)
{
    ses_tape *t = p->tape;
    ses_attention_options o = {
        .heads = p->c->heads, .max_q = p->longest, .max_k = p->longest, .drop = p->c->drop_attention
    };
    ses_tensor *probs, *q = ses_dense_run(t, l->query, x, SES_ACT_NONE);
    ses_tensor *k = ses_dense_run(t, l->key, x, SES_ACT_NONE),
               *v = ses_dense_run(t, l->value, x, SES_ACT_NONE);
    ses_attention_inputs in = { .q = q, .k = k, .v = v, .cu_q = p->cu, .cu_k = p->cu };
    ses_tensor *y = ses_attention(t, &in, &o, p->want->attentions ? &probs : NULL);
    if (p->want->attentions) ses_pass_output(p, SES_PER_PAIR, probs, "attentions.%d", i);
    return ses_dropout(t, ses_dense_run(t, l->out, y, SES_ACT_NONE), p->c->drop);
}

static ses_tensor *feed_forward(const ses_layer *l, ses_pass *p, ses_tensor *x)
{
    ses_tensor *h = ses_dense_run(p->tape, l->up, x, p->c->act);
    return ses_dropout(p->tape, ses_dense_run(p->tape, l->down, h, SES_ACT_NONE), p->c->drop);
}

static ses_tensor *layer_run(const ses_layer *l, ses_pass *p, ses_tensor *x, int i)
{
    x = ses_norm_run(p->tape, l->attn_norm, attend(l, p, x, i), x, p->c->norm_eps);
    return ses_norm_run(p->tape, l->ffn_norm, feed_forward(l, p, x), x, p->c->norm_eps);
}

static ses_tensor *embed(const ses_encoder *n, ses_pass *p)
{
    ses_tensor *table[] = { n->token, n->position, n->segment },
               *id[] = { p->ids, p->positions, p->segments };
    ses_tensor *x = ses_embed(p->tape, 3, table, id, (int32_t)p->c->pad);
    x = ses_norm_run(p->tape, n->embed_norm, x, NULL, p->c->norm_eps);
    return ses_dropout(p->tape, x, p->c->drop);
}

ses_tensor *ses_encoder_run(const ses_encoder *n, ses_pass *p)
{
    ses_tape *t = p->tape;
    bool keep = p->want->hidden_states,
         lean = !keep && !p->want->attentions; /* one layer's memory is enough */
    ses_tape_mark start = ses_tape_now(t);
    ses_tensor *x = embed(n, p);
    if (lean) x = ses_tape_rewind(t, start, x);
    if (keep) ses_pass_output(p, SES_PER_TOKEN, x, "hidden_states.0");
    for (int i = 0; i < (int)p->c->layers; i++) {
        x = layer_run(&n->layer[i], p, x, i);
        if (lean) x = ses_tape_rewind(t, start, x);
        if (keep) ses_pass_output(p, SES_PER_TOKEN, x, "hidden_states.%d", i + 1);
        ses_tape_where(t, "layer %d", i);
    }
    return x;
}

ses_tensor *ses_pooler_run(const ses_encoder *n, ses_pass *p, ses_tensor *x)
{
    return ses_dense_run(p->tape, n->pooler, ses_pool_rows(p->tape, x, p->cu, SES_POOL_FIRST), SES_ACT_TANH);
}
