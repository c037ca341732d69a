/* ByteLevel as a normalizer: replaces every byte by a printable character. Printable Latin-1 bytes stay,
 * all others map to U+0100 and up. */
#include "base/alloc.h"
#include "text/stage/shared/transform.h"
#include "text/vocab/byte_chars.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_norm_byte_level; /* no settings */
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    (void)self;
    size_t capacity;
    if (!ses_mul_size(end - begin, 2, &capacity)) return ses_fail(e, SES_ENOMEM, "text too long");
    if (!ses_text_reserve(out, capacity + 4, e)) return false;
    for (size_t i = begin; i < end; i++)
        ses_text_put_char_reserved(out, ses_byte_char((uint8_t)in->byte[i]), in->from[i]);
    return true;
}

const ses_stage ses_stage_norm_byte_level = {
    .type = "ByteLevel", .kind = SES_NORMALIZER, .open = open, .normalize = normalize
};
