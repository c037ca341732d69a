/* Files: read whole, mapped, or replaced as a whole. */
#ifndef SES_BASE_FILE_H
#define SES_BASE_FILE_H

#include "sesame/err.h"

/* The whole of a regular file, with a NUL after it that *n does not count; ses_free. Over max_bytes: refused. */
char *ses_file_read(const char *path, size_t max_bytes, size_t *n, ses_err *e);

#endif
