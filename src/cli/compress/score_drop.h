/* The loss of a score, as --max-drop counts it. */
#ifndef SES_CLI_SCORE_DROP_H
#define SES_CLI_SCORE_DROP_H

#include <stdbool.h>

/* Points of 100 of a score; percent of an error or a perplexity, where lower is better. Negative: a gain.
 * in_percent: the scores are at most 100, not 1. */
static inline double ses_score_drop(double original, double score, bool lower_is_better, bool in_percent)
{
    if (lower_is_better) return 100 * (score / original - 1);
    return (in_percent ? 1 : 100) * (original - score);
}

#endif
