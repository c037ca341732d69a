/* The files of a model at one commit: paths, sizes and hashes, as the hub's API or trees/COMMIT.json of the
 * cache list them; and the choice of the files that Sesame reads.
 *
 * Ownership: free a list with ses_hub_files_free. Threads: a list belongs to one thread. */
#ifndef SES_HUB_FILES_H
#define SES_HUB_FILES_H

#include "base/sha.h"
#include "hub_name.h"
#include "sesame/json.h"

enum { SES_HUB_MAX_FILES = 200000, SES_HUB_LIST_MAX = 64 << 20 }; /* files; bytes of a list as JSON */

typedef enum {
    SES_HUB_SKIPPED,  /* not read by Sesame */
    SES_HUB_OPTIONAL, /* read if present */
    SES_HUB_TOKENIZER,
    SES_HUB_CONFIG,
    SES_HUB_WEIGHTS,
} ses_hub_use;

typedef struct ses_hub_file {
    char *path;
    uint64_t size;
    char sha1[SES_SHA1_HEX + 1];     /* SHA-1 of git's blob (LFS: of the pointer); "": unknown */
    char sha256[SES_SHA256_HEX + 1]; /* SHA-256 of an LFS file; "": a plain file of git */
    ses_hub_use use;
} ses_hub_file;

typedef struct ses_hub_files {
    char commit[SES_HUB_COMMIT + 1];
    ses_hub_file *item;
    size_t n, cap;
} ses_hub_files;

/* Reads the answer of /api/models/ID/revision/REV?blobs=true: "sha" and "siblings". Unsafe paths, sizes and
 * hashes are errors. Chooses the files (ses_hub_files_choose). */
bool ses_hub_files_from_api(ses_hub_files *f, const ses_json *answer, ses_err *e);
/* Reads trees/COMMIT.json; the same checks. */
bool ses_hub_files_from_tree(ses_hub_files *f, const ses_json *tree, const char *commit, ses_err *e);
/* The text of trees/COMMIT.json; free with ses_free. */
char *ses_hub_files_tree(const ses_hub_files *f, size_t *len, ses_err *e);
void ses_hub_files_free(ses_hub_files *f);                                        /* back to zero */
bool ses_hub_files_add(ses_hub_files *f, const char *path, size_t n, ses_err *e); /* its path only */

/* Sets `use` of every file: of each folder of a sentence encoder's modules and of the main folder, the config
 * and tokenizer files and one kind of weights: safetensors, else .bin, else int8, else TensorFlow's. */
void ses_hub_files_choose(ses_hub_files *f);
/* Fails unless the chosen files contain weights or a tokenizer. */
bool ses_hub_files_check_usable(const ses_hub_files *f, ses_err *e);

/* The name of the file's blob in the cache: its SHA-256, or git's SHA-1. */
const char *ses_hub_file_etag(const ses_hub_file *f);
const ses_hub_file *ses_hub_files_find(const ses_hub_files *f, const char *path);

#endif
