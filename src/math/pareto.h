/* The Pareto front of points with a score and a cost. Any thread. */
#ifndef SES_MATH_PARETO_H
#define SES_MATH_PARETO_H

#include "sesame/base.h"

/* Marks the points that no other point beats: another with at least the score and at most the cost, one of
 * them better. Points with NaN are not on the front. */
bool ses_pareto_mark(const double *score, const double *cost, size_t n, bool *on_front, ses_err *e);

#endif
