/* API keys from a file, one per line; empty lines and lines that begin with # are skipped. Read-only: any
 * thread. */
#ifndef SES_SERVE_API_KEYS_H
#define SES_SERVE_API_KEYS_H

#include "sesame/tokenizer.h"

typedef struct ses_api_keys ses_api_keys;

ses_api_keys *ses_api_keys_open(const char *path, ses_err *e); /* fails if the file has no key */
void ses_api_keys_free(ses_api_keys *k);                       /* k may be NULL */
/* authorization: the header "Bearer KEY". The time does not depend on how much of a key is right. */
bool ses_api_keys_check(const ses_api_keys *k, ses_string authorization);

#endif
