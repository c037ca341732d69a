/* SipHash-1-3 and random keys for it; checksums of files. */
#define _DEFAULT_SOURCE /* getentropy */
#include "hash.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

ses_hash_key ses_hash_key_new(void)
{
    ses_hash_key key;
    if (getentropy(&key, sizeof key) == 0) return key;
    struct timespec now = { 0 }; /* fallback: the clock and the stack address */
    clock_gettime(CLOCK_MONOTONIC, &now);
    key.k0 = (uint64_t)now.tv_nsec * 0x9E3779B97F4A7C15u;
    key.k1 = (uint64_t)(uintptr_t)&key ^ (uint64_t)now.tv_sec << 32;
    return key;
}

static inline uint64_t rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

static inline void mix(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

uint64_t ses_hash(ses_hash_key key, const void *p, size_t n)
{
    uint64_t v[4] = { key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
                      key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u };
    const unsigned char *s = p;
    uint64_t word, last = (uint64_t)n << 56;
    for (; n >= sizeof word; n -= sizeof word, s += sizeof word) {
        memcpy(&word, s, sizeof word);
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < n; i++) last |= (uint64_t)s[i] << (8 * i);
    v[3] ^= last;
    mix(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- checksums ---- */

enum { LANES = 8 };
static const ses_hash_key checksum_key = { 0x736573616d65, 11 }; /* fixed: checksums are stored in files */

uint64_t ses_checksum(const void *p, size_t n)
{
    uint64_t lane[LANES + 1] = { 1, 2, 3, 4, 5, 6, 7, 8, n }, word[LANES];
    const unsigned char *at = p;
    for (; n; at += sizeof word) {
        size_t step = n < sizeof word ? n : sizeof word;
        if (step < sizeof word) memset(word, 0, sizeof word);
        memcpy(word, at, step);
        for (int i = 0; i < LANES; i++) lane[i] = (lane[i] ^ word[i]) * 0x9E3779B97F4A7C15u;
        n -= step;
        if (step < sizeof word) break;
    }
    return ses_hash(checksum_key, lane, sizeof lane);
}

uint64_t ses_checksum_join(uint64_t before, uint64_t checksum)
{
    uint64_t pair[] = { before, checksum };
    return ses_hash(checksum_key, pair, sizeof pair);
}

uint64_t ses_checksum_chunks(const void *p, size_t n)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < n; at += SES_CHECKSUM_CHUNK) {
        size_t step = n - at < SES_CHECKSUM_CHUNK ? n - at : SES_CHECKSUM_CHUNK;
        sum = ses_checksum_join(sum, ses_checksum((const char *)p + at, step));
    }
    return sum;
}
