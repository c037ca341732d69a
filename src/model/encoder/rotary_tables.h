/* Parts that the descriptions of rotary encoders of transformers 5 share: keys, and names of tensors. */
#ifndef SES_MODEL_ENCODER_ROTARY_TABLES_H
#define SES_MODEL_ENCODER_ROTARY_TABLES_H

#include "model/model_desc.h"

/* Pre-norm: Llama's names (EuroBERT, Gemma, Qwen), but for the norm of the feed-forward block. */
enum { SES_ROTARY_KEYS = 19, SES_ROTARY_TENSORS = 12 };
extern const ses_config_key ses_rotary_keys[SES_ROTARY_KEYS];
extern const ses_tensor_name ses_rotary_tensors[SES_ROTARY_TENSORS];

/* Post-norm (nomic, jina v3, GTE). */
enum { SES_ROTARY_POST_TENSORS = 13 };
extern const ses_tensor_name ses_rotary_post_tensors[SES_ROTARY_POST_TENSORS];

/* Keys that ses_rotary_post_read reads. */
#define SES_ROTARY_READS "rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor"

/* Frequencies, biases of attention, heads. */
bool ses_rotary_post_read(ses_config *c, const ses_json *config, ses_err *e);
/* Layers of "layer_types" with a window; absent: `local` tells them by number. */
bool ses_rotary_layer_types(ses_config *c, const ses_json *config,
                            bool (*local)(int64_t layer, int64_t every), int64_t every, ses_err *e);

#endif
