/* Token vectors of a new model from a file of word vectors. Threads: as the model. */
#ifndef SES_TUNE_TOKEN_VECTORS_H
#define SES_TUNE_TOKEN_VECTORS_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"
#include "sesame/vectors.h"

/* The vector of each token that is a word of v, or that v has subwords for, becomes its row of the token
 * table; others keep theirs. Sets the number of rows. Fails if no token has a vector or the widths differ. */
bool ses_token_vectors_copy(ses_model *m, const ses_tokenizer *t, const ses_vectors *v, int64_t *copied,
                            ses_err *e);

#endif
