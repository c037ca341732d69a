/* Options of structural probes, the kind "tree" of `sesame probe`. */
#ifndef SES_ANALYSIS_PROBE_TREE_H
#define SES_ANALYSIS_PROBE_TREE_H

#include "base/opt_table.h"

typedef struct ses_probe_tree_args {
    int64_t rank, epochs, draw;
    bool skip_invalid;
    struct {
        bool rank, epochs, draw;
    } given; /* options that the user gave */
} ses_probe_tree_args;

extern const ses_opt_table ses_probe_tree_options;

#endif
