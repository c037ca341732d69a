/* Intermediate files of a corpus build: the parts of the corpus as growing files in the folder PATH.part,
 * and a journal with the valid length and the checksum of each. One thread. */
#ifndef SES_DATA_CORPUS_SPOOL_H
#define SES_DATA_CORPUS_SPOOL_H

#include "base/dir.h"
#include "base/str.h"
#include "corpus_file.h"

/* Progress of a build, after complete documents. */
typedef struct ses_build_progress {
    uint64_t file, offset, line; /* position in the input */
    ses_corpus_header head;      /* with the counts of the parts so far */
} ses_build_progress;

typedef struct ses_spool {
    char *dir, *settings;
    ses_dir_lock *lock;
    bool has_journal;
    int fd[CORPUS_PARTS];
    uint64_t size[CORPUS_PARTS]; /* bytes, including buf */
    uint64_t sum[CORPUS_PARTS];  /* running checksum of the same bytes, without the corpus header */
    ses_buf buf[CORPUS_PARTS];
    uint64_t *split; /* numbers of the documents that the next one continues */
    size_t n_split, split_cap;
} ses_spool;

/* *s must be zeroed; free it even on failure. On entry at->head has the fields that are constant during the
 * build. If the folder has a journal with the same settings, *at becomes its progress; with `restart` the
 * journal is ignored. Fails if the journal or a part differs from its checksum; the files stay unchanged. */
bool ses_spool_open(ses_spool *s, const char *path, const char *settings, bool restart,
                    ses_build_progress *at, ses_err *e);
void ses_spool_free(ses_spool *s); /* closes the files; the folder stays */

bool ses_spool_put(ses_spool *s, int part, const void *p, size_t n, ses_err *e);
bool ses_spool_note_split(ses_spool *s, uint64_t document, ses_err *e); /* it was too long */
/* Syncs the parts and writes the journal. */
bool ses_spool_checkpoint(ses_spool *s, const ses_build_progress *at, ses_err *e);

/* Calls fn for each of the first n documents. */
bool ses_spool_documents(ses_spool *s, uint64_t n,
                         bool (*fn)(void *ctx, const ses_corpus_entry *d, ses_err *e), void *ctx, ses_err *e);

/* For a corpus that exists: whether it is what a build with these settings has just made, which was killed
 * before it removed its folder. Then *at and the split documents are set, and the folder is removed. */
bool ses_spool_adopt(ses_spool *s, const char *path, const char *settings, ses_build_progress *at,
                     bool *complete, ses_err *e);

/* Joins the parts to the corpus file at path, and removes the folder. */
bool ses_spool_finish(ses_spool *s, const char *path, bool overwrite, ses_corpus_header *head, ses_err *e);

#endif
