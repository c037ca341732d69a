/* What quantize has of convert. */
#ifndef SES_CLI_CONVERT_MODEL_H
#define SES_CLI_CONVERT_MODEL_H

#include "cli/command.h"
#include "sesame/types.h"

/* The model in c->rest[0] into folder c->rest[1], as F32, F16, BF16 or I8, then with embeddings as `tables`;
 * says what was done. */
bool ses_convert_model(ses_call *c, ses_dtype dtype, ses_dtype tables, bool overwrite, ses_err *e);

/* A file of folder `from` as it is, where there is one; its name is added to `copied`. */
bool ses_convert_copy(const char *from, const char *to, const char *name, bool overwrite, ses_buf *copied,
                      ses_err *e);
/* convert_adapter.c: the adapter in folder `from` into folder `to`, its numbers as dtype. */
bool ses_convert_adapter(const ses_call *c, const char *from, const char *to, ses_dtype dtype, bool overwrite,
                         bool json, ses_err *e);

#endif
