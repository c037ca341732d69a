/* Words by their characters (Kim et al. 2016, ELMo): character vectors, convolutions of several widths, the
 * maximum of each filter over all positions, highway layers, a projection. Ownership and threads: as nn.h. */
#ifndef SES_NN_CHAR_CNN_H
#define SES_NN_CHAR_CNN_H

#include "base/elmo/word_chars.h"
#include "nn/nn.h"

typedef struct ses_char_cnn {
    ses_tensor *table;               /* [SES_CHARS, chars.width] */
    ses_dense conv[SES_MAX_FILTERS]; /* all filters of a width: [count, size * chars.width] */
    ses_dense transform[SES_MAX_HIGHWAYS], carry[SES_MAX_HIGHWAYS];
    ses_dense project; /* w NULL: the filters are as many as the output's columns */
} ses_char_cnn;

/* Number of filters of all widths. */
int64_t ses_char_filters(const ses_config *c);

/* Declares the layers; out: columns of the result. */
void ses_char_cnn_add(ses_char_cnn *k, ses_store *s, const ses_config *c, int64_t out);

/* [n, out]: the vectors of n words, chars [n, chars.per_word] on the host. */
ses_tensor *ses_char_cnn_run(const ses_char_cnn *k, ses_tape *t, const ses_config *c, const int16_t *chars,
                             int64_t n);

#endif
