/* Reads the cache of the official client: CACHE/models--ORG--NAME/{refs,snapshots,blobs,trees,.no_exist}.
 * Nothing here writes or opens a connection.
 *
 * Ownership: free a ses_hub_check with ses_hub_check_free. Threads: no shared state; other processes may
 * change the cache meanwhile. */
#ifndef SES_HUB_CACHE_H
#define SES_HUB_CACHE_H

#include "hub_files.h"

/* The snapshot folder of a model in the cache, given a name (ses_hub_name_parse). Fails if it is not cached,
 * if weights are missing in part, and if a file that Sesame reads is a broken link, leads out of the cache
 * or has a wrong size. Free with ses_free. */
char *ses_hub_find(const char *name, ses_err *e);
/* Whether the cache has any files of the model. */
bool ses_hub_is_cached(const char *name);
/* If dir is a snapshot that lacks files, or may lack them, or if the error is about the contents of a file
 * whose hash is wrong, appends them and the command that loads them to the error, once. Returns false. */
bool ses_hub_explain(const char *dir, ses_err *e);
/* hub_verify.c: does the hash of a file differ from the hash in the commit's list, or from the name of
 * the blob it links to? listed NULL: no list exists. False if the hash is unknown. */
bool ses_hub_file_is_damaged(const char *path, const ses_hub_file *listed);

/* The commit of a revision: a commit of 40 digits, or the contents of refs/REVISION. *found is false without
 * an error if this ref does not exist. */
bool ses_hub_read_ref(const char *repo, const char *revision, char commit[SES_HUB_COMMIT + 1], bool *found,
                      ses_err *e);
/* Reads trees/COMMIT.json of a model's folder; an empty list if there is none or it has another version. */
bool ses_hub_read_tree(const char *repo, const char *commit, ses_hub_files *tree, ses_err *e);

/* The state of one snapshot. */
typedef struct ses_hub_check {
    ses_hub_files have; /* files in the snapshot; hashes unknown */
    uint64_t bytes;     /* their sizes, links followed */
    int64_t used;       /* time of the last access to one of them */
    size_t n_missing;   /* files that the list of the commit names and Sesame reads */
    char missing[256];  /* the first of them */
    bool lacks_weights; /* weights are among them */
    char problem[512];  /* a broken or dangerous file that Sesame would read; "": none */
} ses_hub_check;

/* cache: its canonical path; repo: CACHE/models--ORG--NAME. Fails if the folder cannot be read, or its list
 * of files is damaged. */
bool ses_hub_check_snapshot(ses_hub_check *c, const char *cache, const char *repo, const char *commit,
                            ses_err *e);
bool ses_hub_check_has(const ses_hub_check *c, ses_hub_use use); /* a file of this use is in the snapshot */
void ses_hub_check_free(ses_hub_check *c);

/* The canonical path of an existing file or folder. Needs no memory: a failed allocation must not look like
 * a missing file. False: it does not exist. */
enum { SES_HUB_REAL = 4096 };
bool ses_hub_real_path(const char *path, char out[SES_HUB_REAL]);
/* Whether a path, links followed, exists and is below the folder `cache` (canonical). */
bool ses_hub_is_inside(const char *cache, const char *path);

#endif
