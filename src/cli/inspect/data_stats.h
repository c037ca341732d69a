/* What there is to know about examples before training on them. */
#ifndef SES_CLI_DATA_STATS_H
#define SES_CLI_DATA_STATS_H

#include "cli/ui/term.h"
#include "sesame/examples.h"

/* Of a list of numbers. */
typedef struct ses_distribution {
    double mean, deviation, least, median, p95, most;
} ses_distribution;

typedef struct ses_data_stats {
    int64_t *count;                     /* [labels] */
    ses_distribution words, characters; /* of all texts of an example together */
    ses_distribution targets;           /* of regression */
    int64_t duplicates;                 /* examples whose texts are those of one before */
    int64_t contradictions;             /* ... with another label */
    int64_t unanswered;                 /* questions without an answer */
    int64_t tokens;                     /* of tagging */
} ses_data_stats;

bool ses_data_stats_of(const ses_examples *d, ses_data_stats *s, ses_err *e);
void ses_data_stats_free(ses_data_stats *s);

typedef struct ses_data_view {
    const char *path, *split;
    const ses_benchmark *benchmark; /* or NULL */
    const ses_data_spec *spec;
    int64_t show; /* examples */
} ses_data_view;

bool ses_data_show(const ses_examples *d, const ses_data_stats *s, const ses_data_view *v, const ses_term *t,
                   ses_err *e);
bool ses_data_print_json(const ses_examples *d, const ses_data_stats *s, const ses_data_view *v, ses_err *e);

#endif
