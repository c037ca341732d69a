/* What the numbers of a checkpoint's tensors are like, read once, piece by piece, on several threads. The
 * result does not depend on how many. */
#ifndef SES_CLI_TENSOR_STATS_H
#define SES_CLI_TENSOR_STATS_H

#include "sesame/safetensors.h"

typedef struct ses_tensor_stats {
    double min, max, norm; /* of the finite numbers; min > max: there is none */
    int64_t nan, infinite; /* how many */
    int64_t first_bad;     /* where the first of either stands; -1: all are finite */
} ses_tensor_stats;

/* One for each tensor of s; ses_free. */
ses_tensor_stats *ses_tensor_stats_read(const ses_safetensors *s, int threads, ses_err *e);

/* The first tensor that has a NaN or an infinity is an error naming it. */
bool ses_tensor_stats_check_finite(const ses_safetensors *s, const ses_tensor_stats *stats, ses_err *e);

#endif
