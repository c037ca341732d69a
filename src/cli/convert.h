/* What quantize has of convert. */
#ifndef SES_CLI_CONVERT_H
#define SES_CLI_CONVERT_H

#include "command.h"
#include "sesame/types.h"

/* The model in c->rest[0] into folder c->rest[1], as F32, F16, BF16 or I8, then with embeddings as `tables`;
 * says what was done. */
bool ses_convert_to(ses_call *c, ses_dtype dtype, ses_dtype tables, bool overwrite, ses_err *e);

#endif
