/* Losses of sentence embeddings, as in sentence-transformers. x [n * group, W]: the vectors of example i
 * are rows i * group to (i + 1) * group - 1. Each loss is a mean over examples: a scalar on the tape, owned
 * by it; NULL if the tape failed. One thread per tape. */
#ifndef SES_TRAIN_SIMILARITY_LOSS_H
#define SES_TRAIN_SIMILARITY_LOSS_H

#include "sesame/unstable/ops.h"

/* Pairs: cross entropy of w (u, v, |u - v|) + b, w [labels, 3 W] (Reimers and Gurevych 2019). */
ses_tensor *ses_loss_softmax(ses_tape *t, ses_tensor *x, ses_tensor *w, ses_tensor *b, const int32_t *label,
                             int64_t n);

/* Pairs: (cos(u, v) - target)^2. */
ses_tensor *ses_loss_cosine(ses_tape *t, ses_tensor *x, const ses_real *target, int64_t n);

/* Pairs: (y d^2 + (1 - y) max(0, margin - d)^2) / 2 with d = 1 - cos(u, v); y 1: similar (Hadsell et al.
 * 2006). */
ses_tensor *ses_loss_contrastive(ses_tape *t, ses_tensor *x, const ses_real *y, int64_t n, double margin);

/* Triplets: max(0, |a - p| - |a - n| + margin). */
ses_tensor *ses_loss_triplet(ses_tape *t, ses_tensor *x, int64_t n, double margin);

/* Multiple negatives ranking: cross entropy of scale * cosine of each first text with all second (and
 * further) texts of the batch; the label is its own second text (Henderson et al. 2017). */
ses_tensor *ses_loss_in_batch_negatives(ses_tape *t, ses_tensor *x, int64_t n, int64_t group, double scale);

#endif
