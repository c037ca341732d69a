/* Files: read whole, mapped, or replaced as a whole. */
#ifndef SES_BASE_FILE_H
#define SES_BASE_FILE_H

#include "sesame/err.h"

/* The whole of a regular file, with a NUL after it that *n does not count; ses_free. Over max_bytes:
 * refused. */
char *ses_file_read(const char *path, size_t max_bytes, size_t *n, ses_err *e);

/* A regular file mapped for reading; an empty file has size 0 and no data. Another program that cuts the
 * file short meanwhile takes the mapped pages away: files are to be replaced (as ses_writer does), not
 * rewritten. */
typedef struct ses_map {
    const unsigned char *data;
    size_t size;
} ses_map;

bool ses_map_open(ses_map *m, const char *path, ses_err *e);
void ses_map_free(ses_map *m); /* back to zero */

/* Folder and name with one '/' between; ses_free. */
char *ses_path_join(const char *dir, const char *name, ses_err *e);
const char *ses_path_base(const char *path); /* what follows the last '/' */
bool ses_path_exists(const char *path);
bool ses_path_is_dir(const char *path);
bool ses_dir_check(const char *path, ses_err *e); /* a folder we may enter */
bool ses_dir_make(const char *path, ses_err *e);  /* with its parents; fine when it is there */

#endif
