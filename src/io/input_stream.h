/* Bytes of a file or of standard input, unpacked on the way where they are gzip, xz or Zstandard (told by
 * their first bytes) and the library for it was there when Sesame was built. */
#ifndef SES_IO_PACKED_H
#define SES_IO_PACKED_H

#include "sesame/err.h"

typedef struct ses_packed ses_packed;

ses_packed *ses_packed_open(const char *path, ses_err *e); /* "-": standard input */
void ses_packed_free(ses_packed *p);

/* The next bytes, at most n; *got 0: the end. A file that was cut short is an error, not an end. */
bool ses_packed_read(ses_packed *p, void *buf, size_t n, size_t *got, ses_err *e);
bool ses_packed_waits(const ses_packed *p);     /* bytes, or the end, can be had without waiting */
uint64_t ses_packed_taken(const ses_packed *p); /* bytes of the file so far, as they are stored */

/* Does the file's name end so, .gz, .xz or .zst behind it or not? */
bool ses_packed_named(const char *path, const char *end);
bool ses_packed_can(const char *name); /* "gzip", "xz", "zstd": is it in this build? */

#endif
