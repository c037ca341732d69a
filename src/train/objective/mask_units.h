/* The unit of masking of each text: one unit, or a draw among several with weights. */
#ifndef SES_TRAIN_MASK_UNITS_H
#define SES_TRAIN_MASK_UNITS_H

#include "objective.h"

/* Sets ctx->unit_weight from ctx->o.mask_units; a list of one unit becomes ctx->o.mask_unit. */
bool ses_mask_units_parse(ses_build_ctx *ctx, ses_err *e);
/* The unit of a passage: that of its batch, drawn by the batch's first passage; with static masks the passage
 * draws its own, because static masks do not depend on batches. */
ses_mask_unit ses_mask_unit_of(const ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p);

#endif
