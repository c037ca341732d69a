/* Parts of tables that recurrent and n-gram models share. Static data. */
#ifndef SES_MODEL_RECURRENT_TABLES_H
#define SES_MODEL_RECURRENT_TABLES_H

#include "model/model_desc.h"

/* No special tokens unless the config has them, texts of any length without position table. */
#define SES_RECURRENT_DEFAULTS \
    .pad_id = -1, .eos_id = -1, .decoder.start_id = -1, .position.kind = SES_POS_NONE
/* The same of a causal language model: one matrix with a bias after the hidden state. */
#define SES_RECURRENT_LM_DEFAULTS \
    SES_RECURRENT_DEFAULTS, .attention.causal = true, .lm.no_transform = true, .lm.bias = true

/* Tensors of language models that keep all layers in one nn.LSTM, "rnn", before a "decoder". */
enum { SES_LSTM_TENSORS = 5 };
extern const ses_tensor_name ses_lstm_tensors[SES_LSTM_TENSORS];

#endif
