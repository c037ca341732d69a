/* Bytes of a file or of standard input, unpacked on the way where they are gzip, xz or Zstandard (told by
 * their first bytes) and the library for it was there when Sesame was built. */
#ifndef SES_IO_PACKED_H
#define SES_IO_PACKED_H

#include "sesame/err.h"

typedef struct ses_input_stream ses_input_stream;

ses_input_stream *ses_input_stream_open(const char *path, ses_err *e); /* "-": standard input */
void ses_input_stream_free(ses_input_stream *p);

/* The next bytes, at most n; *got 0: the end. A file that was cut short is an error, not an end. */
bool ses_input_stream_read(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e);
bool ses_input_stream_ready(const ses_input_stream *p); /* bytes, or the end, can be had without waiting */
uint64_t ses_input_stream_consumed(
    const ses_input_stream *p); /* bytes of the file so far, as they are stored */

/* Does the file's name end so, .gz, .xz or .zst behind it or not? */
bool ses_input_stream_has_suffix(const char *path, const char *end);
bool ses_input_stream_supports(const char *name); /* "gzip", "xz", "zstd": is it in this build? */

#endif
