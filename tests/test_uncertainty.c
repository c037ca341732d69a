/* Entropy, margin and least confidence, against NumPy and SciPy on the same f32 probabilities. */
#include "check.h"
#include "metric/uncertainty.h"

#include <math.h>

static const struct {
    float p[4];
    size_t n;
    double entropy, margin, least;
} rows[] = {
    { { 0.7f, 0.2f, 0.1f }, 3, 0.801818563970, 0.499999985099, 0.300000011921 },
    { { 0.25f, 0.25f, 0.25f, 0.25f }, 4, 1.386294361120, 0, 0.75 },
    { { 1, 0, 0 }, 3, 0, 1, 0 },
    { { 0.5f, 0.5f }, 2, 0.693147180560, 0, 0.5 },
    { { 0.25f, 0.4f, 0.35f }, 3, 1.080527625808, 0.050000011921, 0.599999994040 },
    { { 1 }, 1, 0, 1, 0 },
};

static int is_near(double a, double b) { return fabs(a - b) < 1e-11; }

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(is_near(ses_uncertainty_of(SES_BY_ENTROPY, rows[i].p, rows[i].n), rows[i].entropy));
        CHECK(is_near(ses_uncertainty_of(SES_BY_MARGIN, rows[i].p, rows[i].n), rows[i].margin));
        CHECK(is_near(ses_uncertainty_of(SES_BY_LEAST_CONFIDENCE, rows[i].p, rows[i].n), rows[i].least));
    }
    static const float two[] = { 0.9f, 0.2f };
    CHECK(fabs(ses_uncertainty_of_labels(SES_BY_ENTROPY, two, 2) - 0.412742726724) < 1e-7);
    CHECK(fabs(ses_uncertainty_of_labels(SES_BY_MARGIN, two, 2) - 0.699999973178) < 1e-7);
    CHECK(fabs(ses_uncertainty_of_labels(SES_BY_LEAST_CONFIDENCE, two, 2) - 0.150000013411) < 1e-7);
    CHECK(ses_uncertainty_is_above(SES_BY_ENTROPY, 0.5, 0.4) &&
          !ses_uncertainty_is_above(SES_BY_ENTROPY, 0.4, 0.4));
    CHECK(ses_uncertainty_is_above(SES_BY_MARGIN, 0.1, 0.4) &&
          !ses_uncertainty_is_above(SES_BY_MARGIN, 0.4, 0.1));
    return check_report();
}
