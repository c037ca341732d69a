/* Keyed hash of bytes: SipHash-1-3 (Aumasson and Bernstein 2012). Each hash table has its own random key,
 * so that input cannot be prepared to collide. */
#ifndef SES_BASE_HASH_H
#define SES_BASE_HASH_H

#include "sesame/base.h"

typedef struct ses_hash_key {
    uint64_t k0, k1;
} ses_hash_key;

ses_hash_key ses_hash_key_new(void); /* random; affects speed only, never results */
uint64_t ses_hash(ses_hash_key key, const void *p, size_t n);

/* Checksum of files: 8 interleaved lanes of xor and multiply, so that memory limits its speed. A change of
 * one word always changes it. It does not resist deliberate collisions. ses_checksum is for one chunk,
 * ses_checksum_join adds the next one (before the first: 0), ses_checksum_chunks does both for a whole. */
enum { SES_CHECKSUM_CHUNK = 1 << 20 };
uint64_t ses_checksum(const void *p, size_t n);
uint64_t ses_checksum_join(uint64_t before, uint64_t checksum);
uint64_t ses_checksum_chunks(const void *p, size_t n);

#endif
