/* EncoderDecoder (Rothe et al. 2020): an encoder and a causal language model with cross attention, each of a
 * type of its own: BERT2BERT, RoBERTa to GPT-2. config.json contains the configs of both. */
#include "base/json/json_helpers.h"
#include "model_desc.h"

#include <string.h>

/* The class of the decoder: the first with a causal LM head; NULL: none. */
static const ses_class *causal_class(const ses_model_desc *d)
{
    for (size_t i = 0; i < d->n_classes; i++)
        if (d->class[i].head[0].head == &ses_head_causal_lm) return &d->class[i];
    return NULL;
}

static bool read_part(ses_model *m, const ses_json *config, int i, ses_config *c, ses_err *e)
{
    static const char *const keys[] = { "encoder", "decoder" }, *const outer[] = { "encoder.", "decoder." };
    const ses_json *part = ses_json_get(config, keys[i]);
    if (ses_json_type_of(part) != SES_JSON_OBJECT) return ses_json_wrong_type(keys[i], part, "an object", e);
    const ses_model_desc *d = ses_config_find_model(part, e);
    if (!d || !ses_config_read(d, part, c, e)) return ses_wrap(e, "\"%s\"", keys[i]);
    m->part[i] = (ses_part_desc){ .desc = d, .outer = outer[i], .prefix = "" };
    bool own_stack = d->vtable && (i || d->vtable->run);
    if (d->encoder_decoder || own_stack || (i && !causal_class(d)))
        return ses_fail(e, SES_EUNSUPPORTED, "\"%s\": \"model_type\" \"%s\" cannot be %s", keys[i], d->name,
                        i ? "a decoder: expected bert, roberta, electra, gpt2 or a variant" : "an encoder");
    return true;
}

/* Special token ids: the keys of the whole model override the keys of the decoder. */
static bool read_ids(ses_config *c, const ses_json *config, ses_err *e)
{
    int64_t pad = -1;
    const ses_json *decoder = ses_json_get(config, "decoder");
    c->eos_id = c->decoder.start_id = -1;
    if (!ses_config_int(decoder, "bos_token_id", &c->decoder.start_id, e) ||
        !ses_config_int(decoder, "decoder_start_token_id", &c->decoder.start_id, e) ||
        !ses_config_int(config, "decoder_start_token_id", &c->decoder.start_id, e) ||
        !ses_config_int(decoder, "eos_token_id", &c->eos_id, e) ||
        !ses_config_int(config, "eos_token_id", &c->eos_id, e) ||
        !ses_config_int(config, "pad_token_id", &pad, e))
        return false;
    if (c->pad_id < 0) c->pad_id = pad;
    int64_t most = c->pad_id > c->eos_id ? c->pad_id : c->eos_id;
    if (c->decoder.start_id > most) most = c->decoder.start_id;
    return most < c->vocab ||
           ses_fail(e, SES_EARG, "token id %lld is outside the decoder's vocabulary of %lld", (long long)most,
                    (long long)c->vocab);
}

static bool read_parts(ses_model *m, const ses_json *config, ses_err *e)
{
    ses_config *c = &m->c;
    if (!read_part(m, config, 0, &m->source, e) || !read_part(m, config, 1, c, e)) return false;
    if (!c->attention.cross)
        return ses_fail(e, SES_EFORMAT,
                        "\"decoder\": \"add_cross_attention\" is not true: it cannot read the encoder");
    if (c->attention.pruned)
        return ses_fail(e, SES_EUNSUPPORTED, "\"decoder\": \"pruned_heads\" of a decoder are not supported");
    const ses_class *class = causal_class(m->part[1].desc);
    m->part[1].prefix = class->prefix ? class->prefix : m->part[1].desc->prefix;
    m->source.attention.cross = false;
    c->attention.causal = c->decoder.separate_embeddings = true;
    return ses_config_bool(config, "tie_encoder_decoder", &m->parts_tied, e) && read_ids(c, config, e);
}

static const ses_tensor_name tensors[] = { { "bridge.*", "/enc_to_dec_proj.*" } };

static const ses_class classes[] = {
    { .name = "EncoderDecoderStates" }, /* hidden states of both, for features */
    SES_CLASS("EncoderDecoderModel", SES_USE_HEAD(seq2seq_lm, "logits")),
    { .name = "EncoderDecoderEncoder", .encoder_only = true },
};

const ses_model_desc ses_model_encoder_decoder = {
    .name = "encoder-decoder",
    .prefix = "",
    .encoder_decoder = true,
    .read_parts = read_parts,
    .unread = "encoder.pooler.",
    .tensors = { SES_TABLE(tensors) },
    .class = classes,
    .n_classes = SES_LEN(classes),
};
