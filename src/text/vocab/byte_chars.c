/* The two spellings of bytes in vocabularies. */
#include "byte_chars.h"

/* Printable Latin-1 bytes map to themselves; the others, in order, to U+0100 and up. */
uint32_t ses_byte_char(uint8_t b)
{
    if (b <= 0x20) return 0x100u + b;
    if (b <= 0x7e) return b;
    if (b <= 0xa0) return 0x100u + 0x21 + (b - 0x7fu);
    return b == 0xad ? 0x143 : b;
}

int ses_char_byte(uint32_t c)
{
    if (c >= 0x100) {
        if (c <= 0x120) return (int)(c - 0x100);
        if (c <= 0x142) return (int)(c - 0x121 + 0x7f);
        return c == 0x143 ? 0xad : -1;
    }
    bool printable = (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c != 0xad);
    return printable ? (int)c : -1;
}

size_t ses_byte_token(uint8_t byte, char out[SES_BYTE_TOKEN])
{
    static const char digit[] = "0123456789ABCDEF";
    out[0] = '<', out[1] = '0', out[2] = 'x';
    out[3] = digit[byte >> 4], out[4] = digit[byte & 15], out[5] = '>';
    return SES_BYTE_TOKEN;
}
