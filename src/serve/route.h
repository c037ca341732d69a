/* Routes: each is one file route/route_NAME.c and one line in route/routes.def.
 *
 * handle runs in a worker. It answers (ses_reply_*), or submits the job, or returns false with j->error set.
 * The body has been parsed: j->body is an object, unless the method is GET. */
#ifndef SES_SERVE_ROUTE_H
#define SES_SERVE_ROUTE_H

#include "reply.h"

struct ses_route {
    const char *method; /* "GET", "POST" */
    const char *path;   /* exact, or with a final "*": all that begin so, j->path_rest is the rest */
    ses_error_style style;
    bool public;    /* no API key needed */
    bool immediate; /* answered in the I/O thread, also under overload: must not compute or load anything */
    bool admin;     /* served with the option --admin only */
    bool inlined;   /* a small request may be computed in the I/O thread of an idle server: one short batch */
    bool (*handle)(ses_worker *w, ses_job *j);
    const char *tag, *summary; /* for the OpenAPI description */
    const char *request;       /* JSON schema of the body; NULL: none */
    const char *response;      /* JSON schema of the response; NULL: not JSON */
    const char *content_type;  /* type of responses that are not JSON; NULL: none */
};

/* The list ends with a NULL path. */
const ses_route *const *ses_routes(void);
/* The route of a request; NULL: none, *allowed (may be NULL) is the method of a route with this path. */
const ses_route *ses_route_find(ses_string method, ses_string path, ses_string *rest, const char **allowed);

/* The style of errors of a path: its route has it, or the routes with the same beginning. */
ses_error_style ses_route_style(ses_string path);

/* The route whose shape POST / has for the first model's task, without "parameters"; NULL: that of
 * POST /models/NAME. */
const ses_route *ses_route_of_root(const ses_task_entry *task);

#define SES_ROUTE(id) extern const ses_route ses_route_##id;
#include "serve/route/routes.def"
#undef SES_ROUTE

#endif
