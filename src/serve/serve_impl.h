/* Inside of the server, for src/serve. */
#ifndef SES_SERVE_SERVE_IMPL_H
#define SES_SERVE_SERVE_IMPL_H

#include "metrics.h"
#include "reloader.h"
#include "scheduler.h"
#include "server.h"
#include "tiktoken.h"

const ses_server_options *ses_server_get_options(const ses_server *s);
ses_registry *ses_server_registry(ses_server *s);
ses_scheduler *ses_server_scheduler(ses_server *s);
ses_metrics *ses_server_metrics(ses_server *s);
ses_reloader *ses_server_reloader(ses_server *s);
uint64_t ses_server_dropped_log_lines(ses_server *s);
const ses_http_server *ses_server_http(const ses_server *s);
const ses_tiktoken *ses_server_tiktoken(const ses_server *s); /* NULL: none */
int ses_server_retry_after(ses_server *s);
double ses_server_uptime(const ses_server *s);
bool ses_server_is_draining(const ses_server *s);
/* Whether a request has a valid key, or none is needed. */
bool ses_server_has_key(const ses_server *s, const ses_http_exchange *x);
/* One analysis at a time: false if another one runs. */
bool ses_server_begin_analysis(ses_server *s);
void ses_server_end_analysis(ses_server *s);

#endif
