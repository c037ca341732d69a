/* Shape functions of tensors. */
#include "sesame/unstable/tensor.h"

int ses_rank(const ses_tensor *t)
{
    int n = 0;
    while (t && n < SES_MAX_DIM && t->dim[n]) n++;
    return n;
}

int64_t ses_count(const ses_tensor *t)
{
    if (!t) return 0;
    int64_t n = 1;
    for (int i = 0; i < ses_rank(t); i++) n *= t->dim[i];
    return n;
}

int64_t ses_cols(const ses_tensor *t)
{
    int n = ses_rank(t);
    return n ? t->dim[n - 1] : 0;
}

int64_t ses_rows(const ses_tensor *t)
{
    int64_t cols = ses_cols(t);
    return cols ? ses_count(t) / cols : 0;
}

ses_real *ses_master_data(const ses_tensor *t) { return t->master ? t->master : t->f; }

bool ses_same_shape(const ses_tensor *a, const ses_tensor *b)
{
    for (int i = 0; a && b && i < SES_MAX_DIM; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return a && b;
}
