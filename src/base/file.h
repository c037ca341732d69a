/* Files: read at once, memory-mapped, or replaced atomically; and paths. */
#ifndef SES_BASE_FILE_H
#define SES_BASE_FILE_H

#include "sesame/base.h"

/* The contents of a regular file, followed by a NUL that *n does not count. Fails if it has more than
 * max_bytes. Free with ses_free. */
char *ses_file_read(const char *path, size_t max_bytes, size_t *n, ses_err *e);

/* A regular file mapped for reading; an empty file has size 0 and data NULL. If another program truncates the
 * file, access to the lost pages faults: files should be replaced (as ses_file_writer does), not
 * rewritten. */
typedef struct ses_mmap {
    const unsigned char *data;
    size_t size;
} ses_mmap;

bool ses_mmap_open(ses_mmap *m, const char *path, ses_err *e);
void ses_mmap_free(ses_mmap *m); /* back to zero */
/* Releases the whole pages among n mapped bytes from memory. They stay valid: a later access reads them
 * again. */
void ses_mmap_release(const void *p, size_t n);

/* Folder and name joined by one '/'. Free with ses_free. */
char *ses_path_join(const char *dir, const char *name, ses_err *e);
/* Last component, with its trailing slashes; points into path. */
const char *ses_path_basename(const char *path);
void ses_path_trim(char *path); /* removes trailing slashes, but keeps "/" */
/* The folder of a path: everything before the last component; "." if there is none. Free with ses_free. */
char *ses_path_parent(const char *path, ses_err *e);

/* The last component without trailing slashes, for messages. */
typedef struct ses_path_name {
    char s[256];
} ses_path_name;
ses_path_name ses_path_name_of(const char *path);
bool ses_path_exists(const char *path);
bool ses_path_is_dir(const char *path);
bool ses_path_same(const char *a, const char *b); /* both exist and are the same file or folder */
bool ses_dir_check(const char *path, ses_err *e); /* fails unless path is a folder with search permission */
bool ses_dir_make(const char *path, ses_err *e);  /* creates the folder and its parents; may exist */

/* Calls fn with each name in a folder except "." and "..", in no particular order, until it returns false.
 * Fails if the folder cannot be read. */
bool ses_dir_each(const char *path, bool (*fn)(void *ctx, const char *name), void *ctx, ses_err *e);
/* *empty: the folder has no entry, or only one of this name (NULL: none). */
bool ses_dir_is_empty(const char *path, const char *except, bool *empty, ses_err *e);
bool ses_file_remove(const char *path, ses_err *e); /* succeeds if the file does not exist */

/* Atomic replacement of a file: bytes are written to a temporary file in the same folder, which the commit
 * syncs and renames. If anything fails before that, an existing file is unchanged and the temporary is
 * removed. Only a killed process leaves a temporary (.sesame-*.tmp). */
typedef struct ses_file_writer ses_file_writer;

/* Fails if the file exists, unless overwrite. */
ses_file_writer *ses_file_writer_open(const char *path, bool overwrite, ses_err *e);
/* Fails if the disk has less. */
bool ses_file_writer_check_space(ses_file_writer *w, uint64_t bytes, ses_err *e);
bool ses_file_writer_put(ses_file_writer *w, const void *p, size_t n, ses_err *e);
/* Maps the bytes so far; free it with ses_mmap_free. */
bool ses_file_writer_map(ses_file_writer *w, ses_mmap *m, ses_err *e);
/* Replaces n bytes at offset `at`, which have been put. */
bool ses_file_writer_patch(ses_file_writer *w, uint64_t at, const void *p, size_t n, ses_err *e);
/* Writes and fsyncs all bytes; no put may follow. */
bool ses_file_writer_sync(ses_file_writer *w, ses_err *e);
bool ses_file_writer_commit(ses_file_writer *w, ses_err *e); /* syncs if necessary, then renames */
void ses_file_writer_free(ses_file_writer *w);               /* before a commit: discards everything */

/* Gives a complete file its final name in the same folder; temp no longer exists then. Unless overwrite, the
 * name is created exclusively: of several processes that end at once, one succeeds and the others fail as
 * ses_fail_exists. After a failure temp is as before. */
bool ses_file_place(const char *temp, const char *path, bool overwrite, ses_err *e);
/* The error for a result that exists and may not be replaced. Returns false. */
bool ses_fail_exists(const char *path, ses_err *e);

/* A file without a name in the folder of `path`, for reading and writing: its descriptor, or -1. The system
 * removes it when it is closed, also if the process is killed. */
int ses_file_unnamed(const char *path, ses_err *e);

/* The error of every failed write, "NAME: cannot be written: REASON"; why: the errno, 0: unknown. Returns
 * false. */
bool ses_fail_write(const char *name, int why, ses_err *e);
/* Writes n bytes to an open file; name: for the error. */
bool ses_fd_write(int fd, const void *p, size_t n, const char *name, ses_err *e);

/* Replaces a file by n bytes at p. */
bool ses_file_write(const char *path, const void *p, size_t n, bool overwrite, ses_err *e);

#endif
