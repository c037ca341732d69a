/* Every byte becomes a printable character: itself where it is one in Latin-1, else one from U+0100 on. */
#include "base/alloc.h"
#include "transform.h"

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    (void)settings, (void)mem, (void)e;
    return (void *)&ses_stage_norm_byte_level; /* no settings */
}

static uint32_t visible(uint8_t b)
{
    if (b <= ' ') return 0x100u + b;
    if (b >= 0x7F && b <= 0xA0) return 0x121u + (b - 0x7Fu);
    return b == 0xAD ? 0x143 : b;
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    (void)self;
    size_t room;
    if (!ses_mul_size(end - begin, 2, &room)) return ses_fail(e, SES_ENOMEM, "text too long");
    if (!ses_text_reserve(out, room + 4, e)) return false;
    for (size_t i = begin; i < end; i++) ses_text_add(out, visible((uint8_t)in->byte[i]), in->from[i]);
    return true;
}

const ses_stage ses_stage_norm_byte_level = {
    .type = "ByteLevel", .kind = SES_NORMALIZER, .open = open, .normalize = normalize
};
