/* The curriculum of a pretraining run: which passages form batch i, their length and number, and the
 * objective they are used for. A batch source for the trainer, and evaluations.
 *
 * A run has stages of increasing sequence length; each iterates over the texts. An epoch of the trainer is
 * one pass over the texts, or less if its stage ends before.
 *
 * The curriculum borrows everything its options point to. One thread. */
#ifndef SES_TRAIN_CURRICULUM_H
#define SES_TRAIN_CURRICULUM_H

#include "train/objective/objective_mix.h"

enum { SES_MAX_STAGES = 8 };

typedef struct ses_curriculum_stage {
    int64_t length;  /* maximum sequence length, special tokens included */
    double fraction; /* fraction of the run's updates */
} ses_curriculum_stage;

typedef struct ses_curriculum_options {
    ses_objective_mix *objectives;
    ses_passages_options passages; /* length is set by the stages */
    ses_curriculum_stage stage[SES_MAX_STAGES];
    size_t n_stages;
    int64_t sequences, tokens; /* per batch: N passages, or as many as fit into N tokens; one of them is 0 */
    double batch_ramp;         /* fraction of the run with batch-size warmup, */
    double ramp_from;          /* starting at this fraction of the full size */
    int64_t update_batches;    /* batches per update: lanes times accumulated batches; 0: 1 */
    int64_t updates; /* length of the run; 0: `epochs` over the texts, at the first stage's length */
    double epochs;
    const ses_mixture_part *eval_part; /* evaluation corpora */
    size_t n_eval_parts;
    bool eval_held_out; /* evaluate on their held-out documents; else on the others */
    ses_comm *comm;     /* ranks that share evaluations; NULL: one rank */
} ses_curriculum_options;

typedef struct ses_curriculum ses_curriculum;
ses_curriculum *ses_curriculum_new(const ses_curriculum_options *o, ses_err *e);
void ses_curriculum_free(ses_curriculum *c);
int64_t ses_curriculum_updates(const ses_curriculum *c);
int64_t ses_curriculum_pass_tokens(const ses_curriculum *c); /* per pass over the texts in the first stage */
/* Passages of that pass that are skipped: too short for an objective. */
int64_t ses_curriculum_pass_skipped(const ses_curriculum *c);
ses_batch_source ses_curriculum_source(ses_curriculum *c);

/* Mean losses and accuracies of each objective over about `tokens` tokens of the evaluation texts, with the
 * default mask rate so that runs are comparable. The ranks compute the batches in turn; all get the sums,
 * added in the order of the batches. should_continue: false on a rank cancels on all; NULL: never.
 * *cancelled: this was the reason of the failure. */
bool ses_curriculum_evaluate(ses_curriculum *c, int64_t tokens, bool (*should_continue)(void *ctx), void *ctx,
                             ses_metric_sums *out, bool *cancelled, ses_err *e);

/* Unigram baseline: the loss of predicting labels by their frequency in the training texts, for a primary
 * objective. NaN: token labels or evaluation texts are missing. */
bool ses_curriculum_unigram_loss(ses_curriculum *c, size_t primary, int64_t tokens, double *loss, ses_err *e);

#endif
