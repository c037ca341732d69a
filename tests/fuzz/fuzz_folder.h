/* Temporary folder for targets that read folders: in memory (/dev/shm) if available, because writes are
 * synced. */
#ifndef TESTS_FUZZ_FOLDER_H
#define TESTS_FUZZ_FOLDER_H

#include "fuzz.h"

#include <unistd.h>

static inline void fuzz_folder(char dir[40])
{
    snprintf(dir, 40, "%s/fuzz.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    MUST(mkdtemp(dir));
}

static inline void fuzz_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    MUST(f && fwrite(data, 1, n, f) == n && !fclose(f));
}

#endif
