/* Layers behind the path of an embedding, which config.json of a tagger names. */
#include "fuzz.h"
#include "task/words/layer_suffix.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum { DEPTH = 12 };
    char text[256] = "dir@";
    ses_layer_choice k;
    ses_err e = { 0 };
    if (n > sizeof text - 5) n = sizeof text - 5;
    memcpy(text + 4, data, n);
    const char *suffix = ses_layer_suffix(text);
    MUST(!suffix || suffix[-1] == '@');
    bool ok = ses_layer_suffix_parse(suffix ? suffix : text + 4, DEPTH, &k, &e);
    MUST(ok || e.code == SES_EUSAGE || e.code == SES_EARG);
    MUST(!ok ||
         (k.n >= 1 && k.n <= DEPTH + 1 && k.combine >= SES_COMBINE_MEAN && k.combine <= SES_COMBINE_MIX));
    for (int64_t i = 0; ok && i < k.n; i++)
        MUST(k.layer[i] >= 0 && k.layer[i] <= DEPTH && (!i || k.layer[i] == k.layer[i - 1] + 1));
    return 0;
}
