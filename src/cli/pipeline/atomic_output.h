/* Standard output into a file that is there whole or not at all. */
#ifndef SES_CLI_REDIRECT_H
#define SES_CLI_REDIRECT_H

#include "sesame/err.h"

typedef struct ses_redirect {
    char *path, *temp; /* temp: until it has its name */
    int before;        /* what standard output was */
} ses_redirect;

bool ses_redirect_begin(ses_redirect *r, const char *path, bool overwrite, ses_err *e);
bool ses_redirect_commit(ses_redirect *r, ses_err *e); /* all of it is on the disk, and has its name */
void ses_redirect_end(ses_redirect *r);                /* before a commit: as if it had never been */

#endif
