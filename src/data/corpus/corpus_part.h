/* Parts of a corpus: built from parts of the texts, and merged to the corpus that one build of all texts
 * gives, byte for byte. Ownership: borrowed unless said otherwise. One thread. */
#ifndef SES_DATA_CORPUS_PART_H
#define SES_DATA_CORPUS_PART_H

#include "sesame/pretrain.h"

/* Documents of a decompressed file. JSON lines: the documents that start in bytes [begin, end). Plain text:
 * the documents after the first blank line that starts at `begin` or later, up to the first blank line that
 * starts at `end` or later. An empty range is not read. */
typedef struct ses_corpus_range {
    uint64_t begin, end; /* end UINT64_MAX: to the end of the file */
} ses_corpus_range;

typedef struct ses_corpus_shard {
    const ses_corpus_range *range; /* [n_files] */
    /* Result: numbers of the documents that the next one continues, because they were too long. Free with
     * ses_free. */
    uint64_t *split;
    size_t n_split;
} ses_corpus_shard;

/* As ses_corpus_build, for a part of the texts, which may have no document. part NULL: all. */
bool ses_corpus_build_part(const char *path, const ses_corpus_options *o, ses_corpus_shard *part,
                           int64_t *resumed, ses_err *e);

/* A file of ses_corpus_build_part, with what its header does not have. */
typedef struct ses_corpus_shard_file {
    const char *path;
    int32_t unk_id;
    const uint64_t *split;
    size_t n_split;
} ses_corpus_shard_file;

/* Joins all parts of a corpus, in order. Fails if they differ in tokenizer, label or held-out fraction. */
bool ses_corpus_merge(const char *path, const ses_corpus_shard_file *part, size_t n, bool keep_duplicates,
                      bool overwrite, ses_err *e);

#endif
