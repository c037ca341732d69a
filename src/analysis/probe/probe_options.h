/* Options of the probes that classify: tag, text and arc. */
#ifndef SES_ANALYSIS_PROBE_OPTIONS_H
#define SES_ANALYSIS_PROBE_OPTIONS_H

#include "base/opt_table.h"

typedef struct ses_probe_classifier_args {
    bool random_all; /* random weights at every layer, not only at the best one */
    bool no_control, mdl, edge, mix;
    int64_t mlp, max_train; /* 0: softmax regression; all examples */
    double tolerance;
    const char *c;                   /* candidates of C */
    const char *columns;             /* tag: labels to probe */
    const char *text, *pair, *label; /* text: columns */
    const char *task;                /* text: tasks made from trees */
    const char *vectors;             /* file of static word vectors, a baseline; NULL: none */
    int pool;                        /* text: mean, first, last */
    struct {
        bool columns, text, pair, label, task, pool, mlp, c, tolerance, max_train, vectors;
    } given; /* options that the user gave */
} ses_probe_classifier_args;

extern const ses_opt_table ses_probe_classifier_options;

#endif
