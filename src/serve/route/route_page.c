/* GET /, /docs and /ui/...: the files of the page, which are part of the program. */
#include "base/str.h"
#include "serve/route.h"
#include "serve/web_files.h"

#include <string.h>

static bool handle(ses_worker *w, ses_job *j)
{
    const ses_web_file *f = ses_web_find(ses_http_path(j->x));
    if (!f) return ses_api_fail(&j->error, SES_API_NOT_FOUND, NULL, "no such file");
    ses_http_add_header(j->x, "ETag", f->etag);
    ses_http_add_header(j->x, "Cache-Control", "no-cache");
    ses_http_add_header(j->x, "Content-Security-Policy", ses_web_security_policy);
    ses_http_add_header(j->x, "Referrer-Policy", "no-referrer");
    ses_string known = ses_http_header(j->x, "if-none-match");
    if (known.p && ses_equal(known.p, known.n, f->etag)) {
        ses_reply_text(w, j, 304, NULL, NULL, 0);
        return true;
    }
    if (f->gzip) ses_http_add_header(j->x, "Content-Encoding", "gzip");
    ses_reply_text(w, j, 200, f->content_type, (const char *)f->bytes, f->size);
    return true;
}

#define PAGE(path_, summary_, types_)                                                                \
    {                                                                                                \
        .method = "GET", .path = path_, .style = SES_STYLE_PLAIN, .public = true, .immediate = true, \
        .handle = handle, .tag = "Page", .summary = summary_, .content_type = types_                 \
    }

const ses_route ses_route_page = PAGE("/", "The page", "text/html");
const ses_route ses_route_docs = PAGE("/docs", "The API, with a form for each route", "text/html");
const ses_route ses_route_page_files =
    PAGE("/ui/*", "Files of the page", "text/css|text/javascript|image/svg+xml");
