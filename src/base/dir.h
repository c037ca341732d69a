/* Folders: atomic replacement (written under another name, synced, renamed), and a lock per folder. */
#ifndef SES_BASE_DIR_H
#define SES_BASE_DIR_H

#include "sesame/base.h"

bool ses_dir_sync(const char *path, ses_err *e); /* fsyncs the folder's entries */
/* Removes a folder and the files in it; fails if it has subfolders. Succeeds if the folder does not exist. */
bool ses_dir_remove(const char *path, ses_err *e);
/* The same with its subfolders. Links are removed, not followed. */
bool ses_dir_remove_all(const char *path, ses_err *e);

/* Renames folder `from` to `to` in the same parent, durably, then removes the previous `to`. A crash leaves
 * the old or the new folder; the old one possibly under a temporary name, which ses_dir_recover(parent)
 * reverts. */
bool ses_dir_replace(const char *from, const char *to, ses_err *e);
/* Gives a complete folder its final name in the same parent. overwrite: as ses_dir_replace. Else the name is
 * created exclusively, as by ses_file_place; only an empty folder is replaced. */
bool ses_dir_place(const char *from, const char *to, bool overwrite, ses_err *e);
/* Must not run while another process replaces folders there. */
bool ses_dir_recover(const char *dir, ses_err *e);

/* Moves the files of `from` into `to` and removes `from`. File `last` of `to` is removed first and moved
 * last, so a reader that opens `last` first finds all old files, all new files, or no `last`. Only names
 * change: this works on a full disk. */
bool ses_dir_move_into(const char *from, const char *to, const char *last, ses_err *e);

/* Exclusive lock of a folder between processes, released when the process ends. The file is DIR/.lock. */
typedef struct ses_dir_lock ses_dir_lock;
ses_dir_lock *ses_dir_lock_new(const char *dir, ses_err *e);
/* The same, but waits up to this many seconds for a run that is ending: it may still save its state. */
ses_dir_lock *ses_dir_lock_wait(const char *dir, double seconds, ses_err *e);
void ses_dir_lock_free(ses_dir_lock *l);

#endif
