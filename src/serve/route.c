/* Finds the route of a request. */
#include "route.h"

#include "base/str.h"

#include <string.h>

static const ses_route *const list[] = {
#define SES_ROUTE(id) &ses_route_##id,
#include "serve/route/routes.def"
#undef SES_ROUTE
    NULL
};

const ses_route *const *ses_routes(void) { return list; }

static bool matches(const ses_route *r, ses_string path, ses_string *rest)
{
    size_t n = strlen(r->path);
    if (r->path[n - 1] != '*') return ses_equal(path.p, path.n, r->path);
    if (path.n < n - 1 || memcmp(path.p, r->path, n - 1) != 0) return false;
    *rest = (ses_string){ path.p + n - 1, path.n - (n - 1) };
    return true;
}

ses_error_style ses_route_style(ses_string path)
{
    static const struct {
        const char *start;
        ses_error_style style;
    } families[] = { { "/v1/", SES_STYLE_OPENAI }, { "/v2/", SES_STYLE_COHERE }, { "/", SES_STYLE_PLAIN } };
    ses_string rest;
    for (const ses_route *const *r = list; *r; r++)
        if (matches(*r, path, &rest)) return (*r)->style;
    for (size_t i = 0; i < SES_LEN(families); i++)
        if (!strncmp(path.p, families[i].start, strlen(families[i].start))) return families[i].style;
    return SES_STYLE_PLAIN;
}

const ses_route *ses_route_find(ses_string method, ses_string path, ses_string *rest, const char **allowed)
{
    const char *other = NULL;
    for (const ses_route *const *r = list; *r; r++) {
        if (!matches(*r, path, rest)) continue;
        bool head = ses_equal(method.p, method.n, "HEAD") && !strcmp((*r)->method, "GET");
        if (head || ses_equal(method.p, method.n, (*r)->method)) return *r;
        other = other && strcmp(other, (*r)->method) ? "GET, POST" : (*r)->method;
    }
    if (allowed) *allowed = other;
    return NULL;
}
