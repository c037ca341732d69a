/* NumPy's .npy. */
#include "fuzz.h"
#include "io/matrix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_matrix m = { 0 };
    ses_err e = { 0 };
    bool ok = ses_matrix_from_npy(&m, data, n, &e);
    MUST(ok ? m.rows * m.cols <= n : !m.x);
    MUST(ok || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    volatile float last = 0;
    for (size_t i = 0; i < m.rows * m.cols; i++) last = m.x[i];
    (void)last;
    ses_matrix_free(&m);
    return 0;
}
