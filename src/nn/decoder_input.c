#include "decoder_input.h"

#include "sesame/base.h"

#include <string.h>

bool ses_decoder_wraps(const ses_config *c) { return c->decoder.label_shift == SES_SHIFT_WRAP_LAST; }

bool ses_decoder_first(const ses_config *c, const int32_t *label, size_t n, int32_t *first, ses_err *e)
{
    while (n && label[n - 1] == SES_IGNORE_INDEX) n--;
    *first = ses_decoder_wraps(c) && n ? label[n - 1] : (int32_t)c->decoder.start_id;
    return (ses_decoder_wraps(c) && n) || c->decoder.start_id >= 0 ||
           ses_fail(
               e, SES_EARG,
               "config.json has no decoder_start_token_id, the first token that the decoder reads: add it");
}

bool ses_decoder_shift(const ses_config *c, const int32_t *label, size_t n, int32_t *to, ses_err *e)
{
    if (!n) return true;
    memmove(to + 1, label, (n - 1) * sizeof *to);
    return ses_decoder_first(c, label, n, to, e);
}

int64_t ses_decoder_position(const ses_config *c, int64_t i, int64_t n)
{
    return i + 1 < n ? i + 1 : ses_decoder_wraps(c) ? 0 : -1;
}

int32_t ses_decoder_filler(const ses_config *c)
{
    return c->decoder.start_id < 0 ? 0 : (int32_t)c->decoder.start_id;
}
