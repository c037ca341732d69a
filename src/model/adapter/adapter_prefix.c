/* Prefix tuning (Li and Liang 2021), and P-tuning v2 (Liu et al. 2022), which is prefix tuning of an encoder:
 * keys and values of virtual tokens in each layer. peft stores them as "prompt_embeddings", [virtual tokens,
 * layers * 2 * width], and shifts the positions of the text by the number of virtual tokens. A
 * projection is an MLP that computes them in training; files have the result and, to train it further, the
 * parameters of the MLP. In an encoder-decoder the decoder has them, and layer i reads the entries of layer
 * 2 i modulo the number of layers, as in peft. */
#include "virtual_adapter.h"

static bool supported(const ses_model *m, const ses_stack *k, ses_err *e)
{
    const char *reason = k->vtable                           ? "its layers have attention of their own"
                         : ses_config_scores_distances(k->c) ? "its scores depend on distances"
                         : k->pruned.left                    ? "it has pruned heads"
                         : k != m->stack && k->depth != m->stack[0].depth
                             ? "encoder and decoder have different numbers of layers"
                             : NULL;
    return !reason || ses_fail(e, SES_EUNSUPPORTED, "%s cannot have a prefix: %s", m->desc->name, reason);
}

static bool stacks(ses_adapter *a, ses_model *m, ses_err *e)
{
    int stack = m->stack[1].layer != NULL;
    ses_stack *k = &m->stack[stack];
    const ses_config *c = k->c;
    int64_t width = c->attention.head_size ? c->attention.head_size * k->heads : c->hidden;
    if (!supported(m, k, e) || !ses_virtual_check(a, m, stack, e)) return false;
    k->virt.tokens = a->o.virtual_tokens;
    k->virt.entries = 2 * k->depth, k->virt.stride = stack ? 4 : 2;
    return ses_virtual_declare(a, m, a->o.virtual_tokens, width, width * 2 * k->depth, &k->virt,
                               &k->virt.keys, e);
}

static void put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    ses_virtual_put(m, a, w);
    ses_json_member_bool(w, "prefix_projection", a->o.projection > 0);
    ses_json_member_int(w, "encoder_hidden_size", a->o.projection ? a->o.projection : m->c.hidden);
    ses_json_member_string(w, "init_weights", NULL);
}

const ses_adapter_desc ses_adapter_prefix = {
    .name = "prefix",
    .title = "prefix tuning",
    .settings = "virtual-tokens|projection",
    .python = SES_PEFT_PYTHON,
    .peft_type = "PREFIX_TUNING",
    .file = SES_PEFT_FILES,
    .prefix = "base_model.",
    .mlp = { 1, SES_ACT_TANH },
    .check = ses_virtual_check_options,
    .read = ses_virtual_read,
    .stacks = stacks,
    .tensor_name = ses_virtual_tensor_name,
    .save = ses_virtual_save,
    .put = put,
};
