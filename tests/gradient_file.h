/* Gradients in a safetensors file, for tests against PyTorch. */
#ifndef TESTS_GRADIENT_FILE_H
#define TESTS_GRADIENT_FILE_H

#include "check.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/tensor.h"

#include <math.h>

/* |a - b| / |b| of a gradient; NaN: not in the file */
static inline double gradient_distance(const ses_tensor *t, const ses_safetensors *file, const char *name)
{
    static float want[8192];
    ses_err e = { 0 };
    const ses_tensor_entry *x = ses_safetensors_find(file, name);
    double error = 0, norm = 0;
    if (!x || !t->grad || ses_count(t) > (int64_t)SES_LEN(want) ||
        !ses_convert(want, SES_F32, x->data, x->dtype, (size_t)ses_count(t), &e))
        return NAN;
    for (int64_t i = 0; i < ses_count(t); i++) {
        error += pow((double)t->grad[i] - (double)want[i], 2);
        norm += pow((double)want[i], 2);
    }
    return sqrt(error) / fmax(sqrt(norm), 1e-12);
}

/* Compares a loss to 1e-5, relative. */
static inline void check_loss(double loss, const ses_safetensors *file, const char *name)
{
    float want = 0;
    ses_err e = { 0 };
    const ses_tensor_entry *x = ses_safetensors_find(file, name);
    CHECK(x && ses_convert(&want, SES_F32, x->data, x->dtype, 1, &e));
    CHECK_MSG(fabs(loss - (double)want) < 1e-5 * (double)want, "%s: %.9g, PyTorch %.9g", name, loss,
              (double)want);
}

#endif
