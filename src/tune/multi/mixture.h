/* Multi-task training (MT-DNN, Liu et al. 2019): several data sets, one encoder, a head for each task.
 *
 * Each data set is a ses_finetune without a trainer: data, tuner, batches, evaluation, folder. The first one
 * is the run itself, whose store has the encoder and its own head; `ses_mixture_store` has the parameters of
 * all other heads. The models of the other tasks have no memory: their parameters are shared with these two
 * stores.
 *
 * A batch has examples of one task, drawn with probability proportional to (training examples)^alpha: a
 * function of the seed and the position in the run. Each task goes through its own data in its own epochs.
 *
 * A mixture is owned by its first run, which must outlive it. One thread. */
#ifndef SES_TUNE_MIXTURE_H
#define SES_TUNE_MIXTURE_H

#include "tune/finetune_impl.h"

/* Opens the data sets first->o.also and shares the parameters. first is open, without a trainer. */
ses_mixture *ses_mixture_new(ses_finetune *first, ses_err *e);
void ses_mixture_free(ses_mixture *m); /* m may be NULL */

int64_t ses_mixture_size(const ses_mixture *m); /* training sequences of all tasks */
/* The parameters of the other heads, for extra_params of the trainer. */
ses_store *ses_mixture_store(const ses_mixture *m);
/* Batches of all tasks. An epoch has as many batches as all data sets together. */
ses_batch_source ses_mixture_source(ses_mixture *m);
/* The loss of the task whose batch the source returned last: a ses_loss_fn. */
ses_tensor *ses_mixture_loss(void *mixture, ses_tape *t, const ses_batch *b, ses_err *e);

/* Evaluates all tasks: see ses_finetune_evaluate. */
bool ses_mixture_evaluate(ses_mixture *m, bool last, ses_err *e);
/* The scores of all tasks, as TASK_accuracy, and the mean of their main scores (percent as fractions):
 * "mean". */
const ses_eval_report *ses_mixture_report(const ses_mixture *m);
const char *ses_mixture_metric(const ses_mixture *m); /* "mean" or "loss" */

/* Notices about the data of the tasks. */
void ses_mixture_report_sets(const ses_mixture *m);
/* Members that a resumed run must have in common. */
void ses_mixture_put_settings(const ses_mixture *m, ses_json_writer *w);
/* Writes a complete model folder OUT/TASK for each task, then the results of the run and tasks.json. */
bool ses_mixture_write(ses_mixture *m, ses_err *e);

/* The name of task i: its folder in OUT; NULL past the last. */
const char *ses_mixture_name(const ses_mixture *m, size_t i);

#endif
