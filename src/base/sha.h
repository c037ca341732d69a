/* SHA-1 and SHA-256 (FIPS 180-4), byte by byte or at once. SHA-1 is for git's object names only: it does not
 * resist attacks. A state is a value: copies continue independently. */
#ifndef SES_BASE_SHA_H
#define SES_BASE_SHA_H

#include "sesame/base.h"

enum { SES_SHA1_HEX = 40, SES_SHA256_HEX = 64 };

typedef struct ses_sha {
    uint32_t h[8];
    uint64_t n;       /* bytes so far */
    uint8_t tail[64]; /* bytes of the current block */
    bool is_sha1;
} ses_sha;

ses_sha ses_sha1_start(void);
ses_sha ses_sha256_start(void);
void ses_sha_add(ses_sha *s, const void *p, size_t n);
/* The digest as lower-case hex digits and a NUL; ends the state. */
void ses_sha_hex(ses_sha *s, char out[SES_SHA256_HEX + 1]);

#endif
