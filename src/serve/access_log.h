/* The access log: one line per response, as text or JSON. It contains no request texts. One thread: that of
 * the HTTP server. */
#ifndef SES_SERVE_ACCESS_LOG_H
#define SES_SERVE_ACCESS_LOG_H

#include "server.h"

typedef struct ses_access_log ses_access_log;

ses_access_log *ses_access_log_new(FILE *out, ses_log_format format, ses_err *e);
void ses_access_log_free(ses_access_log *l); /* l may be NULL */
void ses_access_log_write(ses_access_log *l, const ses_http_exchange *x);

#endif
