/* Input stream: bytes of a file or standard input, decompressed if they are gzip, xz or Zstandard. The
 * format is detected from the first bytes; its library must have been present when Sesame was built. A
 * stream belongs to one thread. */
#ifndef SES_IO_INPUT_STREAM_H
#define SES_IO_INPUT_STREAM_H

#include "sesame/unstable/table.h"

typedef struct ses_input_stream ses_input_stream;

ses_input_stream *ses_input_stream_open(const char *path, ses_err *e); /* "-": standard input */
/* The same, converted to UTF-8. A file with the byte order mark of UTF-16 is UTF-16 unless another encoding
 * is given. UTF-8 itself is not checked: see io/text_decoder.h. */
ses_input_stream *ses_input_stream_open_text(const char *path, ses_text_encoding encoding, ses_err *e);
void ses_input_stream_free(ses_input_stream *p);

/* Reads at most n bytes; *got 0: end of input. A truncated compressed file is an error. */
bool ses_input_stream_read(ses_input_stream *p, void *buf, size_t n, size_t *got, ses_err *e);
bool ses_input_stream_ready(const ses_input_stream *p);        /* a read will not block */
uint64_t ses_input_stream_consumed(const ses_input_stream *p); /* bytes of the file so far, as stored */

uint64_t ses_input_stream_offset(const ses_input_stream *p); /* decompressed bytes so far */
/* Continues at byte `to` of the decompressed input, at or after the current position. A regular file that is
 * not compressed is not read up to there; others are. Past the end: the end. */
bool ses_input_stream_skip(ses_input_stream *p, uint64_t to, ses_err *e);

/* Opens a file at its start, for a look at it. "-": standard input from its start, which must be a regular
 * file; closing restores its position, *before. */
ses_input_stream *ses_input_stream_open_start(const char *path, int64_t *before, ses_err *e);
bool ses_input_stream_close_start(ses_input_stream *p, int64_t before, ses_err *e);

/* Decompressed size of a file, as UTF-8: of a compressed one (*compressed) by reading it. "-": standard
 * input from its start, which must be a regular file; its position does not change. */
bool ses_input_measure(const char *path, uint64_t *bytes, bool *compressed, ses_err *e);
/* Line ends in the first n bytes of the decompressed file; "-" as above. */
bool ses_input_count_lines(const char *path, uint64_t n, uint64_t *lines, ses_err *e);

/* Whether a path ends in `suffix`, optionally followed by .gz, .xz or .zst. */
bool ses_input_stream_has_suffix(const char *path, const char *suffix);
bool ses_input_stream_supports(const char *format); /* whether this build reads "gzip", "xz" or "zstd" */

#endif
