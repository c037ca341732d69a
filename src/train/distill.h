/* Knowledge distillation: a student learns what a teacher says (Hinton et al. 2015; DistilBERT, Sanh et al.
 * 2019; TinyBERT, Jiao et al. 2020).
 *   loss = soft T^2 KL(teacher / T || student / T) + hard (the student's own loss)
 *        + cosine (1 - cos of the last hidden states) + hidden (mean square of hidden states, layer by layer)
 *        + attention (mean square of attention scores, layer by layer)
 * Layer i of the student's s stands for layer i t / s of the teacher's t (hidden states), and its last
 * attention of that range. Works on any class of models whose head gives scores: of tokens with labels, of
 * sequences. */
#ifndef SES_TRAIN_DISTILL_H
#define SES_TRAIN_DISTILL_H

#include "sesame/training.h"

extern const ses_distill_options ses_distill_defaults; /* DistilBERT's: T = 2, 5, 2, 1 */

typedef struct ses_distill ses_distill;

/* Both are borrowed; the teacher need not be open for training. */
ses_distill *ses_distill_new(const ses_distill_options *o, ses_model *student, const ses_model *teacher,
                             ses_err *e);
void ses_distill_free(ses_distill *d);
ses_tensor *ses_distill_loss(void *distill, ses_tape *t, const ses_batch *b, ses_err *e); /* a ses_loss_fn */

/* What is learned beside the student, for the trainer's `more`: where widths differ, two matrices that bring
 * the student's hidden states to the teacher's width, one for the embeddings (TinyBERT). NULL: nothing. */
ses_store *ses_distill_store(const ses_distill *d);

/* Parameters of the teacher that fit: layer i of the student from layer i t / s (every other one of twice as
 * many), the rest by name. copied: how many were. */
bool ses_student_init(ses_model *student, const ses_model *teacher, size_t *copied, ses_err *e);

#endif
