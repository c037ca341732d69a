/* Folders that appear whole: written under another name, made durable, renamed. And a lock on a folder. */
#ifndef SES_BASE_DIR_H
#define SES_BASE_DIR_H

#include "sesame/err.h"

bool ses_dir_sync(const char *path, ses_err *e); /* its entries are on the disk */
/* Removes a folder and the files in it, but no folders; fine when it is not there. */
bool ses_dir_remove(const char *path, ses_err *e);

/* `from` becomes `to` in the same folder, durably; what stood at `to` is removed afterwards. A crash leaves
 * the old one or the new one, the old one perhaps under a name that ses_dir_recover(its folder) undoes. */
bool ses_dir_replace(const char *from, const char *to, ses_err *e);
bool ses_dir_recover(const char *dir, ses_err *e); /* only while nobody replaces anything there */

/* Moves the files of `from` into `to` and removes `from`. The file `last` of `to` goes first and comes last,
 * so whoever reads it first finds the old files or the new ones, at every moment, or no `last`. Only names
 * change: a full disk is no obstacle. */
bool ses_dir_move_into(const char *from, const char *to, const char *last, ses_err *e);

/* Held by one process at a time, and given back when it ends, however it ends. The file is DIR/.lock. */
typedef struct ses_dir_lock ses_dir_lock;
ses_dir_lock *ses_dir_lock_new(const char *dir, ses_err *e);
void ses_dir_lock_free(ses_dir_lock *l);

#endif
