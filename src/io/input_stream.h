/* Input stream: bytes of a file or standard input, decompressed if they are gzip, xz or Zstandard. The
 * format is detected from the first bytes; its library must have been present when Sesame was built. A
 * stream belongs to one thread. */
#ifndef SES_IO_INPUT_STREAM_H
#define SES_IO_INPUT_STREAM_H

#include "sesame/err.h"

typedef struct ses_input_stream ses_input_stream;

ses_input_stream *ses_input_stream_open(const char *path, ses_err *e); /* "-": standard input */
void ses_input_stream_free(ses_input_stream *p);

/* Reads at most n bytes; *got 0: end of input. A truncated compressed file is an error. */
bool ses_input_stream_read(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e);
bool ses_input_stream_ready(const ses_input_stream *p);        /* a read will not block */
uint64_t ses_input_stream_consumed(const ses_input_stream *p); /* bytes of the file so far, as stored */

/* Whether a path ends in `suffix`, optionally followed by .gz, .xz or .zst. */
bool ses_input_stream_has_suffix(const char *path, const char *suffix);
bool ses_input_stream_supports(const char *format); /* whether this build reads "gzip", "xz" or "zstd" */

#endif
