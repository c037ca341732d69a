/* The checkpoint folders of a run: checkpoint-UPDATES, or checkpoint-UPDATES-N with N accumulated batches.
 * The caller frees lists and paths and holds the run's lock. One thread. */
#ifndef SES_TRAIN_CHECKPOINT_DIR_H
#define SES_TRAIN_CHECKPOINT_DIR_H

#include "sesame/base.h"

typedef struct ses_checkpoint_dir {
    int64_t updates, accumulated;
} ses_checkpoint_dir;

typedef struct ses_checkpoint_dirs {
    ses_checkpoint_dir *p; /* newest first; free with ses_free */
    size_t n, cap;
    bool failed;
} ses_checkpoint_dirs;

/* Does the folder have a checkpoint, damaged ones included? false: none, or no such folder. */
bool ses_checkpoint_any(const char *dir);
bool ses_checkpoint_dirs_find(const char *dir, ses_checkpoint_dirs *l, ses_err *e);
char *ses_checkpoint_dir_path(const char *dir, ses_checkpoint_dir p, ses_err *e); /* free with ses_free */

/* Renames the folder to SES_CHECKPOINT_TEMP... before deleting it: a killed process leaves no incomplete
 * checkpoint. */
#define SES_CHECKPOINT_TEMP ".sesame-checkpoint-"
bool ses_checkpoint_remove(const char *path, ses_err *e);

/* Renames PATH to PATH.damaged, replacing an older one. */
bool ses_checkpoint_quarantine(const char *path, ses_err *e);
bool ses_checkpoint_remove_quarantined(const char *dir, ses_err *e); /* deletes all *.damaged */
bool ses_checkpoint_remove_all(const char *dir, ses_err *e);         /* with all *.damaged */

#endif
