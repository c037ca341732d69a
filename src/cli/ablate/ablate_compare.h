/* The order of the runs in a column next to the published one. The study's arena holds the lists. Main thread
 * only. */
#ifndef SES_CLI_ABLATE_COMPARE_H
#define SES_CLI_ABLATE_COMPARE_H

#include "ablate.h"

typedef enum {
    SES_ORDER_SAME,    /* the difference has the published direction, and its interval excludes 0 */
    SES_ORDER_DIFFERS, /* the opposite direction, and its interval excludes 0 */
    SES_ORDER_NOISE,   /* the interval contains 0 */
    SES_ORDER_UNKNOWN  /* fewer than two results on a side: no interval */
} ses_order;

/* Two runs that follow each other in the publication. */
typedef struct ses_ablate_pair {
    size_t better, worse;    /* runs, by the publication */
    double published;        /* its difference, better - worse as scores */
    ses_mean_difference own; /* ours, in units of the table; above 0: in the published direction */
    ses_order order;
} ses_ablate_pair;

typedef struct ses_ablate_comparison {
    size_t column, n; /* n: runs that have both numbers */
    double spearman;  /* correlation of both orders; NaN: one is constant */
    ses_ablate_pair *pair;
    size_t n_pairs;
    char verdict[480]; /* the verdict compares all pairs of runs */
} ses_ablate_comparison;

const char *ses_order_name(ses_order o); /* "same order", "differs", "within noise", "one result" */

/* False: fewer than two runs have both numbers, or (e->code) an error. */
bool ses_ablate_compare(ses_ablate *s, size_t column, ses_ablate_comparison *out, ses_err *e);

#endif
