/* Losses of vectors that are compared, as the sentence-transformers library has them. x [n * group, W]: the
 * vectors of example i are rows i * group and on. All are means over examples, scalars on the tape. */
#ifndef SES_TRAIN_SIMILARITY_H
#define SES_TRAIN_SIMILARITY_H

#include "sesame/ops.h"

/* Cross entropy of w (u, v, |u - v|) + b: w [labels, 3 W]. Pairs. (Reimers and Gurevych 2019) */
ses_tensor *ses_loss_softmax(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *b, const int32_t *label,
                             int64_t n);

/* (cos(u, v) - target)^2. Pairs. */
ses_tensor *ses_loss_cosine(ses_tape *t, ses_tensor *x, const ses_real *target, int64_t n);

/* With d = 1 - cos(u, v): (y d^2 + (1 - y) max(0, margin - d)^2) / 2. Pairs; y 1: they mean the same.
 * (Hadsell et al. 2006) */
ses_tensor *ses_loss_contrastive(ses_tape *t, ses_tensor *x, const ses_real *y, int64_t n, double margin);

/* max(0, |a - p| - |a - n| + margin). Triplets. */
ses_tensor *ses_loss_triplet(ses_tape *t, ses_tensor *x, int64_t n, double margin);

/* Which of all the batch's second (and further) texts belongs to a first one? Cross entropy of scale times
 * cosines. (Henderson et al. 2017) */
ses_tensor *ses_loss_in_batch_negatives(ses_tape *t, ses_tensor *x, int64_t n, int64_t group, double scale);

#endif
