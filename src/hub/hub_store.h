/* Writes the cache as the official client does: blobs/ETAG, relative links in snapshots/COMMIT, trees, refs,
 * locks in .locks. Every file is complete before it gets its name.
 *
 * Ownership: free a store with ses_hub_store_free, a part with ses_hub_part_close. Threads: one thread;
 * other processes, the official client among them, may use the cache meanwhile. */
#ifndef SES_HUB_STORE_H
#define SES_HUB_STORE_H

#include "base/sha.h"
#include "fetch.h"
#include "hub_files.h"

/* Ends of the names of unfinished downloads in blobs/: ours continue, the official client's do not. */
#define SES_HUB_PART ".sesame.incomplete"
#define SES_HUB_FOREIGN_PART ".incomplete"

typedef struct ses_hub_store {
    char *cache, *repo,
        *locks; /* CACHE (canonical), CACHE/models--ORG--NAME, CACHE/.locks/models--ORG--NAME */
    char folder[sizeof((ses_hub_name){ 0 }.folder)]; /* "models--ORG--NAME" */
    bool no_links;                                   /* files in snapshots instead of links */
} ses_hub_store;

/* Names the folders of a model; creates nothing. */
bool ses_hub_store_open(ses_hub_store *s, const char *cache, const ses_hub_name *name, bool no_links,
                        ses_err *e);
/* Creates them, CACHEDIR.TAG and trees/COMMIT.json. Fails if one is a link out of the cache. */
bool ses_hub_store_prepare(ses_hub_store *s, const ses_hub_files *files, ses_err *e);
/* Puts a file whose blob is complete into the snapshot. */
bool ses_hub_store_link(const ses_hub_store *s, const char *commit, const ses_hub_file *file, ses_err *e);
/* After the last link: without links, removes the blobs that were downloaded. had: bytes of each file in the
 * cache before. */
bool ses_hub_store_finish(const ses_hub_store *s, const ses_hub_files *files, const uint64_t *had,
                          ses_err *e);
bool ses_hub_store_set_ref(const ses_hub_store *s, const char *revision, const char *commit, ses_err *e);
void ses_hub_store_free(ses_hub_store *s);

/* CACHE/models--ORG--NAME/snapshots/COMMIT; free with ses_free. */
char *ses_hub_store_snapshot(const ses_hub_store *s, const char *commit, ses_err *e);
/* Whether the file is in the snapshot or its blob is complete, by size. */
bool ses_hub_store_has(const ses_hub_store *s, const char *commit, const ses_hub_file *file);
uint64_t ses_hub_store_part_size(const ses_hub_store *s, const ses_hub_file *file); /* 0: no part */

/* A download in progress: the receiver of a fetch. */
typedef struct ses_hub_part {
    const ses_hub_store *store;
    const ses_hub_file *file;
    char *blob, *path, *lock_path;
    int fd, lock; /* -1: closed */
    uint64_t got; /* bytes in the file */
    ses_sha sha;
    bool done;
} ses_hub_part;

bool ses_hub_part_init(ses_hub_part *p, const ses_hub_store *s, const ses_hub_file *file, ses_err *e);
void ses_hub_part_close(ses_hub_part *p); /* keeps the bytes for the next attempt */
ses_fetch_begin ses_hub_part_begin(void *part, uint64_t *offset, ses_err *e);
bool ses_hub_part_restart(void *part, ses_err *e);
bool ses_hub_part_take(void *part, const void *p, size_t n, ses_err *e);
ses_fetch_end ses_hub_part_end(void *part, ses_err *e);

/* The hash that names a file's blob: SHA-256, or git's SHA-1 of "blob SIZE\0" and the bytes. */
ses_sha ses_hub_sha_start(bool is_sha256, uint64_t size);

#endif
