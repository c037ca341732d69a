/* Keyed hash of 16 bytes for the caches of the fast paths; the random key prevents prepared collisions. */
#ifndef SES_TEXT_WORD_HASH_H
#define SES_TEXT_WORD_HASH_H

#include "base/hash.h"

typedef struct ses_word_hash {
    uint64_t key[3];
} ses_word_hash;

static inline ses_word_hash ses_word_hash_new(void)
{
    ses_hash_key k = ses_hash_key_new();
    return (ses_word_hash){ { k.k0, k.k1, (k.k0 ^ k.k1 << 1) | 1 } };
}

static inline uint64_t ses_word_hash16(const ses_word_hash *h, uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ h->key[0]) * 0x9E3779B97F4A7C15u + (b ^ h->key[1]) * 0xC2B2AE3D27D4EB4Fu;
    return (x ^ x >> 32) * h->key[2];
}

#endif
