/* Values that a score can have, for intervals and plots. */
#ifndef SES_METRIC_SCORE_RANGE_H
#define SES_METRIC_SCORE_RANGE_H

/* The least value of a score: 0, also of unknown names; -infinity if it may be below 0: correlations, R^2. */
double ses_metric_least(const char *score);

#endif
