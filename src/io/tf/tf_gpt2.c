/* GPT-2: model.ckpt with hparams.json. Weights are stored [1, in, out], which is transformers' layout,
 * too. */
#include "tf_family.h"

static const ses_tf_rule rules[] = {
    { "model/wte", "transformer.wte.weight" },
    { "model/wpe", "transformer.wpe.weight" },
    { "model/h#/ln_1/*", "transformer.h.#.ln_1.*" },
    { "model/h#/attn/c_attn/*", "transformer.h.#.attn.c_attn.*" },
    { "model/h#/attn/c_proj/*", "transformer.h.#.attn.c_proj.*" },
    { "model/h#/ln_2/*", "transformer.h.#.ln_2.*" },
    { "model/h#/mlp/c_fc/*", "transformer.h.#.mlp.c_fc.*" },
    { "model/h#/mlp/c_proj/*", "transformer.h.#.mlp.c_proj.*" },
    { "model/ln_f/*", "transformer.ln_f.*" },
};

static const ses_tf_class classes[] = { { NULL, "GPT2LMHeadModel" } };

static const char *const renamed[][2] = { { "n_vocab", "vocab_size" },
                                          { "n_ctx", "n_positions" },
                                          { NULL, NULL } };

/* The feed-forward width, and the last token of the vocabulary, which begins and ends a text. */
static bool put_config(const ses_tf_index *x, const ses_json *original, ses_json_writer *w, ses_err *e)
{
    const ses_tf_tensor *t = ses_tf_find(x, "model/wte");
    (void)original;
    if (t->rank != 2) return ses_fail(e, SES_EFORMAT, "variable \"model/wte\": expected two axes");
    ses_json_member_int(w, "bos_token_id", t->dim[0] - 1);
    ses_json_member_int(w, "eos_token_id", t->dim[0] - 1);
    return true;
}

static const ses_tf_size sizes[] = { { "n_inner", "model/h0/mlp/c_fc/b", 0 } };

const ses_tf_family ses_tf_gpt2 = {
    .name = "gpt2",
    .variable = "model/wte",
    .config = "hparams.json",
    .renamed = renamed,
    .constants = "{\"activation_function\": \"gelu_new\"}",
    .put_config = put_config,
    SES_TF_TABLE(size, n_sizes, sizes),
    SES_TF_TABLE(class, n_classes, classes),
    SES_TF_TABLE(rule, n_rules, rules),
};
