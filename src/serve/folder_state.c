/* Reads the state of a folder. */
#define _POSIX_C_SOURCE 200809L
#include "folder_state.h"

#include "base/file.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct reader {
    const char *dir;
    uint64_t files;
} reader;

/* The sum of the files' hashes does not depend on their order. */
static bool add_file(void *ctx, const char *name)
{
    reader *r = ctx;
    char path[4096];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%s", r->dir, name) >= (int)sizeof path || stat(path, &st) ||
        !S_ISREG(st.st_mode))
        return true;
    uint64_t part[6] = { (uint64_t)st.st_dev,         (uint64_t)st.st_ino,          (uint64_t)st.st_size,
                         (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec, 0 };
    part[5] = ses_hash((ses_hash_key){ 0, 0 }, name, strlen(name));
    r->files += ses_hash((ses_hash_key){ 0, 1 }, part, sizeof part);
    return true;
}

ses_folder_state ses_folder_state_of(const char *dir)
{
    reader r = { .dir = dir };
    struct stat st;
    if (stat(dir, &st) || !ses_dir_each(dir, add_file, &r, NULL)) return (ses_folder_state){ 0 };
    return (ses_folder_state){ (uint64_t)st.st_dev, (uint64_t)st.st_ino, r.files };
}

bool ses_folder_state_equal(const ses_folder_state *a, const ses_folder_state *b)
{
    return a->number && a->number == b->number && a->device == b->device && a->files == b->files;
}
