/* Lines of files or stdin, unpacked on the way where they are packed, through a function, on several
 * threads, output in the order of the input. What is there is worked on at once: a person who types sees
 * each line's answer. Memory: a few chunks, or the longest line, which may have 256 MiB. */
#ifndef SES_CLI_TEXT_LINES_H
#define SES_CLI_TEXT_LINES_H

#include "base/str.h"

/* One line, without its line end (LF or CRLF), by one of the workers; what it says goes to out. False: stop
 * here; the lines before it are written, then the error told with the file's name and the line's number. */
typedef bool ses_line_fn(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e);

/* files ends with NULL; empty: stdin, as is "-". */
bool ses_map_lines(char *const *files, int threads, ses_line_fn *fn, void *ctx, ses_err *e);

#endif
