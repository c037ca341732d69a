/* Removed attention heads: "pruned_heads" of config.json, as in transformers: {"layer": [heads], ...}. Heads
 * are counted before the removal. Encoder-decoders have one such object each for "encoder", "decoder" and
 * "cross"; transformers reads none for them. src/nn/stack_heads.c reads the lists. */
#include "model/model_desc.h"

#include "base/json/json_helpers.h"

#include <string.h>

const char *ses_pruned_heads_unsupported(const ses_model_desc *d, const ses_config *c)
{
    if (d->read_parts) return "its encoder and decoder are models of their own";
    if (d->vtable) return "its layers have attention of their own";
    if (c->layer_groups) return "its layers share their weights";
    if (d->encoder_decoder && !c->attention.head_size && c->decoder.heads != c->attention.heads)
        return "encoder and decoder have heads of different sizes";
    if (c->attention.kv_heads && c->attention.kv_heads != c->attention.heads)
        return "several heads share their keys and values";
    if (c->attention.qk_norm == SES_QK_NORM_ALL) return "queries and keys are normalized over all heads";
    return NULL;
}

bool ses_pruned_heads_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e)
{
    static const char *const parts[] = { "encoder", "decoder", "cross" };
    const ses_json *all = ses_json_get(config, "pruned_heads");
    if (ses_json_type_of(all) == SES_JSON_NULL || !ses_json_len(all)) return true;
    if (ses_json_type_of(all) != SES_JSON_OBJECT)
        return ses_json_wrong_type("pruned_heads", all, "an object", e);
    const char *why = ses_pruned_heads_unsupported(d, c);
    if (why) return ses_fail(e, SES_EUNSUPPORTED, "\"pruned_heads\" of model_type \"%s\": %s", d->name, why);
    for (size_t i = 0; i < ses_json_len(all); i++) {
        const char *key = ses_json_key(all, i, NULL);
        bool known = false;
        for (size_t k = 0; k < SES_LEN(parts); k++) known |= !strcmp(key, parts[k]);
        if (known != d->encoder_decoder)
            return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": \"%s\", expected %s", key,
                            known ? "the number of a layer" : "\"encoder\", \"decoder\" or \"cross\"");
    }
    c->attention.pruned = all;
    c->attention.kv_heads = 0; /* as many as heads, in each layer */
    if (!c->attention.head_size) c->attention.head_size = c->hidden / c->attention.heads;
    return true;
}
