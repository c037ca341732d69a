/* Compression of fastText models, .bin to .ftz: keep the rows with the largest norms, train them again,
 * replace parts of rows by the nearest of 256 centroids. The same bits as fastText's `quantize`. */
#ifndef SES_VECTORS_FASTTEXT_QUANTIZE_H
#define SES_VECTORS_FASTTEXT_QUANTIZE_H

#include "base/thread_pool.h"
#include "fasttext_train.h"

typedef struct ses_fasttext_quantizing {
    int64_t cutoff; /* rows to keep; 0: all */
    bool norms;     /* quantize the norms of rows separately */
    bool output;    /* quantize the output matrix too */
    int32_t dsub;   /* columns of a part; 0: 2 */
    /* Lines with labels to train the kept rows again; p NULL: none. Settings: lr, set.epoch, progress. */
    ses_string retrain;
    ses_fasttext_options again;
} ses_fasttext_quantizing;

/* Quantizes a model in memory. pool NULL: on the calling thread. Fails for a matrix of fewer than 256
 * rows. */
bool ses_fasttext_quantize(ses_fasttext_model *m, const ses_fasttext_quantizing *q, ses_thread_pool *pool,
                           ses_err *e);
/* Product quantization of one dense matrix in memory. */
bool ses_fasttext_matrix_quantize(ses_fasttext_matrix *m, int32_t dsub, bool norms, ses_thread_pool *pool,
                                  ses_err *e);

#endif
