/* Shards of vector indexes: `index --shard` and `index --merge`. Main thread only. */
#ifndef SES_CLI_INDEX_SHARDS_H
#define SES_CLI_INDEX_SHARDS_H

#include "text_index.h"

/* Builds the index of the shard a->shard of a file, and its record INDEX.done. Line numbers count from the
 * start of the shard. *complete: it exists already, and t is not opened. */
bool ses_index_build_shard(ses_text_index *t, const ses_call *c, const ses_text_index_args *a,
                           const char *file, bool *complete, ses_err *e);

/* Merges the indexes of all shards, in order, to the index of the file, and opens it as t->index. */
bool ses_index_merge(ses_text_index *t, const ses_text_index_args *a, char *const *part, size_t n,
                     ses_err *e);

#endif
