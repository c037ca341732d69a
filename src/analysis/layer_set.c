/* Parses and reads a choice of layers. */
#include "layer_set.h"

#include "base/opt_table.h"
#include "base/str.h"

#include <string.h>

static void add(ses_layer_set *s, int64_t layer) { s->bit[layer / 64] |= UINT64_C(1) << (layer % 64); }

bool ses_layer_set_parse(ses_layer_set *s, const char *text, int64_t last, ses_err *e)
{
    int64_t layer[SES_LAYER_SET_MAX];
    size_t n = 0;
    *s = (ses_layer_set){ .given = text != NULL };
    if (last >= SES_LAYER_SET_MAX)
        return ses_fail(e, SES_EUNSUPPORTED, "the model has more than %d layers", SES_LAYER_SET_MAX - 1);
    bool all = !text || !strcmp(text, "all"), ok = true;
    for (int64_t i = 0; all && i <= last; i++) add(s, i);
    if (all) return true;
    ok = ses_int_ranges_parse(strcmp(text, "last") ? text : "-1", layer, SES_LEN(layer), &n, NULL);
    for (size_t i = 0; ok && i < n; i++) {
        int64_t l = layer[i] < 0 ? last + 1 + layer[i] : layer[i];
        ok = l >= 0 && l <= last;
        if (ok) add(s, l);
    }
    return ok || ses_fail(e, SES_EUSAGE,
                          "--layers %s: expected numbers and ranges between 0 and %d, such as 0-%d or 0,-1; "
                          "-1: the last layer",
                          ses_quoted_of(text, strlen(text)).s, (int)last, (int)last);
}

bool ses_layer_set_has(const ses_layer_set *s, int64_t layer)
{
    return layer >= 0 && layer < SES_LAYER_SET_MAX && s->bit[layer / 64] >> (layer % 64) & 1;
}

int64_t ses_layer_set_count(const ses_layer_set *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < SES_LAYER_SET_MAX; i++) n += ses_layer_set_has(s, i);
    return n;
}

int64_t ses_layer_set_at(const ses_layer_set *s, int64_t i)
{
    for (int64_t layer = 0; layer < SES_LAYER_SET_MAX; layer++)
        if (ses_layer_set_has(s, layer) && !i--) return layer;
    return -1;
}
