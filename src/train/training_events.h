/* Notices of a training run and resuming with notices, for fine-tuning and pretraining. Nothing is kept. */
#ifndef SES_TRAIN_TRAINING_EVENTS_H
#define SES_TRAIN_TRAINING_EVENTS_H

#include "run_log.h"
#include "sesame/training.h"

/* Sends a SES_TRAINING_NOTICE of at most 1,000 bytes. Returns whether to continue, as on_event does. on_event
 * NULL: no effect. A run passes a callback that keeps the answer. */
bool ses_training_notify(ses_training_fn *on_event, void *ctx, const char *fmt, ...) SES_PRINTF(3, 4);
/* The same with is_warning. */
bool ses_training_warn(ses_training_fn *on_event, void *ctx, const char *fmt, ...) SES_PRINTF(3, 4);

typedef struct ses_training_resumed {
    bool is_complete; /* the folder has the results of the run: nothing to do */
    ses_run_totals before;
} ses_training_resumed;

/* Continues from the newest intact checkpoint of the trainer's folder `dir`, if there is one. Notices name
 * skipped checkpoints and the one used. Fails if all are damaged. All ranks call it and get the same result:
 * rank 0 reads the folder. */
bool ses_training_resume(ses_trainer *t, const char *dir, ses_training_fn *on_event, void *ctx,
                         ses_training_resumed *out, ses_err *e);

#endif
