/* Shards of corpora: `corpus build --shard` and `corpus merge`. Main thread only. */
#ifndef SES_CLI_CORPUS_SHARDS_H
#define SES_CLI_CORPUS_SHARDS_H

#include "cli/command.h"
#include "sesame/pretrain.h"

/* Builds the shard I/N (text) of the corpus that o describes, and writes PATH.done. *complete: it exists. */
bool ses_corpus_build_shard(const ses_call *c, const char *path, const char *text, const char *tokenizer,
                            const ses_corpus_options *o, int64_t *resumed, bool *complete, ses_err *e);
/* Merges all shards, in order. Each has its record PART.done. */
bool ses_corpus_merge_shards(const char *path, char *const *part, size_t n, bool overwrite, ses_err *e);

#endif
