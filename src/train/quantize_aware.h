/* Quantization-aware training: dense layers compute with the rounding of int8 inference. */
#ifndef SES_TRAIN_QUANTIZE_AWARE_H
#define SES_TRAIN_QUANTIZE_AWARE_H

#include "sesame/model.h"

/* From now on products with the weights that int8 inference quantizes round both operands, in training and in
 * evaluation: the weights of Transformer layers, not embeddings and heads. Fails for models without such
 * layers. */
bool ses_model_round_i8(ses_model *m, ses_err *e);

#endif
