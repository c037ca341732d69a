/* Parses and reads a choice of layers. */
#include "layer_set.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static bool fail(const char *text, int64_t last, ses_err *e)
{
    return ses_fail(e, SES_EUSAGE,
                    "--layers %s: expected numbers and ranges between 0 and %d, such as 0-%d or 0,%d; "
                    "-1 is the last layer",
                    ses_quoted_of(text, strlen(text)).s, (int)last, (int)last, (int)last);
}

/* A layer number at *at, which moves past it; -1: none, or out of range. */
static int64_t number(const char **at, int64_t last)
{
    char *end;
    if (!strncmp(*at, "last", 4)) {
        *at += 4;
        return last;
    }
    bool negative = **at == '-';
    const char *digits = *at + negative;
    if (*digits < '0' || *digits > '9') return -1;
    long n = strtol(digits, &end, 10);
    *at = end;
    if (n > last + 1) return -1;
    int64_t layer = negative ? last + 1 - n : n;
    return layer <= last ? layer : -1;
}

bool ses_layer_set_parse(ses_layer_set *s, const char *text, int64_t last, ses_err *e)
{
    *s = (ses_layer_set){ .given = text != NULL };
    if (last >= SES_LAYER_SET_MAX)
        return ses_fail(e, SES_EUNSUPPORTED, "the model has more than %d layers", SES_LAYER_SET_MAX - 1);
    if (!text || !strcmp(text, "all")) {
        for (int64_t i = 0; i <= last; i++) s->bit[i / 64] |= UINT64_C(1) << (i % 64);
        return true;
    }
    const char *at = text;
    do {
        if (at != text) at++;
        int64_t from = number(&at, last), to = from;
        if (from >= 0 && *at == '-') at++, to = number(&at, last);
        if (from < 0 || to < from || (*at && *at != ',')) return fail(text, last, e);
        for (int64_t i = from; i <= to; i++) s->bit[i / 64] |= UINT64_C(1) << (i % 64);
    } while (*at == ',');
    return true;
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
