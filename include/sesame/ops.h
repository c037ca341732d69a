/* The ops, by name. Each is described in its file, src/op/NAME.c. All return NULL once the tape has failed. */
#ifndef SESAME_OPS_H
#define SESAME_OPS_H

#include "sesame/tape.h"

/* How attention over ragged sequences is done. Sequence i of a batch attends within itself only. */
typedef struct ses_attention_options {
    int64_t heads, max_q, max_k; /* max: the longest sequence's length */
    double scale;                /* of the scores; 0: 1 / sqrt(head size) */
    double drop;                 /* dropout of the probabilities, when the tape trains */
    bool causal;
} ses_attention_options;

#define SES_OP(name, params) ses_tensor *ses_##name params;
#include "sesame/ops.def"
#undef SES_OP

#endif
