/* Finds the files of the web page. */
#include "serve/web_files.h"

#include "base/str.h"

const char *const ses_web_security_policy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const ses_web_file *ses_web_find(ses_string path)
{
    for (const ses_web_file *f = ses_web_files; f->path; f++) {
        if (ses_equal(path.p, path.n, f->path)) return f;
    }
    return NULL;
}
