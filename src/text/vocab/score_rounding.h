/* Scores of pieces as the reference has them. It reads a decimal as digits / 10^k with both rounded, so a
 * quarter of all scores differ from the nearest double by one unit in the last place; where two ways to cut
 * a word have equal sums but for rounding, that decides. */
#ifndef SES_TEXT_SCORES_H
#define SES_TEXT_SCORES_H

#include "sesame/types.h"

double ses_score_from_json(double x); /* what the reference makes of the shortest text of x */
double ses_score_to_json(double x);   /* a number whose shortest text it reads as x, if there is one near x */

#endif
