/* The folders of a run's checkpoints: checkpoint-UPDATES, checkpoint-UPDATES-WAITING. */
#ifndef SES_TRAIN_PLACES_H
#define SES_TRAIN_PLACES_H

#include "sesame/err.h"

typedef struct ses_place {
    int64_t updates, waiting;
} ses_place;

typedef struct ses_places {
    ses_place *p; /* newest first; ses_free */
    size_t n, cap;
    bool failed;
} ses_places;

bool ses_places_find(const char *dir, ses_places *l, ses_err *e);
char *ses_place_path(const char *dir, ses_place p, ses_err *e);

/* Removed under another name, SES_PLACE_TEMP..., so that a killed process leaves no half of it. */
#define SES_PLACE_TEMP ".sesame-checkpoint-"
bool ses_place_remove(const char *path, ses_err *e);

/* PATH becomes PATH.damaged, which is no checkpoint; one of that name from before goes. */
bool ses_place_set_aside(const char *path, ses_err *e);
bool ses_places_clear_aside(const char *dir, ses_err *e); /* removes those */

#endif
