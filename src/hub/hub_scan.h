/* The contents of the cache: models and their revisions; removal of files; comparison with hashes.
 *
 * Ownership: free lists with their _free functions. Threads: one thread; other processes may use the cache
 * meanwhile. */
#ifndef SES_HUB_SCAN_H
#define SES_HUB_SCAN_H

#include "base/str.h"
#include "hub_cache.h"

typedef enum { SES_HUB_COMPLETE, SES_HUB_INCOMPLETE, SES_HUB_DAMAGED } ses_hub_state;

/* One snapshot of a model, or a model's folder without any. */
typedef struct ses_hub_entry {
    ses_hub_name name; /* revision: the commit; "" without a snapshot */
    char *refs;        /* branches and tags of the commit, ", " between them */
    char *repo, *dir;  /* CACHE/models--ORG--NAME, its snapshots/COMMIT; NULL: none */
    uint64_t bytes;    /* sizes of the files in the snapshot */
    int64_t used;      /* time of the last access; 0: unknown */
    ses_hub_state state;
    char detail[512]; /* the missing or damaged file */
} ses_hub_entry;

typedef struct ses_hub_list {
    char *cache; /* canonical */
    ses_hub_entry *item;
    size_t n, cap;
    uint64_t disk_bytes; /* all files of all models, each once */
} ses_hub_list;

/* Lists the models of a cache, sorted by name. A missing cache is empty. Damaged entries are listed, too. */
bool ses_hub_list_read(ses_hub_list *l, const char *cache, ses_err *e);
void ses_hub_list_free(ses_hub_list *l);

/* ---- what to remove ---- */

typedef struct ses_hub_garbage {
    char *path, *lock; /* lock: held while it is removed; NULL: none */
    const char *kind;  /* "model", "snapshot", "ref", "list", "blob", "partial": static */
    uint64_t bytes;
} ses_hub_garbage;

typedef struct ses_hub_plan {
    ses_hub_garbage *item;
    size_t n, cap;
    uint64_t bytes;
} ses_hub_plan;

/* Adds a model with all its revisions, or, with a revision in its name as typed ("ORG/NAME@REV"), this one:
 * its refs, its snapshot and the blobs that no other one uses. Fails if it is not cached. */
bool ses_hub_plan_remove(ses_hub_plan *p, const char *cache, const char *name, ses_err *e);
/* Adds snapshots without a ref, blobs without a snapshot, and partial files, if older than `hours`. */
bool ses_hub_plan_prune(ses_hub_plan *p, const char *cache, double hours, ses_err *e);
/* Removes the plan's files; *skipped: how many another process uses. */
bool ses_hub_plan_run(const ses_hub_plan *p, size_t *skipped, ses_err *e);
void ses_hub_plan_free(ses_hub_plan *p);

/* ---- hashes ---- */

typedef struct ses_hub_verify {
    /* Called for each file; ok: the hash is right; what: the problem otherwise. False: stop. */
    bool (*on_file)(void *ctx, const ses_hub_entry *x, const char *path, bool ok, const char *what);
    /* Called with the bytes hashed so far. False: stop. May be NULL. */
    bool (*on_bytes)(void *ctx, uint64_t done);
    void *ctx;
    uint64_t done;
} ses_hub_verify;

/* Computes the hash of every file of a snapshot and compares it with the name of its blob or the list of the
 * commit. False without an error: stopped. */
bool ses_hub_verify_entry(ses_hub_verify *v, const char *cache, const ses_hub_entry *x, ses_err *e);

/* Adds the bytes of the regular files below a folder to *sum; links are not followed. */
bool ses_hub_disk_bytes(const char *path, uint64_t *sum, ses_err *e);
/* The names in a folder, each with its NUL, in *names; a missing folder has none. */
bool ses_hub_names(const char *dir, ses_buf *names, ses_err *e);

#endif
