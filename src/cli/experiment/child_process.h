/* Child processes that run commands of this program: a start with files for their messages, their end with
 * this process, the reason of a failure. Nothing is kept; main thread only. */
#ifndef SES_CLI_CHILD_PROCESS_H
#define SES_CLI_CHILD_PROCESS_H

#include "sesame/base.h"

/* In a new child process: a signal ends it when this process, `parent`, has ended (Linux). Else a killed
 * parent would leave children that hold its lock. */
void ses_child_follow_parent(int parent, int signal);

/* Starts this program with other arguments; argv[0] is its name, the last one is followed by NULL. Messages
 * are appended to the file log, output replaces the file out (NULL: it is dropped); its input is empty. The
 * process gets SIGTERM when this one ends. Returns its number, or -1 with an error. */
int ses_child_start(char *const *argv, const char *log, const char *out, ses_err *e);

/* Why a command failed: the last message in its log; "its command failed" if there is none. */
void ses_child_reason(const char *log, char *reason, size_t size);

#endif
