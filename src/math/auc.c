/* Area under the ROC curve by ranks: see auc.h. */
#include "auc.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    float x = ((const ses_auc_item *)a)->value, y = ((const ses_auc_item *)b)->value;
    return (x > y) - (x < y);
}

double ses_auc(const float *value, const uint8_t *positive, size_t n, ses_auc_item *scratch)
{
    double ranks = 0, p = 0;
    for (size_t i = 0; i < n; i++) scratch[i] = (ses_auc_item){ value[i], positive[i] };
    qsort(scratch, n, sizeof *scratch, by_value);
    for (size_t i = 0, end; i < n; i = end) {
        double count = 0;
        for (end = i; end < n && scratch[end].value == scratch[i].value; end++)
            count += scratch[end].positive;
        if (end == i) return NAN;                     /* a value is NaN */
        ranks += count * ((double)(i + end + 1) / 2); /* the mean of the ranks i + 1 .. end */
        p += count;
    }
    return p > 0 && p < (double)n ? (ranks - p * (p + 1) / 2) / (p * ((double)n - p)) : NAN;
}
