/* GET /health: the process is alive. GET /health/ready: it computes. GET /ping: as /health. */
#include "serve/route.h"
#include "serve/serve_impl.h"

#include <string.h>

/* The server is not ready if requests have been waiting for so long without progress. */
enum { STALLED_SECONDS = 60 };

static bool reply(ses_worker *w, ses_job *j, int status, const char *text)
{
    ses_reply_text(w, j, status, "application/json", text, strlen(text));
    return true;
}

static bool health(ses_worker *w, ses_job *j) { return reply(w, j, 200, "{\"status\":\"ok\"}"); }

static bool ready(ses_worker *w, ses_job *j)
{
    ses_scheduler_stats s = ses_scheduler_get_stats(ses_server_scheduler(w->server));
    if (ses_server_is_draining(w->server)) return reply(w, j, 503, "{\"status\":\"stopping\"}");
    if (s.seconds_since_progress > STALLED_SECONDS) return reply(w, j, 503, "{\"status\":\"stalled\"}");
    return reply(w, j, 200, "{\"status\":\"ready\"}");
}

#define HEALTH(path_, handle_, summary_)                                                                \
    {                                                                                                   \
        .method = "GET", .path = path_, .style = SES_STYLE_TEI, .public = true, .immediate = true,      \
        .handle = handle_, .tag = "Operation", .summary = summary_, .response = "{\"type\":\"object\"}" \
    }

const ses_route ses_route_health = HEALTH("/health", health, "The process is alive");
const ses_route ses_route_ready =
    HEALTH("/health/ready", ready, "The server computes; 503 while it starts, stops or stalls");
const ses_route ses_route_ping = HEALTH("/ping", health, "The process is alive");
