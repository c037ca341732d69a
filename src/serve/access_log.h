/* The access log: one line per response, as text or JSON, without request texts. Writing never waits: if the
 * reader of a pipe does not read, lines are dropped and counted.
 *
 * Threads: _write and _add in one thread, that of the HTTP server; _dropped in any. */
#ifndef SES_SERVE_ACCESS_LOG_H
#define SES_SERVE_ACCESS_LOG_H

#include "server.h"

typedef struct ses_access_log ses_access_log;

/* out NULL or SES_LOG_NONE: nothing is written. */
ses_access_log *ses_access_log_new(FILE *out, ses_log_format format, ses_err *e);
void ses_access_log_free(ses_access_log *l); /* writes what waits, for at most a second; l may be NULL */
void ses_access_log_write(ses_access_log *l, const ses_http_exchange *x);
void ses_access_log_add(ses_access_log *l, const char *line, size_t n); /* line: with its line feed */
uint64_t ses_access_log_dropped(ses_access_log *l);                     /* lines so far */

#endif
