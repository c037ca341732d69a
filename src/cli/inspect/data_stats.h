/* Statistics of labeled examples, and their output. Ownership: ses_data_stats_free frees the counts; the
 * rest is borrowed. No state is shared between threads. */
#ifndef SES_CLI_DATA_STATS_H
#define SES_CLI_DATA_STATS_H

#include "cli/ui/term.h"
#include "sesame/examples.h"

typedef struct ses_distribution {
    double mean, stddev, min, median, p95, max;
} ses_distribution;

typedef struct ses_data_stats {
    int64_t *count;                     /* [labels] */
    ses_distribution words, characters; /* counted over all texts of an example */
    ses_distribution targets;           /* regression */
    int64_t duplicates;                 /* examples with the same texts as an earlier one */
    int64_t contradictions;             /* duplicates with another label */
    int64_t unanswered;                 /* questions without an answer */
    int64_t tokens;                     /* tagging */
} ses_data_stats;

bool ses_data_stats_of(const ses_examples *d, ses_data_stats *s, ses_err *e);
void ses_data_stats_free(ses_data_stats *s);

typedef struct ses_data_view {
    const char *path, *split;
    const ses_benchmark *benchmark; /* NULL: none */
    const ses_data_spec *spec;
    int64_t show; /* number of examples to show */
} ses_data_view;

bool ses_data_show(const ses_examples *d, const ses_data_stats *s, const ses_data_view *v, const ses_term *t,
                   ses_err *e);
bool ses_data_print_json(const ses_examples *d, const ses_data_stats *s, const ses_data_view *v, ses_err *e);

#endif
