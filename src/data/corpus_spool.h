/* The parts of a corpus while it is being made: files of the folder PATH.part that only grow, and a journal
 * that says how far they are good. */
#ifndef SES_DATA_CORPUS_SPOOL_H
#define SES_DATA_CORPUS_SPOOL_H

#include "base/dir.h"
#include "base/str.h"
#include "corpus_file.h"

/* Where a build stands: after whole documents. */
typedef struct ses_corpus_place {
    uint64_t file, offset, line; /* in the texts */
    ses_corpus_header head;      /* its counts are of what the parts hold */
} ses_corpus_place;

typedef struct ses_spool {
    char *dir, *settings;
    ses_dir_lock *lock;
    bool marked; /* there is a journal */
    int fd[CORPUS_PARTS];
    uint64_t size[CORPUS_PARTS]; /* bytes, those in buf too */
    ses_buf buf[CORPUS_PARTS];
} ses_spool;

/* Zeroed before; to be freed whatever happens. place->head has what does not change during the build; where
 * the folder holds a journal of the same settings, *place becomes what it says. restart: it is not looked
 * at. */
bool ses_spool_open(ses_spool *s, const char *path, const char *settings, bool restart,
                    ses_corpus_place *place, ses_err *e);
void ses_spool_free(ses_spool *s); /* closes; the folder stays */

bool ses_spool_put(ses_spool *s, int part, const void *p, size_t n, ses_err *e);
bool ses_spool_mark(ses_spool *s, const ses_corpus_place *place, ses_err *e); /* on the disk up to here */

/* Calls fn with every document so far. */
bool ses_spool_documents(ses_spool *s, uint64_t n,
                         bool (*fn)(void *ctx, const ses_corpus_entry *d, ses_err *e), void *ctx, ses_err *e);

/* Puts the parts together as the file at path, and removes the folder. */
bool ses_spool_finish(ses_spool *s, const char *path, bool overwrite, ses_corpus_header *head, ses_err *e);

#endif
