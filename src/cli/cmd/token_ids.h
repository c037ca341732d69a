/* A line of token ids, as `sesame detokenize` reads it. */
#ifndef SES_CLI_TOKEN_IDS_H
#define SES_CLI_TOKEN_IDS_H

#include "sesame/base.h"

/* Zero-initialized. The caller frees id. */
typedef struct ses_token_ids {
    int32_t *id;
    size_t n, cap;
} ses_token_ids;

/* Reads the ids of a line, in place of earlier ids: "101 7592 102" with spaces or commas, a JSON array, or an
 * object with "ids". Fails for anything else, and for an id that is out of range. */
bool ses_token_ids_read(ses_token_ids *t, const char *line, size_t n, ses_err *e);

#endif
