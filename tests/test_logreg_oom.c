/* Logistic regression and matrices with every allocation failing in turn. */
#include "oom.h"

#include "io/matrix.h"
#include "sesame/unstable/logreg.h"

static bool fit(void *ctx, ses_err *e)
{
    static const float x[] = { 0, 1, 2, 3, 4, 5 };
    static const int32_t y[] = { 0, 1, 2, 0, 1, 2 };
    (void)ctx;
    ses_logreg m = { 0 };
    bool ok = ses_logreg_fit(&m, x, y, NULL, 6, 1, 3, NULL, e);
    ses_logreg_free(&m);
    return ok;
}

static bool read_matrix(void *ctx, ses_err *e)
{
    ses_matrix m;
    bool ok = ses_matrix_read(&m, ctx, NULL, e);
    ses_matrix_free(&m);
    return ok;
}

int main(void)
{
    char npy[] = "tests/fuzz/corpus/fuzz_npy/f4.npy", table[] = "tests/fuzz/corpus/fuzz_npy/table.csv";
    oom_sweep("fit", fit, NULL);
    oom_sweep("npy", read_matrix, npy);
    oom_sweep("table", read_matrix, table);
    return check_report();
}
