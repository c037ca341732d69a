/* Early exits: classifiers after inner layers, their losses in training, and texts that leave a pass. No new
 * ops: everything here is made of ops of the tape.
 *
 * Ownership: the heads belong to the model, everything else to the tape. Threads: as the tape. */
#ifndef SES_NN_EXIT_HEADS_H
#define SES_NN_EXIT_HEADS_H

#include "nn/nn.h"

#define SES_EXITS_KEY "sesame_exits" /* in config.json, and the prefix of tensors in files */
#define SES_EXIT_PARAMS "exit."      /* prefix of parameters in the store */

/* out(dropout(tanh(dense(x)))), x: the summary of a text after `layer` layers, in models with a norm after
 * the last layer the norm of it. */
typedef struct ses_exit_head {
    int64_t layer;
    ses_dense dense, out; /* dense.w NULL: none */
} ses_exit_head;

/* The use of the exits in a training pass. */
typedef enum {
    SES_EXITS_KEEP,  /* nothing: the loss is the last layer's */
    SES_EXITS_JOINT, /* all are trained with the model: mean of the losses, weighted by the layer (PABEE) */
    SES_EXITS_FROZEN /* they alone are trained: sum of their losses (DeeBERT, second stage) */
} ses_exits_loss;

typedef struct ses_exits {
    ses_exit_head *head; /* [n], by layer */
    int64_t n;
    ses_exits_loss loss;
    bool from_last; /* the targets are the probabilities of the last layer (FastBERT), not the labels */
    double dropout;
} ses_exits;

/* Declares the heads of c->exits. */
bool ses_exits_add(ses_exits *x, ses_store *s, const ses_config *c, ses_err *e);
void ses_exits_free(ses_exits *x);

/* Scores [p->in.seqs, labels] of an exit; state: hidden state after its layer. */
ses_tensor *ses_exit_head_run(const ses_exits *x, const ses_exit_head *h, const ses_stack *k,
                              ses_forward_ctx *p, ses_tensor *state);

/* The loss of a training pass: p->layer has the hidden states, `last` the scores of the last layer, last_loss
 * their loss, label [seqs] the labels. */
ses_tensor *ses_exits_train(const ses_exits *x, const ses_stack *k, ses_forward_ctx *p, ses_tensor *last,
                            ses_tensor *last_loss, const int32_t *label);

/* Texts that leave a pass. The sequences of p->in become fewer; their numbers in the batch are in `text`. */
typedef struct ses_leaving {
    const ses_exits *exits;
    const ses_exit_policy *policy;
    const ses_head_use *use; /* heads of the last layer */
    size_t n_uses;
    int64_t texts, labels;
    int32_t *text;    /* [p->in.seqs] */
    int32_t *layer;   /* [texts]: layers passed; 0: still in the pass */
    ses_real *scores; /* [texts, labels] of texts that have left */
    int32_t *best;    /* [texts]: label of the last exit, -1: none */
    int32_t *same;    /* [texts]: times it has stayed the same */
    int64_t next;     /* exit to be computed */
} ses_leaving;

/* Sets p->leaving; p->in is uploaded, p->c->labels is set. */
void ses_exits_begin(ses_forward_ctx *p, const ses_exits *x, const ses_exit_policy *policy,
                     const ses_head_use *use, size_t n_uses);
/* Computes the exit after this layer, if there is one, and removes the texts that leave: x, the hidden state,
 * without their rows; NULL if none is left. *start: the point that the layers rewind the tape to. */
ses_tensor *ses_exits_after_layer(const ses_stack *k, ses_forward_ctx *p, ses_stack_ctx *ctx, ses_tensor *x,
                                  int64_t layer, ses_tape_mark *start);
/* Scores of all texts, [texts, labels]: of their exits; texts that reached the last layer have the scores
 * `last`. */
ses_tensor *ses_exits_scores(ses_forward_ctx *p, ses_tensor *last, int64_t depth);

/* Entropy of softmax(x[n]) / log(n). */
double ses_exit_entropy(const ses_real *x, int64_t n);

#endif
