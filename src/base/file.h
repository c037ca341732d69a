/* Files: read whole, mapped, or replaced as a whole. */
#ifndef SES_BASE_FILE_H
#define SES_BASE_FILE_H

#include "sesame/err.h"

/* The whole of a regular file, with a NUL after it that *n does not count; ses_free. Over max_bytes:
 * refused. */
char *ses_file_read(const char *path, size_t max_bytes, size_t *n, ses_err *e);

/* A regular file mapped for reading; an empty file has size 0 and no data. Another program that cuts the
 * file short meanwhile takes the mapped pages away: files are to be replaced (as ses_file_writer does), not
 * rewritten. */
typedef struct ses_mmap {
    const unsigned char *data;
    size_t size;
} ses_mmap;

bool ses_mmap_open(ses_mmap *m, const char *path, ses_err *e);
void ses_mmap_free(ses_mmap *m); /* back to zero */
/* Whole pages among n bytes of a map leave this process's memory; who reads them again gets them again. */
void ses_mmap_release(const void *p, size_t n);

/* Folder and name with one '/' between; ses_free. */
char *ses_path_join(const char *dir, const char *name, ses_err *e);
const char *ses_path_basename(const char *path); /* the last name, with the slashes behind it if there are */
void ses_path_trim(char *path);                  /* takes those away; of "//" one is left */

/* The last name of a path, for people: slashes behind it left out. */
typedef struct ses_path_name {
    char s[256];
} ses_path_name;
ses_path_name ses_path_name_of(const char *path);
bool ses_path_exists(const char *path);
bool ses_path_is_dir(const char *path);
bool ses_dir_check(const char *path, ses_err *e); /* a folder we may enter */
bool ses_dir_make(const char *path, ses_err *e);  /* with its parents; fine when it is there */

/* Calls fn with each name in a folder but "." and "..", in no order, until it returns false. False: the
 * folder cannot be read. */
bool ses_dir_each(const char *path, bool (*fn)(void *ctx, const char *name), void *ctx, ses_err *e);
bool ses_file_remove(const char *path, ses_err *e); /* fine when it is not there */

/* Replaces a file as a whole: the bytes go to a temporary file in the same folder, which commit makes
 * durable (fsync) and gives its name. Whatever fails before that, an older file stands as it was and the
 * temporary is removed; only a killed process can leave one (.sesame-*.tmp). */
typedef struct ses_file_writer ses_file_writer;

/* Without overwrite an existing file is refused. */
ses_file_writer *ses_file_writer_open(const char *path, bool overwrite, ses_err *e);
bool ses_file_writer_check_space(ses_file_writer *w, uint64_t bytes,
                                 ses_err *e); /* false: the disk has less room */
bool ses_file_writer_put(ses_file_writer *w, const void *p, size_t n, ses_err *e);
bool ses_file_writer_sync(ses_file_writer *w, ses_err *e); /* all bytes are on the disk; no more may follow */
bool ses_file_writer_commit(ses_file_writer *w, ses_err *e); /* syncs unless done, then renames */
void ses_file_writer_free(ses_file_writer *w);               /* before a commit: as if it had never been */

bool ses_file_write(const char *path, const void *p, size_t n, bool overwrite, ses_err *e);

#endif
