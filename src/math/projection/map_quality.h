/* How well a map keeps the neighbourhoods of the vectors it was made from. */
#ifndef SES_MATH_MAP_QUALITY_H
#define SES_MATH_MAP_QUALITY_H

#include "math/math_exec.h"

typedef struct ses_map_quality {
    int64_t neighbours; /* k: 10, or less for few points; 0: too few points to measure */
    int64_t queries;    /* points measured: all, or a sample */
    /* Venna and Kaski (2001): 1 - 2 / (m k (2n - 3k - 1)) sum of (rank - k) over the neighbours in the map
     * that are not neighbours of the vectors */
    double trustworthiness;
    double recall; /* neighbours of the vectors that are neighbours in the map */
} ses_map_quality;

/* x [n, width]: the vectors; px, py [n]: the map. Of more than 5,000 points a random sample of 2,000 is
 * measured, against all points. */
bool ses_map_quality_measure(ses_map_quality *q, const ses_math *m, const ses_real *x, int64_t n,
                             int64_t width, const double *px, const double *py, uint64_t seed, ses_err *e);

#endif
