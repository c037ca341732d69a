/* Heads and feed-forward rows whose weights are zero: a smaller model that computes the same function.
 *
 * A unit (a head, a row) is removed if the columns of the second matrix (attn.out, ffn.down) that read it
 * are zero, or if its outputs are constant because its rows of the first matrix (values; ffn.up or its gate)
 * are zero: the second bias then gets this constant, which follows from the first bias. A model without the
 * second bias keeps units whose constant is not zero. A head with empty queries or keys still takes the mean
 * of the values and stays. */
#ifndef SES_TRAIN_EMPTY_PARTS_H
#define SES_TRAIN_EMPTY_PARTS_H

#include "sesame/model.h"

/* The smaller model, with values of its own; m has its values in reals. NULL and an error: out of memory, or
 * parts of this architecture cannot be removed. */
ses_model *ses_model_without_empty_parts(const ses_model *m, ses_err *e);

#endif
