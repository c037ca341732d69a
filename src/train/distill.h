/* Knowledge distillation: the loss of a student against a teacher's outputs (sesame/training.h has the
 * formula). Layer i of the student's s layers is matched with layer i t / s of the teacher's t (hidden
 * states), attention with the last layer of that range. Works for every class whose head outputs logits.
 *
 * Student and teacher are borrowed. One thread. */
#ifndef SES_TRAIN_DISTILL_H
#define SES_TRAIN_DISTILL_H

#include "sesame/training.h"

extern const ses_distill_options ses_distill_defaults; /* DistilBERT: T = 2, soft 5, hard 2, cosine 1 */

typedef struct ses_distill ses_distill;

/* The teacher need not be opened for training. */
ses_distill *ses_distill_new(const ses_distill_options *o, ses_model *student, const ses_model *teacher,
                             ses_err *e);
/* Adds a teacher, which must have the labels of the first: the student learns the mean of the probabilities
 * of all teachers at the temperature (one column: of their values). Fails if other terms than soft and hard
 * have a weight. */
bool ses_distill_add_teacher(ses_distill *d, const ses_model *teacher, ses_err *e);
void ses_distill_free(ses_distill *d);
ses_tensor *ses_distill_loss(void *distill, ses_tape *t, const ses_batch *b, ses_err *e); /* a ses_loss_fn */

/* Trainable projections, for extra_params of the trainer: if the widths differ, two matrices from the
 * student's width to the teacher's, one for the embeddings, one for the layers (TinyBERT). NULL: none. */
ses_store *ses_distill_store(const ses_distill *d);

#endif
