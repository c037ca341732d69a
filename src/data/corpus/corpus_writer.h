/* Appends tokenized documents to the intermediate files of a corpus, without duplicates. One thread. */
#ifndef SES_DATA_CORPUS_WRITER_H
#define SES_DATA_CORPUS_WRITER_H

#include "corpus_spool.h"
#include "corpus_tokens.h"

/* Set of document hashes, which need no further hashing. */
typedef struct ses_hash_set {
    uint64_t *slot; /* 0: free */
    size_t n, slots;
} ses_hash_set;

typedef struct ses_corpus_writer {
    ses_build_progress at;
    ses_spool spool;
    ses_hash_set seen;
    bool keep_duplicates;
} ses_corpus_writer;

/* Remembers the documents that an interrupted build has written. */
bool ses_corpus_writer_recall(ses_corpus_writer *w, ses_err *e);
/* Appends a document, unless it is empty or a duplicate, and counts it. */
bool ses_corpus_writer_put(ses_corpus_writer *w, const ses_corpus_text *t, ses_err *e);
void ses_corpus_writer_free(ses_corpus_writer *w); /* closes the files; they stay */

#endif
