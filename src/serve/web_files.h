/* The files of the web page (src/serve/web), compressed by the build (cmake/web.cmake) and part of the
 * library. */
#ifndef SES_SERVE_WEB_FILES_H
#define SES_SERVE_WEB_FILES_H

#include "sesame/base.h"

typedef struct ses_web_file {
    const char *path;         /* URL path, "/" or "/ui/NAME"; NULL: end of the table */
    const char *content_type; /* with the charset */
    const unsigned char *bytes;
    size_t size;
    bool gzip;        /* to be sent with Content-Encoding: gzip */
    const char *etag; /* in quotes, as in the header; a hash of the uncompressed file */
} ses_web_file;

extern const ses_web_file ses_web_files[]; /* written by the build */

/* The file at a path of a URL; NULL: none. */
const ses_web_file *ses_web_find(ses_string path);

/* The policy to be sent with every file: own scripts, styles and requests only. */
extern const char *const ses_web_security_policy;

#endif
