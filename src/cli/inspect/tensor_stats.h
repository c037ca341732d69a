/* Statistics of the tensors of a checkpoint, computed in one pass on several threads. The result does not
 * depend on the number of threads. Ownership: the caller frees the array with ses_free. */
#ifndef SES_CLI_TENSOR_STATS_H
#define SES_CLI_TENSOR_STATS_H

#include "sesame/safetensors.h"

typedef struct ses_tensor_stats {
    double min, max, norm; /* over finite values; min > max: none */
    int64_t nan, infinite; /* counts */
    int64_t first_bad;     /* index of the first non-finite element; -1: none */
} ses_tensor_stats;

/* Returns an array with an entry per tensor of s. */
ses_tensor_stats *ses_tensor_stats_read(const ses_safetensors *s, int threads, ses_err *e);

/* Fails with the name of the first tensor that has a NaN or an infinity. */
bool ses_tensor_stats_check_finite(const ses_safetensors *s, const ses_tensor_stats *stats, ses_err *e);

#endif
