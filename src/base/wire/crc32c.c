/* CRC-32C, bit by bit for a few bytes, with tables for more. */
#include "crc32c.h"

#include "base/bytes.h"

enum { SHORT = 256 }; /* up to here, making the tables takes longer than it saves */

static uint32_t add_byte(uint32_t crc, unsigned char byte)
{
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1)));
    return crc;
}

/* table[k][b]: the CRC of byte b followed by k zero bytes. */
static void make_tables(uint32_t table[8][256])
{
    for (uint32_t b = 0; b < 256; b++) table[0][b] = add_byte(0, (unsigned char)b);
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t x = table[k - 1][b];
            table[k][b] = x >> 8 ^ table[0][x & 255];
        }
}

/* Eight bytes at a time; returns how many it read. */
static size_t add_words(uint32_t *crc, const unsigned char *s, size_t n)
{
    uint32_t table[8][256], c = *crc;
    make_tables(table);
    size_t i = 0;
    for (; n - i >= 8; i += 8) {
        uint32_t a = ses_le32(s + i) ^ c, b = ses_le32(s + i + 4);
        c = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
            table[3][b & 255] ^ table[2][b >> 8 & 255] ^ table[1][b >> 16 & 255] ^ table[0][b >> 24];
    }
    *crc = c;
    return i;
}

uint32_t ses_crc32c(const void *p, size_t n)
{
    const unsigned char *s = p;
    uint32_t crc = 0xFFFFFFFFu;
    size_t i = n > SHORT ? add_words(&crc, s, n) : 0;
    for (; i < n; i++) crc = add_byte(crc, s[i]);
    return ~crc;
}

uint32_t ses_crc32c_mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8u; }
