/* Writes to standard output with one message for all failures (ses_fail_write, base/file.h). A closed pipe
 * ends the program by SIGPIPE, without a message. Main thread only. */
#ifndef SES_CLI_STANDARD_OUTPUT_H
#define SES_CLI_STANDARD_OUTPUT_H

#include "sesame/base.h"

bool ses_stdout_write(const void *p, size_t n, ses_err *e);
bool ses_stdout_flush(ses_err *e); /* also reports an earlier write that failed */
bool ses_stdout_close(ses_err *e);
bool ses_stdout_fail(int why, ses_err *e); /* reports errno `why`; returns false */
/* The error is that of one of these functions. */
bool ses_stdout_is_cause(const ses_err *e);
/* Standard output is this file: replaces the name in such an error. */
void ses_stdout_rename(ses_err *e, const char *path);

#endif
