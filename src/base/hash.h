/* Keyed hash of bytes: SipHash-1-3 (Aumasson and Bernstein 2012). Each hash table has its own random key,
 * so that input cannot be prepared to collide. */
#ifndef SES_BASE_HASH_H
#define SES_BASE_HASH_H

#include "sesame/types.h"

typedef struct ses_hash_key {
    uint64_t k0, k1;
} ses_hash_key;

ses_hash_key ses_hash_key_new(void); /* random; affects speed only, never results */
uint64_t ses_hash(ses_hash_key key, const void *p, size_t n);

#endif
