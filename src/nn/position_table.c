/* Position tables that are computed: sinusoids. */
#include "nn.h"

#include "base/alloc.h"
#include "tensor/device_impl.h"

#include <math.h>

/* Row `position` of a sinusoidal table. fairseq divides by half - 1, so that the last frequency is
 * 1/10000. */
static void sinusoid(ses_real *row, int64_t position, int64_t width, ses_position_kind kind)
{
    bool fairseq = kind == SES_POS_FAIRSEQ, pairs = kind == SES_POS_INTERLEAVED;
    int64_t half = width / 2, n_sines = fairseq ? half : (width + 1) / 2;
    for (int64_t j = 0; j < width; j++) {
        bool sine = pairs ? j % 2 == 0 : j < n_sines;
        int64_t i = pairs ? j / 2 : sine ? j : j - n_sines;
        double rate = fairseq ? exp(-log(10000.0) / (double)(half - 1) * (double)i)
                              : pow(10000, -2.0 * (double)i / (double)width);
        row[j] = (ses_real)(j >= 2 * half && fairseq ? 0
                            : sine                   ? sin((double)position * rate)
                                                     : cos((double)position * rate));
    }
}

bool ses_stack_compute(const ses_stack *k, ses_store *s, const ses_config *c, ses_err *e)
{
    int64_t width = ses_cols(k->position);
    ses_device *dev = ses_store_device(s);
    ses_real *row = ses_alloc_array((size_t)width, sizeof *row, e);
    for (int64_t r = 0; row && r < ses_rows(k->position); r++) {
        sinusoid(row, r, width, c->position.kind);
        for (int64_t j = 0; c->position.kind == SES_POS_FAIRSEQ && r == c->pad_id && j < width; j++)
            row[j] = 0;
        dev->mem->upload(dev, ses_master_data(k->position) + r * width, row, (size_t)width * sizeof *row);
    }
    ses_free(row);
    return row != NULL;
}
