/* Removed attention heads: "pruned_heads" of config.json, as in transformers: {"layer": [heads], ...},
 * counted before the removal. */
#include "model_desc.h"

#include "base/json/json_helpers.h"

#include <stdlib.h>

const char *ses_pruned_heads_unsupported(const ses_model_desc *d, const ses_config *c)
{
    if (d->encoder_decoder)
        return "the key does not tell the heads of encoder, decoder and cross attention apart";
    if (d->vtable) return "its layers have attention of their own";
    if (c->layer_groups) return "its layers share their weights";
    if (c->rel_bias.buckets || c->position.kind == SES_POS_ALIBI)
        return "its position biases have a column for each head";
    return NULL;
}

/* Heads of one layer: different numbers below the number of heads. */
static bool read_layer(const ses_json *list, const char *key, ses_config *c, int64_t layer, ses_err *e)
{
    int64_t heads = c->attention.heads, n = (int64_t)ses_json_len(list);
    if (ses_json_type_of(list) != SES_JSON_ARRAY || n > heads)
        return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": layer %s: expected a list of at most %lld heads",
                        key, (long long)heads);
    for (int64_t i = 0; i < n; i++) {
        int64_t head, other;
        bool ok = ses_json_int(ses_json_at(list, (size_t)i), &head) && head >= 0 && head < heads;
        for (int64_t j = 0; ok && j < i; j++)
            ok = !ses_json_int(ses_json_at(list, (size_t)j), &other) || other != head;
        if (!ok)
            return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": layer %s: expected different heads, 0 to %lld",
                            key, (long long)heads - 1);
    }
    if (n == heads) return ses_fail(e, SES_EUNSUPPORTED, "\"pruned_heads\": layer %s has no head left", key);
    if (n) c->attention.layer_heads[layer] = (int16_t)(heads - n);
    return true;
}

bool ses_pruned_heads_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e)
{
    const ses_json *all = ses_json_get(config, "pruned_heads");
    if (ses_json_type_of(all) == SES_JSON_NULL || !ses_json_len(all)) return true;
    if (ses_json_type_of(all) != SES_JSON_OBJECT)
        return ses_json_wrong_type("pruned_heads", all, "an object", e);
    const char *why = ses_pruned_heads_unsupported(d, c);
    if (why) return ses_fail(e, SES_EUNSUPPORTED, "\"pruned_heads\" of model_type \"%s\": %s", d->name, why);
    for (size_t i = 0; i < ses_json_len(all); i++) {
        size_t n;
        const char *key = ses_json_key(all, i, &n);
        char *end;
        long long layer = strtoll(key, &end, 10);
        if (!n || *end || layer < 0 || layer >= c->layers)
            return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": layer \"%s\", expected 0 to %lld", key,
                            (long long)c->layers - 1);
        if (!read_layer(ses_json_at(all, i), key, c, layer, e)) return false;
        c->attention.pruned |= c->attention.layer_heads[layer] > 0;
    }
    if (c->attention.pruned && !c->attention.head_size)
        c->attention.head_size = c->hidden / c->attention.heads;
    return true;
}
