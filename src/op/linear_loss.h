/* Cross entropy of x w' + bias in chunks of rows, shared by linear_cross_entropy.c and
 * copy_cross_entropy.c. Inputs: x [R, C], w [V, C], bias [V] or NULL, labels [R]; with a copy
 * mechanism also the logits of copying [R, 1] and the input tokens [R]. */
#ifndef SES_OP_LINEAR_LOSS_H
#define SES_OP_LINEAR_LOSS_H

#include "op.h"

/* The inputs of the op. */
enum {
    SES_LINEAR_LOSS_X,
    SES_LINEAR_LOSS_WEIGHT,
    SES_LINEAR_LOSS_BIAS,
    SES_LINEAR_LOSS_LABELS,
    SES_LINEAR_LOSS_COPY,  /* only with a copy mechanism: n->n_in > 4 */
    SES_LINEAR_LOSS_TOKENS /* the same */
};

bool ses_linear_loss_infer(ses_node *n, ses_err *e);
void ses_linear_loss_forward(const ses_node *n);
void ses_linear_loss_backward(const ses_node *n);

#endif
