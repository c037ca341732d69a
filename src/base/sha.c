/* SHA-1 and SHA-256. */
#include "sha.h"

#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotl(uint32_t x, int n) { return x << n | x >> (32 - n); }
static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void block256(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++) w[i] = big_endian(p + 4 * i);
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t x =
            s[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + K[i] + w[i];
        uint32_t y = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += x;
        s[0] = x + y;
    }
    for (int i = 0; i < 8; i++) h[i] += s[i];
}

static void block1(uint32_t h[5], const uint8_t *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++) w[i] = big_endian(p + 4 * i);
    for (int i = 16; i < 80; i++) w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d,
                 k = i < 20   ? 0x5a827999
                     : i < 40 ? 0x6ed9eba1
                     : i < 60 ? 0x8f1bbcdc
                              : 0xca62c1d6,
                 t = rotl(a, 5) + f + e + k + w[i];
        e = d, d = c, c = rotl(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

ses_sha ses_sha1_start(void)
{
    return (ses_sha){ .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 }, .is_sha1 = true };
}

ses_sha ses_sha256_start(void)
{
    return (ses_sha){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                             0x1f83d9ab, 0x5be0cd19 } };
}

static void add_block(ses_sha *s, const uint8_t *p)
{
    if (s->is_sha1)
        block1(s->h, p);
    else
        block256(s->h, p);
}

void ses_sha_add(ses_sha *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    size_t used = s->n % sizeof s->tail;
    s->n += n;
    if (used) {
        size_t k = sizeof s->tail - used < n ? sizeof s->tail - used : n;
        memcpy(s->tail + used, p, k);
        p += k, n -= k;
        if (used + k < sizeof s->tail) return;
        add_block(s, s->tail);
    }
    for (; n >= sizeof s->tail; p += sizeof s->tail, n -= sizeof s->tail) add_block(s, p);
    if (n) memcpy(s->tail, p, n);
}

void ses_sha_hex(ses_sha *s, char out[SES_SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t end[72] = { 0x80 };
    uint64_t bits = s->n * 8;
    size_t used = s->n % 64, pad = (used < 56 ? 56 : 120) - used;
    for (int i = 0; i < 8; i++) end[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    ses_sha_add(s, end, pad + 8);
    int words = s->is_sha1 ? 5 : 8;
    for (int i = 0; i < 8 * words; i++) out[i] = digits[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[8 * words] = 0;
}
