/* Cross-View Training (Clark et al. 2018): semi-supervised training of a tagger with a bidirectional first
 * layer. Batches with and without labels take turns. On a batch without labels, four auxiliary classifiers
 * see parts of the first layer and learn the predictions of the whole model, which is not trained by them:
 *     forward    its forward state at the word       future     its forward state before the word
 *     backward   its backward state at the word      past       its backward state after the word
 *     loss = mean over words of sum over views of KL(model || view)
 * The model predicts without dropout. The auxiliary classifiers are part of checkpoints, not of the model.
 *
 * Ownership: the model, the labeled source and the finetuner are borrowed. Threads: one at a time. */
#ifndef SES_TUNE_CROSS_VIEW_H
#define SES_TUNE_CROSS_VIEW_H

#include "finetuner.h"
#include "sesame/unstable/trainer.h"

typedef struct ses_cross_view ses_cross_view;

/* Checks the options of a run that may have unlabeled data. */
bool ses_cross_view_check(const ses_finetune_options *o, const ses_finetune_task *task, ses_err *e);

/* A view set of a model that is open for training; NULL and an error: the model has no bidirectional first
 * layer, or has a CRF. */
ses_cross_view *ses_cross_view_new(ses_model *m, uint64_t seed, ses_err *e);
void ses_cross_view_free(ses_cross_view *v); /* NULL is allowed */
/* Parameters of the auxiliary classifiers, opened for training. */
ses_store *ses_cross_view_store(const ses_cross_view *v);

/* Encodes the examples of a file without labels by the tuner. */
bool ses_cross_view_read(ses_cross_view *v, ses_finetuner *t, const ses_data_spec *spec, const char *file,
                         const ses_batching *how, ses_err *e);
/* Labeled batches at even positions, batches without labels at odd ones: an epoch is a pass over the labeled
 * examples; the others continue where the epoch before has ended. */
ses_batch_source ses_cross_view_source(ses_cross_view *v, ses_batch_source labeled);
int64_t ses_cross_view_size(const ses_cross_view *v); /* examples without labels */

/* A ses_loss_fn: the loss of the model's head if the batch has labels, else of the views. */
ses_tensor *ses_cross_view_loss(void *cross_view, ses_tape *t, const ses_batch *b, ses_err *e);

#endif
