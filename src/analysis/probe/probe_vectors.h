/* Vectors of a probe's words or texts from a file of static word vectors: a baseline without a model. */
#ifndef SES_ANALYSIS_PROBE_VECTORS_H
#define SES_ANALYSIS_PROBE_VECTORS_H

#include "probe_data.h"

typedef struct ses_probe_vectors {
    float *x; /* [rows of the data, width]: a word, or the mean of a text's words; zeros: none is known */
    size_t width;
    size_t words, unknown; /* words of the texts; of them, without a vector */
    int64_t duplicates;    /* words of the file that occurred before: the first vector of a word counts */
} ses_probe_vectors;

/* Words are looked up as they are, then in lower case; fastText models have vectors of subwords for the
 * others. Texts are split as `vectors train --words text` does. *v is zeroed before; free it even on
 * failure. */
bool ses_probe_vectors_read(ses_probe_vectors *v, const char *path, const ses_probe_data *d, ses_err *e);
void ses_probe_vectors_free(ses_probe_vectors *v);

#endif
