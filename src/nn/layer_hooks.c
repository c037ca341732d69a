/* Captures and edits inside layers. A captured tensor with gradient is a reshaped view of its own, because
 * ops may overwrite the gradient of their output. */
#include "layer_hooks.h"

void ses_hooks_begin(ses_forward_ctx *p)
{
    const ses_output_request *r = p->request;
    const ses_edits *e = r->edits;
    bool edits_layers = e && (e->n_heads || e->n_neurons || e->n_hidden || e->n_values);
    bool captures_layers =
        r->qkv || r->head_outputs || r->ffn_activations || (r->capture_gradients && r->hidden_states);
    p->hooked = edits_layers || captures_layers;
    p->captures = captures_layers || r->embeddings;
    p->hooks_embeds = r->embeddings || (e && (e->inputs_embeds || e->decoder_inputs_embeds));
}

ses_layer_site ses_layer_site_of(const ses_stack *k, int i)
{
    ses_axis axis = k->cross ? SES_PER_TARGET : SES_PER_TOKEN;
    return (ses_layer_site){ .prefix = k->outputs,
                             .part = k->cross ? SES_PART_DECODER : SES_PART_MAIN,
                             .layer = i,
                             .heads = i < (int)k->depth ? ses_stack_heads(k, i) : k->heads,
                             .queries = axis,
                             .keys = axis };
}

static ses_tensor *with_gradient(ses_forward_ctx *p, ses_tensor *x)
{
    if (!p->request->capture_gradients || !x) return x;
    ses_tensor *y = ses_reshape(p->tape, x, x->dim);
    if (y) y->requires_grad = y->keep_grad = true;
    return y;
}

static ses_tensor *capture(ses_forward_ctx *p, const ses_layer_site *at, ses_axis axis, const char *name,
                           ses_tensor *x)
{
    x = with_gradient(p, x);
    ses_forward_output(p, axis, x, "%s%s.%d", at->prefix, name, at->layer);
    return x;
}

/* ---- attention ---- */

static ses_tensor *part_of(ses_tape *t, ses_tensor *x, ses_qkv_layout layout, int64_t heads, int64_t i)
{
    if (!x) return NULL;
    int64_t rows = ses_rows(x), C = ses_cols(x) / 3;
    if (layout == SES_QKV_FUSED) return ses_columns(t, x, i * C, C);
    ses_tensor *by_head = ses_reshape(t, x, SES_DIM(rows * heads, 3 * C / heads));
    return ses_reshape(t, ses_columns(t, by_head, i * C / heads, C / heads), SES_DIM(rows, C));
}

void ses_hook_split(ses_forward_ctx *p, ses_attention_inputs *in, ses_qkv_layout *layout, int64_t heads)
{
    ses_tape *t = p->tape;
    ses_tensor *all = in->q;
    if (*layout != SES_QKV_SEPARATE) {
        in->q = part_of(t, all, *layout, heads, 0);
        if (!in->k) in->k = part_of(t, all, *layout, heads, 1), in->v = part_of(t, all, *layout, heads, 2);
        *layout = SES_QKV_SEPARATE;
    }
    if (in->k && !in->v) { /* keys | values */
        ses_tensor *both = in->k;
        int64_t C = ses_cols(both) / 2;
        in->k = ses_columns(t, both, 0, C), in->v = ses_columns(t, both, C, C);
    }
    in->allow_i8 = false;
}

static bool is_at(const ses_layer_site *at, ses_part part, int64_t layer)
{
    return part == at->part && (layer == at->layer || layer == SES_ALL_LAYERS);
}

static ses_tensor *edit_values(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *v)
{
    const ses_edits *e = p->request->edits;
    ses_real *factor = NULL;
    for (size_t i = 0; e && v && i < e->n_values; i++) {
        const ses_value_edit *x = &e->values[i];
        if (!is_at(at, x->part, x->layer)) continue;
        int64_t row = at->key_of_token ? at->key_of_token[x->row] : x->row;
        if (!factor) {
            factor = ses_tape_host_alloc(p->tape, (size_t)ses_rows(v), sizeof *factor);
            for (int64_t r = 0; factor && r < ses_rows(v); r++) factor[r] = 1;
        }
        if (factor && row < ses_rows(v)) factor[row] *= (ses_real)x->factor;
    }
    return factor ? ses_scale_rows(p->tape, v, ses_tape_input(p->tape, factor, SES_DIM(ses_rows(v)))) : v;
}

void ses_hook_qkv(ses_forward_ctx *p, const ses_layer_site *at, ses_attention_inputs *in,
                  ses_qkv_layout *layout)
{
    ses_hook_split(p, in, layout, at->heads);
    in->v = edit_values(p, at, in->v);
    if (!p->request->qkv) return;
    in->q = capture(p, at, at->queries, "queries", in->q);
    in->k = capture(p, at, at->keys, "keys", in->k);
    in->v = capture(p, at, at->keys, "values", in->v);
}

/* x by column times gain plus bias; gain starts with ones. */
typedef struct column_edit {
    ses_real *gain, *bias;
} column_edit;

static bool column_edit_begin(ses_forward_ctx *p, column_edit *c, const ses_tensor *x)
{
    if (c->gain || !x) return c->gain != NULL;
    int64_t n = ses_cols(x);
    c->gain = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *c->gain);
    c->bias = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *c->bias);
    if (!c->bias) c->gain = NULL;
    for (int64_t i = 0; c->gain && i < n; i++) c->gain[i] = 1;
    return c->gain != NULL;
}

static ses_tensor *column_edit_run(ses_forward_ctx *p, const column_edit *c, ses_tensor *x, bool with_bias)
{
    if (!c->gain) return x;
    const int64_t *dim = SES_DIM(ses_cols(x));
    return ses_affine(p->tape, x, ses_tape_input(p->tape, c->gain, dim),
                      with_bias ? ses_tape_input(p->tape, c->bias, dim) : NULL);
}

ses_tensor *ses_hook_head_outputs(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x)
{
    const ses_edits *e = p->request->edits;
    column_edit c = { NULL };
    int64_t D = ses_cols(x) / at->heads;
    for (size_t i = 0; e && i < e->n_heads; i++) {
        const ses_head_edit *h = &e->heads[i];
        if (!is_at(at, h->part, h->layer) || !column_edit_begin(p, &c, x)) continue;
        for (int64_t j = h->head * D; j < (h->head + 1) * D; j++) c.gain[j] *= (ses_real)h->factor;
    }
    x = column_edit_run(p, &c, x, false);
    return p->request->head_outputs ? capture(p, at, at->queries, "head_outputs", x) : x;
}

/* ---- feed-forward ---- */

ses_tensor *ses_hook_ffn_block(ses_forward_ctx *p, const ses_layer_site *at, int64_t block, ses_tensor *x)
{
    const ses_edits *e = p->request->edits;
    column_edit c = { NULL };
    for (size_t i = 0; e && i < e->n_neurons; i++) {
        const ses_neuron_edit *n = &e->neurons[i];
        int64_t col = n->neuron - block * ses_cols(x);
        if (!is_at(at, n->part, n->layer) || col < 0 || col >= ses_cols(x)) continue;
        if (column_edit_begin(p, &c, x)) c.gain[col] = 0, c.bias[col] = (ses_real)n->value;
    }
    return column_edit_run(p, &c, x, true);
}

void ses_hook_ffn_blocks(ses_forward_ctx *p, const ses_layer_site *at, int64_t n, ses_tensor *const x[])
{
    if (!p->request->ffn_activations || !ses_tape_ok(p->tape, NULL)) return;
    if (p->request->capture_gradients && n > 1)
        ses_tape_fail(p->tape, SES_EUNSUPPORTED,
                      "gradients of ffn_activations: this model has %lld feed-forward blocks a layer, "
                      "one after the other",
                      (long long)n);
    ses_tensor *all = x[0];
    for (int64_t i = 1; i < n; i++) all = ses_concat(p->tape, 2, (ses_tensor *const[]){ all, x[i] });
    ses_forward_output(p, at->queries, all, "%sffn_activations.%d", at->prefix, at->layer);
}

ses_tensor *ses_hook_ffn(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x)
{
    x = ses_hook_ffn_block(p, at, 0, x);
    return p->request->ffn_activations ? capture(p, at, at->queries, "ffn_activations", x) : x;
}

/* ---- hidden states and embeddings ---- */

ses_tensor *ses_hook_hidden(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x)
{
    const ses_edits *e = p->request->edits;
    int64_t rows = ses_rows(x), C = ses_cols(x), n = 0;
    int32_t *from = NULL;
    ses_real *vector = NULL;
    for (size_t i = 0; e && x && i < e->n_hidden; i++) {
        const ses_hidden_edit *h = &e->hidden[i];
        if (!is_at(at, h->part, h->layer) || h->row >= rows) continue;
        if (!from) {
            from = ses_tape_host_alloc(p->tape, (size_t)rows, sizeof *from);
            vector = ses_tape_host_alloc(p->tape, e->n_hidden * (size_t)C, sizeof *vector);
            if (!from || !vector) return NULL;
            for (int64_t r = 0; r < rows; r++) from[r] = (int32_t)r;
        }
        for (int64_t j = 0; j < C; j++) vector[n * C + j] = h->vector[j];
        from[h->row] = (int32_t)(rows + n++);
    }
    if (from)
        x = ses_gather(p->tape, ses_append_rows(p->tape, x, ses_tape_input(p->tape, vector, SES_DIM(n, C))),
                       ses_tape_ints(p->tape, from, rows));
    return p->request->hidden_states ? with_gradient(p, x) : x;
}

ses_tensor *ses_hook_embeds(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x)
{
    const ses_edits *e = p->request->edits;
    bool target = q == &p->target;
    const ses_real *given = !e ? NULL : target ? e->decoder_inputs_embeds : e->inputs_embeds;
    if (given && x) x = ses_tape_input(p->tape, given, x->dim);
    if (!p->request->embeddings) return x;
    x = with_gradient(p, x);
    ses_forward_output(p, target ? SES_PER_TARGET : SES_PER_TOKEN, x, "%sinputs_embeds",
                       target ? "decoder_" : "");
    return x;
}
