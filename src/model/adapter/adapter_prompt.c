/* Prompt tuning (Lester et al. 2021): vectors of virtual tokens before the token vectors of each text. peft
 * stores them as "prompt_embeddings"; for an encoder-decoder twice as many, of which the encoder reads the
 * first half. Positions continue over the virtual tokens, and heads that read the first token read a virtual
 * one, as in peft. P-tuning (Liu et al. 2021) computes them by an MLP in training; its files have the result
 * and, to train it further, the MLP's parameters. peft has an LSTM instead of the MLP, too, and writes the
 * result alone: such vectors are read, trained further as they are, and written with the same config. */
#include "virtual_adapter.h"

#include "base/str.h"

#include <string.h>

static bool stacks(ses_adapter *a, ses_model *m, ses_err *e)
{
    const ses_config *c = m->stack[0].c;
    ses_stack *k = &m->stack[0];
    int64_t parts = m->stack[1].layer ? 2 : 1, width = c->embed.width ? c->embed.width : c->hidden;
    if (k->vtable && (k->vtable->run || k->vtable->embed))
        return ses_fail(e, SES_EUNSUPPORTED, "%s cannot have virtual tokens: it embeds tokens in its own way",
                        m->desc->name);
    if (!ses_virtual_check(a, m, 0, e)) return false;
    k->virt.tokens = a->o.virtual_tokens;
    return ses_virtual_declare(a, m, parts * a->o.virtual_tokens, width, width, &k->virt, &k->virt.embed, e);
}

static void put(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    ses_virtual_put(m, a, w);
    ses_json_member_string(w, "prompt_tuning_init", "RANDOM");
    ses_json_member_string(w, "prompt_tuning_init_text", NULL);
    ses_json_member_string(w, "tokenizer_kwargs", NULL);
    ses_json_member_string(w, "tokenizer_name_or_path", NULL);
}

const ses_adapter_desc ses_adapter_prompt = {
    .name = "prompt",
    .title = "prompt tuning",
    .settings = "virtual-tokens",
    .python = SES_PEFT_PYTHON,
    .peft_type = "PROMPT_TUNING",
    .file = SES_PEFT_FILES,
    .prefix = "base_model.",
    .check = ses_virtual_check_options,
    .read = ses_virtual_read,
    .stacks = stacks,
    .tensor_name = ses_virtual_tensor_name,
    .save = ses_virtual_save,
    .put = put,
};

static bool read_encoder(ses_adapter *a, const ses_json *c, ses_err *e)
{
    const char *type = ses_json_string(ses_json_get(c, "encoder_reparameterization_type"), NULL);
    a->by_lstm = type && !strcmp(type, "LSTM");
    if (type && !a->by_lstm && strcmp(type, "MLP"))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "\"encoder_reparameterization_type\" is \"%s\", expected \"MLP\" or \"LSTM\"",
                        ses_quoted_of(type, strlen(type)).s);
    ses_json_int(ses_json_get(c, "encoder_hidden_size"), &a->encoder_size);
    return ses_virtual_read(a, c, e);
}

static void put_encoder(const ses_model *m, const ses_adapter *a, ses_json_writer *w)
{
    ses_virtual_put(m, a, w);
    ses_json_member_string(w, "encoder_reparameterization_type", a->by_lstm ? "LSTM" : "MLP");
    ses_json_member_int(w, "encoder_hidden_size", a->o.projection ? a->o.projection : a->encoder_size);
    ses_json_member_int(w, "encoder_num_layers", 2);
    ses_json_member_real(w, "encoder_dropout", 0);
}

const ses_adapter_desc ses_adapter_ptuning = {
    .name = "ptuning",
    .title = "P-tuning",
    .settings = "virtual-tokens|projection",
    .python = SES_PEFT_PYTHON,
    .projection = 128,
    .peft_type = "P_TUNING",
    .file = SES_PEFT_FILES,
    .prefix = "base_model.",
    .mlp = { 2, SES_ACT_RELU },
    .check = ses_virtual_check_options,
    .read = read_encoder,
    .stacks = stacks,
    .tensor_name = ses_virtual_tensor_name,
    .save = ses_virtual_save,
    .put = put_encoder,
};
