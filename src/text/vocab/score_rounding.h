/* Piece scores as HF Tokenizers reads them from JSON: digits / 10^k with both rounded. A quarter of all
 * scores then differ from the nearest double in the last bit, which decides between two segmentations
 * whose sums are equal otherwise. */
#ifndef SES_TEXT_SCORE_ROUNDING_H
#define SES_TEXT_SCORE_ROUNDING_H

#include "sesame/base.h"

double ses_score_from_json(double x); /* the value HF Tokenizers reads from the shortest decimal of x */
/* a number whose shortest decimal HF Tokenizers reads as x, if there is one next to x */
double ses_score_to_json(double x);

#endif
