/* Removed attention heads of a stack ("pruned_heads" of config.json), and the widths of its feed-forward
 * blocks ("sesame_ffn_widths"). */
#include "nn.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"

#include <stdlib.h>
#include <string.h>

/* Marks the heads of one layer as removed: different numbers below the number of heads. */
static bool read_layer(const ses_json *list, const char *key, uint8_t *removed, int64_t heads, ses_err *e)
{
    int64_t n = (int64_t)ses_json_len(list), left = heads;
    if (ses_json_type_of(list) != SES_JSON_ARRAY || n > heads)
        return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": layer %s: expected a list of at most %lld heads",
                        key, (long long)heads);
    for (int64_t i = 0; i < n; i++) {
        int64_t head;
        bool ok = ses_json_int(ses_json_at(list, (size_t)i), &head) && head >= 0 && head < heads;
        if (!ok || removed[head])
            return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": layer %s: expected different heads, 0 to %lld",
                            key, (long long)heads - 1);
        removed[head] = 1;
    }
    for (int64_t h = 0; h < heads; h++) left -= removed[h];
    return left || ses_fail(e, SES_EUNSUPPORTED, "\"pruned_heads\": layer %s has no head left", key);
}

static bool read_layers(ses_removed_heads *r, const ses_json *all, int64_t depth, int64_t heads, ses_err *e)
{
    if (ses_json_type_of(all) == SES_JSON_NULL || !ses_json_len(all)) return true;
    if (ses_json_type_of(all) != SES_JSON_OBJECT)
        return ses_json_wrong_type("pruned_heads", all, "an object", e);
    r->removed = ses_alloc_array((size_t)(depth * heads), 1, e);
    r->left = r->removed ? ses_alloc_array((size_t)depth, sizeof *r->left, e) : NULL;
    if (!r->left) return false;
    for (size_t i = 0; i < ses_json_len(all); i++) {
        size_t n;
        const char *key = ses_json_key(all, i, &n);
        char *end;
        long long layer = strtoll(key, &end, 10);
        if (!n || *end || layer < 0 || layer >= depth)
            return ses_fail(e, SES_EFORMAT, "\"pruned_heads\": layer \"%s\", expected 0 to %lld", key,
                            (long long)depth - 1);
        if (!read_layer(ses_json_at(all, i), key, r->removed + layer * heads, heads, e)) return false;
    }
    for (int64_t l = 0; l < depth; l++) {
        r->left[l] = (int32_t)heads;
        for (int64_t h = 0; h < heads; h++) r->left[l] -= r->removed[l * heads + h];
    }
    return true;
}

bool ses_stack_heads_read(ses_stack *k, const ses_json *all, ses_err *e)
{
    static const char *const parts[] = { "encoder", "decoder", "cross" };
    const ses_json *part[SES_LEN(parts)];
    bool by_part = false, decoder = k->cross || k->cross_unused;
    for (size_t i = 0; i < SES_LEN(parts); i++) by_part |= (part[i] = ses_json_get(all, parts[i])) != NULL;
    if (!by_part) return read_layers(&k->pruned, all, k->depth, k->heads, e);
    return (read_layers(&k->pruned, part[decoder], k->depth, k->heads, e) ||
            ses_wrap(e, "%s", parts[decoder])) &&
           (!decoder || read_layers(&k->cross_pruned, part[2], k->depth, k->heads, e) ||
            ses_wrap(e, "%s", parts[2]));
}

void ses_stack_heads_free(ses_stack *k)
{
    ses_free(k->pruned.left), ses_free(k->pruned.removed);
    ses_free(k->cross_pruned.left), ses_free(k->cross_pruned.removed);
}

ses_tensor *ses_stack_layer_bias(const ses_stack *k, ses_tape *t, ses_tensor *bias, int64_t layer)
{
    int64_t left = ses_stack_heads(k, layer), row = 0;
    if (!bias || left == k->heads) return bias;
    /* a product with rows of the identity is exact, and has a gradient */
    ses_real *pick = ses_tape_host_alloc(t, (size_t)(left * k->heads), sizeof *pick);
    if (!pick) return NULL;
    for (int64_t h = 0; h < k->heads; h++)
        if (!k->pruned.removed[layer * k->heads + h]) pick[row++ * k->heads + h] = 1;
    return ses_linear(t, bias, ses_tape_input(t, pick, SES_DIM(left, k->heads)), NULL, SES_ACT_NONE,
                      SES_OUT_IN);
}

/* ---- widths ---- */

bool ses_stack_widths_read(ses_stack *k, const ses_json *widths, ses_err *e)
{
    if (ses_json_type_of(widths) != SES_JSON_ARRAY)
        return ses_json_wrong_type("sesame_ffn_widths", widths, "an array of integers", e);
    if ((int64_t)ses_json_len(widths) != k->depth)
        return ses_fail(e, SES_EFORMAT, "\"sesame_ffn_widths\" has %zu entries for %lld layers",
                        ses_json_len(widths), (long long)k->depth);
    k->ffn_widths = ses_alloc_array((size_t)k->depth, sizeof *k->ffn_widths, e);
    if (!k->ffn_widths) return false;
    for (int64_t i = 0; i < k->depth; i++) {
        int64_t n;
        if (!ses_json_int(ses_json_at(widths, (size_t)i), &n) || n < 1 || n > k->ffn)
            return ses_fail(e, SES_EFORMAT,
                            "\"sesame_ffn_widths\": entry %lld is not an integer from 1 to %lld, the width "
                            "before rows were removed",
                            (long long)i, (long long)k->ffn);
        k->ffn_widths[i] = (int32_t)n;
    }
    return true;
}

int64_t ses_stack_widest_ffn(const ses_stack *k)
{
    int64_t most = k->ffn_widths ? 0 : k->ffn;
    for (int64_t i = 0; k->ffn_widths && i < k->depth; i++)
        if (k->ffn_widths[i] > most) most = k->ffn_widths[i];
    return most;
}
