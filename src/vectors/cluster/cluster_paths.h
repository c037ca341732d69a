/* Files of word clusters: a path of bits, a word and its count per line, separated by tabs; as
 * `sesame clusters` and wcluster write them. The order of the lines does not matter.
 *
 * Ownership: the caller frees them. Threads: several may read them. */
#ifndef SES_VECTORS_CLUSTER_PATHS_H
#define SES_VECTORS_CLUSTER_PATHS_H

#include "base/arena.h"
#include "base/strmap.h"

typedef struct ses_cluster_paths {
    ses_arena mem;
    ses_strmap words;  /* word to line */
    const char **path; /* [words]: "0110"; "": the only cluster */
    int64_t *count;    /* [words] */
    size_t cap_path, cap_count;
} ses_cluster_paths;

/* *p must be zeroed; free it after a failure, too. Errors begin with the path, or with the line. */
bool ses_cluster_paths_read(ses_cluster_paths *p, const char *path, ses_err *e);
bool ses_cluster_paths_from_text(ses_cluster_paths *p, const char *text, size_t n, ses_err *e);
/* The path of a word's cluster; NULL: unknown. A prefix of it is a larger cluster. */
const char *ses_cluster_path(const ses_cluster_paths *p, const char *word, size_t n);
void ses_cluster_paths_free(ses_cluster_paths *p); /* back to zero */

#endif
