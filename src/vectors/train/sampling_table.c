/* Alias tables. */
#include "sampling_table.h"

#include "base/alloc.h"

#include <math.h>

ses_sampling_cell *ses_sampling_table(const ses_word_vocab *v, double power, ses_err *e)
{
    size_t n = v->n, smalls = 0, larges = 0;
    ses_sampling_cell *cell = ses_alloc_array(n, sizeof *cell, e);
    double *share = ses_alloc_array(n, sizeof *share, e), total = 0;
    int32_t *small = ses_alloc_array(n, sizeof *small, e), *large = ses_alloc_array(n, sizeof *large, e);
    if (!cell || !share || !small || !large) {
        ses_free(cell);
        cell = NULL;
        goto fail;
    }
    for (size_t i = 0; i < n; i++) total += share[i] = pow((double)v->word[i].count, power);
    for (size_t i = 0; i < n; i++) {
        share[i] *= (double)n / total;
        cell[i] = (ses_sampling_cell){ UINT32_MAX, (int32_t)i };
        if (share[i] < 1)
            small[smalls++] = (int32_t)i;
        else
            large[larges++] = (int32_t)i;
    }
    while (smalls && larges) { /* fills the rest of a small cell with a large word */
        int32_t a = small[--smalls], b = large[larges - 1];
        cell[a] = (ses_sampling_cell){ (uint32_t)(share[a] * 4294967295.0), b };
        share[b] -= 1 - share[a];
        if (share[b] < 1) larges--, small[smalls++] = b;
    }
fail:
    ses_free(share);
    ses_free(small);
    ses_free(large);
    return cell;
}
