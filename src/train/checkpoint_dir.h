/* The folders of a run's checkpoints: checkpoint-UPDATES, checkpoint-UPDATES-WAITING. */
#ifndef SES_TRAIN_PLACES_H
#define SES_TRAIN_PLACES_H

#include "sesame/err.h"

typedef struct ses_checkpoint_dir {
    int64_t updates, accumulated;
} ses_checkpoint_dir;

typedef struct ses_checkpoint_dirs {
    ses_checkpoint_dir *p; /* newest first; ses_free */
    size_t n, cap;
    bool failed;
} ses_checkpoint_dirs;

bool ses_checkpoint_dirs_find(const char *dir, ses_checkpoint_dirs *l, ses_err *e);
char *ses_checkpoint_dir_path(const char *dir, ses_checkpoint_dir p, ses_err *e);

/* Removed under another name, SES_CHECKPOINT_TEMP..., so that a killed process leaves no half of it. */
#define SES_CHECKPOINT_TEMP ".sesame-checkpoint-"
bool ses_checkpoint_remove(const char *path, ses_err *e);

/* PATH becomes PATH.damaged, which is no checkpoint; one of that name from before goes. */
bool ses_checkpoint_quarantine(const char *path, ses_err *e);
bool ses_checkpoint_remove_quarantined(const char *dir, ses_err *e); /* removes those */

#endif
