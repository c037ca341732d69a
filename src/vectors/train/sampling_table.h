/* Draws words in proportion to count^power, in constant time (alias method, Vose 1991): ses_sampling_draw. */
#ifndef SES_VECTORS_SAMPLING_TABLE_H
#define SES_VECTORS_SAMPLING_TABLE_H

#include "kernel/word_draws.h"
#include "vectors/word_vocab.h"

/* n cells; free with ses_free. */
ses_sampling_cell *ses_sampling_table(const ses_word_vocab *v, double power, ses_err *e);

#endif
