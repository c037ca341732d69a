/* Layers of a frozen model: see layer_suffix.h. */
#include "layer_suffix.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

const char *ses_layer_suffix(const char *path)
{
    const char *at = strrchr(path, '@');
    if (!at++ || strchr(at, '/')) return NULL;
    bool number = *at == '-' || (*at && strspn(at, "0123456789") == strlen(at));
    bool all = !strncmp(at, "all", 3) && (!at[3] || at[3] == '+');
    return number || all || strchr(at, '+') || strstr(at, "..") ? at : NULL;
}

static bool fail_syntax(const char *suffix, ses_err *e)
{
    return ses_fail(e, SES_EUSAGE,
                    "layers \"%s\": expected a number, a range or all, as @-2, @-4..-1+concat or @all+mix; "
                    "several layers are combined by mean, sum, concat or mix",
                    ses_quoted_of(suffix, strlen(suffix)).s);
}

/* Reads a layer and makes it a number from 0. */
static bool read_layer(const char **at, int64_t depth, int64_t *layer, bool *in_range)
{
    char *end;
    if (**at != '-' && (**at < '0' || **at > '9')) return false;
    long long n = strtoll(*at, &end, 10);
    if (end == *at) return false;
    *at = end;
    *in_range = n <= depth && n >= -depth - 1;
    *layer = n < 0 ? depth + 1 + n : n;
    return true;
}

bool ses_layer_suffix_parse(const char *suffix, int64_t depth, ses_layer_choice *out, ses_err *e)
{
    const char *at = suffix;
    int64_t from = 1, to = depth;
    bool fits[2] = { true, true };
    *out = (ses_layer_choice){ .combine = SES_COMBINE_MEAN };
    if (!strncmp(at, "all", 3))
        at += 3;
    else if (!read_layer(&at, depth, &from, &fits[0]))
        return fail_syntax(suffix, e);
    else if (strncmp(at, "..", 2))
        to = from;
    else if (at += 2, !read_layer(&at, depth, &to, &fits[1]))
        return fail_syntax(suffix, e);
    size_t how = 0;
    if (*at == '+')
        while (how < SES_COMBINES && strcmp(at + 1, ses_combine_names[how])) how++;
    if (how == SES_COMBINES || (*at && *at != '+')) return fail_syntax(suffix, e);
    if (!fits[0] || !fits[1])
        return ses_fail(e, SES_EARG, "layers %s: the model has layers 0 to %lld, or -1 to %lld", suffix,
                        (long long)depth, (long long)(-depth - 1));
    if (to < from || to - from >= SES_MAX_LAYER_CHOICE)
        return ses_fail(e, SES_EARG, "layers %s: expected a rising range of at most %d layers", suffix,
                        SES_MAX_LAYER_CHOICE);
    for (; from <= to; from++) out->layer[out->n++] = from;
    out->combine = (ses_combine)how;
    return true;
}
