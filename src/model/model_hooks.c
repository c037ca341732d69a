/* Checks captures and edits of a request (sesame/hooks.h), and answers questions about parts of a model. */
#include "model_desc.h"

#include <math.h>

static const ses_stack *stack_of(const ses_model *m, ses_part part)
{
    const ses_stack *k = &m->stack[part == SES_PART_MAIN ? 0 : 1];
    return k->layer ? k : NULL;
}

int64_t ses_model_part_layers(const ses_model *m, ses_part part)
{
    const ses_stack *k = stack_of(m, part);
    return k ? k->depth : 0;
}

int64_t ses_model_part_heads(const ses_model *m, ses_part part, int64_t layer)
{
    const ses_stack *k = stack_of(m, part);
    if (!k || layer < 0 || layer >= k->depth) return 0;
    return part == SES_PART_CROSS ? ses_stack_cross_heads(k, layer) : ses_stack_heads(k, layer);
}

int64_t ses_model_part_neurons(const ses_model *m, ses_part part)
{
    const ses_stack *k = part == SES_PART_CROSS ? NULL : stack_of(m, part);
    return k ? ses_stack_widest_ffn(k) * (m->c.bottleneck.ffns ? m->c.bottleneck.ffns : 1) : 0;
}

int64_t ses_model_layer_neurons(const ses_model *m, ses_part part, int64_t layer)
{
    const ses_stack *k = part == SES_PART_CROSS ? NULL : stack_of(m, part);
    if (!k || layer < 0 || layer >= k->depth) return 0;
    return ses_stack_ffn(k, layer) * (m->c.bottleneck.ffns ? m->c.bottleneck.ffns : 1);
}

double ses_model_attention_scale(const ses_model *m, ses_part part, int64_t layer)
{
    const ses_stack *k = stack_of(m, part);
    if (!k) return 0;
    const ses_config *c = k->c;
    double size = (double)(c->attention.head_size ? c->attention.head_size : c->hidden / k->heads);
    double scale = c->attention.scale ? c->attention.scale : 1 / sqrt(size);
    return c->attention.scale_by_layer ? scale / (double)(layer + 1) : scale;
}

/* Recurrent and n-gram models have none. */
static bool has_transformer_layers(const ses_model *m)
{
    return ses_model_part_neurons(m, SES_PART_MAIN) > 0;
}

static bool fail_no_layers(const ses_model *m, const char *what, ses_err *e)
{
    return ses_fail(e, SES_EUNSUPPORTED,
                    "%s (%s) has no Transformer layers: %s need attention heads and neurons", m->class->name,
                    m->desc->name, what);
}

static bool check_part(const ses_model *m, ses_part part, const char *what, ses_err *e)
{
    if (part >= SES_PART_MAIN && part <= SES_PART_CROSS && stack_of(m, part)) return true;
    if (!has_transformer_layers(m)) return fail_no_layers(m, "edits", e);
    return ses_fail(e, SES_EUNSUPPORTED, "edit of a %s: %s (%s) has no %s", what, m->class->name,
                    m->desc->name, part == SES_PART_CROSS ? "cross attention" : "decoder");
}

/* index must be in first .. limit - 1. */
static bool check_index(int64_t index, int64_t first, int64_t limit, const char *what, ses_err *e)
{
    if (index >= first && index < limit) return true;
    return ses_fail(e, SES_EARG, "edit of %s %lld, expected %lld to %lld", what, (long long)index,
                    (long long)(first < 0 ? 0 : first), (long long)limit - 1);
}

static int64_t rows_of(const ses_batch *b, ses_part part)
{
    if (part != SES_PART_DECODER) return b->tokens;
    return b->target_cu_seqlens ? b->target_cu_seqlens[b->seqs] : b->tokens;
}

static bool check_heads_and_neurons(const ses_model *m, const ses_edits *x, ses_err *e)
{
    for (size_t i = 0; i < x->n_heads; i++) {
        const ses_head_edit *h = &x->heads[i];
        if (!check_part(m, h->part, "head", e) ||
            !check_index(h->layer, 0, ses_model_part_layers(m, h->part), "layer", e) ||
            !check_index(h->head, 0, ses_model_part_heads(m, h->part, h->layer), "head", e))
            return false;
    }
    for (size_t i = 0; i < x->n_neurons; i++) {
        const ses_neuron_edit *n = &x->neurons[i];
        if (!check_part(m, n->part, "neuron", e) ||
            !check_index(n->layer, 0, ses_model_part_layers(m, n->part), "layer", e) ||
            !check_index(n->neuron, 0, ses_model_layer_neurons(m, n->part, n->layer), "neuron", e))
            return false;
    }
    return true;
}

static bool check_rows(const ses_model *m, const ses_batch *b, const ses_edits *x, ses_err *e)
{
    for (size_t i = 0; i < x->n_hidden; i++) {
        const ses_hidden_edit *h = &x->hidden[i];
        if (h->part == SES_PART_CROSS)
            return ses_fail(e, SES_EARG, "edit of hidden states: the part must be main or decoder");
        if (!check_part(m, h->part, "hidden state", e) ||
            !check_index(h->layer, 0, ses_model_part_layers(m, h->part) + 1, "layer", e) ||
            !check_index(h->row, 0, rows_of(b, h->part), "row", e))
            return false;
    }
    for (size_t i = 0; i < x->n_values; i++) {
        const ses_value_edit *v = &x->values[i];
        if (!check_part(m, v->part, "value", e) ||
            !check_index(v->layer, SES_ALL_LAYERS, ses_model_part_layers(m, v->part), "layer", e) ||
            !check_index(v->row, 0, rows_of(b, v->part), "row", e))
            return false;
    }
    if (x->decoder_inputs_embeds && !check_part(m, SES_PART_DECODER, "decoder_inputs_embeds", e))
        return false;
    return true;
}

bool ses_model_check_hooks(const ses_model *m, const ses_batch *b, const ses_output_request *r, ses_err *e)
{
    const ses_edits *x = r->edits;
    bool captures = r->qkv || r->head_outputs || r->ffn_activations || r->embeddings;
    if (!captures && !x) return true;
    if (b->cache)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "captures and edits cannot use a KV cache: run the whole text in one pass");
    bool inside = r->qkv || r->head_outputs || r->ffn_activations;
    if (inside && !has_transformer_layers(m)) return fail_no_layers(m, "these captures", e);
    if (x && (x->n_heads || x->n_neurons || x->n_values) && !has_transformer_layers(m))
        return fail_no_layers(m, "edits", e);
    return !x || (check_heads_and_neurons(m, x, e) && check_rows(m, b, x, e));
}
