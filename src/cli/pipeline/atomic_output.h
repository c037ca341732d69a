/* Standard output into a file that is there whole or not at all. */
#ifndef SES_CLI_REDIRECT_H
#define SES_CLI_REDIRECT_H

#include "sesame/err.h"

typedef struct ses_atomic_output {
    char *path, *temp; /* temp: until it has its name */
    int before;        /* what standard output was */
} ses_atomic_output;

bool ses_atomic_output_begin(ses_atomic_output *r, const char *path, bool overwrite, ses_err *e);
bool ses_atomic_output_commit(ses_atomic_output *r,
                              ses_err *e);        /* all of it is on the disk, and has its name */
void ses_atomic_output_end(ses_atomic_output *r); /* before a commit: as if it had never been */

#endif
