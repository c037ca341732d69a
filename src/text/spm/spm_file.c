/* Files of SentencePiece by their content. */
#define _POSIX_C_SOURCE 200809L
#include "spm_proto.h"

#include "base/alloc.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_BYTES = 64 << 20, FIRST_FIELD = 0x0A }; /* pieces, field 1, come first */

bool ses_spm_is_file(const char *path)
{
    struct stat s;
    size_t n;
    ses_spm m = { 0 };
    if (stat(path, &s) || !S_ISREG(s.st_mode) || s.st_size < 2 || s.st_size > MAX_BYTES) return false;
    FILE *f = fopen(path, "rb");
    bool may_be = f && getc(f) == FIRST_FIELD;
    if (f) fclose(f);
    char *bytes = may_be ? ses_file_read(path, MAX_BYTES, &n, NULL) : NULL;
    bool is = bytes && ses_spm_parse(&m, bytes, n, NULL) && m.n > 0;
    ses_spm_free(&m);
    ses_free(bytes);
    return is;
}

typedef struct search {
    const char *dir;
    char *name; /* [256] */
    int found;
} search;

static bool look(void *ctx, const char *name)
{
    search *s = ctx;
    if (strlen(name) > 255) return true;
    char *path = ses_path_join(s->dir, name, NULL);
    if (path && ses_spm_is_file(path) && !s->found++) snprintf(s->name, 256, "%s", name);
    ses_free(path);
    return true;
}

bool ses_spm_find_file(const char *dir, char name[static 256])
{
    search s = { dir, name, 0 };
    return ses_dir_each(dir, look, &s, NULL) && s.found == 1;
}
