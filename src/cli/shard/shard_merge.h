/* The set of all shards of a result, for commands that merge them. Ownership: ses_shard_set_free frees the
 * records. Main thread only. */
#ifndef SES_CLI_SHARD_MERGE_H
#define SES_CLI_SHARD_MERGE_H

#include "shard_marker.h"

typedef struct ses_shard_set {
    ses_json_doc **marker;    /* [n] PART.done */
    ses_shard_counts *counts; /* [n] */
    size_t n;
} ses_shard_set;

/* Reads the records of n parts. Fails unless they are the shards 0 to n - 1 of one call of `command`, in
 * order. *s must be zeroed; free it also after a failure. */
bool ses_shard_set_open(ses_shard_set *s, const char *command, char *const *part, size_t n, ses_err *e);
void ses_shard_set_free(ses_shard_set *s);

/* Writes PATH.done for a file that is complete at once: fills the size and the hash. extra: as
 * ses_shard_marker_write. */
bool ses_shard_done_write(const char *path, const ses_shard_plan *p, const char *identity,
                          ses_shard_counts *n, const char *extra, ses_err *e);

#endif
