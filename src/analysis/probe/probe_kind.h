/* A kind of probe: `sesame probe KIND FILE...`. Each kind is one file and one line in probe_kinds.def; its
 * options are a table that analysis_probe.c includes. Kinds are constant tables. */
#ifndef SES_ANALYSIS_PROBE_KIND_H
#define SES_ANALYSIS_PROBE_KIND_H

#include "analysis/analysis.h"
#include "probe_options.h"
#include "probe_tree.h"

typedef struct ses_probe_args {
    bool decoder;    /* states of the decoder */
    int first_piece; /* words: the first token instead of the mean */
    bool pieces_given;
    bool no_random; /* without the model with random weights */
    ses_probe_classifier_args classify;
    ses_probe_tree_args tree;
} ses_probe_args;

typedef struct ses_probe_kind {
    const char *name, *operands;
    int min_files, max_files; /* max_files < 0: unlimited */
    bool (*run)(ses_analysis_call *c, char *const *file, int n, const ses_probe_args *a, ses_err *e);
} ses_probe_kind;

#define SES_PROBE_KIND(name) extern const ses_probe_kind ses_probe_kind_##name;
#include "probe_kinds.def"
#undef SES_PROBE_KIND

#endif
