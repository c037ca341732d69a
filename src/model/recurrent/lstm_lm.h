/* LSTM language models: the stack that awd-lstm, lstm and flair-lm share, in awd_lstm.c. */
#ifndef SES_MODEL_LSTM_LM_H
#define SES_MODEL_LSTM_LM_H

#include "recurrent_tables.h"

extern const ses_stack_vtable ses_lstm_lm_vtable;
/* Sets hidden, rnn.state and the longest text from the sizes of the layers. Fails if tied weights do not
 * fit. */
bool ses_lstm_lm_set_sizes(ses_config *c, ses_err *e);

#endif
