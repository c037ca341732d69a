/* Redirects standard output to a file that is created completely or not at all. Ownership:
 * ses_atomic_output_end frees the strings and restores standard output. Main thread only: standard output
 * belongs to the process. */
#ifndef SES_CLI_ATOMIC_OUTPUT_H
#define SES_CLI_ATOMIC_OUTPUT_H

#include "sesame/base.h"

typedef struct ses_atomic_output {
    char *path, *temp; /* temp: temporary name, NULL after the commit */
    bool overwrite;    /* the commit may replace a file */
    bool unnamed;      /* the file has no name before the commit: a killed process leaves nothing */
    int before;        /* duplicate of the original standard output */
} ses_atomic_output;

bool ses_atomic_output_begin(ses_atomic_output *r, const char *path, bool overwrite, ses_err *e);
bool ses_atomic_output_commit(ses_atomic_output *r, ses_err *e); /* syncs and names it: ses_file_place */
/* Removes the file, unless it was committed; nothing if it was not begun (before is -1, the rest zero).
 * Errors of standard output in e get its name. */
void ses_atomic_output_end(ses_atomic_output *r, ses_err *e);

#endif
