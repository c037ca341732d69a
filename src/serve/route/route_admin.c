/* POST /admin/models/NAME/reload and /unload: with the option --admin. Models are loaded from the folders of
 * the command line and of the models file only: no request names a path. */
#include "base/str.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

#include <string.h>

static void done(ses_worker *w, ses_job *j)
{
    static const char ok[] = "{\"status\":\"ok\"}";
    if (j->error.code)
        ses_reply_error(w, j);
    else
        ses_reply_text(w, j, 200, "application/json", ok, sizeof ok - 1);
}

static bool handle(ses_worker *w, ses_job *j)
{
    ses_err e = { 0 };
    if (!ses_job_is_same_site(j))
        return ses_api_fail(&j->error, SES_API_FORBIDDEN, NULL, "pages of other sites cannot use /admin");
    ses_string path = ses_job_copy(j, j->path_rest.p, j->path_rest.n);
    if (!path.p) return false;
    char *name = (char *)(uintptr_t)path.p, *action = strrchr(name, '/');
    bool reload = action && !strcmp(action, "/reload"), unload = action && !strcmp(action, "/unload");
    if (!reload && !unload)
        return ses_api_fail(&j->error, SES_API_NOT_FOUND, NULL,
                            "the path must be /admin/models/NAME/reload or /unload");
    *action = 0;
    if (!*name) return ses_api_fail(&j->error, SES_API_NOT_FOUND, "model", "the path has no model");
    if (!ses_job_find_model(w, j, name, NULL)) return false;
    if (reload) return ses_reloader_load(ses_server_reloader(w->server), j, done);
    if (!ses_registry_unload(ses_server_registry(w->server), name, &e))
        return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    done(w, j);
    return true;
}

const ses_route ses_route_admin = {
    .method = "POST",
    .path = "/admin/models/*",
    .style = SES_STYLE_PLAIN,
    .admin = true,
    .handle = handle,
    .tag = "Operation",
    .summary = "Reloads or unloads a model: /admin/models/NAME/reload, /admin/models/NAME/unload",
    .response = "{\"type\":\"object\"}",
};
